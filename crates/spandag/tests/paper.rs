//! The worked examples of the Cilkprof paper, every number counted by hand.

use spandag::Record;
use spandag::serial::{How, Stack, Totals};

fn counts(r: &Record) -> (u64, u64, u64) {
    (r.site.count, r.caller.count, r.local.count)
}

const MAIN: u32 = 0;
const FIB: u32 = 1;

/// Figure 5: line 4 spawns fib(n-1), line 5 calls fib(n-2); here sites 4 and 5. Each invocation costs 10 before
/// it spawns and 1 after its sync.
fn fib(s: &mut Stack, n: u32) {
    s.strand(10);
    if n < 2 {
        return;
    }
    s.enter(4, FIB, How::Spawned);
    fib(s, n - 1);
    s.leave();
    s.enter(5, FIB, How::Called);
    fib(s, n - 2);
    s.leave();
    s.sync();
    s.strand(1);
}

fn fib_from_main(n: u32) -> Totals {
    let mut s = Stack::new(0, 0);
    s.enter(13, MAIN, How::Called);
    fib(&mut s, n);
    s.leave();
    s.finish()
}

#[test]
fn the_invocation_tree_of_fib_4() {
    let t = fib_from_main(4);
    // 9 invocations, 4 of which have children.
    assert_eq!(t.work, 9 * 10 + 4);
    // fib(4), fib(3), fib(2), fib(1), and three syncs.
    assert_eq!(t.span, 4 * 10 + 3);
    // Figure 6: "the invocations of fib(3) from fib(4) and of fib(1) from fib(2) under fib(4)" are top for line 4,
    // three are for line 5; top-caller invocations are those of fib(4)'s own children and of fib(4) itself.
    assert_eq!(counts(&t.on_work[4]), (2, 1, 4));
    assert_eq!(counts(&t.on_work[5]), (3, 1, 4));
    assert_eq!(counts(&t.on_work[13]), (1, 1, 1));
    // fib(3): 5 invocations, 2 with children; fib(2): 3 and 1.
    assert_eq!(t.on_work[4].caller.work, 5 * 10 + 2);
    assert_eq!(t.on_work[5].caller.work, 3 * 10 + 1);
    assert_eq!(t.on_work[4].site.work, (5 * 10 + 2) + 10);
    assert_eq!(t.on_work[5].site.work, (3 * 10 + 1) + 10 + 10);
    assert_eq!(t.on_work[4].caller.span, 3 * 10 + 2);
    // On the span: main's call, then line 4 three times, nested.
    assert_eq!(counts(&t.on_span[4]), (1, 1, 3));
    assert_eq!(counts(&t.on_span[5]), (0, 0, 0));
    assert_eq!(t.on_span[4].local.span, 3 * 10 + 2);
    assert_eq!(t.on_span[13].local.span, 10 + 1);
}

#[test]
fn the_ratio_of_the_two_calls_of_fib_is_golden() {
    let t = fib_from_main(24);
    let ratio = t.on_work[4].caller.work as f64 / t.on_work[5].caller.work as f64;
    assert!((ratio - 1.618).abs() < 0.001, "{ratio}");
    assert_eq!(t.span, 24 * 10 + 23);
}

/// Figure 1: line 20 calls partition, which costs as many units as there are elements; line 21 spawns, line 22
/// calls pqsort on halves. Base cases below 32 elements cost 5 units an element.
fn pqsort(s: &mut Stack, n: u64) {
    if n < 32 {
        s.strand(5 * n);
        return;
    }
    s.enter(20, 2, How::Called);
    s.strand(n);
    s.leave();
    s.enter(21, 2, How::Spawned);
    pqsort(s, n / 2);
    s.leave();
    s.enter(22, 2, How::Called);
    pqsort(s, n / 2);
    s.leave();
    s.sync();
}

#[test]
fn quicksort_is_held_back_by_partition() {
    let mut s = Stack::new(0, 0);
    s.enter(31, MAIN, How::Called);
    pqsort(&mut s, 1024);
    s.leave();
    let t = s.finish();
    // Halving 1024 until it is below 32: levels 1024, 512, ..., 32, then 64 leaves of 16.
    assert_eq!(t.work, 6 * 1024 + 5 * 1024);
    assert_eq!(t.span, 2 * 1024 - 32 + 5 * 16);
    assert_eq!(t.on_work[20].local.count, 63);
    assert_eq!(t.on_work[20].site.work, 6 * 1024);
    // "All instances of this call site on the critical path are serial", and it holds nearly all of the span.
    let on_span = &t.on_span[20];
    assert_eq!((on_span.site.count, on_span.site.work, on_span.site.span), (6, 2016, 2016));
    assert_eq!(on_span.local.span, 2016);
    // "The sum of the local spans of the three call sites and of the call from main is the span of that call."
    let sum: u64 = [20, 21, 22, 31].iter().map(|&s: &usize| t.on_span[s].local.span).sum();
    assert_eq!(sum, t.on_work[31].site.span);
    // Without partition, a leaf is all that is left.
    let tenth = 102 + 51 + 25 + 12 + 6 + 3; // of 1024, 512, ..., 32, each rounded down
    assert_eq!(t.faster[20], [2016 / 2 + 80, tenth + 80, 80]);
}

/// Figure 8: mm spawns on lines 7, 9 and 11 and calls on line 13, twice over with a sync between; line 4 calls
/// base, which costs n³.
fn mm(s: &mut Stack, n: u64) {
    if n <= 2 {
        s.enter(4, 3, How::Called);
        s.strand(n * n * n);
        s.leave();
        return;
    }
    for _ in 0..2 {
        for (site, how) in [(7, How::Spawned), (9, How::Spawned), (11, How::Spawned), (13, How::Called)] {
            s.enter(site, 3, how);
            mm(s, n / 2);
            s.leave();
        }
        s.sync();
    }
}

#[test]
fn matrix_multiplication_never_calls_base_from_the_top() {
    let mut s = Stack::new(0, 0);
    s.enter(24, MAIN, How::Called);
    mm(&mut s, 16);
    s.leave();
    let t = s.finish();
    // 16 -> 8 -> 4 -> 2: three levels of eight calls, 512 base cases of 8 units.
    assert_eq!(t.work, 512 * 8);
    assert_eq!(t.span, 8 * 8, "two halves, one after the other, on three levels");
    assert_eq!(counts(&t.on_work[4]), (512, 0, 512), "top-caller measurements of base are 0");
    assert_eq!(t.on_work[4].local.work, 512 * 8);
    // Each of the four sites: 2 per mm of 16, 8 and 4 = 2 (1 + 8 + 64) invocations.
    for site in [7, 9, 11, 13] {
        assert_eq!(t.on_work[site].local.count, 2 * 73, "line {site}");
        assert_eq!(t.on_work[site].caller.count, 2);
        assert_eq!(t.on_work[site].caller.work, 2 * 64 * 8);
        assert_eq!(t.on_work[site].caller.span, 2 * 4 * 8);
        // Nested in one of the other three: 2 at the top, 2·6 below, 2·6·6 below those.
        assert_eq!(t.on_work[site].site.count, 2 * (1 + 6 + 36));
    }
    assert_eq!(t.on_span[4].local.span, t.span);
}
