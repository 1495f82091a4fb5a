//! Causal experiments that were recorded from real runs, and what really cutting the work by as much gave
//! (`cargo xtask bench causal --parts accuracy --record ...`): conclusions from them must stay as near as they are. Nothing
//! here depends on the machine: the same experiments give the same curves.

use std::path::Path;

use analyse::causal::analyse;
use profile::Data;

struct Prediction {
    what: String,
    error: f64,
    holds: bool,
}

fn predictions() -> Vec<Prediction> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata/recorded");
    let truths = std::fs::read_to_string(folder.join("truths.txt")).expect("recorded truths");
    let of = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [file, target, level, truth] = words[..] else { panic!("{line:?}") };
        let (level, truth): (f64, f64) = (level.parse().expect("a level"), truth.parse().expect("a truth"));
        let loaded = profile::file::load(&folder.join(file)).expect("a recorded profile");
        let Data::Causal(causal) = &loaded.profile.runs[0].data else { panic!("{file} is not causal") };
        let analysis = analyse(causal);
        let result = analysis.results.iter().find(|r| causal.targets[r.target].name == target);
        let result = result.unwrap_or_else(|| panic!("{file}: no result for {target}"));
        let at = result.curve.levels.iter().find(|l| (l.speedup - level).abs() < 1e-6);
        let at = at.unwrap_or_else(|| panic!("{file}: no level {level}"));
        Prediction {
            what: line.to_owned(),
            error: 100.0 * (at.gain - truth).abs(),
            holds: at.ci.0 <= truth && truth <= at.ci.1,
        }
    };
    truths.lines().map(of).collect()
}

#[test]
fn conclusions_from_recorded_experiments_are_near_the_truth() {
    let all = predictions();
    let show = || -> Vec<String> {
        all.iter().map(|p| format!("{} off by {:.1}, {}", p.what, p.error, p.holds)).collect()
    };
    assert!(all.len() >= 30, "{} predictions", all.len());
    let mut errors: Vec<f64> = all.iter().map(|p| p.error).collect();
    errors.sort_by(f64::total_cmp);
    assert!(errors[errors.len() / 2] <= 3.0, "median error: {:#?}", show());
    let far = all.iter().filter(|p| p.error > 8.0).count();
    assert!(far * 10 <= all.len(), "off by more than 8 points: {far} of {}: {:#?}", all.len(), show());
    let held = all.iter().filter(|p| p.holds).count();
    assert!(held * 100 >= all.len() * 85, "intervals hold {held} of {}: {:#?}", all.len(), show());
}
