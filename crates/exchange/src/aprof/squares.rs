//! Sums of squares that wrapped.
//!
//! aprof adds squares in 64 bits, which wrap as soon as one activation costs 2^32. What is lost is a multiple of
//! 2^64, and the other columns say where the sum must lie: for costs between `min` and `max`, both reached,
//! ```text
//! sum of squares >= min^2 + max^2 + the least that `calls - 2` numbers of the remaining sum can have
//! sum of squares <= (min + max) sum - calls min max          (every cost c: (c - min)(max - c) >= 0)
//! ```
//! Often only one multiple of 2^64 fits, and the sum is known again.

/// The columns that bound a sum of squares.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// Activations.
    pub calls: u64,
    /// Least cost.
    pub min: u64,
    /// Largest cost.
    pub max: u64,
    /// Sum of costs.
    pub sum: u64,
}

/// A sum of squares after a second look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Squares {
    /// As reported, or restored without doubt.
    Sure(u128),
    /// Several multiples of 2^64 fit; this is the least.
    Least(u128),
}

/// Restores a reported sum of squares.
pub fn restore(reported: u128, costs: Costs) -> Squares {
    const WRAP: u128 = 1 << 64;
    let Some((least, most)) = bounds(costs) else {
        return Squares::Sure(reported); // contradictory costs: nothing to go by
    };
    // A merge tool that adds squares as floating-point numbers rounds them: that is no wrapping.
    let rounded = reported + (reported >> 50) >= least;
    if reported >= WRAP || most < WRAP {
        return Squares::Sure(reported);
    }
    let missing = if rounded { 0 } else { (least - reported).div_ceil(WRAP) * WRAP };
    let restored = reported + missing;
    if restored > most && missing > 0 {
        Squares::Sure(reported) // no multiple fits: wrong in some other way
    } else if restored + WRAP <= most {
        Squares::Least(restored)
    } else {
        Squares::Sure(restored)
    }
}

/// The least and the most that the sum of squares can be; `None` when the costs contradict each other or are too
/// large to tell.
fn bounds(Costs { calls, min, max, sum }: Costs) -> Option<(u128, u128)> {
    let [calls, min, max, sum] = [calls, min, max, sum].map(u128::from);
    if calls == 1 {
        return (min == max && max == sum).then_some((min * min, min * min));
    }
    let between = calls.checked_sub(2)?;
    let rest = sum.checked_sub(min + max)?;
    if rest < between * min || rest > between * max {
        return None;
    }
    let least_between = match rest.checked_div(between) {
        None => 0,
        Some(each) => {
            let over = rest % between;
            let lower = (between - over).checked_mul(each * each)?;
            lower.checked_add(over.checked_mul((each + 1).checked_mul(each + 1)?)?)?
        }
    };
    let least = (min * min).checked_add(max * max)?.checked_add(least_between)?;
    let most = (min + max).checked_mul(sum)?.checked_sub(calls.checked_mul(min)?.checked_mul(max)?)?;
    (most < u128::MAX / 2).then_some((least, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(costs: &[u64]) -> (Costs, u128) {
        let costs_of = Costs {
            calls: costs.len() as u64,
            min: *costs.iter().min().unwrap(),
            max: *costs.iter().max().unwrap(),
            sum: costs.iter().sum(),
        };
        (costs_of, costs.iter().map(|&c| u128::from(c) * u128::from(c)).sum())
    }

    proptest! {
        #[test]
        fn what_is_sure_is_right_and_what_is_not_is_a_lower_bound(
            costs in prop::collection::vec(1u64..1 << 40, 1..6)
        ) {
            let (known, truth) = of(&costs);
            match restore(truth & u128::from(u64::MAX), known) {
                Squares::Sure(found) => prop_assert_eq!(found, truth),
                Squares::Least(found) => prop_assert!(found <= truth),
            }
        }

        #[test]
        fn what_did_not_wrap_is_left_alone(costs in prop::collection::vec(any::<u32>(), 1..6)) {
            let costs: Vec<u64> = costs.into_iter().map(u64::from).collect();
            let (known, truth) = of(&costs);
            let (Squares::Sure(found) | Squares::Least(found)) = restore(truth, known);
            prop_assert_eq!(found, truth);
        }
    }

    #[test]
    fn one_and_two_calls_are_always_restored() {
        for costs in [&[1u64 << 33][..], &[1 << 40, (1 << 40) + 12_345]] {
            let (known, truth) = of(costs);
            assert_eq!(restore(truth & u128::from(u64::MAX), known), Squares::Sure(truth));
        }
    }

    #[test]
    fn contradictions_and_rounding_are_left_alone() {
        let costs = Costs { calls: 3, min: 10, max: 5, sum: 2 };
        assert_eq!(restore(7, costs), Squares::Sure(7));
        // Three equal costs whose squares were added as floating-point numbers.
        let (known, truth) = of(&[3_000_000_001; 2]);
        let rounded = truth as f64 as u128;
        assert!(rounded < truth);
        assert_eq!(restore(rounded, known), Squares::Sure(rounded));
        let huge = Costs { calls: u64::MAX, min: 0, max: u64::MAX, sum: u64::MAX };
        let _ = restore(0, huge);
    }
}
