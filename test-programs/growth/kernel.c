/* One routine for each family of system calls that fill memory: each makes its call by number, so that no wrapper reads
 * along, and then reads so many cells of what the kernel wrote into memory of its own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUTINE __attribute__((noinline, noclone)) static int
/* Memory that only this routine uses, and the first `n` cells of it. */
#define CELLS(n) static volatile uint32_t cells[n] __attribute__((aligned(64)))

static inline int look(const volatile uint32_t *at, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += at[i];
    return sum;
}

static int zero, file, socks[2];

ROUTINE f_read(void) { CELLS(16); syscall(SYS_read, zero, cells, 64); return look(cells, 10); }
ROUTINE f_pread(void) { CELLS(16); syscall(SYS_pread64, file, cells, 64, 0); return look(cells, 8); }
ROUTINE f_readv(void) {
    CELLS(32);
    struct iovec parts[2] = {{(void *)cells, 16}, {(void *)(cells + 16), 24}};
    syscall(SYS_readv, zero, parts, 2);
    return look(cells, 4) + look(cells + 16, 6);
}
ROUTINE f_preadv2(void) {
    CELLS(16);
    struct iovec part = {(void *)cells, 64};
    syscall(SYS_preadv2, file, &part, 1, 0, 0, 0);
    return look(cells, 7);
}
ROUTINE f_short(void) { CELLS(64); syscall(SYS_pread64, file, cells, 32, 0); return look(cells, 16); }
ROUTINE f_recvfrom(void) { CELLS(16); syscall(SYS_recvfrom, socks[0], cells, 32, 0, 0, 0); return look(cells, 8); }
ROUTINE f_recvmsg(void) {
    CELLS(16);
    struct iovec part = {(void *)cells, 32};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    syscall(SYS_recvmsg, socks[0], &message, 0);
    return look(cells, 5);
}
ROUTINE f_getrandom(void) { CELLS(16); syscall(SYS_getrandom, cells, 64, 0); return look(cells, 16); }
ROUTINE f_fstat(void) { CELLS(64); syscall(SYS_fstat, file, cells); return look(cells, 12); }
ROUTINE f_newfstatat(void) { CELLS(64); syscall(SYS_newfstatat, AT_FDCWD, "/", cells, 0); return look(cells, 6); }
ROUTINE f_statx(void) { CELLS(64); syscall(SYS_statx, file, "", AT_EMPTY_PATH, 0x7ff, cells); return look(cells, 9); }
ROUTINE f_epoll_wait(void) {
    CELLS(12);
    int set = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.u32 = 5}};
    epoll_ctl(set, EPOLL_CTL_ADD, socks[1], &event);
    syscall(SYS_epoll_wait, set, cells, 4, 1000);
    close(set);
    return look(cells, 3);
}
ROUTINE f_poll(void) {
    static struct pollfd one;
    one = (struct pollfd){zero, POLLIN, 0};
    syscall(SYS_poll, &one, 1, 1000);
    return *(volatile short *)&one.revents;
}
ROUTINE f_pipe2(void) { CELLS(2); syscall(SYS_pipe2, cells, 0); close(cells[0]); return close(cells[1]); }
ROUTINE f_clock_gettime(void) { CELLS(4); syscall(SYS_clock_gettime, 1, cells); return look(cells, 4); }
ROUTINE f_uname(void) { CELLS(100); syscall(SYS_uname, cells); return look(cells, 4); }
ROUTINE f_getcwd(void) { CELLS(1024); syscall(SYS_getcwd, cells, 4096); return *(volatile char *)cells; }
ROUTINE f_readlink(void) { CELLS(64); syscall(SYS_readlink, "/proc/self/exe", cells, 256); return look(cells, 1); }
ROUTINE f_ioctl(void) { CELLS(1); syscall(SYS_ioctl, socks[1], FIONREAD, cells); return look(cells, 1); }
ROUTINE f_wait4(void) {
    CELLS(1);
    int child = fork();
    if (child == 0) _exit(3);
    syscall(SYS_wait4, child, cells, 0, 0);
    return look(cells, 1);
}
ROUTINE f_io_getevents(void) {
    CELLS(16);
    static uint32_t into[16];
    aio_context_t context = 0;
    struct iocb block = {.aio_fildes = file, .aio_lio_opcode = IOCB_CMD_PREAD, .aio_buf = (uintptr_t)into, .aio_nbytes = 64};
    struct iocb *all[1] = {&block};
    syscall(SYS_io_setup, 4, &context);
    syscall(SYS_io_submit, context, 1, all);
    syscall(SYS_io_getevents, context, 1, 1, cells, 0);
    syscall(SYS_io_destroy, context);
    return look(cells, 8);
}
ROUTINE f_getdents64(void) {
    CELLS(1024);
    int folder = open("/", O_RDONLY | O_DIRECTORY);
    syscall(SYS_getdents64, folder, cells, 4096);
    close(folder);
    return look(cells, 5);
}
ROUTINE f_sysinfo(void) { CELLS(40); syscall(SYS_sysinfo, cells); return look(cells, 2); }
ROUTINE f_prlimit64(void) { CELLS(4); syscall(SYS_prlimit64, 0, 7, 0, cells); return look(cells, 4); }
ROUTINE f_getsockname(void) {
    CELLS(32);
    static volatile uint32_t length;
    length = 128;
    syscall(SYS_getsockname, socks[0], cells, &length);
    return *(volatile short *)cells + (int)length;
}
ROUTINE f_getsockopt(void) {
    CELLS(1);
    static volatile uint32_t length;
    length = 4;
    syscall(SYS_getsockopt, socks[0], SOL_SOCKET, SO_TYPE, cells, &length);
    return look(cells, 1);
}
ROUTINE f_sched_getaffinity(void) { CELLS(32); syscall(SYS_sched_getaffinity, 0, 128, cells); return look(cells, 2); }
ROUTINE f_process_vm_readv(void) {
    CELLS(8);
    static uint32_t from[8];
    struct iovec to = {(void *)cells, 32}, other = {from, 32};
    syscall(SYS_process_vm_readv, getpid(), &to, 1, &other, 1, 0);
    return look(cells, 6);
}
ROUTINE f_rt_sigtimedwait(void) {
    CELLS(32);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    kill(getpid(), SIGUSR2);
    syscall(SYS_rt_sigtimedwait, &set, cells, 0, 8);
    return look(cells, 1);
}
/* Calls that fail or wake write nothing. */
ROUTINE f_none(void) {
    CELLS(16);
    syscall(SYS_read, -1, cells, 64);
    syscall(SYS_futex, cells, 1, 1, 0, 0, 0);
    return look(cells, 16);
}

int main(void) {
    char line[32] = "0123456789012345678901234567890";
    zero = open("/dev/zero", O_RDONLY);
    file = memfd_create("file", 0);
    for (int i = 0; i < 4; i++) if (write(file, line, 32) != 32) return 1;
    socketpair(AF_UNIX, SOCK_DGRAM, 0, socks);
    for (int i = 0; i < 2; i++) if (write(socks[1], line, 32) != 32) return 1;
    if (write(socks[0], line, 32) != 32) return 1;
    int sum = f_read() + f_pread() + f_readv() + f_preadv2() + f_short() + f_recvfrom() + f_recvmsg() + f_getrandom();
    sum += f_fstat() + f_newfstatat() + f_statx() + f_epoll_wait() + f_poll() + f_pipe2() + f_clock_gettime() + f_uname();
    sum += f_getcwd() + f_readlink() + f_ioctl() + f_wait4() + f_io_getevents() + f_getdents64() + f_sysinfo();
    sum += f_prlimit64() + f_getsockname() + f_getsockopt() + f_sched_getaffinity() + f_process_vm_readv();
    sum += f_rt_sigtimedwait() + f_none();
    return sum == 42;
}
