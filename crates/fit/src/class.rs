//! The growth classes that a fit can name.

use std::fmt;

/// An asymptotic growth class. The order is by growth, slowest first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Class {
    /// 1
    Constant,
    /// log n
    Log,
    /// sqrt n
    Sqrt,
    /// n
    Linear,
    /// n log n
    NLogN,
    /// n^1.5
    N15,
    /// n^2
    Quadratic,
    /// n^2 log n
    N2LogN,
    /// n^3
    Cubic,
    /// 2^n
    Exponential,
    /// n^K, when no named class fits
    Power(f64),
}

impl Class {
    /// The named classes, slowest growth first.
    pub const NAMED: [Class; 10] = [
        Class::Constant,
        Class::Log,
        Class::Sqrt,
        Class::Linear,
        Class::NLogN,
        Class::N15,
        Class::Quadratic,
        Class::N2LogN,
        Class::Cubic,
        Class::Exponential,
    ];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Constant => "1",
            Class::Log => "log n",
            Class::Sqrt => "sqrt n",
            Class::Linear => "n",
            Class::NLogN => "n log n",
            Class::N15 => "n^1.5",
            Class::Quadratic => "n^2",
            Class::N2LogN => "n^2 log n",
            Class::Cubic => "n^3",
            Class::Exponential => "2^n",
            Class::Power(k) => return write!(f, "n^{k:.2}"),
        })
    }
}
