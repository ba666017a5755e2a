"""What the tests of exported C share: compiling a file, warnings as errors and sanitizers on, and running it on rows."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

COMPILER = shutil.which("cc") or shutil.which("gcc")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow"]
SANITIZED = ["-O1", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
MAIN = """
#include <stdio.h>
#include "{stem}.h"

int main(void)
{{
    {x} x[{upper}_INPUTS];
    {y} y[{upper}_OUTPUTS];
    int k;

    while (fread(x, sizeof x[0], {upper}_INPUTS, stdin) == {upper}_INPUTS) {{
        k = {name}_predict(x, y);
        fwrite(&k, sizeof k, 1, stdout);
        fwrite(y, sizeof y[0], {upper}_OUTPUTS, stdout);
    }}
    return 0;
}}
"""
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler (cc) here")


DTYPES = {"float": np.float32, "double": np.float64, "int32_t": np.int32, "uint8_t": np.uint8}
PROTOTYPE = re.compile(r"^int (\w+)_predict\(const (\w+) \*x, (\w+)", re.MULTILINE)


def names_of(source: Path) -> dict[str, str]:
    """What stands for {stem}, {name}, {upper} and the types {x} and {y} in a program that calls the file's function."""
    prototype = PROTOTYPE.search(source.with_suffix(".h").read_text())
    assert prototype is not None
    name, x, y = prototype.groups()
    return {"stem": source.stem, "name": name, "upper": name.upper(), "x": x, "y": y}


def compiled(source: Path, *flags: str) -> Path:
    """The program that reads rows from its input, and writes what the file's function returns and says of each."""
    main, program = source.with_name(f"{source.stem}_main.c"), source.with_suffix(".program")
    main.write_text(MAIN.format(**names_of(source)))
    assert COMPILER is not None
    subprocess.run([COMPILER, *STRICT, *(flags or SANITIZED), source, main, "-o", program], check=True)
    return program


def run_c(source: Path, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """What the function returns [n], and the numbers y [n, outputs], for rows x."""
    program, types = compiled(source), names_of(source)
    rows = np.ascontiguousarray(x, DTYPES[types["x"]])
    unlimited = ["sh", "-c", 'ulimit -S -v "$(ulimit -H -v)"; exec "$0"']  # a soak limits addresses, which sanitizers reserve
    done = subprocess.run([*unlimited, program], input=rows.tobytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    records = np.frombuffer(done.stdout, np.uint8).reshape(len(rows), -1)
    return records[:, :4].copy().view(np.int32)[:, 0], records[:, 4:].copy().view(DTYPES[types["y"]])


ARM_GCC, AVR_GCC = shutil.which("arm-none-eabi-gcc"), shutil.which("avr-gcc")
CORTEX_M4F = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
ARM_OPTIONS = [*CORTEX_M4F, "-std=c99", "-Os", "-ffunction-sections", "-fdata-sections"]
ARM_LINK = ["-nostartfiles", "--specs=nano.specs", "--specs=nosys.specs", "-Wl,--gc-sections", "-Wl,-e,main"]
needs_arm_compiler = pytest.mark.skipif(ARM_GCC is None, reason="there is no arm-none-eabi-gcc here")
needs_avr_compiler = pytest.mark.skipif(AVR_GCC is None, reason="there is no avr-gcc here")
CALL = """
#include "{stem}.h"
{x} x[{upper}_INPUTS];
{y} y[{upper}_OUTPUTS];
int main(void)
{{
    return {name}_predict(x, y);
}}
"""


def linked_flash(files: list[Path], flags: Sequence[Any] = ()) -> int:
    """The bytes of flash of a program for Cortex-M4F, -Os: the linked image less an empty program."""
    assert ARM_GCC is not None
    empty, out = files[0].with_name("empty.c"), files[0].with_suffix(".elf")
    empty.write_text("int main(void)\n{\n    return 0;\n}\n")
    flash = []
    for sources, more in ((files, flags), ([empty], ())):
        subprocess.run([ARM_GCC, *ARM_OPTIONS, *ARM_LINK, *sources, "-o", out, *more], check=True)
        sizes = subprocess.run(["arm-none-eabi-size", out], check=True, capture_output=True, text=True).stdout.splitlines()[1]
        text, data = map(int, sizes.split()[:2])
        flash.append(text + data)
    return flash[0] - flash[1]


def image(source: Path) -> dict[str, int]:
    """The bytes of flash and of stack of a file for Cortex-M4F, -Os."""
    assert ARM_GCC is not None
    main = source.with_name(f"{source.stem}_call.c")
    main.write_text(CALL.format(**names_of(source)))
    flash = linked_flash([main, source])
    subprocess.run([ARM_GCC, *ARM_OPTIONS, "-fstack-usage", "-c", source, "-o", source.with_suffix(".arm.o")], check=True)
    usage = next(file for file in (source.with_suffix(".arm.su"), source.with_suffix(".su")) if file.exists())
    stack = sum(int(line.split("\t")[1]) for line in usage.read_text().splitlines())  # of all functions: more than is ever used
    return {"flash": flash, "stack": stack}
