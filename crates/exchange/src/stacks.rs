//! Calling contexts with several values each, for tools that draw stacks: folded lines, pprof, the Firefox Profiler.
//!
//! | format | holds | loses |
//! |---|---|---|
//! | folded | one value per path, `main;f;g 123` | the other values, files and lines |
//! | pprof | all values, files and lines | nothing but what frames are (inline, loop) |
//! | Firefox Profiler | all values, one track each | nothing but time: samples have weights, no order |

use std::collections::HashMap;

/// A context: its frame, and its own values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context<'a> {
    /// Position of its parent, before it.
    pub parent: Option<u32>,
    /// Readable name.
    pub name: &'a str,
    /// Source file, empty when not known.
    pub file: &'a str,
    /// Source line, 0 when not known.
    pub line: u32,
    /// One per column.
    pub values: Vec<i64>,
}

/// A tree of contexts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stacks<'a> {
    /// Names of the values; all are nanoseconds.
    pub columns: Vec<&'static str>,
    /// Parents before children.
    pub contexts: Vec<Context<'a>>,
    /// Wall-clock time.
    pub duration_ns: u64,
    /// When the run started, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
}

impl Stacks<'_> {
    /// Positions from a context outwards.
    fn path(&self, of: usize) -> Vec<usize> {
        let mut path = vec![of];
        let mut at = self.contexts.get(of).and_then(|c| c.parent);
        while let Some(p) = at {
            path.push(p as usize);
            at = self.contexts.get(p as usize).and_then(|c| c.parent).filter(|next| *next < p);
        }
        path
    }
}

/// Folded stacks of one column, in microseconds, the outermost frame first.
pub fn folded(stacks: &Stacks<'_>, column: usize) -> String {
    let mut out = String::new();
    for (i, context) in stacks.contexts.iter().enumerate() {
        let value = context.values.get(column).copied().unwrap_or(0) / 1000;
        if value <= 0 {
            continue;
        }
        let mut names: Vec<String> = stacks
            .path(i)
            .into_iter()
            .map(|at| stacks.contexts[at].name.replace([';', '\n', '\r'], ":"))
            .collect();
        names.reverse();
        out.push_str(&format!("{} {value}\n", names.join(";")));
    }
    out
}

/// A pprof profile (uncompressed protocol buffer), all columns.
pub fn pprof(stacks: &Stacks<'_>) -> Vec<u8> {
    let mut strings = Strings::default();
    strings.number("");
    let mut out = Vec::new();
    let nanoseconds = strings.number("nanoseconds");
    for column in &stacks.columns {
        let mut kind = Vec::new();
        put_number(&mut kind, 1, strings.number(column));
        put_number(&mut kind, 2, nanoseconds);
        put_bytes(&mut out, 1, &kind);
    }
    // One location and one function per distinct frame.
    let mut frames: HashMap<(&str, &str, u32), u64> = HashMap::new();
    let mut locations = Vec::new();
    for context in &stacks.contexts {
        let next = frames.len() as u64 + 1;
        let id = *frames.entry((context.name, context.file, context.line)).or_insert(next);
        if id == next {
            let mut line = Vec::new();
            put_number(&mut line, 1, id);
            put_number(&mut line, 2, context.line.into());
            let mut location = Vec::new();
            put_number(&mut location, 1, id);
            put_bytes(&mut location, 4, &line);
            let mut function = Vec::new();
            put_number(&mut function, 1, id);
            put_number(&mut function, 2, strings.number(context.name));
            put_number(&mut function, 4, strings.number(context.file));
            put_number(&mut function, 5, context.line.into());
            locations.push((location, function));
        }
    }
    for (i, context) in stacks.contexts.iter().enumerate() {
        if context.values.iter().all(|v| *v == 0) {
            continue;
        }
        let (mut ids, mut values) = (Vec::new(), Vec::new());
        for at in stacks.path(i) {
            let c = &stacks.contexts[at];
            varint(&mut ids, frames.get(&(c.name, c.file, c.line)).copied().unwrap_or(0));
        }
        context.values.iter().for_each(|v| varint(&mut values, *v as u64));
        let mut sample = Vec::new();
        put_bytes(&mut sample, 1, &ids);
        put_bytes(&mut sample, 2, &values);
        put_bytes(&mut out, 2, &sample);
    }
    locations.iter().for_each(|(location, _)| put_bytes(&mut out, 4, location));
    locations.iter().for_each(|(_, function)| put_bytes(&mut out, 5, function));
    strings.list.iter().for_each(|s| put_bytes(&mut out, 6, s.as_bytes()));
    put_number(&mut out, 9, stacks.started_unix_ns);
    put_number(&mut out, 10, stacks.duration_ns);
    // Which column tools show first: theirs would be the last.
    if let Some(first) = stacks.columns.first() {
        put_number(&mut out, 14, strings.number(first));
    }
    out
}

#[derive(Default)]
struct Strings {
    list: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A profile for the Firefox Profiler, one track per column.
pub fn firefox(stacks: &Stacks<'_>, product: &str) -> String {
    let threads: Vec<String> =
        (0..stacks.columns.len()).map(|column| firefox_thread(stacks, column)).collect();
    format!(
        concat!(
            r#"{{"meta":{{"interval":1,"startTime":{start},"processType":0,"product":{product},"stackwalk":1,"#,
            r#""debug":0,"gcpoison":0,"asyncstack":0,"version":24,"preprocessedProfileVersion":47,"#,
            r#""symbolicated":true,"categories":[{{"name":"Other","color":"grey","subcategories":["Other"]}},"#,
            r#"{{"name":"Work","color":"green","subcategories":["Other"]}},"#,
            r#"{{"name":"Idle","color":"orange","subcategories":["Other"]}},"#,
            r#"{{"name":"Overhead","color":"red","subcategories":["Other"]}},"#,
            r#"{{"name":"Blocked","color":"purple","subcategories":["Other"]}}],"markerSchema":[]}},"#,
            r#""libs":[],"pages":[],"threads":[{threads}]}}"#
        ),
        start = stacks.started_unix_ns / 1_000_000,
        product = quoted(product),
        threads = threads.join(","),
    )
}

fn firefox_thread(stacks: &Stacks<'_>, column: usize) -> String {
    let mut strings = Strings::default();
    let mut functions: HashMap<(&str, &str, u32), usize> = HashMap::new();
    let mut names = Vec::new();
    let mut files = Vec::new();
    let mut lines = Vec::new();
    let mut frame_of = Vec::new();
    for c in &stacks.contexts {
        let next = functions.len();
        let at = *functions.entry((c.name, c.file, c.line)).or_insert(next);
        if at == next {
            names.push(strings.number(c.name).to_string());
            files.push(if c.file.is_empty() { "null".into() } else { strings.number(c.file).to_string() });
            lines.push(if c.line == 0 { "null".into() } else { c.line.to_string() });
        }
        frame_of.push(at.to_string());
    }
    let category = (column + 1).min(4);
    let repeat = |text: &str, n: usize| vec![text; n].join(",");
    let prefix: Vec<String> =
        stacks.contexts.iter().map(|c| c.parent.map_or("null".into(), |p| p.to_string())).collect();
    let (mut stack, mut time, mut weight) = (Vec::new(), Vec::new(), Vec::new());
    for (i, c) in stacks.contexts.iter().enumerate() {
        let value = c.values.get(column).copied().unwrap_or(0);
        if value > 0 {
            time.push(stack.len().to_string());
            stack.push(i.to_string());
            weight.push(format!("{:.6}", value as f64 / 1e6));
        }
    }
    let (f, n, s) = (functions.len(), stacks.contexts.len(), stack.len());
    let list: Vec<String> = strings.list.iter().map(|t| quoted(t)).collect();
    format!(
        concat!(
            r#"{{"processType":"default","processStartupTime":0,"processShutdownTime":null,"registerTime":0,"#,
            r#""unregisterTime":null,"pausedRanges":[],"name":{name},"isMainThread":{main},"pid":"1","tid":{tid},"#,
            r#""samples":{{"weightType":"tracing-ms","weight":[{weight}],"stack":[{stack}],"time":[{time}],"length":{s}}},"#,
            r#""markers":{{"data":[],"name":[],"startTime":[],"endTime":[],"phase":[],"category":[],"length":0}},"#,
            r#""stackTable":{{"frame":[{frame}],"prefix":[{prefix}],"category":[{cat}],"subcategory":[{zero}],"length":{n}}},"#,
            r#""frameTable":{{"address":[{minus}],"inlineDepth":[{fzero}],"category":[{fcat}],"subcategory":[{fzero}],"#,
            r#""func":[{func}],"nativeSymbol":[{fnull}],"innerWindowID":[{fnull}],"implementation":[{fnull}],"#,
            r#""line":[{line}],"column":[{fnull}],"length":{f}}},"#,
            r#""funcTable":{{"isJS":[{ffalse}],"relevantForJS":[{ffalse}],"name":[{names}],"resource":[{minus}],"#,
            r#""fileName":[{files}],"lineNumber":[{line}],"columnNumber":[{fnull}],"length":{f}}},"#,
            r#""resourceTable":{{"lib":[],"name":[],"host":[],"type":[],"length":0}},"#,
            r#""nativeSymbols":{{"libIndex":[],"address":[],"name":[],"functionSize":[],"length":0}},"#,
            r#""stringArray":[{list}]}}"#
        ),
        name = quoted(stacks.columns.get(column).copied().unwrap_or("time")),
        main = column == 0,
        tid = column + 1,
        weight = weight.join(","),
        stack = stack.join(","),
        time = time.join(","),
        s = s,
        frame = frame_of.join(","),
        prefix = prefix.join(","),
        cat = repeat(&category.to_string(), n),
        zero = repeat("0", n),
        n = n,
        minus = repeat("-1", f),
        fzero = repeat("0", f),
        fcat = repeat(&category.to_string(), f),
        func = (0..f).map(|i| i.to_string()).collect::<Vec<_>>().join(","),
        fnull = repeat("null", f),
        line = lines.join(","),
        f = f,
        ffalse = repeat("false", f),
        names = names.join(","),
        files = files.join(","),
        list = list.join(","),
    )
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Stacks<'static> {
        let context = |parent, name, values: &[i64]| Context {
            parent,
            name,
            file: "x.c",
            line: 3,
            values: values.to_vec(),
        };
        Stacks {
            columns: vec!["work", "idle"],
            contexts: vec![
                context(None, "main", &[0, 0]),
                context(Some(0), "f;g", &[5_000, 7_000]),
                context(Some(1), "h\"", &[0, 2_000]),
            ],
            duration_ns: 9,
            started_unix_ns: 1,
        }
    }

    #[test]
    fn folded_lines_have_the_outermost_first() {
        assert_eq!(folded(&example(), 0), "main;f:g 5\n");
        assert_eq!(folded(&example(), 1), "main;f:g 7\nmain;f:g;h\" 2\n");
    }

    #[test]
    fn pprof_has_every_value_and_string() {
        let bytes = pprof(&example());
        // Two samples: their values as packed varints.
        let find = |needle: &[u8]| bytes.windows(needle.len()).filter(|w| *w == needle).count();
        assert_eq!(find(&[0x12, 0x04, 0x88, 0x27, 0xd8, 0x36]), 1, "values 5000, 7000");
        assert_eq!(find(&[0x12, 0x03, 0x00, 0xd0, 0x0f]), 1, "values 0, 2000");
        assert_eq!(find(b"nanoseconds"), 1);
        assert!(bytes.ends_with(&[14 << 3, 2]), "the first column is shown first");
        assert_eq!(find(&[0x0a, 0x03, 3, 2, 1]), 1, "the innermost location first");
    }

    #[test]
    fn firefox_text_is_balanced_and_escaped() {
        let text = firefox(&example(), "a \"b\"");
        assert!(text.contains(r#""product":"a \"b\"""#) && text.contains(r#""h\"""#));
        let depth = |open: char, close: char| text.matches(open).count() == text.matches(close).count();
        assert!(depth('{', '}') && depth('[', ']'));
        assert!(text.contains(r#""weight":[0.005000],"stack":[1],"time":[0],"length":1"#));
    }
}
