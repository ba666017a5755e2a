/* Predicts rows on a device: prints what the function returns and y as hexadecimal bytes, a line for each row; then the stack. */
#include "device.h"

#include HEADER
#include "rows.h"  /* n_rows, and the numbers of x as bytes */

#define PAINT 0xA5

static X x[INPUTS];
static Y y[OUTPUTS];

static void print_bytes(const void *from, int n)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = from;

    for (; n > 0; n--, bytes++) {
        print(digits[*bytes >> 4]);
        print(digits[*bytes & 15]);
    }
}

/* The bytes of stack that a call takes, its return address among them: those of the paint that are gone. */
static __attribute__((noinline)) uint16_t stack_of_call(int32_t *returned)
{
    volatile uint8_t *const top = stack_pointer(), *p;

    for (p = top - DEPTH; p < top; p++)
        *p = PAINT;
    *returned = PREDICT(x, y);
    for (p = top - DEPTH; p < top && *p == PAINT; p++)
        ;
    return (uint16_t)(top - p);
}

int main(void)
{
    uint16_t most = 0;
    long row;
    unsigned i;

    begin();
    for (row = 0; row < n_rows; row++) {
        int32_t returned;
        uint16_t stack;

        for (i = 0; i < sizeof x; i++)
            ((uint8_t *)x)[i] = READ(rows + row * sizeof x + i);
        stack = stack_of_call(&returned);
        most = stack > most ? stack : most;
        print_bytes(&returned, sizeof returned);
        print_bytes(y, sizeof y);
        print('\n');
    }
    print_bytes(&most, sizeof most);
    print('\n');
    end();
    return 0;
}
