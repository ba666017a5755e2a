"""Nothing is computed twice: counted by the profiler in real calls."""

import cProfile
import pstats

import numpy as np
import pytest

import meristem
from commanding import meristem_here
from test_tables_mistakes import people

SEARCH = {"cv": 2, "penalties": [1e-4, 1e-3], "l2s": [1e-4], "input_dropouts": [0.0]}
SMALL = {"max_epochs": 3, "depth": 1, "max_width": 4, "random_state": 0}
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def counted(call, **functions):
    """How often each function, given as file.function, was called."""
    profile = cProfile.Profile()
    profile.runcall(call)
    stats = pstats.Stats(profile).stats
    found = dict.fromkeys(functions, 0)
    for (file, _, function), (_, calls, *_) in stats.items():
        for name, (place, wanted) in functions.items():
            if file.endswith(place) and function == wanted:
                found[name] += calls
    return found


def test_a_search_transforms_its_table_once_and_compacts_each_network_once():
    x = np.random.default_rng(0).normal(size=(80, 3))
    model = meristem.TunnelClassifierCV(**SEARCH, **SMALL)
    found = counted(
        lambda: model.fit(x, (x[:, 0] > 0).astype(int)),
        transformed=("inputs/preprocessor.py", "__call__"),
        learned=("inputs/preprocessor.py", "usual_statistics"),
        paths=("estimators/search.py", "path"),
    )
    assert found["transformed"] == 1 and found["learned"] == 1
    assert found["paths"] <= 5, "once for each part of the search, not for each setting of it"


def test_predict_casts_no_weights():
    x = np.random.default_rng(0).normal(size=(80, 3))
    model = meristem.TunnelRegressor(max_epochs=3, width=4, depth=1, random_state=0).fit(x, x[:, 0])
    found = counted(lambda: model.predict(x), spread=("compact/inference.py", "spread"))
    assert found == {"spread": 0}


def test_held_out_rows_are_predicted_once_and_the_file_is_written_and_read_back_once(tmp_path):
    (tmp_path / "people.csv").write_text(people(120))
    quick = ["--body", "tunnel", "--budget", 900, "--max-epochs", 3]
    command = ["fit", tmp_path / "people.csv", "--target", "rich", *quick, "--out", tmp_path / "out"]
    done = []
    found = counted(
        lambda: done.append(meristem_here(*command)),
        outputs=("tables/table_model.py", "outputs"),
        packed=("files/file_kinds.py", "packed_file"),
        read_back=("files/file_kinds.py", "check"),
        graph=("export/onnx.py", "onnx_bytes"),
    )
    assert done[0].returncode == 0, done[0].stderr
    assert found == {"outputs": 1, "packed": 1, "read_back": 1, "graph": 1}
