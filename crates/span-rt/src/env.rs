//! What the tool tells the runtime: environment variables, read once.

use std::sync::OnceLock;

/// Folder for the record.
pub const OUT: &str = "FARSIGHT_SPAN_OUT";
/// What a fork costs when the task is really taken by another worker, in nanoseconds.
pub const BURDEN: &str = "FARSIGHT_SPAN_BURDEN";
/// As many processors as parallel iterators shall believe in.
pub const MODEL_CORES: &str = "FARSIGHT_SPAN_MODEL_CORES";
/// `time` (default), `instructions`, or `units`: costs that the program itself reports with [`crate::clock::spend`].
pub const COST: &str = "FARSIGHT_SPAN_COST";
/// `raw` switches off what repairs the clock, for comparisons.
pub const CLOCK: &str = "FARSIGHT_SPAN_CLOCK";

/// Folder in which a serial program keeps what each strand cost, for its next run to compare with.
pub const STRANDS: &str = "FARSIGHT_SPAN_STRANDS";

/// Set: only the program as a whole, no call sites.
pub const WHOLE: &str = "FARSIGHT_SPAN_WHOLE";

/// Paths of this length are followed in detail, when there are few sites; for tests.
pub const HEAVY: &str = "FARSIGHT_SPAN_HEAVY";

/// What a strand costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// The time that it took.
    Time,
    /// The instructions that it executed, as an engine around the program counts them.
    Instructions,
    /// What the program says.
    Units,
}

/// The settings of this process.
#[derive(Debug)]
pub struct Settings {
    /// Where the record goes.
    pub out: Option<String>,
    /// [`BURDEN`].
    pub burden_ns: u64,
    /// [`MODEL_CORES`].
    pub model_cores: Option<usize>,
    /// [`COST`].
    pub cost: Cost,
    /// No repair of the clock.
    pub raw: bool,
    /// [`STRANDS`].
    pub strands: Option<String>,
    /// [`WHOLE`].
    pub whole: bool,
    /// [`HEAVY`].
    pub heavy: Option<u64>,
}

impl Settings {
    /// Parallel iterators split as they are told, whatever is stolen: for a model of another machine, and where two
    /// runs are to agree.
    pub fn splits_are_fixed(&self) -> bool {
        self.model_cores.is_some() || self.cost == Cost::Instructions || self.strands.is_some()
    }
}

/// The settings of this process.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let get = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        Settings {
            out: get(OUT),
            burden_ns: get(BURDEN).and_then(|v| v.parse().ok()).unwrap_or(5_000),
            model_cores: get(MODEL_CORES).and_then(|v| v.parse().ok()).filter(|&n| n > 0),
            cost: match get(COST).as_deref() {
                Some("units") => Cost::Units,
                Some("instructions") => Cost::Instructions,
                _ => Cost::Time,
            },
            raw: get(CLOCK).is_some_and(|v| v == "raw"),
            strands: get(STRANDS),
            whole: get(WHOLE).is_some(),
            heavy: get(HEAVY).and_then(|v| v.parse().ok()),
        }
    })
}
