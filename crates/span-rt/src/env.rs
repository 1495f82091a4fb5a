//! What the tool tells the runtime: environment variables, read once.

use std::sync::OnceLock;

/// Folder for the record.
pub const OUT: &str = "FARSIGHT_SPAN_OUT";
/// What a fork costs when the task is really taken by another worker, in nanoseconds.
pub const BURDEN: &str = "FARSIGHT_SPAN_BURDEN";
/// As many processors as parallel iterators shall believe in.
pub const MODEL_CORES: &str = "FARSIGHT_SPAN_MODEL_CORES";
/// `time` (default) or `units`: costs that the program itself reports with [`crate::clock::spend`].
pub const COST: &str = "FARSIGHT_SPAN_COST";
/// `raw` switches off what repairs the clock, for comparisons.
pub const CLOCK: &str = "FARSIGHT_SPAN_CLOCK";

/// The settings of this process.
#[derive(Debug)]
pub struct Settings {
    /// Where the record goes.
    pub out: Option<String>,
    /// [`BURDEN`].
    pub burden_ns: u64,
    /// [`MODEL_CORES`].
    pub model_cores: Option<usize>,
    /// Costs are reported, not measured.
    pub units: bool,
    /// No repair of the clock.
    pub raw: bool,
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
            units: get(COST).is_some_and(|v| v == "units"),
            raw: get(CLOCK).is_some_and(|v| v == "raw"),
        }
    })
}
