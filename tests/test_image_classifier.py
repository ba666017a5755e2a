"""Images with scikit-learn's fit and predict: every shape of X, files, exports, streams, and what does not fit."""

import pickle
import warnings
from contextlib import suppress
from unittest import SkipTest

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

import meristem
from meristem import TunnelImageClassifier
from meristem.estimators.image_classifier import stages_of
from meristem.estimators.image_input import as_images, pixel_scaling
from soak import FACTOR

TINY = {"channels": (3,), "blocks": 1, "epochs": 6, "batch_size": 16, "learning_rate": 0.03, "random_state": 0}


def stripes(n: int = 60, shape: tuple[int, ...] = (7, 5)) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of noise with a bright band, in one direction or the other, or none."""
    random = np.random.default_rng(0)
    x, y = random.integers(0, 90, (n, *shape)).astype(np.uint8), np.array(["across", "down", "none"])[np.arange(n) % 3]
    for k, (image, label) in enumerate(zip(x, y, strict=True)):
        if label == "across":
            image[1 + k % 5] += 150
        elif label == "down":
            image[:, 1 + k % 3] += 150
    return x, y


@pytest.fixture(scope="module")
def fitted() -> TunnelImageClassifier:
    return TunnelImageClassifier(**TINY | {"epochs": 25}).fit(*stripes())


def test_it_learns_and_its_size_is_its_own(fitted):
    x, y = stripes()
    assert fitted.score(x, y) > 0.9
    assert fitted.classes_.tolist() == ["across", "down", "none"] and fitted.image_shape_ == (7, 5) and fitted.takes_bytes_
    probabilities = fitted.predict_proba(x)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-6)
    assert (fitted.classes_[probabilities.argmax(1)] == fitted.predict(x)).all()
    assert fitted.n_iter_ == 25 and fitted.history_["error"].shape == (25,)
    np.testing.assert_array_equal(fitted.predict_proba(x[:7]), probabilities[:7])


def test_a_file_gives_the_same_predictions_and_continues(fitted, tmp_path):
    x, y = stripes()
    fitted.save(tmp_path / "model")
    loaded = meristem.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(x), fitted.predict_proba(x))
    assert loaded.get_params() == fitted.get_params() and loaded.n_parameters_ == fitted.n_parameters_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(x[:3]), fitted.predict_proba(x[:3]))
    more, again = (model.partial_fit(x, y) for model in (loaded, pickle.loads(pickle.dumps(fitted))))
    assert more.n_iter_ == 26
    np.testing.assert_array_equal(more.predict_proba(x), again.predict_proba(x))


def test_onnx_and_torch_take_raw_pixels(fitted, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    x, _ = stripes(9)
    fitted.to_onnx(tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    label, probabilities = session.run(None, {"X": x.astype(np.float32)})
    np.testing.assert_allclose(probabilities, fitted.predict_proba(x), atol=1e-5)
    assert label.tolist() == fitted.predict(x).tolist()


def test_shapes_types_and_flat_rows_say_the_same(fitted):
    x, _ = stripes(12)
    for other in (x.reshape(12, -1), x.reshape(12, -1).tolist(), x.astype(float)):
        model = pickle.loads(pickle.dumps(fitted))
        model.shape = (7, 5) if np.ndim(other) == 2 else None
        if np.ndim(other) == 2:
            model.n_features_in_ = 35
        np.testing.assert_allclose(model.predict_proba(other), fitted.predict_proba(x), rtol=1e-5)


def test_a_stream_needs_its_classes_and_learns_epoch_by_epoch():
    x, y = stripes(shape=(6, 6, 3))
    model = TunnelImageClassifier(**TINY)
    with pytest.raises(ValueError, match="needs all classes"):
        model.partial_fit(x, y)
    for _ in range(3):
        model.partial_fit(x, y, classes=["across", "down", "none", "other"])
    assert model.n_iter_ == 3 and model.predict_proba(x).shape == (60, 4)
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(x[:2], ["up", "up"])
    assert model.n_iter_ == 3


def test_a_budget_holds():
    model = TunnelImageClassifier(**TINY | {"budget": 100, "epochs": 8}).fit(*stripes())
    assert model.n_parameters_ <= 100 + 10  # the constants of the pixels are none


@pytest.mark.parametrize(
    ("array", "shape", "expected"),
    [
        (np.zeros((2, 9, 4), np.uint8), None, (2, 9, 4)),
        (np.zeros((2, 9, 4, 5)), None, (2, 9, 4, 5)),
        (np.zeros((2, 24)), (4, 3, 2), (2, 4, 3, 2)),
        (np.zeros((2, 24)), None, (2, 1, 24)),
        (np.zeros((2, 4, 6)), (4, 6), (2, 4, 6)),
    ],
)
def test_images_of_every_kind(array, shape, expected):
    images = as_images(array, shape)
    assert images.shape == expected and images.dtype == (np.uint8 if array.dtype == np.uint8 else np.float32)


@pytest.mark.parametrize(("size", "advice"), [(64, "shape=(8, 8)"), (75, "shape=(5, 5, 3)"), (25, "shape=(5, 5)")])
def test_rows_that_may_be_flat_images_are_pointed_out(size, advice):
    with pytest.warns(UserWarning, match="taken for a single row") as caught:
        as_images(np.zeros((3, size)), warns=True)
    assert advice in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (4, 9, 12, 20, 24, 63):
            as_images(np.zeros((3, other)), warns=True)


def test_stages_and_pixels():
    assert [stages_of(shape) for shape in ((28, 28), (15, 40, 3), (7, 7), (1, 300))] == [(16, 32, 64), (12, 24), (12,), (12,)]
    assert pixel_scaling(np.full((2, 3, 3, 2), 255, np.uint8)) == ((1.0, 1.0), (1.0, 1.0))
    x = np.random.default_rng(0).standard_normal((2000, 3, 3)) * 3 + 7
    (mean,), (scale,) = pixel_scaling(x)
    assert abs(mean - 7) < 1 and scale in (2.0, 4.0)
    assert jax.tree.leaves(pixel_scaling(np.zeros((2, 3, 3)))) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("options", "x", "says"),
    [
        ({}, np.zeros((6, 2, 2, 2, 2)), r"X has shape \(6, 2, 2, 2, 2\)"),
        ({}, np.full((6, 3, 3), np.nan), "X.* contains NaN"),
        ({}, np.full((6, 3, 3), 1e300), "beyond single precision"),
        ({"shape": (2, 2)}, np.zeros((6, 9)), r"shape=\(2, 2\) is of 4 values, but X has 9 values"),
        ({"shape": (9, 1)}, np.zeros((6, 3, 3)), "leave it out"),
        ({"shape": 9}, np.zeros((6, 9)), r"shape=9 must be \(height, width\)"),
        ({"augment": ("flop",)}, np.zeros((6, 9)), "augment="),
        ({"body": "tunnel"}, np.zeros((6, 9)), "body='tunnel'"),
        ({"channels": ()}, np.zeros((6, 9)), "channels="),
        ({"epochs": 0}, np.zeros((6, 9)), "epochs=0"),
    ],
)
def test_what_does_not_fit_is_named(options, x, says):
    model = TunnelImageClassifier(**TINY | options)
    with pytest.raises(ValueError, match=says) as caught:
        model.fit(x, np.arange(6) % 2)
    assert "\n" not in str(caught.value) and not hasattr(model, "image_shape_")


def test_other_images_than_those_of_the_fit_are_refused(fitted):
    with pytest.raises(ValueError, match=r"X has images of shape \(7, 6\)"):
        fitted.predict(np.zeros((2, 7, 6), np.uint8))


def test_it_is_a_classifier_of_scikit_learn(fitted):
    assert clone(fitted).get_params() == fitted.get_params() and "TunnelImageClassifier" in repr(fitted)


QUICK = {  # of scikit-learn's checks, those that fit little; all of them in a soak
    *("check_no_attributes_set_in_init", "check_parameters_default_constructible", "check_get_params_invariance"),
    *("check_estimators_unfitted", "check_classifiers_one_label", "check_n_features_in", "check_fit2d_1feature"),
}


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")
def test_scikit_learns_checks():
    model = TunnelImageClassifier(channels=(8,), epochs=40 if FACTOR > 1 else 3, learning_rate=0.02)
    why = "minibatches: a row of weight 2 is not the same as the row twice"
    failing = {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    for estimator, check in estimator_checks_generator(model):
        name = check.func.__name__
        if name not in failing and (FACTOR > 1 or name in QUICK):
            with suppress(SkipTest):  # for want of a package
                check(estimator)
