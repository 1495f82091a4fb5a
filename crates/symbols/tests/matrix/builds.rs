//! Compilers, languages, DWARF versions, optimization, linkers: what an ordinary build makes.

use crate::Cell;
use crate::answers::{check_against_addr2line, check_c, check_cpp, check_rust};
use crate::toolchain::{Bench, lines_with};

pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for compiler in ["gcc", "clang"] {
        for dwarf in 2..=5 {
            for level in ["-O0", "-O2"] {
                let flags = format!("-gdwarf-{dwarf} {level}");
                cells.push(c(compiler, &[], &flags));
            }
        }
        for flags in [
            "-g -O2 -no-pie",
            "-g -O2 -static",
            "-g -O2 -static-pie",
            "-g -O2 -gz=zlib",
            "-g -O2 -ffunction-sections -Wl,--gc-sections",
            "-g -O2 -fcf-protection=none",
            "-g -O2 -fcf-protection=full",
            "-g1 -O2",
            "-g3 -O2",
            "-g -O2 -Wl,-z,noseparate-code",
            "-gdwarf-4 -O2 -fdebug-types-section",
        ] {
            cells.push(c(compiler, &[], flags));
        }
        for (linker, tool) in [("bfd", "ld.bfd"), ("gold", "ld.gold"), ("lld", "ld.lld"), ("mold", "mold")] {
            for more in ["", " -no-pie", " -ffunction-sections -Wl,--gc-sections"] {
                cells.push(c(compiler, &[tool], &format!("-g -O2 -fuse-ld={linker}{more}")));
            }
        }
    }
    cells.push(c("gcc", &[], "-g -O2 -flto"));
    cells.push(c("gcc", &[], "-g -O2 -flto -flto-partition=max"));
    cells.push(c("clang", &["ld.lld"], "-g -O2 -flto -fuse-ld=lld"));
    cells.push(c("clang", &["ld.lld"], "-g -O2 -flto=thin -fuse-ld=lld -Wl,--icf=all"));
    for compiler in ["g++", "clang++"] {
        for flags in
            ["-gdwarf-2 -O0", "-gdwarf-3 -O2", "-gdwarf-4 -O2", "-gdwarf-5 -O0", "-gdwarf-5 -O2", "-g -O3"]
        {
            cells.push(Cell::new(format!("c++ {compiler} {flags}"), &[compiler], move || {
                let bench = Bench::new();
                let program = bench.compile(compiler, "marks.cpp", flags);
                let object = bench.open("prog");
                check_cpp(&object, &program);
                check_against_addr2line(&object, &program, 1);
            }));
        }
    }
    for flags in [
        "-g",
        "-g -O",
        "-O -Cdebuginfo=line-tables-only",
        "-O -Cdebuginfo=1",
        "-g -O -Clto=fat",
        "-g -O -Csymbol-mangling-version=v0",
        "-g -O -Clinker-features=-lld -Clink-self-contained=-linker",
        "-g -O -Ctarget-feature=+crt-static",
        "-g -O -Crelocation-model=static",
    ] {
        cells.push(rust(flags));
    }
    for level in ["-O0", "-O1", "-O2"] {
        for compiler in ["gcc", "clang"] {
            cells.push(Cell::new(format!("loops {compiler} {level}"), &[compiler], move || {
                loops(compiler, level)
            }));
        }
    }
    cells
}

fn c(compiler: &'static str, tools: &[&'static str], flags: &str) -> Cell {
    let flags = flags.to_owned();
    let tools: Vec<_> = [compiler].into_iter().chain(tools.iter().copied()).collect();
    Cell::new(format!("c {compiler} {flags}"), &tools, move || {
        let bench = Bench::new();
        let program = bench.compile(compiler, "marks.c", &flags);
        let object = bench.open("prog");
        check_c(&object, &program);
        check_against_addr2line(&object, &program, if flags.contains("static") { 3 } else { 1 });
        let kept = object.functions_named("dropped");
        assert_eq!(kept.is_empty(), flags.contains("gc-sections") || flags.contains("-flto"), "{kept:?}");
        let line = lines_with("marks.c", "puts(")[0];
        let calls = object.code_of_line(|file| file.ends_with("/marks.c"), line);
        assert!(!calls.is_empty());
        for range in calls {
            let frames = object.resolve(range.start);
            assert_eq!(frames.outermost().unwrap().function.as_ref().unwrap().readable(), "main");
        }
    })
}

fn rust(flags: &'static str) -> Cell {
    Cell::new(format!("rust {flags}"), &["rustc"], move || {
        let bench = Bench::new();
        let program = bench.compile("rustc", "marks.rs", &format!("--edition=2024 {flags}"));
        let object = bench.open("prog");
        check_rust(&object, &program);
        check_against_addr2line(&object, &program, 7);
    })
}

fn loops(compiler: &str, level: &str) {
    let bench = Bench::new();
    // Vectorized loops have remainders; the nesting would be the compiler's, not the source's.
    bench.compile(compiler, "loops.c", &format!("-g {level} -fno-tree-vectorize -fno-unroll-loops"));
    let object = bench.open("prog");
    let of = |name: &str| {
        let function = object.functions_named(name).remove(0);
        let range = symbols::AddrRange::new(function.entry.0, function.entry.0 + function.size_bytes);
        object.loops(range)
    };
    let line = |comment: &str| lines_with("loops.c", comment)[0];
    let nest = of("nest");
    let lines: Vec<u32> = nest.iter().map(|l| l.location.as_ref().unwrap().line).collect();
    for comment in ["/* loop outer */", "/* loop inner */", "/* loop after */"] {
        assert!(lines.contains(&line(comment)), "{comment}: {nest:#?}");
    }
    let inner = lines.iter().position(|l| *l == line("/* loop inner */")).unwrap();
    let around = nest[inner].parent.map(|p| lines[p]);
    assert_eq!(around, Some(line("/* loop outer */")), "{nest:#?}");
    let after = lines.iter().position(|l| *l == line("/* loop after */")).unwrap();
    assert_eq!(nest[after].parent, None);

    let choose = of("choose");
    let big = choose.iter().filter(|l| l.parent.is_none()).collect::<Vec<_>>();
    assert_eq!(big.len(), 1, "{choose:#?}");
    // The cases are inside: the call of printf too.
    let calls = object.code_of_line(|f| f.ends_with("loops.c"), line("case 'g'"));
    assert!(calls.iter().any(|c| big[0].contains(c.start)), "{choose:#?}");
    assert!(of("straight").is_empty());
}
