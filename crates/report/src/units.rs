//! Numbers as people read them: three digits and a unit.

/// `12.3 k`, `4.56 M`: counts with SI prefixes.
pub(crate) fn count(x: u64) -> String {
    si(x as f64)
}

/// Every digit, with a comma every three.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// Three significant digits with an SI prefix.
pub(crate) fn si(x: f64) -> String {
    const PREFIXES: [&str; 7] = ["", " k", " M", " G", " T", " P", " E"];
    if !x.is_finite() {
        return "?".into();
    }
    let mut x = x;
    let mut prefix = 0;
    while x.abs() >= 999.5 && prefix + 1 < PREFIXES.len() {
        x /= 1000.0;
        prefix += 1;
    }
    let whole = prefix == 0 && x.fract() == 0.0;
    let digits = if whole || x.abs() >= 99.95 {
        0
    } else if x.abs() >= 9.995 {
        1
    } else {
        2
    };
    format!("{x:.digits$}{}", PREFIXES[prefix])
}

/// A share as a percentage: `84 %`, `3.1 %`, `<0.1 %`.
pub(crate) fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p <= 0.0 {
        "0 %".into()
    } else if p < 0.1 {
        "<0.1 %".into()
    } else if p < 9.95 {
        format!("{p:.1} %")
    } else {
        format!("{p:.0} %")
    }
}

/// A duration in nanoseconds: `1.23 s`, `45.6 ms`.
pub(crate) fn duration(ns: u64) -> String {
    let ns = ns as f64;
    if ns >= 1e9 {
        format!("{:.2} s", ns / 1e9)
    } else if ns >= 1e6 {
        format!("{:.1} ms", ns / 1e6)
    } else {
        format!("{:.0} µs", ns / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_prefix() {
        for (x, expected) in [
            (0.0, "0"),
            (7.0, "7"),
            (999.0, "999"),
            (999.6, "1.00 k"),
            (1234.0, "1.23 k"),
            (12_345.0, "12.3 k"),
            (123_456.0, "123 k"),
            (4.5e9, "4.50 G"),
        ] {
            assert_eq!(si(x), expected);
        }
    }

    #[test]
    fn digits_are_grouped() {
        for (n, expected) in [(7, "7"), (1234, "1,234"), (100_000, "100,000"), (1_000_000, "1,000,000")] {
            assert_eq!(grouped(n), expected);
        }
    }

    #[test]
    fn small_shares_do_not_become_zero() {
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.0002), "<0.1 %");
        assert_eq!(percent(0.031), "3.1 %");
        assert_eq!(percent(0.843), "84 %");
    }
}
