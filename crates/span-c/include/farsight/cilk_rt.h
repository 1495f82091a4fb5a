/* What rewritten Cilk calls. */
#ifndef FARSIGHT_CILK_RT_H
#define FARSIGHT_CILK_RT_H
#ifdef __cplusplus
extern "C" {
#endif
struct farsight_site {
    const char *file;
    const char *function;
    const char *callee;
    unsigned line;
    unsigned kind; /* 0 call, 1 spawn, 2 loop, 3 iteration */
    unsigned id;   /* given by the runtime */
};
struct farsight_guard {
    char go;
};
/* Those that end in _near: nothing but straight code follows, no loop and no call that is not seen. */
/* A task starts and ends. */
struct farsight_guard farsight_spawn(struct farsight_site *site);
struct farsight_guard farsight_spawn_near(struct farsight_site *site);
void farsight_child_end(struct farsight_guard *guard);
void farsight_child_end_near(struct farsight_guard *guard);
/* The next function that begins was called here. */
void farsight_call(struct farsight_site *site);
void farsight_call_near(struct farsight_site *site);
/* A function that spawns begins and returns. */
struct farsight_guard farsight_begin(const char *function, const void *caller);
struct farsight_guard farsight_begin_near(const char *function, const void *caller);
void farsight_return(struct farsight_guard *guard);
/* A function that does not spawn is called and returns. */
struct farsight_guard farsight_enter(struct farsight_site *site);
void farsight_leave(struct farsight_guard *guard);
void farsight_leave_near(struct farsight_guard *guard);
/* Waits for the function's children. */
void farsight_sync(void);
void farsight_sync_near(void);
/* A parallel loop, one iteration of it, a scope. */
struct farsight_guard farsight_loop(struct farsight_site *site);
struct farsight_guard farsight_iteration(struct farsight_site *site);
void farsight_loop_end(struct farsight_guard *guard);
void farsight_iteration_end(struct farsight_guard *guard);
#ifdef __cplusplus
}
#endif
#endif
