//! What saving and loading one million points costs:
//! `cargo run --release -p profile --example load_million [-- ROUTINES]`.
//!
//! Writes a profile of 5,000 routines (or as many as given) with one million points in all (cost functions of
//! several classes with noise), then loads it in a process of its own, so that the peak of memory is that of loading alone.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use profile::{Cost, Data, Exit, Growth, Metric, Point, Profile, Program, Routine, Run, RunId};

const ROUTINES: u64 = 5_000;
const POINTS: u64 = 1_000_000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [load, path] if load == "load" => load_and_report(Path::new(path)),
        _ => {
            let folder = std::env::temp_dir();
            let path = folder.join(format!("load_million-{}.farsight", std::process::id()));
            let routines = args.first().map_or(ROUTINES, |arg| arg.parse().expect("a number of routines"));
            let profile = sample(routines);
            let start = Instant::now();
            profile::file::save(&path, &profile).expect("the temporary folder is writable");
            let bytes = std::fs::metadata(&path).expect("was just written").len();
            println!("saved in {:.2} s, {:.1} MB", start.elapsed().as_secs_f64(), bytes as f64 / 1e6);
            drop(profile);
            let this = std::env::current_exe().expect("this program has a path");
            let ended =
                Command::new(this).arg("load").arg(&path).status().expect("this program can be started");
            std::fs::remove_file(&path).expect("was just written");
            assert!(ended.success());
        }
    }
}

fn load_and_report(path: &Path) {
    let start = Instant::now();
    let loaded = profile::file::load(path).expect("was just written");
    let seconds = start.elapsed().as_secs_f64();
    let points: usize = loaded
        .profile
        .runs
        .iter()
        .map(|run| match &run.data {
            Data::Growth(growth) => growth.points(),
            _ => 0,
        })
        .sum();
    println!("loaded {points} points in {seconds:.2} s, peak memory {} MB", peak_mb());
}

fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("Linux");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number") / 1000
}

fn sample(routines: u64) -> Profile {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut growth = Growth::new(Metric::Trms, Cost::Instructions, 4);
    for i in 0..routines {
        let mut n = 0;
        let points = (0..POINTS / routines).map(|_| {
            n += 1 + random() % 50;
            let calls = if random() % 3 > 0 { 1 } else { 1 + random() % 1000 };
            let cost = [100 + 7 * n, n * n, 40 * n.ilog2() as u64 + 300][(i % 3) as usize];
            let mut point: Option<Point> = None;
            for _ in 0..calls.min(8) {
                let noisy = cost + random() % (1 + cost / 10);
                let mut one = Point::single(n, noisy, noisy / (2 + i % 5));
                one.input.external = random() % (n + 1);
                one.input.thread_induced = random() % (n - one.input.external + 1);
                one.input.self_external = one.input.external / 2;
                match &mut point {
                    None => point = Some(one),
                    Some(sum) => sum.absorb(&one),
                }
            }
            Point { calls, ..point.expect("at least one call") }
        });
        growth.routines.push(Routine {
            points: points.collect(),
            name: format!("example::module{}::routine_{i}(int, char const*)", i % 37),
            mangled: format!("_ZN7example8module{}7routine_{i}EiPKc", i % 37),
            object: format!("/usr/lib/x86_64-linux-gnu/libexample{}.so.1", i % 9),
            address: Some(0x1000 + 96 * i),
            file: format!("/home/user/example/src/module{}.cpp", i % 37),
            line: 10 + (i / 37) as u32 * 20,
            threads: vec![1, 2],
            ..Routine::default()
        });
    }
    growth.cost_total = growth.routines.iter().map(Routine::cost_self).sum();
    growth.normalize();
    let run = Run {
        id: RunId::from_random([9; 16]),
        program: Program { path: "/usr/bin/example".into(), ..Program::default() },
        command: vec!["example".into()],
        exit: Exit::Code(0),
        started_unix_ns: 0,
        wall_ns: 0,
        cpu_ns: 0,
        problems: Vec::new(),
        data: Data::Growth(growth),
    };
    Profile { runs: vec![run] }
}
