//! `farsight doctor`.

use crate::farsight::Folder;

#[test]
fn the_doctor_tries_the_engine_and_says_what_it_found() {
    let folder = Folder::new();
    let ended = folder.run(&["doctor", "--json", "-"]).exits(0);
    let document = ended.json();
    assert_eq!(document["kind"], "doctor");
    let findings = document["findings"].as_array().expect("findings");
    let engine = findings.iter().find(|f| f["what"] == "engine (growth, count)").expect("the engine");
    assert_eq!(engine["grade"], "ok", "{engine}");
    for f in findings.iter().filter(|f| f["grade"] == "no") {
        assert_ne!(f["remedy"], "", "{f} names no remedy");
    }
    folder.run(&["doctor"]).exits(0).prints(&["ok    kernel: Linux", "engine (growth, count): ran `true`"]);
}
