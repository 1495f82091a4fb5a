//! What profiling costs.

use anyhow::Result;

use super::Args;
use super::programs::{Bench, PROGRAMS, Program, RAYON_FIB, Source};

pub fn run(bench: &Bench, args: &Args) -> Result<()> {
    println!("\n{:<16}{:>10}{:>10}", "overhead", "native s", "profiled");
    let mut log = 0.0;
    let mut rows = 0;
    for program in PROGRAMS.iter().filter(|p| args.wants(p.name)) {
        log += row(bench, args, program)?.ln();
        rows += 1;
    }
    if rows > 0 {
        let mean = (log / f64::from(rows)).exp();
        println!("{:<26}{mean:>10.2}   (bar: 1.6 with every site, 1.3 without)", "geomean");
    }
    if args.wants(RAYON_FIB.name) {
        row(bench, args, &RAYON_FIB)?;
        println!("(bar for rayon fib: 5)");
    }
    Ok(())
}

fn row(bench: &Bench, args: &Args, program: &Program) -> Result<f64> {
    let native = bench.path(program.source, program.name, false);
    let profiled = bench.path(program.source, program.name, true);
    let one: &[(&str, &str)] = match program.source {
        Source::Cilk(_) => &[],
        Source::Rayon(_) => &[("RAYON_NUM_THREADS", "1")],
    };
    let mut least = [f64::INFINITY; 2];
    let mut note = "";
    for _ in 0..args.runs {
        let (seconds, expected) = bench.cpu(&native, program.arguments, one)?;
        least[0] = least[0].min(seconds);
        let (seconds, printed) = bench.cpu(&profiled, program.arguments, one)?;
        least[1] = least[1].min(seconds);
        if printed != expected {
            note = "  OUTPUT DIFFERS";
        }
    }
    let ratio = least[1] / least[0];
    println!("{:<16}{:>10.3}{ratio:>10.2}{note}", program.name, least[0]);
    Ok(ratio)
}
