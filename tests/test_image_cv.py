"""A price for images by folds or held-out images: what is chosen, one network or a bag, files, exports, groups, scorers."""

import pickle
from contextlib import suppress
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils.estimator_checks import estimator_checks_generator

import meristem
from meristem import TunnelImageClassifierCV
from soak import FACTOR
from test_image_classifier import QUICK, TINY, stripes

SEARCH = TINY | {"penalties": [1e-4, 3.0], "cv": 2, "epochs": 8}


@pytest.fixture(scope="module")
def fitted() -> TunnelImageClassifierCV:
    return TunnelImageClassifierCV(**SEARCH | {"epochs": 25, "refit": "bag"}).fit(*stripes())


def test_it_prefers_the_price_that_lets_it_learn(fitted):
    x, y = stripes()
    assert fitted.penalty_ == fitted.penalty_min_ == 1e-4 and fitted.score(x, y) > 0.8
    assert fitted.path_.table["fold"].tolist() == [0, 1, 0, 1] and fitted.path_.table["finished"].all()
    assert fitted.cv_results_["rank_test_score"].tolist() == [1, 2]
    sizes = fitted.cv_results_["mean_n_parameters"]
    assert sizes[1] < sizes[0] and fitted.image_shape_ == (7, 5) and fitted.takes_bytes_
    assert len(fitted.estimators_) == 2


def test_a_bag_is_the_mean_of_its_networks(fitted):
    x, _ = stripes()
    logits = np.mean([member.decision_function(x) for member in fitted.estimators_], 0)
    np.testing.assert_allclose(fitted.decision_function(x), logits, atol=1e-4)


def test_a_file_and_a_pickle_predict_the_same(fitted, tmp_path):
    x, _ = stripes()
    fitted.save(tmp_path / "model")
    for other in (meristem.load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(other.predict_proba(x), fitted.predict_proba(x))
        assert other.get_params() == fitted.get_params() and other.penalty_1se_ == fitted.penalty_1se_


def test_onnx_takes_raw_pixels(fitted, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    x, _ = stripes(9)
    fitted.to_onnx(tmp_path / "model.onnx")
    label, probabilities = runtime.InferenceSession(tmp_path / "model.onnx").run(None, {"X": x.astype(np.float32)})
    np.testing.assert_allclose(probabilities, fitted.predict_proba(x), atol=1e-5)
    assert label.tolist() == fitted.predict(x).tolist()


def test_torch_takes_raw_pixels(fitted):
    torch = pytest.importorskip("torch")
    x, _ = stripes(9)
    with torch.no_grad():
        predicted = fitted.to_torch()(torch.from_numpy(x.astype(np.float32)))
    np.testing.assert_allclose(np.asarray(predicted), fitted.predict_proba(x), atol=1e-5)


def test_held_out_images_a_scorer_and_one_network_of_all_images():
    x, y = stripes()
    flat, shape = x.reshape(len(x), -1), {"shape": (7, 5)}
    by_share = TunnelImageClassifierCV(**SEARCH | shape | {"cv": 0.3, "scoring": "accuracy"}).fit(flat, y)
    splitter = StratifiedShuffleSplit(1, test_size=0.3, random_state=by_share._planned(flat, y).table.seed)
    by_splitter = TunnelImageClassifierCV(**SEARCH | shape | {"cv": splitter, "scoring": "accuracy"}).fit(flat, y)
    np.testing.assert_array_equal(by_share.predict_proba(flat), by_splitter.predict_proba(flat))
    assert len(by_share.path_.table["loss"]) == 2 and len(by_share.estimators_) == 1
    held_out = by_share.path_.table["score"]
    assert ((held_out >= 0) & (held_out <= 1)).all() and np.allclose(held_out * 18, np.round(held_out * 18))


def test_groups_are_never_on_both_sides():
    x, y = stripes()
    groups = np.arange(60) // 6
    for cv in (3, 0.3):
        folds = TunnelImageClassifierCV(**SEARCH | {"cv": cv})._planned(x, y, groups=groups).folds
        assert len(folds) == (3 if cv == 3 else 1)
        assert not any(set(groups[train]) & set(groups[test]) for train, test in folds)


def test_a_budget_is_of_the_whole_model_and_a_callback_ends_the_search():
    x, y = stripes()
    model = TunnelImageClassifierCV(**SEARCH | {"budget": 120, "refit": "bag"}).fit(x, y)
    assert model.n_parameters_ <= 120 + 20 and len(model.estimators_) == 2 and len(model.path_.points) == 1
    epochs: list[int] = []
    ended = TunnelImageClassifierCV(**SEARCH, callbacks=lambda info: epochs.append(int(info["epoch"])) or True).fit(x, y)
    assert max(epochs) == 1 and ended.predict(x).shape == (60,)
    with pytest.raises(ValueError, match="budget"):
        TunnelImageClassifierCV(**SEARCH | {"budget": 5}).fit(x, y)


def test_an_interrupted_search_resumes_to_the_same_bits(tmp_path, capfd):
    x, y = stripes()
    whole = TunnelImageClassifierCV(**SEARCH).fit(x, y)

    def fail(info: dict) -> None:
        if info["epoch"] == 5:
            raise OSError("pulled the plug")

    own = SEARCH | {"checkpoint_dir": tmp_path}
    with pytest.raises(OSError, match="plug"):
        TunnelImageClassifierCV(**own, callbacks=fail).fit(x, y)
    resumed = TunnelImageClassifierCV(**own, resume=True).fit(x, y)
    assert "resumes" in capfd.readouterr().err
    np.testing.assert_array_equal(resumed.predict_proba(x), whole.predict_proba(x))


@pytest.mark.parametrize(
    ("options", "says"),
    [({"cv": 1.5}, "cv=1.5"), ({"cv": 61}, "cv=61"), ({"penalties": []}, "penalties="), ({"refit": "two"}, "refit=")],
)
def test_what_does_not_fit_is_named(options, says):
    with pytest.raises(ValueError, match=says) as caught:
        TunnelImageClassifierCV(**SEARCH | options).fit(*stripes())
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")
def test_scikit_learns_checks():
    model = TunnelImageClassifierCV(channels=(8,), epochs=40 if FACTOR > 1 else 3, learning_rate=0.02, penalties=[1e-5], cv=2)
    why = "minibatches: a row of weight 2 is not the same as the row twice"
    failing = {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    for estimator, check in estimator_checks_generator(model):
        name = check.func.__name__
        if name not in failing and (FACTOR > 1 or name in QUICK - {"check_classifiers_one_label", "check_fit2d_1feature"}):
            with suppress(SkipTest):  # for want of a package
                check(estimator)
