"""Weights of rows and of classes. In the mean over seeds, a row of weight 2 is the row twice."""

import jax
import numpy as np
import pytest
from sklearn.datasets import make_classification

import meristem
from estimating import SMALL, iris, split, tunnel, tunnel_regressor, two_irises
from meristem.data.spirals import two_spirals
from meristem.nn import Network

SEEDS = range(6)
KEY = jax.random.key(0)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # most end early, to save time


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_weight_is_a_number_of_rows(kind):
    X, X_test, y, _ = split("diabetes")
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(X))
    # Half of the rows say the contrary, so that it shows who counts.
    contrary = rng.random(len(X)) < 0.5
    weight[contrary] = np.minimum(weight[contrary], 1)
    y = np.where(contrary, 300 - y, y)
    if kind == "classes":
        y = y > 150

    def said(rows, **options):
        make = tunnel if kind == "classes" else tunnel_regressor
        # As many steps and one prior, whatever the number of rows; none held out, of which copies would be learned from.
        how = {"max_epochs": int(40 * len(X) / len(rows)), "early_stopping": False, "penalty": 3e-3, "l2": 1e-3}
        models = [make(random_state=seed, **how).fit(X[rows], y[rows], **options) for seed in SEEDS]
        return np.stack([m.predict_proba(X_test)[:, 1] if kind == "classes" else m.predict(X_test) for m in models])

    everyone = np.arange(len(X))
    weighted = said(everyone, sample_weight=weight)
    repeated = said(np.repeat(everyone, weight))
    plain = said(everyone)
    apart = np.abs(weighted.mean(0) - repeated.mean(0)).mean()
    by_chance = np.sqrt((weighted.var(0) + repeated.var(0)).mean() / len(SEEDS))
    assert apart < 2 * by_chance
    assert apart < 0.5 * np.abs(weighted.mean(0) - plain.mean(0)).mean()


def test_only_the_proportions_of_weights_count():
    X, y = iris()
    plain = tunnel(max_epochs=20).fit(X, y)
    assert (tunnel(max_epochs=20).fit(X, y, np.full(150, 1.0)).decision_function(X) == plain.decision_function(X)).all()
    number = tunnel_regressor(max_epochs=20).fit(X, y)
    for weight in (1 / 150, 7.0):
        same = tunnel_regressor(max_epochs=20).fit(X, y, np.full(150, weight))
        assert np.allclose(same.predict(X), number.predict(X), atol=1e-4)
    assert np.allclose(
        tunnel(max_epochs=20).fit(X, y, np.full(150, 7.0)).decision_function(X), plain.decision_function(X), atol=1e-4
    )


def test_a_row_of_weight_zero_is_not_there():
    X, y = two_irises()
    weight = np.ones(100)
    weight[:10] = 0
    X[:10], y[:10] = 1e6, 1 - y[:10]
    model = tunnel(max_epochs=40).fit(X, y, weight)
    assert model.score(X[10:], y[10:]) > 0.9
    assert np.allclose(model._inputs_.preprocessor.scaling.mean, X[10:].mean(0))


def test_weights_of_nothing_are_refused():
    X, y = iris()
    for fit in (tunnel().fit, lambda X, y, w: tunnel().partial_fit(X, y, [0, 1, 2], w)):
        with pytest.raises(ValueError, match="at least one"):
            fit(X, y, np.zeros(150))
        with pytest.raises(ValueError, match="every weight must be a finite number of at least 0"):
            fit(X, y, np.full(150, -1.0))
    with pytest.raises(ValueError, match=r"^sample_weight, times class_weight, is 0 for every sample"):
        tunnel(class_weight={0: 0, 1: 0, 2: 0}).fit(X, y)


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")
@pytest.mark.parametrize("kind", [meristem.TunnelClassifier, meristem.HighwayClassifier])
def test_class_weights_shift_the_decision(kind):
    X, y = make_classification(600, 6, weights=[0.95], class_sep=0.6, flip_y=0.02, random_state=0)

    def found(class_weight):
        model = kind(**SMALL, depth=2, max_epochs=30, class_weight=class_weight).fit(X, y)
        return model.predict(X)[y == 1].mean()

    plain, balanced, by_hand = found(None), found("balanced"), found({0: 1, 1: 30})
    assert plain < 0.6 < 0.75 < balanced and by_hand > 0.75
    assert found({0: 1, 1: 1}) == plain


def test_class_weights_multiply_the_rows_weights():
    X, y = two_irises()
    both = tunnel(max_epochs=5, class_weight={0: 1, 1: 3}).fit(X, y, np.where(y == 1, 1 / 3, 1))
    assert np.allclose(both.decision_function(X), tunnel(max_epochs=5).fit(X, y).decision_function(X), atol=1e-4)


@pytest.mark.parametrize("part", ["training", "held-out"])
@pytest.mark.parametrize("kind", [meristem.TunnelClassifierCV, meristem.BuddingRegressorCV])
def test_a_fold_of_which_nothing_counts_is_named_before_anything_is_trained(kind, part):
    """With folds of one's own, or a splitter."""
    X, y = iris()
    rows = np.arange(150)
    folds = [(rows[rows % 3 != fold], rows[rows % 3 == fold]) for fold in range(3)]
    weight = np.where(np.isin(rows, folds[0][0 if part == "training" else 1]), 0.0, 1.0)

    class Splitter:
        def split(self, X, y=None, groups=None):
            yield from folds

        def get_n_splits(self, X=None, y=None, groups=None):
            return 3

    seen = []
    for cv in (folds, Splitter()):
        how = {"cv": cv, "max_epochs": 1, "depth": 1} if kind is meristem.TunnelClassifierCV else {"cv": cv, "max_epochs": 1}
        model = kind(**how, callbacks=lambda *told: seen.append(told))
        with pytest.raises(ValueError, match=f"^sample_weight is 0 for all {part} rows of fold 0"):
            model.fit(X, y, sample_weight=weight)
        assert not seen and not hasattr(model, "path_")


def test_a_fold_that_is_drawn_and_of_which_nothing_counts_is_named():
    X, y = iris()
    weight = np.zeros(150)
    weight[[0, 60, 120]] = 1
    with pytest.raises(ValueError, match=r"^sample_weight is 0 for all held-out rows of fold \d"):
        meristem.TunnelClassifierCV(cv=5, max_epochs=1).fit(X, y, sample_weight=weight)
    model = meristem.TunnelClassifier(max_epochs=1, class_weight={0: 0.0, 1: 1.0, 2: 1.0})
    with pytest.raises(ValueError, match=r"^sample_weight is 0 for all held-out rows of fold 0; "):
        meristem.path(model, (X, y), cv=[(np.arange(50, 150), np.arange(50))])


def test_a_fold_of_a_network_of_which_nothing_counts_is_named():
    x, y = two_spirals("easy")
    rows = np.arange(len(x))
    data = meristem.Data(x, y, weight=(rows >= 20).astype(np.float32))
    network = Network.create("tunnel", 2, 1, width=3, depth=1, key=KEY)
    with pytest.raises(ValueError, match=r"^weight is 0 for all held-out rows of fold 0; "):
        meristem.path(network, data, penalties=[1e-3], learning_rates=[1e-3], cv=[(rows[20:], rows[:20])], key=KEY)
