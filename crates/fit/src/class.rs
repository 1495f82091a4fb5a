//! The growth classes that a fit can name: their functions, their order and their spelling.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// An asymptotic growth class. The order is by growth, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Class {
    /// 1
    #[default]
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

    /// The class's function at size `n`, logarithms to base 2.
    ///
    /// Sizes below 1 have logarithm 0 and sizes below 0 count as 0, so the result is never negative; it is
    /// infinite where the function overflows.
    pub fn g(self, n: f64) -> f64 {
        let n = n.max(0.0);
        let log = || n.max(1.0).log2();
        match self {
            Class::Constant => 1.0,
            Class::Log => log(),
            Class::Sqrt => n.sqrt(),
            Class::Linear => n,
            Class::NLogN => n * log(),
            Class::N15 => n * n.sqrt(),
            Class::Quadratic => n * n,
            Class::N2LogN => n * n * log(),
            Class::Cubic => n * n * n,
            Class::Exponential => n.exp2(),
            Class::Power(k) => n.powf(k),
        }
    }

    /// Orders by growth. `n^K` stands by its exponent; a logarithmic factor puts a class just above its power,
    /// below every larger power; `2^n` is above all.
    pub fn cmp_growth(self, other: Class) -> Ordering {
        let (a, b) = (self.rank(), other.rank());
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2))
    }

    /// The exponent of n, ignoring logarithmic factors; infinite for 2^n.
    pub fn power(self) -> f64 {
        let (exponential, power, _) = self.rank();
        if exponential { f64::INFINITY } else { power }
    }

    /// Reads a class as people write it: `n log n`, `O(nlogn)`, `n*log(n)`, `n^2`, `n2`, `n²`, `quadratic`,
    /// `n^1.7`, `2^n`. Exponents of named classes give the named class.
    pub fn parse(text: &str) -> Option<Class> {
        let mut s: String = text
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| !c.is_whitespace() && !"*·×_".contains(*c))
            .collect();
        for (from, to) in [("²", "^2"), ("³", "^3"), ("√", "sqrt"), ("lg", "log"), ("ln", "log")] {
            s = s.replace(from, to);
        }
        s = s.replace("log2", "log").replace("log(n)", "logn").replace("sqrt(n)", "sqrtn");
        if let Some(inner) = s.strip_prefix(['o', 'θ']).and_then(|s| s.strip_prefix('(')) {
            s = inner.strip_suffix(')')?.to_string();
        }
        Some(match s.as_str() {
            "1" | "c" | "const" | "constant" | "n^0" => Class::Constant,
            "logn" | "log" | "logarithmic" => Class::Log,
            "sqrtn" | "sqrt" | "n^(1/2)" | "n^1/2" => Class::Sqrt,
            "linear" => Class::Linear,
            "nlogn" | "linearithmic" | "loglinear" | "quasilinear" => Class::NLogN,
            "nsqrtn" | "n^(3/2)" | "n^3/2" => Class::N15,
            "quadratic" => Class::Quadratic,
            "n^2logn" | "n2logn" => Class::N2LogN,
            "cubic" => Class::Cubic,
            "2^n" | "exp" | "exponential" | "exp(n)" => Class::Exponential,
            _ => {
                let power = s.strip_prefix('n')?;
                if power.is_empty() {
                    return Some(Class::Linear);
                }
                let power = power.strip_prefix('^').unwrap_or(power);
                let power = power.strip_prefix('(').and_then(|e| e.strip_suffix(')')).unwrap_or(power);
                // Digits alone, because a float's own parser also reads "inf", "nan" and signs.
                let plain = power.chars().all(|c| c.is_ascii_digit() || c == '.');
                Class::of_power(power.parse().ok().filter(|_| plain)?)
            }
        })
    }

    /// The class of `n^k`: named where there is a name.
    pub fn of_power(k: f64) -> Class {
        [Class::Constant, Class::Sqrt, Class::Linear, Class::N15, Class::Quadratic, Class::Cubic]
            .into_iter()
            .find(|class| class.power() == k)
            .unwrap_or(Class::Power(k))
    }

    fn rank(self) -> (bool, f64, bool) {
        match self {
            Class::Constant => (false, 0.0, false),
            Class::Log => (false, 0.0, true),
            Class::Sqrt => (false, 0.5, false),
            Class::Linear => (false, 1.0, false),
            Class::NLogN => (false, 1.0, true),
            Class::N15 => (false, 1.5, false),
            Class::Quadratic => (false, 2.0, false),
            Class::N2LogN => (false, 2.0, true),
            Class::Cubic => (false, 3.0, false),
            Class::Exponential => (true, 0.0, false),
            Class::Power(k) => (false, k, false),
        }
    }
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

impl FromStr for Class {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Class, UnknownClass> {
        Class::parse(text).ok_or_else(|| UnknownClass(text.to_string()))
    }
}

/// What [`Class::from_str`] says of a text that names no class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownClass(pub String);

impl fmt::Display for UnknownClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no growth class `{}`: write one such as 1, log n, sqrt n, n, n log n, n^1.5, n^2, 2^n",
            self.0
        )
    }
}

impl std::error::Error for UnknownClass {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read() {
        for (texts, class) in [
            (&["1", "O(1)", "constant", "const", "n^0"][..], Class::Constant),
            (&["log n", "O(log n)", "lg n", "log2(n)", "ln n", "logarithmic"], Class::Log),
            (&["sqrt n", "sqrt(n)", "√n", "n^0.5", "O(n^(1/2))"], Class::Sqrt),
            (&["n", "O(n)", " N ", "linear", "n^1", "n1"], Class::Linear),
            (
                &["n log n", "O(n log n)", "nlogn", "n*log(n)", "n·log n", "N lg N", "Θ(n log n)"],
                Class::NLogN,
            ),
            (&["n^1.5", "n sqrt n", "n√n", "n^(3/2)"], Class::N15),
            (&["n^2", "n2", "n²", "O(n^2)", "quadratic", "n^2.0", "n^(2)"], Class::Quadratic),
            (&["n^2 log n", "n² log n", "n2logn", "O(n^2 log(n))"], Class::N2LogN),
            (&["n^3", "n³", "cubic"], Class::Cubic),
            (&["2^n", "O(2^n)", "exponential"], Class::Exponential),
            (&["n^1.7", "O(n^1.7)", "n1.7"], Class::Power(1.7)),
        ] {
            for text in texts {
                assert_eq!(Class::parse(text), Some(class), "{text}");
            }
        }
        for text in [
            "",
            "m",
            "O(n",
            "n^",
            "n^-1",
            "n^nan",
            "n^inf",
            "foo",
            "n log",
            "log log n",
            "3^n",
            "nn",
            "n^2^2",
        ] {
            assert_eq!(Class::parse(text), None, "{text}");
        }
    }

    #[test]
    fn names_survive_the_round_trip() {
        for class in Class::NAMED {
            assert_eq!(class.to_string().parse(), Ok(class));
        }
        assert_eq!("n^1.37".parse(), Ok(Class::Power(1.37)));
        assert!("fast".parse::<Class>().unwrap_err().to_string().contains("`fast`"));
    }

    #[test]
    fn growth_order_is_total_and_places_free_powers() {
        for pair in Class::NAMED.windows(2) {
            assert_eq!(pair[0].cmp_growth(pair[1]), Ordering::Less);
            assert_eq!(pair[1].cmp_growth(pair[0]), Ordering::Greater);
        }
        let above = |a: Class, b: Class| a.cmp_growth(b) == Ordering::Greater;
        assert!(above(Class::Power(1.01), Class::NLogN));
        assert!(above(Class::NLogN, Class::Linear) && above(Class::N15, Class::Power(1.49)));
        assert!(above(Class::Exponential, Class::Power(50.0)) && above(Class::Log, Class::Power(0.0)));
        assert_eq!(Class::Power(2.0).cmp_growth(Class::Quadratic), Ordering::Equal);
        assert_eq!(Class::Power(f64::NAN).cmp_growth(Class::Power(f64::NAN)), Ordering::Equal);
    }

    #[test]
    fn functions_are_never_negative() {
        for class in Class::NAMED {
            for n in [-5.0, 0.0, 0.5, 1.0, 2.0, 1e9] {
                assert!(class.g(n) >= 0.0, "{class} at {n}");
            }
        }
        assert_eq!(Class::NLogN.g(8.0), 24.0);
        assert_eq!(Class::Exponential.g(1e6), f64::INFINITY);
    }
}
