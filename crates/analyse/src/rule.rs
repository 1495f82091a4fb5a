//! The complexity gate: rules such as `parse_*: n log n`, and what a profile says about them.
//!
//! A rule fails only on a confident fit that is worse than the class it names; what cannot be judged is
//! said to be so. The same data always give the same answer.

use std::str::FromStr;

use fit::{Class, Verdict};

use crate::growth::{GrowthAnalysis, RoutineAnalysis};

/// `PATTERN: CLASS`: routines whose name matches the pattern must not grow faster than the class.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Glob on the readable or the linker name: `*` any characters, `?` one character.
    pub pattern: String,
    /// The bound.
    pub class: Class,
}

/// Why a rule cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleError {
    /// There is no `:` with a class behind it.
    NoClass(String),
    /// What stands behind the last `:` is not a class.
    BadClass {
        /// The rule.
        rule: String,
        /// What stands there.
        found: String,
    },
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const CLASSES: &str = "1, log n, sqrt n, n, n log n, n^1.5, n^2, n^2 log n, n^3, 2^n or n^K";
        match self {
            RuleError::NoClass(rule) => {
                write!(f, "rule {rule:?} names no class: write 'PATTERN: CLASS' with CLASS one of {CLASSES}")
            }
            RuleError::BadClass { rule, found } => {
                write!(f, "{found:?} in rule {rule:?} is not a class: use one of {CLASSES}")
            }
        }
    }
}

impl std::error::Error for RuleError {}

impl FromStr for Rule {
    type Err = RuleError;

    /// The class stands behind the *last* colon, since names have colons of their own.
    fn from_str(rule: &str) -> Result<Self, RuleError> {
        let (pattern, class) = rule.rsplit_once(':').ok_or_else(|| RuleError::NoClass(rule.into()))?;
        let pattern = pattern.trim();
        if pattern.is_empty() || class.trim().is_empty() {
            return Err(RuleError::NoClass(rule.into()));
        }
        let class = Class::parse(class.trim())
            .ok_or_else(|| RuleError::BadClass { rule: rule.into(), found: class.trim().into() })?;
        Ok(Rule { pattern: pattern.into(), class })
    }
}

/// What a profile says about one routine under one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Grows as the rule allows, or slower.
    Pass,
    /// Confidently grows faster.
    Fail,
    /// Cannot be judged.
    NotEnoughData,
}

/// One routine judged by one rule.
#[derive(Debug, Clone)]
pub struct Finding<'a, 'p> {
    /// The routine.
    pub routine: &'a RoutineAnalysis<'p>,
    /// The judgement.
    pub outcome: Outcome,
}

impl Rule {
    /// Whether the rule speaks of this routine.
    pub fn matches(&self, routine: &RoutineAnalysis<'_>) -> bool {
        glob(&self.pattern, &routine.routine.name) || glob(&self.pattern, &routine.routine.mangled)
    }

    /// Judges all routines that the rule speaks of, in the analysis' order.
    pub fn judge<'a, 'p>(&self, analysis: &'a GrowthAnalysis<'p>) -> Vec<Finding<'a, 'p>> {
        let matching = analysis.routines.iter().filter(|r| self.matches(r));
        matching.map(|routine| Finding { routine, outcome: self.outcome(routine) }).collect()
    }

    fn outcome(&self, routine: &RoutineAnalysis<'_>) -> Outcome {
        let Some(found) = routine.fit.class else { return Outcome::NotEnoughData };
        let worse = found.cmp_growth(self.class).is_gt();
        match routine.fit.verdict {
            Verdict::Confident if worse => Outcome::Fail,
            Verdict::Confident => Outcome::Pass,
            Verdict::Tentative | Verdict::Unknown => Outcome::NotEnoughData,
        }
    }
}

/// Names nearest to a pattern that matched nothing, for the message.
pub fn suggestions<'a>(pattern: &str, analysis: &'a GrowthAnalysis<'_>) -> Vec<&'a str> {
    const SUGGESTIONS_MAX: usize = 3;
    let wanted: String = pattern.chars().filter(|c| !"*?".contains(*c)).collect::<String>().to_lowercase();
    let close = |name: &str| {
        let name = name.to_lowercase();
        !wanted.is_empty() && (name.contains(&wanted) || (name.len() > 2 && wanted.contains(&name)))
    };
    let names = analysis.routines.iter().map(|r| r.routine.name.as_str());
    names.filter(|name| close(name)).take(SUGGESTIONS_MAX).collect()
}

/// Matches `text` against `pattern` with `*` and `?`, in linear space and O(pattern · text) time.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                // The last star swallows one more character; earlier stars never need to.
                Some((at, swallowed)) => {
                    star = Some((at, swallowed + 1));
                    p = at + 1;
                    t = swallowed + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        let cases = [
            ("parse_*", "parse_line", true),
            ("parse_*", "reparse_line", false),
            ("*parse*", "reparse_line", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "", true),
            ("a*b*c", "a-b-b-d", false),
            ("a*b*c", "a-b-b-c", true),
            ("std::vec::Vec<*>::push", "std::vec::Vec<u8>::push", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(glob(pattern, text), expected, "{pattern:?} on {text:?}");
        }
    }

    #[test]
    fn a_rule_is_split_at_its_last_colon() {
        let rule: Rule = "std::vec::Vec<*>::push: n log n".parse().unwrap();
        assert_eq!(rule, Rule { pattern: "std::vec::Vec<*>::push".into(), class: Class::NLogN });
    }

    #[test]
    fn bad_rules_say_what_is_wrong() {
        for (rule, expected) in [
            ("parse", "names no class"),
            (": n", "names no class"),
            ("parse:", "names no class"),
            ("parse: fast", "\"fast\" in rule"),
        ] {
            let error = rule.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(expected), "{rule:?} gave {error:?}");
        }
    }
}
