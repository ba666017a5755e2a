"""Ctrl-C twice while an estimator learns: KeyboardInterrupt, and the estimator is as it was, its features' names included."""

import signal

import pytest

from killing import start
from soak import FACTOR

# Learns from two columns with names; then from three, until someone gives up: an epoch says so, the second signal is awaited.
TWICE = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas
import meristem

kind, is_fitted = getattr(meristem, sys.argv[1]), sys.argv[2] == "fitted"
small = {"width": 4, "depth": 1, "settle": False, "random_state": 0}
if sys.argv[1].endswith("CV"):
    small |= {"penalties": [1e-3], "l2s": [1e-3], "input_dropouts": [0.0], "cv": 2}
rng = np.random.default_rng(0)
three = rng.standard_normal((40, 3))
two, y = pandas.DataFrame(three[:, :2], columns=["length", "width"]), (three[:, 0] > 0).astype(int)
model = kind(max_epochs=1, **small)
if is_fitted:
    model.fit(two, y)
before, said = dict(vars(model)), model.predict(two) if is_fitted else None

def watch(info):
    if info.epoch == 2:
        print("now", flush=True)
        time.sleep(60)  # a second signal ends it

model.set_params(max_epochs=3, callbacks=watch)
try:
    model.fit(three, y)
    print("it went on")
except KeyboardInterrupt:
    model.set_params(**{name: before[name] for name in ("max_epochs", "callbacks")})
    assert vars(model).keys() == before.keys(), vars(model).keys() ^ before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    if is_fitted:
        assert model.n_features_in_ == 2 and model.feature_names_in_.tolist() == ["length", "width"]
        assert (model.predict(two) == said).all()
    print("as before")
"""


in_a_soak = pytest.mark.skipif(FACTOR == 1, reason="for make soak")


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("TunnelClassifier", "fitted"),
        pytest.param("HighwayRegressor", "new", marks=in_a_soak),
        pytest.param("TunnelClassifierCV", "fitted", marks=in_a_soak),
        pytest.param("TunnelRegressorCV", "new", marks=in_a_soak),
    ],
)
def test_a_second_interrupt_leaves_the_estimator_as_it_was(kind, state):
    with start("-c", TWICE, kind, state) as process:
        assert process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline().startswith("Ctrl-C: training ends")
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=100)
    assert (process.returncode, out) == (0, "as before\n"), errors
