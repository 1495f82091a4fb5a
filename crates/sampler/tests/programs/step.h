/* What the stepper library offers; weak, so that the programs also run without it. */
#ifdef __cplusplus
extern "C" {
#endif
extern void farsight_step_begin(void) __attribute__((weak));
extern unsigned long farsight_step_end(void) __attribute__((weak));
extern unsigned long farsight_steps(void) __attribute__((weak));
extern unsigned long farsight_landing(void) __attribute__((weak));
extern int farsight_walk(void **pcs, int max) __attribute__((weak));
#ifdef __cplusplus
}
#endif
