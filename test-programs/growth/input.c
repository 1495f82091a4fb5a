/* Input that was not there before: from a file, from a socket, from another thread. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned buffer[64];

/* n reads of 64 bytes into one buffer: 16 cells each, of the kernel's. */
__attribute__((noinline, noclone)) static unsigned file_reader(int fd, int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; i++) {
        if (read(fd, buffer, 64) != 64) exit(2);
        for (int k = 0; k < 16; k++) sum += buffer[k];
    }
    return sum;
}

__attribute__((noinline, noclone)) static unsigned socket_reader(int fd, int bytes) {
    unsigned sum = 0;
    if (recv(fd, buffer, bytes, MSG_WAITALL) != bytes) exit(3);
    for (int k = 0; k < bytes / 4; k++) sum += buffer[k];
    return sum;
}

/* Second paper, figure 2: the consumer reads one variable again and again, and gets a new value each time. */
static volatile int x;
static sem_t empty, full;
static enum { VALUES = 50 } values;

__attribute__((noinline, noclone)) static int take(void) { return x; }
__attribute__((noinline, noclone)) static void put(int value) { x = value; }

static void *producer(void *unused) {
    for (int i = 0; i < VALUES; i++) {
        sem_wait(&empty);
        put(i);
        sem_post(&full);
    }
    return unused;
}

__attribute__((noinline, noclone)) static long consumer(void) {
    long sum = 0;
    for (int i = 0; i < VALUES; i++) {
        sem_wait(&full);
        sum += take();
        sem_post(&empty);
    }
    return sum;
}

/* Workers whose input the main thread wrote. */
static unsigned work[4][1000];
__attribute__((noinline, noclone)) static unsigned long worker_sum(const unsigned *v, int n) {
    unsigned long sum = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    return sum;
}
static void *worker(void *number) {
    int k = (int)(long)number;
    return (void *)worker_sum(work[k], 100 * (k + 1));
}

int main(void) {
    (void)values;
    unsigned sum = 0;
    int fd = open("/dev/zero", O_RDONLY);
    for (int n = 2; n <= 20; n += 2) sum += file_reader(fd, n);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 1;
    unsigned data[64] = {1, 2, 3};
    for (int n = 32; n <= 256; n += 32) {
        if (send(pair[0], data, n, 0) != n) return 1;
        sum += socket_reader(pair[1], n);
    }
    pthread_t thread;
    sem_init(&empty, 0, 1);
    sem_init(&full, 0, 0);
    pthread_create(&thread, 0, producer, 0);
    long consumed = consumer();
    pthread_join(thread, 0);
    for (int i = 0; i < 4000; i++) work[i / 1000][i % 1000] = i;
    pthread_t workers[4];
    for (long k = 0; k < 4; k++) pthread_create(&workers[k], 0, worker, (void *)k);
    for (int k = 0; k < 4; k++) pthread_join(workers[k], 0);
    printf("%u %ld\n", sum, consumed);
    return 0;
}
