//! The report page: one HTML file that holds the program that shows it, its style and the data, and that opens
//! offline, from a file, with nothing beside it.
//!
//! The page's program is written in TypeScript under `page/` and checked in as a built bundle, so that building
//! Farsight needs no Node. The data travel as gzip in base64 inside `<script>` elements of a type that no browser
//! runs: base64 has no `<`, so no name in a profile can end the element or add another. One section holds the
//! JSON of the tables, others the forecasts as binary columns: these come before the program, which shows the page
//! while the browser still reads the points, megabytes that are decoded routine by routine when looked at.
//!
//! Must never: put foreign text into the HTML itself (the escaped title is the one exception), or refer to
//! anything outside the file. A content security policy holds the page to both: only the bundle's own bytes may
//! run, and nothing may be fetched.

mod causality;
mod columns;
mod counts;
mod excerpt;
mod head;
mod idleness;
mod spans;
mod strings;
mod summary;

use std::io::Write as _;

use analyse::GrowthAnalysis;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use flate2::{Compression, write::GzEncoder};
use profile::{Count, Growth, Idle, Routine, Run, Span};

const SCRIPT: &str = include_str!("../page/dist/page.js");
const STYLE: &str = include_str!("../page/dist/page.css");
/// The policy's hashes of the two above, written by the same build.
const POLICY: &str = include_str!("../page/dist/policy.txt");

/// What a page shows, mode by mode. A mode without runs has no tab.
#[derive(Clone, Default)]
pub struct Page<'a> {
    /// Growth: the first run is shown; the second, if any, is compared with it; further ones can be chosen.
    pub growth: Vec<PageRun<'a>>,
    /// Counts, likewise.
    pub count: Vec<CountRun<'a>>,
    /// Idleness, likewise.
    pub idle: Vec<IdleRun<'a>>,
    /// What making code faster would gain, likewise.
    pub causal: Vec<CausalRun<'a>>,
    /// Spans, likewise.
    pub span: Vec<SpanRun<'a>>,
}

impl<'a> Page<'a> {
    fn runs(&self) -> impl Iterator<Item = &'a Run> {
        let sampled = self.idle.iter().map(|r| r.run).chain(self.causal.iter().map(|r| r.run));
        let spans = self.span.iter().map(|r| r.run);
        let counted = self.count.iter().map(|r| r.run);
        self.growth.iter().map(|r| r.run).chain(counted).chain(sampled).chain(spans)
    }
}

/// One run of counts to show.
#[derive(Clone, Copy)]
pub struct CountRun<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its counts.
    pub count: &'a Count,
}

/// One causal run to show, with what was concluded from it.
#[derive(Clone, Copy)]
pub struct CausalRun<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its facts.
    pub causal: &'a profile::Causal,
    /// What was concluded from them.
    pub analysis: &'a analyse::causal::CausalAnalysis,
    /// As in [`PageRun`].
    pub sources: &'a dyn Fn(&str) -> Option<String>,
}

/// One idle run to show, with what was concluded from it.
#[derive(Clone, Copy)]
pub struct IdleRun<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its facts.
    pub idle: &'a Idle,
    /// What was concluded from them.
    pub analysis: &'a analyse::idle::IdleAnalysis,
    /// Its physical tree.
    pub physical: &'a analyse::idle::Projected,
    /// As in [`PageRun`].
    pub sources: &'a dyn Fn(&str) -> Option<String>,
}

/// One span run to show.
#[derive(Clone, Copy)]
pub struct SpanRun<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its facts.
    pub span: &'a Span,
    /// As in [`PageRun`].
    pub sources: &'a dyn Fn(&str) -> Option<String>,
}

/// One growth run to show, with what was concluded from it.
#[derive(Clone, Copy)]
pub struct PageRun<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its growth facts.
    pub growth: &'a Growth,
    /// What was concluded from them.
    pub analysis: &'a GrowthAnalysis<'a>,
    /// Gives the text of a source file by the path that the debug information names, `None` when it cannot be
    /// read. Asked once per file, and only for the routines that rank first.
    pub sources: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> PageRun<'a> {
    /// A run without source text.
    pub fn new(run: &'a Run, growth: &'a Growth, analysis: &'a GrowthAnalysis<'a>) -> Self {
        PageRun { run, growth, analysis, sources: &|_| None }
    }
}

/// The page, as the text of one HTML file.
pub fn page(page: &Page<'_>) -> String {
    let (mut sections, mut points) = (String::new(), String::new());
    let summary =
        serde_json::to_vec(&summary::Summary::new(page)).expect("the summary holds only JSON values");
    push_section(&mut sections, "summary", &summary);
    for (i, run) in page.growth.iter().enumerate() {
        push_section(&mut sections, &format!("forecast-{i}"), &columns::forecast(run.analysis));
        push_section(&mut points, &format!("points-{i}"), &columns::points(run.analysis));
    }
    let title = escape(&title(page));
    let policy = POLICY.trim();
    format!(
        "<!doctype html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n\
         <style>{STYLE}</style>\n\
         </head>\n\
         <body>\n\
         <noscript>This report draws its tables and plots with JavaScript, which this browser has switched off. \
         It needs no network.</noscript>\n\
         <div id=\"app\"><p class=\"boot\" role=\"status\">Reading the profile…</p></div>\n\
         {sections}\
         <script>{SCRIPT}</script>\n\
         {points}\
         </body>\n\
         </html>\n"
    )
}

/// Identifies a routine in links into the page (`#r=ID`) and across runs: the same for routines of one linker
/// name in objects of one file name, wherever these lie.
pub fn routine_id(routine: &Routine) -> String {
    // FNV-1a, 64 bits: stable across versions and platforms, which `std`'s hashers do not promise.
    let object = basename(&routine.object);
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in object.bytes().chain([0]).chain(routine.mangled.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

fn push_section(out: &mut String, id: &str, bytes: &[u8]) {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).expect("writing to memory does not fail");
    let packed = gzip.finish().expect("writing to memory does not fail");
    out.push_str("<script type=\"application/octet-stream\" id=\"farsight-");
    out.push_str(id);
    out.push_str("\">");
    BASE64.encode_string(packed, out);
    out.push_str("</script>\n");
}

fn title(page: &Page<'_>) -> String {
    let programs: Vec<&str> = page.runs().map(|run| basename(&run.program.path)).collect();
    match programs.as_slice() {
        [] => "Farsight".to_owned(),
        [one] => format!("{one} · Farsight"),
        [first, rest @ ..] if rest.iter().all(|p| p == first) => {
            format!("{first}, {} runs · Farsight", programs.len())
        }
        [first, second, ..] => format!("{first} and {second} · Farsight"),
    }
}

fn basename(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ignore_where_the_object_lies() {
        let mut a = Routine { mangled: "f".into(), object: "/usr/lib/libx.so".into(), ..Routine::default() };
        let here = routine_id(&a);
        a.object = "/opt/libx.so".into();
        assert_eq!(routine_id(&a), here);
        a.object = "/opt/liby.so".into();
        assert_ne!(routine_id(&a), here);
        a.object = "/opt/libx.so".into();
        a.mangled = "g".into();
        assert_ne!(routine_id(&a), here);
    }

    #[test]
    fn the_bundle_cannot_end_its_own_element() {
        let script = SCRIPT.to_ascii_lowercase();
        assert!(!script.contains("</script") && !script.contains("<!--"));
        assert!(!STYLE.to_ascii_lowercase().contains("</style"));
    }

    #[test]
    fn the_policy_forbids_everything_but_the_bundle() {
        assert!(POLICY.starts_with("default-src 'none'"));
        assert!(!POLICY.contains("unsafe") && !POLICY.contains("http"));
    }

    #[test]
    fn titles_are_escaped() {
        assert_eq!(escape("a<b>&\"\n"), "a&lt;b&gt;&amp;&quot; ");
    }
}
