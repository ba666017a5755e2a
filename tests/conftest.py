"""The settings of the suite: annotations are executed, rank promotion is an error; quick compilation, and nothing twice.

Warnings are errors too (pyproject.toml).
"""

import os
import tempfile
from collections.abc import Iterator
from typing import Any

# Most of what the suite does is compiling. A run has one folder for compiled programs, empty at first, which its workers and
# the processes that tests start share: whoever inherits this environment finds the folder of the run.
if "MERISTEM_TEST_PROGRAMS" not in os.environ:
    folder = tempfile.TemporaryDirectory(prefix="meristem-programs-")  # goes with this process
    os.environ["MERISTEM_TEST_PROGRAMS"] = folder.name
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.environ["MERISTEM_TEST_PROGRAMS"]
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # for what a short test computes, optimizing takes longer than computing

import jax
import pytest
from jaxtyping import install_import_hook

# Before anything imports meristem, and for the whole session: every annotated shape and type is checked at every call.
install_import_hook("meristem", "annotations.checked")

# Files about numbers that are equal to the bit: they run the programs that users run, optimized.
TO_THE_BIT = {"test_training", "test_io"}


@pytest.fixture(scope="module", autouse=True)
def quick_compiles(request: pytest.FixtureRequest) -> Iterator[None]:
    jax.config.update("jax_disable_most_optimizations", request.module.__name__ not in TO_THE_BIT)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(autouse=True)
def strict_ranks() -> Iterator[None]:
    """[3] + [2, 3] is a mistake, not a broadcast."""
    with jax.numpy_rank_promotion("raise"):
        yield


@pytest.fixture(scope="session")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is an extra that the tests' extra does not hold")
