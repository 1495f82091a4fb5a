//! Collections, sorting, trait objects and a caught panic.
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hint::black_box;

unsafe extern "C" {
    fn farsight_step_begin();
    fn farsight_step_end() -> u64;
    fn farsight_steps() -> u64;
    fn farsight_landing() -> u64;
}

trait Shape {
    fn area(&self) -> f64;
}
struct Square(f64);
struct Circle(f64);
impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}
impl Shape for Circle {
    fn area(&self) -> f64 {
        self.0 * self.0 * 3.0
    }
}

#[inline(never)]
fn ackermann(m: u64, n: u64) -> u64 {
    match (m, n) {
        (0, n) => n + 1,
        (m, 0) => ackermann(m - 1, 1),
        (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
    }
}

#[inline(never)]
fn everything(n: u64) -> u64 {
    let mut sums = BTreeMap::new();
    for i in 0..20u64 {
        *sums.entry(format!("k{}", i % 7)).or_insert(0) += i;
    }
    let mut values: Vec<u64> = (0..60).map(|i| (i * 7919) % 101).collect();
    values.sort_unstable();
    values.sort_by_key(|&value| Reverse(value));
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.0)), Box::new(Circle(1.0))];
    let area: f64 = shapes.iter().map(|shape| shape.area()).sum();
    let caught = std::panic::catch_unwind(|| if black_box(n) > 1 { panic!("expected") } else { 1 });
    sums.values().sum::<u64>() + values[3] + area as u64 + ackermann(2, 2) + caught.unwrap_or(7)
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    // SAFETY: offered by the library that the test preloads.
    let (result, wrong, steps, landing) = unsafe {
        farsight_step_begin();
        let result = everything(black_box(3));
        (result, farsight_step_end(), farsight_steps(), farsight_landing())
    };
    println!("{result} steps {steps} wrong {wrong} landing {landing}");
    std::process::exit((wrong != 0) as i32);
}
