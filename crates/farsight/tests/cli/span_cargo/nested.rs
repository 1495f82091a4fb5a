//! Calls that fork, inside the closures of joins. `solve` forks twice, with a strand between: five strands, three of them
//! one after the other. `tree` is recursive: of its calls from a closure only the outermost counts for its work.

use rayon_core::join;

#[inline(never)]
fn spin(steps: u64) -> u64 {
    (0..steps).fold(steps, |x, _| std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005) + 1))
}

#[inline(never)]
fn solve(steps: u64) -> u64 {
    let (a, b) = join(|| spin(steps), || spin(steps));
    let c = spin(steps);
    let (d, e) = join(|| spin(steps), || spin(steps));
    a ^ b ^ c ^ d ^ e
}

#[inline(never)]
fn tree(depth: u32, steps: u64) -> u64 {
    if depth == 0 {
        return spin(steps);
    }
    let (a, b) = join(|| tree(depth - 1, steps), || tree(depth - 1, steps));
    a ^ b ^ 1
}

fn main() {
    let steps: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap();
    let (a, b) = join(
        || {
            let first = spin(steps) ^ solve(steps);
            first ^ spin(steps) ^ solve(2 * steps)
        },
        || tree(4, steps) ^ spin(steps),
    );
    println!("{}", a ^ b != 42);
}
