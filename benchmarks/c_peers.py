"""One network in C by meristem, emlearn, emx-onnx-cgen and onnx2c: the time of a prediction here, flash on a Cortex-M4F.

    python benchmarks/c_peers.py --peers PYTHON [--onnx2c PROGRAM] --out results/c-peers.json

PYTHON is that of an environment with emlearn and emx-onnx-cgen. The network is dense, of 307 parameters: 8 inputs, rectifiers
of 16 and 8, three classes. All programs predict the same rows, one at a time, and must say the same; their CPU seconds are
taken in turn, a round for each, and compared as medians over the rounds. Flash is the linked image with -Os less an empty one.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import meristem
from meristem.compact import CompactNetwork
from meristem.export import OneOf, Values, to_c
from meristem.layers.layer import Affine, Perceptron

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from c_programs import linked_flash

SIZES, ROWS, REPEATS, ROUNDS = (8, 16, 8, 3), 256, 400, 15
FLAGS = ["-std=gnu99", "-O2", "-w"]
Dense = Sequence[tuple[np.ndarray, np.ndarray]]  # weights [out, in] and biases [out] of each layer, rectifiers between them
TIMED = """
#include <stdio.h>
#include <time.h>
{include}
static const float rows[{n}][{n_in}] = {{ {rows} }};

int main(void)
{{
    float x[{n_in}], y[{n_out}];
    clock_t start;
    int r, i, k;

    for (i = 0; i < {n}; i++) {{
        for (k = 0; k < {n_in}; k++)
            x[k] = rows[i][k];
        {call}
        fwrite(y, sizeof y[0], {n_out}, stdout);
    }}
    start = clock();
    for (r = 0; r < {repeats}; r++)
        for (i = 0; i < {n}; i++) {{
            for (k = 0; k < {n_in}; k++)
                x[k] = rows[i][k];
            {call}
            __asm__ volatile("" : : "r"(y) : "memory");
        }}
    fprintf(stderr, "%.9f", (double)(clock() - start) / CLOCKS_PER_SEC / {repeats} / {n});
    return 0;
}}
"""
CALLED = "{include}\nfloat x[{n_in}], y[{n_out}];\nint main(void)\n{{\n    {call}\n    return 0;\n}}\n"
EMLEARN = """
import sys, numpy, emlearn
from emlearn.net import c_generate_net_loadable
layers = numpy.load(sys.argv[1])
n = len(layers.files) // 2
weights, biases = [layers[f"w{k}"].T for k in range(n)], [layers[f"b{k}"] for k in range(n)]
code = c_generate_net_loadable(["relu"] * (n - 1) + [sys.argv[3]], weights, biases, "net")
open(sys.argv[2], "w").write(code)
print(emlearn.includedir)
"""


@dataclass(frozen=True)
class Program:
    """A network in C: how it is called, x being read and y written, and what is compiled with it."""

    include: str
    call: str
    sources: list[Path]
    flags: list[str] = field(default_factory=list)


def programs(
    layers: Dense, folder: Path, peers: Path, onnx2c: Path | None, *, is_classes: bool = True
) -> Iterator[tuple[str, Program]]:
    """Yield the network in C by each program that there is; as probabilities, or as numbers."""
    n_in, n_out = layers[0][0].shape[1], len(layers[-1][1])
    ours = CompactNetwork((*(Perceptron(w, b, "relu") for w, b in layers[:-1]), Affine(*layers[-1])))
    is_two = is_classes and n_out == 1
    ending = OneOf(range(2 if is_two else n_out)) if is_classes else Values(np.zeros(n_out), np.ones(n_out))
    yield "meristem", Program('#include "ours.h"', "ours_predict(x, y);", [to_c(folder / "ours.c", ours, ending=ending)])

    np.savez(
        folder / "layers.npz", **{f"{name}{k}": a for k, pair in enumerate(layers) for name, a in zip("wb", pair, strict=True)}
    )
    last = ("logistic" if is_two else "softmax") if is_classes else "identity"
    command = [peers, "-c", EMLEARN, folder / "layers.npz", folder / "emlearn.h", last]
    headers = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    ask = "predict_proba" if is_classes else "regress"
    call = f"eml_net_{ask}(&net, x, {n_in}, y, {2 if is_two else n_out});"
    yield "emlearn", Program('#include "emlearn.h"', call, [], ["-I", headers, "-lm"])

    graph = onnx_file(layers, folder / "net.onnx", {"logistic": "Sigmoid", "softmax": "Softmax", "identity": None}[last])
    one_row = f"*(const float (*)[1][{n_in}])x"
    out = "float p[1][1]; {run} y[1] = p[0][0]; y[0] = 1 - y[1];" if is_two else "{run}"
    y = "p" if is_two else f"*(float (*)[1][{n_out}])y"
    emx = peers.parent / "emx-onnx-cgen"
    subprocess.run([emx, "compile", graph, folder / "emx.c", "--model-name", "emx"], check=True, capture_output=True)
    yield "emx-onnx-cgen", Program('#include "emx.c"', out.format(run=f"emx({one_row}, {y});"), [], ["-lm"])
    if onnx2c is not None:
        done = subprocess.run([onnx2c, graph], check=True, capture_output=True, text=True)
        (folder / "onnx2c.c").write_text(done.stdout)
        yield "onnx2c", Program('#include "onnx2c.c"', out.format(run=f"entry({one_row}, {y});"), [], ["-lm"])


def onnx_file(layers: Dense, path: Path, last: str | None) -> Path:
    """Write a plain graph: Gemm and Relu in turn, and a last activation."""
    import onnx
    from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

    nodes, constants, h = [], [], "x"
    for k, (weight, bias) in enumerate(layers):
        constants += [
            onnx.numpy_helper.from_array(np.ascontiguousarray(a, np.float32), f"{name}{k}")
            for name, a in (("w", weight), ("b", bias))
        ]
        is_last = k == len(layers) - 1
        z = "y" if is_last and last is None else f"z{k}"
        nodes.append(make_node("Gemm", [h, f"w{k}", f"b{k}"], [z], transB=1))
        h = z if is_last and last is None else "y" if is_last else f"h{k}"
        if h != z:
            nodes.append(make_node(str(last) if is_last else "Relu", [z], [h]))
    ends = [
        make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, n])
        for name, n in (("x", layers[0][0].shape[1]), ("y", len(layers[-1][1])))
    ]
    model = make_model(
        make_graph(nodes, "net", ends[:1], ends[1:], constants), opset_imports=[make_opsetid("", 13)], ir_version=8
    )
    onnx.save(model, path)
    return path


def flash(program: Program, n_in: int, n_out: int, folder: Path) -> int:
    """The bytes of flash of a program for a Cortex-M4F."""
    call = folder / "call.c"
    call.write_text(CALLED.format(include=program.include, n_in=n_in, n_out=n_out, call=program.call))
    return linked_flash([call, *program.sources], ["-I", folder, *program.flags])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--onnx2c", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    shapes = list(zip(SIZES[1:], SIZES[:-1], strict=True))
    layers = [
        (rng.normal(size=s).astype(np.float32) / np.sqrt(s[1]), 0.1 * rng.normal(size=s[0]).astype(np.float32)) for s in shapes
    ]
    x = rng.normal(size=(ROWS, SIZES[0])).astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built: dict[str, Path] = {}
        result: dict[str, Any] = {}
        texts = ", ".join("{" + ", ".join(f"{v:.9e}f" for v in row) + "}" for row in x.tolist())
        for peer, program in programs(layers, folder, options.peers, options.onnx2c):
            main_c, built[peer] = folder / f"{peer}_main.c", folder / f"{peer}.program"
            shape = {"n": ROWS, "n_in": SIZES[0], "n_out": SIZES[-1], "repeats": REPEATS}
            main_c.write_text(TIMED.format(include=program.include, call=program.call, rows=texts, **shape))
            command = ["cc", *FLAGS, "-I", folder, main_c, *program.sources, "-o", built[peer], *program.flags]
            subprocess.run(command, check=True)
            result[peer] = {"flash": flash(program, SIZES[0], SIZES[-1], folder), "seconds": []}
        answers = {}
        for _ in range(ROUNDS):
            for peer, file in built.items():
                done = subprocess.run([file], capture_output=True, check=True)
                answers[peer] = np.frombuffer(done.stdout, np.float32)
                result[peer]["seconds"].append(float(done.stderr))
        for peer, said in answers.items():
            assert np.abs(said - answers["meristem"]).max() < 1e-5, peer
    ours = result["meristem"]["seconds"]
    for entry in result.values():
        seconds = entry.pop("seconds")
        entry["nanoseconds"] = round(1e9 * statistics.median(seconds), 1)
        entry["times ours"] = round(statistics.median(theirs / own for theirs, own in zip(seconds, ours, strict=True)), 2)
    compiler = subprocess.run(["cc", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    files = f"--peers PYTHON {'--onnx2c PROGRAM ' if options.onnx2c else ''}--out results/{options.out.name}"
    record = {
        "command": f"python benchmarks/c_peers.py {files}",
        "version": meristem.__version__,
        "compiler": f"{compiler}, {' '.join(FLAGS[:2])}",
    }
    record |= {
        "network": f"{' – '.join(map(str, SIZES))}, {sum(w.size + b.size for w, b in layers)} parameters",
        "rounds": ROUNDS,
    }
    options.out.write_text(json.dumps(record | {"programs": result}, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
