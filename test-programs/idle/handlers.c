// A timer whose handler sleeps, locks and wakes, in a program that does little else: handlers strike inside of whatever is
// done around a wait.
#include "idle.h"
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static sem_t sem;
static volatile int strikes;

static void handler(int number) {
    (void)number;
    struct timespec little = {0, 30000};
    nanosleep(&little, 0);
    sem_post(&sem);
    sem_trywait(&sem);
    strikes++;
}

int main(int argc, char **argv) {
    double seconds = ARGUMENT(1, 1.0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 150}, {0, 150}};
    uint64_t waits = 0;
    sem_init(&sem, 0, 0);
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &every, 0);
    for (double end = clock_of(CLOCK_MONOTONIC) + seconds; clock_of(CLOCK_MONOTONIC) < end; waits++) {
        struct timespec little = {0, 25000};
        nanosleep(&little, 0);
    }
    every.it_value.tv_usec = 0;
    setitimer(ITIMER_REAL, &every, 0);
    printf("%d\n", waits > 100 && strikes > 100);
}
