"""scikit-learn's own checks of an estimator, all of them, and how many programs they compile together."""

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
SMALL = {"width": 16, "max_epochs": 30}
ESTIMATORS = [
    meristem.TunnelClassifier(**SMALL | {"max_epochs": 60}, depth=2),  # what settles early learns less
    meristem.BuddingClassifier(**SMALL, max_leaves=2, settle=FACTOR > 1),
    meristem.HighwayClassifier(**SMALL, depth=2),
    meristem.TunnelRegressor(**SMALL, depth=2),
    meristem.BuddingRegressor(**SMALL, max_leaves=2, settle=FACTOR > 1),
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
    """40 programs: a start and nine epochs per body (numbers, with rows held out and without; classes and labels, each with
    and without dropout, and of noise or of many numbers with rows held out), for the one that settles a settling for each but
    dropout, and three small ones.
    """
    if len(RAN) < sum(len(list(estimator_checks_generator(estimator))) for estimator in ESTIMATORS):
        pytest.skip("this counts what all checks compile together: run the whole file")
    count = Counter(COMPILED)
    print(f"{len(COMPILED)} programs: {dict(count)}")
    assert count["jit(initial_state)"] <= 3 and count["jit(epoch)"] <= 3 * 9  # fewer where other files needed the same
    settling = 1 if FACTOR == 1 else 2
    assert count["jit(_settle)"] <= 7 * settling and len(COMPILED) <= 33 + 7 * settling
