/* Growth profiles computed a second way: at compile time, by the book.
 *
 * A program compiled with `-fsanitize=thread -fsanitize-coverage=trace-pc` calls out at every load, store,
 * function entry, function exit and basic block. Linked with this file instead of libtsan, it computes for
 * every activation of every routine
 *   - its read memory size: distinct 4-byte cells whose first access by it or its descendants is a read;
 *   - its cost: basic blocks executed, with and without callees;
 * and writes one aprof report (version 6) per thread when the thread or the program ends. It is slow and
 * plain on purpose: what our engine computes from binaries is checked against it.
 *
 * Compile-time hooks do not see libc: its reads are no input and its blocks no cost.
 *
 * The algorithm is "latest access" of Coppa, Demetrescu, Finocchi, Input-Sensitive Profiling (PLDI 2012),
 * figure 6. With -DORACLE_NAIVE the definition itself is executed instead (one set of cells per activation);
 * both must write the same report.
 *
 * Environment: FARSIGHT_ORACLE_DIR, folder of the reports (default: the current one).
 *
 * Rules: never call into the program; everything here runs with `busy` set, and events that come while it is
 * (a signal handler of the program) are dropped. An activation is identified by its frame pointer, so that
 * longjmp and dropped events cannot unbalance the shadow stack; programs need -fno-omit-frame-pointer.
 * Signal handlers on an alternate stack and switched stacks (coroutines) are not understood.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CELL_BYTES 4

typedef uint64_t u64;
typedef unsigned __int128 u128;

/* ---- what is kept ---- */

/* All activations of a routine on inputs of one size; the fields of a "p" line. */
struct point {
    u64 size, min, max, sum, calls, real_sum, self_sum, self_min, self_max;
    u128 sum_squares, self_squares;
    bool used;
};

struct routine {
    uintptr_t pc; /* an address inside it: where its entry hook returns to */
    u64 active;   /* pending activations */
    struct point *points;
    size_t used, capacity; /* capacity is a power of two, or 0 */
};

/* A set of cells, or a map from cells to times: open addressing, key 0 is free. */
struct cells {
    u64 *keys, *times;
    size_t used, capacity;
};

struct frame {
    uintptr_t base; /* the activation's frame pointer; callees have smaller ones */
    struct routine *routine;
    u64 entered;        /* time of entry: S[i].ts */
    u64 cost_at_entry;  /* S[i].cost */
    u64 cost_of_callees;
    int64_t rms;        /* partial: S[i].rms */
    struct cells seen;  /* naive variant only */
};

struct thread {
    struct thread *next;
    int number; /* from 1, in order of first event */
    bool written;
    u64 count; /* activations so far: the clock */
    u64 cost;  /* blocks so far */
    struct frame *stack;
    size_t depth, stack_capacity;
    struct cells latest; /* ts[] */
    struct routine **routines; /* by pc, open addressing */
    size_t routine_count, routine_capacity;
};

static _Thread_local struct thread *self;
static _Thread_local int busy;
static struct thread *threads;
static int thread_count;
static bool ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t at_thread_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void write_report(struct thread *t);

static void *zeroed(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "oracle: out of memory\n");
        _exit(70);
    }
    return memory;
}

/* ---- tables ---- */

static size_t hash(u64 key, size_t capacity) {
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (capacity - 1);
}

/* The time slot of a cell, 0 if it is new. */
static u64 *cell(struct cells *table, u64 address) {
    u64 key = address / CELL_BYTES + 1;
    if (2 * (table->used + 1) > table->capacity) {
        struct cells old = *table;
        table->capacity = old.capacity ? 2 * old.capacity : 64;
        table->keys = zeroed(table->capacity, sizeof(u64));
        table->times = zeroed(table->capacity, sizeof(u64));
        for (size_t i = 0; i < old.capacity; i++) {
            if (!old.keys[i]) continue;
            size_t at = hash(old.keys[i], table->capacity);
            while (table->keys[at]) at = (at + 1) & (table->capacity - 1);
            table->keys[at] = old.keys[i];
            table->times[at] = old.times[i];
        }
        free(old.keys);
        free(old.times);
    }
    size_t at = hash(key, table->capacity);
    while (table->keys[at] && table->keys[at] != key) at = (at + 1) & (table->capacity - 1);
    if (!table->keys[at]) {
        table->keys[at] = key;
        table->used++;
    }
    return &table->times[at];
}

static struct point *point(struct routine *r, u64 size) {
    if (2 * (r->used + 1) > r->capacity) {
        struct point *old = r->points;
        size_t old_capacity = r->capacity;
        r->capacity = old_capacity ? 2 * old_capacity : 8;
        r->points = zeroed(r->capacity, sizeof *r->points);
        for (size_t i = 0; i < old_capacity; i++) {
            if (!old[i].used) continue;
            size_t at = hash(old[i].size, r->capacity);
            while (r->points[at].used) at = (at + 1) & (r->capacity - 1);
            r->points[at] = old[i];
        }
        free(old);
    }
    size_t at = hash(size, r->capacity);
    while (r->points[at].used && r->points[at].size != size) at = (at + 1) & (r->capacity - 1);
    if (!r->points[at].used) {
        r->points[at] = (struct point){.size = size, .min = UINT64_MAX, .self_min = UINT64_MAX, .used = true};
        r->used++;
    }
    return &r->points[at];
}

static struct routine *routine(struct thread *t, uintptr_t pc) {
    if (2 * (t->routine_count + 1) > t->routine_capacity) {
        struct routine **old = t->routines;
        size_t old_capacity = t->routine_capacity;
        t->routine_capacity = old_capacity ? 2 * old_capacity : 256;
        t->routines = zeroed(t->routine_capacity, sizeof *t->routines);
        for (size_t i = 0; i < old_capacity; i++) {
            if (!old[i]) continue;
            size_t at = hash(old[i]->pc, t->routine_capacity);
            while (t->routines[at]) at = (at + 1) & (t->routine_capacity - 1);
            t->routines[at] = old[i];
        }
        free(old);
    }
    size_t at = hash(pc, t->routine_capacity);
    while (t->routines[at] && t->routines[at]->pc != pc) at = (at + 1) & (t->routine_capacity - 1);
    if (!t->routines[at]) {
        t->routines[at] = zeroed(1, sizeof(struct routine));
        t->routines[at]->pc = pc;
        t->routine_count++;
    }
    return t->routines[at];
}

/* ---- the algorithm ---- */

static void enter(struct thread *t, uintptr_t pc, uintptr_t base) {
    if (t->depth == t->stack_capacity) {
        t->stack_capacity = t->stack_capacity ? 2 * t->stack_capacity : 256;
        t->stack = realloc(t->stack, t->stack_capacity * sizeof *t->stack);
        if (!t->stack) _exit(70);
    }
    struct routine *r = routine(t, pc);
    r->active++;
    t->count++;
    t->stack[t->depth++] = (struct frame){.base = base, .routine = r, .entered = t->count, .cost_at_entry = t->cost};
}

static void leave(struct thread *t) {
    struct frame *f = &t->stack[--t->depth];
    struct routine *r = f->routine;
    u64 cost = t->cost - f->cost_at_entry, own = cost - f->cost_of_callees;
    struct point *p = point(r, f->rms < 0 ? 0 : (u64)f->rms);
    p->calls++;
    p->sum += cost;
    p->sum_squares += (u128)cost * cost;
    if (cost < p->min) p->min = cost;
    if (cost > p->max) p->max = cost;
    p->self_sum += own;
    p->self_squares += (u128)own * own;
    if (own < p->self_min) p->self_min = own;
    if (own > p->self_max) p->self_max = own;
    if (--r->active == 0) p->real_sum += cost; /* the outermost of a recursion */
    if (t->depth) {
        t->stack[t->depth - 1].cost_of_callees += cost;
#ifndef ORACLE_NAIVE
        t->stack[t->depth - 1].rms += f->rms;
#endif
    }
    free(f->seen.keys);
    free(f->seen.times);
}

static void access_cell(struct thread *t, u64 address, bool read) {
#ifdef ORACLE_NAIVE
    for (size_t i = 0; i < t->depth; i++) {
        u64 *seen = cell(&t->stack[i].seen, address);
        if (!*seen && read) t->stack[i].rms++;
        *seen = 1;
    }
#else
    u64 *time = cell(&t->latest, address);
    struct frame *top = &t->stack[t->depth - 1];
    if (read && *time < top->entered) {
        top->rms++;
        if (*time) {
            /* The deepest pending activation that has accessed the cell: the last one entered by then. */
            size_t low = 0, high = t->depth;
            while (low < high) {
                size_t middle = (low + high) / 2;
                if (t->stack[middle].entered <= *time) low = middle + 1;
                else high = middle;
            }
            if (low) t->stack[low - 1].rms--;
        }
    }
    *time = t->count;
#endif
}

/* ---- threads ---- */

static void thread_ended(void *thread) {
    busy++;
    struct thread *t = thread;
    while (t->depth) leave(t);
    pthread_mutex_lock(&lock);
    if (!t->written && !ended) write_report(t);
    pthread_mutex_unlock(&lock);
    self = NULL;
    busy--;
}

static void program_ended(void) {
    busy++;
    pthread_mutex_lock(&lock);
    ended = true;
    /* Others may still run; they stop at their next event, and their pending activations are left out. */
    if (self) while (self->depth) leave(self);
    for (struct thread *t = threads; t; t = t->next)
        if (!t->written) write_report(t);
    pthread_mutex_unlock(&lock);
}

static void begin(void) {
    pthread_key_create(&at_thread_exit, thread_ended);
    atexit(program_ended);
}

static struct thread *thread(void) {
    if (!self) {
        pthread_once(&once, begin);
        struct thread *t = zeroed(1, sizeof *t);
        pthread_mutex_lock(&lock);
        t->number = ++thread_count;
        t->next = threads;
        threads = t;
        pthread_mutex_unlock(&lock);
        self = t;
        /* The main thread's report is written at exit: destructors of main do not run. */
        if (t->number > 1) pthread_setspecific(at_thread_exit, t);
    }
    return self;
}

/* ---- hooks ---- */

/* Frame pointer of the function that calls a hook. */
#define CALLER_BASE ((uintptr_t) * (void **)__builtin_frame_address(0))
#define HOOK __attribute__((visibility("default"), noinline, optimize("no-omit-frame-pointer")))

static inline bool take(void) {
    if (busy || ended) return false;
    busy = 1;
    return true;
}

HOOK void __sanitizer_cov_trace_pc(void) {
    if (!take()) return;
    thread()->cost++;
    busy = 0;
}

HOOK void __tsan_func_entry(void *caller) {
    (void)caller;
    uintptr_t pc = (uintptr_t)__builtin_return_address(0), base = CALLER_BASE;
    if (!take()) return;
    struct thread *t = thread();
    while (t->depth && t->stack[t->depth - 1].base <= base) leave(t); /* left by longjmp */
    enter(t, pc, base);
    busy = 0;
}

HOOK void __tsan_func_exit(void) {
    uintptr_t base = CALLER_BASE;
    if (!take()) return;
    struct thread *t = thread();
    while (t->depth && t->stack[t->depth - 1].base < base) leave(t);
    if (t->depth && t->stack[t->depth - 1].base == base) leave(t);
    busy = 0;
}

static void touch(const volatile void *address, u64 bytes, bool read) {
    if (!bytes || !take()) return;
    struct thread *t = thread();
    if (t->depth) {
        u64 first = (u64)(uintptr_t)address & ~(u64)(CELL_BYTES - 1), last = (u64)(uintptr_t)address + bytes - 1;
        for (u64 at = first; at <= last; at += CELL_BYTES) access_cell(t, at, read);
    }
    busy = 0;
}

#define SIZED(bytes)                                                                     \
    HOOK void __tsan_read##bytes(void *a) { touch(a, bytes, true); }                     \
    HOOK void __tsan_write##bytes(void *a) { touch(a, bytes, false); }                   \
    HOOK void __tsan_unaligned_read##bytes(void *a) { touch(a, bytes, true); }           \
    HOOK void __tsan_unaligned_write##bytes(void *a) { touch(a, bytes, false); }         \
    HOOK void __tsan_volatile_read##bytes(void *a) { touch(a, bytes, true); }            \
    HOOK void __tsan_volatile_write##bytes(void *a) { touch(a, bytes, false); }          \
    HOOK void __tsan_unaligned_volatile_read##bytes(void *a) { touch(a, bytes, true); }  \
    HOOK void __tsan_unaligned_volatile_write##bytes(void *a) { touch(a, bytes, false); }\
    HOOK void __tsan_read_write##bytes(void *a) { touch(a, bytes, true); }               \
    HOOK void __tsan_unaligned_read_write##bytes(void *a) { touch(a, bytes, true); }
SIZED(1) SIZED(2) SIZED(4) SIZED(8) SIZED(16)

HOOK void __tsan_init(void) {}
HOOK void __tsan_read_range(void *a, unsigned long n) { touch(a, n, true); }
HOOK void __tsan_write_range(void *a, unsigned long n) { touch(a, n, false); }
HOOK void __tsan_vptr_read(void **a) { touch(a, sizeof *a, true); }
HOOK void __tsan_vptr_update(void **a, void *v) { (void)v; touch(a, sizeof *a, false); }
HOOK void *__tsan_memcpy(void *to, const void *from, unsigned long n) {
    touch(from, n, true), touch(to, n, false);
    return memcpy(to, from, n);
}
HOOK void *__tsan_memmove(void *to, const void *from, unsigned long n) {
    touch(from, n, true), touch(to, n, false);
    return memmove(to, from, n);
}
HOOK void *__tsan_memset(void *to, int c, unsigned long n) {
    touch(to, n, false);
    return memset(to, c, n);
}

/* Atomics: done here, always in the strongest order. An exchange reads first, then writes. */
#define FETCH(bits, type, name, builtin)                                                         \
    HOOK type __tsan_atomic##bits##_fetch_##name(volatile type *a, type v, int order) {          \
        (void)order;                                                                             \
        touch(a, sizeof *a, true);                                                               \
        return builtin(a, v, __ATOMIC_SEQ_CST);                                                  \
    }
#define ATOMIC(bits, type)                                                                       \
    HOOK type __tsan_atomic##bits##_load(const volatile type *a, int order) {                    \
        (void)order;                                                                             \
        touch(a, sizeof *a, true);                                                               \
        return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                             \
    }                                                                                            \
    HOOK void __tsan_atomic##bits##_store(volatile type *a, type v, int order) {                 \
        (void)order;                                                                             \
        touch(a, sizeof *a, false);                                                              \
        __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                \
    }                                                                                            \
    HOOK type __tsan_atomic##bits##_exchange(volatile type *a, type v, int order) {              \
        (void)order;                                                                             \
        touch(a, sizeof *a, true);                                                               \
        return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                      \
    }                                                                                            \
    HOOK int __tsan_atomic##bits##_compare_exchange_strong(volatile type *a, type *c, type v,    \
                                                           int order, int failed) {              \
        (void)order, (void)failed;                                                               \
        touch(a, sizeof *a, true);                                                               \
        return __atomic_compare_exchange_n(a, c, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);      \
    }                                                                                            \
    HOOK int __tsan_atomic##bits##_compare_exchange_weak(volatile type *a, type *c, type v,      \
                                                         int order, int failed) {                \
        return __tsan_atomic##bits##_compare_exchange_strong(a, c, v, order, failed);            \
    }                                                                                            \
    HOOK type __tsan_atomic##bits##_compare_exchange_val(volatile type *a, type c, type v,       \
                                                         int order, int failed) {                \
        __tsan_atomic##bits##_compare_exchange_strong(a, &c, v, order, failed);                  \
        return c;                                                                                \
    }                                                                                            \
    FETCH(bits, type, add, __atomic_fetch_add)                                                   \
    FETCH(bits, type, sub, __atomic_fetch_sub)                                                   \
    FETCH(bits, type, and, __atomic_fetch_and)                                                   \
    FETCH(bits, type, or, __atomic_fetch_or)                                                     \
    FETCH(bits, type, xor, __atomic_fetch_xor)                                                   \
    FETCH(bits, type, nand, __atomic_fetch_nand)
ATOMIC(8, uint8_t) ATOMIC(16, uint16_t) ATOMIC(32, uint32_t) ATOMIC(64, uint64_t)
HOOK void __tsan_atomic_thread_fence(int order) { (void)order; __atomic_thread_fence(__ATOMIC_SEQ_CST); }
HOOK void __tsan_atomic_signal_fence(int order) { (void)order; __atomic_signal_fence(__ATOMIC_SEQ_CST); }

/* ---- names ---- */

extern char *__cxa_demangle(const char *, char *, size_t *, int *) __attribute__((weak));

struct place {
    char name[4096], mangled[4096], object[4096];
};

/* Looks a file's symbol table up: dladdr knows exported functions only. */
static bool symbol_of(const char *path, u64 address, char *name, size_t room) {
    bool found = false;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (file < 0) return false;
    if (fstat(file, &info) == 0 && info.st_size > (off_t)sizeof(Elf64_Ehdr)) {
        char *image = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (image != MAP_FAILED) {
            Elf64_Ehdr *header = (Elf64_Ehdr *)image;
            Elf64_Shdr *sections = (Elf64_Shdr *)(image + header->e_shoff);
            for (int s = 0; s < header->e_shnum && header->e_shoff && !found; s++) {
                if (sections[s].sh_type != SHT_SYMTAB) continue;
                Elf64_Sym *symbols = (Elf64_Sym *)(image + sections[s].sh_offset);
                const char *strings = image + sections[sections[s].sh_link].sh_offset;
                for (size_t i = 0; i < sections[s].sh_size / sizeof *symbols && !found; i++) {
                    if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC) continue;
                    if (address - symbols[i].st_value >= symbols[i].st_size) continue;
                    snprintf(name, room, "%s", strings + symbols[i].st_name);
                    found = true;
                }
            }
            munmap(image, (size_t)info.st_size);
        }
    }
    close(file);
    return found;
}

static void executable(char *path, size_t room) {
    ssize_t length = readlink("/proc/self/exe", path, room - 1);
    path[length < 0 ? 0 : length] = 0;
}

static void locate(uintptr_t pc, struct place *out) {
    Dl_info info;
    struct link_map *map = NULL;
    out->mangled[0] = 0;
    executable(out->object, sizeof out->object);
    if (dladdr1((void *)pc, &info, (void **)&map, RTLD_DL_LINKMAP)) {
        /* The executable's own name in the link map is empty. */
        if (map && map->l_name[0]) snprintf(out->object, sizeof out->object, "%s", map->l_name);
        if (!symbol_of(out->object, pc - (map ? map->l_addr : 0), out->mangled, sizeof out->mangled) && info.dli_sname)
            snprintf(out->mangled, sizeof out->mangled, "%s", info.dli_sname);
    }
    if (!out->mangled[0]) snprintf(out->mangled, sizeof out->mangled, "%#" PRIxPTR, pc);
    snprintf(out->name, sizeof out->name, "%s", out->mangled);
    if (__cxa_demangle) {
        int status = 0;
        char *text = __cxa_demangle(out->mangled, NULL, NULL, &status);
        if (text && status == 0) snprintf(out->name, sizeof out->name, "%s", text);
        free(text);
    }
}

/* ---- reports ---- */

static int by_size(const void *a, const void *b) {
    u64 x = ((const struct point *)a)->size, y = ((const struct point *)b)->size;
    return x < y ? -1 : x > y;
}

static int by_pc(const void *a, const void *b) {
    uintptr_t x = (*(struct routine *const *)a)->pc, y = (*(struct routine *const *)b)->pc;
    return x < y ? -1 : x > y;
}

/* The format has 64 bits for sums of squares. */
static u64 saturated(u128 value) { return value > UINT64_MAX ? UINT64_MAX : (u64)value; }

static void write_command(FILE *out) {
    FILE *in = fopen("/proc/self/cmdline", "r");
    fputs("f ", out);
    for (int c, space = 0; in && (c = fgetc(in)) != EOF;) {
        if (!c) {
            space = 1;
            continue;
        }
        if (space) fputc(' ', out);
        space = 0;
        fputc(c == '\n' ? ' ' : c, out);
    }
    if (in) fclose(in);
    fputc('\n', out);
}

/* Sorted throughout, so that equal runs write equal files. */
static void write_report(struct thread *t) {
    t->written = true;
    static struct place place;
    executable(place.object, sizeof place.object);
    const char *program = strrchr(place.object, '/'), *folder = getenv("FARSIGHT_ORACLE_DIR");
    program = program ? program + 1 : place.object;
    char path[8192];
    snprintf(path, sizeof path, "%s/%s_%d_%d_%d.aprof", folder && *folder ? folder : ".", program, (int)getpid(),
             t->number, CELL_BYTES);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *out = file < 0 ? NULL : fdopen(file, "w");
    if (!out) {
        fprintf(stderr, "oracle: cannot write %s\n", path);
        return;
    }
    struct stat info = {0};
    stat(place.object, &info);
    fprintf(out, "c compile-time growth profile\nv 6\nk %" PRIu64 "\ne %" PRIu64 "\nm bb-count\ni rms\nt %d\na %s\n",
            t->cost, (u64)info.st_mtime, CELL_BYTES, place.object);
    write_command(out);
    struct routine **sorted = zeroed(t->routine_count + 1, sizeof *sorted);
    size_t count = 0;
    for (size_t i = 0; i < t->routine_capacity; i++)
        if (t->routines[i] && t->routines[i]->used) sorted[count++] = t->routines[i];
    qsort(sorted, count, sizeof *sorted, by_pc);
    size_t rid = 0;
    for (size_t n = 0; n < count; n++) {
        struct routine *r = sorted[n];
        locate(r->pc, &place);
        /* The constructor that gcc adds to call __tsan_init. */
        if (!strncmp(place.mangled, "_sub_I_", 7)) continue;
        fprintf(out, "r \"%s\" \"%s\" %zu\n", place.name, place.object, rid);
        if (strcmp(place.name, place.mangled)) fprintf(out, "u %zu \"%s\"\n", rid, place.mangled);
        struct point *points = zeroed(r->used, sizeof *points);
        size_t used = 0;
        for (size_t i = 0; i < r->capacity; i++)
            if (r->points[i].used) points[used++] = r->points[i];
        qsort(points, used, sizeof *points, by_size);
        for (size_t i = 0; i < used; i++) {
            struct point *p = &points[i];
            fprintf(out, "p %zu %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                         " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                    rid, p->size, p->min, p->max, p->sum, saturated(p->sum_squares), p->calls, p->real_sum,
                    p->self_sum, p->self_min, p->self_max, saturated(p->self_squares));
        }
        free(points);
        rid++;
    }
    free(sorted);
    if (fclose(out)) fprintf(stderr, "oracle: cannot write %s\n", path);
}
