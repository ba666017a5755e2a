"""The settings of the suite: annotations are executed, rank promotion is an error; quick compilation, and nothing twice.

Warnings are errors too (pyproject.toml).
"""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

# Most of what the suite does is compiling. A run has one folder for compiled programs, empty at first, which its workers and
# the processes that tests start share: whoever inherits this environment finds the folder of the run.
if "MERISTEM_TEST_PROGRAMS" not in os.environ:
    folder = tempfile.TemporaryDirectory(prefix="meristem-programs-")  # goes with this process
    os.environ["MERISTEM_TEST_PROGRAMS"] = folder.name
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.environ["MERISTEM_TEST_PROGRAMS"]
# Only what takes long to compile: to write a small program and to read it again takes longer than to compile it twice. (Less
# long with zstandard, which is installed for this: JAX then compresses in an eighth of the time that zlib takes.)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
# For what a short test computes, optimizing takes longer than computing: no optimization, and of XLA's two ways to emit the
# code of a loop the older one, which compiles three times as fast. In one piece: the pieces are for cores that wait, and with a
# worker on each core none does.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
if version("jaxlib").startswith("0.10."):  # XLA ends a process whose flags it does not know
    flags = ("use_fusion_emitters=false", "parallel_codegen_split_count=1", "multi_thread_eigen=false")
    os.environ["XLA_FLAGS"] = " ".join(f"--xla_cpu_{flag}" for flag in flags)  # no threads: each worker has a core
# Nor of OpenMP's, which wait for one another busily: scikit-learn's boosting, with which reports compare, predicts in parts.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"  # of every operation JAX would note where it was called

# A soak tries what asks for far too much: that must be refused, not granted until the machine has no more.
if os.environ.get("MERISTEM_SOAK", "1") != "1" and sys.platform != "win32":
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, resource.getrlimit(resource.RLIMIT_AS)[1]))

import jax
import jaxtyping
import pytest

import annotations

# A suite that runs in the background may have Ctrl-C ignored, one under nohup a terminal that hangs up; the processes that
# tests start should not inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Before anything imports meristem, and for the whole session: every annotated shape and type is checked at every call.
jaxtyping.jaxtyped = annotations.checked_call
jaxtyping.install_import_hook(["meristem", "reference", "reference_trainer"], "annotations.checked")

# [3] + [2, 3] is a mistake, not a broadcast. For all that is computed, the fixtures of a module too: with another setting JAX
# would compile everything again.
jax.config.update("jax_numpy_rank_promotion", "raise")

# The file about numbers that an earlier version wrote: it runs the programs that users run, optimized.
TO_THE_BIT = {"test_io"}

# Files with reports and tables, whose baselines, intervals and searches for faults take less: fewer epochs of scikit-learn's
# MLP and trees of its boosting, two strengths of linear models, fewer draws of a bootstrap, smaller forests. Not so in a soak,
# nor in test_baselines.py and test_tables_fit.py, which are about them, nor forests in files about faults.
COMPARING = {"docs", "inputs_contract", "inputs_found", "report", "report_words", "tables_commands", "tables_mistakes"}
COMPARING |= {"full_disk", "hostile_folders", "streams", "tables_onnx", "tables_resume", "tables_time", "work_once"}
COMPARING |= {"c_models", "conformal", "metrics", "report_browser", "learning_curve", "all_or_nothing", "export_bits"}
COMPARING |= {
    "data_damaged",
    "flash_budget",
    "folders",
    "image_folders",
    "tables_after",
    "show",
    "estimator_calls",
    "io_forged",
}
FAULTS = {"data_faults", "more_data_faults", "splits"}

# Each worker takes one file after another: those that take longest come first, so that no worker is left with a long one when
# the others have finished. (pytest-xdist would take those with most tests first.) The examples of the documentation find
# programs that scikit-learn's checks have compiled.
LONGEST = [
    "docs",
    "report",
    "workers",
    "conv_bodies",
    "cv",
    "inputs_found",
    "estimators",
    "sklearn_checks",
    "flash_budget",
    "settle",
    "live",
    "image_folders",
    "estimators_training",
    "devices",
    "ray",
    "c_images",
    "image_studies",
    "regression_losses",
    "own_convolution",
    "own_feed_forward",
    "runs",
    "plots",
    "tables_fit",
    "room",
    "splits",
    "training",
    "model_files",
    "watch",
    "tagging_studies",
    "estimators_prior",
    "compact",
    "hostile_folders",
    "tables_resume",
    "tables_after",
    "temperature",
    "conformal",
    "c_models",
    "c_integer",
    "c_devices",
    "image_cv",
    "streams",
    "c",
    "image_training",
    "image_classifier",
    "tables_commands",
    "own_models",
    "stages",
    "io_forged",
    "sparse",
    "distillation",
    "surroundings",
    "full_disk",
    "nn_details",
    "inputs_contract",
    "figures",
    "reference",
    "figures_learning",
    "cli",
    "trunk",
    "survival",
    "run_files",
    "io",
    "reference_trainer",
    "studies",
    "report_words",
    "data_faults",
    "learning_curve",
    "streaming",
    "growth",
    "axes",
    "watch_browser",
    "folders",
    "checkpoints",
    "signals",
    "interrupted_fit",
    "estimator_calls",
    "export_estimators",
    "float64",
    "replay",
    "tables_time",
    "input_checks",
    "downloads",
    "long_epochs",
    "estimators_weights",
    "cache",
    "estimators_programs",
    "compact_ops",
    "objectives",
    "figures_tried",
    "estimators_advice",
    "models",
    "loggers",
    "user_optimizer",
    "paths",
    "io_refused",
    "io_writing",
]


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return  # alone: in the order of the command line, which mutants.py relies on
    place = {f"test_{name}": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@pytest.fixture(scope="module", autouse=True)
def quick_comparisons(request: pytest.FixtureRequest) -> Iterator[None]:
    name = request.module.__name__.removeprefix("test_")
    if os.environ.get("MERISTEM_SOAK", "1") != "1" or name not in COMPARING | FAULTS:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("meristem.report.baseline_models.EPOCHS", 20)
        patch.setattr("meristem.report.baseline_models.TREES", 20)
        patch.setattr("meristem.report.baseline_models.ALPHAS", (1.0, 0.1))
        patch.setattr("meristem.report.baseline_models.COSTS", (0.1, 1.0))
        patch.setattr("meristem.report.scoring.DRAWS", 100)
        if name not in FAULTS:
            patch.setattr("meristem.tables.leaks_and_drift.TREES", 10)
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_compiles(request: pytest.FixtureRequest) -> Iterator[None]:
    jax.config.update("jax_disable_most_optimizations", request.module.__name__ not in TO_THE_BIT)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def pytest_collection_finish() -> None:
    """What was imported stays: nobody needs to look through it for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 40)  # what is made here mostly stays, too
    if fit_context := sys.modules.get("meristem.estimators.fit_context"):
        fit_context.are_set_aside = True  # else each fit would count two million objects


def pytest_sessionfinish() -> None:
    """Once more, so that whoever left something open is told of; pytest then would look through everything five times."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is an extra that the tests' extra does not hold")
