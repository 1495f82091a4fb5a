/* What rewritten Cilk calls.
 *
 * Where only the program as a whole is asked for, in time, and on the main thread, everything happens here: a frame is a
 * variable of the function that it belongs to, and knows the longest path to the ends of its children. Else, and to read
 * the clock, the runtime is called. */
#ifndef FARSIGHT_CILK_RT_H
#define FARSIGHT_CILK_RT_H
#ifdef __cplusplus
extern "C" {
#endif
/* Not by way of a stub in the program, which would be counted. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define FARSIGHT_DIRECT __attribute__((noplt))
#endif
#endif
#ifndef FARSIGHT_DIRECT
#define FARSIGHT_DIRECT
#endif
struct farsight_site {
    const char *file;
    const char *function;
    const char *callee;
    unsigned line;
    unsigned kind; /* 0 call, 1 spawn, 2 loop, 3 iteration */
    unsigned id;   /* given by the runtime */
};
/* Lengths of paths from the start of the program; `struct Lengths` of the runtime. */
struct farsight_lengths {
    void *thread;              /* whose these are; nobody's in other modes */
    unsigned long shared;      /* strands of straight code that ended since the clock was read */
    unsigned long limit;       /* that may end before it is read again */
    unsigned long each;        /* what one costs */
    unsigned long private_[4];
    unsigned long here;        /* longest path to here, and what forks add to it if each costs a burden */
    unsigned long extra;
    unsigned long burden;
    unsigned long furthest;    /* longest path to the end of any task */
    unsigned long spawns, syncs;
    unsigned long near;        /* the function that begins next was called by straight code */
};
/* An invocation, a task, a loop, an iteration, a scope. */
struct farsight_frame {
    unsigned long here, extra;             /* where a task was spawned */
    unsigned long latest, burdened_latest; /* the end of its latest child */
    unsigned long iterations;
    struct farsight_frame *parent;
    char forked; /* it has children that it has not waited for */
    char near;   /* straight code follows when it ends */
    char go;     /* what the runtime wants to hear at its end */
    char once;
};
struct farsight_lengths *farsight_lengths(void);
void farsight_calibrate(void (*pattern)(int), void (*far)(int), void (*bare)(int));
/* Tells where code of ours lies, as pairs of addresses; whether instructions are counted. */
char farsight_own_code(const void *pairs, const void *end);
/* `near`: nothing but straight code follows, no loop and no call that is not seen. */
void farsight_read(int near);
void farsight_restart(void);
FARSIGHT_DIRECT void farsight_site_spawn(struct farsight_site *site, int near);
FARSIGHT_DIRECT void farsight_site_child_end(int near);
FARSIGHT_DIRECT void farsight_site_call(struct farsight_site *site, int near);
FARSIGHT_DIRECT char farsight_site_begin(const char *function, const void *caller, int near);
FARSIGHT_DIRECT void farsight_site_return(char go);
FARSIGHT_DIRECT void farsight_site_enter(struct farsight_site *site);
FARSIGHT_DIRECT void farsight_site_leave(int near);
FARSIGHT_DIRECT void farsight_site_sync(int near);
FARSIGHT_DIRECT void farsight_site_loop(struct farsight_site *site);
FARSIGHT_DIRECT void farsight_site_loop_end(void);
FARSIGHT_DIRECT void farsight_site_iteration(struct farsight_site *site);
FARSIGHT_DIRECT void farsight_site_iteration_end(void);
#ifdef __cplusplus
}
#endif
#define FARSIGHT_HOOK static inline __attribute__((always_inline, unused))
static struct farsight_lengths farsight_nobody __attribute__((unused));
static struct farsight_lengths *farsight_here __attribute__((unused)) = &farsight_nobody;
/* The lengths, if they are what is asked for. */
FARSIGHT_HOOK struct farsight_lengths *farsight_whole(void) {
    void *thread;
    __asm__("mov %%fs:0, %0" : "=r"(thread));
    return __builtin_expect(farsight_here->thread == thread, 1) ? farsight_here : (struct farsight_lengths *)0;
}
/* A strand ends. */
FARSIGHT_HOOK void farsight_strand(struct farsight_lengths *l, int near) {
    if (l->shared < l->limit) {
        l->shared++;
        l->here += l->each;
        if (!near) l->limit = 0;
    } else {
        farsight_read(near);
    }
}
FARSIGHT_HOOK void farsight_wait(struct farsight_lengths *l, struct farsight_frame *f) {
    unsigned long burdened = l->here + l->extra;
    if (f->iterations) {
        unsigned long rest;
        /* Handed out by halving. */
        for (rest = f->iterations - 1; rest; rest >>= 1) f->burdened_latest += l->burden;
        f->iterations = 0;
    }
    if (f->burdened_latest > burdened) burdened = f->burdened_latest;
    if (f->latest > l->here) l->here = f->latest;
    l->extra = burdened - l->here;
    f->forked = 0;
    f->latest = f->burdened_latest = 0;
    l->syncs++;
}
/* A child ends: its parent goes on from where it was spawned. */
FARSIGHT_HOOK void farsight_joins(struct farsight_lengths *l, struct farsight_frame *g, unsigned long burden) {
    struct farsight_frame *f = g->parent;
    unsigned long burdened = l->here + l->extra + burden;
    if (l->here > f->latest) f->latest = l->here;
    if (l->here > l->furthest) l->furthest = l->here;
    if (burdened > f->burdened_latest) f->burdened_latest = burdened;
    f->forked = 1;
    l->here = g->here;
    l->extra = g->extra + burden;
    l->spawns++;
}
/* A task starts and ends. */
FARSIGHT_HOOK struct farsight_frame farsight_spawn(struct farsight_site *site, struct farsight_frame *parent,
                                                   int task_near, int near) {
    struct farsight_lengths *l = farsight_whole();
    struct farsight_frame g = {0, 0, 0, 0, 0, parent, 0, (char)near, 0, 1};
    if (l) {
        farsight_strand(l, task_near);
        l->near = (unsigned long)task_near;
        g.here = l->here;
        g.extra = l->extra;
    } else {
        farsight_site_spawn(site, task_near);
    }
    return g;
}
FARSIGHT_HOOK void farsight_child_end(struct farsight_frame *g) {
    struct farsight_lengths *l = farsight_whole();
    if (l) {
        farsight_strand(l, g->near);
        l->near = 0;
        farsight_joins(l, g, l->burden);
    } else {
        farsight_site_child_end(g->near);
    }
}
/* The next function that begins is called here. */
FARSIGHT_HOOK void farsight_call(struct farsight_site *site, int near) {
    struct farsight_lengths *l = farsight_whole();
    if (l) {
        l->near = (unsigned long)near;
        if (!near) l->limit = 0;
    } else {
        farsight_site_call(site, near);
    }
}
/* A function that spawns begins and returns. */
FARSIGHT_HOOK struct farsight_frame farsight_begin(const char *function, const void *caller, int near) {
    struct farsight_lengths *l = farsight_whole();
    struct farsight_frame f = {0, 0, 0, 0, 0, (struct farsight_frame *)0, 0, 0, 0, 1};
    if (l) {
        f.near = (char)l->near;
        l->near = 0;
        if (!f.near || !near) l->limit = 0;
    } else {
        f.go = farsight_site_begin(function, caller, near);
    }
    return f;
}
FARSIGHT_HOOK void farsight_return(struct farsight_frame *f) {
    struct farsight_lengths *l = farsight_whole();
    if (l) {
        if (f->forked) {
            farsight_strand(l, f->near);
            farsight_wait(l, f);
        } else if (!f->near) {
            l->limit = 0;
        }
    } else {
        farsight_site_return(f->go);
    }
}
/* A function that does not spawn is called and returns. */
FARSIGHT_HOOK struct farsight_frame farsight_enter(struct farsight_site *site, int near) {
    struct farsight_lengths *l = farsight_whole();
    struct farsight_frame f = {0, 0, 0, 0, 0, (struct farsight_frame *)0, 0, (char)near, 0, 1};
    if (l) l->limit = 0;
    else farsight_site_enter(site);
    return f;
}
FARSIGHT_HOOK void farsight_leave(struct farsight_frame *f) {
    if (!farsight_whole()) farsight_site_leave(f->near);
}
/* Waits for the function's children. */
FARSIGHT_HOOK void farsight_sync(struct farsight_frame *f, int near) {
    struct farsight_lengths *l = farsight_whole();
    if (!l) {
        farsight_site_sync(near);
    } else if (f->forked) {
        farsight_strand(l, near);
        farsight_wait(l, f);
    } else if (!near) {
        l->limit = 0;
    }
}
/* A parallel loop, or a scope: what is spawned in it is waited for when it ends. */
FARSIGHT_HOOK struct farsight_frame farsight_loop(struct farsight_site *site) {
    struct farsight_lengths *l = farsight_whole();
    struct farsight_frame f = {0, 0, 0, 0, 0, (struct farsight_frame *)0, 0, 0, 0, 1};
    if (l) l->limit = 0;
    else farsight_site_loop(site);
    return f;
}
FARSIGHT_HOOK void farsight_loop_end(struct farsight_frame *f) {
    struct farsight_lengths *l = farsight_whole();
    if (l) {
        if (f->forked) farsight_wait(l, f);
        /* What passed since the last iteration is the loop's own counting, which a parallel loop does by halving. */
        farsight_restart();
    } else {
        farsight_site_loop_end();
    }
}
FARSIGHT_HOOK void farsight_scope_end(struct farsight_frame *f) {
    struct farsight_lengths *l = farsight_whole();
    if (!l) {
        farsight_site_iteration_end();
    } else if (f->forked) {
        farsight_strand(l, 0);
        farsight_wait(l, f);
    }
}
/* An iteration of a loop: it waits for what is spawned in it. */
FARSIGHT_HOOK struct farsight_frame farsight_iteration(struct farsight_site *site, struct farsight_frame *loop) {
    struct farsight_lengths *l = farsight_whole();
    struct farsight_frame g = {0, 0, 0, 0, 0, loop, 0, 0, 0, 1};
    if (l) {
        l->limit = 0;
        g.here = l->here;
        g.extra = l->extra;
    } else {
        farsight_site_iteration(site);
    }
    return g;
}
FARSIGHT_HOOK void farsight_iteration_end(struct farsight_frame *g) {
    struct farsight_lengths *l = farsight_whole();
    if (l) {
        farsight_strand(l, 0);
        if (g->forked) farsight_wait(l, g);
        farsight_joins(l, g, 0);
        g->parent->iterations++;
    } else {
        farsight_site_iteration_end();
    }
}
/* The same for functions with loops and other calls, which hardly notice a call and whose loops are better off without our
 * code beside them. They lie by themselves: where instructions are counted, these are not. */
#define FARSIGHT_FAR static __attribute__((noinline, unused, section("farsight_text")))
/* Of a section, as the linker gives them. */
#define FARSIGHT_ENDS __attribute__((weak, visibility("hidden")))
extern char __start_farsight_text[] FARSIGHT_ENDS, __stop_farsight_text[] FARSIGHT_ENDS;
FARSIGHT_FAR struct farsight_frame farsight_spawn_far(struct farsight_site *site, struct farsight_frame *parent,
                                                      int task_near, int near) {
    return farsight_spawn(site, parent, task_near, near);
}
FARSIGHT_FAR void farsight_child_end_far(struct farsight_frame *g) { farsight_child_end(g); }
FARSIGHT_FAR void farsight_call_far(struct farsight_site *site, int near) { farsight_call(site, near); }
FARSIGHT_FAR struct farsight_frame farsight_begin_far(const char *function, const void *caller, int near) {
    return farsight_begin(function, caller, near);
}
FARSIGHT_FAR void farsight_return_far(struct farsight_frame *f) { farsight_return(f); }
FARSIGHT_FAR struct farsight_frame farsight_enter_far(struct farsight_site *site, int near) {
    return farsight_enter(site, near);
}
FARSIGHT_FAR void farsight_leave_far(struct farsight_frame *f) { farsight_leave(f); }
FARSIGHT_FAR void farsight_sync_far(struct farsight_frame *f, int near) { farsight_sync(f, near); }
FARSIGHT_FAR struct farsight_frame farsight_loop_far(struct farsight_site *site) { return farsight_loop(site); }
FARSIGHT_FAR void farsight_loop_end_far(struct farsight_frame *f) { farsight_loop_end(f); }
FARSIGHT_FAR void farsight_scope_end_far(struct farsight_frame *f) { farsight_scope_end(f); }
FARSIGHT_FAR struct farsight_frame farsight_iteration_far(struct farsight_site *site, struct farsight_frame *loop) {
    return farsight_iteration(site, loop);
}
FARSIGHT_FAR void farsight_iteration_end_far(struct farsight_frame *g) { farsight_iteration_end(g); }
/* Where instructions are counted, a function of straight code is run as its twin: the same source, compiled as its serial
 * elision would be, and told of by code that takes no register and leaves none changed. Where that code lies is known, so
 * what is counted is what the elision executes. */
static char farsight_counting __attribute__((unused));
extern char __start_farsight_own[] FARSIGHT_ENDS, __stop_farsight_own[] FARSIGHT_ENDS;
#define FARSIGHT_OWN_CODE(code) \
    "771:\n\tleaq -128(%%rsp), %%rsp\n\t" code "\n\tleaq 128(%%rsp), %%rsp\n772:\n\t" \
    ".pushsection farsight_own, \"aw\"\n\t.quad 771b, 772b\n\t.popsection"
#define FARSIGHT_MARK(what) \
    __asm__ volatile(FARSIGHT_OWN_CODE("call *farsight_counted_" #what "@GOTPCREL(%%rip)") : :)
#define FARSIGHT_MARK_AT(what, site)                                                                                \
    __asm__ volatile(FARSIGHT_OWN_CODE("pushq %%rax\n\tleaq %0, %%rax\n\tcall *farsight_counted_" #what           \
                                       "@GOTPCREL(%%rip)\n\tpopq %%rax")                                            \
                     : : "m"(site))
FARSIGHT_HOOK void farsight_twin_spawn(struct farsight_site *site) { FARSIGHT_MARK_AT(spawn, *site); }
FARSIGHT_HOOK void farsight_twin_call(struct farsight_site *site) { FARSIGHT_MARK_AT(call, *site); }
FARSIGHT_HOOK void farsight_twin_begin(struct farsight_site *site) { FARSIGHT_MARK_AT(begin, *site); }
FARSIGHT_HOOK void farsight_twin_enter(struct farsight_site *site) { FARSIGHT_MARK_AT(enter, *site); }
FARSIGHT_HOOK void farsight_twin_sync(void) { FARSIGHT_MARK(sync); }
/* At the end of a scope: the variable is there to have one. */
FARSIGHT_HOOK void farsight_twin_return(char *scope) {
    (void)scope;
    FARSIGHT_MARK(return);
}
FARSIGHT_HOOK void farsight_twin_child_end(char *scope) {
    (void)scope;
    FARSIGHT_MARK(child_end);
}
FARSIGHT_HOOK void farsight_twin_leave(char *scope) {
    (void)scope;
    FARSIGHT_MARK(leave);
}
/* A tree of calls that do nothing, with the hooks of a function of straight code and without: what hooks cost. */
static __attribute__((noinline, unused)) void farsight_pattern(int n) {
    static struct farsight_site spawned = {"", "", "", 0, 1, 0}, called = {"", "", "", 0, 0, 0};
    __attribute__((cleanup(farsight_return), unused)) struct farsight_frame farsight_frame =
        farsight_begin("", __builtin_return_address(0), 1);
    if (n < 1) return;
    {
        __attribute__((cleanup(farsight_child_end), unused)) struct farsight_frame farsight_g =
            farsight_spawn(&spawned, &farsight_frame, 1, 1);
        farsight_pattern(n - 1);
    }
    farsight_call(&called, 1);
    farsight_pattern(n - 1);
    farsight_sync(&farsight_frame, 1);
}
/* The same with those of other functions. */
static __attribute__((noinline, unused)) void farsight_pattern_far(int n) {
    static struct farsight_site spawned = {"", "", "", 0, 1, 0}, called = {"", "", "", 0, 0, 0};
    __attribute__((cleanup(farsight_return_far), unused)) struct farsight_frame farsight_frame =
        farsight_begin_far("", __builtin_return_address(0), 1);
    if (n < 1) return;
    {
        __attribute__((cleanup(farsight_child_end_far), unused)) struct farsight_frame farsight_g =
            farsight_spawn_far(&spawned, &farsight_frame, 1, 1);
        farsight_pattern_far(n - 1);
    }
    farsight_call_far(&called, 1);
    farsight_pattern_far(n - 1);
    farsight_sync_far(&farsight_frame, 1);
}
static __attribute__((noinline, unused)) void farsight_bare(int n) {
    if (n < 1) return;
    farsight_bare(n - 1);
    __asm__ volatile("");
    farsight_bare(n - 1);
    __asm__ volatile("");
}
static void __attribute__((constructor, unused)) farsight_attach(void) {
    const void *text[2];
    text[0] = __start_farsight_text;
    text[1] = __stop_farsight_text;
    farsight_here = farsight_lengths();
    farsight_own_code(text, text + 2);
    farsight_counting = farsight_own_code(__start_farsight_own, __stop_farsight_own);
    farsight_calibrate(farsight_pattern, farsight_pattern_far, farsight_bare);
}
#endif
