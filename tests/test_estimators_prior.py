"""What `l2="auto"` and `input_dropout="auto"` make of the data: of noise, of many features, of the rows of a stream."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.linear_model import Ridge

from estimating import SMALL, split, tunnel, tunnel_regressor
from meristem import BuddingClassifier, BuddingRegressor, TunnelClassifier, load
from meristem.estimators.defaults import ALPHAS, SAMPLE, predictability
from meristem.targets import Classes

pytestmark = pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # an epoch or two


def standard(y):
    y = np.reshape(y, (len(y), -1))
    return (y - y.mean(0)) / y.std(0)


def noisy(rows, features, share, seed=0):
    """A linear target of which the inputs tell `share`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, features))
    signal = x @ rng.normal(size=features)
    return x, standard(signal / signal.std() + np.sqrt(1 / share - 1) * rng.normal(size=rows))


def prior(model):
    """Of all rows alike, by what was seen of them."""
    return model._defaults.l2(model.n_samples_seen_, model._targets_, model.predictability_, equal_weights=True)


def untrained(model, x, y):
    """The model with what it makes of the data before it is trained, which `fit` stores."""
    table = model._encoded(x, y)
    vars(model).update(model._facts(table, {}), _targets_=table.targets)
    return model


def test_left_out_rows_are_predicted_from_all_others():
    """The closed form against as many fits as there are rows, on a target where no kernel but the linear one is any good."""
    x, y = noisy(40, 3, 0.7)
    z = (x - x.mean(0)) / x.std(0)
    best = 0.0
    for alpha in ALPHAS:
        off = []
        for i in range(len(z)):
            others = np.arange(len(z)) != i
            model = Ridge(alpha * 3).fit(z[others], y[others])  # the kernel is a mean over features
            off.append(y[i] - model.predict(z[i : i + 1])[0])
        best = max(best, 1 - np.mean(np.square(off)) / y.var())
    assert predictability(x, y) == pytest.approx(best, abs=0.01)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_it_finds_the_share_that_can_be_told(share):
    assert predictability(*noisy(400, 5, share)) == pytest.approx(share, abs=0.07)


def test_a_curved_target_without_noise_can_be_told():
    for make in (make_friedman1, make_friedman2, make_friedman3):
        x, y = make(400, random_state=0)
        assert predictability(x, standard(y)) > 0.85
    assert 0.4 < predictability(load_diabetes().data, standard(load_diabetes().target)) < 0.55


def test_forms_scales_constants_and_rows_of_weight_zero_do_not_matter():
    x, y = noisy(200, 6, 0.5)
    known = predictability(x, y)
    assert predictability(sparse.csr_array(x), y) == pytest.approx(known)
    assert predictability(np.c_[1e6 * x - 3, np.full(200, 7.0)], y) == pytest.approx(known, abs=1e-4)
    wrong = np.r_[x, 100 + x], np.r_[y, -50 * y], np.r_[np.full(200, 0.3), np.zeros(200)]
    assert predictability(*wrong) == pytest.approx(known)
    both = np.c_[y, standard(x[:, 0])]
    assert predictability(x, both) == pytest.approx((known + 1) / 2, abs=0.05)


def test_a_sample_of_many_rows_says_as_much_and_few_say_nothing():
    x, y = noisy(4 * SAMPLE, 5, 0.5)
    assert predictability(x, y) == predictability(x, y) == pytest.approx(0.5, abs=0.1)
    assert predictability(x[:7], y[:7]) == predictability(x, 0 * y) == 1.0
    assert predictability(np.ones((50, 3)), y[:50]) == 0.0  # nothing is told by constants


def test_a_regressors_prices_are_relative_to_the_noise():
    tree, found = BuddingRegressor(**SMALL, max_leaves=2, max_epochs=1), {}
    for share in (0.3, 0.55, 0.9):
        model = untrained(tree, *noisy(400, 5, share))
        noise = 1 - model.predictability_
        assert noise == pytest.approx(1 - share, abs=0.1)
        assert prior(model) * 400 == pytest.approx(5 * noise) and model.penalty_ == pytest.approx(1e-3 * noise)
        found[share] = model.penalty_
    assert found[0.3] > found[0.55] > found[0.9]
    model = untrained(tunnel_regressor(), *noisy(400, 5, 0.3))
    assert prior(model) * 400 == pytest.approx(3 * (1 - model.predictability_)), "it starts linear"
    clear = untrained(tunnel_regressor(), *noisy(400, 5, 0.9999))
    assert clear.penalty_ == pytest.approx(1e-4) and prior(clear) * 400 == pytest.approx(0.03), "never nothing"
    root = untrained(tunnel_regressor(loss="absolute_error"), *noisy(400, 5, 0.9))
    assert root.penalty_ == pytest.approx(1e-3 * np.sqrt(1 - root.predictability_))
    x, y = noisy(50, 5, 0.5)
    fitted = tunnel_regressor(max_epochs=1).fit(x, y)
    facts = vars(untrained(tunnel_regressor(), x, y))
    assert all(getattr(fitted, name) == facts[name] for name in ("penalty_", "predictability_", "n_samples_seen_"))
    given = tunnel_regressor(max_epochs=1, l2=1e-3, penalty=1e-3).fit(x, y)
    assert not hasattr(given, "predictability_") and not hasattr(given, "penalty_")


def test_classes_of_which_little_can_be_told_are_held_more_firmly():
    x, y = noisy(400, 2, 0.99)
    rng = np.random.default_rng(1)
    clear, coin = y[:, 0] > 0, rng.integers(2, size=400)
    for make, size, firm in ((TunnelClassifier, {"depth": 2}, 10), (BuddingClassifier, {"max_leaves": 2}, 3)):
        models = [untrained(make(**SMALL, **size), x, classes) for classes in (clear, coin)]
        assert [prior(model) for model in models] == [pytest.approx(5e-5), pytest.approx(firm / 400)]
        assert [model.penalty_ for model in models] == [1e-3, 1e-3]
    five = untrained(BuddingClassifier(**SMALL, max_leaves=2), x, rng.integers(5, size=400))
    assert prior(five) == pytest.approx(10 / 400), "of a tree 3 / rows for each class but one, up to 10 / rows"
    l2, targets = TunnelClassifier._defaults.l2, models[0]._targets_
    strengths = [400 * l2(400, targets, share, equal_weights=True) for share in (0.0, 0.2, 0.4, 0.5)]
    assert strengths == [pytest.approx(10), pytest.approx(4), pytest.approx(1.5), pytest.approx(1)], "noise / signal"
    between = l2(400, targets, 0.55, equal_weights=True)
    assert between == pytest.approx(np.sqrt(5e-5 / 400)), "halfway in logarithms, and the noise counts as 1 / rows at least"
    weighted = l2(400, targets, 0.2, equal_weights=False)
    assert weighted == pytest.approx(1 / 400), "the predictability counts all rows alike"


def test_rare_counts_are_held_more_firmly():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    priors = []
    for mean in (0.05, 5.0):
        model = untrained(tunnel_regressor(loss="poisson"), x, rng.poisson(mean, 400))
        priors.append(prior(model) * 400)
    assert priors[0] == pytest.approx(3 / 0.05, rel=0.5) and priors[1] == pytest.approx(3)


def test_outliers_do_not_count_as_noise_where_the_loss_takes_little_notice_of_them():
    x, y = noisy(400, 5, 0.95)
    y[:20] += 1000
    losses = ("squared_error", "absolute_error")
    firm, loose = (untrained(tunnel_regressor(loss=loss), x, y[:, 0]) for loss in losses)
    assert firm.predictability_ < 0.2 and loose.predictability_ > 0.9


def test_noise_is_not_learned_by_heart():
    """A tree starts as 64 rectifiers; with a tenth of the prior it would predict worse than the mean."""
    x, y = noisy(600, 20, 0.3)
    scores = [
        BuddingRegressor(random_state=0, l2=l2, max_leaves=1, max_epochs=40, patience=10)
        .fit(x[:300], y[:300])
        .score(x[300:], y[300:])
        for l2 in ("auto", 1 / 300)
    ]
    assert scores[0] > 0.1 > scores[1]


def test_classes_are_dropped_by_the_number_of_features():
    rng = np.random.default_rng(0)
    for features, share in ((15, None), (16, 0.25)):
        X = rng.normal(size=(40, features))
        model = untrained(tunnel(), X, X[:, 0] > 0)
        table = model._encoded(X, X[:, 0] > 0)
        assert model._knobs(vars(model), table).dropout == share
        assert model.set_params(input_dropout=0.5)._knobs(vars(model), table).dropout == 0.5


@pytest.mark.parametrize("standardize", [True, False])
def test_a_stream_counts_all_its_rows_and_its_first_ones_say_how_noisy_it_is(standardize, monkeypatch, tmp_path):
    X, _, y, _ = split("diabetes")
    model = tunnel_regressor(standardize=standardize, max_epochs=1)
    asked = []
    l2 = lambda self, n, targets, share, *, equal_weights: asked.append((n, share)) or 1e-3  # noqa: E731
    monkeypatch.setattr(type(model._defaults), "l2", l2)
    for rows in np.array_split(np.arange(300), 3):
        model.partial_fit(X[rows], y[rows], np.where(rows % 10, 3.0, 0.0))
    model.save(tmp_path / "model")
    load(tmp_path / "model").partial_fit(X[:7], y[:7])
    model.fit(X, y)
    assert [n for n, _ in asked] == [90, 180, 270, 277, 309] and model.n_samples_seen_ == 309
    *stream, again = [share for _, share in asked]
    assert len(set(stream)) == 1 and again != stream[0]


def test_of_ten_thousand_classes_only_those_of_the_rows_that_are_looked_at_are_columns():
    encoded, asked = np.arange(20_000) % 10_000, []

    def columns(rows):
        asked.append(Classes(np.arange(10_000)).columns(rows))
        return asked[-1]

    predictability(np.random.default_rng(0).normal(size=(20_000, 2)), encoded, None, columns)
    assert sum(one.nbytes for one in asked) <= 2 * 512 * 512 * 8
