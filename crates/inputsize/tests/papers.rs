//! The worked examples of the papers, by the oracle and by the algorithm.

mod support;

use inputsize::core::thread::Config;
use inputsize::trace::text::parse;
use inputsize::{Activation, CellSize, Metric};
use support::{COSTS, algorithm, disagreement, oracle};

/// The activations of a routine in a text: oracle and algorithm agree on them.
fn activations(text: &str, routine: &str) -> Vec<Activation<COSTS>> {
    let text = parse(text).expect("a test's trace is well-formed");
    assert_eq!(disagreement(&text.steps, CellSize::FOUR, 4, 3), None);
    let number = text.routines.iter().position(|name| name == routine).expect("the routine is in the trace");
    let config = Config { metric: Metric::Both, cell_size: CellSize::FOUR, stamp_bits: 32 };
    let found = algorithm(&text.steps, config, 100);
    assert_eq!(found, oracle(&text.steps, CellSize::FOUR));
    found.into_values().flatten().filter(|activation| activation.routine == number as u32).collect()
}

fn sizes(text: &str, routine: &str) -> Vec<(u64, u64)> {
    activations(text, routine).iter().map(|activation| (activation.rms, activation.trms)).collect()
}

#[test]
fn first_paper_example_1() {
    let text = "
        t start main
        t call f
        t read x
        t write y
        t call g
        t read x
        t read y
        t read z
        t write w
        t return
        t read w
        t return
        t end";
    assert_eq!(sizes(text, "g"), [(3, 3)]);
    assert_eq!(sizes(text, "f"), [(2, 2)]);
}

#[test]
fn first_paper_example_2_get_and_mid() {
    // Arguments live on the stack, as in the paper: caller writes, callee reads.
    let text = "
        t start main
        t write mid.v
        t write mid.n
        t call mid
        t read mid.v
        t read mid.n
        t write get.v
        t write get.i
        t call get
        t read get.v
        t read get.i
        t read v[5]
        t return
        t write m
        t read m
        t return
        t end";
    assert_eq!(sizes(text, "get"), [(3, 3)]);
    assert_eq!(sizes(text, "mid"), [(3, 3)]);
}

#[test]
fn first_paper_example_3_count_zero() {
    for n in [0, 1, 7, 100] {
        let mut text = String::from("t start main\nt call count_zero\nt write i\nt write count\n");
        text += "t read v\n";
        for i in 0..n {
            text += &format!("t read n\nt read a[{i}]\nt read count\nt write count\nt read i\nt write i\n");
        }
        text += "t read n\nt read count\nt return\nt end";
        assert_eq!(sizes(&text, "count_zero"), [(n + 2, n + 2)]);
    }
}

#[test]
fn first_paper_example_4_recursive_count_zero() {
    // Each activation gets its two arguments in two cells of its own, which its caller writes; the
    // activation with n = 0 reads v like the others.
    let n = 20;
    let mut text = String::from("t start main\nt write v20\nt write n20\n");
    for i in (0..=n).rev() {
        text += &format!("t call count_zero\nt read n{i}\nt read v{i}\n");
        if i > 0 {
            text += &format!("t read a[{}]\nt write v{}\nt write n{}\n", i - 1, i - 1, i - 1);
        }
    }
    text += &"t return\n".repeat(n + 1);
    text += "t end";
    let found = activations(&text, "count_zero");
    // Innermost first: the i-th invocation, counted from 1, has size n - i + 3.
    let expected: Vec<u64> = (1..=n as u64 + 1).rev().map(|i| n as u64 + 3 - i).collect();
    assert_eq!(found.iter().map(|activation| activation.rms).collect::<Vec<_>>(), expected);
    assert!(found[..n].iter().all(|activation| !activation.outermost) && found[n].outermost);
}

#[test]
fn second_paper_figure_1a() {
    let text = "
        t1 start m1
        t2 start m2
        t1 call f
        t1 read x
        t2 call g
        t2 write x
        t1 read x
        t1 return
        t2 return
        t1 end
        t2 end";
    let f = activations(text, "f")[0];
    assert_eq!((f.rms, f.trms, f.induced.thread, f.induced.external), (1, 2, 1, 0));
}

#[test]
fn second_paper_figure_1b() {
    let text = "
        t1 start m1
        t2 start m2
        t1 call f
        t1 read x
        t2 call g
        t2 write x
        t1 call h
        t1 read x
        t1 return
        t1 read x
        t1 return
        t2 return
        t1 end
        t2 end";
    let (f, h) = (activations(text, "f")[0], activations(text, "h")[0]);
    assert_eq!((h.rms, h.trms, h.induced.thread), (1, 1, 1), "classified as induced, not as first access");
    assert_eq!((f.rms, f.trms, f.induced.thread, f.induced_self.thread), (1, 2, 1, 0));
}

#[test]
fn second_paper_figure_2_producer_and_consumer() {
    let n = 50;
    let mut text = String::from("p start pm\nc start cm\np call producer\nc call consumer\n");
    for _ in 0..n {
        text += "p call produceData\np write x\np return\nc call consumeData\nc read x\nc return\n";
    }
    text += "p return\nc return\np end\nc end";
    let consumer = activations(&text, "consumer")[0];
    assert_eq!((consumer.rms, consumer.trms, consumer.induced.thread), (1, n, n));
    assert_eq!(consumer.induced_self.thread, 0);
    assert!(activations(&text, "consumeData").iter().all(|c| (c.trms, c.induced_self.thread) == (1, 1)));
    assert_eq!(sizes(&text, "producer"), [(0, 0)]);
}

#[test]
fn second_paper_figure_3_buffered_read() {
    let n = 50;
    let mut text = String::from("t start main\nt call externalRead\n");
    for _ in 0..n {
        text += "t kwrite b:8\nt call consumeData\nt read b\nt return\n";
    }
    text += "t return\nt end";
    let read = activations(&text, "externalRead")[0];
    assert_eq!((read.rms, read.trms), (1, n));
    assert_eq!((read.induced.thread, read.induced.external), (0, n));
}

#[test]
fn what_the_kernel_reads_is_read_by_the_caller() {
    let text = "
        t start main
        t call send
        t kread v:40
        t kread v:40
        t return
        t end";
    assert_eq!(sizes(text, "send"), [(10, 10)]);
}

#[test]
fn memory_written_before_a_thread_starts_is_input_from_another_thread() {
    let text = "
        m start main
        m write v:8
        w start worker
        w read v:8
        w read constant
        w end
        m end";
    let worker = activations(text, "worker")[0];
    assert_eq!((worker.rms, worker.trms, worker.induced.thread), (3, 3, 2));
}

#[test]
fn folded_work_leaves_no_trace_in_sizes_but_in_costs() {
    let text = "
        t start main
        t call f
        t call realloc folded
        t cost 0 7
        t read metadata:64
        t call memcpy
        t read old:40
        t write new:40
        t return
        t signal handler
        t read flag
        t sigreturn
        t return
        t read new:40
        t return
        t end";
    let f = activations(text, "f")[0];
    assert_eq!(f.rms, 11, "the moved data and the handler's flag, not the metadata");
    assert_eq!(activations(text, "realloc")[0].rms, 1, "the handler ran in its extent");
    assert_eq!(sizes(text, "memcpy"), [(0, 0)]);
    assert_eq!((f.cost[0], f.cost_self[0]), (7, 0));
}

#[test]
fn costs_of_recursions_count_once_for_outermost_activations() {
    let text = "
        t start main
        t call even
        t cost 0 1
        t call odd
        t cost 0 2
        t call even
        t cost 0 4
        t return
        t return
        t call odd
        t cost 1 5
        t return
        t return
        t end";
    let even = activations(text, "even");
    assert_eq!(
        even.iter().map(|a| (a.cost[0], a.cost_self[0], a.outermost)).collect::<Vec<_>>(),
        [(4, 4, false), (7, 1, true)]
    );
    let odd = activations(text, "odd");
    assert_eq!(
        odd.iter().map(|a| (a.cost, a.outermost)).collect::<Vec<_>>(),
        [([6, 0], true), ([0, 5], true)]
    );
}
