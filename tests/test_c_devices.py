"""C files on small devices: the flash that they take is within what they say, and they compute the same on Cortex-M and AVR."""

import re
import subprocess

import numpy as np
import pytest

from c_programs import (
    ARM,
    AVR,
    AVR_GCC,
    CORTEX_M4F,
    image,
    needs_arm_compiler,
    needs_avr_compiler,
)
from exported_estimators import trained
from meristem.export import AnyOf, OneOf, Values, to_c
from soak import many
from test_c import WIDTH, random_network

NUMBERS = [("float", None), ("float", 8), ("float", 16), ("int", 8), ("int", 16), ("double", None)]


def random_file(seed, folder):
    """A C file of a random network with a random ending, and its rows."""
    rng = np.random.default_rng(seed)
    network, (numbers, bits) = random_network(rng), NUMBERS[seed % len(NUMBERS)]
    n_out = len(network.layers[-1].weight)
    x = rng.normal(size=(40, WIDTH)) + 3
    ending = [OneOf(range(max(2, n_out))), AnyOf(), Values(np.full(n_out, 3.0), np.full(n_out, 0.5))][seed // 6 % 3]
    options = {"scaling": (np.full(WIDTH, 3.0), np.ones(WIDTH)), "ending": ending, "numbers": numbers, "bits": bits, "X": x}
    return to_c(folder / f"model_{seed}.c", network, **options), x, numbers


def bound(source) -> int:
    found = re.search(r"flash: at most ([\d,]+) byte", source.read_text())
    assert found is not None
    return int(found[1].replace(",", ""))


@needs_arm_compiler
@pytest.mark.parametrize("seed", range(many(6)))
def test_a_linked_image_takes_no_more_flash_than_the_file_says(seed, tmp_path):
    source, _, _ = random_file(seed, tmp_path)
    taken = image(source)["flash"]
    assert 0 < taken <= bound(source)


@needs_arm_compiler
@pytest.mark.parametrize("name", ["iris", "breast-cancer", "counts", "two-targets"])
def test_an_estimator_takes_no_more_flash_than_the_file_says(name, tmp_path):
    estimator, x = trained(name)
    for options in ({}, {"bits": 8, "X": x}):
        source = estimator.to_c(tmp_path / "model.c", **options)
        taken = image(source)["flash"]
        assert taken <= bound(source) <= 1.5 * taken


def test_a_budget_that_is_too_small_is_refused(tmp_path):
    estimator, x = trained("iris")
    estimator.to_c(tmp_path / "in.c", bits=8, X=x, budget="2 KB")
    for options, advice in (({}, "try bits=8"), ({"bits": 8, "X": x}, "try a smaller network")):
        with pytest.raises(ValueError, match=rf"budget='0.5 KB' is 512 bytes, and the file takes up to [\d,]+ bytes.*{advice}"):
            estimator.to_c(tmp_path / "out.c", budget="0.5 KB", **options)
    for wrong in ("two", 0, "2 MB", True):
        with pytest.raises(ValueError, match="budget="):
            estimator.to_c(tmp_path / "out.c", budget=wrong)
    assert not (tmp_path / "out.c").exists()


@needs_avr_compiler
def test_tables_lie_in_flash_on_avr(tmp_path):
    estimator, x = trained("iris")
    for options in ({}, {"bits": 8, "X": x}, {"bits": 16, "X": x, "numbers": "int"}):
        source = estimator.to_c(tmp_path / "model.c", **options)
        compile_ = [AVR_GCC, "-std=c99", "-Wall", "-Wextra", "-Werror", "-mmcu=atmega328p", "-Os", "-c"]
        subprocess.run([*compile_, source, "-o", tmp_path / "model.o"], check=True)
        sizes = subprocess.run(["avr-size", tmp_path / "model.o"], check=True, capture_output=True, text=True).stdout
        assert sizes.splitlines()[1].split()[1:3] == ["0", "0"], "no data, no bss: nothing in memory"


PRINTED = """
#include "{stem}.h"
{start}
static const {kind} rows[{n}][{n_x}] = {{{rows}}};
int main(void)
{{
    static {kind} x[{n_x}], y[{n_y}];
    int i, k;

    {begin}
    for (i = 0; i < {n}; i++) {{
        for (k = 0; k < {n_x}; k++)
            x[k] = rows[i][k];
        put(\'0\' + {name}_predict(x, y));
    }}
    {end}
    return 0;
}}
"""
SEMIHOSTED = """
static void call(int what, const void *argument)
{
    register int r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
static void put(char c) { call(3, &c); }
int main(void);
extern unsigned stack_top;
static void reset(void)
{
    *(volatile unsigned *)0xE000ED88 |= 0xF << 20;
    __asm__ volatile("dsb\\nisb");
    main();
}
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {(void *)0x20010000, (void *)reset};
"""
ON_AVR = """
#include <avr/io.h>
#include <avr/interrupt.h>
#include <avr/sleep.h>
static void put(char c)
{
    while (!(UCSR0A & (1 << UDRE0)))
        ;
    UDR0 = (uint8_t)c;
}
"""


def printing(source, x, numbers, **parts):
    """A program that prints what the function returns for each row."""
    header = source.with_suffix(".h").read_text()
    n_x, n_y = (int(re.search(rf"_{what} (\d+)", header)[1]) for what in ("INPUTS", "OUTPUTS"))
    kind = {"int": "int32_t"}.get(numbers, numbers)
    rows = ", ".join("{" + ", ".join(f"{v:.9g}" for v in row) + "}" for row in x)
    sizes = {"n": len(x), "n_x": n_x, "n_y": n_y, "kind": kind, "rows": rows, "stem": source.stem, "name": source.stem}
    main = source.with_name("printing.c")
    main.write_text(PRINTED.format(**sizes, **parts))
    return main


def on_cortex_m(source, x, numbers) -> list[int]:
    end = "{ static const int done = 0x20026; call(0x18, (const void *)done); }"
    main = printing(
        source,
        x,
        numbers,
        start=SEMIHOSTED,
        begin="",
        end=end.replace("static const int done = 0x20026; ", "").replace("done", "0x20026"),
    )
    script = source.with_name("flat.ld")
    script.write_text(
        "SECTIONS { . = 0x0; .text : { *(.vectors) *(.text*) *(.rodata*) }\n"
        ".data 0x20000000 : { *(.data*) *(.bss*) *(COMMON) } /DISCARD/ : { *(.ARM.*) } }\n"
    )
    out = source.with_suffix(".elf")
    link = ["-nostartfiles", "--specs=nano.specs", "--specs=nosys.specs", "-T", script]
    subprocess.run(["arm-none-eabi-gcc", *CORTEX_M4F, "-Os", *link, main, source, "-o", out], check=True)
    machine = [
        "-M",
        "mps2-an386",
        "-nographic",
        "-monitor",
        "none",
        "-serial",
        "none",
        "-semihosting-config",
        "enable=on,target=native",
    ]
    done = subprocess.run([ARM, *machine, "-kernel", out], capture_output=True, timeout=120, check=False)
    said = done.stdout + done.stderr
    return [int(c) for c in re.findall(rb"\d", said)]


def on_avr(source, x, numbers) -> list[int]:
    begin = "UCSR0B = 1 << TXEN0;"
    main = printing(source, x, numbers, start=ON_AVR, begin=begin, end="put('\\n'); cli(); sleep_mode();")
    out = source.with_suffix(".elf")
    subprocess.run([AVR_GCC, "-mmcu=atmega328p", "-Os", main, source, "-o", out], check=True)
    done = subprocess.run([AVR, "-m", "atmega328p", "-f", "16000000", out], capture_output=True, timeout=120, check=False)
    return [int(c) for c in re.findall(rb"\d", re.sub(rb"\x1b\[[\d;]*m", b"", done.stdout + done.stderr).split(b"Loaded")[-1])]
