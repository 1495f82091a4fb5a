//! Prints the experiments of a causal profile, one per line: for looking at the noise.
use profile::Data;

fn main() {
    let path = std::env::args().nth(1).expect("a profile");
    let loaded = profile::file::load(std::path::Path::new(&path)).expect("readable");
    for run in &loaded.profile.runs {
        let Data::Causal(causal) = &run.data else { continue };
        for e in &causal.experiments {
            let visits = e.progress.first().map_or(0, |p| p.visits);
            println!(
                "{:>8.1} ms {:>4} {:<30} wall {:>7.2} delay {:>7.2} unpaid {:>5.2} visits {:>6} period {:>8.1} us selected {:>4} of {:>4}",
                e.start_ns as f64 / 1e6,
                e.speedup_permille,
                causal.targets[e.target as usize].name.rsplit('/').next().unwrap_or(""),
                e.duration_ns as f64 / 1e6,
                e.delay_ns as f64 / 1e6,
                e.unpaid_ns as f64 / 1e6,
                visits,
                e.effective_ns() as f64 / 1e3 / visits.max(1) as f64,
                e.selected_samples,
                e.samples,
            );
        }
    }
}
