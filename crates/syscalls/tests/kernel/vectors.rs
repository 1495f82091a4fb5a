//! Vectors, polling, completion events.

use std::io::Write;
use std::os::fd::AsRawFd;

use crate::arena::Agree::{Covers, Exactly};
use crate::arena::check;

#[test]
fn scattered_reads() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let fd = reader.as_raw_fd() as u64;
    let mut fill = |n: usize| writer.write_all(&vec![9; n]).unwrap();
    let fill = std::cell::RefCell::new(&mut fill);
    let got = check(libc::SYS_readv, Exactly, |a| {
        (fill.borrow_mut())(25);
        let (x, y, z) = (a.room(10), a.room(10), a.room(10));
        [fd, a.words(&[x, 10, y, 10, z, 10]), 3, 0, 0, 0]
    });
    assert_eq!(got, 25);
    let pid = u64::from(std::process::id());
    let got = check(libc::SYS_process_vm_readv, Exactly, |a| {
        let (from, to) = (a.put(b"0123456789"), a.room(20));
        [pid, a.words(&[to, 20]), 1, a.words(&[from, 10]), 1, 0]
    });
    assert_eq!(got, 10);
    check(libc::SYS_pipe2, Exactly, |a| [a.room(8), 0, 0, 0, 0, 0]);
}

#[test]
fn polling() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"x").unwrap();
    let (r, w) = (reader.as_raw_fd() as u64, writer.as_raw_fd() as u64);
    // pollfd: fd (4), events (2), revents (2)
    let fds = |a: &mut crate::arena::Arena| {
        let entry = |fd: u64, events: u16| fd | u64::from(events) << 32 | 0xa5a5 << 48;
        a.words(&[entry(r, 1), entry(w, 4), entry(r, 4)])
    };
    assert_eq!(check(libc::SYS_poll, Exactly, |a| [fds(a), 3, 0, 0, 0, 0]), 2);
    assert_eq!(check(libc::SYS_ppoll, Covers, |a| [fds(a), 3, a.words(&[5, 7]), 0, 0, 0]), 2);
    let set = |a: &mut crate::arena::Arena, fd: u64| {
        let mut bits = [0u64; 2];
        bits[(fd / 64) as usize] = 1 << (fd % 64);
        a.words(&bits)
    };
    let ready = check(libc::SYS_select, Covers, |a| [100, set(a, r), set(a, w), 0, a.words(&[3, 0]), 0]);
    assert_eq!(ready, 2);
    // SAFETY: makes a descriptor, touches no memory.
    let ep = unsafe { libc::syscall(libc::SYS_epoll_create1, 0) } as u64;
    check(libc::SYS_epoll_ctl, Exactly, |a| {
        [ep, libc::EPOLL_CTL_ADD as u64, r, a.ints(&[libc::EPOLLIN as u32, 77, 88]), 0, 0]
    });
    assert_eq!(check(libc::SYS_epoll_wait, Exactly, |a| [ep, a.room(120), 10, 0, 0, 0]), 1);
    assert_eq!(check(libc::SYS_epoll_pwait, Exactly, |a| [ep, a.room(120), 10, 0, 0, 0]), 1);
}

#[test]
fn kernel_aio() {
    let setup = check(libc::SYS_io_setup, Covers, |a| [8, a.words(&[0]), 0, 0, 0, 0]);
    if setup < 0 {
        println!("skipped: no kernel AIO (errno {})", -setup);
        return;
    }
    // SAFETY: a context of our own in a local variable.
    let ctx = unsafe {
        let mut id = 0u64;
        assert_eq!(libc::syscall(libc::SYS_io_setup, 4, &raw mut id), 0);
        id
    };
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let submit = |a: &mut crate::arena::Arena, data: u64| {
        let mut iocb = [0u8; 64];
        iocb[20..24].copy_from_slice(&(file.as_raw_fd() as u32).to_le_bytes());
        iocb[24..32].copy_from_slice(&data.to_le_bytes());
        iocb[32..40].copy_from_slice(&64u64.to_le_bytes());
        let at = a.put(&iocb);
        a.words(&[at])
    };
    // The buffer itself is written at once here, but belongs to the harvest: submit into memory outside of the arena.
    let mut elsewhere = vec![0u8; 64];
    let target = elsewhere.as_mut_ptr() as u64;
    assert_eq!(check(libc::SYS_io_submit, Covers, |a| [ctx, 1, submit(a, target), 0, 0, 0]), 1);
    // SAFETY: drains the two events into a local buffer.
    unsafe {
        let mut events = [[0u64; 4]; 4];
        assert_eq!(libc::syscall(libc::SYS_io_getevents, ctx, 2, 2, events.as_mut_ptr(), 0), 2);
    }
    assert_eq!(&elsewhere[..4], b"\x7fELF");
    // Harvest with control block and buffer in the arena: the buffer was written before, so the table says more.
    let got = check(libc::SYS_io_getevents, Covers, |a| {
        let buffer = a.room(64);
        let list = submit(a, buffer);
        // SAFETY: control block and buffer are in the arena, which outlives the harvest.
        assert_eq!(unsafe { libc::syscall(libc::SYS_io_submit, ctx, 1, list) }, 1);
        [ctx, 1, 1, a.room(64), 0, 0]
    });
    assert_eq!(got, 1);
}
