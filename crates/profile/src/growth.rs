//! Input-sensitive profiles: per routine, its costs grouped by the size of the input that it really got.
//!
//! The terms are those of Coppa, Demetrescu and Finocchi, "Input-Sensitive Profiling" (PLDI 2012).
//! A [`Growth`] has one canonical form, stated field by field below: [`Growth::validate`](Growth::validate)
//! checks it and [`Growth::normalize`](Growth::normalize) brings any data into it (both in `canon.rs`).
//! Nothing here may average, round or drop: a point is a sum over activations, and sums only ever add.

/// What the size of an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Read memory size: distinct cells first accessed with a read (PLDI 2012, definition 1).
    Rms,
    /// Threaded read memory size: also counts cells that other threads or the kernel wrote since.
    Trms,
}

/// What a cost counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cost {
    /// Executed basic blocks.
    Blocks,
    /// Executed instructions.
    Instructions,
    /// Loads and stores.
    MemoryAccesses,
    /// Nanoseconds.
    TimeNs,
}

/// A growth profile: everything one run says about how costs grow.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// Meaning of [`Point::n`].
    pub metric: Metric,
    /// Meaning of all costs.
    pub cost: Cost,
    /// Bytes per memory cell: sizes count cells.
    pub cell_bytes: u32,
    /// Cost of the whole run; 0 when not known.
    pub cost_total: u64,
    /// Largest relative error of sizes that merging neighbouring points brought in; 0 when sizes are exact.
    pub size_error: f64,
    /// The threads and what each cost, ascending in id; empty when the source of the data does not say.
    pub threads: Vec<ThreadCost>,
    /// The routines, ordered by (object, address, name, mangled name), no two of the same identity.
    pub routines: Vec<Routine>,
}

/// The cost of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadCost {
    /// The thread's id.
    pub id: u64,
    /// Its cost from start to end; 0 when not known.
    pub cost_total: u64,
}

/// One routine of one object. Identity is (object, address), or (object, mangled name) when the source of
/// the data knows no addresses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Routine {
    /// Readable (demangled) name.
    pub name: String,
    /// Linker name; equal to `name` when there is nothing to demangle.
    pub mangled: String,
    /// Path of the executable or library that holds it.
    pub object: String,
    /// Address inside the object; `None` when not known.
    pub address: Option<u64>,
    /// Source file, empty when not known.
    pub file: String,
    /// Source line, 0 when not known.
    pub line: u32,
    /// Ids of the threads that ran it, ascending.
    pub threads: Vec<u64>,
    /// The performance points, strictly ascending in `n`, each of at least one activation.
    pub points: Vec<Point>,
    /// The same points kept apart by thread, ascending in thread: either empty (not kept apart), or adding
    /// them all gives `points`.
    pub by_thread: Vec<ThreadPoints>,
}

/// What one thread contributed to a routine's points.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadPoints {
    /// The thread's id, one of [`Routine::threads`].
    pub thread: u64,
    /// Its points, strictly ascending in `n`.
    pub points: Vec<Point>,
}

/// What makes two routines one. Borrowed from the routine; see [`Routine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity<'a> {
    /// Object and address.
    Address(&'a str, u64),
    /// Object and linker name, where no address is known.
    Name(&'a str, &'a str),
}

/// All activations of a routine on inputs of one size. Costs are cumulative (callees included) unless they
/// say self.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Point {
    /// Input size in cells.
    pub n: u64,
    /// Activations.
    pub calls: u64,
    /// Cheapest activation.
    pub min: u64,
    /// Dearest activation.
    pub max: u64,
    /// Sum of costs.
    pub sum: u64,
    /// Sum of squared costs.
    pub sumsq: u128,
    /// Sum of costs of outermost activations only: a recursion is counted once.
    pub real_sum: u64,
    /// Sum of self costs.
    pub self_sum: u64,
    /// Smallest self cost.
    pub self_min: u64,
    /// Largest self cost.
    pub self_max: u64,
    /// Sum of squared self costs.
    pub self_sumsq: u128,
    /// What the inputs consisted of.
    pub input: Composition,
}

/// Where the cells of an input came from, summed over activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Composition {
    /// Cells that other threads had written since this thread last touched them, descendants included.
    pub thread_induced: u64,
    /// Cells that the kernel had written (system calls), descendants included.
    pub external: u64,
    /// The same as `thread_induced`, read by the routine itself.
    pub self_thread_induced: u64,
    /// The same as `external`, read by the routine itself.
    pub self_external: u64,
}

impl Growth {
    /// A profile without routines.
    pub fn new(metric: Metric, cost: Cost, cell_bytes: u32) -> Self {
        Self {
            metric,
            cost,
            cell_bytes,
            cost_total: 0,
            size_error: 0.0,
            threads: Vec::new(),
            routines: Vec::new(),
        }
    }

    /// Number of points of all routines.
    pub fn points(&self) -> usize {
        self.routines.iter().map(|r| r.points.len()).sum()
    }
}

impl Point {
    /// The point of a single activation.
    pub fn single(n: u64, cost: u64, self_cost: u64) -> Self {
        let square = |x: u64| u128::from(x) * u128::from(x);
        Self {
            n,
            calls: 1,
            min: cost,
            max: cost,
            sum: cost,
            sumsq: square(cost),
            real_sum: cost,
            self_sum: self_cost,
            self_min: self_cost,
            self_max: self_cost,
            self_sumsq: square(self_cost),
            input: Composition::default(),
        }
    }

    /// Adds the activations of `other`, whose size is the same. Sums stop at the largest number instead of
    /// wrapping, which keeps adding commutative and associative.
    pub fn absorb(&mut self, other: &Point) {
        debug_assert_eq!(self.n, other.n);
        self.calls = self.calls.saturating_add(other.calls);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.sumsq = self.sumsq.saturating_add(other.sumsq);
        self.real_sum = self.real_sum.saturating_add(other.real_sum);
        self.self_sum = self.self_sum.saturating_add(other.self_sum);
        self.self_min = self.self_min.min(other.self_min);
        self.self_max = self.self_max.max(other.self_max);
        self.self_sumsq = self.self_sumsq.saturating_add(other.self_sumsq);
        self.input.absorb(&other.input);
    }

    /// Mean cost of an activation.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.calls as f64
    }

    /// Variance of the costs of activations (population variance, as the PLDI 2012 paper plots it).
    pub fn variance(&self) -> f64 {
        let calls = self.calls as f64;
        let mean = self.mean();
        (self.sumsq as f64 / calls - mean * mean).max(0.0)
    }

    /// Mean self cost of an activation.
    pub fn self_mean(&self) -> f64 {
        self.self_sum as f64 / self.calls as f64
    }

    /// Variance of the self costs of activations.
    pub fn self_variance(&self) -> f64 {
        let mean = self.self_mean();
        (self.self_sumsq as f64 / self.calls as f64 - mean * mean).max(0.0)
    }

    /// Cells read first by the routine that were neither thread-induced nor external, over all activations.
    pub fn first_reads(&self) -> u64 {
        let total = self.n.saturating_mul(self.calls);
        total.saturating_sub(self.input.thread_induced).saturating_sub(self.input.external)
    }
}

impl Composition {
    fn absorb(&mut self, other: &Composition) {
        self.thread_induced = self.thread_induced.saturating_add(other.thread_induced);
        self.external = self.external.saturating_add(other.external);
        self.self_thread_induced = self.self_thread_induced.saturating_add(other.self_thread_induced);
        self.self_external = self.self_external.saturating_add(other.self_external);
    }
}

impl Routine {
    /// What tells this routine from others, of this run and of other runs of the same build.
    pub fn identity(&self) -> Identity<'_> {
        match self.address {
            Some(address) => Identity::Address(&self.object, address),
            None => Identity::Name(&self.object, &self.mangled),
        }
    }

    /// Activations on inputs of all sizes.
    pub fn calls(&self) -> u64 {
        self.points.iter().map(|p| p.calls).fold(0, u64::saturating_add)
    }

    /// Cumulative cost where recursion counts once; at most the cost of the run.
    pub fn cost_total(&self) -> u64 {
        self.points.iter().map(|p| p.real_sum).fold(0, u64::saturating_add)
    }

    /// Cost without callees.
    pub fn cost_self(&self) -> u64 {
        self.points.iter().map(|p| p.self_sum).fold(0, u64::saturating_add)
    }
}
