//! Debug information in other files: split units, packages, debug links, build ids, dwz, MiniDebugInfo.

use symbols::{NoFiles, Object, Options};

use crate::Cell;
use crate::answers::{check_c, check_cpp, check_rust};
use crate::toolchain::{Bench, marks, open};

pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for compiler in ["gcc", "clang"] {
        for flags in ["-gdwarf-4 -O2", "-gdwarf-5 -O2", "-gdwarf-5 -O0"] {
            // A package from the tools that match the compiler: binutils' dwp reads neither's version 5 well.
            let packer = if compiler == "gcc" && flags.contains("dwarf-4") { "dwp" } else { "llvm-dwp" };
            cells.push(Cell::new(format!("split {compiler} {flags}"), &[compiler], move || {
                split(compiler, flags)
            }));
            cells.push(Cell::new(format!("package {compiler} {flags}"), &[compiler, packer], move || {
                package(compiler, flags, packer);
            }));
        }
    }
    cells.push(Cell::new("split is stale", &["gcc"], stale_split));
    for (name, flags) in
        [("packed", "-g -O -Csplit-debuginfo=packed"), ("unpacked", "-g -O -Csplit-debuginfo=unpacked")]
    {
        cells.push(Cell::new(format!("rust split {name}"), &["rustc"], move || {
            let bench = Bench::new();
            let program = bench.compile("rustc", "marks.rs", &format!("--edition=2024 {flags}"));
            check_rust(&bench.open("prog"), &program);
        }));
    }
    cells.push(Cell::new("debug link beside", &["gcc", "objcopy"], debug_link));
    cells.push(Cell::new("debug link of another build", &["gcc", "objcopy"], wrong_debug_link));
    cells.push(Cell::new("build id folder", &["gcc", "objcopy"], build_id));
    cells.push(Cell::new("compressed debug file", &["gcc", "objcopy"], compressed));
    cells.push(Cell::new("prelinked object", &["gcc", "objcopy"], prelinked));
    cells.push(Cell::new("dwz supplement", &["gcc", "g++", "objcopy", "dwz"], dwz));
    cells.push(Cell::new("mini debug info", &["gcc", "objcopy", "xz"], mini));
    cells
}

fn split(compiler: &str, flags: &str) {
    let bench = Bench::new();
    let program = bench.compile(compiler, "marks.c", &format!("-gsplit-dwarf {flags}"));
    check_c(&bench.open("prog"), &program);
    // Without its companions the object still knows functions and lines, and says what is missing.
    let bytes = std::fs::read(&program).unwrap();
    let lonely =
        Object::open(&program, bytes.into(), std::sync::Arc::new(NoFiles), Options::default()).unwrap();
    for mark in marks(&program).iter().filter(|m| m.number >= 3) {
        let frames = lonely.resolve(mark.addr);
        assert_eq!(frames.innermost().unwrap().line, Some(mark.line));
        assert!(frames.outermost().unwrap().function.is_some());
    }
    assert!(lonely.problems().iter().any(|p| p.contains(".dwo not found")), "{:?}", lonely.problems());
}

fn package(compiler: &str, flags: &str, packer: &str) {
    let bench = Bench::new();
    let program = bench.compile(compiler, "marks.c", &format!("-gsplit-dwarf {flags}"));
    bench.run(&format!("{packer} -e prog -o prog.dwp"));
    let mut removed = 0;
    for entry in std::fs::read_dir(bench.path(".")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "dwo") {
            std::fs::remove_file(path).unwrap();
            removed += 1;
        }
    }
    assert_eq!(removed, 1);
    check_c(&bench.open("prog"), &program);
}

fn stale_split() {
    let bench = Bench::new();
    let program = bench.compile("gcc", "marks.c", "-gsplit-dwarf -gdwarf-5 -O2");
    std::fs::rename(&program, bench.path("old")).unwrap();
    // The same name, another unit.
    bench.compile("gcc", "marks.c", "-gsplit-dwarf -gdwarf-5 -O0 -DOTHER");
    let object = bench.open("old");
    for mark in marks(&bench.path("old")) {
        assert_eq!(object.resolve(mark.addr).innermost().unwrap().line, Some(mark.line));
    }
    assert!(object.problems().iter().any(|p| p.contains("from another build")), "{:?}", object.problems());
}

/// `prog` keeps everything; `bare` is stripped and links to `bare.debug`.
fn separated(bench: &Bench, flags: &str) {
    bench.compile("gcc", "marks.c", flags);
    bench.run("objcopy --only-keep-debug prog bare.debug");
    bench.run("objcopy --strip-all --add-gnu-debuglink=bare.debug prog bare");
}

fn debug_link() {
    for flags in ["-g -O2 -Wl,--build-id=none", "-g -O2", "-g -O2 -no-pie"] {
        let bench = Bench::new();
        separated(&bench, flags);
        check_c(&bench.open("bare"), &bench.path("prog"));
        std::fs::create_dir(bench.path(".debug")).unwrap();
        std::fs::rename(bench.path("bare.debug"), bench.path(".debug/bare.debug")).unwrap();
        check_c(&bench.open("bare"), &bench.path("prog"));
    }
}

fn wrong_debug_link() {
    let bench = Bench::new();
    separated(&bench, "-g -O2 -Wl,--build-id=none");
    bench.run("gcc -g -O0 -Wl,--build-id=none -x c -o other /dev/null -shared -fPIC");
    bench.run("objcopy --only-keep-debug other bare.debug");
    let object = bench.open("bare");
    assert!(!object.has_debug_info());
    assert!(object.problems().iter().any(|p| p.contains("another build")), "{:?}", object.problems());
}

fn build_id() {
    let bench = Bench::new();
    bench.compile("gcc", "marks.c", "-g -O2 -Wl,--build-id=0xabcdef0123");
    bench.run("objcopy --strip-all prog bare");
    std::fs::create_dir_all(bench.path("debug/.build-id/ab")).unwrap();
    bench.run("objcopy --only-keep-debug prog debug/.build-id/ab/cdef0123.debug");
    let object = bench.open("bare");
    assert_eq!(object.build_id().unwrap().to_string(), "abcdef0123");
    check_c(&object, &bench.path("prog"));
}

fn compressed() {
    for format in ["zlib", "zlib-gnu", "zstd"] {
        let bench = Bench::new();
        separated(&bench, "-g -O2 -Wl,--build-id");
        bench.run(&format!("objcopy --compress-debug-sections={format} bare.debug"));
        check_c(&bench.open("bare"), &bench.path("prog"));
    }
}

/// What prelink does: the object moves, its debug file does not.
fn prelinked() {
    let bench = Bench::new();
    bench.compile("gcc", "marks.c", "-g -O2 -no-pie -Wl,--build-id=0x77 -Wl,-Ttext-segment=0x10000000");
    bench.run("objcopy --only-keep-debug prog bare.debug");
    bench.compile("gcc", "marks.c", "-g -O2 -no-pie -Wl,--build-id=0x77 -Wl,-Ttext-segment=0x400000");
    bench.run("objcopy --strip-all --add-gnu-debuglink=bare.debug prog bare");
    check_c(&bench.open("bare"), &bench.path("prog"));
}

fn dwz() {
    let bench = Bench::new();
    // Large enough that sharing pays: two C++ programs with the same headers.
    for (name, level) in [("one", "-O2"), ("two", "-O1")] {
        bench.compile("g++", "marks.cpp", &format!("-gdwarf-4 {level} -Wl,--build-id"));
        std::fs::rename(bench.path("prog"), bench.path(name)).unwrap();
        bench.run(&format!("objcopy --only-keep-debug {name} {name}.debug"));
        bench.run(&format!("objcopy --strip-all --add-gnu-debuglink={name}.debug {name} bare-{name}"));
    }
    bench.run("dwz -m shared.debug -M shared.debug one.debug two.debug");
    assert!(bench.path("shared.debug").exists());
    for name in ["one", "two"] {
        let object = bench.open(&format!("bare-{name}"));
        check_cpp(&object, &bench.path(name));
        assert!(object.problems().is_empty(), "{:?}", object.problems());
    }
    std::fs::remove_file(bench.path("shared.debug")).unwrap();
    let object = bench.open("bare-one");
    assert!(object.has_debug_info());
    assert!(
        object.problems().iter().any(|p| p.contains("shared.debug not found")),
        "{:?}",
        object.problems()
    );
}

fn mini() {
    let bench = Bench::new();
    bench.compile("gcc", "marks.c", "-O2");
    bench.run("objcopy --only-keep-debug prog mini");
    bench.run("objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbol=outer --keep-symbol=local mini");
    bench.run("xz -k mini");
    bench.run("objcopy --strip-all --add-section .gnu_debugdata=mini.xz prog bare");
    let object = open(&bench.path("bare"), Options { debug_folders: Vec::new(), ..Options::default() });
    for mark in marks(&bench.path("prog")) {
        let function = object.function_at(mark.addr).unwrap();
        let name = &function.name;
        match mark.number {
            1..=3 => assert_eq!(name.readable(), "outer"),
            4 => assert_eq!(name.readable(), "local"),
            _ => assert!(name.readable().starts_with("bare+0x"), "{name}"),
        }
    }
}
