"""Sparse tables are never made dense as a whole: memory follows what they hold, and what is said is the same."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import meristem
from commanding import meristem as in_a_process
from exporting import run
from meristem import sparse
from meristem.estimators.defaults import predictability
from meristem.inputs import Preprocessor
from meristem.inputs.preprocessor import n_numbers
from soak import FACTOR

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SMALL = {"width": 4, "depth": 2, "max_epochs": 4, "random_state": 0}

# 8 GB if it were dense; the process has 2 GB more than it has when everything is imported, most of it for programs.
CODE = """
import resource, warnings
import numpy as np
from scipy.sparse import csr_array
import meristem, meristem.estimators, jax
warnings.simplefilter("ignore")
rng, n, columns, entries = np.random.default_rng(0), 2000, 1_000_000, 20_000
jax.numpy.ones(3).block_until_ready()
X = csr_array((rng.random(entries), (rng.integers(0, n, entries), rng.integers(0, columns, entries))), shape=(n, columns))
y = np.asarray(X.sum(1)).ravel()
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 2 * 2**30,) * 2)
small = {"width": 2, "max_epochs": 1, "random_state": 0}
search = {"penalties": [1e-3], "l2s": [1e-4], "input_dropouts": [0.0], "cv": 2}
model = meristem.TunnelRegressor(**small, depth=2).fit(X, y)
model.score(X, y)
assert len(model.selected_features_) < entries
meristem.TunnelClassifierCV(**small, **search, depth=2).fit(X, y > y.mean()).score(X, y > y.mean())
print("done")
"""


def table(n=300, columns=40, seed=0):
    """Sparse rows with a column in which most is not 0, one of gaps, and some that never occur."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((n, columns)) < 0.1, rng.normal(size=(n, columns)), 0)
    x[:, 3] = rng.normal(size=n)
    x[rng.random(n) < 0.2, 7] = np.nan
    x[0, 3] = 1e9
    x[:, 20:] = 0
    return x, np.nan_to_num(x[:, 0] + x[:, 7]) + np.tanh(x[:, 3])


def test_a_table_that_would_not_fit_goes_through():
    done = in_a_process(code=CODE if FACTOR > 1 else CODE.replace("20_000", "5_000"))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.rstrip().endswith("done")


@pytest.mark.parametrize("standardize", [True, False])
def test_what_columns_make_of_sparse_rows_is_what_they_make_of_dense_ones(standardize):
    x, _ = table()
    weight = np.random.default_rng(1).integers(0, 3, len(x)).astype(float)
    dense, other = (Preprocessor.of(form(x), weight, standardize=standardize) for form in (np.asarray, csr_array))
    for name in ("mean", "variance"):
        np.testing.assert_allclose(getattr(other.scaling, name), getattr(dense.scaling, name), rtol=1e-12)
    np.testing.assert_array_equal(other.gaps, dense.gaps)
    np.testing.assert_allclose(other(csr_array(x)), dense(x), rtol=1e-6)
    more = dense.with_more(x[:50]), other.with_more(csr_array(x[:50]))
    np.testing.assert_allclose(more[1].scaling.variance, more[0].scaling.variance, rtol=1e-12)
    assert (other.typical(other.scattered(csr_array(x))) == dense.typical(dense(x))).all()
    assert n_numbers(csr_array(x), weight) == n_numbers(x, weight)
    assert predictability(csr_array(x), np.eye(3)[np.arange(300) % 3]) == predictability(x, np.eye(3)[np.arange(300) % 3])


def test_entries_that_stand_twice_are_added():
    x = csr_array((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_array_equal(Preprocessor.of(x)(x), Preprocessor.of(x.toarray())(x.toarray()))


@pytest.mark.parametrize("name", ["TunnelRegressor", "TunnelRegressorCV"] + ["BuddingClassifier"] * (FACTOR > 1))
def test_a_table_too_large_to_be_dense_is_learned_from_where_it_is(monkeypatch, tmp_path, name):
    monkeypatch.setattr(sparse, "DENSE", 4000)
    monkeypatch.setattr(sparse, "AT_ONCE", 4 * 32 * 64)
    x, y = table()
    y = y > 0 if "Classifier" in name else y
    search = {"penalties": [1e-3], "l2s": [1e-4], "input_dropouts": [0.0], "cv": 2} if name.endswith("CV") else {}
    options = {key: value for key, value in SMALL.items() if "Budding" not in name or key != "depth"}
    model = getattr(meristem, name)(**options | {"max_epochs": 20, "learning_rate": 3e-2}, **search).fit(csr_array(x), y)
    assert model.score(csr_array(x), y) > 0.5
    said = model.predict(csr_array(x))
    np.testing.assert_allclose(model.predict(x), said, rtol=1e-6)
    never = x.copy()
    never[:, 25] = 9.0
    np.testing.assert_array_equal(model.predict(csr_array(never)), said)  # nothing was learned of it
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(meristem.load(tmp_path / "model.safetensors").predict(csr_array(x)), said)
    model.to_onnx(tmp_path / "model.onnx")
    exported = next(iter(run(tmp_path / "model.onnx", x).values()))
    np.testing.assert_allclose(np.ravel(exported).astype(float), said.astype(float), rtol=1e-3, atol=1e-3)
    if not search:
        used = model.selected_features_
        assert used.max() < 20 and len(used) <= 20
        assert model.set_params(warm_start=True, max_epochs=1).fit(csr_array(x), y).n_features_in_ == 40


def test_in_a_stream_every_column_may_still_come(monkeypatch):
    monkeypatch.setattr(sparse, "DENSE", 4000)
    x, y = table()
    x[200:, 30] = y[200:]
    model = meristem.TunnelRegressor(**SMALL)
    for part in (slice(0, 150), slice(150, 300)):
        model.partial_fit(csr_array(x[part]), y[part])
    assert model._inputs_.n_features == model._inputs_.n_inputs - 1 == 40


def test_what_was_kept_of_a_sparse_table_goes_on(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sparse, "DENSE", 4000)
    x, y = table()
    options = SMALL | {"max_epochs": 6, "early_stopping": False}

    def give_up(info):
        if info["epoch"] == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError):
        meristem.TunnelRegressor(**options, checkpoint_dir=tmp_path, callbacks=give_up).fit(csr_array(x), y)
    again = meristem.TunnelRegressor(**options, checkpoint_dir=tmp_path, resume=True)
    with pytest.raises(ValueError, match="data"):
        again.fit(csr_array(2 * x), y)
    said = again.fit(csr_array(x), y).predict(x)
    assert "epoch 2" in capsys.readouterr().err
    np.testing.assert_array_equal(said, meristem.TunnelRegressor(**options).fit(csr_array(x), y).predict(x))
