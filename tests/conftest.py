"""The settings of the suite: annotations are executed, rank promotion is an error, no compilation cache; quick compilation.

Warnings are errors too (pyproject.toml).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from jaxtyping import install_import_hook

# Before anything imports meristem, and for the whole session: every annotated shape and type is checked at every call.
install_import_hook("meristem", "annotations.checked")

jax.config.update("jax_enable_compilation_cache", False)

# Files about numbers that are equal to the bit: they run the programs that users run, as do all commands in processes of their
# own. Elsewhere XLA hardly optimises, for compiling is most of what the suite does.
TO_THE_BIT = {"test_training", "test_long_epochs", "test_streaming", "test_over_batch", "test_io", "test_estimators_training"}


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


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the programs that commands compile, empty at first."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is an extra that the tests' extra does not hold")
