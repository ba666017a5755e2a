"""Exported C files: they compile without a warning, run under sanitizers, and say what `predict` says."""

import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import meristem
from c_programs import needs_compiler, run_c
from commanding import meristem_here
from exported_estimators import CASES, trained
from exporting import KINDS, TOLERANCE, assert_close, random_layer
from meristem.compact import CompactNetwork
from meristem.compact.inference import Predictor
from meristem.export import AnyOf, OneOf, Raw, Values, to_c
from meristem.inputs import Inputs, Preprocessor, Schema
from meristem.inputs.schema import CATEGORY, DATE, MISSING, UNSEEN, Field
from meristem.layers.activation import ACTIVATIONS
from meristem.layers.layer import Affine, Bag, Convolution, Layer, Mean, Perceptron, Pick
from meristem.layers.ops.numpy import NUMPY
from meristem.targets import Classes
from soak import many
from test_compact_ops import SomeChannels, _arrays, variants

pytestmark = needs_compiler
WIDTH, ROWS = 5, 60


def rows_with_gaps(x: np.ndarray, n: int) -> np.ndarray:
    """Rows of x, then n of them with NaN, infinities and huge numbers in them, as float holds them."""
    rng = np.random.default_rng(0)
    more = x[rng.integers(len(x), size=n)]
    odd = rng.choice([np.nan, np.inf, -np.inf, 1e30, -1e30, 1e3, 0.0], size=more.shape)
    return np.concatenate([x[:n], np.where(rng.random(more.shape) < 0.2, odd, more)]).astype(np.float32)


@pytest.mark.parametrize("name", CASES)
def test_c_says_what_the_estimator_says(name, tmp_path):
    estimator, x = trained(name)
    rows = rows_with_gaps(np.asarray(x, float), 300)
    names = getattr(x, "columns", None)
    as_given = np.where(np.isinf(rows), np.nan, rows).astype(float)  # an estimator refuses infinities, C takes them for gaps
    as_given = as_given if names is None else pd.DataFrame(as_given, columns=names)
    expected = estimator.predict(as_given)
    for kind in ("float", "double") if name == "counts" else ("float",):
        source = estimator.to_c(tmp_path / f"{kind}.c", numbers=kind)
        returned, y = run_c(source, rows)
        if not hasattr(estimator, "predict_proba"):
            assert_close(y, expected.reshape(y.shape))
            assert not returned.any()
            continue
        assert np.abs(y - estimator.predict_proba(as_given)).max() <= TOLERANCE
        labels = expected.sum(1) if name == "multi-label" else np.searchsorted(estimator.classes_, expected)
        assert (returned == labels).all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_layer_says_in_c_what_it_says_in_numpy(activation, tmp_path):
    layers = [
        layer for layer in variants(activation) if jax.eval_shape(CompactNetwork((layer,)), jnp.ones(WIDTH)).shape == (WIDTH,)
    ]
    network = CompactNetwork((Bag(tuple((layer,) for layer in layers)),))
    assert set(map(type, layers)) >= KINDS - {Pick}
    x = np.random.default_rng(5).normal(size=(ROWS, WIDTH)).astype(np.float32)
    _, y = run_c(to_c(tmp_path / "layers.c", network), x)
    assert_close(y, Predictor(network).outputs(x))


def test_activations_are_right_far_out_and_defined_everywhere(tmp_path):
    eye = np.eye(1, dtype=np.float32)
    members = tuple(
        (Perceptron(eye, np.zeros(1, np.float32), name), Affine(np.eye(7, 1, -k, np.float32), None))
        for k, name in enumerate(ACTIVATIONS)
    )
    network = CompactNetwork((Bag(members),))
    x = np.concatenate([np.linspace(-40, 40, 401), [-100, -0.0, 100]]).astype(np.float32)[:, None]
    source = to_c(tmp_path / "activations.c", network)
    _, y = run_c(source, x)
    expected = np.stack([ACTIVATIONS[name].numpy(x[:, 0].astype(float)) for name in ACTIVATIONS], 1) / 7
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    run_c(source, np.array([[np.nan], [np.inf], [-np.inf], [3e38], [-3e38], [1e-45]]))  # the sanitizers see nothing


@pytest.mark.parametrize("kernel", [(1,), (4,), (3, 2)])
def test_convolutions_say_in_c_what_they_say_in_numpy(kernel, tmp_path):
    rng, rows, positions = np.random.default_rng(0), (0, 3, 4), (7, 4)[: len(kernel)]
    own = SomeChannels(*_arrays(rng, (3, WIDTH, *kernel), (3,), (3,)), rows)
    convolution = Convolution(_arrays(rng, (3, WIDTH, *kernel))[0], _arrays(rng, (3,))[0])
    x = rng.normal(size=(6, WIDTH, *positions)).astype(np.float32)
    for depth in (2, 3):
        network = CompactNetwork((own, convolution, Mean(3, positions))[:depth], positions)
        _, y = run_c(to_c(tmp_path / f"positions_{depth}.c", network), x.reshape(len(x), -1))
        assert_close(y, Predictor(network).outputs(x).reshape(y.shape))


def random_network(rng: np.random.Generator) -> CompactNetwork:
    """Layers of any kind in a row; they grow in number, not in size."""
    activation = str(rng.choice(list(ACTIVATIONS)))
    kinds = sorted(KINDS - {Pick}, key=str)

    def layer() -> Layer:
        rows = tuple(sorted(rng.choice(WIDTH, size=rng.integers(1, WIDTH + 1), replace=False).tolist()))
        drawn = random_layer(kinds[rng.integers(len(kinds))], activation, rng, rows)
        return jax.tree.map(lambda a: np.asarray(0.5 * a, np.float32), drawn)

    layers = [layer() for _ in range(rng.integers(1, 5))]
    rows = tuple(sorted(rng.choice(WIDTH, size=2, replace=False).tolist()))
    last = Affine(*_arrays(rng, (int(rng.choice([1, 3])), 2)), None)
    return CompactNetwork((*layers, Pick(rows, WIDTH), last))


@pytest.mark.parametrize("seed", range(many(3)))
def test_random_networks_with_random_endings(seed, tmp_path):
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    n_out = len(network.layers[-1].weight)
    x = rows_with_gaps(rng.normal(size=(ROWS, WIDTH)) * 10.0 ** rng.integers(-3, 4) + rng.normal(), ROWS)
    train = np.where(rng.random((50, WIDTH)) < 0.1, np.nan, rng.normal(size=(50, WIDTH)) * np.nanstd(x[:20]))
    inputs = Inputs(Preprocessor.of(np.nan_to_num(train) if seed % 2 else train))
    if len(inputs.preprocessor.gaps):
        network = CompactNetwork((Affine(rng.normal(size=(WIDTH, inputs.n_inputs)).astype(np.float32), None), *network.layers))
    outputs = Predictor(network).outputs(inputs.preprocessor.trace(NUMPY, x.astype(float)))
    options: dict[str, Any] = {"scaling": inputs}
    try:
        source = to_c(tmp_path / "raw.c", network, **options)
    except ValueError as error:  # columns with too few digits in float
        if 'give numbers="double"' not in str(error):
            raise
        options["numbers"] = "double"
        source = to_c(tmp_path / "raw.c", network, **options)
    returned, y = run_c(source, x)
    assert_close(y, outputs)
    ending = [OneOf(range(max(2, n_out))), AnyOf(), Values(np.full(n_out, 3.0), np.full(n_out, 0.5))][seed % 3]
    returned, y = run_c(to_c(tmp_path / "ended.c", network, ending=ending, **options), x)
    if isinstance(ending, OneOf):
        classes = Classes(np.arange(max(2, n_out)))
        assert_close(y, classes.probabilities(outputs))
        is_sure = ~classes.unsure(outputs, 1e-4 * np.abs(outputs).max())
        assert (returned == classes.decode(outputs))[is_sure].all()
    elif isinstance(ending, Values):
        assert_close(y, 0.5 * outputs + 3)
    else:
        assert (returned == (outputs > 0).sum(1)).mean() > 0.99


def fields() -> Schema:
    """Every kind of column."""
    return Schema(
        (
            Field("size"),
            Field("color */ ??/", CATEGORY, categories=("red", "green", "blue"), rare=("pink", "odd"), has_missing=True),
            Field("born", DATE),
            Field("is\\", CATEGORY, categories=("yes",), silent="no"),
            Field("weight"),
            Field("one", CATEGORY, categories=("a", "b"), has_missing=True),
        )
    )


def table_rows(rng: np.random.Generator, n: int) -> np.ndarray:
    columns = [
        rng.normal(size=n),
        rng.integers(-2, 5, n),
        18000 + rng.integers(0, 900, n),
        rng.integers(-2, 2, n),
        rng.normal(size=n),
    ]
    x = np.stack([*columns, rng.integers(-2, 2, n)], 1).astype(float)
    x[:, [0, 4]] = np.where(rng.random((n, 2)) < 0.2, np.nan, x[:, [0, 4]])
    return x


@pytest.mark.parametrize("picked", [None, (0, 2, 3, 5, 9, 10, 12), (4,)])
def test_a_table_with_every_kind_of_column(picked, tmp_path):
    schema, rng = fields(), np.random.default_rng(0)
    rows = table_rows(rng, 400)

    def features(x: np.ndarray) -> np.ndarray:
        return schema.trace(NUMPY, [x[:, [k]] for k in range(x.shape[1])])

    inputs = Inputs(Preprocessor.of(features(rows)), schema)
    n = inputs.n_inputs if picked is None else len(picked)
    weight = rng.normal(size=(3, n)).astype(np.float32)
    network = CompactNetwork((*([] if picked is None else [Pick(picked, inputs.n_inputs)]), Affine(weight, None)))
    source = to_c(tmp_path / "table.c", network, scaling=inputs, ending=OneOf(["a", "b", "c"]))
    probabilities = Classes(np.arange(3)).probabilities(Predictor(network).outputs(inputs(features(rows))))
    returned, y = run_c(source, rows)
    assert np.abs(y - probabilities).max() <= TOLERANCE and (returned == probabilities.argmax(1)).all()
    # A code that is none is unseen, one that is no number is missing.
    odd = np.array([5, 1.5, 1e30, -3, -1.5, np.inf, -np.inf, np.nan, -1.0, -2.0, 255.0, 2.0**31])
    meant = np.where(np.isfinite(odd) & (odd != -1), UNSEEN, MISSING)
    asked, equal = (np.repeat(rows[:1], len(odd), 0) for _ in range(2))
    asked[:, 1], equal[:, 1] = odd, meant
    asked[:, 3], equal[:, 3] = odd, meant
    probabilities = Classes(np.arange(3)).probabilities(Predictor(network).outputs(inputs(features(equal))))
    assert np.abs(run_c(source, asked)[1] - probabilities).max() <= TOLERANCE


def test_a_bag_computes_its_inputs_once(tmp_path):
    rng = np.random.default_rng(0)
    members = tuple((Pick(rows, 4), Affine(*_arrays(rng, (2, len(rows)), (2,)))) for rows in [(0, 1), (1, 3), (3,)])
    network, x = CompactNetwork((Bag(members),)), rng.normal(size=(ROWS, 4)) + 5
    scaling = np.arange(4.0), np.full(4, 2.0)
    source = to_c(tmp_path / "bag.c", network, scaling=scaling)
    assert_close(run_c(source, x)[1], Predictor(network).outputs(((x.astype(np.float32) - scaling[0]) / 2).astype(np.float32)))
    assert source.read_text().count("const float v = x[") == 1, "columns 0, 1 and 3, in one loop"
    missing = run_c(source, np.array([[np.nan, np.inf, np.nan, -np.inf]]))[1]
    assert_close(missing, Predictor(network).outputs(np.zeros((1, 4), np.float32)))  # read as the mean


def symbols(source) -> dict[str, str]:
    subprocess.run(["cc", "-O1", "-c", source, "-o", source.with_suffix(".o")], check=True)
    done = subprocess.run(["nm", source.with_suffix(".o")], check=True, capture_output=True, text=True)
    return {line.split()[-1]: line.split()[-2] for line in done.stdout.splitlines()}


def test_a_file_needs_nothing_and_keeps_nothing(tmp_path):
    for name in ("digits", "two-targets", "counts", "iris"):
        kinds = symbols(trained(name)[0].to_c(tmp_path / "model.c"))
        assert set(kinds.values()) <= {"T", "t", "r", "R", "N"}, "no library, no variable that changes"
        assert [symbol for symbol, kind in kinds.items() if kind in "TR"] == ["model_predict"]


def test_the_comment_lists_columns_and_the_files_are_the_same_each_time(tmp_path):
    estimator, x = trained("iris")
    first, second = (estimator.to_c(tmp_path / folder / "iris.c").read_text() for folder in _folders(tmp_path, "a", "b"))
    head = first[: first.index("*/")]
    assert first == second and all(f"x[{k}]     {name}" in head for k, name in enumerate(x.columns))
    assert "2 virginica" in head and f"{estimator.n_parameters_} parameters" in head


def _folders(root, *names):
    for name in names:
        (root / name).mkdir()
    return names


def test_names_of_any_kind_become_constants(tmp_path):
    names = ['a"b', "??/", "größe", "\\n", "c */ d", "line\nbreak", ""]
    network = CompactNetwork((Affine(np.eye(7, dtype=np.float32), None),))
    columns = [*reversed(names[:6]), "‮odd"]
    source = to_c(tmp_path / "2nd größe.c", network, ending=OneOf(names), feature_names=columns, class_names=True)
    returned, _ = run_c(source, np.eye(7))
    assert returned.tolist() == [*range(7)]
    reader, constant = tmp_path / "names.c", "model_2nd_gr__e_classes"
    main = f"int main(void)\n{{\n    fwrite({constant}, 1, sizeof {constant}, stdout);\n    return 0;\n}}\n"
    reader.write_text(f'#include <stdio.h>\n#include "{source.stem}.h"\n{main}')
    subprocess.run(["cc", "-std=c99", reader, source, "-o", tmp_path / "names"], check=True)
    said = subprocess.run([tmp_path / "names"], check=True, capture_output=True).stdout
    longest = max(len(name.encode()) for name in names) + 1
    assert [said[k : k + longest].rstrip(b"\0").decode() for k in range(0, len(said), longest)] == names


def test_what_float_cannot_hold_is_refused_by_name(tmp_path):
    network = CompactNetwork((Affine(np.array([[1.0, 1.0]], np.float32), None),))
    scaling = np.array([0.0, 1.7e9]), np.array([1.0, 300.0])
    with pytest.raises(ValueError, match=r"numbers of 'seconds' precisely; give numbers=\"double\""):
        to_c(tmp_path / "time.c", network, scaling=scaling, feature_names=["size", "seconds"])
    x = scaling[0] + scaling[1] * np.random.default_rng(0).normal(size=(ROWS, 2))
    source = to_c(tmp_path / "time.c", network, scaling=scaling, numbers="double")
    assert_close(run_c(source, x)[1], ((x - scaling[0]) / scaling[1]).sum(1, keepdims=True))
    with pytest.raises(ValueError, match=r"y varies too little around 1e\+09 for float; give numbers=\"double\""):
        to_c(tmp_path / "y.c", network, ending=Values([1e9], [1.0]))


def test_wrong_calls_are_refused(tmp_path):
    network = CompactNetwork((Affine(np.eye(2, dtype=np.float32), None),))
    for options, message in [
        ({"numbers": "half"}, "numbers='half'"),
        ({"class_names": True}, "class_names=True is for a classifier"),
    ]:
        with pytest.raises(ValueError, match=message):
            to_c(tmp_path / "x.c", network, **options)
    with pytest.raises(ValueError, match=r"must end in \.c"):
        to_c(tmp_path / "x.h", network)
    for name in ('a"b', "a\\b", "a\nb"):
        with pytest.raises(ValueError, match="must have no quote, backslash or line break in its name"):
            to_c(tmp_path / f"{name}.c", network)
    cube = CompactNetwork((Convolution(np.ones((1, 1, 2, 2, 2), np.float32), None),), (3, 3, 3))
    with pytest.raises(ValueError, match="over 3 dimensions"):
        to_c(tmp_path / "x.c", cube, ending=Raw())
    assert not list(tmp_path.iterdir())


def test_the_command_line_writes_c(tmp_path):
    golden = Path(__file__).parent / "golden" / "estimator.safetensors"
    done = meristem_here("export", golden, "--c", tmp_path / "golden.c", "--class-names")
    assert done.returncode == 0 and done.stdout.startswith(f"{tmp_path / 'golden.c'}: "), done.stderr
    model, rows = meristem.load(golden), np.random.default_rng(0).normal(size=(ROWS, meristem.load(golden).n_features_in_))
    returned, _ = run_c(tmp_path / "golden.c", rows)
    assert (model.classes_[returned] == model.predict(rows.astype(np.float32).astype(float))).all()
    assert "golden_classes" in (tmp_path / "golden.h").read_text()
    c, onnx = ["--c", tmp_path / "x.c"], ["--onnx", tmp_path / "x.onnx"]
    taken, nothing, small, other = (
        meristem_here("export", golden, *more)
        for more in (["--c", __file__], [], [*c, "--budget", "10 B"], [*onnx, "--class-names"])
    )
    assert "--class-names is for --c FILE; leave it out" in other.stderr
    assert "exists and is no C file of meristem's" in taken.stderr and "give --onnx FILE or --c FILE" in nothing.stderr
    assert "budget='10 B' is 10 bytes" in small.stderr and not (tmp_path / "x.c").exists()
