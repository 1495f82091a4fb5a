//! What could not be read, as sentences for the user. Partial data is normal, silence about it is not.

use std::sync::Mutex;

/// A damaged file could complain at every address; nobody reads more than this.
const KEPT_MAX: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Problems(Mutex<Vec<String>>);

impl Problems {
    pub(crate) fn add(&self, problem: impl Into<String>) {
        let problem = problem.into();
        let mut kept = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if kept.len() < KEPT_MAX && !kept.contains(&problem) {
            kept.push(problem);
        }
    }

    pub(crate) fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}
