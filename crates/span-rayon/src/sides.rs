//! What the two sides of a fork do, beside the fork: each is taken by one thread. The real crate then moves one pointer, which
//! the processor finds as it was written; two, written one by one and read as one, would make it wait.

use core::cell::UnsafeCell;

/// How the sides of a fork are run.
pub trait Run {
    /// The first side.
    fn first<R>(&self, f: impl FnOnce() -> R) -> R;
    /// The second one.
    fn second<R>(&self, f: impl FnOnce() -> R) -> R;
}

/// A fork and its sides.
pub struct Sides<'a, F, A, B> {
    fork: &'a F,
    a: UnsafeCell<Option<A>>,
    b: UnsafeCell<Option<B>>,
}

// SAFETY: each side is taken once, by whoever runs it.
unsafe impl<F: Sync, A: Send, B: Send> Sync for Sides<'_, F, A, B> {}

impl<'a, F: Run, A, B> Sides<'a, F, A, B> {
    #[inline(always)]
    pub fn new(fork: &'a F, a: A, b: B) -> Self {
        Sides { fork, a: UnsafeCell::new(Some(a)), b: UnsafeCell::new(Some(b)) }
    }

    /// Runs the first side: what it does is given to `run`.
    ///
    /// # Safety
    /// Called once.
    #[inline(always)]
    pub unsafe fn first<R>(&self, run: impl FnOnce(A) -> R) -> R {
        // SAFETY: by contract, nobody else takes it.
        match unsafe { &mut *self.a.get() }.take() {
            Some(a) => self.fork.first(|| run(a)),
            None => unreachable!("a side runs once"),
        }
    }

    /// Runs the second side.
    ///
    /// # Safety
    /// Called once.
    #[inline(always)]
    pub unsafe fn second<R>(&self, run: impl FnOnce(B) -> R) -> R {
        // SAFETY: by contract, nobody else takes it.
        match unsafe { &mut *self.b.get() }.take() {
            Some(b) => self.fork.second(|| run(b)),
            None => unreachable!("a side runs once"),
        }
    }
}
