"""A budget in bytes: the C file of the model that is shipped takes no more flash, in the chosen bits."""

import re

import jax
import numpy as np
import pytest

import meristem
from c_programs import image, needs_arm_compiler
from commanding import meristem_here
from meristem.data.image_reader import png_bytes
from meristem.estimators.parameters import check_parameter
from meristem.export import OneOf, to_c
from soak import FACTOR
from test_c_images import image_network, pixels
from test_image_classifier import TINY as TINY_IMAGES, stripes

pytestmark = pytest.mark.filterwarnings("ignore")  # trainings are short
TINY = {"max_width": 8, "depth": 2, "max_epochs": 40, "random_state": 0}
SEARCH = {"cv": 2, "l2s": [1e-4], "input_dropouts": [0.0]}


def rows(n=160):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)


def bound(model, folder, X, bits) -> int:
    text = model.to_c(folder / "model.c", **({"bits": bits, "X": X} if bits else {})).read_text()
    return int(re.search(r"flash: at most ([\d,]+) byte", text)[1].replace(",", ""))


@pytest.mark.parametrize(
    ("kind", "budget", "bits", "more"),
    [
        (meristem.TunnelClassifier, "1.5 KB", 8, {"penalty": 0.0}),
        (meristem.TunnelClassifier, "1900B", None, {"price": "bytes"}),
        (meristem.TunnelClassifierCV, "1600 B", 8, SEARCH),
        (meristem.TunnelClassifierCV, "2 KiB", 16, SEARCH | {"refit": "bag"}),
    ],
)
def test_the_file_of_the_model_is_within_the_budget(kind, budget, bits, more, tmp_path):
    X, y = rows()
    model = kind(**TINY | more, budget=budget, bits=bits).fit(X, y)
    most = int(float(re.match(r"[\d.]+", budget)[0]) * (1024 if "K" in budget else 1))
    assert bound(model, tmp_path, X, bits) <= most
    model.to_c(tmp_path / "again.c", budget=budget, **({"bits": bits, "X": X} if bits else {}))
    model.save(tmp_path / "model.safetensors")
    assert meristem.load(tmp_path / "model.safetensors").budget == budget


@needs_arm_compiler
@pytest.mark.parametrize(
    ("kind", "budget", "bits", "options"),
    [
        (meristem.TunnelImageClassifier, "3 KB", 8, {}),
        *([(meristem.TunnelImageClassifier, "2250 B", None, {"price": "bytes"})] if FACTOR > 1 else []),
        (meristem.TunnelImageClassifierCV, "2.1 KB", 8, {"cv": 2}),  # hardly more than the smallest network
        (meristem.TunnelImageClassifierCV, "4 KB", 16, {"cv": 2, "refit": "bag"}),
    ],
)
def test_the_linked_file_of_an_image_classifier_is_within_the_budget(kind, budget, bits, options, tmp_path):
    x, y = stripes(shape=(7, 5, 3))
    model = kind(**TINY_IMAGES | {"channels": (6,), "budget": budget, "bits": bits} | options).fit(x, y)
    most = int(float(re.match(r"[\d.]+", budget)[0]) * (1024 if "K" in budget else 1))
    rows = {"bits": bits, "X": x} if bits else {}
    for kind_of_pixels in (None, "uint8"):
        source = model.to_c(tmp_path / "stripes.c", budget=budget, pixels=kind_of_pixels, **rows)
        assert image(source)["flash"] <= bound(model, tmp_path, x, bits) <= most
    model.save(tmp_path / "model")
    assert meristem.load(tmp_path / "model").budget == budget and meristem.load(tmp_path / "model").bits == bits


@pytest.mark.parametrize("bits", [None, 8])
def test_the_bound_does_not_depend_on_which_tables_happen_to_be_equal(bits, tmp_path):
    network, x = image_network(1, (8, 8)), pixels(1, (8, 8))
    alike = jax.tree.map(lambda a: np.ones_like(a) if isinstance(a, np.ndarray) else a, network)
    bounds = []
    for own in (network, alike):
        text = to_c(tmp_path / "a.c", own, bits=bits, X=x, ending=OneOf(range(3))).read_text()
        bounds.append(re.search(r"flash: at most ([\d,]+) byte", text)[1])
    assert bounds[0] == bounds[1]


def test_a_budget_of_flash_that_cannot_be_is_one_line():
    X, y = rows()
    for options, words in [
        ({"budget": "200 B"}, r"budget='200 B' is 200 bytes, and the smallest network's C file takes up to [\d,]+ in 8 bits"),
        ({"budget": "2 KB", "price": "units"}, "needs a price other than 'units'"),
    ]:
        for kind in (meristem.TunnelClassifier, meristem.BuddingClassifierCV):
            with pytest.raises(ValueError, match=words) as refused:
                kind(**options).fit(X, y)
            assert "\n" not in str(refused.value)
    for kind in (meristem.TunnelImageClassifier, meristem.TunnelImageClassifierCV):
        for options, words in [
            ({"budget": "1 KB"}, r"budget='1 KB' is 1,024 bytes, and the smallest"),
            ({"price": "units"}, "2 KB"),
        ]:
            with pytest.raises(ValueError, match=words):
                kind(**TINY_IMAGES | {"budget": "2 KB"} | options).fit(*stripes())
    for kind, data in ((meristem.TunnelClassifier, (X, y)), (meristem.TunnelImageClassifier, stripes())):
        with pytest.raises(ValueError, match="budget='2 KB' is for fit; for partial_fit give a number of parameters"):
            kind(budget="2 KB").partial_fit(*data, classes=np.unique(data[1]))
    for wrong in ("2 XB", "two", "900", "0 KB", "-1 KB", 2.5, True):
        with pytest.raises(ValueError, match=r"^budget=.* must be an integer of at least 1, bytes of flash.* or None"):
            check_parameter("budget", wrong)
    for wrong in (7, "8", 32, True):
        with pytest.raises(ValueError, match=r"^bits=.* must be 8, 16 or None"):
            check_parameter("bits", wrong)


def test_a_table_is_fitted_within_a_budget_of_flash_and_its_file_is_written(tmp_path):
    X, y = rows(120)
    lines = [f"{a:.4f},{'red' if b > 0 else 'blue'},{t}" for (a, b), t in zip(X[:, :2], y, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join(["size,color,state", *lines]) + "\n")
    fit = ["fit", tmp_path / "table.csv", "--target", "state", "--max-epochs", "10", "--bits", "8", "--out", tmp_path / "out"]
    done = meristem_here(*fit, "--budget", "1.5 KB")
    assert done.returncode == 0, done.stderr
    model = meristem.load(tmp_path / "out" / "model.safetensors")
    taken = int(re.search(r"flash: at most ([\d,]+) byte", (tmp_path / "out" / "model.c").read_text())[1].replace(",", ""))
    assert taken <= 1536 and model.facts["budget"] == "1.5 KB" and (tmp_path / "out" / "model.h").exists()
    assert model.facts["flash"] == {"bytes": taken, "bits": 8}
    small = meristem_here(*fit, "--budget", "100 B")
    assert small.returncode == 2 and small.stderr.count("\n") == 1
    assert small.stderr.startswith("meristem: --budget='100 B' is 100 bytes")


def test_pictures_are_fitted_within_a_budget_of_flash_and_their_file_is_written(tmp_path):
    for k, (pixels_of, label) in enumerate(zip(*stripes(), strict=True)):
        (tmp_path / "all" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / label / f"{k}.png").write_bytes(png_bytes(pixels_of))
    fit = ["fit", tmp_path / "all", "--max-epochs", "3", "--image-size", "7x5", "--out", tmp_path / "out"]
    done = meristem_here(*fit, "--budget", "3 KB", "--bits", "16")
    assert done.returncode == 0, done.stderr
    facts = meristem.load(tmp_path / "out" / "model.safetensors").facts
    taken = int(re.search(r"flash: at most ([\d,]+) byte", (tmp_path / "out" / "model.c").read_text())[1].replace(",", ""))
    assert taken <= facts["flash"]["bytes"] <= 3072 and facts["flash"]["bits"] == 16 and facts["budget"] == "3 KB"
    assert "predict(const uint8_t *x" in (tmp_path / "out" / "model.h").read_text()
    small = meristem_here(*fit, "--budget", "100 B")
    assert small.returncode == 2 and small.stderr.splitlines()[-1].startswith("meristem: --budget='100 B' is 100 bytes")
