//! The fuzzer's short form: a fixed number of hostile files from a fixed seed.

#[path = "../fuzz/meter.rs"]
mod meter;
#[path = "../fuzz/mutator.rs"]
mod mutator;
#[path = "../fuzz/trial.rs"]
mod trial;

#[global_allocator]
static METER: meter::Meter = meter::Meter;

#[test]
fn hostile_files_neither_panic_nor_exhaust_memory() {
    let seeds = mutator::seeds();
    let mut random = mutator::Random(2012);
    let (mut accepted, mut salvaged, mut peak_bytes) = (0, 0, 0);
    for _ in 0..10_000 {
        let seed = &seeds[random.below(seeds.len())];
        let other = &seeds[random.below(seeds.len())];
        let outcome = trial::run(&mutator::mutate(seed, other, &mut random));
        accepted += usize::from(outcome.accepted);
        salvaged += outcome.salvaged;
        peak_bytes = peak_bytes.max(outcome.peak_bytes);
    }
    // A mutator that only ever breaks checksums would prove nothing.
    assert!(accepted > 100, "only {accepted} files got through to the end");
    assert!(salvaged > 1_000, "only {salvaged} runs were salvaged");
    assert!(peak_bytes > 10_000, "the meter does not count: {peak_bytes} bytes at most");
}
