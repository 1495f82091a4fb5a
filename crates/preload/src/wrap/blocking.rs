//! Sleeping, readiness, input, output and children: calls that block in the kernel.
//!
//! Functions of libc that block inside themselves (`fread`, `getaddrinfo`, `system`) do not pass through here.

use super::waiting;
use crate::abi::*;
use crate::hooks::{Hooks, Interest, WaitKind, Wake, WakeKind};
use crate::{real, thread};

/// Calls that wait; the expression before the name is the object.
macro_rules! waits {
    ($($interest:ident $kind:ident $object:expr => $done:ident $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            pub unsafe fn $name<H: Hooks>($($arg: $type),*) -> $result {
                // SAFETY: the caller's contract.
                let call = || unsafe { real::$name($($arg),*) };
                waiting::<H, $result>(Interest::$interest, WaitKind::$kind, ($object) as usize,
                    |result| $done(result as isize), call)
            }
        )*
    };
}

/// Most calls: -1 means failure.
fn posix(result: isize) -> bool {
    result != -1
}

/// Calls that give an error number, or the time left.
fn zero(result: isize) -> bool {
    result == 0
}

waits! {
    SLEEP Sleep 0 => zero nanosleep(time: Ptr, left: Ptr) -> Int;
    SLEEP Sleep 0 => zero clock_nanosleep(clock: Int, flags: Int, time: Ptr, left: Ptr) -> Int;
    SLEEP Sleep 0 => zero usleep(us: UInt) -> Int;
    SLEEP Sleep 0 => zero sleep(seconds: UInt) -> UInt;
    SLEEP Sleep 0 => zero thrd_sleep(time: Ptr, left: Ptr) -> Int;

    POLL Poll 0 => posix poll(fds: Ptr, count: Word, timeout: Int) -> Int;
    POLL Poll 0 => posix __poll_chk(fds: Ptr, count: Word, timeout: Int, size: Word) -> Int;
    POLL Poll 0 => posix ppoll(fds: Ptr, count: Word, timeout: Ptr, mask: Ptr) -> Int;
    POLL Poll 0 => posix __ppoll_chk(fds: Ptr, count: Word, timeout: Ptr, mask: Ptr, size: Word) -> Int;
    POLL Poll 0 => posix select(n: Int, r: Ptr, w: Ptr, x: Ptr, timeout: Ptr) -> Int;
    POLL Poll 0 => posix pselect(n: Int, r: Ptr, w: Ptr, x: Ptr, timeout: Ptr, mask: Ptr) -> Int;
    POLL Poll ep => posix epoll_wait(ep: Int, events: Ptr, most: Int, timeout: Int) -> Int;
    POLL Poll ep => posix epoll_pwait(ep: Int, events: Ptr, most: Int, timeout: Int, mask: Ptr) -> Int;
    POLL Poll ep => posix epoll_pwait2(ep: Int, events: Ptr, most: Int, timeout: Ptr, mask: Ptr) -> Int;

    IO Input fd => posix read(fd: Int, buffer: Ptr, size: Word) -> SWord;
    IO Input fd => posix __read_chk(fd: Int, buffer: Ptr, size: Word, have: Word) -> SWord;
    IO Input fd => posix pread(fd: Int, buffer: Ptr, size: Word, at: Long) -> SWord;
    IO Input fd => posix pread64(fd: Int, buffer: Ptr, size: Word, at: Long) -> SWord;
    IO Input fd => posix __pread_chk(fd: Int, buffer: Ptr, size: Word, at: Long, have: Word) -> SWord;
    IO Input fd => posix __pread64_chk(fd: Int, buffer: Ptr, size: Word, at: Long, have: Word) -> SWord;
    IO Input fd => posix readv(fd: Int, parts: Ptr, count: Int) -> SWord;
    IO Input fd => posix preadv(fd: Int, parts: Ptr, count: Int, at: Long) -> SWord;
    IO Input fd => posix preadv64(fd: Int, parts: Ptr, count: Int, at: Long) -> SWord;
    IO Input fd => posix preadv2(fd: Int, parts: Ptr, count: Int, at: Long, flags: Int) -> SWord;
    IO Input fd => posix preadv64v2(fd: Int, parts: Ptr, count: Int, at: Long, flags: Int) -> SWord;
    IO Input fd => posix recv(fd: Int, buffer: Ptr, size: Word, flags: Int) -> SWord;
    IO Input fd => posix __recv_chk(fd: Int, buffer: Ptr, size: Word, have: Word, flags: Int) -> SWord;
    IO Input fd => posix recvfrom(fd: Int, buffer: Ptr, size: Word, flags: Int, from: Ptr, len: Ptr) -> SWord;
    IO Input fd => posix __recvfrom_chk(
        fd: Int, buffer: Ptr, size: Word, have: Word, flags: Int, from: Ptr, len: Ptr) -> SWord;
    IO Input fd => posix recvmsg(fd: Int, message: Ptr, flags: Int) -> SWord;
    IO Input fd => posix recvmmsg(fd: Int, messages: Ptr, count: UInt, flags: Int, timeout: Ptr) -> Int;
    IO Input fd => posix eventfd_read(fd: Int, value: Ptr) -> Int;
    IO Input queue => posix msgrcv(queue: Int, message: Ptr, size: Word, kind: Long, flags: Int) -> SWord;
    IO Input queue => posix mq_receive(queue: Int, message: Ptr, size: Word, priority: Ptr) -> SWord;
    IO Input queue => posix mq_timedreceive(
        queue: Int, message: Ptr, size: Word, priority: Ptr, until: Ptr) -> SWord;
    IO Connection fd => posix accept(fd: Int, address: Ptr, len: Ptr) -> Int;
    IO Connection fd => posix accept4(fd: Int, address: Ptr, len: Ptr, flags: Int) -> Int;
    IO Storage fd => posix fsync(fd: Int) -> Int;
    IO Storage fd => posix fdatasync(fd: Int) -> Int;
    IO Storage fd => posix flock(fd: Int, operation: Int) -> Int;

    CHILD Child 0 => posix wait(status: Ptr) -> Int;
    CHILD Child pid => posix waitpid(pid: Int, status: Ptr, options: Int) -> Int;
    CHILD Child 0 => posix wait3(status: Ptr, options: Int, usage: Ptr) -> Int;
    CHILD Child pid => posix wait4(pid: Int, status: Ptr, options: Int, usage: Ptr) -> Int;
    CHILD Child id => posix waitid(kind: UInt, id: UInt, info: Ptr, options: Int) -> Int;
}

/// Calls that may wake whoever reads at the other end, and may block as well.
macro_rules! outputs {
    ($($kind:ident $object:ident => $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            pub unsafe fn $name<H: Hooks>($($arg: $type),*) -> $result {
                if H::INTEREST.wants(Interest::WAKES) && H::INTEREST.wants(Interest::IO) {
                    if let Some(thread) = thread::current::<H>() {
                        let wake = Wake { kind: WakeKind::Output, object: $object as usize, most: u32::MAX };
                        H::before_wake(thread, wake);
                    }
                }
                // SAFETY: the caller's contract.
                let call = || unsafe { real::$name($($arg),*) };
                waiting::<H, $result>(Interest::IO, WaitKind::$kind, $object as usize,
                    |result| posix(result as isize), call)
            }
        )*
    };
}
outputs! {
    Output fd => write(fd: Int, buffer: Ptr, size: Word) -> SWord;
    Output fd => pwrite(fd: Int, buffer: Ptr, size: Word, at: Long) -> SWord;
    Output fd => pwrite64(fd: Int, buffer: Ptr, size: Word, at: Long) -> SWord;
    Output fd => writev(fd: Int, parts: Ptr, count: Int) -> SWord;
    Output fd => pwritev(fd: Int, parts: Ptr, count: Int, at: Long) -> SWord;
    Output fd => pwritev64(fd: Int, parts: Ptr, count: Int, at: Long) -> SWord;
    Output fd => pwritev2(fd: Int, parts: Ptr, count: Int, at: Long, flags: Int) -> SWord;
    Output fd => pwritev64v2(fd: Int, parts: Ptr, count: Int, at: Long, flags: Int) -> SWord;
    Output fd => send(fd: Int, buffer: Ptr, size: Word, flags: Int) -> SWord;
    Output fd => sendto(fd: Int, buffer: Ptr, size: Word, flags: Int, to: Ptr, len: UInt) -> SWord;
    Output fd => sendmsg(fd: Int, message: Ptr, flags: Int) -> SWord;
    Output fd => sendmmsg(fd: Int, messages: Ptr, count: UInt, flags: Int) -> Int;
    Output to => sendfile(to: Int, from: Int, at: Ptr, size: Word) -> SWord;
    Output to => sendfile64(to: Int, from: Int, at: Ptr, size: Word) -> SWord;
    Output fd => eventfd_write(fd: Int, value: Word) -> Int;
    Output queue => msgsnd(queue: Int, message: Ptr, size: Word, flags: Int) -> Int;
    Output queue => mq_send(queue: Int, message: Ptr, size: Word, priority: UInt) -> Int;
    Output queue => mq_timedsend(queue: Int, message: Ptr, size: Word, priority: UInt, until: Ptr) -> Int;
    Connection fd => connect(fd: Int, address: Ptr, len: UInt) -> Int;
}
