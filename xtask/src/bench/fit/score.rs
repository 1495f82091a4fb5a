//! Answers against truths, and the tables that come of it.

use fit::{Class, Fit, Verdict};

use super::sets::{Set, Truth};

/// What a fitter said about a set, in terms that peers share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    pub class: Option<Class>,
    pub broken: bool,
    pub confident: bool,
    pub confidence: f64,
    pub exponent_ci: Option<[f64; 2]>,
}

impl From<&Fit> for Answer {
    fn from(fit: &Fit) -> Answer {
        Answer {
            class: fit.class,
            broken: !fit.pieces.is_empty(),
            confident: fit.verdict == Verdict::Confident,
            confidence: fit.confidence,
            exponent_ci: fit.class.map(|_| fit.exponent_ci),
        }
    }
}

/// Whether the answer is right: the class, and a break exactly where there is one.
pub fn right(answer: &Answer, truth: Truth) -> bool {
    class_right(answer, truth) && answer.broken == matches!(truth, Truth::Broken(_))
}

/// Whether the class is right: exactly that one, or a free power within 0.06.
fn class_right(answer: &Answer, truth: Truth) -> bool {
    let (Truth::One(class) | Truth::Broken(class)) = truth;
    match (answer.class, class) {
        (Some(Class::Power(found)), Class::Power(k)) => (found - k).abs() <= 0.06,
        (found, class) => found == Some(class),
    }
}

/// Counts over a number of sets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Score {
    pub sets: usize,
    pub right: usize,
    pub confident: usize,
    pub confident_wrong: usize,
    /// Sets whose truth has no break, and how many of them were broken.
    pub unbroken: usize,
    pub false_splits: usize,
    /// Of the confident and wrong ones, those whose class is wrong, and not only the number of regimes.
    pub confident_wrong_class: usize,
    /// Sets with the right class, and all sets, by confidence: up to 0.5, up to 0.9, above.
    pub reliability: [(usize, usize); 3],
    /// Sets whose truth is a plain power above 0 and was found to have one regime, and how many intervals hold it.
    pub powers: usize,
    pub powers_held: usize,
}

impl Score {
    pub fn add(&mut self, set: &Set, answer: &Answer) {
        let right = right(answer, set.truth);
        let unbroken = matches!(set.truth, Truth::One(_));
        self.sets += 1;
        self.right += right as usize;
        self.confident += answer.confident as usize;
        self.confident_wrong += (answer.confident && !right) as usize;
        self.unbroken += unbroken as usize;
        self.false_splits += (unbroken && answer.broken) as usize;
        let class_right = class_right(answer, set.truth);
        self.confident_wrong_class += (answer.confident && !class_right) as usize;
        let bin =
            &mut self.reliability[(answer.confidence > 0.5) as usize + (answer.confidence > 0.9) as usize];
        bin.0 += class_right as usize;
        bin.1 += 1;
        if let (Some(exponent), Some([low, high]), false) = (set.exponent, answer.exponent_ci, answer.broken)
        {
            self.powers += 1;
            self.powers_held += (low <= exponent && exponent <= high) as usize;
        }
    }

    pub fn of<'a>(pairs: impl Iterator<Item = (&'a Set, &'a Answer)>) -> Score {
        let mut score = Score::default();
        pairs.for_each(|(set, answer)| score.add(set, answer));
        score
    }

    pub fn accuracy(&self) -> f64 {
        share(self.right, self.sets)
    }

    pub fn confident_wrong_share(&self) -> f64 {
        share(self.confident_wrong, self.sets)
    }

    pub fn false_split_share(&self) -> f64 {
        share(self.false_splits, self.unbroken)
    }
}

/// `part` of `whole`, 0 of nothing.
pub fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
