//! Natural logarithms of many numbers at once.
//!
//! Fitting takes a logarithm of every point in every round. One at a time they are a sixth of its time; without a
//! branch or a table the compiler makes several of them side by side. The method is that of the C libraries: with
//! `x = 2^k·m`, `m` near 1 and `s = (m − 1)/(m + 1)`, `ln m = 2s + s³·R(s²)` with a polynomial R; the error is below
//! one unit in the last place.

/// Coefficients of R, of even and of odd powers.
const EVEN: [f64; 3] = [0.399_999_999_994_094_2, 0.222_221_984_321_497_84, 0.153_138_376_992_093_73];
const ODD: [f64; 4] =
    [0.666_666_666_666_673_5, 0.285_714_287_436_623_9, 0.181_835_721_616_180_5, 0.147_981_986_051_165_86];
/// ln 2 in two parts: the first times a small whole number is exact.
const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// √½, and how far 1 is above it, as bits.
const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
const TO_ONE: u64 = 0x3ff0_0000_0000_0000 - ROOT_HALF;
const MANTISSA: u64 = (1 << 52) - 1;
/// 2^52 as bits: a whole number in its last bits is added to it.
const WHOLE: u64 = 0x4330_0000_0000_0000;
/// The value of those bits, and the bias of an exponent.
const WHOLE_AND_BIAS: f64 = 4_503_599_627_370_496.0 + 1023.0;

/// The natural logarithm of a positive, normal number; anything for others.
#[inline(always)]
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.to_bits().wrapping_add(TO_ONE);
    let k = f64::from_bits(bits >> 52 | WHOLE) - WHOLE_AND_BIAS;
    let f = f64::from_bits((bits & MANTISSA) + ROOT_HALF) - 1.0;
    let half = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (EVEN[0] + w * (EVEN[1] + w * EVEN[2]));
    let odd = z * (ODD[0] + w * (ODD[1] + w * (ODD[2] + w * ODD[3])));
    s * (half + even + odd) + k * LN2_LOW - half + f + k * LN2_HIGH
}

#[cfg(test)]
mod tests {
    use super::ln;
    use proptest::prelude::*;

    fn agrees(x: f64) -> bool {
        let (ours, theirs) = (ln(x), x.ln());
        (ours - theirs).abs() <= 4e-16 * theirs.abs().max(1e-300)
    }

    #[test]
    fn at_the_edges_of_its_pieces() {
        assert_eq!(ln(1.0), 0.0);
        let root = f64::from_bits(super::ROOT_HALF);
        for x in [1.0, root, 2.0 * root, 0.5, 2.0, 1e-300, 1e300, f64::MIN_POSITIVE, f64::MAX] {
            for x in [x, x.next_up().min(f64::MAX), x.next_down().max(f64::MIN_POSITIVE)] {
                assert!(agrees(x), "{x:e}: {:e} {:e}", ln(x), x.ln());
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_library(bits in f64::MIN_POSITIVE.to_bits()..=f64::MAX.to_bits(), near in 0.5f64..2.0) {
            prop_assert!(agrees(f64::from_bits(bits)));
            prop_assert!(agrees(near));
        }
    }
}
