"""C files run on small devices in software: linked into an image with the start code in devices/, run under QEMU or simavr."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c_programs import ARM_GCC, AVR_GCC, CORTEX_M4F, DTYPES, names_of

DEVICES = Path(__file__).parent / "devices"
QEMU, SIMAVR = shutil.which("qemu-system-arm"), shutil.which("simavr")
needs_cortex_m4 = pytest.mark.skipif(
    ARM_GCC is None or QEMU is None, reason="there is no arm-none-eabi-gcc or no qemu-system-arm here"
)
needs_atmega = pytest.mark.skipif(AVR_GCC is None or SIMAVR is None, reason="there is no avr-gcc or no simavr here")
ATMEGA = "atmega328p"


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a device says of rows: what the function returns [n], y [n, outputs], the most stack of a call, and the image."""

    returned: np.ndarray
    y: np.ndarray
    stack: int
    image: Path


def run_cortex_m4(source: Path, x: Any) -> Predictions:
    assert ARM_GCC is not None
    folder = DEVICES / "cortex_m4"
    link = ["-nostartfiles", "--specs=nano.specs", "-T", folder / "memory.ld", "-Wl,--gc-sections"]
    compiler = [ARM_GCC, *CORTEX_M4F, "-ffunction-sections", "-fdata-sections", *link]
    emulator = ["-M", "mps2-an386", "-display", "none", "-monitor", "none", "-serial", "none", "-chardev", "stdio,id=out"]
    return _run(source, x, compiler, folder, [QEMU, *emulator, "-semihosting-config", "enable=on,chardev=out", "-kernel"])


def run_atmega(source: Path, x: Any) -> Predictions:
    return _run(source, x, [AVR_GCC, f"-mmcu={ATMEGA}"], DEVICES / ATMEGA, [SIMAVR, "-m", ATMEGA, "-f", "16000000"])


def _run(source: Path, x: Any, compiler: list[Any], folder: Path, emulator: list[Any]) -> Predictions:
    names = names_of(source)
    rows = np.ascontiguousarray(x, DTYPES[names["x"]])
    numbers = ", ".join(map(str, rows.tobytes()))
    source.with_name("rows.h").write_text(
        f"static const long n_rows = {len(rows)};\nstatic TABLE uint8_t rows[] = {{{numbers}}};\n"
    )
    image, upper = source.with_suffix(f".{folder.name}.elf"), names["upper"]
    given = {"HEADER": f'"{source.stem}.h"', "PREDICT": f"{names['name']}_predict", "X": names["x"], "Y": names["y"]}
    given |= {"INPUTS": f"{upper}_INPUTS", "OUTPUTS": f"{upper}_OUTPUTS"}
    defined = [f"-D{key}={value}" for key, value in given.items()]
    files = ["-I", folder, "-I", source.parent, *defined, DEVICES / "run_rows.c", source, "-o", image]
    subprocess.run([*compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-Os", *files], check=True)
    done = subprocess.run([*emulator, image], capture_output=True, text=True, timeout=120, check=False)
    lines = re.findall(r"^(?:\x1b\[\d*m)*((?:[0-9a-f]{2})+)\.?$", done.stdout + done.stderr, re.MULTILINE)  # simavr colors them
    assert len(lines) == len(rows) + 1, (done.stdout[-1000:], done.stderr[-1000:])
    records = np.stack([np.frombuffer(bytes.fromhex(line), np.uint8) for line in lines[:-1]])
    stack = int.from_bytes(bytes.fromhex(lines[-1]), "little")
    return Predictions(records[:, :4].copy().view(np.int32)[:, 0], records[:, 4:].copy().view(DTYPES[names["y"]]), stack, image)
