//! Files, directories, attributes, ioctl, fcntl.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;

use crate::arena::Agree::{Covers, Exactly};
use crate::arena::{check, reads};
use syscalls::Call;

fn file(content: &[u8]) -> File {
    let path = std::env::temp_dir().join(format!(
        "farsight-syscalls-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let mut f = File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    f.write_all(content).unwrap();
    f.seek(SeekFrom::Start(0)).unwrap();
    f
}

#[test]
fn reading() {
    let f = file(&[7; 100]);
    let fd = f.as_raw_fd() as u64;
    let rewind = || (&f).seek(SeekFrom::Start(0)).unwrap();
    assert_eq!(
        check(libc::SYS_read, Exactly, |a| {
            rewind();
            [fd, a.room(60), 60, 0, 0, 0]
        }),
        60
    );
    assert_eq!(
        check(libc::SYS_read, Exactly, |a| {
            rewind();
            [fd, a.room(200), 200, 0, 0, 0]
        }),
        100
    );
    assert_eq!(check(libc::SYS_pread64, Exactly, |a| [fd, a.room(60), 60, 90, 0, 0]), 10);
    assert_eq!(check(libc::SYS_pread64, Exactly, |_| [fd, 8, 60, 0, 0, 0]), -i64::from(libc::EFAULT));
    assert_eq!(check(libc::SYS_lseek, Exactly, |_| [fd, 0, 0, 0, 0, 0]), 0);
}

#[test]
fn writing_reads_only() {
    let f = file(b"");
    let fd = f.as_raw_fd() as u64;
    assert_eq!(check(libc::SYS_write, Exactly, |a| [fd, a.put(b"hello"), 5, 0, 0, 0]), 5);
    let call = Call { number: libc::SYS_write as u64, args: [1, 0x1000, 500, 0, 0, 0], result: 300 };
    assert_eq!(reads(&call), [(0x1000, 300)]);
}

#[test]
fn status() {
    let f = file(b"x");
    let fd = f.as_raw_fd() as u64;
    check(libc::SYS_fstat, Exactly, |a| [fd, a.room(144), 0, 0, 0, 0]);
    check(libc::SYS_stat, Exactly, |a| [a.text("/etc/passwd"), a.room(144), 0, 0, 0, 0]);
    check(libc::SYS_lstat, Exactly, |a| [a.text("/etc/passwd"), a.room(144), 0, 0, 0, 0]);
    check(libc::SYS_newfstatat, Exactly, |a| [libc::AT_FDCWD as u64, a.text("/etc"), a.room(144), 0, 0, 0]);
    check(libc::SYS_statx, Exactly, |a| [libc::AT_FDCWD as u64, a.text("/etc"), 0, 0xfff, a.room(256), 0]);
    check(libc::SYS_statfs, Exactly, |a| [a.text("/"), a.room(120), 0, 0, 0, 0]);
    check(libc::SYS_fstatfs, Exactly, |a| [fd, a.room(120), 0, 0, 0, 0]);
    assert_eq!(
        check(libc::SYS_stat, Exactly, |a| [a.text("/no/such/file"), a.room(144), 0, 0, 0, 0]),
        -i64::from(libc::ENOENT)
    );
}

#[test]
fn directories_and_links() {
    let dir = File::open("/proc/self").unwrap();
    let fd = dir.as_raw_fd() as u64;
    // The kernel leaves gaps between entries untouched.
    assert!(
        check(libc::SYS_getdents64, Covers, |a| {
            (&dir).seek(SeekFrom::Start(0)).unwrap();
            [fd, a.room(4096), 4096, 0, 0, 0]
        }) > 100
    );
    assert!(check(libc::SYS_getcwd, Exactly, |a| [a.room(1000), 1000, 0, 0, 0, 0]) > 0);
    assert!(
        check(libc::SYS_readlink, Exactly, |a| [a.text("/proc/self/exe"), a.room(1000), 1000, 0, 0, 0]) > 0
    );
    assert_eq!(check(libc::SYS_readlink, Exactly, |a| [a.text("/proc/self/exe"), a.room(5), 5, 0, 0, 0]), 5);
    assert!(check(libc::SYS_readlinkat, Exactly, |a| [fd, a.text("exe"), a.room(1000), 1000, 0, 0]) > 0);
}

#[test]
fn extended_attributes() {
    let f = file(b"x");
    let fd = f.as_raw_fd() as u64;
    let set = check(libc::SYS_fsetxattr, Exactly, |a| [fd, a.text("user.colour"), a.put(b"green"), 5, 0, 0]);
    if set < 0 {
        println!("skipped: no user attributes in the temporary folder (errno {})", -set);
        return;
    }
    assert_eq!(
        check(libc::SYS_fgetxattr, Exactly, |a| [fd, a.text("user.colour"), a.room(100), 100, 0, 0]),
        5
    );
    assert_eq!(check(libc::SYS_fgetxattr, Exactly, |a| [fd, a.text("user.colour"), a.room(1), 0, 0, 0]), 5);
    assert_eq!(check(libc::SYS_flistxattr, Exactly, |a| [fd, a.room(100), 100, 0, 0, 0]), 12);
}

#[test]
fn offsets() {
    let (from, to) = (file(&[1; 5000]), file(b""));
    let (i, o) = (from.as_raw_fd() as u64, to.as_raw_fd() as u64);
    assert_eq!(check(libc::SYS_sendfile, Covers, |a| [o, i, a.words(&[100]), 4000, 0, 0]), 4000);
    assert_eq!(
        check(libc::SYS_copy_file_range, Covers, |a| [i, a.words(&[0]), o, a.words(&[8000]), 3000, 0]),
        3000
    );
}

#[test]
fn controls() {
    let f = file(&[0; 10]);
    let fd = f.as_raw_fd() as u64;
    check(libc::SYS_ioctl, Exactly, |a| [fd, libc::FIONREAD, a.room(4), 0, 0, 0]);
    assert_eq!(
        check(libc::SYS_ioctl, Exactly, |a| [fd, libc::TCGETS, a.room(60), 0, 0, 0]),
        -i64::from(libc::ENOTTY)
    );
    let lock = || {
        let mut l = [0u8; 32];
        l[0] = libc::F_WRLCK as u8;
        l
    };
    check(libc::SYS_fcntl, Covers, |a| [fd, libc::F_GETLK as u64, a.put(&lock()), 0, 0, 0]);
    check(libc::SYS_fcntl, Exactly, |a| [fd, libc::F_SETLK as u64, a.put(&lock()), 0, 0, 0]);
    check(libc::SYS_fcntl, Exactly, |a| [fd, 16, a.room(8), 0, 0, 0]);
    check(libc::SYS_mincore, Exactly, |a| {
        let pages = a.room(16) & !4095;
        [pages, 8192, a.room(16), 0, 0, 0]
    });
}

#[test]
fn terminals() {
    // A pseudo-terminal has everything that the old requests want.
    let Ok(master) = File::options().read(true).write(true).open("/dev/ptmx") else {
        println!("skipped: no /dev/ptmx");
        return;
    };
    let fd = master.as_raw_fd() as u64;
    assert_eq!(check(libc::SYS_ioctl, Exactly, |a| [fd, libc::TCGETS, a.room(60), 0, 0, 0]), 0);
    assert_eq!(check(libc::SYS_ioctl, Exactly, |a| [fd, libc::TIOCGWINSZ, a.room(8), 0, 0, 0]), 0);
    assert_eq!(check(libc::SYS_ioctl, Exactly, |a| [fd, libc::TIOCOUTQ, a.room(4), 0, 0, 0]), 0);
    assert_eq!(check(libc::SYS_ioctl, Exactly, |a| [fd, 0x8004_5430, a.room(4), 0, 0, 0]), 0); // TIOCGPTN, encoded
}

#[test]
fn paths_are_read_to_their_end() {
    let long = format!("/{}", "a/".repeat(300));
    let text = [long.as_bytes(), &[0]].concat();
    let call =
        Call { number: libc::SYS_open as u64, args: [text.as_ptr() as u64, 0, 0, 0, 0, 0], result: -2 };
    assert_eq!(reads(&call), [(text.as_ptr() as u64, text.len() as u64)]);
}
