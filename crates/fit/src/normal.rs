//! Normal equations: weighted least squares of a few unknowns, by Cholesky factorization.
//!
//! The number of unknowns is a type, so that the compiler unrolls everything, and points are added several at a time,
//! each in a lane of its own, so that it can add them side by side: these loops are where fitting spends its time.
// Triangular loops read as in the textbook only with indices.
#![allow(clippy::needless_range_loop)]

use crate::lanes::Lanes;

/// Normal equations of `Q` unknowns, before the lanes are added up.
pub(crate) struct Sums<const Q: usize> {
    matrix: [[Lanes; Q]; Q],
    right: [Lanes; Q],
}

impl<const Q: usize> Sums<Q> {
    pub fn new() -> Sums<Q> {
        Sums { matrix: [[Lanes::all(0.0); Q]; Q], right: [Lanes::all(0.0); Q] }
    }

    #[inline(always)]
    pub fn add(&mut self, row: &[Lanes; Q], target: Lanes, weight: Lanes) {
        for j in 0..Q {
            let scaled = weight * row[j];
            for k in 0..=j {
                self.matrix[j][k] = self.matrix[j][k] + scaled * row[k];
            }
            self.right[j] = self.right[j] + scaled * target;
        }
    }

    /// The equations.
    pub fn fold(&self) -> Normal<Q> {
        Normal { matrix: self.matrix.map(|row| row.map(Lanes::sum)), right: self.right.map(Lanes::sum) }
    }
}

/// Normal equations of `Q` unknowns.
pub(crate) struct Normal<const Q: usize> {
    /// Lower triangle.
    matrix: [[f64; Q]; Q],
    right: [f64; Q],
}

impl<const Q: usize> Normal<Q> {
    pub fn new() -> Normal<Q> {
        Normal { matrix: [[0.0; Q]; Q], right: [0.0; Q] }
    }

    #[inline]
    pub fn add(&mut self, row: &[f64; Q], target: f64, weight: f64) {
        for j in 0..Q {
            let scaled = weight * row[j];
            for k in 0..=j {
                self.matrix[j][k] += scaled * row[k];
            }
            self.right[j] += scaled * target;
        }
    }

    /// How much of the weighted squares of the targets the solution explains.
    pub fn explained(&self, solution: &[f64; Q]) -> f64 {
        (0..Q).map(|j| self.right[j] * solution[j]).sum()
    }

    /// The solution and the pivots of the Cholesky factorization: `pivot[j]` is the information on unknown j
    /// when those before it are unknown too.
    pub fn solve(&self) -> Option<([f64; Q], [f64; Q])> {
        let mut l = [[0.0; Q]; Q];
        let mut pivots = [1.0; Q];
        for j in 0..Q {
            let mut diagonal = self.matrix[j][j];
            for k in 0..j {
                diagonal -= l[j][k] * l[j][k];
            }
            if !(diagonal > self.matrix[j][j] * 1e-13 && diagonal.is_finite()) {
                return None;
            }
            pivots[j] = diagonal;
            l[j][j] = diagonal.sqrt();
            for i in j + 1..Q {
                let mut sum = self.matrix[i][j];
                for k in 0..j {
                    sum -= l[i][k] * l[j][k];
                }
                l[i][j] = sum / l[j][j];
            }
        }
        let mut x = self.right;
        for j in 0..Q {
            for k in 0..j {
                x[j] -= l[j][k] * x[k];
            }
            x[j] /= l[j][j];
        }
        for j in (0..Q).rev() {
            for k in j + 1..Q {
                x[j] -= l[k][j] * x[k];
            }
            x[j] /= l[j][j];
        }
        x.iter().all(|x| x.is_finite()).then_some((x, pivots))
    }
}

#[cfg(test)]
mod tests {
    use super::{Lanes, Normal, Sums};

    #[test]
    fn finds_the_line_through_points() {
        let mut normal = Normal::<2>::new();
        for x in [1.0, 2.0, 5.0] {
            normal.add(&[1.0, x], 3.0 + 2.0 * x, 0.5);
        }
        let (solution, pivots) = normal.solve().unwrap();
        assert!((solution[0] - 3.0).abs() < 1e-12 && (solution[1] - 2.0).abs() < 1e-12);
        // Σw, and the weighted sum of squares of x around its mean.
        assert!((pivots[0] - 1.5).abs() < 1e-12 && (pivots[1] - 0.5 * 26.0 / 3.0).abs() < 1e-12);
        let mut sums = Sums::<2>::new();
        let four = |values| Lanes::at(values, 0);
        let row = [Lanes::all(1.0), four(&[1.0, 2.0, 5.0, 9.0])];
        sums.add(&row, four(&[5.0, 7.0, 13.0, 0.0]), four(&[0.5, 0.5, 0.5, 0.0]));
        assert_eq!(sums.fold().solve(), normal.solve());
        let total: f64 = [5.0f64, 7.0, 13.0].iter().map(|y| 0.5 * y * y).sum();
        assert!((normal.explained(&solution) - total).abs() < 1e-9);
    }

    #[test]
    fn equal_columns_have_no_solution() {
        let mut normal = Normal::<2>::new();
        (1..9).for_each(|i| normal.add(&[f64::from(i), 2.0 * f64::from(i)], 1.0, 1.0));
        assert!(normal.solve().is_none());
        assert!(Normal::<1>::new().solve().is_none());
    }
}
