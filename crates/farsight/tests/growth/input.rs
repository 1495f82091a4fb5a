//! Input that other threads or the kernel wrote.

use crate::profiled::Program;

#[test]
fn input_from_files_sockets_and_threads_is_counted_and_told_apart() {
    let program = Program::build(&["input.c"], &["-O1", "-g", "-pthread"]);
    let run = program.profile(&[], &[]);
    assert_eq!(run.output.status.code(), Some(0));
    // 16 cells of the kernel's per read; the table entry of `read` (2 cells) and libc's word on threads beside them.
    let sizes = run.sizes("file_reader");
    let beside = sizes[0].0 - 32;
    assert!(beside <= 4, "{sizes:?}");
    assert_eq!(sizes, (1..=10).map(|k| (k * 32 + beside, 1)).collect::<Vec<_>>());
    assert_eq!(run.input("file_reader").2, 16 * 110);
    assert_eq!(run.input("socket_reader").2, (1..=8).map(|k| k * 8).sum::<u64>());
    // Figure 2 of the second paper: each value is new, written by the producer.
    assert_eq!(run.sizes("take"), [(1, 50)]);
    assert_eq!(run.input("take"), (0, 50, 0));
    assert_eq!(run.sizes("put"), [(0, 50)]);
    assert!(run.points("consumer")[0].0 >= 50);
    // Workers read what the main thread wrote, each its part.
    assert_eq!(run.sizes("worker_sum"), [(100, 1), (200, 1), (300, 1), (400, 1)]);
    assert_eq!(run.input("worker_sum"), (0, 1000, 0));
    assert_eq!(run.routine("worker_sum")["threads"].as_array().unwrap().len(), 4);
}

#[test]
fn rms_is_blind_to_them() {
    let program = Program::build(&["input.c"], &["-O1", "-g", "-pthread"]);
    let run = program.profile(&["--metric", "rms"], &[]);
    // One buffer, read again and again.
    let sizes = run.sizes("file_reader");
    assert_eq!(sizes.len(), 1, "{sizes:?}");
    assert_eq!(sizes[0].1, 10);
    assert_eq!(run.input("worker_sum"), (1000, 0, 0));
}

#[test]
fn every_family_of_system_calls_is_external_input() {
    let program = Program::build(&["kernel.c"], &["-O1", "-g"]);
    let run = program.profile(&[], &[]);
    assert_eq!(run.output.status.code(), Some(0));
    let expected = [
        ("f_read", 10),
        ("f_pread", 8),
        ("f_readv", 10),
        ("f_preadv2", 7),
        // It reads further than the kernel wrote.
        ("f_short", 8),
        ("f_recvfrom", 8),
        ("f_recvmsg", 5),
        ("f_getrandom", 16),
        ("f_fstat", 12),
        ("f_newfstatat", 6),
        ("f_statx", 9),
        ("f_epoll_wait", 3),
        ("f_poll", 1),
        ("f_pipe2", 2),
        ("f_clock_gettime", 4),
        ("f_uname", 4),
        ("f_getcwd", 1),
        ("f_readlink", 1),
        ("f_ioctl", 1),
        ("f_wait4", 1),
        // The event, and the context that the kernel gave out.
        ("f_io_getevents", 10),
        ("f_getdents64", 5),
        ("f_sysinfo", 2),
        ("f_prlimit64", 4),
        // The address, and its length.
        ("f_getsockname", 2),
        ("f_getsockopt", 1),
        ("f_sched_getaffinity", 2),
        ("f_process_vm_readv", 6),
        ("f_rt_sigtimedwait", 1),
        ("f_none", 0),
    ];
    let wrong: Vec<String> = expected
        .iter()
        .filter(|(name, cells)| run.input(name).2 != *cells)
        .map(|(name, cells)| format!("{name}: {} instead of {cells}", run.input(name).2))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
