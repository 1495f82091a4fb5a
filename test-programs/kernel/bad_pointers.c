/* System calls given bad pointers or bad arguments fail with the kernel's errno, including those that an
 * instrumenting engine must look into itself. Answer: the errno of each (14 = EFAULT, 22 = EINVAL). */
//@ stdout: sigaction 14, sigaction 99 22, sigprocmask 14, sigaltstack 14, small altstack 12, clone3 14
//@ stdout: mmap 22, mprotect 22, mprotect hole 12, munmap 22, mremap 14, madvise 22, arch_prctl 22, wait4 10
//@ stdout: rt_sigaction size 22, sigprocmask size 22, read 14, write 14, execve 14, set_robust_list 22, bad number 38
#include "../check.h"
#include <asm/prctl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#define BAD wild(0x10)
static int e(long r) { return r == -1 ? errno : 0; }
int main(void) {
    char tiny[512];
    stack_t small = {.ss_sp = tiny, .ss_size = sizeof tiny};
    struct kernel_sigaction { void *h; long f; void *r; long m; } sa = {0};
    printf("sigaction %d, sigaction 99 %d, sigprocmask %d, sigaltstack %d, small altstack %d, clone3 %d\n",
           e(syscall(SYS_rt_sigaction, SIGUSR1, BAD, 0, 8)), e(syscall(SYS_rt_sigaction, 99, &sa, 0, 8)),
           e(syscall(SYS_rt_sigprocmask, SIG_BLOCK, BAD, 0, 8)), e(syscall(SYS_sigaltstack, BAD, 0)),
           e(syscall(SYS_sigaltstack, &small, 0)), e(syscall(SYS_clone3, BAD, 88)));
    char *p = mmap(0, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p + 4096, 4096);
    printf("mmap %d, mprotect %d, mprotect hole %d, munmap %d, mremap %d, madvise %d, arch_prctl %d, wait4 %d\n",
           e(syscall(SYS_mmap, 1, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)),
           e(syscall(SYS_mprotect, p + 1, 4096, PROT_READ)), e(syscall(SYS_mprotect, p, 3 * 4096, PROT_READ)),
           e(syscall(SYS_munmap, p + 1, 4096)), e(syscall(SYS_mremap, p + 4096, 4096, 8192, MREMAP_MAYMOVE, 0)),
           e(syscall(SYS_madvise, p, 4096, 9999)), e(syscall(SYS_arch_prctl, 0x7777, BAD)), e(syscall(SYS_wait4, -1, 0, 0, 0)));
    int fd[2];
    CHECK(pipe(fd) == 0 && write(fd[1], "x", 1) == 1);
    char *const args[] = {(char *)BAD, 0};
    printf("rt_sigaction size %d, sigprocmask size %d, read %d, write %d, execve %d, set_robust_list %d, bad number %d\n",
           e(syscall(SYS_rt_sigaction, SIGUSR1, &sa, 0, 7)), e(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &sa, 0, 7)),
           e(read(fd[0], BAD, 1)), e(write(fd[1], BAD, 1)), e(syscall(SYS_execve, "/bin/true", args, BAD)),
           e(syscall(SYS_set_robust_list, BAD, 3)), e(syscall(9999)));
    return 0;
}
