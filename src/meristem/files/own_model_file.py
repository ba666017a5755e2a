"""A user's own Equinox model as data: its arrays by path; the structure is that of a model given to `load`.

    {"model": "Classifier", "values": {"dropout.p": "0.5"}, "bodies": {"trunk": {"body": "budding", "width": 10, …}}}

Arrays are filled in. Everything else must be equal in both models: numbers and texts among the leaves ("values"), and the
options of bodies, except for the capacity of one that grows: the given model then takes the file's. Functions and static
fields are not part of a file.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from meristem.files.named_arrays import Arrays, by_path, check_model, fill, named_leaves, on_device, path_name
from meristem.files.network_file import body_name, make_part
from meristem.nn.body import Body, is_body


def pack_model(model: eqx.Module) -> tuple[dict[str, Any], Arrays]:
    """Return a model's header and arrays.

    >>> import jax
    >>> from meristem.nn import Linear, Tunnel
    >>> class Own(eqx.Module):
    ...     trunk: Tunnel
    ...     head: Linear
    >>> own = Own(Tunnel(3, 2, key=jax.random.key(0)), Linear(3, 1, key=jax.random.key(1)))
    >>> header, arrays = pack_model(own)
    >>> list(header["bodies"]), arrays["trunk.gate.value"].shape
    (['trunk'], (2, 3))
    """
    arrays = eqx.filter(model, _is_array)
    header = {"model": type(model).__name__, "values": _values(model), "bodies": _bodies(model)}
    return header, by_path(arrays)


def unpack_model(header: Any, arrays: Mapping[str, np.ndarray], like: Any) -> Any:
    """Return `like` with the arrays in it; ValueError of one line that says what differs."""
    template, filled, rest = fill_model(header, arrays, like)
    return eqx.combine(on_device(template, filled), rest)


def fill_model(header: Any, arrays: Mapping[str, np.ndarray], like: Any) -> tuple[Any, Any, Any]:
    """Return the arrays of `like` as shapes, the same filled on the host, and its other leaves, after all checks."""
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
    resized = _with_capacities(like, header["bodies"])
    for in_model, in_file in ((_values(like), header["values"]), (_bodies(resized), header["bodies"])):
        for place in sorted(set(in_model) | set(in_file)):
            _check_same(place, in_model.get(place), in_file.get(place))
    template, rest = eqx.partition(resized, _is_array)
    try:
        filled = fill(template, arrays)
    except ValueError as error:
        raise ValueError(f"the model that like=… gives has another structure: {error}") from error
    check_model(filled)
    return template, filled, rest


def _check_same(place: str, in_model: Any, in_file: Any) -> None:
    """Raise ValueError unless a value or the options of a body are the same in `like` and in the file."""
    what = repr(place)
    if isinstance(in_model, dict) and isinstance(in_file, dict):
        name = next((name for name in in_file | in_model if in_model.get(name) != in_file.get(name)), None)
        what, in_model, in_file = f"{name} of {what}", in_model.get(name), in_file.get(name)
    if in_model != in_file:
        texts = ["not there" if value is None else str(value)[:60] for value in (in_file, in_model)]
        raise ValueError(f"{what} is {texts[0]} in the file and {texts[1]} in the model that like=… gives.")


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def _values(model: PyTree) -> dict[str, str]:
    """Return the numbers and texts among a model's leaves by path, as their reprs."""
    return {name: repr(leaf) for name, leaf in named_leaves(model) if isinstance(leaf, bool | int | float | complex | str)}


def _bodies(model: PyTree) -> dict[str, dict[str, Any]]:
    """Return the names and options of a model's bodies by path."""
    leaves = named_leaves(model, is_body)
    return {name: {"body": body_name(type(leaf)), **leaf.options()} for name, leaf in leaves if is_body(leaf)}


def _with_capacities(model: PyTree, bodies: Mapping[str, Any]) -> PyTree:
    """Return the model with the file's capacities for bodies that grow; a resized body is made of shapes."""

    def resized(path: Any, node: Any) -> Any:
        options = bodies.get(path_name(path)) if is_body(node) and node.axes().capacity else None
        capacity = options.get("capacity") if isinstance(options, dict) else None
        return node if capacity is None or capacity == node.axes().capacity else _with_capacity(node, capacity)

    return jax.tree_util.tree_map_with_path(resized, model, is_leaf=is_body)


def _with_capacity(body: Body, capacity: Any) -> Body:
    """Return the shapes of the body as its constructor makes it with another capacity."""
    options = body.options()
    if "capacity" not in options or type(capacity) is not int:
        return body

    def wider(old: Any, new: Any, before: Any) -> jax.ShapeDtypeStruct:
        members = old.shape[: old.ndim - before.ndim]  # of a body in a population
        return jax.ShapeDtypeStruct((*members, *new.shape), old.dtype)

    capacities = capacity, body.axes().capacity
    made = [jax.eval_shape(lambda n=n: make_part(type(body), options | {"capacity": n})) for n in capacities]
    return jax.tree.map(wider, body, *made)
