/* stdin, stdout and stderr are the program's own: a filter that reads all, writes both, byte for byte.
 * Answer: the input upper-cased on stdout, its length on stderr. */
//@ stdin: a first line
//@ stdin: and a second
//@ stdout: A FIRST LINE
//@ stdout: AND A SECOND
#include "../check.h"
#include <ctype.h>
int main(void) {
    int c, n = 0;
    while ((c = getchar()) != EOF) putchar(toupper(c)), n++;
    fprintf(stderr, "%d bytes\n", n);
    return 0;
}
