//! Sockets: addresses, options, messages.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixStream};

use crate::arena::Agree::{Covers, Exactly};
use crate::arena::{Arena, check};

#[test]
fn addresses() {
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let fd = udp.as_raw_fd() as u64;
    check(libc::SYS_getsockname, Covers, |a| [fd, a.room(128), a.ints(&[128]), 0, 0, 0]);
    let send = || assert_eq!(other.send_to(b"hello there", udp.local_addr().unwrap()).unwrap(), 11);
    // Covers, not exactly: the upper bytes of a length stay zero.
    assert_eq!(
        check(libc::SYS_recvfrom, Covers, |a| {
            send();
            [fd, a.room(100), 100, 0, a.room(64), a.ints(&[64])]
        }),
        11
    );
    // MSG_TRUNC: the result is more than was written.
    assert_eq!(
        check(libc::SYS_recvfrom, Exactly, |a| {
            send();
            [fd, a.room(5), 5, libc::MSG_TRUNC as u64, 0, 0]
        }),
        11
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let clients = [0, 1].map(|_| std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    let accepted = check(libc::SYS_accept, Covers, |a| {
        [listener.as_raw_fd() as u64, a.room(64), a.ints(&[64]), 0, 0, 0]
    });
    assert!(accepted > 0);
    check(libc::SYS_getpeername, Covers, |a| {
        [clients[0].as_raw_fd() as u64, a.room(64), a.ints(&[64]), 0, 0, 0]
    });
}

#[test]
fn options() {
    let (a1, _b) = UnixStream::pair().unwrap();
    let fd = a1.as_raw_fd() as u64;
    let get = |level: i32, name: i32, len: u32| {
        check(libc::SYS_getsockopt, Covers, |a: &mut Arena| {
            [fd, level as u64, name as u64, a.room(64), a.ints(&[len]), 0]
        })
    };
    assert_eq!(get(libc::SOL_SOCKET, libc::SO_RCVBUF, 4), 0);
    assert_eq!(get(libc::SOL_SOCKET, libc::SO_PEERCRED, 64), 0);
    assert_eq!(get(libc::SOL_SOCKET, libc::SO_LINGER, 64), 0);
    check(libc::SYS_setsockopt, Exactly, |a| {
        [fd, libc::SOL_SOCKET as u64, libc::SO_RCVBUF as u64, a.ints(&[4096]), 4, 0]
    });
    check(libc::SYS_socketpair, Exactly, |a| {
        [libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, 0, a.room(8), 0, 0]
    });
    check(libc::SYS_ioctl, Exactly, |a| [fd, libc::FIONREAD, a.room(4), 0, 0, 0]);
}

/// A `msghdr` with two vectors of 6 bytes and 64, a name buffer and a control buffer.
fn header(a: &mut Arena, name: u64, name_len: u32, control: u64, control_len: u64) -> [u64; 7] {
    let (first, second) = (a.room(6), a.room(64));
    let iov = a.words(&[first, 6, second, 64]);
    [name, name_len.into(), iov, 2, control, control_len, 0]
}

#[test]
fn messages() {
    let (a1, b1) = UnixDatagram::pair().unwrap();
    let fd = b1.as_raw_fd() as u64;
    let received = check(libc::SYS_recvmsg, Covers, |a| {
        a1.send(b"twenty bytes of text").unwrap();
        let (name, control) = (a.room(110), a.room(64));
        let h = header(a, name, 110, control, 64);
        [fd, a.words(&h), 0, 0, 0, 0]
    });
    assert_eq!(received, 20);
    let sent = check(libc::SYS_sendmsg, Exactly, |a| {
        let h = header(a, 0, 0, 0, 0);
        [fd, a.words(&h), 0, 0, 0, 0]
    });
    assert_eq!(sent, 70);
    // Exactly two datagrams of different length into three headers.
    let got = check(libc::SYS_recvmmsg, Covers, |a| {
        let mut drain = [0; 100];
        a1.set_nonblocking(true).unwrap();
        b1.set_nonblocking(true).unwrap();
        while b1.recv(&mut drain).is_ok() {}
        a1.send(b"one").unwrap();
        a1.send(b"a longer one").unwrap();
        let mut all = Vec::new();
        for _ in 0..3 {
            all.extend(header(a, 0, 0, 0, 0));
            all.push(0xa5a5_a5a5);
        }
        [fd, a.words(&all), 3, libc::MSG_DONTWAIT as u64, 0, 0]
    });
    assert_eq!(got, 2);
    let sent = check(libc::SYS_sendmmsg, Covers, |a| {
        let mut all = Vec::new();
        for _ in 0..2 {
            all.extend(header(a, 0, 0, 0, 0));
            all.push(0xa5a5_a5a5);
        }
        [fd, a.words(&all), 2, 0, 0, 0]
    });
    assert_eq!(sent, 2);
}

#[test]
fn descriptors_in_control_messages() {
    let (a1, b1) = UnixStream::pair().unwrap();
    let fd = b1.as_raw_fd() as u64;
    let received = check(libc::SYS_recvmsg, Covers, |a| {
        // send one descriptor with one byte, by the kernel's own layout
        let byte = a.put(b"x");
        let iov = a.words(&[byte, 1]);
        let mut control = Vec::new();
        control.extend(20u64.to_le_bytes());
        control.extend((libc::SOL_SOCKET as u32).to_le_bytes());
        control.extend((libc::SCM_RIGHTS as u32).to_le_bytes());
        control.extend((a1.as_raw_fd() as u32).to_le_bytes());
        control.extend([0; 4]);
        let control_at = a.put(&control);
        let h = a.words(&[0, 0, iov, 1, control_at, control.len() as u64, 0]);
        // SAFETY: the header and all that it points to are in the arena, which outlives the call.
        let sent = unsafe { libc::syscall(libc::SYS_sendmsg, a1.as_raw_fd(), h, 0) };
        assert_eq!(sent, 1);
        let room = a.room(64);
        let h = header(a, 0, 0, room, 64);
        [fd, a.words(&h), 0, 0, 0, 0]
    });
    assert_eq!(received, 1);
    (&a1).write_all(b"still fine").unwrap();
}
