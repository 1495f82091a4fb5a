//! Aligned text tables. Widths count terminal columns, not bytes; control characters in foreign text are
//! shown as escapes, so that no symbol name can move the cursor.

use unicode_width::UnicodeWidthStr;

/// Which side of its column a cell leans to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells.iter().map(|c| printable(c)).collect());
    }

    pub(crate) fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|i| self.rows.iter().map(|r| r[i].width()).fold(self.columns[i].0.width(), usize::max))
            .collect();
        let mut out = String::new();
        let heads: Vec<String> = self.columns.iter().map(|c| c.0.to_string()).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut line = String::new();
            for (i, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[i].saturating_sub(cell.width()));
                match self.columns[i].1 {
                    Align::Left => line.extend([cell.as_str(), &pad]),
                    Align::Right => line.extend([&pad, cell.as_str()]),
                }
                line.push_str("  ");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// Foreign text made safe for a terminal: control and direction-changing characters become escapes.
pub(crate) fn printable(text: &str) -> String {
    let hides = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    if !text.chars().any(hides) {
        return text.to_string();
    }
    text.chars().map(|c| if hides(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// At most `width` columns of `text`, with the middle left out: beginnings and ends tell names apart.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    let text = printable(text);
    if text.width() <= width || width < 5 {
        return text;
    }
    let chars: Vec<char> = text.chars().collect();
    let head = (width - 1) / 2;
    let tail = width - 1 - head;
    let fits = |range: &[char], limit: usize| {
        let mut used = 0;
        range
            .iter()
            .take_while(|c| {
                used += unicode_width::UnicodeWidthChar::width(**c).unwrap_or(0);
                used <= limit
            })
            .count()
    };
    let front = fits(&chars, head);
    let reversed: Vec<char> = chars.iter().rev().copied().collect();
    let back = fits(&reversed, tail);
    let front: String = chars[..front].iter().collect();
    let back: String = chars[chars.len() - back..].iter().collect();
    format!("{front}…{back}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(printable("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable("naïve"), "naïve");
    }

    #[test]
    fn shortening_keeps_both_ends() {
        assert_eq!(shorten("abcdefghij", 7), "abc…hij");
        assert_eq!(shorten("abc", 7), "abc");
        assert!(shorten("日本語日本語日本語", 9).width() <= 9);
    }
}
