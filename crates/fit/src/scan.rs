//! A first look: least squares of relative errors of `a + b·g` on every prefix and suffix of the points, for
//! every class, by running sums.
//!
//! Relative errors are taken against the measured cost, `(f − y)/y`, which makes the problem linear. That is
//! biased and not robust, so nothing is concluded from it: it says which candidates to try first, and where
//! a break may be.

use crate::points::Points;

/// Sums of squared relative errors of the best `a + b·g` on every prefix and suffix.
pub(crate) struct Scan {
    from: usize,
    left: Vec<f64>,
    right: Vec<f64>,
}

impl Scan {
    pub fn new(points: &Points, from: usize, to: usize) -> Scan {
        let len = to - from;
        let mut scan = Scan { from, left: vec![f64::INFINITY; len + 1], right: vec![f64::INFINITY; len + 1] };
        for g in points.g.iter().filter(|g| !g.is_empty()) {
            let mut sums = Sums::default();
            for i in 0..len {
                sums.add(points, g, from + i);
                scan.left[i + 1] = scan.left[i + 1].min(sums.rest(false));
            }
            let mut sums = Sums::default();
            for i in (0..len).rev() {
                sums.add(points, g, from + i);
                scan.right[i] = scan.right[i].min(sums.rest(true));
            }
        }
        scan
    }

    pub fn whole(&self) -> f64 {
        self.left[self.left.len() - 1]
    }

    pub fn left(&self, at: usize) -> f64 {
        self.left[at - self.from]
    }

    pub fn right(&self, at: usize) -> f64 {
        self.right[at - self.from]
    }
}

/// What the best `a + b·g` leaves unexplained on a range, for one class.
pub(crate) fn rest(points: &Points, (from, to): (usize, usize), g: &[f64]) -> f64 {
    let mut sums = Sums::default();
    (from..to).for_each(|i| sums.add(points, g, i));
    sums.rest(false)
}

/// Running sums for `Σ u·(1 − (a + b·g)/y)²`.
#[derive(Default)]
struct Sums {
    one: f64,
    a: f64,
    b: f64,
    aa: f64,
    ab: f64,
    bb: f64,
}

impl Sums {
    fn add(&mut self, points: &Points, g: &[f64], i: usize) {
        let (u, y) = (points.u[i], points.y[i]);
        let (a, b) = (1.0 / y, g[i] / y);
        self.one += u;
        self.a += u * a;
        self.b += u * b;
        self.aa += u * a * a;
        self.ab += u * a * b;
        self.bb += u * b * b;
    }

    /// What the best curve leaves unexplained; `a` below zero is allowed only after a break, where it stands
    /// for a curve that starts later.
    fn rest(&self, negative: bool) -> f64 {
        let only_a = self.one - self.a * self.a / self.aa;
        let only_b = if self.bb > 0.0 { self.one - self.b * self.b / self.bb } else { f64::INFINITY };
        let determinant = self.aa * self.bb - self.ab * self.ab;
        let mut best = only_a.min(only_b);
        if determinant > 1e-12 * self.aa * self.bb {
            let a = (self.a * self.bb - self.b * self.ab) / determinant;
            let b = (self.b * self.aa - self.a * self.ab) / determinant;
            if b >= 0.0 && (a >= 0.0 || negative) {
                best = best.min(self.one - a * self.a - b * self.b);
            }
        }
        best.max(0.0)
    }
}
