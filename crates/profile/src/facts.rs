//! The modes that this version knows, as sections of the file: the one place that a new mode adds itself to.
//!
//! A mode has a number, a kind of section, and a module that encodes its facts into payloads of that kind and reads
//! them back one by one. What a run consists of and in which order is `format.rs`'s business, which knows no mode.
//!
//! Numbers are never given a second meaning. In use or promised:
//! ```text
//! mode  1 growth   2 count   3 causal   4 idle   5 span
//! kind  2 growth   3 count   4 causal   5 idle   6 span      (0 end, 1 description)
//! ```

use crate::canon::Invalid;
use crate::causal::Causal;
use crate::count::Count;
use crate::growth::Growth;
use crate::idle::Idle;
use crate::run::Data;
use crate::span::Span;
use crate::varint::{Bad, Decode};
use crate::{causal_section, count_section, growth_section, idle_section, span_section};

/// The number of the growth mode, and the kind of its sections.
const GROWTH: (u32, u32) = (1, 2);
/// The number of the count mode, and the kind of its sections.
const COUNT: (u32, u32) = (2, 3);
/// The number of the causal mode, and the kind of its sections.
const CAUSAL: (u32, u32) = (3, 4);
/// The number of the idle mode, and the kind of its sections.
const IDLE: (u32, u32) = (4, 5);
/// The number of the span mode, and the kind of its sections.
const SPAN: (u32, u32) = (5, 6);
const KNOWN: [(u32, u32); 5] = [GROWTH, COUNT, CAUSAL, IDLE, SPAN];

/// Whether the number is that of a mode of this version.
pub fn is_mode(mode: u32) -> bool {
    KNOWN.iter().any(|k| k.0 == mode)
}

/// Whether sections of this kind hold facts of a mode of this version.
pub fn is_kind(kind: u32) -> bool {
    KNOWN.iter().any(|k| k.1 == kind)
}

/// What to call sections of a kind for which [`is_kind`] holds.
pub fn kind_name(kind: u32) -> &'static str {
    match kind {
        k if k == GROWTH.1 => "growth",
        k if k == IDLE.1 => "idleness",
        k if k == CAUSAL.1 => "experiments",
        k if k == SPAN.1 => "work and span",
        _ => "counts",
    }
}

/// A run's facts as payloads.
pub struct Encoded {
    /// Number of the mode.
    pub mode: u32,
    /// Kind of its sections.
    pub kind: u32,
    /// One per section, at least one.
    pub payloads: Vec<Vec<u8>>,
}

/// The payloads of facts that this version knows; `None` for opaque ones.
pub fn encode(data: &Data) -> Result<Option<Encoded>, Invalid> {
    let ((mode, kind), payloads) = match data {
        Data::Growth(growth) => {
            growth.validate()?;
            (GROWTH, growth_section::encode(growth))
        }
        Data::Count(count) => {
            count.validate()?;
            (COUNT, count_section::encode(count))
        }
        Data::Idle(idle) => {
            idle.validate()?;
            (IDLE, idle_section::encode(idle))
        }
        Data::Causal(causal) => {
            causal.validate()?;
            (CAUSAL, causal_section::encode(causal))
        }
        Data::Span(span) => {
            span.validate()?;
            (SPAN, span_section::encode(span))
        }
        Data::Opaque(_) => return Ok(None),
    };
    Ok(Some(Encoded { mode, kind, payloads }))
}

/// What was found of one run's facts so far.
#[derive(Debug)]
pub struct Facts {
    data: Known,
    /// Items (routines, functions, ...) in all sections of the run, as the sections say.
    announced: u64,
    /// Fields that only a newer version knows.
    pub unknown_fields: usize,
}

#[derive(Debug)]
enum Known {
    Growth(Growth),
    Count(Count),
    Idle(Idle),
    Causal(Causal),
    Span(Span),
}

impl Facts {
    /// Reads one section of a kind for which [`is_kind`] holds.
    pub fn decode(kind: u32, payload: &[u8]) -> Decode<Facts> {
        if kind == GROWTH.1 {
            let part = growth_section::decode(payload)?;
            return Ok(Facts {
                data: Known::Growth(part.growth),
                announced: part.routines_total,
                unknown_fields: part.unknown_fields,
            });
        }
        if kind == IDLE.1 {
            let part = idle_section::decode(payload)?;
            return Ok(Facts {
                announced: part.idle.contexts.len() as u64,
                data: Known::Idle(part.idle),
                unknown_fields: part.unknown_fields,
            });
        }
        if kind == CAUSAL.1 {
            let part = causal_section::decode(payload)?;
            return Ok(Facts {
                data: Known::Causal(part.causal),
                announced: part.experiments_total,
                unknown_fields: part.unknown_fields,
            });
        }
        if kind == SPAN.1 {
            let part = span_section::decode(payload)?;
            return Ok(Facts {
                data: Known::Span(part.span),
                announced: part.sites_total,
                unknown_fields: part.unknown_fields,
            });
        }
        let part = count_section::decode(payload)?;
        Ok(Facts {
            data: Known::Count(part.count),
            announced: part.functions_total,
            unknown_fields: part.unknown_fields,
        })
    }

    /// The mode's number.
    pub fn mode(&self) -> u32 {
        match self.data {
            Known::Growth(_) => GROWTH.0,
            Known::Count(_) => COUNT.0,
            Known::Idle(_) => IDLE.0,
            Known::Causal(_) => CAUSAL.0,
            Known::Span(_) => SPAN.0,
        }
    }

    /// Adds a further section of the same run. After an error nothing was added.
    pub fn extend(&mut self, later: Facts) -> Decode<()> {
        const CONTRADICTS: Bad = Bad("it contradicts the run's other sections");
        match (&mut self.data, later.data) {
            (Known::Growth(a), Known::Growth(b)) if same_head(a, &b) => a.routines.extend(b.routines),
            (Known::Count(a), Known::Count(b)) if (a.total, a.threads) == (b.total, b.threads) => {
                a.by_thread.extend(b.by_thread);
                a.functions.extend(b.functions);
            }
            (Known::Causal(a), Known::Causal(b))
                if (&a.targets, &a.points, a.by) == (&b.targets, &b.points, b.by) =>
            {
                a.experiments.extend(b.experiments);
            }
            (Known::Span(a), Known::Span(b))
                if (a.model, a.unit, span_section::head(a)) == (b.model, b.unit, span_section::head(&b)) =>
            {
                a.sites.extend(b.sites);
                a.path.extend(b.path);
                a.measured.extend(b.measured);
            }
            _ => return Err(CONTRADICTS),
        }
        self.announced = later.announced;
        self.unknown_fields += later.unknown_fields;
        Ok(())
    }

    fn items(&self) -> u64 {
        match &self.data {
            Known::Growth(growth) => growth.routines.len() as u64,
            Known::Count(count) => count.functions.len() as u64,
            Known::Idle(idle) => idle.contexts.len() as u64,
            Known::Causal(causal) => causal.experiments.len() as u64,
            Known::Span(span) => span.sites.len() as u64,
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        match &self.data {
            Known::Growth(growth) => growth.validate(),
            Known::Count(count) => count.validate(),
            Known::Idle(idle) => idle.validate(),
            Known::Causal(causal) => causal.validate(),
            Known::Span(span) => span.validate(),
        }
    }

    /// The facts of a run whose sections are all there.
    pub fn into_whole(self) -> Decode<Data> {
        if self.announced != self.items() {
            return Err(Bad("routines of the run are missing or too many"));
        }
        if self.validate().is_err() {
            return Err(Bad("its routines or points are out of order, double or contradictory"));
        }
        Ok(self.into_data())
    }

    /// The facts as far as they go; what is wrong with them is added to `problems`.
    pub fn into_partial(mut self, problems: &mut Vec<String>) -> Data {
        let missing = self.announced.saturating_sub(self.items());
        if missing > 0 {
            problems.push(format!("routines lost: {missing} of {}", self.announced));
        }
        if self.validate().is_err() {
            problems.push("routines or points were out of order, double or contradictory".to_owned());
            match &mut self.data {
                Known::Growth(growth) => growth.normalize(),
                Known::Count(count) => count.normalize(),
                Known::Idle(idle) => idle.normalize(),
                Known::Causal(causal) => causal.normalize(),
                Known::Span(span) => span.normalize(),
            }
        }
        self.into_data()
    }

    fn into_data(self) -> Data {
        match self.data {
            Known::Growth(growth) => Data::Growth(growth),
            Known::Count(count) => Data::Count(count),
            Known::Idle(idle) => Data::Idle(idle),
            Known::Causal(causal) => Data::Causal(causal),
            Known::Span(span) => Data::Span(span),
        }
    }
}

/// Whether two sections agree in what concerns the whole run.
fn same_head(a: &Growth, b: &Growth) -> bool {
    (a.metric, a.cost, a.cell_bytes, a.cost_total, a.size_error.to_bits(), &a.threads)
        == (b.metric, b.cost, b.cell_bytes, b.cost_total, b.size_error.to_bits(), &b.threads)
}
