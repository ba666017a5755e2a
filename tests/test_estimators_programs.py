"""Few programs: data sets of neighboring shapes share them, a second fit compiles nothing, nor does a prediction."""

import gc

import jax
import numpy as np
import pytest
from sklearn.base import clone

import meristem
from estimating import CLASSIFIERS, REGRESSORS, iris, programs
from meristem.estimators import fit_context
from meristem.estimators.encoded_table import padded_size

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module", autouse=True)
def few_programs_in_memory():
    """A process with many programs clears its caches on the way (meristem/cache.py), and would compile some again."""
    jax.clear_caches()
    gc.collect()


def data(rows, features, classes):
    X = RNG.normal(size=(rows, features))
    return X, np.arange(rows) % classes if classes else X @ RNG.normal(size=features)


def test_a_first_fit_compiles_three_programs_and_nothing_small():
    """What JAX computes outside of a program it compiles by itself, in milliseconds each: all of that is NumPy."""
    with programs() as first:
        meristem.TunnelClassifier(max_width=11, depth=2, learning_rate=0.02, max_epochs=60, random_state=0).fit(*iris())
    assert first == ["jit(initial_state)", "jit(epoch)", "jit(_settle)"]


def test_while_a_fit_lasts_only_new_objects_are_collected(monkeypatch):
    """Those of imports are set aside, also where the fit ends with an exception; the suite has set them aside itself."""
    seen = []

    def watch(info):
        seen.append(gc.get_freeze_count())
        if len(seen) == 2:
            raise KeyError

    monkeypatch.setattr(fit_context, "are_set_aside", False)
    gc.unfreeze()
    try:
        with pytest.raises(KeyError):
            meristem.TunnelClassifier(max_width=11, depth=2, max_epochs=60, callbacks=watch).fit(*iris())
        assert len(seen) == 2 and min(seen) > 10_000 and gc.get_freeze_count() == 0
        gc.freeze()
        with fit_context.collecting_new_objects():
            pass
        assert gc.get_freeze_count() > 10_000, "it was somebody else who set them aside"
    finally:
        gc.freeze()


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # noise, and two epochs
@pytest.mark.parametrize("model", [*CLASSIFIERS, REGRESSORS[0]], ids=lambda model: type(model).__name__)
def test_neighboring_shapes_share_their_programs(model):
    is_classifier = model in CLASSIFIERS
    model = clone(model).set_params(width=12, max_epochs=2, penalty=10.0, l2=1e-3)  # a width that nobody else has
    with programs() as first:
        model.fit(*data(100, 5, 3 * is_classifier)).partial_fit(*data(100, 5, 3 * is_classifier))
    # A start (which classes and numbers share), an epoch (another one of streams where `fit` holds rows out), and what few
    # small programs there are in all.
    epochs = 1 if is_classifier else 2
    assert first.count("jit(epoch)") == epochs and first.count("jit(initial_state)") <= 1 and len(first) <= 3 + epochs
    with programs() as others:
        for rows, features, classes in [(100, 5, 3), (30, 15, 8), (255, 1, 4), (77, 8, 5)]:
            again = clone(model).set_params(penalty=3.0, learning_rate=0.01, l2=1e-3, max_epochs=3, random_state=5)
            X, y = data(rows, features, classes * is_classifier)
            again.fit(X, y).predict(X)
            again.fit(X, y, np.linspace(0, 1, rows))
            again.partial_fit(X, y)
    assert others == []
    if is_classifier:
        with programs() as labels:
            clone(model).fit(*data(100, 5, 2))
            X, y = data(30, 5, 2)
            clone(model).fit(X, np.eye(4, dtype=int)[y])
        assert labels.count("jit(epoch)") == 2  # a single output is not padded, several labels are
        with programs() as others:
            clone(model).fit(*data(77, 9, 2))
            clone(model).fit(X, np.eye(3, dtype=int)[y])
        assert others == []  # two classes are one label


@pytest.mark.parametrize("least", [8, 32, 256])
def test_sizes_are_few_and_little_is_filled_up(least):
    sizes = [padded_size(n, least) for n in range(1, 200 * least)]
    assert all(size >= n for n, size in enumerate(sizes, 1)) and sizes == sorted(sizes)
    assert sizes[0] == least and len(set(sizes)) < 26
    assert all(size <= 1.25 * n for n, size in enumerate(sizes, 1) if n > 8 * least)
    assert all(padded_size(size, least) == size for size in set(sizes))
