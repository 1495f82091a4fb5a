//! Numbers of several points side by side: what the compiler turns into vectors.
//!
//! Only element by element, and sums are added up in a fixed order: results are the same on every machine.

use std::ops::{Add, Div, Mul};

/// Points that are worked on at a time.
pub(crate) const LANES: usize = 4;

/// A number of each of them.
#[derive(Clone, Copy)]
pub(crate) struct Lanes([f64; LANES]);

impl Lanes {
    /// The same for all.
    #[inline(always)]
    pub fn all(x: f64) -> Lanes {
        Lanes([x; LANES])
    }

    /// Those of a list from index `i` on.
    #[inline(always)]
    pub fn at(list: &[f64], i: usize) -> Lanes {
        let x = &list[i..i + LANES];
        Lanes([x[0], x[1], x[2], x[3]])
    }

    #[inline(always)]
    pub fn map(self, op: impl Fn(f64) -> f64) -> Lanes {
        let [a, b, c, d] = self.0;
        Lanes([op(a), op(b), op(c), op(d)])
    }

    #[inline(always)]
    fn zip(self, other: Lanes, op: impl Fn(f64, f64) -> f64) -> Lanes {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Lanes([op(a, e), op(b, f), op(c, g), op(d, h)])
    }

    /// Element by element, the larger one.
    #[inline(always)]
    pub fn larger(self, other: Lanes) -> Lanes {
        self.zip(other, larger)
    }

    /// The largest.
    pub fn largest(self) -> f64 {
        let [a, b, c, d] = self.0;
        larger(larger(a, b), larger(c, d))
    }

    /// The sum.
    pub fn sum(self) -> f64 {
        let [a, b, c, d] = self.0;
        (a + b) + (c + d)
    }
}

/// The larger of two numbers, in one instruction: without the rules for those that are none.
#[inline(always)]
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

impl Add for Lanes {
    type Output = Lanes;
    #[inline(always)]
    fn add(self, other: Lanes) -> Lanes {
        self.zip(other, |a, b| a + b)
    }
}

impl Mul for Lanes {
    type Output = Lanes;
    #[inline(always)]
    fn mul(self, other: Lanes) -> Lanes {
        self.zip(other, |a, b| a * b)
    }
}

impl Div for Lanes {
    type Output = Lanes;
    #[inline(always)]
    fn div(self, other: Lanes) -> Lanes {
        self.zip(other, |a, b| a / b)
    }
}
