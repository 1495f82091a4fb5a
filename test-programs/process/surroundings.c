/* What a process can see of itself is what a native run shows: argv, environment, /proc/self/exe, cmdline,
 * comm, cwd, umask, open files, signal mask and dispositions, limits, auxv (values, or what they point to),
 * parent, session, nice value, personality, no tracer, seccomp off, dumpable, start of brk, stack position.
 * Answer: compared with the native run; pointers are reduced to what they point to. */
//@ args: one "two words" --three
#include "../check.h"
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

extern char **environ;
extern char _start[], __executable_start[];

static int ints(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(int argc, char **argv) {
    printf("argc %d\n", argc);
    for (int i = 0; i < argc; i++) printf("argv[%d] %s\n", i, argv[i]);
    for (char **e = environ; *e; e++) printf("env %s\n", *e);
    char text[4096];
    ssize_t n = readlink("/proc/self/exe", text, sizeof text - 1);
    printf("exe %.*s\n", (int)n, text);
    int fd = open("/proc/self/cmdline", O_RDONLY);
    n = read(fd, text, sizeof text);
    close(fd);
    for (ssize_t i = 0; i < n; i++) putchar(text[i] ? text[i] : '|');
    putchar('\n');
    prctl(PR_GET_NAME, text);
    printf("comm %s\n", text);
    printf("cwd %s\n", getcwd(text, sizeof text));
    mode_t m = umask(0);
    umask(m);
    printf("umask %o\n", m);
    int fds[1024], count = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(d)) fds[count++] = atoi(e->d_name);
    closedir(d);
    qsort(fds, count, sizeof *fds, ints);
    for (int i = 0; i < count; i++) {
        struct stat st;
        CHECK(fstat(fds[i], &st) == 0);
        printf("fd %d type %o flags %x fdflags %x\n", fds[i], st.st_mode & S_IFMT, fcntl(fds[i], F_GETFL),
               fcntl(fds[i], F_GETFD));
    }
    sigset_t mask, pending;
    sigprocmask(SIG_BLOCK, 0, &mask);
    sigpending(&pending);
    for (int s = 1; s < 65; s++) {
        struct sigaction sa;
        if (sigismember(&mask, s) == 1) printf("blocked %d\n", s);
        if (sigismember(&pending, s) == 1) printf("pending %d\n", s);
        if (sigaction(s, 0, &sa) == 0 && (sa.sa_handler != SIG_DFL || sa.sa_flags))
            printf("disposition %d %d flags %x\n", s, sa.sa_handler == SIG_IGN, sa.sa_flags);
    }
    for (int r = 0; r < RLIM_NLIMITS; r++) {
        struct rlimit l;
        CHECK(getrlimit(r, &l) == 0);
        printf("rlimit %d %lx %lx\n", r, l.rlim_cur, l.rlim_max);
    }
    struct itimerval it;
    for (int t = 0; t < 3; t++) {
        getitimer(t, &it);
        printf("itimer %d %ld %ld\n", t, (long)it.it_value.tv_sec, (long)it.it_interval.tv_sec);
    }
    stack_t ss;
    sigaltstack(0, &ss);
    printf("altstack %d %zu\n", ss.ss_flags, ss.ss_size);
    printf("execfn %s\n", (char *)getauxval(AT_EXECFN));
    printf("platform %s\n", (char *)getauxval(AT_PLATFORM));
    int values[] = {AT_HWCAP, AT_HWCAP2, AT_PAGESZ, AT_CLKTCK, AT_PHENT, AT_PHNUM, AT_FLAGS, AT_UID, AT_EUID,
                    AT_GID, AT_EGID, AT_SECURE, AT_MINSIGSTKSZ};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) printf("auxv %d %lx\n", values[i], getauxval(values[i]));
    printf("entry is _start %d\n", getauxval(AT_ENTRY) == (unsigned long)_start);
    printf("phdr offset %lx\n", getauxval(AT_PHDR) - (unsigned long)__executable_start);
    printf("base is ELF %d\n", memcmp((void *)getauxval(AT_BASE), ELFMAG, SELFMAG) == 0);
    printf("vdso is ELF %d\n", memcmp((void *)getauxval(AT_SYSINFO_EHDR), ELFMAG, SELFMAG) == 0);
    printf("random given %d\n", getauxval(AT_RANDOM) != 0);
    printf("parent alive %d, session is parent's %d\n", kill(getppid(), 0), getsid(0) == getsid(getppid()));
    printf("nice %d sched %d personality %x\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0),
           personality(0xffffffff));
    printf("dumpable %d nnp %d deathsig-free %d\n", prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
           prctl(PR_GET_TIMERSLACK) != 0);
    int deathsig = -1, subreaper = -1;
    prctl(PR_GET_PDEATHSIG, &deathsig);
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    printf("deathsig %d subreaper %d\n", deathsig, subreaper);
    FILE *f = fopen("/proc/self/status", "r");
    while (fgets(text, sizeof text, f))
        if (!strncmp(text, "TracerPid", 9) || !strncmp(text, "Seccomp:", 8) || !strncmp(text, "Cap", 3) ||
            !strncmp(text, "Threads", 7) || !strncmp(text, "SigBlk", 6) || !strncmp(text, "SigIgn", 6))
            fputs(text, stdout);
    fclose(f);
    cpu_set_t cpus;
    CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    printf("cpus %d\n", CPU_COUNT(&cpus));
    int local;
    char *brk = sbrk(0);
    printf("stack above brk %d, brk near the image %d\n", (char *)&local > brk,
           (unsigned long)brk - (unsigned long)__executable_start < (1ul << 40));
    return 0;
}
