//! What profiling costs.

use anyhow::Result;

use super::Args;
use super::programs::{Bench, PROGRAMS, Program, RAYON_FIB, Source};

/// Settings of the runtime under which a program is run: the profile of every site, and work and span of the whole.
const MODES: [(&str, &[(&str, &str)]); 2] = [("sites", &[]), ("whole", &[("FARSIGHT_SPAN_SITES", "0")])];

pub fn run(bench: &Bench, args: &Args) -> Result<()> {
    println!("\n{:<16}{:>10}{:>10}{:>10}", "overhead", "native s", MODES[0].0, MODES[1].0);
    let mut logs = [0.0; 2];
    let mut rows = 0;
    for program in PROGRAMS.iter().filter(|p| args.wants(p.name)) {
        let ratios = row(bench, args, program)?;
        logs.iter_mut().zip(ratios).for_each(|(l, r)| *l += r.ln());
        rows += 1;
    }
    if rows > 0 {
        let mean = |l: f64| (l / f64::from(rows)).exp();
        println!("{:<26}{:>10.2}{:>10.2}   (bars: 1.6 and 1.3)", "geomean", mean(logs[0]), mean(logs[1]));
    }
    if args.wants(RAYON_FIB.name) {
        row(bench, args, &RAYON_FIB)?;
        println!("(bar for rayon fib: 5)");
    }
    Ok(())
}

fn row(bench: &Bench, args: &Args, program: &Program) -> Result<[f64; 2]> {
    let native = bench.path(program.source, program.name, false);
    let profiled = bench.path(program.source, program.name, true);
    let one: &[(&str, &str)] = match program.source {
        Source::Cilk(_) => &[],
        Source::Rayon(_) => &[("RAYON_NUM_THREADS", "1")],
    };
    let mut least = [f64::INFINITY; 3];
    let mut note = "";
    for _ in 0..args.runs {
        let (seconds, expected) = bench.cpu(&native, program.arguments, one)?;
        least[0] = least[0].min(seconds);
        for (slot, (_, env)) in least[1..].iter_mut().zip(MODES) {
            let env: Vec<_> = one.iter().chain(env).copied().collect();
            let (seconds, printed) = bench.cpu(&profiled, program.arguments, &env)?;
            *slot = slot.min(seconds);
            if printed != expected {
                note = "  OUTPUT DIFFERS";
            }
        }
    }
    let ratios = [least[1] / least[0], least[2] / least[0]];
    println!("{:<16}{:>10.3}{:>10.2}{:>10.2}{note}", program.name, least[0], ratios[0], ratios[1]);
    Ok(ratios)
}
