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
from meristem.files.network_file import make_part
from meristem.json_schema import OBJECT, TEXT, check_json, first_difference
from meristem.nn.body import PART, described, is_body

MODEL = {"model": TEXT, "values": OBJECT, "bodies": {TEXT: OBJECT}}


def pack_model(model: eqx.Module) -> tuple[dict[str, Any], Arrays]:
    """Return a model's header and arrays."""
    header = {"model": type(model).__name__, "values": _values(model), "bodies": _bodies(model)}
    return header, by_path(eqx.filter(model, _is_array))


def load_model(header: Any, arrays: Mapping[str, np.ndarray], like: Any) -> Any:
    """Return `like` with the arrays in it, on the device where they are JAX arrays in `like`."""
    return on_device(unpack_model(header, arrays, like), like)


def unpack_model(header: Any, arrays: Mapping[str, np.ndarray], like: Any) -> Any:
    """Return `like` with the arrays in it, on the host; ValueError of one line that says what differs."""
    check_json(header, MODEL)
    if like is None:
        name = header["model"][:40]
        raise ValueError(f"it holds the arrays of a {name!r}; give a model of the same structure: load(path, like=model).")
    if not isinstance(like, eqx.Module):
        raise ValueError(f"like is a {type(like).__name__}; give a model of the same structure.")
    resized = _with_capacities(like, header["bodies"])
    in_file, in_model = header["values"] | header["bodies"], _values(like) | _bodies(resized)
    if difference := first_difference(in_file, in_model):
        place, *values = difference
        texts = ["not there" if value is None else str(value)[:60] for value in values]
        raise ValueError(f"{place!r} is {texts[0]} in the file and {texts[1]} in the model that like=… gives.")
    template, rest = eqx.partition(resized, _is_array)
    filled = fill(template, arrays, "the model that like=… gives has another structure: ")
    check_model(filled)
    return eqx.combine(filled, rest)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def _values(model: PyTree) -> dict[str, str]:
    """Return the numbers and texts among a model's leaves by path, as their reprs."""
    return {name: repr(leaf) for name, leaf in named_leaves(model) if isinstance(leaf, bool | int | float | complex | str)}


def _bodies(model: PyTree) -> dict[str, dict[str, Any]]:
    """Return the names and options of a model's bodies by path."""
    descriptions = {name: described(leaf) for name, leaf in named_leaves(model, is_body) if is_body(leaf)}
    return {name: {"body": description.pop(PART), **description} for name, description in descriptions.items()}


def _with_capacities(model: PyTree, bodies: Mapping[str, Any]) -> PyTree:
    """Return the model with the file's capacities for bodies that grow; a resized body is made of shapes."""

    def resized(path: Any, body: Any) -> Any:
        before = body.axes().capacity if is_body(body) else 0
        capacity = bodies.get(path_name(path), {}).get("capacity")
        options = described(body) if before and type(capacity) is int and capacity != before else {}
        if "capacity" not in options:
            return body
        sizes = before, capacity
        made = [jax.eval_shape(lambda n=n: make_part(options | {"capacity": n}, [type(body)])) for n in sizes]
        return jax.tree.map(with_new_shape, body, *made)

    def with_new_shape(leaf: Any, before: Any, now: Any) -> jax.ShapeDtypeStruct:
        members = leaf.shape[: leaf.ndim - before.ndim]  # of a body in a population
        return jax.ShapeDtypeStruct((*members, *now.shape), leaf.dtype)

    return jax.tree_util.tree_map_with_path(resized, model, is_leaf=is_body)
