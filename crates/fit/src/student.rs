//! Student's t distribution, as far as 95 % intervals need it.

/// The 97.5 % quantile for `freedom` degrees of freedom, at least 1.
///
/// Cornish-Fisher expansion in 1/freedom; the few values for which that is too rough are tabulated.
pub(crate) fn quantile(freedom: f64) -> f64 {
    const FEW: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
    if freedom.is_nan() || freedom < 4.5 {
        return FEW[(freedom.round().max(1.0) as usize - 1).min(3)];
    }
    let z: f64 = 1.959_964;
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn agrees_with_printed_tables() {
        for (freedom, t) in
            [(1.0, 12.706), (4.0, 2.776), (5.0, 2.571), (10.0, 2.228), (30.0, 2.042), (1e6, 1.96)]
        {
            assert!((quantile(freedom) - t).abs() < 0.006, "{freedom}: {}", quantile(freedom));
        }
        assert_eq!(quantile(f64::NAN), 12.706);
    }
}
