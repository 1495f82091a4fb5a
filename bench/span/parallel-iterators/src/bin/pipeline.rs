//! Parallel iterators one after the other: map and filter, sort, chunks, a reduction, rounds of small sums.

use rayon::prelude::*;

fn main() {
    let n: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2_000_000);
    let mixed: Vec<u64> = (0..n)
        .into_par_iter()
        .map(|i| i.wrapping_mul(6_364_136_223_846_793_005) >> 20)
        .filter(|x| x % 3 != 0)
        .collect();
    let mut sorted = mixed.clone();
    sorted.par_sort_unstable();
    let sums: Vec<u64> =
        sorted.par_chunks(1000).map(|c| c.iter().fold(0, |a, &b| a ^ b.rotate_left(7))).collect();
    let mut total =
        sums.par_iter().copied().reduce(|| 0, |a, b| a.wrapping_mul(31).wrapping_add(b) & 0xffff_ffff);
    total %= 7; // the order of a reduction's pieces is the scheduler's
    let rounds: u64 = (0..300).map(|r| sums.par_iter().map(|x| x.wrapping_add(r) % 1009).sum::<u64>()).sum();
    println!("{} {} {}", sorted.len(), total < 7, rounds);
}
