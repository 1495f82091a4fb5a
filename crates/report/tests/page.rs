//! The page's file: what it holds, and what it must not.

mod fixtures;

use std::io::Read as _;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use fixtures::{Made, programs};
use profile::Metric;
use report::html::{CountRun, Page, PageRun, page, routine_id};
use serde_json::Value;

fn page_of(runs: &[&Made]) -> String {
    let analyses: Vec<_> = runs.iter().map(|m| m.analysis()).collect();
    let pages: Vec<PageRun<'_>> = runs
        .iter()
        .zip(&analyses)
        .map(|(m, analysis)| PageRun {
            sources: &programs::wf_source,
            ..PageRun::new(&m.run, &m.growth, analysis)
        })
        .collect();
    page(&Page { growth: pages, ..Page::default() })
}

/// The unpacked bytes of a section.
fn section(html: &str, id: &str) -> Vec<u8> {
    let open = format!("<script type=\"application/octet-stream\" id=\"farsight-{id}\">");
    let start = html.find(&open).expect("the section is there") + open.len();
    let end = start + html[start..].find("</script>").expect("it ends");
    let packed = BASE64.decode(&html[start..end]).expect("it is base64");
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut out).expect("it is gzip");
    out
}

fn summary(html: &str) -> Value {
    serde_json::from_slice(&section(html, "summary")).expect("it is JSON")
}

#[test]
fn hostile_names_reach_the_data_and_not_the_markup() {
    let made = programs::hostile();
    let html = page_of(&[&made]);
    // Three sections, the bundle, and no other script; no tag that a name could have brought.
    assert_eq!(html.matches("<script").count(), 4);
    assert_eq!(html.matches("</script>").count(), 4);
    assert_eq!(html.matches("<title>").count(), 1);
    for tag in ["<img", "<b>", "<svg", "onerror", "alert("] {
        assert!(!html.contains(tag), "{tag}");
    }
    let names: Vec<String> =
        serde_json::from_value(summary(&html)["modes"]["growth"]["runs"][0]["routines"]["name"].clone())
            .unwrap();
    for name in programs::HOSTILE {
        assert!(names.iter().any(|n| n == name), "{name:?}");
    }
    assert!(names.iter().any(|n| n.len() == 10_000));
}

#[test]
fn counts_reach_the_data_and_not_the_markup() {
    let run = programs::counted();
    let profile::Data::Count(count) = &run.data else { panic!("counts") };
    let html = page(&Page { count: vec![CountRun { run: &run, count }], ..Page::default() });
    assert!(!html.contains("<img") && html.matches("<script").count() == 2);
    let shown = &summary(&html)["modes"];
    assert!(shown.get("growth").is_none());
    let counts = &shown["count"]["runs"][0];
    assert_eq!(counts["functions"]["name"][0], "function_42", "most instructions first");
    assert_eq!(counts["functions"]["own"][0], 1_000_000);
    assert_eq!(counts["total"][0], count.total.instructions);
}

#[test]
fn nothing_outside_the_file_is_referred_to() {
    let html = page_of(&[&programs::wf(Metric::Trms, false)]);
    let namespace = "http://www.w3.org/2000/svg";
    let rest = html.replace(namespace, "");
    assert!(!rest.contains("http:") && !rest.contains("https:"));
    for attribute in [" src=", "@import", "url(http", "<link"] {
        assert!(!html.contains(attribute), "{attribute}");
    }
    assert!(html.contains("content=\"default-src 'none'; script-src 'sha256-"));
}

#[test]
fn the_licence_of_what_is_bundled_travels_along() {
    let html = page(&Page::default());
    assert!(html.contains("Leon Sorokin") && html.contains("Permission is hereby granted, free of charge"));
}

#[test]
fn the_summary_says_what_the_analysis_concluded() {
    let made = programs::wf(Metric::Trms, false);
    let analysis = made.analysis();
    let html = page_of(&[&made]);
    let run = &summary(&html)["modes"]["growth"]["runs"][0];
    let routines = &run["routines"];
    assert_eq!(run["metric"], "trms");
    assert_eq!(run["exit_code"], 0);
    assert_eq!(run["command"][2], "anna karenina.txt");
    for (i, r) in analysis.routines.iter().enumerate() {
        assert_eq!(routines["name"][i], r.routine.name);
        assert_eq!(routines["id"][i], routine_id(r.routine));
        assert_eq!(routines["calls"][i], r.calls);
        assert_eq!(routines["cost_total"][i], r.cost_total);
        assert_eq!(routines["points"][i], r.routine.points.len());
        let class = &routines["fit"]["class"][i];
        let named =
            class.as_u64().map(|c| run["strings"][c as usize].as_str().unwrap().replace("n^K", "n^1.34"));
        assert_eq!(named, r.fit.class.map(|c| c.to_string()));
        assert_eq!(routines["has_forecast"][i], u64::from(r.fit.class.is_some()));
    }
    let excerpt = run["excerpts"].as_array().unwrap().iter().find(|e| e["routine"] == 0).unwrap();
    assert_eq!(excerpt["start"], 1);
    assert_eq!(excerpt["lines"][7], "void str_tolower(char *str) {");
}

#[test]
fn blocks_and_forecasts_are_as_long_as_the_summary_says() {
    let made = programs::wf(Metric::Trms, false);
    let html = page_of(&[&made, &programs::wf(Metric::Trms, true)]);
    for i in 0..2 {
        let run = &summary(&html)["modes"]["growth"]["runs"][i];
        let sum = |column: &str| -> u64 {
            run["routines"][column].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).sum()
        };
        assert_eq!(section(&html, &format!("points-{i}")).len() as u64, sum("block_bytes"));
        let factors = run["factors"].as_array().unwrap().len() as u64;
        assert_eq!(
            section(&html, &format!("forecast-{i}")).len() as u64,
            sum("has_forecast") * factors * 4 * 4
        );
    }
}

#[test]
fn the_same_runs_give_the_same_bytes() {
    let made = programs::wf(Metric::Rms, false);
    assert_eq!(page_of(&[&made]), page_of(&[&made]));
}

#[test]
fn runs_without_routines_and_pages_without_runs_are_pages() {
    let empty = Made::new("/bin/empty", Metric::Trms, 0.0, Vec::new(), 1);
    assert!(page_of(&[&empty]).ends_with("</html>\n"));
    assert!(page(&Page::default()).contains("<title>Farsight</title>"));
}

#[test]
fn the_big_fixture_is_as_big_as_it_claims() {
    let made = programs::large(5_000, 500_000);
    assert_eq!(made.growth.routines.len(), 5_000);
    let points: usize = made.growth.routines.iter().map(|r| r.points.len()).sum();
    assert!((499_000..=502_000).contains(&points), "{points}");
}
