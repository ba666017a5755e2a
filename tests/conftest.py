"""The severe settings of the suite: annotations are executed, rank promotion is an error, no compilation cache.

Warnings are errors too (pyproject.toml).
"""

from collections.abc import Iterator
from typing import Any

import jax
import pytest
from jaxtyping import install_import_hook

# Before anything imports meristem, and for the whole session: every annotated shape and type is checked at every call.
install_import_hook("meristem", "annotations.checked")

jax.config.update("jax_enable_compilation_cache", False)


@pytest.fixture(autouse=True)
def strict_ranks() -> Iterator[None]:
    """[3] + [2, 3] is a mistake, not a broadcast."""
    with jax.numpy_rank_promotion("raise"):
        yield


@pytest.fixture(scope="session")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is an extra that the tests' extra does not hold")


@pytest.fixture(scope="module")
def quick_compiles() -> Iterator[None]:
    """Programs that XLA hardly optimises: for files that compile many and care neither for speed nor for the last bit."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
