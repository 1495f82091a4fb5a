//! What the user should look at first.
//!
//! A routine matters for what it is or will be of the whole (its largest share today, at 10 and at 100
//! times the input), more when it grows faster than n log n, less when we are less sure.

use fit::{Class, Verdict};

use crate::growth::RoutineAnalysis;

/// Factors of the input that the ranking looks at.
const HORIZONS: [f64; 3] = [1.0, 10.0, 100.0];

pub(crate) fn order(routines: &mut [RoutineAnalysis<'_>], factors: &[f64]) {
    let horizons: Vec<usize> =
        HORIZONS.iter().filter_map(|h| factors.iter().position(|f| (f / h - 1.0).abs() < 1e-9)).collect();
    for routine in routines.iter_mut() {
        routine.score = score(routine, &horizons);
    }
    routines.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then(b.cost_self.cmp(&a.cost_self))
            .then_with(|| identity(a).cmp(&identity(b)))
    });
}

fn identity<'p>(r: &RoutineAnalysis<'p>) -> (&'p str, Option<u64>, &'p str) {
    (&r.routine.object, r.routine.address, &r.routine.mangled)
}

fn score(routine: &RoutineAnalysis<'_>, horizons: &[usize]) -> f64 {
    let future = horizons.iter().filter_map(|&i| routine.forecast.get(i)).map(|f| f.share);
    let importance = future.fold(routine.share, f64::max);
    importance * growth_weight(routine) * verdict_weight(routine.fit.verdict)
}

fn growth_weight(routine: &RoutineAnalysis<'_>) -> f64 {
    let Some(class) = routine.fit.class else { return 0.1 };
    if routine.is_superlinear() {
        1.0
    } else if class.cmp_growth(Class::Linear).is_ge() {
        0.35
    } else {
        0.2
    }
}

fn verdict_weight(verdict: Verdict) -> f64 {
    match verdict {
        Verdict::Confident => 1.0,
        Verdict::Tentative => 0.6,
        Verdict::Unknown => 1.0, // already charged for by the missing class
    }
}
