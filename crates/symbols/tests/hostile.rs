//! Damaged and malicious files: anything may come out but a panic, a hang or a crash.

use std::process::Command;
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use symbols::{AddrRange, Bytes, Files, Object, ObjectAddr, Options};

/// Answers every wish with the same bytes: companions are damaged too.
struct Same(Bytes);

impl Files for Same {
    fn read(&self, _path: &std::path::Path) -> Option<Bytes> {
        Some(self.0.clone())
    }
}

/// Asks everything that can be asked.
fn interrogate(bytes: Vec<u8>) {
    let bytes = Bytes::from(bytes);
    let files = Arc::new(Same(bytes.clone()));
    let options = Options { debug_folders: vec!["/debug".into()], ..Options::default() };
    let Ok(object) = Object::open("/tmp/prog", bytes, files, options) else { return };
    let entries = object.entries();
    let step = (entries.len() / 12).max(1);
    for (range, _) in entries.iter().step_by(step) {
        object.function_at(range.start);
        object.aliases(range.start);
        object.resolve(ObjectAddr(range.start.0.wrapping_add(range.size_bytes() / 2)));
        let part = AddrRange::new(range.start.0, range.start.0.saturating_add(range.size_bytes().min(2000)));
        object.spans(part);
        object.loops(part);
    }
    for addr in [0, 1, 0x1000, object.entry_point().0, u64::MAX - 1, u64::MAX] {
        object.resolve(ObjectAddr(addr));
        object.spans(AddrRange::new(addr, addr.saturating_add(50)));
        object.segments().offset_of(ObjectAddr(addr));
    }
    object.code_of_line(|file| file.ends_with(".c"), 30);
    object.functions_named("main");
    object.build_id();
    object.problems();
}

fn compile(name: &str, flags: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let status =
        Command::new("gcc").arg(source).args(flags).args(["-o", "prog"]).current_dir(folder.path()).status();
    assert!(status.unwrap().success());
    std::fs::read(folder.path().join("prog")).unwrap()
}

/// Programs of several shapes: DWARF 5 and 4, split (whose companion is then the program itself), compressed.
fn victims() -> &'static [Vec<u8>] {
    static VICTIMS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    VICTIMS.get_or_init(|| {
        let flags: [&[&str]; 4] = [
            &["-gdwarf-5", "-O2"],
            &["-gdwarf-4", "-O2", "-no-pie"],
            &["-gsplit-dwarf"],
            &["-g", "-gz=zlib"],
        ];
        flags.iter().map(|f| compile("marks.c", f)).collect()
    })
}

#[derive(Debug, Clone)]
enum Damage {
    Byte(prop::sample::Index, u8),
    Word(prop::sample::Index, u32),
    Long(prop::sample::Index, u64),
    Zero(prop::sample::Index, usize),
    Copy(prop::sample::Index, prop::sample::Index, usize),
    Cut(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    let extreme =
        prop_oneof![Just(0u64), Just(1), Just(u64::MAX), Just(u64::MAX - 7), Just(1 << 31), Just(1 << 63)];
    prop_oneof![
        6 => (at(), any::<u8>()).prop_map(|(i, b)| Damage::Byte(i, b)),
        3 => (at(), extreme.clone()).prop_map(|(i, w)| Damage::Word(i, w as u32)),
        3 => (at(), extreme).prop_map(|(i, w)| Damage::Long(i, w)),
        1 => (at(), 1usize..400).prop_map(|(i, n)| Damage::Zero(i, n)),
        2 => (at(), at(), 1usize..64).prop_map(|(i, j, n)| Damage::Copy(i, j, n)),
        1 => at().prop_map(Damage::Cut),
    ]
}

/// Headers and debug sections are where damage hurts; code and data would take most random hits.
fn spots(bytes: &[u8]) -> Vec<usize> {
    use object::{Object as _, ObjectSection as _};
    let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(bytes).unwrap();
    let mut spots: Vec<usize> = (0..0x400).collect();
    let headers = u64::from_le_bytes(bytes[0x28..0x30].try_into().unwrap()) as usize;
    spots.extend(headers..bytes.len());
    for section in file.sections() {
        let name = section.name().unwrap();
        let wanted = [".debug", ".eh_frame", ".symtab", ".dynsym", ".plt", ".rela", ".note", ".strtab"];
        if wanted.iter().any(|w| name.starts_with(w)) {
            let (start, size) = section.file_range().unwrap_or_default();
            spots.extend(start as usize..(start + size) as usize);
        }
    }
    spots
}

fn inflict(bytes: &mut Vec<u8>, spots: &[usize], damages: &[Damage]) {
    let put = |bytes: &mut Vec<u8>, at: usize, new: &[u8]| {
        for (i, b) in new.iter().enumerate() {
            if let Some(slot) = bytes.get_mut(at + i) {
                *slot = *b;
            }
        }
    };
    let mut cut = bytes.len();
    for damage in damages {
        match damage {
            Damage::Byte(i, b) => put(bytes, *i.get(spots), &[*b]),
            Damage::Word(i, w) => put(bytes, i.get(spots) & !3, &w.to_le_bytes()),
            Damage::Long(i, w) => put(bytes, i.get(spots) & !7, &w.to_le_bytes()),
            Damage::Zero(i, n) => put(bytes, *i.get(spots), &vec![0; *n]),
            Damage::Copy(i, j, n) => {
                let from = *i.get(spots);
                let piece = bytes[from.min(bytes.len())..(from + n).min(bytes.len())].to_vec();
                put(bytes, *j.get(spots), &piece);
            }
            Damage::Cut(i) => cut = cut.min(*i.get(spots)),
        }
    }
    bytes.truncate(cut);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn damaged_files(victim in 0usize..4, damages in prop::collection::vec(damage(), 1..12)) {
        static SPOTS: OnceLock<Vec<Vec<usize>>> = OnceLock::new();
        let spots = SPOTS.get_or_init(|| victims().iter().map(|v| spots(v)).collect());
        let mut bytes = victims()[victim].clone();
        inflict(&mut bytes, &spots[victim], &damages);
        interrogate(bytes);
    }

    #[test]
    fn random_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        let header = victims()[0][..0x40.min(bytes.len())].to_vec();
        bytes[..header.len()].copy_from_slice(&header);
        interrogate(bytes);
    }
}

#[test]
fn undamaged_files_answer() {
    for victim in victims() {
        interrogate(victim.clone());
    }
}

/// Half a million inlined calls inside each other: recursion on them would overflow the stack.
#[test]
fn deep_nesting() {
    let folder = tempfile::tempdir().unwrap();
    let text = "
        .globl main
        .type main, @function
main:   nop
        ret
        .size main, . - main
        .section .debug_abbrev, \"\", @progbits
        .uleb128 1; .uleb128 0x11; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .byte 0, 0
        .uleb128 2; .uleb128 0x2e; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .byte 0, 0
        .uleb128 3; .uleb128 0x1d; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .byte 0, 0
        .byte 0
        .section .debug_info, \"\", @progbits
        .long 2f - 1f
1:      .value 4
        .long .debug_abbrev
        .byte 8
        .uleb128 1; .quad main, 2
        .uleb128 2; .quad main, 2
        .rept 500000
        .uleb128 3; .quad main, 2
        .endr
        .byte 0
2:
        .section .note.GNU-stack, \"\", @progbits
    ";
    std::fs::write(folder.path().join("deep.s"), text).unwrap();
    let status =
        Command::new("gcc").args(["-no-pie", "deep.s", "-o", "deep"]).current_dir(folder.path()).status();
    assert!(status.unwrap().success());
    let object = symbols::fs::open(folder.path().join("deep")).unwrap();
    let main = object.functions_named("main").remove(0);
    assert_eq!(object.resolve(main.entry).0.len(), 500_001);
}
