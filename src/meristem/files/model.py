"""A person's own Equinox model as data: its arrays by path. The structure is that of a model which is given to load it into.

    {"model": "Classifier", "values": {"dropout.p": "0.5"}, "bodies": {"trunk": {"body": "budding", "width": 10, …}}}

Arrays are filled in; what else there is in the two models must be the same: numbers and texts among the leaves ("values"), and
what bodies say of themselves, but for the capacity of one that grows: the given model then gets the file's. Functions and
static fields are no part of a file.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from meristem.files.arrays import Arrays, by_path, fill, on_device, path_name
from meristem.files.meaning import check_model
from meristem.files.network import body_name, made_with
from meristem.nn.body import Body, is_body

KIND = "model"


def pack(model: eqx.Module) -> tuple[dict[str, Any], Arrays]:
    """A model's header and arrays.

    >>> import jax
    >>> from meristem.nn import Linear, Tunnel
    >>> class Own(eqx.Module):
    ...     trunk: Tunnel
    ...     head: Linear
    >>> own = Own(Tunnel(3, 2, key=jax.random.key(0)), Linear(3, 1, key=jax.random.key(1)))
    >>> header, arrays = pack(own)
    >>> list(header["bodies"]), arrays["trunk.gate.value"].shape
    (['trunk'], (2, 3))
    """
    arrays = eqx.filter(model, _is_array)
    header = {"model": type(model).__name__, "values": _values(model), "bodies": _bodies(model)}
    return header, by_path(arrays)


def unpack(header: Any, arrays: Mapping[str, np.ndarray], like: Any) -> Any:
    """`like` with the arrays in it; raises ValueError of one line with what differs."""
    template, filled, rest = checked(header, arrays, like)
    return eqx.combine(on_device(template, filled), rest)


def checked(header: Any, arrays: Mapping[str, np.ndarray], like: Any) -> tuple[Any, Any, Any]:
    """The shapes of `like`, the same with arrays of the host, and the rest of it; ValueError of one line where they differ."""
    if not isinstance(header, dict) or set(header) != {"model", "values", "bodies"}:
        raise ValueError("a model has the entries model, values and bodies, and no other.")
    if like is None:
        name = str(header["model"])[:40]
        raise ValueError(f"it holds the arrays of a {name!r}; give a model of the same structure: load(path, like=model).")
    if not isinstance(like, eqx.Module):
        raise ValueError(f"like is a {type(like).__name__}; give a model of the same structure.")
    for what in ("values", "bodies"):
        if not isinstance(header[what], dict):
            raise ValueError(f"its {what} are no dictionary.")
    roomy = _with_capacities(like, header["bodies"])
    for here, there in ((_values(like), header["values"]), (_bodies(roomy), header["bodies"])):
        for place in sorted(set(here) | set(there)):
            _check_same(place, here.get(place), there.get(place))
    template, rest = eqx.partition(roomy, _is_array)
    try:
        filled = fill(template, arrays)
    except ValueError as error:
        raise ValueError(f"the model that like=… gives has another structure: {error}") from error
    check_model(filled)
    return template, filled, rest


def _check_same(place: str, here: Any, there: Any) -> None:
    """Raise ValueError unless a value or the options of a body are the same in `like` and in the file."""
    what = repr(place)
    if isinstance(here, dict) and isinstance(there, dict):
        off = next((name for name in there | here if here.get(name) != there.get(name)), None)
        what, here, there = f"{off} of {what}", here.get(off), there.get(off)
    if here != there:
        said = ["not there" if one is None else str(one)[:60] for one in (there, here)]
        raise ValueError(f"{what} is {said[0]} in the file and {said[1]} in the model that like=… gives.")


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def _values(model: PyTree) -> dict[str, str]:
    """The plain leaves of a model by path, as Python writes them."""
    paths, _ = jax.tree_util.tree_flatten_with_path(model)
    return {path_name(path): repr(leaf) for path, leaf in paths if isinstance(leaf, bool | int | float | complex | str)}


def _bodies(model: PyTree) -> dict[str, dict[str, Any]]:
    """What the bodies in a model say of themselves, by path."""
    paths, _ = jax.tree_util.tree_flatten_with_path(model, is_leaf=is_body)
    return {path_name(path): {"body": body_name(type(leaf)), **leaf.options()} for path, leaf in paths if is_body(leaf)}


def _with_capacities(model: PyTree, bodies: Mapping[str, Any]) -> PyTree:
    """The model whose bodies that grow have the file's capacities; of such a body only shapes."""

    def resized(path: Any, node: Any) -> Any:
        said = bodies.get(path_name(path)) if is_body(node) and node.axes().capacity else None
        wanted = said.get("capacity") if isinstance(said, dict) else None
        return node if wanted is None or wanted == node.axes().capacity else _with_capacity(node, wanted)

    return jax.tree_util.tree_map_with_path(resized, model, is_leaf=is_body)


def _with_capacity(body: Body, capacity: Any) -> Body:
    """As its constructor makes it with another capacity: the values are not looked at, a body that has grown does as well."""
    options = body.options()
    if "capacity" not in options or type(capacity) is not int:
        return body

    def wider(old: Any, new: Any, before: Any) -> jax.ShapeDtypeStruct:
        members = old.shape[: old.ndim - before.ndim]  # of a body in a population
        return jax.ShapeDtypeStruct((*members, *new.shape), old.dtype)

    rooms = capacity, body.axes().capacity
    made = [jax.eval_shape(lambda n=n: made_with(type(body), options | {"capacity": n})) for n in rooms]
    return jax.tree.map(wider, body, *made)
