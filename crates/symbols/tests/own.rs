//! This test program finds itself: its functions in its own memory, its libraries, the kernel's library.

use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use symbols::{Backing, Epoch, Options, ProcessAddr, ProcessMap, Symbolizer, fs::Disk};

const PROBE_LINE: u32 = line!() + 3;

#[inline(never)]
fn probe(x: u32) -> u32 {
    std::hint::black_box(x) + 1
}

fn own_map() -> ProcessMap {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap();
    let (map, rejected) = ProcessMap::from_maps_text(&text);
    assert!(rejected.is_empty(), "{rejected:?}");
    map
}

fn symbolizer() -> Symbolizer {
    Symbolizer::new(Arc::new(Disk), Options::default())
}

#[test]
fn own_function() {
    let symbolizer = symbolizer();
    assert_eq!(probe(1), 2);
    let address = ProcessAddr(probe as *const () as u64);
    let located = symbolizer.locate(&own_map(), address, Epoch::START).unwrap();
    assert_eq!(located.object.path(), std::env::current_exe().unwrap());
    let function = located.function().unwrap();
    assert_eq!(function.name.readable(), "own::probe");
    assert_eq!(function.entry, located.addr);
    assert_eq!(function.line, Some(PROBE_LINE));
    let frames = located.resolve();
    assert_eq!(frames.innermost().unwrap().line, Some(PROBE_LINE));
    assert!(frames.innermost().unwrap().file.as_ref().unwrap().ends_with("tests/own.rs"));
    assert!(symbolizer.problems().is_empty(), "{:?}", symbolizer.problems());
}

#[inline(never)]
fn capture() -> String {
    std::backtrace::Backtrace::force_capture().to_string()
}

#[test]
fn own_stack() {
    let text = capture();
    // The standard library reads the same debug information; it must name the same caller.
    assert!(text.contains("own::capture"), "{text}");
    let object = symbols::fs::open(std::env::current_exe().unwrap()).unwrap();
    let named = object.functions_named("own::capture");
    assert_eq!(named.len(), 1);
    let function = &named[0];
    let range = symbols::AddrRange::new(function.entry.0, function.entry.0 + function.size_bytes);
    let lines: Vec<u32> = object
        .spans(range)
        .iter()
        .filter_map(|span| {
            span.frames.outermost().filter(|f| f.file.as_ref().is_some_and(|f| f.ends_with("own.rs")))
        })
        .filter_map(|frame| frame.line)
        .collect();
    let line = text.lines().filter_map(|l| l.trim().strip_prefix("at ")).find_map(|place| {
        let (file, rest) = place.split_once(".rs:")?;
        file.ends_with("tests/own").then(|| rest.split(':').next()?.parse::<u32>().ok())?
    });
    assert!(lines.contains(&line.unwrap()), "{line:?} in {lines:?}");
}

#[test]
fn libraries_round_trip() {
    let (symbolizer, map) = (symbolizer(), own_map());
    let libc = map
        .iter()
        .map(|lived| &lived.mapping)
        .find(|m| m.executable && matches!(&m.backing, Backing::File { path, .. } if path.to_string_lossy().contains("libc.so")))
        .expect("libc is mapped");
    let object = symbolizer.object(&libc.backing).unwrap();
    let malloc = object.functions_named("malloc").remove(0);
    let offset = object.segments().offset_of(malloc.entry).unwrap();
    let address = ProcessAddr(offset.0 - libc.offset.0 + libc.start.0);
    let located = symbolizer.locate(&map, address, Epoch::START).unwrap();
    assert_eq!(located.addr, malloc.entry);
    assert_eq!(located.function().unwrap().name.readable(), "malloc");
}

#[test]
fn the_kernels_library() {
    let map = own_map();
    let Some(vdso) = map.iter().map(|l| l.mapping.clone()).find(|m| m.backing == Backing::Vdso) else {
        println!("skipped: this kernel maps no [vdso]");
        return;
    };
    let mut bytes = vec![0; (vdso.end.0 - vdso.start.0) as usize];
    std::fs::File::open("/proc/self/mem").unwrap().read_exact_at(&mut bytes, vdso.start.0).unwrap();
    let symbolizer = symbolizer();
    assert!(symbolizer.locate(&map, vdso.start, Epoch::START).is_none());
    let symbolizer_with = self::symbolizer();
    symbolizer_with.set_vdso(bytes.into());
    let object = symbolizer_with.object(&Backing::Vdso).unwrap();
    let function = object.functions_named("__vdso_clock_gettime").remove(0);
    let address = ProcessAddr(vdso.start.0 + function.entry.0);
    let located = symbolizer_with.locate(&map, address, Epoch::START).unwrap();
    assert_eq!(located.function().unwrap(), function);
    assert!(!symbolizer.problems().is_empty());
}

/// All of this program's code, against the `addr2line` crate, from several threads at once.
#[test]
fn whole_program_in_parallel() {
    let path = std::env::current_exe().unwrap();
    let mut data = Vec::new();
    std::fs::File::open(&path).unwrap().read_to_end(&mut data).unwrap();
    let object = symbols::fs::open(&path).unwrap();
    let addresses: Vec<u64> = object.code().iter().flat_map(|r| (r.start.0..r.end.0).step_by(211)).collect();
    let resolve =
        |part: &[u64]| -> Vec<_> { part.iter().map(|a| object.resolve(symbols::ObjectAddr(*a))).collect() };
    let together: Vec<_> = std::thread::scope(|scope| {
        let parts: Vec<_> = addresses.chunks(addresses.len() / 4 + 1).collect();
        let workers: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || resolve(part))).collect();
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    });
    let alone = symbols::fs::open(&path).unwrap();
    use object::{Object as _, ObjectSection as _};
    let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(&*data).unwrap();
    let section = |id: gimli::SectionId| {
        let data = file.section_by_name(id.name()).map(|s| s.uncompressed_data().unwrap());
        Ok::<_, gimli::Error>(data.unwrap_or_default())
    };
    let sections = gimli::DwarfSections::load(section).unwrap();
    let reference =
        addr2line::Context::from_dwarf(sections.borrow(|s| gimli::EndianSlice::new(s, gimli::LittleEndian)));
    let reference = reference.unwrap();
    let mut compared = 0;
    for (addr, frames) in addresses.iter().zip(&together) {
        assert_eq!(alone.resolve(symbols::ObjectAddr(*addr)), *frames, "threads change nothing");
        let mut theirs = Vec::new();
        let mut iter = reference.find_frames(*addr).skip_all_loads().unwrap();
        while let Some(frame) = iter.next().unwrap() {
            theirs.push((frame.location.as_ref().and_then(|l| l.line), frame.function.is_some()));
        }
        theirs.reverse();
        if theirs.iter().any(|(_, function)| *function) {
            let ours: Vec<_> = frames.iter().map(|f| (f.line, f.function.is_some())).collect();
            assert_eq!(ours, theirs, "at {addr:#x}: {frames:?}");
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}

/// The linker's `_start` is a label without a size or an unwind range, at the address where it is entered.
#[test]
fn every_start_is_listed_once() {
    let map = own_map();
    let symbolizer = symbolizer();
    let mut looked_at = 0;
    for object in map.iter().filter_map(|lived| symbolizer.object(&lived.mapping.backing)) {
        let starts: Vec<u64> = object.entries().iter().map(|(range, _)| range.start.0).collect();
        assert!(starts.is_sorted_by(|a, b| a < b), "{}", object.path().display());
        looked_at += 1;
    }
    assert!(looked_at > 0);
}
