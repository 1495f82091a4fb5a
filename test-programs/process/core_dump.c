/* A child that dies by abort() with core dumps allowed in an empty directory: the core bit of the status and
 * the presence of a core file are what a native run gives (both may be off on this machine).
 * Answer: compared with the native run only. */
#include "../check.h"
#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>

int main(void) {
    char dir[] = "/tmp/farsight-core-XXXXXX";
    CHECK(mkdtemp(dir) && chdir(dir) == 0);
    pid_t c = fork();
    if (c == 0) {
        struct rlimit r;
        getrlimit(RLIMIT_CORE, &r);
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_CORE, &r);
        abort();
    }
    int st, files = 0;
    CHECK(waitpid(c, &st, 0) == c);
    DIR *d = opendir(".");
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') files++, unlink(e->d_name);
    CHECK(chdir("/") == 0 && rmdir(dir) == 0);
    printf("status %x, core files %d\n", st, files);
    return 0;
}
