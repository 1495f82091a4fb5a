/* The parent of the program is the process that started it, as natively; its death signal and waiting work.
 * Answer: the parent's pid, given as the argument. */
//@ args: {pid}
//@ stdout: started by the one who waits: 1
#include "../check.h"
int main(int argc, char **argv) {
    printf("started by the one who waits: %d\n", argc == 2 && atoi(argv[1]) == getppid());
    return 0;
}
