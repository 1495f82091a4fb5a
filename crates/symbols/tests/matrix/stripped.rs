//! Without debug information, without symbols, without section headers: what is left, and is it right?
//! The answers are those of the unstripped twin, and of `objdump`.

use std::collections::BTreeMap;

use symbols::{Object, ObjectAddr, Options, Origin};

use crate::Cell;
use crate::toolchain::{Bench, marks, open};

pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (compiler, file) in
        [("gcc", "marks.c"), ("clang", "marks.c"), ("g++", "marks.cpp"), ("rustc", "marks.rs")]
    {
        cells.push(Cell::new(format!("stripped {compiler}"), &[compiler, "objcopy"], move || {
            stripped(compiler, file)
        }));
    }
    cells.push(Cell::new("stripped of section headers", &["gcc", "objcopy"], without_sections));
    for (linker, tool) in [("bfd", "ld.bfd"), ("gold", "ld.gold"), ("lld", "ld.lld"), ("mold", "mold")] {
        for flags in
            ["-fcf-protection=none", "-fcf-protection=full -Wl,-z,ibt", "-Wl,-z,now", "-no-pie -Wl,-z,lazy"]
        {
            if linker == "gold" && flags.contains("ibt") || linker == "mold" && flags.contains("ibt") {
                continue; // Not an option that they know.
            }
            cells.push(Cell::new(format!("stubs {linker} {flags}"), &["gcc", "objdump", tool], move || {
                stubs(linker, flags);
            }));
        }
    }
    cells.push(Cell::new("stubs in a static program", &["gcc"], static_stubs));
    cells.push(Cell::new("cold parts belong to their function", &["gcc"], cold));
    cells.push(Cell::new("aliases", &["gcc"], aliases));
    cells
}

fn functions(object: &Object) -> BTreeMap<u64, (u64, String, Origin)> {
    let entries = object.entries();
    let described = entries.iter().map(|(range, origin)| {
        let name = object.function_at(range.start).unwrap().name.readable().to_owned();
        (range.start.0, (range.size_bytes(), name, *origin))
    });
    described.collect()
}

fn stripped(compiler: &str, file: &str) {
    let bench = Bench::new();
    bench.compile(compiler, file, if compiler == "rustc" { "--edition=2024 -O" } else { "-O2" });
    bench.run("objcopy --strip-all prog bare");
    let (full, bare) = (functions(&bench.open("prog")), functions(&bench.open("bare")));
    let mut same = 0;
    for (start, (size, name, _)) in &bare {
        if let Some(offset) = name.strip_prefix("bare+0x") {
            assert_eq!(u64::from_str_radix(offset, 16).unwrap(), *start);
        }
        // An entry of the bare one lies at an entry of the full one, with the same bounds where both know it.
        if let Some((full_size, _, origin)) = full.get(start) {
            same += 1;
            if *origin == Origin::Symbol && bare[start].2 == Origin::Unwind {
                assert!(size.abs_diff(*full_size) <= 16, "{start:#x} {name}: {size} and {full_size}");
            }
        }
    }
    assert!(same * 10 >= bare.len() * 9, "{same} of {} entries", bare.len());
    let object = bench.open("bare");
    for mark in marks(&bench.path("prog")) {
        let (function, twin) =
            (object.function_at(mark.addr).unwrap(), bench.open("prog").function_at(mark.addr).unwrap());
        if compiler == "gcc" || compiler == "rustc" {
            assert_eq!(function.entry, twin.entry, "{function:?} {twin:?}");
        }
        assert!(object.resolve(mark.addr).innermost().unwrap().line.is_none());
    }
}

fn without_sections() {
    let bench = Bench::new();
    let program = bench.compile("gcc", "marks.c", "-O2");
    let mut bytes = std::fs::read(&program).unwrap();
    bytes[0x28..0x30].fill(0); // e_shoff
    bytes[0x3c..0x40].fill(0); // e_shnum, e_shstrndx
    std::fs::write(bench.path("bare"), bytes).unwrap();
    let object = bench.open("bare");
    for mark in marks(&program) {
        let function = object.function_at(mark.addr).unwrap();
        assert_eq!(function.origin, Origin::Unwind);
        assert_eq!(function.entry, bench.open("prog").function_at(mark.addr).unwrap().entry);
    }
}

fn stubs(linker: &str, flags: &str) {
    let bench = Bench::new();
    bench.compile("gcc", "marks.c", &format!("-O2 -fuse-ld={linker} {flags}"));
    bench.run("objcopy --strip-all prog bare");
    let object = bench.open("bare");
    let mut found = BTreeMap::new();
    for (range, origin) in object.entries() {
        if origin == Origin::Stub {
            found.insert(range.start.0, object.function_at(range.start).unwrap().name.readable().to_owned());
        }
    }
    assert!(found.values().any(|n| n == "puts@plt"), "{found:?}");
    assert!(found.values().any(|n| n == "strlen@plt"), "{found:?}");
    // objdump names the stubs that it recognizes; it knows those of GNU ld and lld.
    let listing = bench.run("objdump -d bare");
    let mut compared = 0;
    for line in listing.lines().filter(|l| l.ends_with("@plt>:")) {
        let (address, name) = line.trim_end_matches(">:").split_once(" <").unwrap();
        let address = u64::from_str_radix(address, 16).unwrap();
        assert_eq!(found.get(&address).map(String::as_str), Some(name), "{line}: {found:?}");
        compared += 1;
    }
    assert!(compared >= 2 || linker != "bfd", "{listing}");
}

fn static_stubs() {
    let bench = Bench::new();
    bench.compile("gcc", "marks.c", "-O2 -static");
    let object = bench.open("prog");
    let names: Vec<String> = object
        .entries()
        .iter()
        .filter(|(_, origin)| *origin == Origin::Stub)
        .map(|(range, _)| object.function_at(range.start).unwrap().name.readable().to_owned())
        .collect();
    assert!(names.iter().any(|n| n == "strlen@plt"), "{names:?}");
}

fn cold() {
    let bench = Bench::new();
    let program = bench.compile("g++", "marks.cpp", "-O2");
    let object = bench.open("prog");
    let handler = marks(&program).into_iter().find(|m| m.number == 5).unwrap();
    let main = object.functions_named("main").remove(0);
    assert!(
        !(main.entry.0..main.entry.0 + main.size_bytes).contains(&handler.addr.0),
        "the compiler moved the handler away"
    );
    assert_eq!(object.function_at(handler.addr).unwrap(), main);
    assert!(!object.entries().iter().any(|(range, _)| range.contains(handler.addr)));
}

fn aliases() {
    let bench = Bench::new();
    let text = r#"
        __attribute__((noinline)) int __inside(int x) { return x * 7; }
        int plain(int x) __attribute__((alias("__inside"), weak));
        static int local_alias(int x) __attribute__((alias("__inside"), used));
        int main(int argc, char **argv) { return plain(argc); }
    "#;
    std::fs::write(bench.path("alias.c"), text).unwrap();
    bench.run("gcc -O1 -o prog alias.c");
    let object = open(&bench.path("prog"), Options::default());
    let function = object.functions_named("__inside").remove(0);
    assert_eq!(function.name.readable(), "plain");
    let names: Vec<String> = object.aliases(function.entry).iter().map(|n| n.readable().to_owned()).collect();
    assert_eq!(names, ["plain", "__inside", "local_alias"]);
    assert_eq!(object.functions_named("local_alias"), [function]);
    assert!(object.function_at(ObjectAddr(u64::MAX)).is_none());
}
