"""C files of networks on images: they say what `predict` says, for any size, number of channels and type of pixels."""

import numpy as np
import pytest

from c_programs import needs_compiler, run_c
from commanding import meristem_here
from exporting import TOLERANCE, assert_close
from meristem import TunnelImageClassifier
from meristem.compact import CompactNetwork
from meristem.compact.inference import Predictor
from meristem.export import to_c
from meristem.layers.image_layers import ConvolutionBlock, GatedConvolution, InvertedBlock, Pixels, Pool
from meristem.layers.layer import Affine, Convolution, Layer, Mean
from soak import many
from test_c import symbols
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
    for image in x:
        row, column = (rng.integers(0, max(1, side - 2)) for side in shape[:2])
        image[row : row + 3, column : column + 3] += 0.5
    return x.astype(np.float32)


@pytest.mark.parametrize("seed", range(many(4)))
def test_images_of_any_shape_say_in_c_what_they_say_in_numpy(seed, tmp_path):
    shape = SHAPES[seed % 4]
    network, x = image_network(seed, shape, ["relu", "tanh", "elu", "relu"][seed // 2 % 4]), pixels(seed, shape)
    source = to_c(tmp_path / "image.c", network, numbers=["float", "double"][seed % 2])
    assert_close(run_c(source, x.reshape(len(x), -1))[1], Predictor(network).outputs(x))


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


def test_a_pixel_that_is_no_number_is_the_mean_of_its_channel(tmp_path):
    network, x = image_network(1, (7, 6, 3)), pixels(0, (7, 6, 3))
    is_odd = np.random.default_rng(0).random(x.shape) < 0.1
    odd = np.where(is_odd, np.random.default_rng(1).choice([np.nan, np.inf, -np.inf], x.shape), x)
    source = to_c(tmp_path / "gaps.c", network)
    means = np.where(is_odd, np.array(network.layers[0].mean, np.float32), x)
    assert_close(run_c(source, odd.reshape(len(x), -1))[1], Predictor(network).outputs(means))
    run_c(source, np.full((1, x[0].size), 3e38))  # the sanitizers see nothing


def test_pixels_are_for_images(tmp_path):
    network = CompactNetwork((Affine(np.eye(2, dtype=np.float32), None),))
    with pytest.raises(ValueError, match="pixels='uint8' is for networks on images"):
        to_c(tmp_path / "x.c", network, pixels="uint8")
    with pytest.raises(ValueError, match="pixels='int9'"):
        to_c(tmp_path / "x.c", network, pixels="int9")


def test_the_command_line_writes_c_of_images(fitted, tmp_path):
    model, x = fitted
    model.save(tmp_path / "model")
    done = meristem_here("export", tmp_path / "model", "--c", tmp_path / "image.c")
    assert done.returncode == 0, done.stderr
    assert (model.classes_[run_c(tmp_path / "image.c", x.reshape(len(x), -1))[0]] == model.predict(x)).all()
