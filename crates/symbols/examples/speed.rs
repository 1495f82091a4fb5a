//! How long symbolization takes: `speed FILE [FUNCTIONS]` opens FILE afresh, names that many of its functions
//! (3,000 unless told, spread evenly), then resolves lines and inlined frames in the middle of each, then does
//! both again with all threads. Times are of this run alone; compare ratios, not machines.

use std::time::Instant;

use symbols::{ObjectAddr, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: speed FILE [FUNCTIONS]")?;
    let wanted: usize = args.next().map_or(Ok(3000), |n| n.parse())?;

    let start = Instant::now();
    let object = fs::open(&path)?;
    let entries = object.entries();
    let opened = start.elapsed();
    let step = (entries.len() / wanted.max(1)).max(1);
    let chosen: Vec<_> = entries.iter().step_by(step).take(wanted).map(|(range, _)| *range).collect();

    let clock = Instant::now();
    let named = chosen.iter().filter(|r| object.function_at(r.start).is_some()).count();
    let naming = clock.elapsed();
    let clock = Instant::now();
    let middles: Vec<_> = chosen.iter().map(|r| ObjectAddr(r.start.0 + r.size_bytes() / 2)).collect();
    let frames: Vec<_> = middles.iter().map(|a| object.resolve(*a)).collect();
    let resolving = clock.elapsed();
    let with_line = frames.iter().filter(|f| f.innermost().is_some_and(|i| i.line.is_some())).count();
    let depth: usize = frames.iter().map(|f| f.0.len()).sum();
    println!("{path}: {} functions, debug information: {}", entries.len(), object.has_debug_info());
    println!("open and list    {opened:>12.3?}");
    println!("name {named:>6}      {naming:>12.3?}");
    println!("resolve {:>6}   {resolving:>12.3?}  {with_line} with a line, {depth} frames", frames.len());
    println!("all of it        {:>12.3?}", start.elapsed());

    let threads = std::thread::available_parallelism()?.get();
    let fresh = fs::open(&path)?;
    let clock = Instant::now();
    std::thread::scope(|scope| {
        for part in middles.chunks(middles.len().div_ceil(threads).max(1)) {
            let object = &fresh;
            scope.spawn(move || part.iter().for_each(|a| drop(object.resolve(*a))));
        }
    });
    println!("afresh, {threads} threads {:>12.3?}", clock.elapsed());
    for problem in object.problems() {
        println!("problem: {problem}");
    }
    Ok(())
}
