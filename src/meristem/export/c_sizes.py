"""How much flash an exported C file takes at most: its tables, to the byte, and recorded sizes of the code; and how much stack.

    flash = tables + Σ of each function called + LINE for each line of the body + BODY
    stack = values, in words of four bytes + CALLS, and CONVOLUTIONS where there are some

The sizes are those of a Cortex-M4F (arm-none-eabi-gcc 12.2, -Os), less an empty program: no library is linked, but for double,
which that processor computes in software. tests/test_c_devices.py compares the bound with linked images; on a machine with a
narrower instruction set the code is larger. It compares the stack with the bytes that a call overwrites under QEMU.
"""

import re
from collections.abc import Iterable

from meristem.check import short

CODE = {
    **{"add": 28, "add_conv": 296, "add_dense": 56, "add_times": 28, "average": 68, "code": 94, "copy": 22, "dense": 84},
    **{"dense_curve": 110, "dense_real": 72, "dense_sums": 84, "exponential": 220, "hyperbolic": 32, "is_number": 20},
    **{"largest": 44, "limited": 68, "load": 44, "log_1_plus": 92, "merge": 88, "mix": 46, "pick": 54, "product": 98},
    **{"requantized": 46, "rounded": 86, "scale": 52, "shifted": 4, "sigmoid": 24, "softmax": 72, "spread": 34, "sum": 30},
    **{"conv": 300, "window_sum": 220, "interpolated": 44, "requantized_wide": 108, "add_depthwise": 112, "pool": 124},
    **{"clear": 20, "times": 24, "each_elu": 44, "each_gelu": 78, "each_relu": 44, "each_sigmoid": 26, "each_silu": 34},
    **{"each_softplus": 62, "each_tanh": 26},
}
BODY, LINE = 90, 32
DOUBLE, FACTOR = 5200, 2.5  # in double: the arithmetic of the C compiler's own library, and by how much functions are larger
CALLS = {"float": 104, "double": 192, "integers": 144}  # saved registers, arguments and counters of all functions at once
CONVOLUTIONS = {"float": 72, "double": 56, "integers": 128}  # what their many arguments and counters take more
UNITS = {"": 1, "B": 1, "BYTES": 1, "KB": 1024, "KIB": 1024}  # as linkers count


def code_bound(functions: Iterable[str], lines: int, numbers: str) -> int:
    """Return the most bytes of code of a file that calls these functions, with so many lines in the body.

    >>> code_bound(["dense", "largest", "softmax", "exponential"], 8, "float")
    766
    """
    own, frame = sum(CODE[name] for name in functions), BODY + LINE * lines
    return round(DOUBLE + FACTOR * (own + frame)) if numbers == "double" else own + frame


def stack_bound(values: int, numbers: str, bits: int | None, *, has_convolutions: bool = False) -> int:
    """Return the most bytes of stack of a call, with so many bytes of values.

    >>> stack_bound(82, "float", 8)
    228
    """
    kind = "integers" if bits else numbers
    return -(-values // 4) * 4 + CALLS[kind] + has_convolutions * CONVOLUTIONS[kind]


def bytes_of(budget: int | str) -> int:
    """Return a budget in bytes.

    >>> bytes_of("2 KB"), bytes_of(900)
    (2048, 900)
    """
    if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0:
        return budget
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", budget) if isinstance(budget, str) else None
    if match is None or match[2].upper() not in UNITS or float(match[1]) <= 0:
        raise ValueError(f'budget={short(budget)} must be a number of bytes, or such as "2 KB".')
    return int(float(match[1]) * UNITS[match[2].upper()])
