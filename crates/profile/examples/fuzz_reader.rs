//! Feeds the reader hostile files: `cargo run --release -p profile --example fuzz_reader -- [COUNT] [SEED]`.
//!
//! Ends with a panic, after having written the offending file to the temporary folder, or with counts.

#[path = "../fuzz/meter.rs"]
mod meter;
#[path = "../fuzz/mutator.rs"]
mod mutator;
#[path = "../fuzz/trial.rs"]
mod trial;

use std::time::Instant;

#[global_allocator]
static METER: meter::Meter = meter::Meter;

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().expect("a number"));
    let count = args.next().unwrap_or(100_000);
    let seed = args.next().unwrap_or(1);
    let seeds = mutator::seeds();
    let start = Instant::now();
    let (mut accepted, mut salvaged, mut peak, mut ratio) = (0u64, 0usize, 0, 0.0f64);
    for i in 0..count {
        // A seed of its own for each file: file I of seed S can be made again without those before it.
        let mut random = mutator::Random(seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(i));
        let base = &seeds[random.below(seeds.len())];
        let other = &seeds[random.below(seeds.len())];
        let bytes = mutator::mutate(base, other, &mut random);
        let outcome = std::panic::catch_unwind(|| trial::run(&bytes)).unwrap_or_else(|panic| {
            let path = std::env::temp_dir().join(format!("fuzz_reader-{seed}-{i}.farsight"));
            std::fs::write(&path, &bytes).expect("the temporary folder is writable");
            eprintln!("file {i} of seed {seed} fails; kept as {}", path.display());
            std::panic::resume_unwind(panic)
        });
        accepted += u64::from(outcome.accepted);
        salvaged += outcome.salvaged;
        peak = peak.max(outcome.peak_bytes);
        ratio = ratio.max(outcome.peak_bytes as f64 / bytes.len().max(1) as f64);
        if (i + 1).is_multiple_of(1_000_000) {
            eprintln!("{} files, {:.0} s", i + 1, start.elapsed().as_secs_f64());
        }
    }
    println!(
        "{count} files in {:.0} s (seed {seed}): {accepted} accepted, {salvaged} runs salvaged, no panic; \
         largest peak {peak} bytes, largest ratio of peak to file length {ratio:.0}",
        start.elapsed().as_secs_f64()
    );
}
