//! Runs a program under a logging blob given by path and says how much it did: `log BLOB FLAGS PRINT PROGRAM ARGS...`,
//! with PRINT the number of events to print (0: nothing at all).
use std::ffi::OsString;
fn main() {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let blob = std::fs::read(args.remove(0)).expect("blob");
    let mut number = || -> u32 { args.remove(0).to_str().and_then(|s| s.parse().ok()).expect("a number") };
    let (flags, print) = (number(), number());
    let spec = launch::log::spec(&args, &blob, flags);
    match launch::run(&spec) {
        Ok(o) => {
            let (events, lost) = launch::log::read(&o.results);
            if print > 0 {
                let ms = o.cpu_ns / 1_000_000;
                eprintln!("{:?} cpu {ms} ms, {} events, {lost} lost", o.ended, events.len());
            }
            for e in events.iter().take(print as usize) {
                eprintln!(
                    "{} what {} class {} pc {:#x} {:#x} {:#x}",
                    e.tid, e.what, e.class, e.pc, e.address, e.length
                );
            }
            std::process::exit(o.ended.shell_code());
        }
        Err(e) => {
            eprintln!("farsight: {e}");
            std::process::exit(70);
        }
    }
}
