//! A small scatter plot in characters: `●` what was measured, `·` the fitted curve.

use crate::units;

/// Columns of the plotting area.
const WIDTH: usize = 60;
/// Rows of the plotting area.
const HEIGHT: usize = 14;
/// Axes that span more than this factor are logarithmic.
const LOG_FROM: f64 = 30.0;

/// Plots `points` and, where it is known, `curve`. Empty when there is nothing to plot.
pub(crate) fn plot(
    points: &[(f64, f64)],
    curve: impl Fn(f64) -> Option<f64>,
    x_label: &str,
    y_label: &str,
) -> String {
    let points: Vec<(f64, f64)> =
        points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let (Some(x_axis), Some(y_axis)) =
        (Axis::over(points.iter().map(|p| p.0), WIDTH), Axis::over(points.iter().map(|p| p.1), HEIGHT))
    else {
        return String::new();
    };
    let mut cells = [[' '; WIDTH]; HEIGHT];
    for (column, x) in (0..WIDTH).map(|c| (c, x_axis.value(c))) {
        if let Some(row) = curve(x).and_then(|y| y_axis.cell(y)) {
            cells[row][column] = '·';
        }
    }
    for (x, y) in points {
        if let (Some(column), Some(row)) = (x_axis.cell(x), y_axis.cell(y)) {
            cells[row][column] = '●';
        }
    }
    let mut out = format!("{y_label}{}\n", y_axis.note());
    for row in (0..HEIGHT).rev() {
        let tick = if row == HEIGHT - 1 || row == 0 || row == HEIGHT / 2 {
            units::si(y_axis.value(row))
        } else {
            String::new()
        };
        let line: String = cells[row].iter().collect();
        out.push_str(&format!("{tick:>9} │{}\n", line.trim_end()));
    }
    out.push_str(&format!("{:>9} └{}\n", "", "─".repeat(WIDTH)));
    let (low, high) = (units::si(x_axis.low), units::si(x_axis.high));
    let label = format!("{x_label}{}", x_axis.note());
    let gap = WIDTH.saturating_sub(low.len() + high.len());
    out.push_str(&format!("{:>10} {low}{label:^gap$}{high}\n", ""));
    out
}

struct Axis {
    low: f64,
    high: f64,
    log: bool,
    cells: usize,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, cells: usize) -> Option<Axis> {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        (low <= high).then(|| {
            let log = low > 0.0 && high / low > LOG_FROM;
            let high = if high > low { high } else { low + 1.0 };
            Axis { low, high, log, cells }
        })
    }

    fn cell(&self, value: f64) -> Option<usize> {
        let t = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let cell = (t * (self.cells - 1) as f64).round();
        (cell >= 0.0 && cell < self.cells as f64).then_some(cell as usize)
    }

    fn value(&self, cell: usize) -> f64 {
        let t = cell as f64 / (self.cells - 1) as f64;
        if self.log {
            self.low * (self.high / self.low).powf(t)
        } else {
            self.low + t * (self.high - self.low)
        }
    }

    fn note(&self) -> &'static str {
        if self.log { " (log)" } else { "" }
    }
}
