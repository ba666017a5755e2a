"""With JAX_ENABLE_X64=1 everything works that works without: estimators, searches, files and studies, in double precision.

The suite tries one estimator and its file, a soak (MERISTEM_SOAK) one of each kind, a search and a study; of what all bodies
promise (test_models.py) it tries the quickest, `make soak` all of it and more.
"""

import os
import subprocess
import sys
from pathlib import Path

from commanding import meristem
from soak import FACTOR

CODE = """
import sys, tempfile, warnings
from pathlib import Path
import jax, jax.numpy as jnp, numpy as np
import meristem
from meristem.commands.main import main
from sklearn.datasets import load_iris

warnings.simplefilter("ignore")
X, y = load_iris(return_X_y=True)
X[::7, 1] = np.nan
small = {"width": "auto", "max_width": 8, "max_epochs": 9, "patience": 1, "random_state": 0}

def is_double(model):
    floats = [leaf for leaf in jax.tree.leaves(model.network_) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return all(leaf.dtype == jnp.float64 for leaf in floats)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.safetensors"
    for model in (
        meristem.TunnelClassifier(**small, depth=2, feature_gates=True),
        *([] if "all" not in sys.argv else [
            meristem.BuddingRegressor(**small, max_leaves=2),
            meristem.HighwayRegressor(**small | {"width": 4}, depth=2, loss="quantile", quantiles=(0.1, 0.9)),
        ]),
    ):
        assert is_double(model.fit(X, y)), model
        model.save(path)
        again = meristem.load(path)
        assert (again.predict(X) == model.predict(X)).all(), model
        again.set_params(warm_start=True, max_epochs=2).fit(X, y)
        again.partial_fit(X, y)
    if "all" not in sys.argv:
        sys.exit(print("done"))
    search = {"penalties": [1e-3], "l2s": [1e-3], "input_dropouts": [0.0, 0.2], "cv": 2, "refit": "one"}
    assert meristem.TunnelClassifierCV(**small | {"max_epochs": 3}, **search, depth=2).fit(X, y).score(X, y) > 0.3
    study = ["reproduce", "two-spirals", "--task", "easy", "--seeds", "2", "--max-epochs", "2", "--width", "4", "--depth", "2"]
    assert main([*study, "--models", "tunnel,budding", "--out", str(Path(folder) / "out")]) == 0
print("done")
"""


def test_everything_works_in_double_precision():
    done = meristem(*(["all"] if FACTOR > 1 else []), code=CODE, JAX_ENABLE_X64=1)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.rstrip().endswith("done")


def test_bodies_keep_their_promises_in_double_precision():
    quick = "depths_are_prefixes or make_it_again or at_rest or limits_of"
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist", str(here / "test_models.py"), "-k", quick],
        env=os.environ | {"JAX_ENABLE_X64": "1"},
        cwd=here.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "13 passed" in done.stdout
