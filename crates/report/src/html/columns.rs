//! The page's binary sections: the points and the forecasts of one run.
//!
//! Points: the routines' blocks one after the other, in the order of the analysis; [`block`] says what a block
//! holds. Numbers are LEB128, so that the page can decode one routine when it is looked at, and 500,000 points
//! cost a few megabytes. Sizes past 2^53 lose their last digits in the browser, which draws with doubles.
//!
//! Forecasts: 32-bit floats, little-endian, for each routine that has a forecast: all costs, all shares, all
//! lower ends, all upper ends, one each per factor.
//!
//! The last 10 bits of every float are cleared: four digits are more than a plot or a forecast shows, and the
//! sections pack to half.

use analyse::{Forecast, GrowthAnalysis};
use profile::{Point, Routine};

/// The block has a column of outermost costs, which differ from the sums: the routine recurses.
const RECURSIVE: u8 = 1;
/// The block has the two columns of induced input.
const INDUCED: u8 = 2;

/// The section of points.
pub fn points(analysis: &GrowthAnalysis<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for r in &analysis.routines {
        block(r.routine, &mut out);
    }
    out
}

/// The size of each routine's block, for the page to find it.
pub fn block_bytes(routine: &Routine) -> usize {
    let mut out = Vec::new();
    block(routine, &mut out);
    out.len()
}

/// The section of forecasts.
pub fn forecast(analysis: &GrowthAnalysis<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut column = |forecasts: &[Forecast], field: fn(&Forecast) -> f64| {
        for f in forecasts {
            out.extend_from_slice(&rounded(field(f)));
        }
    };
    for r in analysis.routines.iter().filter(|r| has_forecast(r.forecast.len(), analysis)) {
        column(&r.forecast, |f| f.cost);
        column(&r.forecast, |f| f.share);
        column(&r.forecast, |f| f.share_low);
        column(&r.forecast, |f| f.share_high);
    }
    out
}

/// Whether a routine with this many forecasts is in the section.
pub fn has_forecast(len: usize, analysis: &GrowthAnalysis<'_>) -> bool {
    len > 0 && len == analysis.factors.len()
}

/// One routine's block, column after column, one entry per point:
/// ```text
/// flags  u8
/// n      difference to the point before
/// calls, sum, min, max - min
/// self_sum, self_min, self_max - self_min
/// real_sum                    if RECURSIVE
/// thread_induced, external    if INDUCED
/// variance, self variance     f32, little-endian
/// ```
fn block(routine: &Routine, out: &mut Vec<u8>) {
    let points = &routine.points;
    let recursive = points.iter().any(|p| p.real_sum != p.sum);
    let induced = points.iter().any(|p| p.input.thread_induced != 0 || p.input.external != 0);
    out.push(if recursive { RECURSIVE } else { 0 } | if induced { INDUCED } else { 0 });
    let mut before = 0;
    for p in points {
        leb128(p.n.saturating_sub(before), out);
        before = p.n;
    }
    let mut column = |value: fn(&Point) -> u64| points.iter().for_each(|p| leb128(value(p), out));
    column(|p| p.calls);
    column(|p| p.sum);
    column(|p| p.min);
    column(|p| p.max.saturating_sub(p.min));
    column(|p| p.self_sum);
    column(|p| p.self_min);
    column(|p| p.self_max.saturating_sub(p.self_min));
    if recursive {
        column(|p| p.real_sum);
    }
    if induced {
        column(|p| p.input.thread_induced);
        column(|p| p.input.external);
    }
    for p in points {
        out.extend_from_slice(&rounded(variance(p.calls, p.sum, p.sumsq)));
    }
    for p in points {
        out.extend_from_slice(&rounded(variance(p.calls, p.self_sum, p.self_sumsq)));
    }
}

/// A 32-bit float, little-endian, of four digits.
fn rounded(value: f64) -> [u8; 4] {
    ((value as f32).to_bits() & !0x3ff).to_le_bytes()
}

/// Population variance. Exact before the one division where 128 bits suffice: with doubles alone the difference
/// of two large squares is noise, and a routine of constant cost would seem to scatter.
fn variance(calls: u64, sum: u64, sumsq: u128) -> f64 {
    if calls == 0 {
        return 0.0;
    }
    let square = u128::from(sum) * u128::from(sum);
    match sumsq.checked_mul(u128::from(calls)) {
        Some(scaled) => scaled.saturating_sub(square) as f64 / (calls as f64 * calls as f64),
        None => {
            let mean = sum as f64 / calls as f64;
            (sumsq as f64 / calls as f64 - mean * mean).max(0.0)
        }
    }
}

fn leb128(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_leb128() {
        let mut out = Vec::new();
        for v in [0, 127, 128, 300, u64::MAX] {
            leb128(v, &mut out);
        }
        let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(out, [&[0, 127, 0x80, 1, 0xac, 2][..], &max].concat());
    }

    #[test]
    fn equal_costs_have_no_variance_however_large() {
        let cost = 123_456_789_012_u64;
        assert_eq!(variance(3, 3 * cost, 3 * u128::from(cost) * u128::from(cost)), 0.0);
        assert_eq!(variance(2, 4, 10), 1.0);
        assert_eq!(variance(0, 0, 0), 0.0);
        assert!(variance(u64::MAX, u64::MAX, u128::MAX).is_finite());
    }

    #[test]
    fn a_block_has_the_documented_columns() {
        let point = |n, real_sum| Point {
            n,
            calls: 2,
            min: 10,
            max: 14,
            sum: 24,
            sumsq: 296,
            real_sum,
            self_sum: 6,
            self_min: 3,
            self_max: 3,
            self_sumsq: 18,
            ..Point::default()
        };
        let mut routine = Routine { points: vec![point(5, 24), point(9, 24)], ..Routine::default() };
        let mut out = Vec::new();
        block(&routine, &mut out);
        assert_eq!(out[..17], [0, 5, 4, 2, 2, 24, 24, 10, 10, 4, 4, 6, 6, 3, 3, 0, 0]);
        assert_eq!(out[17..21], 4.0_f32.to_le_bytes());
        assert_eq!(out.len(), 17 + 16);
        assert_eq!(block_bytes(&routine), out.len());
        routine.points[0].real_sum = 0;
        routine.points[1].input.external = 7;
        out.clear();
        block(&routine, &mut out);
        assert_eq!(out[0], RECURSIVE | INDUCED);
        assert_eq!(out[17..23], [0, 24, 0, 0, 0, 7]);
    }
}
