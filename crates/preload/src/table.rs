//! The interposed functions: one line each, from which the real-symbol slots ([`crate::real`]) and the exports
//! ([`crate::interpose!`]) are made. `tests/exports.txt` is the list that a test compares with
//! what a runtime really exports.
//!
//! Names with two underscores and `_chk` are what `_FORTIFY_SOURCE` turns the plain calls into. The `exec`
//! functions are not in the table: some are variadic, so they are passed on by a jump (see `interpose`).

/// Hands the table to another macro, behind whatever tokens are given in brackets.
#[doc(hidden)]
#[macro_export]
macro_rules! symbol_table {
    ([$($callback:tt)+] $($extra:tt)*) => { $($callback)+! { $($extra)*
        // mutexes
        fn pthread_mutex_lock(m: Ptr) -> Int;
        fn pthread_mutex_trylock(m: Ptr) -> Int;
        fn pthread_mutex_timedlock(m: Ptr, until: Ptr) -> Int;
        fn pthread_mutex_clocklock(m: Ptr, clock: Int, until: Ptr) -> Int;
        fn pthread_mutex_unlock(m: Ptr) -> Int;
        fn mtx_lock(m: Ptr) -> Int;
        fn mtx_trylock(m: Ptr) -> Int;
        fn mtx_timedlock(m: Ptr, until: Ptr) -> Int;
        fn mtx_unlock(m: Ptr) -> Int;
        // condition variables
        fn pthread_cond_wait(c: Ptr, m: Ptr) -> Int;
        fn pthread_cond_timedwait(c: Ptr, m: Ptr, until: Ptr) -> Int;
        fn pthread_cond_clockwait(c: Ptr, m: Ptr, clock: Int, until: Ptr) -> Int;
        fn pthread_cond_signal(c: Ptr) -> Int;
        fn pthread_cond_broadcast(c: Ptr) -> Int;
        fn cnd_wait(c: Ptr, m: Ptr) -> Int;
        fn cnd_timedwait(c: Ptr, m: Ptr, until: Ptr) -> Int;
        fn cnd_signal(c: Ptr) -> Int;
        fn cnd_broadcast(c: Ptr) -> Int;
        // read-write locks
        fn pthread_rwlock_rdlock(l: Ptr) -> Int;
        fn pthread_rwlock_tryrdlock(l: Ptr) -> Int;
        fn pthread_rwlock_timedrdlock(l: Ptr, until: Ptr) -> Int;
        fn pthread_rwlock_clockrdlock(l: Ptr, clock: Int, until: Ptr) -> Int;
        fn pthread_rwlock_wrlock(l: Ptr) -> Int;
        fn pthread_rwlock_trywrlock(l: Ptr) -> Int;
        fn pthread_rwlock_timedwrlock(l: Ptr, until: Ptr) -> Int;
        fn pthread_rwlock_clockwrlock(l: Ptr, clock: Int, until: Ptr) -> Int;
        fn pthread_rwlock_unlock(l: Ptr) -> Int;
        // spin locks, barriers, semaphores
        fn pthread_spin_lock(l: Ptr) -> Int;
        fn pthread_spin_trylock(l: Ptr) -> Int;
        fn pthread_spin_unlock(l: Ptr) -> Int;
        fn pthread_barrier_wait(b: Ptr) -> Int;
        fn sem_wait(s: Ptr) -> Int;
        fn sem_trywait(s: Ptr) -> Int;
        fn sem_timedwait(s: Ptr, until: Ptr) -> Int;
        fn sem_clockwait(s: Ptr, clock: Int, until: Ptr) -> Int;
        fn sem_post(s: Ptr) -> Int;
        fn semop(id: Int, ops: Ptr, count: Word) -> Int;
        fn semtimedop(id: Int, ops: Ptr, count: Word, timeout: Ptr) -> Int;
        // threads
        fn pthread_create(out: Ptr, attr: Ptr, start: Ptr, arg: Ptr) -> Int;
        fn pthread_join(t: Word, result: Ptr) -> Int;
        fn pthread_tryjoin_np(t: Word, result: Ptr) -> Int;
        fn pthread_timedjoin_np(t: Word, result: Ptr, until: Ptr) -> Int;
        fn pthread_clockjoin_np(t: Word, result: Ptr, clock: Int, until: Ptr) -> Int;
        fn thrd_create(out: Ptr, start: Ptr, arg: Ptr) -> Int;
        fn thrd_join(t: Word, result: Ptr) -> Int;
        // the door of Rust's locks, parking_lot, OpenMP and C++20 waits
        fn syscall(n: Long, a: Word, b: Word, c: Word, d: Word, e: Word, f: Word) -> Long;
        // signals
        fn sigwait(set: Ptr, out: Ptr) -> Int;
        fn sigwaitinfo(set: Ptr, info: Ptr) -> Int;
        fn sigtimedwait(set: Ptr, info: Ptr, timeout: Ptr) -> Int;
        fn sigsuspend(set: Ptr) -> Int;
        fn pause() -> Int;
        fn kill(pid: Int, signal: Int) -> Int;
        fn killpg(group: Int, signal: Int) -> Int;
        fn tgkill(pid: Int, tid: Int, signal: Int) -> Int;
        fn sigqueue(pid: Int, signal: Int, value: Ptr) -> Int;
        fn pthread_kill(t: Word, signal: Int) -> Int;
        fn pthread_sigqueue(t: Word, signal: Int, value: Ptr) -> Int;
        fn sigaction(signal: Int, new: Ptr, old: Ptr) -> Int;
        fn signal(number: Int, handler: Ptr) -> Ptr;
        fn sigprocmask(how: Int, set: Ptr, old: Ptr) -> Int;
        fn pthread_sigmask(how: Int, set: Ptr, old: Ptr) -> Int;
        fn signalfd(fd: Int, set: Ptr, flags: Int) -> Int;
        // sleeping
        fn nanosleep(time: Ptr, left: Ptr) -> Int;
        fn clock_nanosleep(clock: Int, flags: Int, time: Ptr, left: Ptr) -> Int;
        fn usleep(us: UInt) -> Int;
        fn sleep(seconds: UInt) -> UInt;
        fn thrd_sleep(time: Ptr, left: Ptr) -> Int;
        // readiness
        fn poll(fds: Ptr, count: Word, timeout: Int) -> Int;
        fn __poll_chk(fds: Ptr, count: Word, timeout: Int, size: Word) -> Int;
        fn ppoll(fds: Ptr, count: Word, timeout: Ptr, mask: Ptr) -> Int;
        fn __ppoll_chk(fds: Ptr, count: Word, timeout: Ptr, mask: Ptr, size: Word) -> Int;
        fn select(n: Int, r: Ptr, w: Ptr, x: Ptr, timeout: Ptr) -> Int;
        fn pselect(n: Int, r: Ptr, w: Ptr, x: Ptr, timeout: Ptr, mask: Ptr) -> Int;
        fn epoll_wait(ep: Int, events: Ptr, most: Int, timeout: Int) -> Int;
        fn epoll_pwait(ep: Int, events: Ptr, most: Int, timeout: Int, mask: Ptr) -> Int;
        fn epoll_pwait2(ep: Int, events: Ptr, most: Int, timeout: Ptr, mask: Ptr) -> Int;
        // input
        fn read(fd: Int, buffer: Ptr, size: Word) -> SWord;
        fn __read_chk(fd: Int, buffer: Ptr, size: Word, have: Word) -> SWord;
        fn pread(fd: Int, buffer: Ptr, size: Word, at: Long) -> SWord;
        fn pread64(fd: Int, buffer: Ptr, size: Word, at: Long) -> SWord;
        fn __pread_chk(fd: Int, buffer: Ptr, size: Word, at: Long, have: Word) -> SWord;
        fn __pread64_chk(fd: Int, buffer: Ptr, size: Word, at: Long, have: Word) -> SWord;
        fn readv(fd: Int, parts: Ptr, count: Int) -> SWord;
        fn preadv(fd: Int, parts: Ptr, count: Int, at: Long) -> SWord;
        fn preadv64(fd: Int, parts: Ptr, count: Int, at: Long) -> SWord;
        fn preadv2(fd: Int, parts: Ptr, count: Int, at: Long, flags: Int) -> SWord;
        fn preadv64v2(fd: Int, parts: Ptr, count: Int, at: Long, flags: Int) -> SWord;
        fn recv(fd: Int, buffer: Ptr, size: Word, flags: Int) -> SWord;
        fn __recv_chk(fd: Int, buffer: Ptr, size: Word, have: Word, flags: Int) -> SWord;
        fn recvfrom(fd: Int, buffer: Ptr, size: Word, flags: Int, from: Ptr, len: Ptr) -> SWord;
        fn __recvfrom_chk(fd: Int, buffer: Ptr, size: Word, have: Word, flags: Int, from: Ptr, len: Ptr) -> SWord;
        fn recvmsg(fd: Int, message: Ptr, flags: Int) -> SWord;
        fn recvmmsg(fd: Int, messages: Ptr, count: UInt, flags: Int, timeout: Ptr) -> Int;
        fn eventfd_read(fd: Int, value: Ptr) -> Int;
        fn msgrcv(queue: Int, message: Ptr, size: Word, kind: Long, flags: Int) -> SWord;
        fn mq_receive(queue: Int, message: Ptr, size: Word, priority: Ptr) -> SWord;
        fn mq_timedreceive(queue: Int, message: Ptr, size: Word, priority: Ptr, until: Ptr) -> SWord;
        // output
        fn write(fd: Int, buffer: Ptr, size: Word) -> SWord;
        fn pwrite(fd: Int, buffer: Ptr, size: Word, at: Long) -> SWord;
        fn pwrite64(fd: Int, buffer: Ptr, size: Word, at: Long) -> SWord;
        fn writev(fd: Int, parts: Ptr, count: Int) -> SWord;
        fn pwritev(fd: Int, parts: Ptr, count: Int, at: Long) -> SWord;
        fn pwritev64(fd: Int, parts: Ptr, count: Int, at: Long) -> SWord;
        fn pwritev2(fd: Int, parts: Ptr, count: Int, at: Long, flags: Int) -> SWord;
        fn pwritev64v2(fd: Int, parts: Ptr, count: Int, at: Long, flags: Int) -> SWord;
        fn send(fd: Int, buffer: Ptr, size: Word, flags: Int) -> SWord;
        fn sendto(fd: Int, buffer: Ptr, size: Word, flags: Int, to: Ptr, len: UInt) -> SWord;
        fn sendmsg(fd: Int, message: Ptr, flags: Int) -> SWord;
        fn sendmmsg(fd: Int, messages: Ptr, count: UInt, flags: Int) -> Int;
        fn sendfile(to: Int, from: Int, at: Ptr, size: Word) -> SWord;
        fn sendfile64(to: Int, from: Int, at: Ptr, size: Word) -> SWord;
        fn eventfd_write(fd: Int, value: Word) -> Int;
        fn msgsnd(queue: Int, message: Ptr, size: Word, flags: Int) -> Int;
        fn mq_send(queue: Int, message: Ptr, size: Word, priority: UInt) -> Int;
        fn mq_timedsend(queue: Int, message: Ptr, size: Word, priority: UInt, until: Ptr) -> Int;
        // connections and storage
        fn accept(fd: Int, address: Ptr, len: Ptr) -> Int;
        fn accept4(fd: Int, address: Ptr, len: Ptr, flags: Int) -> Int;
        fn connect(fd: Int, address: Ptr, len: UInt) -> Int;
        fn fsync(fd: Int) -> Int;
        fn fdatasync(fd: Int) -> Int;
        fn flock(fd: Int, operation: Int) -> Int;
        // children
        fn wait(status: Ptr) -> Int;
        fn waitpid(pid: Int, status: Ptr, options: Int) -> Int;
        fn wait3(status: Ptr, options: Int, usage: Ptr) -> Int;
        fn wait4(pid: Int, status: Ptr, options: Int, usage: Ptr) -> Int;
        fn waitid(kind: UInt, id: UInt, info: Ptr, options: Int) -> Int;
        fn posix_spawn(pid: Ptr, path: Ptr, actions: Ptr, attr: Ptr, args: Ptr, env: Ptr) -> Int;
        fn posix_spawnp(pid: Ptr, path: Ptr, actions: Ptr, attr: Ptr, args: Ptr, env: Ptr) -> Int;
        // endings (they do not return; the type says what a caller could not observe)
        fn _exit(status: Int) -> Int;
        fn _Exit(status: Int) -> Int;
        fn quick_exit(status: Int) -> Int;
        fn abort() -> Int;
        // libraries
        fn dlclose(handle: Ptr) -> Int;
    } };
}
