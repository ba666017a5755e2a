"""C files of networks on images: they say what `predict` says, for any size, number of channels and type of pixels."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c_devices import needs_atmega, needs_cortex_m4, run_atmega, run_cortex_m4
from c_programs import image, needs_compiler, run_c
from commanding import meristem_here
from exporting import TOLERANCE, assert_close
from meristem import TunnelImageClassifier
from meristem.compact import CompactNetwork
from meristem.compact.inference import Predictor
from meristem.export import OneOf, to_c
from meristem.export.c import recorded
from meristem.layers.image_layers import ConvolutionBlock, GatedConvolution, InvertedBlock, Pixels, Pool, raw_pixels
from meristem.layers.layer import Affine, Bag, Convolution, Layer, Mean
from meristem.layers.ops.c_integer_images import ImageIntegerProgram
from soak import many
from test_c import symbols
from test_c_devices import bound
from test_image_classifier import TINY, stripes

pytestmark = needs_compiler
SHAPES = [(7, 6, 3), (8, 8), (1, 9, 1), (5, 4, 2)]


def arrays(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Of the sizes that keep values as they are."""
    return [(rng.normal(size=shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32) for shape in shapes]


def block(rng: np.random.Generator, kind: type[Layer], width: int, activation: str) -> Layer:
    units, kernel = 5, (3, 3)
    if kind is ConvolutionBlock:
        inner, bias, outer = arrays(rng, (units, width, *kernel), (units,), (width, units, *kernel))
        return ConvolutionBlock(inner, bias, outer, activation)
    if kind is InvertedBlock:
        drawn = arrays(rng, (units, width, 1, 1), (units,), (units, *kernel), (units,), (width, units, 1, 1))
        return InvertedBlock(*drawn, activation)
    rows = tuple(sorted(rng.choice(width, size=rng.integers(1, width + 1), replace=False).tolist()))
    weight, bias = arrays(rng, (len(rows), width, 2, 3), (len(rows),))
    return GatedConvolution(weight, bias, rng.uniform(0.1, 1, len(rows)).astype(np.float32), rows, activation)


def image_network(seed: int, shape: tuple[int, ...], activation: str = "relu") -> CompactNetwork:
    """Two stages with a block of each kind, as the bodies have them."""
    rng, channels = np.random.default_rng(seed), (*shape, 1)[2]
    kinds = [ConvolutionBlock, InvertedBlock, GatedConvolution]
    mean, scale = rng.uniform(0.2, 0.6, channels).tolist(), rng.uniform(0.2, 0.5, channels).tolist()
    window = tuple(min(2, n) for n in shape[:2])
    stem, downsample, weight, bias = arrays(rng, (4, channels, 3, 3), (6, 4, 1, 1), (3, 6), (3,))
    blocks = [[block(rng, kind, width, activation) for kind in rng.permutation(kinds)[:2]] for width in (4, 6)]
    between = [Pool(4, window), Convolution(downsample, None)]
    layers = [Pixels(tuple(mean), tuple(scale), shape), Convolution(stem, None), *blocks[0], *between, *blocks[1]]
    return CompactNetwork((*layers, Mean(6, (1, 1)), Affine(weight, bias)), shape[1:])


def pixels(seed: int, shape: tuple[int, ...], n: int = 40) -> np.ndarray:
    """Smooth images from 0 to 1 with a bright patch each."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 0.4, (n, *shape))
    for sample in x:
        row, column = (rng.integers(0, max(1, side - 2)) for side in shape[:2])
        sample[row : row + 3, column : column + 3] += 0.5
    return x.astype(np.float32)


@pytest.mark.parametrize("seed", range(many(4)))
def test_images_of_any_shape_say_in_c_what_they_say_in_numpy(seed, tmp_path):
    shape = SHAPES[seed % 4]
    network, x = image_network(seed, shape, ["relu", "tanh", "elu", "relu"][seed // 2 % 4]), pixels(seed, shape)
    source = to_c(tmp_path / "image.c", network, numbers=["float", "double"][seed % 2])
    assert_close(run_c(source, x.reshape(len(x), -1))[1], Predictor(network).outputs(x))


def in_integers(
    seed: int, folder: Path, bits: int, numbers: str, kind: str | None
) -> tuple[Path, ImageIntegerProgram, np.ndarray]:
    """A C file, its program with the same rows, and the rows as the file reads them."""
    shape = SHAPES[seed % 4]
    network, x = image_network(seed, shape, ["relu", "tanh", "elu", "relu"][seed % 4]), pixels(seed, shape)
    if kind is not None:
        network, x = raw_pixels(network, 255), np.rint(255 * x)
    source = to_c(folder / f"image_{seed}.c", network, bits=bits, numbers=numbers, pixels=kind, X=x)
    rows = x.reshape(len(x), -1)[np.random.default_rng(0).permutation(len(x))].astype(float)  # as they are shuffled there
    options = {"is_float": numbers == "float", "is_bytes": kind is not None}
    program, _, form = recorded(network, None, shape[0], partial(ImageIntegerProgram, bits, rows, len(rows), **options))
    program.outputs(program.form(form))
    if numbers == "int" and kind is None:
        factors = 2.0 ** np.array([scaling.fraction for scaling in program.scalings.values()])
        rows = np.rint(rows.reshape(-1, len(factors)) * factors).reshape(len(rows), -1)
    return source, program, rows


KINDS = [
    (8, "float", None),
    (16, "int", "uint8"),
    (8, "int", "uint8"),
    (16, "float", None),
    (8, "int", None),
    (16, "float", "uint8"),
]


@pytest.mark.parametrize("seed", range(many(6)))
def test_c_computes_in_integers_what_the_program_said(seed, tmp_path):
    bits, numbers, kind = KINDS[seed % 6]
    source, program, rows = in_integers(seed, tmp_path, bits, numbers, kind)
    _, y = run_c(source, rows)
    if numbers == "int":
        assert (y == np.rint(program.simulated / program.unit)).all()
        code = source.read_text().split("*/", 1)[1]
        assert "float" not in code and "double" not in code
    else:
        np.testing.assert_allclose(y, program.simulated, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("bits", "most"), [(8, 0.06), (16, 0.002)])
def test_integers_are_close_to_the_network_in_float(bits, most):
    for seed in range(4):
        network, x = image_network(seed, SHAPES[seed], ["relu", "tanh", "elu", "relu"][seed]), pixels(seed, SHAPES[seed], 100)
        rows = x.reshape(len(x), -1).astype(float)
        program, _, form = recorded(network, None, SHAPES[seed][0], partial(ImageIntegerProgram, bits, rows, 80))
        program.outputs(program.form(form))
        exact = Predictor(network).outputs(x)
        np.testing.assert_allclose(program.real(program.form(form)), exact, atol=1e-4 * exact.std())
        assert np.sqrt(((program.simulated - exact) ** 2).mean()) <= most * exact.std()


def test_a_bag_reads_the_pixels_once(tmp_path):
    shape = SHAPES[3]
    x, (pixel, *first), (_, *second) = (
        pixels(0, shape, 100),
        *(image_network(seed, shape).layers for seed in (0, 1)),
    )
    network = CompactNetwork((pixel, Bag((tuple(first), tuple(second)))), shape[1:])
    exact = Predictor(network).outputs(x)
    for options, most in (({}, 1e-5), ({"bits": 8, "X": x}, 0.05)):
        source = to_c(tmp_path / "bag.c", network, **options)
        assert np.abs(run_c(source, x.reshape(len(x), -1))[1] - exact).max() <= most * np.abs(exact).max()
        assert source.read_text().count("const float v = x[") == 1


def test_sequences_and_a_convolution_of_what_it_is_added_to(tmp_path):
    """Positions in one dimension without pixels; and h + W ∗ h, whose sum must not write over what the kernel reads."""

    class Doubled(Layer):
        weight: Any

        def __call__(self, ops: Any, h: Any) -> Any:
            h = ops.activate("relu", ops.conv(self.weight, None, h))
            return ops.add(ops.conv(self.weight, None, h), h)

    rng = np.random.default_rng(0)
    inner, weight = arrays(rng, (4, 4, 3), (2, 4))
    network, x = CompactNetwork((Doubled(inner), Mean(4, (7,)), Affine(weight, None)), (7,)), rng.normal(size=(60, 4, 7))
    for options, most in (({}, 1e-5), ({"bits": 8, "X": x}, 0.05), ({"bits": 16, "X": x}, 0.001)):
        y = run_c(to_c(tmp_path / "sequence.c", network, **options), x.reshape(len(x), -1))[1]
        exact = Predictor(network).outputs(x)
        assert np.sqrt(((y - exact) ** 2).mean()) <= most * exact.std()


@pytest.fixture(scope="module")
def fitted() -> tuple[TunnelImageClassifier, np.ndarray]:
    """Of bytes in three channels, and odd sizes."""
    x, y = stripes(shape=(7, 5, 3))
    return TunnelImageClassifier(**TINY | {"epochs": 12}).fit(x, y), x


@pytest.mark.parametrize("kind", ["float", "uint8"])
def test_c_says_what_the_classifier_says(fitted, kind, tmp_path):
    model, x = fitted
    source = model.to_c(tmp_path / "stripes.c", class_names=True, **{"pixels": "uint8"} if kind == "uint8" else {})
    returned, y = run_c(source, x.reshape(len(x), -1))
    assert (model.classes_[returned] == model.predict(x)).all()
    assert np.abs(y - model.predict_proba(x)).max() <= TOLERANCE
    assert set(symbols(source).values()) <= {"T", "t", "r", "R", "N"}, "no library, no variable that changes"
    assert f"int stripes_predict(const {kind}" in source.with_suffix(".h").read_text().replace("uint8_t", "uint8")


def test_bytes_of_a_network_that_takes_numbers_from_0_to_1(tmp_path):
    network, x = image_network(1, (8, 8)), np.rint(255 * pixels(1, (8, 8)))
    exact = Predictor(network).outputs(x / 255)
    source = to_c(tmp_path / "bytes.c", network, pixels="uint8/255")
    assert_close(run_c(source, x.reshape(len(x), -1))[1], exact)
    source = to_c(tmp_path / "bytes.c", network, pixels="uint8/255", bits=8, X=x)
    assert np.abs(run_c(source, x.reshape(len(x), -1))[1] - exact).max() < 0.1 * np.abs(exact).max()


def test_a_pixel_that_is_no_number_is_the_mean_of_its_channel(tmp_path):
    network, x = image_network(1, (7, 6, 3)), pixels(0, (7, 6, 3))
    is_odd = np.random.default_rng(0).random(x.shape) < 0.1
    odd = np.where(is_odd, np.random.default_rng(1).choice([np.nan, np.inf, -np.inf], x.shape), x)
    source = to_c(tmp_path / "gaps.c", network)
    means = np.where(is_odd, np.array(network.layers[0].mean, np.float32), x)
    assert_close(run_c(source, odd.reshape(len(x), -1))[1], Predictor(network).outputs(means))
    run_c(source, np.full((1, x[0].size), 3e38))  # the sanitizers see nothing


@pytest.mark.parametrize("bits", [8, 16])
def test_a_classifier_of_bytes_in_integers(fitted, bits, tmp_path):
    model, x = fitted
    for numbers, kind in (("float", "uint8"), ("int", "uint8"), ("float", None)):
        source = model.to_c(tmp_path / "small.c", bits=bits, X=x, numbers=numbers, pixels=kind)
        returned, _ = run_c(source, x.reshape(len(x), -1))
        assert (model.classes_[returned] == model.predict(x)).mean() >= 0.97
        assert "have the class of the network in float" in source.read_text()
        assert set(symbols(source).values()) <= {"T", "t", "r", "R", "N"}
    odd = np.random.default_rng(0).choice([np.nan, np.inf, -np.inf, 1e30, -1e30], (3, x[0].size))
    run_c(source, odd)  # the sanitizers see nothing


@needs_cortex_m4
@pytest.mark.parametrize("seed", range(many(6)))
def test_a_device_says_of_images_what_this_machine_says(seed, tmp_path):
    bits, numbers, kind = KINDS[seed % 6]
    source, _, rows = in_integers(seed, tmp_path, bits, numbers, kind)
    rows = rows[:3].astype(np.float32)
    there, (returned, y) = run_cortex_m4(source, rows), run_c(source, rows)
    assert (there.returned == returned).all() and (there.y == y).all()
    assert 0 < there.stack <= bound(source, "memory") and image(source)["flash"] <= bound(source)
    network = image_network(seed, SHAPES[seed % 4])
    source = to_c(tmp_path / "float.c", network, numbers="float", ending=OneOf(range(3)))
    there, (returned, y) = run_cortex_m4(source, rows), run_c(source, rows)
    assert_close(there.y, y)
    assert 0 < there.stack <= bound(source, "memory") and image(source)["flash"] <= bound(source)


@needs_atmega
def test_a_device_with_eight_bits_says_the_same(tmp_path):
    for seed, (bits, numbers, kind) in ((2, KINDS[0]), (3, KINDS[1])):
        source, _, rows = in_integers(seed, tmp_path, bits, numbers, kind)
        there, (returned, y) = run_atmega(source, rows[:2]), run_c(source, rows[:2])
        assert (there.returned == returned).all() and (there.y == y).all()


def test_pixels_are_for_images(tmp_path):
    network = CompactNetwork((Affine(np.eye(2, dtype=np.float32), None),))
    with pytest.raises(ValueError, match="pixels='uint8' is for networks on images"):
        to_c(tmp_path / "x.c", network, pixels="uint8")
    with pytest.raises(ValueError, match="pixels='int9'"):
        to_c(tmp_path / "x.c", network, pixels="int9")
    with pytest.raises(ValueError, match="X holds numbers that are no bytes"):
        to_c(tmp_path / "x.c", image_network(0, (8, 8)), bits=8, pixels="uint8", X=pixels(0, (8, 8)))
    stem = CompactNetwork(image_network(0, (8, 8)).layers[:2], (8,))
    with pytest.raises(ValueError, match="outputs are on positions has no C form in integers"):
        to_c(tmp_path / "x.c", stem, bits=8, X=pixels(0, (8, 8)))


def test_the_command_line_writes_c_of_images(fitted, tmp_path):
    model, x = fitted
    model.save(tmp_path / "model")
    np.save(tmp_path / "x.npy", x)
    as_bytes = ["--pixels", "uint8", "--bits", 8, "--rows", tmp_path / "x.npy", "--budget", "4 KB"]
    for options in ([], as_bytes):
        done = meristem_here("export", tmp_path / "model", "--c", tmp_path / "image.c", *options)
        assert done.returncode == 0, done.stderr
        returned, _ = run_c(tmp_path / "image.c", x.reshape(len(x), -1))
        assert (model.classes_[returned] == model.predict(x)).mean() >= 0.97
    done = meristem_here("export", tmp_path / "model", "--c", tmp_path / "x.c", "--bits", 8, "--rows", tmp_path / "model")
    assert done.returncode != 0 and "is no .npy file of numbers" in done.stderr and not (tmp_path / "x.c").exists()
    done = meristem_here("export", tmp_path / "model", "--onnx", tmp_path / "x.onnx", *as_bytes[2:6])
    assert done.returncode != 0 and "--bits=8 of a model on images is for --c" in done.stderr
