/* A program started with stdin and stderr closed sees them closed: the first open gets 0, as natively.
 * (It re-executes itself through sh with the descriptors closed.)
 * Answer: descriptors 0 and 2. */
//@ stdout: opened 0 then 2
#include "../check.h"
#include <fcntl.h>
int main(int argc, char **argv) {
    if (argc == 1) {
        char self[4096], command[5000];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        CHECK(n > 0);
        self[n] = 0;
        snprintf(command, sizeof command, "exec '%s' again <&- 2>&-", self);
        execl("/bin/sh", "sh", "-c", command, (char *)0);
    }
    int a = open("/dev/null", O_RDWR), b = open("/dev/null", O_RDWR);
    printf("opened %d then %d\n", a, b);
    return argv[1] == 0;
}
