//! Idleness for people and for scripts.

use std::collections::HashMap;

use analyse::idle::advice::share;
use analyse::idle::diff::{Change, Side};
use analyse::idle::project::Node;
use analyse::idle::{Advice, Class, Function, IdleAnalysis, Values};
use profile::idle::FrameKind;
use profile::{Idle, Run};
use serde_json::{Value, json as value};

use crate::json::header;
use crate::table::{Align, Table, printable, shorten};
use crate::units;

/// Rows of the function table.
const ROWS_MAX: usize = 15;
/// Columns that a name may take.
const NAME_WIDTH: usize = 44;
/// Locks listed.
const LOCKS_MAX: usize = 5;
/// Identity off by more than this is said.
const IDENTITY_TOLERANCE: f64 = 0.01;

/// The document of a run.
pub fn json(run: &Run, idle: &Idle, analysis: &IdleAnalysis) -> Value {
    let mut document = header(run);
    let totals = &analysis.totals;
    let contexts: Vec<Value> = analysis
        .logical
        .nodes
        .iter()
        .enumerate()
        .map(|(i, n)| {
            let frame = &idle.frames[n.frame as usize];
            let mut c = value!({
                "id": i, "parent": n.parent, "function": &*n.name, "file": frame.file, "line": frame.line,
                "kind": kind(n), "excl": true,
            });
            extend(&mut c, fields(&n.own));
            c
        })
        .collect();
    let functions: Vec<Value> = analysis
        .functions
        .iter()
        .map(|f| {
            value!({
                "name": f.name, "file": f.file, "line": f.line, "object": f.object,
                "excl": fields(&f.own), "incl": fields(&f.all),
                "effort_share": share(f.all.effort_ns() as i64, totals.values.effort_ns()),
                "idle_of_effort": share(f.all.idle_ns.max(0), f.all.effort_ns()),
                "overhead_of_effort": share(f.all.overhead_ns() as i64, f.all.effort_ns()),
                "advice": f.advice.word(), "reason": f.advice.sentence(),
            })
        })
        .collect();
    let path = |context: u32| -> Vec<&str> {
        let mut names = Vec::new();
        let mut at = analysis.logical.of_context.get(context as usize).copied().flatten();
        while let Some(n) = at {
            let node = &analysis.logical.nodes[n as usize];
            names.push(&*node.name);
            at = node.parent;
        }
        names.reverse();
        names
    };
    let locks: Vec<Value> = idle
        .locks
        .iter()
        .map(|l| {
            value!({
                "address": format!("{:#x}", l.address), "kind": l.kind, "wait_ns": l.wait_ns,
                "acquisitions": l.acquisitions, "contended": l.contended, "handed_over_ns": l.handed_over_ns,
                "waiter": l.waiter.map(path),
                "idle_workers": l.waiter.is_some_and(|w| analysis.logical.idling.get(w as usize) == Some(&true)),
                "holders": merged(l, &path).into_iter()
                    .map(|(p, ns, count)| value!({"path": p, "blame_ns": ns, "count": count}))
                    .collect::<Vec<_>>(),
            })
        })
        .collect();
    let mut all = fields(&totals.values);
    extend(
        &mut all,
        value!({ "nobody_ns": totals.nobody_ns, "preempted_ns": totals.preempted_ns.max(0), "spin_ns": totals.spin_ns }),
    );
    let body = value!({
        "cores": idle.cores, "threads": idle.threads, "period_ns": idle.period_ns, "samples": idle.samples,
        "lost": idle.lost, "backend": idle.backend, "stitched": idle.stitched, "orphans": idle.orphans,
        "totals": all,
        "identity": {
            "cores_times_wall_ns": totals.cores_times_wall_ns, "accounted_ns": totals.accounted_ns,
        },
        "contexts": contexts, "functions": functions, "locks": locks,
    });
    if let Value::Object(body) = body {
        document.extend(body);
    }
    Value::Object(document)
}

/// Holders of a lock by logical path.
pub(crate) fn merged<'a>(
    lock: &profile::idle::Lock,
    path: &impl Fn(u32) -> Vec<&'a str>,
) -> Vec<(Vec<&'a str>, u64, u64)> {
    let mut found: Vec<(Vec<&str>, u64, u64)> = Vec::new();
    for holder in &lock.holders {
        let path = path(holder.context);
        match found.iter_mut().find(|f| f.0 == path) {
            Some(known) => (known.1, known.2) = (known.1 + holder.blame_ns, known.2 + holder.count),
            None => found.push((path, holder.blame_ns, holder.count)),
        }
    }
    found.sort_by_key(|f| std::cmp::Reverse(f.1));
    found
}

fn extend(to: &mut Value, more: Value) {
    if let (Value::Object(to), Value::Object(more)) = (to, more) {
        to.extend(more);
    }
}

fn fields(v: &Values) -> Value {
    value!({
        "work_ns": v.work_ns, "idle_ns": v.idle_ns.max(0), "overhead_ns": v.overhead_ns(),
        "sync_ns": v.sync_ns, "schedule_ns": v.schedule_ns, "blocked_ns": v.blocked_ns, "samples": v.samples,
    })
}

pub(crate) fn kind(node: &Node) -> &'static str {
    match node.kind {
        FrameKind::Call | FrameKind::Other | FrameKind::Wait | FrameKind::Spin => "call",
        FrameKind::Inline => "inline",
        FrameKind::Loop => "loop",
        FrameKind::Task => "task",
        FrameKind::Thread => "thread",
    }
}

/// The summary of a run.
pub fn terminal(run: &Run, idle: &Idle, analysis: &IdleAnalysis) -> String {
    let t = &analysis.totals;
    let whole = t.cores_times_wall_ns;
    let percent = |ns: i64| units::percent(share(ns, whole));
    let name = run.program.path.rsplit('/').next().unwrap_or_default();
    let mut out = format!(
        "{}: {} on {} cores, {} threads, {} samples ({} lost) of {} each\n",
        printable(name),
        units::duration(idle.span_ns),
        idle.cores,
        idle.threads,
        idle.samples,
        idle.lost,
        units::duration(idle.period_ns),
    );
    out.push_str(&format!(
        "core time: {} work, {} overhead, {} idle, {} nobody running; threads were blocked for {}\n",
        percent(t.values.work_ns as i64),
        percent(t.values.overhead_ns() as i64),
        percent(t.values.idle_ns),
        percent(t.nobody_ns as i64),
        units::duration(t.values.blocked_ns),
    ));
    if share(t.preempted_ns, whole) > 0.02 {
        out.push_str(&format!(
            "of which {}: threads wanted a core, and others had it (other programs, or more threads than cores)\n",
            percent(t.preempted_ns)
        ));
    }
    if let Some(stitched) = analysis.stitched_share {
        out.push_str(&format!(
            "tasks: {} of their samples stand below their creator\n",
            units::percent(stitched)
        ));
    }
    out.push('\n');
    if idle.samples == 0 {
        out.push_str("No sample was taken: the program ended within one period. A higher --rate may help.\n");
    } else {
        out.push_str(&format!("{}\n\n", answer(analysis)));
        out.push_str(&function_table(analysis));
        out.push_str(&locks(idle, analysis));
    }
    let off = t.accounted_ns.abs_diff(whole) as f64 / whole.max(1) as f64;
    if off > IDENTITY_TOLERANCE {
        out.push_str(&format!(
            "note: work, overhead, idleness and nobody add up to {}, cores times time to {} ({:.1} % apart)\n",
            units::duration(t.accounted_ns),
            units::duration(whole),
            off * 100.0,
        ));
    }
    for problem in &run.problems {
        out.push_str(&format!("note: {}\n", printable(problem)));
    }
    out
}

fn answer(analysis: &IdleAnalysis) -> String {
    let t = &analysis.totals;
    let whole = t.cores_times_wall_ns;
    let first = answerable(analysis);
    let idle = share(t.values.idle_ns, whole);
    let overhead = share(t.values.overhead_ns() as i64, whole);
    if share(t.nobody_ns as i64 - t.preempted_ns.max(0), whole) > 0.5 {
        return "Most of the time no thread was running: look at what they wait for (blocked time), not at idleness."
            .into();
    }
    match first {
        Some((f, idle_ns)) if idle >= 0.05 => format!(
            "While {} ran, {} of all idle core time passed ({} of the run): {}.",
            shorten(&f.name, NAME_WIDTH),
            units::percent(share(idle_ns, t.values.idle_ns.max(0) as u64)),
            units::percent(share(idle_ns, whole)),
            f.advice.sentence(),
        ),
        _ if overhead >= 0.1 => format!(
            "Cores are busy, but {} of their time is overhead: make tasks larger or share less.",
            units::percent(overhead)
        ),
        _ => "Cores are busy with the program's own code: to be faster, make that code faster.".into(),
    }
}

/// The function of the program during which most cores were idle, and for how long. What libraries do counts as their
/// caller's: nobody can make `cos` parallel.
fn answerable(analysis: &IdleAnalysis) -> Option<(&Function, i64)> {
    let nodes = &analysis.logical.nodes;
    let mut sums: HashMap<&str, i64> = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        let mut at = i;
        let own = |n: &Node| n.class == Class::Work && n.kind != FrameKind::Loop;
        while let (false, Some(parent)) = (own(&nodes[at]), nodes[at].parent) {
            at = parent as usize;
        }
        *sums.entry(&*nodes[at].name).or_default() += node.own.idle_ns;
    }
    let best = sums.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)))?;
    let function = analysis.functions.iter().find(|f| f.name == best.0)?;
    (best.1 > 0).then_some((function, best.1))
}

fn function_table(analysis: &IdleAnalysis) -> String {
    let whole = analysis.totals.cores_times_wall_ns;
    let mut table = Table::new(&[
        ("", Align::Right),
        ("function", Align::Left),
        ("idle", Align::Right),
        ("overhead", Align::Right),
        ("work", Align::Right),
        ("incl. idle", Align::Right),
        ("incl. work", Align::Right),
        ("blocked", Align::Right),
        ("advice", Align::Left),
    ]);
    let percent = |ns: i64| units::percent(share(ns, whole));
    let shown: Vec<&Function> = analysis.functions.iter().filter(|f| !f.all.is_zero()).collect();
    for (i, f) in shown.iter().take(ROWS_MAX).enumerate() {
        table.row(vec![
            (i + 1).to_string(),
            shorten(&f.name, NAME_WIDTH),
            percent(f.own.idle_ns),
            percent(f.own.overhead_ns() as i64),
            percent(f.own.work_ns as i64),
            percent(f.all.idle_ns),
            percent(f.all.work_ns as i64),
            if f.all.blocked_ns == 0 { "-".into() } else { units::duration(f.all.blocked_ns) },
            if f.advice == Advice::None { "-".into() } else { f.advice.word().into() },
        ]);
    }
    let mut out = table.render();
    if shown.len() > ROWS_MAX {
        out.push_str(&format!("   … and {} more\n", shown.len() - ROWS_MAX));
    }
    out
}

fn locks(idle: &Idle, analysis: &IdleAnalysis) -> String {
    let mut out = String::new();
    // The function that it was in, or that made the thread which is nothing else.
    let function = |context: u32| -> Vec<&str> {
        let nodes = &analysis.logical.nodes;
        let mut at = analysis.logical.of_context.get(context as usize).copied().flatten();
        let mut thread = None;
        while let Some(node) = at.map(|n| &nodes[n as usize]) {
            match node.kind {
                FrameKind::Loop => {}
                FrameKind::Thread => thread = Some(&*node.name),
                _ => return [thread, Some(&*node.name)].into_iter().flatten().collect(),
            }
            at = node.parent;
        }
        thread.into_iter().collect()
    };
    let idles = |l: &profile::idle::Lock| {
        l.waiter.is_some_and(|w| analysis.logical.idling.get(w as usize).copied().unwrap_or(false))
    };
    let shown = |l: &&profile::idle::Lock| l.wait_ns >= 1_000_000 && !l.holders.is_empty() && !idles(l);
    for lock in idle.locks.iter().filter(shown).take(LOCKS_MAX) {
        if out.is_empty() {
            out.push_str("\nWaited for:\n");
        }
        let holders: Vec<String> = merged(lock, &function)
            .iter()
            .take(3)
            .map(|(path, ns, _)| {
                let name = path.last().copied().unwrap_or("?");
                let what = if path.len() > 1 { "a thread of " } else { "" };
                format!("{what}{} ({})", shorten(name, NAME_WIDTH), units::duration(*ns))
            })
            .collect();
        out.push_str(&format!(
            "  {} at {:#x}: {} in {} waits; because of {}\n",
            printable(&lock.kind),
            lock.address,
            units::duration(lock.wait_ns),
            units::count(lock.contended),
            holders.join(", "),
        ));
    }
    out
}

/// The comparison of two runs, or of two programs' runs.
pub fn diff(old: &Side, new: &Side, changes: &[Change<'_>]) -> String {
    let side = |s: &Side| {
        let whole = s.totals.cores_times_wall_ns;
        let percent = |ns: i64| units::percent(share(ns, whole));
        let runs = if s.runs == 1 { String::new() } else { format!("{} runs, ", s.runs) };
        format!(
            "{runs}{} on {} cores, {} threads; core time {}: {} work, {} overhead, {} idle, {} nobody",
            units::duration(s.span_ns),
            s.cores,
            s.threads,
            units::duration(whole),
            percent(s.totals.values.work_ns as i64),
            percent(s.totals.values.overhead_ns() as i64),
            percent(s.totals.values.idle_ns),
            percent(s.totals.nobody_ns as i64),
        )
    };
    let mut out = format!("before  {}\nafter   {}\n", side(old), side(new));
    if old.runs == 1 && new.runs == 1 {
        out.push_str(&scaling(old, new));
    }
    out.push('\n');
    if changes.is_empty() {
        out.push_str("No function changed its share of core time beyond noise.\n");
        return out;
    }
    let mut table = Table::new(&[
        ("function", Align::Left),
        ("work", Align::Right),
        ("overhead", Align::Right),
        ("idle", Align::Right),
        ("before", Align::Right),
        ("after", Align::Right),
        ("", Align::Left),
    ]);
    let effort = |f: Option<&Function>| f.map_or("-".into(), |f| units::duration(f.own.effort_ns()));
    for change in changes.iter().take(30) {
        let [work, overhead, idle] = change.points.map(|p| format!("{:+.1}", p * 100.0));
        let what = match (change.old, change.new) {
            (None, _) => "new",
            (_, None) => "gone",
            _ => "",
        };
        let name = shorten(change.name, NAME_WIDTH);
        table.row(vec![name, work, overhead, idle, effort(change.old), effort(change.new), what.into()]);
    }
    out.push_str("Points of core time; then work, overhead and idleness together:\n");
    out.push_str(&table.render());
    out
}

/// How much faster it is, and what more work it is: with other numbers of threads the second question is where time went.
fn scaling(old: &Side, new: &Side) -> String {
    let ratio = |a: u64, b: u64| a as f64 / b.max(1) as f64;
    let cpu = |s: &Side| s.totals.values.work_ns + s.totals.values.overhead_ns();
    format!(
        "        {:.2} times as fast; {:.2} times the CPU time in work, {:.2} times in work and overhead\n",
        ratio(old.span_ns, new.span_ns),
        ratio(new.totals.values.work_ns, old.totals.values.work_ns),
        ratio(cpu(new), cpu(old)),
    )
}

/// The comparison as a document; the runs are the first of each side.
pub fn diff_json(old: (&Run, &Side), new: (&Run, &Side), changes: &[Change<'_>]) -> Value {
    let side = |(run, side): (&Run, &Side)| {
        let mut totals = fields(&side.totals.values);
        let whole =
            value!({ "nobody_ns": side.totals.nobody_ns, "core_ns": side.totals.cores_times_wall_ns });
        extend(&mut totals, whole);
        value!({
            "command": run.command, "program": run.program.path, "runs": side.runs, "cores": side.cores,
            "threads": side.threads, "wall_ns": side.span_ns, "totals": totals,
        })
    };
    value!({
        "farsight": crate::json::INTERFACE_VERSION, "kind": "diff", "mode": "idle",
        "old": side(old), "new": side(new),
        "changes": changes.iter().map(|c| value!({
            "name": c.name, "work_points": c.points[0] * 100.0, "overhead_points": c.points[1] * 100.0,
            "idle_points": c.points[2] * 100.0, "old": c.old.map(|f| fields(&f.own)), "new": c.new.map(|f| fields(&f.own)),
        })).collect::<Vec<_>>(),
    })
}
