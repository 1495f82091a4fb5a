/* A program that installs a seccomp filter on itself: denied calls give the filter's errno, the rest works.
 * The filter refuses only getppid, so an engine's own system calls are not hit.
 * Answer: below. */
//@ stdout: before 1, after -1 errno 77, malloc 1
#include "../check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
int main(void) {
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 77),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {4, f};
    int before = syscall(SYS_getppid) > 0;
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0);
    long r = syscall(SYS_getppid);
    int saved = errno;
    printf("before %d, after %ld errno %d, malloc %d\n", before, r, saved, malloc(10 << 20) != 0);
    return 0;
}
