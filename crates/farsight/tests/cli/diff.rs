//! `farsight diff`.

use crate::farsight::Folder;
use crate::sample::{profile, routine};

#[test]
fn a_class_change_is_named_and_can_fail() {
    let folder = Folder::new();
    let scan = || routine("scan", 5_000, |n| 100.0 + 3_000.0 * n);
    folder.save("old.farsight", &profile(1, vec![scan(), routine("parse", 5_000, |n| 50.0 + 4.0 * n)]));
    folder.save("new.farsight", &profile(2, vec![scan(), routine("parse", 5_000, |n| 50.0 + 0.1 * n * n)]));
    let ended = folder.run(&["diff", "old.farsight", "new.farsight"]).exits(0);
    ended.prints(&["worse", "parse", "grows differently", "n^2"]);
    folder.run(&["diff", "old.farsight", "new.farsight", "--fail-on-worse"]).exits(1);
    folder.run(&["diff", "new.farsight", "old.farsight", "--fail-on-worse"]).exits(0);
    let changes = folder.run(&["diff", "old.farsight", "new.farsight", "--json", "-"]).exits(0).json();
    assert_eq!(changes["changes"][0]["change"], "class");
}

#[test]
fn no_change_is_said_in_a_sentence() {
    let folder = Folder::new();
    folder.save("a.farsight", &profile(1, vec![routine("scan", 5_000, |n| 100.0 + 30.0 * n)]));
    folder.run(&["diff", "a.farsight", "a.farsight"]).exits(0).prints(&["No routine changed"]);
}
