"""How long rows that are held out are waited for: forty passes before the rate first shrinks, ten from then on."""

import numpy as np
import pytest

import meristem
from estimating import tunnel_regressor
from meristem.estimators.search import Search
from meristem.train.callbacks import Watcher

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::meristem.GrowthWarning")
PASSES = 4  # an epoch of 200 rows


class Waiting(Watcher):
    """The epochs since the last better loss at which each stage of the first training ended."""

    def __init__(self):
        self.waited, self.stage, self.since = [], 0, 0

    def part(self, name):
        return self if name == "train" else Watcher()

    def epoch(self, member, info):
        if int(info.stage) > self.stage:
            self.waited.append(self.since)
            self.stage, self.since = int(info.stage), 0
        self.since = 0 if bool(info.improved) and not self.stage else self.since + 1


def noise() -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    return chance.standard_normal((200, 3)), chance.standard_normal(200)


@pytest.mark.parametrize(("patience", "first", "later"), [("auto", 40 // PASSES, 10 // PASSES + 1), (3, 3, 3)])
def test_more_is_waited_for_before_the_rate_first_shrinks(patience, first, later):
    X, y = noise()
    seen = Waiting()
    tunnel_regressor(width=4, depth=1, patience=patience, early_stopping=True, max_epochs="auto", callbacks=seen).fit(X, y)
    assert seen.waited[0] == first and seen.waited[1] >= later


@pytest.mark.parametrize(("name", "passes"), [("TunnelRegressor", 40), ("TunnelClassifier", 14)])
def test_a_search_waits_longer_for_numbers(name, passes):
    """Classes are judged at the best temperature: a loss that does not get worse before it gets better."""
    X, y = noise()
    estimator = getattr(meristem, name)(width=4, depth=1, random_state=0)
    table = estimator._encoded(X, y if name.endswith("Regressor") else y > 0)
    search = Search(estimator, table, table.folds(2, classes=False))
    runs = search.begun(search.members(penalties=[1e-3], l2s=[1e-3], dropouts=[0.0], rates=[3e-3]))
    assert [float(run.knobs.patience) for run in runs] == [-(-passes // PASSES)] * 2
    assert runs[0].recipe.linger == (0.25 if passes == 40 else 1)
