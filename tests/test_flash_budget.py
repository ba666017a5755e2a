"""A budget in bytes: the C file of the model that is shipped takes no more flash, in the chosen bits."""

import re

import numpy as np
import pytest

import meristem
from commanding import meristem_here
from meristem.estimators.parameters import check_parameter, check_parameters

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
    with pytest.raises(ValueError, match="budget='2 KB': bytes are for models of tables; give a number of parameters"):
        check_parameters(meristem.TunnelImageClassifier(budget="2 KB"))
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
    fit = ["fit", tmp_path / "table.csv", "--target", "state", "--max-epochs", "30", "--bits", "8", "--out", tmp_path / "out"]
    done = meristem_here(*fit, "--budget", "1.5 KB")
    assert done.returncode == 0, done.stderr
    model = meristem.load(tmp_path / "out" / "model.safetensors")
    taken = int(re.search(r"flash: at most ([\d,]+) byte", (tmp_path / "out" / "model.c").read_text())[1].replace(",", ""))
    assert taken <= 1536 and model.facts["budget"] == "1.5 KB" and (tmp_path / "out" / "model.h").exists()
    assert model.facts["flash"] == {"bytes": taken, "bits": 8}
    small = meristem_here(*fit, "--budget", "100 B")
    assert small.returncode == 2 and small.stderr.count("\n") == 1
    assert small.stderr.startswith("meristem: --budget='100 B' is 100 bytes")
