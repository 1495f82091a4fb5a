//! Runs a program under a counting blob given by path: for working on the engine without rebuilding the tool.
//! `count [-q] BLOB FLAGS program...`; `-q` prints nothing.
use std::ffi::OsString;
fn main() {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let quiet = args.first().is_some_and(|a| a == "-q");
    if quiet {
        args.remove(0);
    }
    let blob = std::fs::read(args.remove(0)).expect("blob");
    let flags: u32 = args.remove(0).to_str().and_then(|s| s.parse().ok()).expect("flags");
    let spec = launch::Spec {
        command: &args,
        blob: &blob,
        flags,
        fixed_bytes: wire::count::FIXED_BYTES,
        prepare: &launch::counts::prepare,
        duration: None,
    };
    match launch::run(&spec) {
        Ok(o) => {
            let c = launch::counts::read(&o.results);
            if quiet {
                std::process::exit(o.ended.shell_code());
            }
            eprintln!(
                "{:?} cpu {} ms rss {} MB {:?}",
                o.ended,
                o.cpu_ns / 1_000_000,
                o.rss_bytes_max >> 20,
                c.totals
            );
            std::process::exit(o.ended.shell_code());
        }
        Err(e) => {
            eprintln!("farsight: {e}");
            std::process::exit(70);
        }
    }
}
