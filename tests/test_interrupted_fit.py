"""Ctrl-C while an estimator learns: once keeps the best model so far; twice raises, and the estimator is as it was before.

As it was: its features' names included. One process for all of it, and a signal whenever it says "now".
"""

import os
import signal

import pytest

from killing import start
from soak import FACTOR

CODE = """
import signal, sys, time, warnings
warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, where the suite runs in the background
import numpy as np, pandas
import meristem

small = {"width": 4, "depth": 1, "settle": False, "random_state": 0}
search = {"penalties": [1e-3], "l2s": [1e-3], "input_dropouts": [0.0], "cv": 2}
rng = np.random.default_rng(0)
three = rng.standard_normal((40, 3))
two, y = pandas.DataFrame(three[:, :2], columns=["length", "width"]), (three[:, 0] > 0).astype(int)

def waits(epoch, seconds):
    def watch(info):
        if info.epoch == epoch:
            print("now", flush=True)
        end = time.monotonic() + seconds
        while info.epoch >= epoch and time.monotonic() < end:
            time.sleep(0.01)  # a signal that comes just before a long sleep would have to wait for its end
    return watch

model = meristem.TunnelClassifier(**small, max_epochs=10**6, patience=10**6, callbacks=waits(5, 0.05)).fit(three, y)
assert model.best_epoch_ == model.history_["dev_loss"].argmin() + 1
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
best_loss = model.history_["dev_loss"][model.best_epoch_ - 1]
loss = -np.log(model.predict_proba(three)[np.arange(40), y]).mean()
print("kept", model.n_iter_, abs(loss - best_loss) < 1e-4 * best_loss, flush=True)

for kind, state in (case.split() for case in sys.argv[1:]):
    # Learns from two columns with names, if at all; then from three, until someone gives up.
    model = getattr(meristem, kind)(max_epochs=1, **small, **(search if kind.endswith("CV") else {}))
    if state == "fitted":
        model.fit(two, y)
    before, said = dict(vars(model)), model.predict(two) if state == "fitted" else None
    model.set_params(max_epochs=3, callbacks=waits(2, 60))
    try:
        model.fit(three, y)
        print("it went on", flush=True)
    except KeyboardInterrupt:
        model.set_params(**{name: before[name] for name in ("max_epochs", "callbacks")})
        assert vars(model).keys() == before.keys(), vars(model).keys() ^ before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
        if state == "fitted":
            assert model.n_features_in_ == 2 and model.feature_names_in_.tolist() == ["length", "width"]
            assert (model.predict(two) == said).all()
        print("as before", flush=True)
"""

CASES = ["TunnelClassifier new", "TunnelClassifier fitted"]
IN_A_SOAK = ["HighwayRegressor new", "TunnelClassifierCV fitted", "TunnelRegressorCV new"]


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_one_interrupt_keeps_the_best_model_and_a_second_leaves_the_estimator_as_it_was():
    cases = [*CASES, *(IN_A_SOAK if FACTOR > 1 else [])]
    with start("-c", CODE, *cases) as process:
        assert process.stdout.readline() == "now\n", process.stderr.read()
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline().startswith("Ctrl-C: training ends")
        kept, epochs, is_best = process.stdout.readline().split()
        assert kept == "kept" and 5 <= int(epochs) < 1000 and is_best == "True"
        for case in cases:
            assert process.stdout.readline() == "now\n", case
            process.send_signal(signal.SIGINT)
            assert process.stderr.readline().startswith("Ctrl-C: training ends"), case
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "as before\n", case
        _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
