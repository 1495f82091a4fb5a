//! Input-sensitive profiles: per routine, its costs grouped by the size of the input that it really got.

/// What the size of an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Read memory size: distinct cells first accessed with a read (seed definition 1).
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
    /// The routines, ordered by (object, address, name).
    pub routines: Vec<Routine>,
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
    /// The performance points, strictly ascending in `n`.
    pub points: Vec<Point>,
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

impl Point {
    /// Mean cost of an activation.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.calls as f64
    }

    /// Variance of the costs of activations (population variance, as seed 001 plots it).
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

impl Routine {
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
