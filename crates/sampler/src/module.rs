//! The modules (executable, libraries, vdso) that code is in, as they come and go.
//!
//! An append-only list. Modules present at start are added from `dl_iterate_phdr`. A pc outside all of them is
//! looked up with `_dl_find_object` (glibc 2.35), which is lock-free and correct even while `dlopen` runs, so
//! a library's constructors are seen too; where libc lacks it, [`refresh`] must be called outside signal
//! handlers once [`is_stale`] says so. The name and build id are copied when a module is added: they outlive
//! the module.
//!
//! # Unloading
//! `dlclose` may unmap unwind tables that a handler in another thread is about to read. [`closing`] therefore
//! bars handlers from the tables of modules that came after start (those at start are never unmapped) and
//! waits for the handlers inside to leave; [`closed`] finds out what is gone, and lets them in again. A closed
//! module keeps its serial, so that addresses sampled in it are never taken for those of a module loaded into
//! the same place later.

use core::alloc::Layout;
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};
use preload::arena::Arena;
use preload::sys;

/// Address space for module records (about 400 bytes each).
const RECORDS_BYTES_MAX: usize = 64 << 20;
/// Serial of modules that came when all others were used up, and of pcs outside all modules.
pub const NO_SERIAL: u16 = 0x7fff;
/// Longest path kept; longer ones are cut.
const PATH_BYTES_MAX: usize = 255;
/// Rounds of waiting for handlers to leave before `dlclose` goes on regardless: a thread that was stopped
/// inside a handler must not stop the program too.
const LEAVE_ROUNDS_MAX: u32 = 10_000;

/// One module.
#[derive(Debug)]
pub struct Module {
    /// First address.
    pub start: usize,
    /// First address behind it.
    pub end: usize,
    /// Difference between addresses in memory and in the file.
    pub bias: usize,
    serial: u16,
    at_start: bool,
    link_map: usize,
    eh_frame_hdr: (usize, usize),
    segment_end: usize,
    gone: AtomicBool,
    path: [u8; PATH_BYTES_MAX + 1],
    path_len: u8,
    build_id: [u8; 20],
    build_id_len: u8,
    next: AtomicPtr<Module>,
}

/// Unwind tables of a module, in memory: the index, and everything from there to the segment's end.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    /// The `.eh_frame_hdr` section.
    pub index: &'a [u8],
    /// End of the mapped segment that holds the index and the frames.
    pub segment_end: usize,
}

static RECORDS: Arena = Arena::new();
static FIRST: AtomicPtr<Module> = AtomicPtr::new(ptr::null_mut());
static SERIALS: AtomicU32 = AtomicU32::new(0);
static STARTED: AtomicBool = AtomicBool::new(false);
static STALE: AtomicBool = AtomicBool::new(false);
static CLOSING: AtomicU32 = AtomicU32::new(0);
static INSIDE: AtomicU32 = AtomicU32::new(0);
static FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

impl Module {
    /// A number that no other module of this process has, or [`NO_SERIAL`].
    pub fn serial(&self) -> u16 {
        self.serial
    }

    /// Path as the dynamic linker has it; empty for the executable.
    pub fn path(&self) -> &[u8] {
        self.path.get(..self.path_len as usize).unwrap_or(&[])
    }

    /// GNU build id; empty if there is none.
    pub fn build_id(&self) -> &[u8] {
        self.build_id.get(..self.build_id_len as usize).unwrap_or(&[])
    }

    /// Whether it has been unloaded.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// The unwind tables, if there are any and they may be read now.
    pub(crate) fn tables(&self) -> Option<Tables<'_>> {
        let (start, len) = self.eh_frame_hdr;
        if len == 0 || (!self.at_start && CLOSING.load(SeqCst) != 0) {
            return None;
        }
        // SAFETY: the dynamic linker mapped the segment; modules at start stay, and others stay while nobody
        // is closing (we are counted in `INSIDE`, see the module's documentation).
        let index = unsafe { &*ptr::slice_from_raw_parts(start as *const u8, len) };
        Some(Tables { index, segment_end: self.segment_end })
    }
}

/// A handler's stay among the tables; ends with [`leave`].
#[inline(always)]
pub fn enter() {
    INSIDE.fetch_add(1, SeqCst);
}

/// See [`enter`].
#[inline(always)]
pub fn leave() {
    INSIDE.fetch_sub(1, Release);
}

/// Prepares the list. Once, before the first sample, outside signal handlers.
pub fn start() -> bool {
    if RECORDS.reserve(RECORDS_BYTES_MAX).is_err() {
        return false;
    }
    // SAFETY: a terminated name.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    FIND_OBJECT.store(found as usize, Relaxed);
    refresh();
    STARTED.store(true, Release);
    true
}

/// Visits every module there ever was, the newest first.
pub fn for_each(mut f: impl FnMut(&'static Module)) {
    let mut at = FIRST.load(Acquire);
    // SAFETY: records are never freed.
    while let Some(module) = unsafe { at.as_ref() } {
        f(module);
        at = module.next.load(Acquire);
    }
}

/// The module that a pc is in. Signal-safe.
pub fn find(pc: u64) -> Option<&'static Module> {
    let pc = pc as usize;
    let mut at = FIRST.load(Acquire);
    // SAFETY: records are never freed.
    while let Some(module) = unsafe { at.as_ref() } {
        if (module.start..module.end).contains(&pc) && !module.is_gone() {
            return Some(module);
        }
        at = module.next.load(Acquire);
    }
    match find_object(pc) {
        Some(object) => add_object(&object),
        None => {
            STALE.store(true, Relaxed);
            None
        }
    }
}

/// Whether an address is in a module that has been met before. Cheaper than [`find`] for what is most likely no code.
pub fn is_known(address: u64) -> bool {
    let mut known = false;
    for_each(|module| {
        known |= (module.start..module.end).contains(&(address as usize)) && !module.is_gone();
    });
    known
}

/// Whether a pc was met that no known module has, on a libc without `_dl_find_object`.
pub fn is_stale() -> bool {
    FIND_OBJECT.load(Relaxed) == 0 && STALE.load(Relaxed)
}

/// Brings the list up to date. Not in signal handlers.
pub fn refresh() {
    STALE.store(false, Relaxed);
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, _: *mut libc::c_void) -> i32 {
        // SAFETY: libc passes a live record whose program headers are mapped.
        unsafe {
            let info = &*info;
            let headers = &*ptr::slice_from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize);
            add(info.dlpi_addr as usize, headers, info.dlpi_name, 0);
        }
        0
    }
    // SAFETY: the callback matches and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(visit), ptr::null_mut()) };
}

/// `dlclose` is about to run: keeps handlers out of tables that may go.
pub fn closing() {
    CLOSING.fetch_add(1, SeqCst);
    for _ in 0..LEAVE_ROUNDS_MAX {
        if INSIDE.load(SeqCst) == 0 {
            return;
        }
        sys::yield_now();
    }
}

/// `dlclose` has run.
pub fn closed() {
    let mut lost = false;
    for_each(|module| {
        if !module.at_start && !module.is_gone() && !still_there(module) {
            module.gone.store(true, Relaxed);
            lost = true;
        }
    });
    if lost {
        crate::cache::forget();
    }
    // Not below none: a destructor may have forked in between.
    let _ = CLOSING.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1));
}

/// In a forked child: the threads that were among the tables, or closing a library, are not here.
pub fn forked() {
    INSIDE.store(0, SeqCst);
    CLOSING.store(0, SeqCst);
}

fn still_there(module: &Module) -> bool {
    if FIND_OBJECT.load(Relaxed) != 0 {
        return find_object(module.start)
            .is_some_and(|o| o.start == module.start && o.link_map == module.link_map);
    }
    struct Search {
        bias: usize,
        found: bool,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut libc::c_void) -> i32 {
        // SAFETY: libc passes a live record, and the `Search` of the call below.
        unsafe {
            let search = &mut *(data as *mut Search);
            search.found |= (*info).dlpi_addr as usize == search.bias;
            search.found as i32
        }
    }
    let mut search = Search { bias: module.bias, found: false };
    // SAFETY: as in `refresh`; the data outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), &raw mut search as *mut _) };
    search.found
}

/// glibc's `struct dl_find_object`.
#[repr(C)]
struct Object {
    flags: u64,
    start: usize,
    end: usize,
    link_map: usize,
    eh_frame: usize,
    reserved: [u64; 7],
}

/// The public head of glibc's `struct link_map`.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const libc::c_char,
}

fn find_object(pc: usize) -> Option<Object> {
    let function = FIND_OBJECT.load(Relaxed);
    if function == 0 {
        return None;
    }
    let mut object = Object { flags: 0, start: 0, end: 0, link_map: 0, eh_frame: 0, reserved: [0; 7] };
    // SAFETY: the symbol has this signature since glibc 2.35; any address may be asked for.
    let code = unsafe {
        let function = core::mem::transmute::<usize, extern "C" fn(usize, *mut Object) -> i32>(function);
        function(pc, &mut object)
    };
    (code == 0 && object.link_map != 0).then_some(object)
}

fn add_object(object: &Object) -> Option<&'static Module> {
    // A first segment that starts with the ELF header is what every linker makes.
    // SAFETY: the object is loaded (its code is on a stack, or was just found), so that its first page, its
    // headers and its link map can be read, unless it is being closed, which `tables` guards as well.
    unsafe {
        if CLOSING.load(SeqCst) != 0 {
            return None;
        }
        let header = &*(object.start as *const libc::Elf64_Ehdr);
        if header.e_ident.get(..4) != Some(b"\x7fELF") {
            return None;
        }
        let first = (object.start + header.e_phoff as usize) as *const libc::Elf64_Phdr;
        let headers = &*ptr::slice_from_raw_parts(first, header.e_phnum as usize);
        let map = &*(object.link_map as *const LinkMap);
        add(map.bias, headers, map.name, object.link_map)
    }
}

/// Adds a module unless it is there.
///
/// # Safety
/// The module must be mapped at `bias` with these program headers, and `name` be null or terminated.
unsafe fn add(
    bias: usize,
    headers: &[libc::Elf64_Phdr],
    name: *const libc::c_char,
    link_map: usize,
) -> Option<&'static Module> {
    let (mut start, mut end) = (usize::MAX, 0);
    for load in headers.iter().filter(|h| h.p_type == libc::PT_LOAD) {
        start = start.min(bias.wrapping_add(load.p_vaddr as usize) & !4095);
        end = end.max(bias.wrapping_add((load.p_vaddr + load.p_memsz) as usize).next_multiple_of(4096));
    }
    if start >= end {
        return None;
    }
    if link_map == 0 && FIND_OBJECT.load(Relaxed) != 0 {
        // The record is completed with what `closed` will compare.
        let link_map = find_object(start).map_or(usize::MAX, |object| object.link_map);
        // SAFETY: as for this call.
        return unsafe { add(bias, headers, name, link_map) };
    }
    let known = |from: *mut Module| {
        let mut at = from;
        // SAFETY: records are never freed.
        while let Some(module) = unsafe { at.as_ref() } {
            if module.start == start && module.end == end && module.link_map == link_map && !module.is_gone()
            {
                return Some(module);
            }
            at = module.next.load(Acquire);
        }
        None
    };
    let mut first = FIRST.load(Acquire);
    if let Some(module) = known(first) {
        return Some(module);
    }
    let record = RECORDS.take(Layout::new::<Module>())?.cast::<Module>().as_ptr();
    let serial = SERIALS.fetch_add(1, Relaxed).min(NO_SERIAL as u32) as u16;
    let mut module = Module {
        start,
        end,
        bias,
        serial,
        at_start: !STARTED.load(Acquire),
        link_map,
        eh_frame_hdr: (0, 0),
        segment_end: 0,
        gone: AtomicBool::new(false),
        path: [0; PATH_BYTES_MAX + 1],
        path_len: 0,
        build_id: [0; 20],
        build_id_len: 0,
        next: AtomicPtr::new(ptr::null_mut()),
    };
    // SAFETY: `name` and the headers are what the caller vouches for.
    unsafe {
        module.copy_path(name);
        module.read_headers(headers);
        record.write(module);
    }
    loop {
        // SAFETY: the record is ours until the exchange publishes it.
        unsafe { (*record).next.store(first, Relaxed) };
        match FIRST.compare_exchange(first, record, AcqRel, Acquire) {
            // SAFETY: published and never freed.
            Ok(_) => return unsafe { record.as_ref() },
            Err(now) => {
                first = now;
                if let Some(module) = known(now) {
                    return Some(module);
                }
            }
        }
    }
}

impl Module {
    /// # Safety
    /// `name` must be null or terminated.
    unsafe fn copy_path(&mut self, name: *const libc::c_char) {
        if name.is_null() {
            return;
        }
        // SAFETY: by contract.
        let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
        for (to, &from) in self.path.iter_mut().zip(bytes).take(PATH_BYTES_MAX) {
            *to = from;
        }
        self.path_len = bytes.len().min(PATH_BYTES_MAX) as u8;
    }

    /// # Safety
    /// The headers must be those of the module mapped at `self.bias`.
    unsafe fn read_headers(&mut self, headers: &[libc::Elf64_Phdr]) {
        for header in headers {
            let at = self.bias.wrapping_add(header.p_vaddr as usize);
            let len = header.p_memsz as usize;
            if header.p_type == libc::PT_GNU_EH_FRAME {
                self.eh_frame_hdr = (at, len);
            } else if header.p_type == libc::PT_NOTE && self.build_id_len == 0 {
                // SAFETY: notes are mapped with the module.
                self.read_build_id(unsafe { &*ptr::slice_from_raw_parts(at as *const u8, len) });
            }
        }
        let (hdr, _) = self.eh_frame_hdr;
        for load in headers.iter().filter(|h| h.p_type == libc::PT_LOAD) {
            let from = self.bias.wrapping_add(load.p_vaddr as usize);
            let to = from.wrapping_add(load.p_memsz as usize);
            if (from..to).contains(&hdr) {
                self.segment_end = to;
            }
        }
        if self.segment_end == 0 {
            self.eh_frame_hdr = (0, 0);
        }
    }

    fn read_build_id(&mut self, mut notes: &[u8]) {
        const NT_GNU_BUILD_ID: u32 = 3;
        let word = |bytes: &[u8], at: usize| {
            bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes) as usize
        };
        while notes.len() > 12 {
            let (name, desc, kind) = (word(notes, 0), word(notes, 4), word(notes, 8));
            let from = 12 + name.next_multiple_of(4);
            let to = from.saturating_add(desc);
            if kind as u32 == NT_GNU_BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
                if let Some(id) = notes.get(from..to) {
                    for (to, &from) in self.build_id.iter_mut().zip(id) {
                        *to = from;
                    }
                    self.build_id_len = id.len().min(self.build_id.len()) as u8;
                }
                return;
            }
            notes = notes.get(to.next_multiple_of(4)..).unwrap_or(&[]);
        }
    }
}
