//! Bars and what was measured.

/// What was measured, bar by bar.
#[derive(Default)]
pub struct Scoreboard(Vec<Row>);

struct Row {
    bar: String,
    measured: String,
    wanted: String,
    met: bool,
}

impl Scoreboard {
    /// A bar that a value must not exceed.
    pub fn at_most(&mut self, bar: &str, value: f64, limit: f64, unit: &str) {
        self.row(bar, format!("{value:.2} {unit}"), format!("<= {limit} {unit}"), value <= limit);
    }

    /// A bar that a value must reach.
    pub fn at_least(&mut self, bar: &str, value: f64, limit: f64, unit: &str) {
        self.row(bar, format!("{value:.2} {unit}"), format!(">= {limit} {unit}"), value >= limit);
    }

    /// A bar that is a statement.
    pub fn holds(&mut self, bar: &str, measured: String, wanted: &str, met: bool) {
        self.row(bar, measured, wanted.into(), met);
    }

    fn row(&mut self, bar: &str, measured: String, wanted: String, met: bool) {
        println!("  {bar}: {measured} ({wanted}){}", if met { "" } else { "  MISSED" });
        self.0.push(Row { bar: bar.into(), measured, wanted, met });
    }

    /// The table of all bars.
    pub fn print(&self) {
        println!("\n{:<58} {:>18} {:>18}", "bar", "measured", "wanted");
        for row in &self.0 {
            let verdict = if row.met { "" } else { "missed" };
            println!("{:<58} {:>18} {:>18} {verdict}", row.bar, row.measured, row.wanted);
        }
        let missed = self.0.iter().filter(|r| !r.met).count();
        println!("{} of {} bars met", self.0.len() - missed, self.0.len());
    }
}
