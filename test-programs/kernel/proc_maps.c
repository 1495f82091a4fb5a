/* What a program finds in /proc/self/maps about itself: its text is there once, executable, with its name, its
 * stack and vDSO too. (An engine may add its own anonymous mappings.) Answer: below. */
//@ stdout: text 1, stack 1, vdso 1, libc 1
#include "../check.h"
int main(void) {
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1000], self[1000];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n] = 0;
    int text = 0, stack = 0, vdso = 0, libc = 0;
    while (fgets(line, sizeof line, f)) {
        unsigned long a, b;
        char r[5];
        CHECK(sscanf(line, "%lx-%lx %4s", &a, &b, r) == 3);
        int holds_main = a <= (unsigned long)main && (unsigned long)main < b;
        text += holds_main && strstr(line, self) && r[2] == 'x' && r[1] == '-';
        stack += strstr(line, "[stack]") && a <= (unsigned long)&n && (unsigned long)&n < b;
        vdso += strstr(line, "[vdso]") != 0;
        libc += strstr(line, "libc.so") && r[2] == 'x';
    }
    printf("text %d, stack %d, vdso %d, libc %d\n", text, stack, vdso, libc);
    return 0;
}
