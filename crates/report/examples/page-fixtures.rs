//! Writes the pages that the browser tests open: `cargo run -p report --example page-fixtures -- FOLDER`.

#[path = "../tests/fixtures/mod.rs"]
mod fixtures;

use std::{env, fs, path::Path};

use fixtures::{Made, programs};
use profile::Metric;
use report::html::{CountRun, Page, PageRun, page};

fn main() -> std::io::Result<()> {
    let folder = env::args().nth(1).expect("usage: page-fixtures FOLDER");
    fs::create_dir_all(&folder)?;
    let write = |name: &str, runs: &[&Made]| {
        // "real" pages show what the analysis itself concludes, the others what the tests expect of the page.
        let real = name.starts_with("real");
        let analyses: Vec<_> =
            runs.iter().map(|m| if real { analyse::analyse(&m.growth) } else { m.analysis() }).collect();
        let pages: Vec<PageRun<'_>> = runs
            .iter()
            .zip(&analyses)
            .map(|(m, analysis)| PageRun {
                run: &m.run,
                growth: &m.growth,
                analysis,
                sources: &programs::wf_source,
            })
            .collect();
        fs::write(Path::new(&folder).join(name), page(&Page { growth: pages, ..Page::default() }))
    };
    let wf = programs::wf(Metric::Trms, false);
    write("wf.html", &[&wf])?;
    write("compare.html", &[&wf, &programs::wf(Metric::Trms, true)])?;
    write("metrics.html", &[&programs::wf(Metric::Rms, false), &wf])?;
    write("real.html", &[&wf])?;
    write("real-hostile.html", &[&programs::hostile()])?;
    write("hostile.html", &[&programs::hostile()])?;
    write("large.html", &[&programs::large(5_000, 500_000)])?;
    write("unknown.html", &[&programs::unknown()])?;
    write("empty.html", &[&Made::new("/bin/empty", Metric::Trms, 0.0, Vec::new(), 1)])?;
    write("none.html", &[])?;
    let counted = programs::counted();
    let profile::Data::Count(count) = &counted.data else { unreachable!("it is a run of counts") };
    let counts = vec![CountRun { run: &counted, count }];
    let folder = Path::new(&folder);
    fs::write(folder.join("counts.html"), page(&Page { count: counts.clone(), ..Page::default() }))?;
    let analysis = wf.analysis();
    let growth = vec![PageRun::new(&wf.run, &wf.growth, &analysis)];
    fs::write(folder.join("both.html"), page(&Page { growth, count: counts, ..Page::default() }))
}
