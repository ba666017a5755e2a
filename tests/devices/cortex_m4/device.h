/* A Cortex-M4F under QEMU (mps2-an386): vectors, start, and the debugger's calls (semihosting) to print and to stop. */
#include <stdint.h>

#define TABLE const
#define READ(p) (*(p))
#define DEPTH 16384  /* bytes below the stack that are painted; more is not seen */

static inline int32_t debugger(int32_t call, const volatile void *argument)
{
    register int32_t r0 __asm__("r0") = call;
    register const volatile void *r1 __asm__("r1") = argument;

    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static inline volatile uint8_t *stack_pointer(void)
{
    volatile uint8_t *sp;

    __asm__ volatile("mov %0, sp" : "=r"(sp));
    return sp;
}

static inline void print(char c)
{
    volatile char byte = c;

    debugger(3, &byte);  /* SYS_WRITEC */
}

static inline void end(void)
{
    debugger(0x18, (const void *)0x20026);  /* SYS_EXIT: the application ended */
}

static inline void begin(void) {}

extern uint32_t stack_top, data_start, data_end, data_in_flash, bss_start, bss_end;
int main(void);

static void fault(void)
{
    debugger(0x18, (const void *)0x20024);  /* SYS_EXIT: an error */
    for (;;)
        ;
}

void start(void)
{
    uint32_t *from = &data_in_flash, *to;

    *(volatile uint32_t *)0xE000ED88 |= 0xF << 20;  /* the FPU on */
    for (to = &data_start; to < &data_end;)
        *to++ = *from++;
    for (to = &bss_start; to < &bss_end;)
        *to++ = 0;
    main();
    end();
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, (void *)start, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault,
};
