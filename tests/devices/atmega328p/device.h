/* An ATmega328P under simavr, which prints what goes to the serial port, and stops where a program sleeps for good. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>
#include <stdint.h>

#define TABLE const PROGMEM
#define READ(p) pgm_read_byte(p)
#define DEPTH 1024

static inline volatile uint8_t *stack_pointer(void)
{
    return (volatile uint8_t *)SP + 1;
}

static void print(char c)
{
    while (!(UCSR0A & _BV(UDRE0)))
        ;
    UDR0 = c;
}

static inline void begin(void)
{
    UCSR0B = _BV(TXEN0);
}

static inline void end(void)
{
    cli();
    sleep_mode();
}
