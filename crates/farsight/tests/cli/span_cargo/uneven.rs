//! Strands of two functions, one of which does three times as much as the other.

#[inline(never)]
fn spin(steps: u64) -> u64 {
    (0..steps).fold(steps, |x, _| std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005) + 1))
}

#[inline(never)]
fn longer(steps: u64) -> u64 {
    spin(3 * steps) ^ 1
}

#[inline(never)]
fn shorter(steps: u64) -> u64 {
    spin(steps) ^ 2
}

fn tree(depth: u32, steps: u64) -> u64 {
    if depth == 0 {
        return longer(steps) ^ shorter(steps);
    }
    let (a, b) = rayon_core::join(|| tree(depth - 1, steps), || tree(depth - 1, steps));
    a ^ b
}

fn main() {
    let steps: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap();
    println!("{}", tree(6, steps) != 42);
}
