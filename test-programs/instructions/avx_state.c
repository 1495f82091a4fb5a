/* The upper halves of all 16 ymm registers and MXCSR survive system calls, signals and
 * their handlers that clear them. Answer: below. */
//@ flags: -mavx -pthread
//@ cpu: avx
//@ stdout: wrong 0, mxcsr 1
//@ repeat: 3
#include "micro.h"
#include <signal.h>
static unsigned char want[512], got[512];
static void on_usr1(int s) {
    (void)s;
    __asm__ volatile("vzeroall" ::: "xmm0", "xmm15");
}
int main(void) {
    signal(SIGUSR1, on_usr1);
    int wrong = 0;
    for (unsigned i = 0; i < 512; i++) want[i] = (unsigned char)(i * 13 + 1);
    unsigned csr = 0x9fc0, back = 0; /* flush to zero, denormals are zero */
    __asm__ volatile("ldmxcsr %0" ::"m"(csr));
    long pid = getpid();
    for (int lap = 0; lap < 300; lap++) {
        __asm__ volatile(
            "vmovdqu 0(%0),%%ymm0; vmovdqu 32(%0),%%ymm1; vmovdqu 64(%0),%%ymm2; vmovdqu 96(%0),%%ymm3; vmovdqu 128(%0),%%ymm4\n"
            "vmovdqu 160(%0),%%ymm5; vmovdqu 192(%0),%%ymm6; vmovdqu 224(%0),%%ymm7; vmovdqu 256(%0),%%ymm8; vmovdqu 288(%0),%%ymm9\n"
            "vmovdqu 320(%0),%%ymm10; vmovdqu 352(%0),%%ymm11; vmovdqu 384(%0),%%ymm12; vmovdqu 416(%0),%%ymm13\n"
            "vmovdqu 448(%0),%%ymm14; vmovdqu 480(%0),%%ymm15\n"
            "mov $62, %%eax; mov %2, %%rdi; mov $10, %%esi; syscall\n" /* kill(self, SIGUSR1) */
            "mov $24, %%eax; syscall\n"
            "vmovdqu %%ymm0,0(%1); vmovdqu %%ymm1,32(%1); vmovdqu %%ymm2,64(%1); vmovdqu %%ymm3,96(%1); vmovdqu %%ymm4,128(%1)\n"
            "vmovdqu %%ymm5,160(%1); vmovdqu %%ymm6,192(%1); vmovdqu %%ymm7,224(%1); vmovdqu %%ymm8,256(%1); vmovdqu %%ymm9,288(%1)\n"
            "vmovdqu %%ymm10,320(%1); vmovdqu %%ymm11,352(%1); vmovdqu %%ymm12,384(%1); vmovdqu %%ymm13,416(%1)\n"
            "vmovdqu %%ymm14,448(%1); vmovdqu %%ymm15,480(%1)\n" ::"r"(want), "r"(got), "r"(pid)
            : "rax", "rcx", "rdi", "rsi", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
              "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
        wrong += memcmp(want, got, 512) != 0;
    }
    __asm__ volatile("stmxcsr %0" : "=m"(back));
    SHOW("wrong %d, mxcsr %d", wrong, (back & 0xffc0) == csr);
    return 0;
}
