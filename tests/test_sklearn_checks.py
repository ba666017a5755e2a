"""scikit-learn's own checks of an estimator, all of them, and how many programs they compile together.

In the suite of a tunnel that classifies and of a tree that regresses; in a soak of every estimator.
"""

from collections import Counter

import jax
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import meristem
from soak import FACTOR

COMPILED: list[str] = []
RAN: list[object] = []


def _note(name: str, _: float, **about: object) -> None:
    if name == "/jax/core/compile/backend_compile_duration":
        COMPILED.append(str(about["fun_name"]))


jax.monitoring.register_event_duration_secs_listener(_note)

# Small, so that they compile fast; everything else as it is by default, save the number of epochs, and that trees
# settle in a soak alone; tunnels always do.
SMALL = {"width": 16, "max_epochs": 30 if FACTOR > 1 else 20}
ESTIMATORS = [
    meristem.TunnelClassifier(**SMALL | {"max_epochs": 60 if FACTOR > 1 else 40}, depth=2),  # what settles early learns less
    meristem.BuddingRegressor(**SMALL, max_leaves=2, settle=FACTOR > 1),
]
if FACTOR > 1:
    ESTIMATORS += [
        meristem.BuddingClassifier(**SMALL, max_leaves=2),
        meristem.HighwayClassifier(**SMALL, depth=2),
        meristem.TunnelRegressor(**SMALL, depth=2),
        meristem.HighwayRegressor(**SMALL, depth=2),
    ]
WHY = "minibatches and dropout: a row of weight 2 is not the same as the row twice, but nearly (test_estimators_weights.py)"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": WHY for kind in ("dense", "sparse")}


@pytest.fixture(scope="module", autouse=True)
def _from_here() -> None:
    """What other files compiled does not count."""
    COMPILED.clear()


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # much of what is fitted here is noise
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED)
def test_check(estimator, check):
    RAN.append(estimator)
    check(estimator)


def test_what_the_checks_compile():
    """For each body a start with one output, which is not padded, and one with several. Epochs: of numbers with rows held out
    and without; of classes and of labels, each with and without dropout; of two classes; and of noise, of many numbers or of
    two classes with rows held out. For what settles a settling for each but dropout.
    """
    if len(RAN) < sum(len(list(estimator_checks_generator(estimator))) for estimator in ESTIMATORS):
        pytest.skip("this counts what all checks compile together: run the whole file")
    count = Counter(COMPILED)
    print(f"{len(COMPILED)} programs: {dict(count)}")
    most = {"jit(initial_state)": 4, "jit(epoch)": 11, "jit(_settle)": 6}
    if FACTOR > 1:
        most = {"jit(initial_state)": 3 * 2, "jit(epoch)": 3 * 11, "jit(_settle)": 2 * 8}
    assert all(count[name] <= number for name, number in most.items())  # fewer where other files needed the same
    assert len(COMPILED) <= sum(most.values()) + 3, "besides three small ones"
