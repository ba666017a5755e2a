"""Runs that are killed go on to the same bits: real processes, SIGKILL, every array and every line of history compared.

Three kills here; `make soak` (MERISTEM_SOAK) does two hundred, over tunnels, trees, a population and an estimator.
"""

import random
from pathlib import Path

import pytest

from commanding import meristem_here
from killing import Script, Study, after, drawing, left_by, lines, saving, some, survive
from meristem.files.document import read
from soak import FACTOR, tell

TINY = ("--task", "easy", "--width", "3", "--depth", "2", "--max-epochs", "150")
STUDIES = {
    "tunnel": (*TINY, "--models", "tunnel", "--seeds", "1"),
    "budding": (*TINY, "--models", "budding", "--seeds", "1"),
    "population": (*TINY, "--models", "tunnel", "--seeds", "2"),
}
ESTIMATOR = """
from sklearn.datasets import load_iris
from meristem import TunnelClassifierCV, save
from meristem.estimators import fit_context

fit_context.SECONDS = 0.0  # as often as a small share of the time allows
small = {"width": 4, "depth": 2, "max_epochs": 150, "cv": 2, "penalties": [1e-4, 1e-3, 1e-2], "random_state": 0}
model = TunnelClassifierCV(**small, checkpoint_dir=".", resume=True).fit(*load_iris(return_X_y=True))
save("model.safetensors", model)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory):
    """What the studies leave that nobody interrupts, by their name."""
    found: dict[str, dict] = {}

    def of(name: str) -> dict:
        if name not in found:
            out = tmp_path_factory.mktemp("whole") / name
            done = meristem_here(*Study(out, STUDIES[name], every=300.0).args)
            assert done.returncode == 0, done.stderr
            found[name] = left_by(out)
        return found[name]

    return of


def check_survival(out: Path, name: str, moments, whole) -> int:
    _, hits = survive(Study(out, STUDIES[name]), moments)
    wanted, found = whole(name), left_by(out)
    assert found["summary"] == wanted["summary"] and found["lines"] == wanted["lines"]
    assert found["arrays"] == wanted["arrays"] and found["files"] == wanted["files"]
    assert not [path for path in out.rglob(".meristem-*") if path.is_file()], "leftovers are cleaned up"
    return hits


def test_a_population_that_is_killed_three_times_leaves_what_it_would_have_left(tmp_path, whole):
    """In a step; in a save; while its pictures are drawn."""
    assert check_survival(tmp_path / "out", "population", [lines(40), saving, drawing(1)], whole) == 3


@pytest.mark.skipif(FACTOR == 1, reason="for make soak")
@pytest.mark.parametrize("name", STUDIES)
def test_kills_at_random_moments_twice_in_a_row_and_more(tmp_path, name, whole):
    chance, hits, turn = random.Random(name), 0, 0
    while hits < 50 * FACTOR // 80:
        moments = [some(chance, 8.0, 1) for _ in range(chance.randrange(1, 6))]
        hits += check_survival(tmp_path / str(turn), name, moments, whole)
        turn += 1
    tell(f"kills of {name}", kills=hits, runs=turn, identical=turn)


@pytest.mark.skipif(FACTOR == 1, reason="for make soak")
def test_an_estimator_that_is_killed_at_random_moments(tmp_path):
    survive(Script(tmp_path / "whole", ESTIMATOR), [])
    wanted, chance, hits, turn = document(tmp_path / "whole"), random.Random("estimator"), 0, 0
    while hits < 50 * FACTOR // 80:
        out = tmp_path / str(turn)
        hits += survive(Script(out, ESTIMATOR), [after(chance.uniform(0, 12.0)) for _ in range(chance.randrange(1, 6))])[1]
        assert document(out) == wanted
        turn += 1
    tell("kills of an estimator", kills=hits, runs=turn, identical=turn)


def document(out: Path) -> dict[str, bytes]:
    """Every array of the model that the script saved."""
    return {name: values.tobytes() for name, values in read(out / "model.safetensors").arrays.items()}
