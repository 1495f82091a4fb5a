/* A bit of everything that growth must see, for a comparison with the definition: linked statically at a fixed address,
 * so that a log of all its events can be read without a map. With an argument, threads take turns. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUTINE __attribute__((noinline, noclone)) static

static jmp_buf out;
static volatile sig_atomic_t seen;
static int shared[64];
static sem_t go, done;

ROUTINE int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
/* (The one of the C library asks how much memory is free, and what it reads differs from run to run.) */
ROUTINE void sort(int *v, int n, int (*volatile compare)(const void *, const void *)) {
    for (int gap = n / 2; gap > 0; gap /= 2)
        for (int i = gap; i < n; i++)
            for (int j = i; j >= gap && compare(&v[j - gap], &v[j]) > 0; j -= gap) {
                int t = v[j];
                v[j] = v[j - gap];
                v[j - gap] = t;
            }
}
ROUTINE int sum(const int *v, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += v[i];
    return s;
}
ROUTINE int deeper(const int *v, int n) { return n == 0 ? 0 : v[n - 1] + deeper(v, n - 1); }
ROUTINE void jumps(const int *v, int n) {
    if (n == 0) longjmp(out, 1);
    if (v[n - 1] < 0) return;
    jumps(v, n - 1);
}
ROUTINE int caught(const int *v, int n) {
    if (setjmp(out) == 0) jumps(v, n);
    return sum(v, n);
}
ROUTINE void handler(int signal) { seen += signal + shared[1]; }
ROUTINE int interrupted(int n) {
    for (int i = 0; i < n; i++) raise(SIGUSR1);
    return seen;
}
ROUTINE int reads(int fd, char *buffer, int n) {
    int s = 0;
    for (int at = 0; at < n; at += 64) {
        if (read(fd, buffer, 64) != 64) return -1;
        s += sum((const int *)buffer, 16);
    }
    return s;
}
ROUTINE int maps(int n) {
    int s = 0;
    for (int i = 0; i < n; i++) {
        int *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        page[3] = i;
        s += sum(page, 8);
        munmap(page, 8192);
    }
    return s;
}
ROUTINE int unaligned(const char *text, int n) {
    int s = 0, word;
    for (int i = 0; i + 4 <= n; i++) {
        memcpy(&word, text + i, 4);
        s += word;
    }
    return s;
}
ROUTINE void copies(char *to, const char *from, int n) {
    memcpy(to, from, n);
    memmove(to + 1, to, n - 1);
    memset(to, 7, n / 2);
    if (strlen(from) > 3) snprintf(to, n, "%s %d %g", from, n, n / 3.0);
}
ROUTINE void list(int n) {
    struct node { struct node *next; int value; } *head = 0;
    for (int i = 0; i < n; i++) {
        struct node *new = malloc(sizeof *new + i % 5 * 16);
        *new = (struct node){head, i};
        head = new;
    }
    while (head) {
        struct node *next = head->next;
        free(head);
        head = next;
    }
}
/* Each activation steps on its rung; then some look back at rungs of others, near and far below, in several ways. */
static long rungs[202];
ROUTINE long look(const long *rung, int parts) {
    long s = parts & 1 ? *rung : 0;
    if (parts & 2) s += *(const int *)(rung + 1);
    if (parts & 4) s += sum((const int *)(rung + 2), 4);
    struct { long v[3]; } some;
    if (parts & 8) {
        memcpy(&some, (const char *)rung + 2, sizeof some);
        s += some.v[1];
    }
    return s;
}
ROUTINE long ladder(int at, int top) {
    long s = rungs[at];
    if (at < top) s += ladder(at + 1, top);
    if (at % 9 == 0 || at == top)
        for (int i = 0; i < 30; i++) s += look(rungs + i * 7919L * (at + 1) % 199, i % 16);
    return s;
}
ROUTINE int taken(int n) { return sum(shared, n); }
ROUTINE void given(int n) { for (int i = 0; i < n; i++) shared[i] += i; }
static void *worker(void *rounds) {
    for (int i = 1; i <= (int)(long)rounds; i++) {
        sem_wait(&go);
        seen += taken(i);
        given(i / 2);
        sem_post(&done);
    }
    return 0;
}

int main(int argc, char **argv) {
    (void)argv;
    static int v[300];
    static char text[400] = "a text that is copied", copy[400];
    signal(SIGUSR1, handler);
    for (int n = 10; n <= 300; n += 58) {
        for (int i = 0; i < n; i++) v[i] = i * 7919 % 1009;
        sort(v, n, compare);
        seen += deeper(v, n) + caught(v, n / 3) + unaligned(text, n / 8);
        copies(copy, text, n);
        list(n / 2);
        seen += ladder(0, n / 2);
    }
    int fd = open("/dev/zero", O_RDONLY);
    seen += reads(fd, copy, 256) + interrupted(5) + maps(6);
    if (argc < 2) return 0;
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    pthread_t thread;
    pthread_create(&thread, 0, worker, (void *)12);
    for (int i = 1; i <= 12; i++) {
        given(2 * i);
        sem_post(&go);
        sem_wait(&done);
        seen += taken(i);
    }
    pthread_join(thread, 0);
    return 0;
}
