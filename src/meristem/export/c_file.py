"""The text of an exported C file and of its header: what it is, its tables, its functions.

The comment in front says how to call it, what it costs, and which columns it reads; names in it are those of the table, without
what would end a comment. The digest is that of everything below the comment.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import jax
import numpy as np

import meristem
from meristem.check import cut, many, unknown
from meristem.export.c_columns import Columns
from meristem.export.c_functions import called_by, text_of
from meristem.export.c_sizes import bytes_of, code_bound, stack_bound
from meristem.export.endings import AnyOf, Ending, OneOf, Values
from meristem.layers.ops.c import CProgram, CTable, Step, number

LINE = 116
NUMBERS = ["float", "double", "int"]
PIXELS = {"uint8": 1.0, "uint8/255": 255.0}  # what a byte is divided by
LISTED = 200  # columns, classes
EXPONENTS = {"float": ("-87.0f", "88.0f"), "double": ("-708.0", "708.0")}  # the range of e^z
BYTES = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "float": 4, "double": 8}
READERS = {  # of constants in flash, on AVR
    "int8_t": "(int8_t)pgm_read_byte(p)",
    "uint8_t": "pgm_read_byte(p)",
    "int16_t": "(int16_t)pgm_read_word(p)",
    "uint16_t": "pgm_read_word(p)",
    "int32_t": "(int32_t)pgm_read_dword(p)",
    "float": "pgm_read_float(p)",
    "double": "pgm_read_float((const float *)(p))",
}
MACROS = {"WEIGHT": "AT", "REAL": "AT"} | {kind: f"{kind}_AT" for kind in ("INDEX", "VALUE", "SUM", "FACTOR", "SHORT")}
INTEGERS = {8: ("int8_t", "127"), 16: ("int16_t", "16383")}  # the type of values, and the largest
FINITE = """#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "missing values are NaN: compile without -ffinite-math-only and -ffast-math"
#endif
"""


@dataclass(frozen=True, eq=False)
class COptions:
    """What a caller of `to_c` may choose."""

    name: str  # of the file
    numbers: str = "float"
    class_names: bool = False
    bits: int | None = None
    X: Any = None
    budget: int | str | None = None
    pixels: str | None = None

    def __post_init__(self) -> None:
        if self.numbers not in NUMBERS:
            raise unknown("numbers", self.numbers, NUMBERS)
        if self.bits not in (None, *INTEGERS):
            raise ValueError(f"bits={self.bits!r} must be 8, 16 or None.")
        if self.bits is None and self.numbers == "int":
            raise ValueError('numbers="int" is for networks in integers; give bits=8 or bits=16, too.')
        if self.bits is not None and self.numbers == "double":
            raise ValueError('numbers="double" is for networks in floating point; give "float" or "int", or leave out bits.')
        if self.pixels not in (None, *PIXELS):
            raise unknown("pixels", self.pixels, [*PIXELS])
        if self.budget is not None:
            bytes_of(self.budget)
        if self.bits is not None and self.X is None:
            raise ValueError(f"bits={self.bits} needs rows that show the range of each value; give the training rows, X=….")


@dataclass(frozen=True, eq=False)
class CFile:
    """Who calls what; `text` puts it together."""

    name: str  # what names in C begin with
    columns: Columns
    ending: Ending
    n_out: int
    options: COptions

    stem = property(lambda self: self.options.name)
    numbers = property(lambda self: self.options.numbers)
    has_class_names = property(lambda self: self.options.class_names)
    bits = property(lambda self: self.options.bits)

    @property
    def n_y(self) -> int:
        return len(self.ending.classes) if isinstance(self.ending, OneOf) else self.n_out

    @property
    def kind(self) -> str:
        """The type of y."""
        return "int32_t" if self.numbers == "int" else self.numbers

    @property
    def x_kind(self) -> str:
        return "uint8_t" if self.options.pixels else self.kind

    @property
    def prototype(self) -> str:
        return f"int {self.name}_predict(const {self.x_kind} *x, {self.kind} *y)"

    def text(
        self, program: CProgram, memory: int, body: list[str], n_parameters: int, notes: Sequence[str] = ()
    ) -> tuple[str, str]:
        """Return the C file and its header."""
        types, text = self._types(program), "\n".join(body)
        functions = [text_of(name, bits=self.bits, is_integer=self.kind == "int32_t") for name in self._called(text)]
        inside = "\n".join(functions) + text
        flash, tables = self.flash(program, body)
        if self.options.budget is not None and flash > (most_bytes := bytes_of(self.options.budget)):
            advice = "a smaller network (budget= or a higher penalty of the estimator)" if self.bits == 8 else "bits=8"
            problem = f"the file takes up to {flash:,} bytes of flash, {tables:,} of them tables; try {advice}"
            raise ValueError(f"budget={self.options.budget!r} is {most_bytes:,} bytes, and {problem}.")
        counters = [name for name in "ik" if re.search(rf"\b{name}\b", text)]
        code = "".join(
            [
                f'#include "{self.stem}.h"\n\n',
                "#include <stdint.h>\n\n" * ("INDEX" in inside or self.bits is not None),
                FINITE + "\n" if "is_number(" in inside and self.kind != "int32_t" else "",
                self._macros(program, types),
                "".join(self._table(table, types[table.kind]) for table in program.tables),
                self._names_table(),
                *functions,
                f"\n{self.prototype}\n{{\n",
                f"    VALUE m[{memory}];\n" * bool(memory),
                f"    int {', '.join(counters)};\n" * bool(counters),
                "\n" * bool(memory or counters),
                *(f"    {line}\n" if line else "\n" for line in body),
                "}\n",
            ]
        )
        code = re.sub(rf"\b({'|'.join(types)})\b", lambda match: types[match[0]], code)
        if self.kind == "double":
            code = re.sub(r"(\d\.\d+(?:e-?\d+)?)f\b", r"\1", code)
        values = memory * BYTES[types["VALUE"]]
        stack = stack_bound(values, self.numbers, self.bits, has_convolutions="conv(" in inside)
        products = sum(step.products for step in program.steps if isinstance(step, Step))
        costs = [
            f"{many(n_parameters, 'parameter')}, {many(products, 'multiply-add')}",
            f"flash: at most {many(flash, 'byte')} on a Cortex-M4F with -Os, {tables:,} of them tables",
            f"memory: at most {many(stack, 'byte')} of stack there, {values:,} of them values; nothing else",
            *notes,
        ]
        return self._comment(code, costs) + code, self._header()

    def flash(self, program: CProgram, body: list[str]) -> tuple[int, int]:
        """Return the most bytes of flash that a file with such tables takes, and those of its tables."""
        types, text = self._types(program), "\n".join(body)
        lines = len(body) + text.count("conv(")  # a call with many arguments is as long as two
        tables, repeated = (
            sum(table.values.size * BYTES[types[table.kind]] for table in each) for each in (program.tables, program.repeated)
        )
        tables += self.n_y * (self._longest_name + 1) if self.has_class_names else 0
        aligned = 4 * (len(program.tables) + len(program.repeated))
        return tables + repeated + aligned + code_bound(self._called(text), lines, self.numbers), tables

    def _types(self, program: CProgram) -> dict[str, str]:
        """Return what stands for each of the words in capitals in the text of functions and tables."""
        largest_index = max((int(table.values.max()) for table in program.tables if table.kind == "INDEX"), default=0)
        value, most = INTEGERS.get(self.bits or 0, (self.kind, ""))
        low, high = EXPONENTS.get(self.kind, ("", ""))
        index = "uint8_t" if largest_index < 256 else "uint16_t"
        types = {"WEIGHT": "float", "REAL": self.kind, "INDEX": index, "VALUE": value, "SUM": "int32_t", "FACTOR": "uint16_t"}
        return types | {"SHORT": "int16_t", "MOST": most, "LOWEST": low, "HIGHEST": high}

    def _called(self, text: str) -> list[str]:
        return list(called_by(text, bits=self.bits, is_integer=self.kind == "int32_t"))

    def _macros(self, program: CProgram, types: dict[str, str]) -> str:
        readers = {MACROS[table.kind]: READERS[types[table.kind]] for table in program.tables}
        if not readers and not self.has_class_names:
            return ""
        on_avr = "".join(f"#define {macro}(p) {reader}\n" for macro, reader in readers.items())
        elsewhere = "".join(f"#define {macro}(p) (*(p))\n" for macro in readers)
        start = "#ifdef __AVR__  /* tables stay in flash */\n#include <avr/pgmspace.h>\n#define FLASH PROGMEM\n"
        return f"{start}{on_avr}#else\n#define FLASH\n{elsewhere}#endif\n"

    def _table(self, table: CTable, kind: str) -> str:
        values, is_double = table.values, kind == "double"
        shape = " * ".join(map(str, values.shape))
        rows = values if values.ndim > 1 else values[None]
        lines = []
        for row in rows:
            texts = [str(int(v)) if np.issubdtype(values.dtype, np.integer) else number(v, is_double=is_double) for v in row]
            lines += wrap(
                ", ".join(texts) + ",", LINE, initial_indent="    ", subsequent_indent="        " if len(rows) > 1 else "    "
            )
        note = f"  /* {comment(table.note)} */" if table.note else ""
        return f"\nstatic const {kind} {table.name}[{shape}] FLASH = {{{note}\n" + "\n".join(lines) + "\n};\n"

    def _names_table(self) -> str:
        if not self.has_class_names:
            return ""
        texts = [f"    {c_string(str(name))},\n" for name in self.ending.classes.tolist()]  # type: ignore[union-attr]
        return f"\n{self._names_declaration()} FLASH = {{\n{''.join(texts)}}};\n"

    def _names_declaration(self) -> str:
        return f"const char {self.name}_classes[{self.n_y}][{self._longest_name + 1}]"

    @property
    def _longest_name(self) -> int:
        return max(len(str(name).encode()) for name in self.ending.classes.tolist())  # type: ignore[union-attr]

    def _returns(self) -> tuple[str, list[str]]:
        """Return what the function returns, and what each y is."""
        what = "logit" if self.numbers == "int" else "probability"
        match self.ending:
            case OneOf():
                classes = [str(name) for name in self.ending.classes.tolist()]
                texts = ", ".join(f"{k} {name}" for k, name in enumerate(classes))
                return f"the class: {texts}", [f"the {what} of {name}" for name in classes]
            case AnyOf():
                return "how many labels are present, more likely than not", [
                    f"the {what} of label {k}" for k in range(self.n_y)
                ]
            case Values():
                return "0", [f"prediction {k}" if self.n_y > 1 else "the prediction" for k in range(self.n_y)]
        return "0", [f"output {k}" for k in range(self.n_y)]

    def _comment(self, code: str, costs: list[str]) -> str:
        returns, ys = self._returns()
        versions = ", ".join(f"{module.__name__} {module.__version__}" for module in (meristem, jax, np))
        digest = hashlib.sha256(code.encode()).hexdigest()
        lines = [f"{self.stem}.c: a trained neural network, in C99 without libraries, memory allocation or state.", ""]
        lines += [f"    {self.prototype};", "", *_entry("returns", returns)]
        for letter, entries in (
            ("x", zip(self.columns.names, self.columns.notes, strict=True)),
            ("y", ((name, "") for name in ys)),
        ):
            described = [f"{name}: {note}" if note else name for name, note in entries]
            lines += [""]
            if letter == "x" and self.columns.summary:
                lines += _entry(f"x[0 … {len(described) - 1}]", self.columns.summary)
                continue
            for k, text in enumerate(described[:LISTED]):
                lines += _entry(f"{letter}[{k}]", text)
            lines += [f"    and {len(described) - LISTED:,} more"] * (len(described) > LISTED)
        lines += ["", *costs, f"written by {versions}", f"sha256 of what follows this comment: {digest}"]
        body = "".join(f" * {comment(line)}".rstrip() + "\n" for line in lines)
        return f"/*\n{body} */\n"

    def _header(self) -> str:
        upper = self.name.upper()
        names = f"extern {self._names_declaration()};  /* UTF-8; in flash on AVR */\n" if self.has_class_names else ""
        return (
            f"/* {self.stem}.h: see {self.stem}.c */\n#ifndef {upper}_H\n#define {upper}_H\n\n"
            f"#define {upper}_INPUTS {len(self.columns.names)}  /* numbers in x */\n"
            f"#define {upper}_OUTPUTS {self.n_y}  /* numbers in y */\n\n"
            + "#include <stdint.h>\n\n" * ("int32_t" in self.kind or "uint8_t" in self.x_kind)
            + '#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
            + f"{self.prototype};\n{names}\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
        )


def _entry(label: str, text: str) -> list[str]:
    """Return `label  text`, cut and wrapped."""
    return wrap(
        f"{label:8} {cut(comment(text), 800)}", LINE, initial_indent="    ", subsequent_indent=" " * 13, break_long_words=True
    )


def comment(text: str) -> str:
    """Return a text without what means something inside a comment of C, or is not printed.

    >>> comment("a */ b /* c ??/")
    'a * / b / * c ? ?/'
    """
    text = "".join(c if c.isprintable() else "?" for c in text)
    for mark in ("*/", "/*", "??", "??"):
        text = text.replace(mark, " ".join(mark))
    return text.replace("\\", "/") if text.endswith("\\") else text


def c_string(text: str) -> str:
    """Return a constant of C with this text in UTF-8.

    >>> c_string('a"b?ü1')
    '"a\\\\042b\\\\077\\\\303\\\\2741"'
    """
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def identifier(stem: str) -> str:
    """Return a name of C from that of a file.

    >>> identifier("model"), identifier("2nd try"), identifier("_größe")
    ('model', 'model_2nd_try', 'gr__e')
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", stem).lstrip("_")
    return name if name[:1].isalpha() else f"model_{name}".rstrip("_")
