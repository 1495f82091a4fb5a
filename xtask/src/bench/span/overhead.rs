//! What profiling costs.

use anyhow::Result;

use super::Args;
use super::programs::{Bench, PROGRAMS, Program, RAYON_FIB, SAMPLER, Source};

/// Bars: geometric mean with call sites and without, and rayon's fib.
const BARS: [f64; 2] = [1.6, 1.3];
const BAR_FIB: f64 = 5.0;

pub fn run(bench: &Bench, args: &Args) -> Result<()> {
    println!("\n{:<16}{:>10}{:>10}{:>10}", "overhead", "native s", "sites", "whole");
    let mut logs = [0.0; 2];
    let mut rows = 0;
    for program in PROGRAMS.iter().filter(|p| args.wants(p.name)) {
        let ratios = row(bench, args, program)?;
        logs.iter_mut().zip(ratios).for_each(|(log, ratio)| *log += ratio.ln());
        rows += 1;
    }
    if rows > 0 {
        let [sites, whole] = logs.map(|log| (log / f64::from(rows)).exp());
        println!("{:<26}{sites:>10.2}{whole:>10.2}   (bars: {}, {})", "geomean", BARS[0], BARS[1]);
    }
    if args.wants(RAYON_FIB.name) {
        row(bench, args, &RAYON_FIB)?;
        println!("(bar for rayon fib: {BAR_FIB})");
    }
    Ok(())
}

/// How many times as long it takes with call sites, and without.
fn row(bench: &Bench, args: &Args, program: &Program) -> Result<[f64; 2]> {
    let native = bench.path(program.source, program.name, false);
    let profiled = bench.path(program.source, program.name, true);
    let one: &[(&str, &str)] = match program.source {
        Source::Cilk(_) => &[],
        Source::Rayon(_) => &[("RAYON_NUM_THREADS", "1")],
    };
    let sampler = bench.sampler().display().to_string();
    let sites = match program.source {
        Source::Cilk(_) => one.to_vec(),
        Source::Rayon(_) => [one, &[(SAMPLER, sampler.as_str())]].concat(),
    };
    let whole = [one, &[("FARSIGHT_SPAN_WHOLE", "1")]].concat();
    let mut least = [f64::INFINITY; 3];
    let mut note = "";
    for _ in 0..args.runs {
        let mut expected = None;
        for (least, (path, env)) in
            least.iter_mut().zip([(&native, one), (&profiled, sites.as_slice()), (&profiled, &whole)])
        {
            let (seconds, printed) = bench.cpu(path, program.arguments, env)?;
            *least = least.min(seconds);
            if *expected.get_or_insert_with(|| printed.clone()) != printed {
                note = "  OUTPUT DIFFERS";
            }
        }
    }
    let ratios = [least[1] / least[0], least[2] / least[0]];
    println!("{:<16}{:>10.3}{:>10.2}{:>10.2}{note}", program.name, least[0], ratios[0], ratios[1]);
    Ok(ratios)
}
