/* What the small C programs share: one way to fail, loudly and with a line number.
 * CHECK works in release builds, prints to stderr with write(2) (usable in signal handlers) and exits 99,
 * a status that no program here uses for anything else. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void check_failed(const char *what, int line) {
    char text[512];
    int n = snprintf(text, sizeof text, "line %d: not true: %s (errno %d)\n", line, what, errno);
    if (write(2, text, (size_t)n) < 0) {
    }
    _exit(99);
}
/* An address that the compiler knows nothing about. */
static inline void *wild(uintptr_t address) {
    __asm__("" : "+r"(address));
    return (void *)address;
}
#define CHECK(x) ((x) ? (void)0 : check_failed(#x, __LINE__))
