//! What a loaded object tells about its functions: where they begin, from its unwind tables, and which of them are an
//! allocator's, from its symbols.
//!
//! The table of unwind entries (`.eh_frame_hdr`) is read in memory, symbols from the file. Both may be damaged or
//! missing: whatever does not make sense is left out. Reads of the program's memory survive bad addresses.

use alloc::vec::Vec;
use core::ops::Range;
use engine::appmem;
use engine::sys::{self, nr};

/// A loaded object.
pub struct Image {
    /// Where table entries count from.
    base: u64,
    /// (start, unwind entry) of functions as offsets from `base`, ascending in start.
    functions: Vec<(i32, i32)>,
    /// How many functions begin before each multiple of [`PIECE_BYTES`] from the first one's start: where to search.
    pieces: Vec<u32>,
    /// End of the executable mapping.
    end: u64,
    /// Entries of allocators, ascending.
    allocators: Vec<u64>,
}

/// Code whose functions are searched together: a handful.
const PIECE_BYTES: u32 = 1 << 10;
const PIECES_MAX: usize = 1 << 18;

/// Names whose accesses are an allocator's.
const ALLOCATORS: &[&[u8]] = &[
    b"malloc",
    b"free",
    b"calloc",
    b"realloc",
    b"reallocarray",
    b"cfree",
    b"memalign",
    b"aligned_alloc",
    b"posix_memalign",
    b"valloc",
    b"pvalloc",
    b"malloc_usable_size",
    b"malloc_trim",
    b"free_sized",
    b"free_aligned_sized",
    b"__libc_malloc",
    b"__libc_free",
    b"__libc_calloc",
    b"__libc_realloc",
    b"__libc_memalign",
    b"sdallocx",
    b"mi_malloc",
    b"mi_free",
    b"mi_realloc",
    b"mi_calloc",
];
/// Beginnings of such names: C++'s operators new and delete, Rust's entry points.
const ALLOCATOR_PREFIXES: &[&[u8]] = &[
    b"_Znw",
    b"_Zna",
    b"_Zdl",
    b"_Zda",
    b"__rust_alloc",
    b"__rust_dealloc",
    b"__rust_realloc",
    b"__rdl_",
    b"__rg_",
];

impl Image {
    /// An object whose first byte is at `head` and whose code is mapped at `code`. Its allocators are looked up if
    /// `allocators` says so.
    pub fn new(path: &[u8], head: Option<u64>, code: Range<u64>, allocators: bool) -> Image {
        let mut image = Image {
            base: code.start,
            functions: Vec::new(),
            pieces: Vec::new(),
            end: code.end,
            allocators: Vec::new(),
        };
        // The kernel's own object has its header in the same mapping.
        let head = head.or((path == b"[vdso]").then_some(code.start));
        let Some(head) = head else { return image };
        let Some(layout) = Layout::read(head) else { return image };
        if let Some(table) = layout.unwind {
            image.read_unwind_table(table);
            image.index();
        }
        if allocators && path.first() == Some(&b'/') {
            image.allocators = Symbols::allocators(path, layout.bias).unwrap_or_default();
        }
        image
    }

    /// Whether an allocator begins at this address.
    pub fn allocates(&self, address: u64) -> bool {
        self.allocators.binary_search(&address).is_ok()
    }

    /// The function that holds `address`, up to the next one.
    pub fn function_around(&self, address: u64) -> Option<Range<u64>> {
        let offset = i32::try_from(address.wrapping_sub(self.base) as i64).ok()?;
        let next = self.functions_until(offset);
        let start = self.address(self.functions.get(next.checked_sub(1)?)?.0);
        let end = self.functions.get(next).map_or(self.end, |next| self.address(next.0));
        Some(start..end)
    }

    /// Whether the function at `address` begins with nothing but a return address on the stack. The parts of functions
    /// that compilers move away have entries of their own, and begin in the middle of things.
    pub fn is_plain_entry(&self, address: u64) -> bool {
        let Ok(offset) = i32::try_from(address.wrapping_sub(self.base) as i64) else { return false };
        let last = self.functions_until(offset).checked_sub(1);
        let found = last.map(|i| self.functions[i]).filter(|f| f.0 == offset);
        found.and_then(|f| begins_plainly(self.address(f.1))).unwrap_or(false)
    }

    /// How many functions begin at this offset or before it.
    fn functions_until(&self, offset: i32) -> usize {
        let Some(&(first, _)) = self.functions.first() else { return 0 };
        let Ok(behind) = u32::try_from(i64::from(offset) - i64::from(first)) else { return 0 };
        let piece = (behind / PIECE_BYTES) as usize;
        let bound = |i: usize| self.pieces.get(i).map_or(self.functions.len(), |n| *n as usize);
        let (from, to) =
            if self.pieces.is_empty() { (0, self.functions.len()) } else { (bound(piece), bound(piece + 1)) };
        from + self.functions[from..to].partition_point(|f| f.0 <= offset)
    }

    /// Fills `pieces`, unless functions lie further apart than in any object.
    fn index(&mut self) {
        let (Some(first), Some(last)) = (self.functions.first(), self.functions.last()) else { return };
        let first = i64::from(first.0);
        let piece_of = |start: i32| (i64::from(start) - first) as usize / PIECE_BYTES as usize;
        if piece_of(last.0) >= PIECES_MAX {
            return;
        }
        self.pieces.reserve_exact(piece_of(last.0) + 1);
        for (n, function) in self.functions.iter().enumerate() {
            while self.pieces.len() <= piece_of(function.0) {
                self.pieces.push(n as u32);
            }
        }
    }

    fn address(&self, offset: i32) -> u64 {
        self.base.wrapping_add_signed(offset.into())
    }

    /// Reads the sorted table of `.eh_frame_hdr`.
    fn read_unwind_table(&mut self, table: u64) {
        const SDATA4: u8 = 0x0b;
        const UDATA4: u8 = 0x03;
        const DATA_RELATIVE: u8 = 0x30;
        let Some([version, frame, count, entries]) = appmem::read::<[u8; 4]>(table) else { return };
        if version != 1 || count != UDATA4 || entries != SDATA4 | DATA_RELATIVE || frame & 0x0f != SDATA4 {
            return;
        }
        let Some(count) = appmem::read::<u32>(table + 8) else { return };
        self.base = table;
        let count = count.min(1 << 22) as usize;
        self.functions.reserve_exact(count);
        let mut bytes = [0u8; 8 * 512];
        let mut step = bytes.len();
        while self.functions.len() < count && step >= 8 {
            let done = self.functions.len();
            let piece = &mut bytes[..step.min((count - done) * 8)];
            if !appmem::read_bytes(table + 12 + done as u64 * 8, piece) {
                step = piece.len() / 16 * 8; // up to what may not be read
                continue;
            }
            let word = |b: &[u8]| i32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            self.functions.extend(piece.chunks_exact(8).map(|b| (word(b), word(&b[4..]))));
        }
        if !self.functions.is_sorted_by_key(|f| f.0) {
            self.functions.sort_unstable_by_key(|f| f.0);
        }
    }
}

/// Whether an unwind entry's rules begin as its common part leaves them: the return address on top of the stack.
fn begins_plainly(entry: u64) -> Option<bool> {
    // length, pointer back to the common part, start, size, augmentation length, then rules
    let [length, back] = appmem::read::<[u32; 2]>(entry)?;
    let common = (entry + 4).wrapping_sub(back.into());
    let augmentation = appmem::read::<[u8; 2]>(common + 9)?;
    let mut at = entry + 16;
    if augmentation[0] == b'z' {
        let skip: u8 = appmem::read(at)?;
        if skip & 0x80 != 0 {
            return Some(true);
        }
        at += 1 + u64::from(skip);
    }
    let end = entry + 4 + u64::from(length);
    while at < end {
        let op: u8 = appmem::read(at)?;
        const ADVANCE: u8 = 1;
        const RESTORE: u8 = 3;
        match (op >> 6, op) {
            (ADVANCE, _) | (0, 0x01..=0x04) => return Some(true),
            (0, 0x00) => at += 1,
            // undefined, same value: one register number
            (0, 0x07 | 0x08) => at += 2,
            (RESTORE, _) => at += 1,
            _ => return Some(false),
        }
    }
    Some(true)
}

/// What the program headers say.
struct Layout {
    /// Where address 0 of the object lies.
    bias: u64,
    /// Address of the table of unwind entries.
    unwind: Option<u64>,
}

impl Layout {
    fn read(head: u64) -> Option<Layout> {
        let header: [u8; 64] = appmem::read(head)?;
        if header[..5] != *b"\x7fELF\x02" {
            return None;
        }
        let table = u64::from_le_bytes(header[32..40].try_into().ok()?);
        let entry_bytes = u64::from(u16::from_le_bytes([header[54], header[55]]));
        let count = u64::from(u16::from_le_bytes([header[56], header[57]]));
        const LOAD: u32 = 1;
        const UNWIND: u32 = 0x6474_e550;
        let (mut bias, mut unwind) = (None, None);
        for i in 0..count {
            // type, flags, offset, virtual address
            let [kind_flags, offset, address]: [u64; 3] = appmem::read(head + table + i * entry_bytes)?;
            match kind_flags as u32 {
                LOAD if bias.is_none() => {
                    bias = Some(head.wrapping_sub((address & !0xfff).wrapping_sub(offset & !0xfff)));
                }
                UNWIND => unwind = Some(address),
                _ => {}
            }
        }
        let bias = bias?;
        Some(Layout { bias, unwind: unwind.map(|address| bias.wrapping_add(address)) })
    }
}

/// A file's symbols, mapped while they are searched.
struct Symbols {
    at: u64,
    bytes: u64,
}

impl Symbols {
    /// Addresses of allocators, ascending.
    fn allocators(path: &[u8], bias: u64) -> Option<Vec<u64>> {
        let mut with_nul = Vec::with_capacity(path.len() + 1);
        with_nul.extend_from_slice(path);
        with_nul.push(0);
        let file = Symbols::map(&with_nul)?;
        let mut found = Vec::new();
        file.search(bias, &mut found);
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    fn map(path_with_nul: &[u8]) -> Option<Symbols> {
        const CLOEXEC: u64 = 0x80000;
        const END: u64 = 2;
        // SAFETY: the path ends with a nul byte; a new private mapping of the file replaces nothing.
        unsafe {
            let fd = sys::call(nr::OPEN, [path_with_nul.as_ptr() as u64, CLOEXEC, 0, 0, 0, 0]);
            if sys::failed(fd) {
                return None;
            }
            const LSEEK: u64 = 8;
            let bytes = sys::call(LSEEK, [fd as u64, 0, END, 0, 0, 0]);
            let room = sys::map_anonymous(0, (bytes.max(0) as u64).max(1), sys::mm::PROT_READ, 0);
            let at = match room {
                Some(room) if bytes > 0 => {
                    let flags = sys::mm::MAP_PRIVATE | sys::mm::MAP_FIXED;
                    sys::call(nr::MMAP, [room, bytes as u64, sys::mm::PROT_READ, flags, fd as u64, 0])
                }
                _ => -1,
            };
            sys::call(nr::CLOSE, [fd as u64, 0, 0, 0, 0, 0]);
            (!sys::failed(at)).then_some(Symbols { at: at as u64, bytes: bytes as u64 })
        }
    }

    /// Reads a value of the file; `None` past its end, also where it was shortened meanwhile.
    fn get<T: Copy>(&self, offset: u64) -> Option<T> {
        (offset.checked_add(size_of::<T>() as u64)? <= self.bytes).then(|| appmem::read(self.at + offset))?
    }

    fn search(&self, bias: u64, found: &mut Vec<u64>) -> Option<()> {
        let header: [u8; 64] = self.get(0)?;
        let sections = u64::from_le_bytes(header[40..48].try_into().ok()?);
        let count = u64::from(u16::from_le_bytes([header[60], header[61]]));
        const SYMTAB: u32 = 2;
        const DYNSYM: u32 = 11;
        for i in 0..count {
            // name, type | flags | address | offset, size | link, info
            let section: [u64; 6] = self.get(sections + i * 64)?;
            let kind = (section[0] >> 32) as u32;
            if kind != SYMTAB && kind != DYNSYM {
                continue;
            }
            let link = section[5] & 0xffff_ffff;
            let strings: [u64; 5] = self.get(sections + link * 64)?;
            let (table, bytes) = (section[3], section[4]);
            for at in (table..table.saturating_add(bytes)).step_by(24) {
                // name, info, other, section | value | size
                let Some([head, value, _size]) = self.get::<[u64; 3]>(at) else { break };
                const FUNCTION: u64 = 2;
                let defined = head >> 48 != 0;
                if head >> 32 & 15 == FUNCTION
                    && defined
                    && self.is_allocator(strings[3] + (head & 0xffff_ffff))
                {
                    found.push(bias.wrapping_add(value));
                }
            }
        }
        Some(())
    }

    fn is_allocator(&self, name: u64) -> bool {
        // (Byte by byte at the file's end.)
        let text = self.get::<[u8; 32]>(name).unwrap_or_else(|| {
            core::array::from_fn(|i| self.get::<u8>(name.saturating_add(i as u64)).unwrap_or(0))
        });
        if !matches!(text[0], b'm' | b'f' | b'c' | b'r' | b'a' | b'p' | b'v' | b'_' | b's') {
            return false;
        }
        let len = text.iter().position(|b| *b == 0).unwrap_or(text.len());
        let text = &text[..len];
        ALLOCATORS.contains(&text) || ALLOCATOR_PREFIXES.iter().any(|p| text.starts_with(p))
    }
}

impl Drop for Symbols {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which nothing is kept.
        unsafe { sys::call(nr::MUNMAP, [self.at, self.bytes, 0, 0, 0, 0]) };
    }
}
