//! What must come out for the marked programs, whatever built them.

use std::path::Path;

use symbols::{Frame, Object, Scope, scope::Library};

use crate::toolchain::{Mark, lines_with, marks, source};

/// Checks every mark of `program` (which has symbols and marks, perhaps unlike `object`).
pub fn check_c(object: &Object, program: &Path) {
    let (inner, middle) =
        (lines_with("marks.c", "/* call inner */"), lines_with("marks.c", "/* call middle */"));
    let mut seen = [0; 6];
    for mark in marks(program) {
        seen[mark.number as usize] += 1;
        let frames = object.resolve(mark.addr);
        let names: Vec<&str> = frames.iter().map(|f| f.function.as_ref().unwrap().readable()).collect();
        let what = format!("{mark:?} {frames:?} {:?}", object.problems());
        let want: &[&str] = match mark.number {
            1 => &["outer", "middle", "inner"],
            2 => &["outer", "middle"],
            3 => &["outer"],
            4 => &["local"],
            _ => &["main"],
        };
        assert_eq!(names, want, "{what}");
        check_lines(&frames.0, mark, "marks.c", &what);
        if mark.number <= 2 {
            assert!(middle.contains(&frames.0[0].line.unwrap()), "{what}");
            assert_eq!(frames.0[1].line, Some(if mark.number == 1 { inner[0] } else { mark.line }), "{what}");
        }
        check_function(object, mark, want[0], "marks.c", &what);
    }
    assert_eq!(seen[3..], [1, 1, 1]);
    assert_eq!(seen[1..3], [2, 2], "inlined at both calls");
}

pub fn check_cpp(object: &Object, program: &Path) {
    let constructor = lines_with("marks.cpp", "/* call constructor */");
    for mark in marks(program) {
        let frames = object.resolve(mark.addr);
        let what = format!("{mark:?} {frames:?} {:?}", object.problems());
        check_lines(&frames.0, mark, "marks.cpp", &what);
        let names: Vec<&str> = frames.iter().map(|f| f.function.as_ref().unwrap().readable()).collect();
        let last = *names.last().unwrap();
        match mark.number {
            1 => {
                assert!(names[0].starts_with("shop::mix<"), "{what}");
                assert!(
                    ["shop::Box<int>::Box(int)", "shop::Box<double>::Box(double)"].contains(&last),
                    "{what}"
                );
                assert_eq!(frames.0[0].line, Some(constructor[0]), "{what}");
            }
            2 => {
                assert!(["shop::Box<int>::twice() const", "shop::Box<double>::twice() const"].contains(&last))
            }
            3 => assert_eq!(last, "shop::(anonymous namespace)::hidden(int)", "{what}"),
            // The second is clang's name for it.
            4 => assert!(
                ["main::{lambda(int)#1}::operator()(int) const", "main::$_0::operator()(int) const"]
                    .contains(&last),
                "{what}"
            ),
            // The handler may lie in the part that the compiler moved away from main.
            _ => assert_eq!(names[0], "main", "{what}"),
        }
    }
}

pub fn check_rust(object: &Object, program: &Path) {
    let call = lines_with("marks.rs", "// call scaled");
    for mark in marks(program) {
        let frames = object.resolve(mark.addr);
        let what = format!("{mark:?} {frames:?} {:?}", object.problems());
        check_lines(&frames.0, mark, "marks.rs", &what);
        let names: Vec<&str> = frames.iter().map(|f| f.function.as_ref().unwrap().readable()).collect();
        let last = *names.last().unwrap();
        match mark.number {
            1 => assert!(last.ends_with("marks::Shape>::area"), "{what}"),
            2 => {
                // With line tables only, rustc leaves nothing but the bare name of what is inlined.
                assert!(["marks::scaled", "scaled"].contains(&last), "{what}");
                assert_eq!(frames.0[frames.0.len() - 2].line, Some(call[0]), "{what}");
            }
            3 => assert!(last.starts_with("marks::generic"), "{what}"),
            _ => assert_eq!(last, "marks::main", "{what}"),
        }
        assert!(!last.contains("::h"), "no hash: {what}");
    }
    check_folding(object, program);
}

/// Every instruction of `generic` is credited to a line of the user's file, although the loop is mostly made
/// of inlined iterator code.
fn check_folding(object: &Object, program: &Path) {
    let body = lines_with("marks.rs", "// loop body")[0];
    let library = Library { path: "prog", is_main: true };
    let mut folded = 0;
    for mark in marks(program).iter().filter(|m| m.number == 3) {
        let function = object.function_at(mark.addr).unwrap();
        let range = symbols::AddrRange::new(function.entry.0, function.entry.0 + function.size_bytes);
        let spans = object.spans(range);
        assert_eq!(spans.first().unwrap().range.start, range.start);
        assert_eq!(spans.last().unwrap().range.end, range.end);
        for pair in spans.windows(2) {
            assert_eq!(pair[0].range.end, pair[1].range.start, "no gaps");
        }
        for span in &spans {
            let Some(frame) = Scope::user_code().fold(&span.frames, library) else { continue };
            assert!(frame.file.as_ref().unwrap().ends_with("marks.rs"));
            let from_library = !span.frames.innermost().unwrap().file.as_ref().unwrap().ends_with("marks.rs");
            folded += usize::from(from_library && (body - 1..=body).contains(&frame.line.unwrap()));
        }
    }
    assert!(folded > 0, "iterator code is folded into the loop's lines");
}

fn check_lines(frames: &[Frame], mark: Mark, file: &str, what: &str) {
    let innermost = frames.last().expect(what);
    assert_eq!(innermost.line, Some(mark.line), "{what}");
    assert_eq!(innermost.file.as_deref(), source(file).to_str(), "{what}");
    for (i, frame) in frames.iter().enumerate() {
        assert_eq!(frame.inlined, i > 0, "{what}");
    }
}

fn check_function(object: &Object, mark: Mark, name: &str, file: &str, what: &str) {
    let function = object.function_at(mark.addr).expect(what);
    assert_eq!(function.name.readable(), name, "{what}");
    assert_eq!(function.file.as_deref(), source(file).to_str(), "{what}");
    let declaration = lines_with(file, &format!(" {name}("));
    // Minimal debug information (`clang -g1`) declares nothing; then it is the first line with code.
    let declared = object.resolve(mark.addr).outermost().unwrap().declared.is_some();
    let after = function.line.unwrap() - declaration[0];
    assert!(after == 0 || after == 1 && !declared, "{what}");
    let offset = mark.addr.0 - function.entry.0;
    assert!(offset < function.size_bytes, "{what}");
    assert_eq!(object.function_at(function.entry).unwrap(), function);
}

/// Compares every address of the code with the `addr2line` crate's reading of the same file.
pub fn check_against_addr2line(object: &Object, program: &Path, step: usize) {
    use object::{Object as _, ObjectSection as _};
    let data = std::fs::read(program).unwrap();
    let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(&*data).unwrap();
    let section = |id: gimli::SectionId| {
        let data = file.section_by_name(id.name()).map(|s| s.uncompressed_data().unwrap());
        Ok::<_, gimli::Error>(data.unwrap_or_default())
    };
    let sections = gimli::DwarfSections::load(section).unwrap();
    let dwarf = sections.borrow(|s| gimli::EndianSlice::new(s, gimli::LittleEndian));
    let reference = addr2line::Context::from_dwarf(dwarf).unwrap();
    let mut compared = 0;
    for range in object.code() {
        for addr in (range.start.0..range.end.0).step_by(step) {
            let mut theirs = Vec::new();
            let mut frames = reference.find_frames(addr).skip_all_loads().unwrap();
            while let Some(frame) = frames.next().unwrap() {
                let name = frame.function.as_ref().map(|f| f.raw_name().unwrap().into_owned());
                let location = frame.location.as_ref();
                let file = location.and_then(|l| l.file).map(tidy);
                theirs.push((name, file, location.and_then(|l| l.line)));
            }
            theirs.reverse();
            let ours = object.resolve(symbols::ObjectAddr(addr));
            if theirs.is_empty() {
                assert!(ours.iter().all(|f| f.file.is_none()), "{addr:#x}: {ours:?}");
                continue;
            }
            let lines =
                |l: &[(Option<String>, Option<String>, Option<u32>)]| -> Vec<(Option<String>, Option<u32>)> {
                    l.iter().map(|(_, file, line)| (file.clone(), *line)).collect()
                };
            let mine: Vec<_> = ours
                .iter()
                .map(|f| {
                    (f.function.as_ref().map(|n| n.mangled().to_owned()), f.file.as_deref().map(tidy), f.line)
                })
                .collect();
            assert_eq!(lines(&mine), lines(&theirs), "at {addr:#x}\n{mine:?}\n{theirs:?}");
            // The outermost name is the symbol's, perhaps another alias.
            let names = |l: &[(Option<String>, Option<String>, Option<u32>)]| -> Vec<Option<String>> {
                l.iter().skip(1).map(|(name, _, _)| name.clone()).collect()
            };
            assert_eq!(names(&mine), names(&theirs), "at {addr:#x}");
            compared += 1;
        }
    }
    assert!(compared > 10, "only {compared} addresses compared");
}

fn tidy(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
