/* exit: atexit handlers in reverse order, destructors of statics and thread locals, stdio flushed.
 * Answer: the order below, status 3. */
//@ stdout: main ends
//@ stdout: thread local gone
//@ stdout: atexit 2
//@ stdout: atexit 1
//@ stdout: static gone
//@ exit: 3
#include <cstdio>
#include <cstdlib>
struct Says {
    const char *text;
    ~Says() { puts(text); }
};
static Says global{"static gone"};
static thread_local Says local{"thread local gone"};
int main() {
    (void)local.text;
    atexit([] { puts("atexit 1"); });
    atexit([] { puts("atexit 2"); });
    puts("main ends");
    return 3;
}
