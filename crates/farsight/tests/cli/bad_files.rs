//! Files that are not whole profiles: exit 65 and a sentence that says which kind of wrong it is.

use std::fs;

use crate::farsight::Folder;
use crate::sample;

fn report(name: &str, bytes: &[u8]) -> crate::farsight::Ended {
    let folder = Folder::new();
    fs::write(folder.path(name), bytes).unwrap();
    folder.run(&["report", name])
}

fn sample_bytes() -> Vec<u8> {
    let folder = Folder::new();
    fs::read(folder.save("a.farsight", &sample::typical(1))).unwrap()
}

#[test]
fn foreign_files_are_told_apart() {
    report("a.farsight", b"").exits(65).says(&["not a Farsight profile"]);
    report("a.farsight", b"hello, world\n").exits(65).says(&["not a Farsight profile"]);
    report("a.farsight", b"\x7fELF\x02\x01\x01").exits(65).says(&["not a Farsight profile"]);
    report("a.farsight", b"startup\ttime=1\n").exits(65).says(&["not a Farsight profile"]);
}

#[test]
fn truncated_and_corrupted_files_say_so() {
    let whole = sample_bytes();
    report("a.farsight", &whole[..whole.len() * 2 / 3]).exits(65).says(&["truncated", "--salvage"]);
    let mut bent = whole.clone();
    let middle = bent.len() / 2;
    bent[middle] ^= 0x55;
    report("a.farsight", &bent).exits(65).says(&["corrupted", "--salvage"]);
}

#[test]
fn what_is_intact_can_be_salvaged() {
    let folder = Folder::new();
    folder.save("a.farsight", &sample::typical(1));
    folder.save("b.farsight", &sample::typical(2));
    folder.run(&["merge", "a.farsight", "b.farsight", "-o", "both.farsight"]).exits(0);
    let whole = fs::read(folder.path("both.farsight")).unwrap();
    fs::write(folder.path("cut.farsight"), &whole[..whole.len() * 3 / 4]).unwrap();
    folder.run(&["report", "cut.farsight"]).exits(65);
    folder.run(&["report", "cut.farsight", "--salvage"]).exits(0).prints(&["parse_line"]);
}

#[test]
fn a_missing_file_is_named() {
    Folder::new().run(&["report", "nowhere.farsight"]).exits(66).says(&["nowhere.farsight"]);
}

#[test]
fn unknown_flags_are_usage() {
    Folder::new().run(&["report", "--frobnicate"]).exits(64);
    Folder::new().run(&[]).exits(64);
    Folder::new().run(&["--help"]).exits(0);
    Folder::new().run(&["--version"]).exits(0);
}
