//! As marks.c, for rustc: generics, closures, trait methods, and code of the standard library inlined.
use std::arch::asm;

#[collapse_debuginfo(yes)]
macro_rules! mark {
    ($number:literal) => {
        // SAFETY: a nop, and data in a section that nothing runs.
        unsafe {
            asm!("2: nop", ".pushsection marks,\"aR\",@progbits", ".long 2b - .", ".long {line}", ".long {number}",
                ".popsection", line = const line!(), number = const $number)
        }
    };
}

trait Shape {
    fn area(&self) -> u64;
}

struct Square<T>(T);

impl<T: Into<u64> + Copy> Shape for Square<T> {
    #[inline(never)]
    fn area(&self) -> u64 {
        mark!(1);
        let side: u64 = self.0.into();
        scaled(side) * side // call scaled
    }
}

#[inline(always)]
fn scaled(x: u64) -> u64 {
    mark!(2);
    x * 3
}

#[inline(never)]
fn generic<T: Copy + Into<u64>>(items: &[T]) -> u64 {
    mark!(3);
    let mut sum = 0u64;
    for item in items {
        sum = sum.wrapping_add(std::hint::black_box((*item).into())); // loop body
    }
    sum
}

fn main() {
    mark!(4);
    let numbers: Vec<u32> = (0..std::env::args().count() as u32 + 5).collect();
    let shapes: [Box<dyn Shape>; 2] = [Box::new(Square(3u32)), Box::new(Square(4u8))];
    let total: u64 = shapes.iter().map(|s| s.area()).sum();
    println!("{} {}", total, generic(&numbers) + generic(&[1u8, 2]));
}
