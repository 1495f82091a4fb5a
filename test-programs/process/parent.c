/* The program's parent waits for it: natively the process that started it (its pid is the argument); under a tool that
 * stays, the tool, which that process started.
 * Answer: one of the two. */
//@ args: {pid}
//@ stdout: started by the one who waits: 1
#include "../check.h"

static int parent_of(int pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    int parent = -1;
    if (f) {
        CHECK(fscanf(f, "%*d (%*[^)]) %*c %d", &parent) == 1);
        fclose(f);
    }
    return parent;
}
int main(int argc, char **argv) {
    int starter = argc == 2 ? atoi(argv[1]) : 0, mine = getppid();
    printf("started by the one who waits: %d\n", mine == starter || parent_of(mine) == starter);
    return 0;
}
