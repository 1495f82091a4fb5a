/* getppid() is the process that started the command (its pid is the argument), whatever tool stands in between: natively
 * it is the parent, and a tool that stays is none of the program's business.
 * Answer: it is. */
//@ args: {pid}
//@ stdout: started by the one who waits: 1
#include "../check.h"

int main(int argc, char **argv) {
    int starter = argc == 2 ? atoi(argv[1]) : 0;
    printf("started by the one who waits: %d\n", getppid() == starter);
    return 0;
}
