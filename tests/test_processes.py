"""Forked children of a process in which JAX has started are refused at once; weights and labels that are wrong are named."""

import numpy as np
import pytest

from commanding import meristem
from estimating import iris, tunnel

FORK = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
import meristem, jax, numpy as np
from sklearn.datasets import load_iris

X, y = load_iris(return_X_y=True)
model = meristem.TunnelClassifier(width=4, depth=2, max_epochs=1, settle=False, random_state=0)
model.fit(X, y).save(sys.argv[1])
asks = [lambda: model.predict(X), lambda: model.fit(X, y), lambda: model.partial_fit(X, y), lambda: meristem.load(sys.argv[1])]
for ask in asks:
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # who waits forever is ended
        try:
            ask()
            os._exit(0)
        except RuntimeError as error:
            os._exit(3 if "forked after JAX had started" in str(error) and "loky" in str(error) else 4)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_predicts_and_is_refused_what_would_never_end(tmp_path):
    done = meristem(tmp_path / "model.safetensors", code=FORK)
    assert done.stdout.split() == ["0", "3", "3", "3"], done.stderr


@pytest.mark.parametrize("weight", [np.nan, -1, np.inf])
def test_a_weight_that_is_no_weight_is_named(weight):
    X, y = iris()
    weights = np.ones(len(y))
    weights[3] = weight
    with pytest.raises(ValueError, match="sample_weight"):
        tunnel().fit(X, y, sample_weight=weights)
