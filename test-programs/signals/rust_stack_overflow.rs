//! Rust's own stack overflow detection: a SIGSEGV handler on an alternate stack compares the fault address with
//! the guard page, prints a message and aborts. Answer: the message on stderr, killed by SIGABRT.
//@ signal: SIGABRT
//@ stderr-has: has overflowed its stack
//@ stderr-mask: \([0-9]+\)
#[inline(never)]
fn deeper(n: u64) -> u64 {
    let a = std::hint::black_box([n; 64]);
    if n == u64::MAX { 0 } else { deeper(n + 1) + a[(n % 64) as usize] }
}
fn main() {
    println!("{}", deeper(std::hint::black_box(0)));
}
