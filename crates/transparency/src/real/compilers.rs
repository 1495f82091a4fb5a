//! Compilers and what they start: drivers, compilers proper, assemblers, linkers. Their outputs must be identical.

use super::{ROW, Real, Run};

const SOURCES: &str = "cp {programs}/x.c {programs}/y.cpp .";

pub(super) const ROWS: &[Real] = &[
    Real {
        name: "gcc-driver",
        needs: &["gcc"],
        setup: SOURCES,
        run: Run::Command(&["gcc", "-O2", "-g", "x.c", "-o", "x"]),
        ..ROW
    },
    Real {
        name: "gcc-driver-pipe",
        needs: &["gcc"],
        setup: SOURCES,
        run: Run::Command(&["gcc", "-pipe", "-O1", "-c", "x.c"]),
        ..ROW
    },
    Real {
        name: "gcc-error",
        needs: &["gcc"],
        setup: "echo 'int f( { return x; }' > bad.c",
        run: Run::Script("$WRAP gcc -c bad.c || echo status $?"),
        ..ROW
    },
    Real {
        name: "g++-driver",
        needs: &["g++"],
        setup: SOURCES,
        run: Run::Command(&["g++", "-O1", "y.cpp", "-o", "y"]),
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "cc1",
        needs: &["gcc"],
        setup: "cp {programs}/x.c .; gcc -E x.c -o x.i",
        run: Run::Script("$WRAP $(gcc -print-prog-name=cc1) -quiet -O3 x.i -o x.s"),
        ..ROW
    },
    Real {
        name: "cc1plus",
        needs: &["g++"],
        setup: "cp {programs}/y.cpp .; g++ -E y.cpp -o y.ii",
        run: Run::Script("$WRAP $(g++ -print-prog-name=cc1plus) -quiet -O2 y.ii -o y.s"),
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "as",
        needs: &["gcc"],
        setup: "cp {programs}/x.c .; gcc -O2 -S x.c",
        run: Run::Command(&["as", "x.s", "-o", "x.o"]),
        ..ROW
    },
    Real {
        name: "ld",
        needs: &["gcc"],
        setup: "cp {programs}/x.c .; gcc -O2 -c x.c",
        run: Run::Script(LD),
        ..ROW
    },
    Real { name: "objdump", needs: &["objdump"], run: Run::Command(&["objdump", "-d", "/bin/true"]), ..ROW },
    Real {
        name: "make",
        needs: &["make", "gcc"],
        setup: MAKEFILE,
        run: Run::Command(&["make", "-j4"]),
        ..ROW
    },
    Real {
        name: "clang",
        needs: &["clang"],
        setup: SOURCES,
        run: Run::Command(&["clang", "-O2", "x.c", "-o", "x"]),
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "clang++",
        needs: &["clang++"],
        setup: SOURCES,
        run: Run::Command(&["clang++", "-O1", "-c", "y.cpp"]),
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "rustc",
        needs: &["rustc"],
        setup: RUST,
        run: Run::Script("$WRAP $(rustc --print sysroot)/bin/rustc -O -C codegen-units=2 m.rs; ./m"),
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "cargo",
        needs: &["cargo"],
        setup: CRATE,
        run: Run::Script(CARGO),
        out: &[r"finished in [0-9.]+s"],
        err: &[r"target\(s\) in [0-9.]+s"],
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "javac",
        needs: &["javac"],
        setup: "cp {programs}/Work.java .",
        run: Run::Command(&["javac", "Work.java"]),
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "go-build",
        needs: &["go"],
        setup: "cp {programs}/work.go .",
        run: Run::Script(
            "export GOCACHE=$PWD/cache GO111MODULE=off; $WRAP go build -p 2 -o work work.go; rm -rf cache; ./work",
        ),
        limit_s: 900,
        ..ROW
    },
];

/// The linker under the wrapper, started by a driver that is not.
const LD: &str = r#"mkdir bin; printf '#!/bin/sh\nexec %s /usr/bin/ld "$@"\n' "$WRAP" > bin/ld; chmod +x bin/ld
gcc -B bin/ x.o -o x; rm -r bin; ./x"#;

const MAKEFILE: &str = r#"for i in 1 2 3 4 5 6; do echo "int f$i(int x) { return x * $i; }" > f$i.c; done
printf 'all: $(patsubst %%.c,%%.o,$(sort $(wildcard *.c)))\n\t@cat $^ | wc -c\n%%.o: %%.c\n\t@gcc -O2 -c $< -o $@\n' > Makefile"#;

const RUST: &str = r#"echo 'fn main() {
    let v: Vec<u64> = (1..50).map(|x| x * x).collect(); println!("{}", v.iter().sum::<u64>());
}' > m.rs"#;

const CRATE: &str = r#"mkdir src; printf '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\n' > Cargo.toml
printf 'pub mod a;\n' > src/lib.rs
printf 'pub fn f(x: u32) -> u32 { x.pow(2) }\n#[test]\nfn t() { assert_eq!(f(3), 9) }\n' > src/a.rs
printf 'fn main() { println!("{}", hello::a::f(7)) }\n' > src/main.rs"#;

const CARGO: &str = r#"B=$(rustc --print sysroot)/bin; export PATH=$B:$PATH
$WRAP $B/cargo build --offline; ./target/debug/hello; $WRAP $B/cargo test -q --offline; rm -rf target"#;
