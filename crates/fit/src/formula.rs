//! Curves as people write them: `120 + 7·n`.

use std::fmt::Write;

use crate::class::Class;
use crate::growth::{Piece, Term};

/// `120 + 7·n`: three significant digits, zero terms left out, signs folded into the operator.
pub fn curve(terms: &[Term]) -> String {
    let mut text = String::new();
    for term in terms {
        let magnitude = term.coefficient.abs();
        if magnitude == 0.0 {
            continue;
        }
        let negative = term.coefficient < 0.0;
        text.push_str(match (text.is_empty(), negative) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        });
        let factor = number(magnitude);
        match term.class {
            Class::Constant => text.push_str(&factor),
            _ if factor == "1" => text.push_str(&function(term)),
            _ => {
                let _ = write!(text, "{factor}·{}", function(term));
            }
        }
    }
    if text.is_empty() { "0".to_string() } else { text }
}

/// `120 + 7·n (n < 1000); 0.5·n^2 (n >= 1000)`.
pub fn pieces(pieces: &[Piece]) -> String {
    let mut text = String::new();
    for (i, piece) in pieces.iter().enumerate() {
        if i > 0 {
            text.push_str("; ");
        }
        text.push_str(&curve(&piece.terms));
        let _ = match pieces.get(i + 1) {
            Some(next) => write!(text, " (n < {})", number(next.from)),
            None => write!(text, " (n >= {})", number(piece.from)),
        };
    }
    text
}

/// Three significant digits; powers of ten only where plain digits would be hard to count.
pub fn number(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    // Formatting to three digits first makes 999.9 a 1000 and not a "1000." with too many digits.
    let scientific = format!("{x:.2e}");
    let Some((digits, power)) = scientific.split_once('e') else { return scientific };
    let power: i32 = power.parse().unwrap_or(0);
    if !(-3..=6).contains(&power) {
        return format!("{}e{power}", trim(digits));
    }
    let rounded: f64 = scientific.parse().unwrap_or(x);
    trim(&format!("{rounded:.*}", (2 - power).max(0) as usize)).to_string()
}

fn trim(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

fn function(term: &Term) -> String {
    if term.class == Class::Exponential && term.rate != 1.0 {
        return format!("{}^n", number(term.rate.exp2()));
    }
    if term.shift == 0.0 {
        return term.class.to_string();
    }
    let m = format!("(n - {})", number(term.shift));
    match term.class {
        Class::Linear => m,
        Class::Log => format!("log {m}"),
        Class::Sqrt => format!("sqrt {m}"),
        Class::NLogN => format!("{m} log {m}"),
        Class::N2LogN => format!("{m}^2 log {m}"),
        other => other.to_string().replacen('n', &m, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        for (x, text) in [
            (120.0, "120"),
            (7.0, "7"),
            (0.5, "0.5"),
            (1.2345, "1.23"),
            (12345.0, "12300"),
            (999.9, "1000"),
            (0.0012345, "0.00123"),
            (0.00012345, "1.23e-4"),
            (1234567.0, "1230000"),
            (2.0e9, "2e9"),
            (0.0, "0"),
        ] {
            assert_eq!(number(x), text);
        }
    }

    #[test]
    fn curves_read_like_formulas() {
        let term = |class, coefficient, shift| Term { shift, ..Term::new(class, coefficient) };
        let one = |c| term(Class::Constant, c, 0.0);
        for (terms, text) in [
            (vec![one(120.0), term(Class::Linear, 7.0, 0.0)], "120 + 7·n"),
            (vec![one(0.0), term(Class::Linear, 1.0, 0.0)], "n"),
            (
                vec![one(3.0), term(Class::Linear, -0.5, 0.0), term(Class::Quadratic, 0.5, 0.0)],
                "3 - 0.5·n + 0.5·n^2",
            ),
            (vec![term(Class::Linear, -2.0, 0.0), term(Class::NLogN, 3.0, 0.0)], "-2·n + 3·n log n"),
            (vec![one(100.0), term(Class::Quadratic, 0.5, 1000.0)], "100 + 0.5·(n - 1000)^2"),
            (vec![term(Class::NLogN, 2.0, 10.0)], "2·(n - 10) log (n - 10)"),
            (
                vec![one(2.0), Term { rate: 1.5f64.log2(), ..Term::new(Class::Exponential, 3.0) }],
                "2 + 3·1.5^n",
            ),
            (vec![one(0.0)], "0"),
        ] {
            assert_eq!(curve(&terms), text);
        }
    }
}
