"""That the suite checks annotations: sizes that must agree, types of arrays, what is returned, and everything else."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
from jaxtyping import Array, Float, Int, TypeCheckError

from annotations import checked_call
from meristem.nn import Linear
from meristem.nn.tree import n_leaves

TWO, THREE, WHOLE = (jax.device_put(np.ones(n, kind)) for n, kind in ((2, np.float32), (3, np.float32), (2, np.int32)))


@checked_call()
def added(one: Float[Array, " width"], other: Float[Array, " width"]) -> Float[Array, " width"]:
    return one


@checked_call()
def returned(one: Float[Array, " width"], what: Any) -> Float[Array, " width"]:
    return what


@checked_call()
def within(arrays: dict[str, Float[Array, " width"]], other: "Float[Array, ' width']") -> int:
    return len(arrays)


@checked_call()
def plain(number: int, name: str | None = None) -> float:
    return number if name is None else name  # type: ignore[return-value]


@checked_call()
def one_by_one(rows: Float[Array, " width"], count: int) -> Iterator[int]:
    yield from range(count)


@checked_call()
@dataclass
class Pair:
    one: Float[Array, " width"]
    other: Int[Array, " width"]

    @property
    @checked_call()
    def width(self) -> int:
        return self.one  # type: ignore[return-value]


RIGHT: list[Callable[[], Any]] = [
    lambda: added(TWO, TWO),
    lambda: returned(TWO, TWO),
    lambda: within({"a": TWO}, TWO),
    lambda: plain(1),
    lambda: list(one_by_one(TWO, 2)),
    lambda: Pair(TWO, WHOLE),
    lambda: [added(TWO, TWO), added(THREE, THREE)],  # each call has a width of its own
    lambda: Linear(2, 3, key=jax.random.key(0))(TWO),
]
WRONG: list[Callable[[], Any]] = [
    lambda: added(TWO, THREE),
    lambda: added(TWO, WHOLE),
    lambda: added(TWO, np.ones(2, np.float32)),
    lambda: returned(TWO, THREE),
    lambda: returned(TWO, 3),
    lambda: within({"a": TWO}, THREE),
    lambda: plain("1"),
    lambda: plain(1, "one"),
    lambda: one_by_one(TWO, "2"),
    lambda: Pair(TWO, TWO),
    lambda: Pair(THREE, WHOLE),
    lambda: Pair(TWO, WHOLE).width,
    lambda: Linear(2, 3, key=jax.random.key(0))(np.ones(2)),
    lambda: Linear("2", 3, key=jax.random.key(0)),
    lambda: n_leaves(TWO),
]


@pytest.mark.parametrize("call", RIGHT)
def test_what_fits_passes(call):
    call()


@pytest.mark.parametrize("call", WRONG)
def test_what_does_not_fit_is_an_error(call):
    with pytest.raises(TypeCheckError):
        call()
