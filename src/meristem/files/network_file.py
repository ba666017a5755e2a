"""Models as data: the structure of a network as a few names and sizes, that of a user's own model from a template.

    {"body": "budding", "n_in": 2, "n_out": 1, "embed_bias": false, "head_bias": true, "members": [], "feature_gates": false,
     "width": 10, "capacity": 8, "activation": "relu", "probe": "bud", "root": "layer", "learn_width": false}

The second line is `body.options()`; "body" is the lower-case name of the class, under which it registered itself (nn/body.py).
Where embedding or head are not plain linear maps, "embed" and "head" describe them: {"part": "linear", …}. A tree of leaves is
an array, so a grown network is written like a new one. To load a network, the classes' constructors are traced for its shapes,
without computing anything, and the arrays filled in. An option that an older file lacks has the constructor's default.

    {"model": "Classifier", "values": {"dropout.p": "0.5"}, "bodies": {"trunk": {"body": "budding", "width": 10, …}}}

The structure of an Equinox model is that of a model given to `load`. Everything but arrays must be equal in both: numbers and
texts among the leaves ("values"), and the options of bodies, except for the capacity of one that grows: the given model then
takes the file's. Functions and static fields are not part of a file.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from meristem.check import short
from meristem.complexity import layer_sizes
from meristem.files.named_arrays import Arrays, by_path, check_model, fill, named_leaves, path_name
from meristem.gate import Confined
from meristem.json_schema import ANY, FLAG, OBJECT, SIZE, TEXT, check_json, first_difference
from meristem.memory import shapes_alone
from meristem.nn.body import PART, REGISTRY, Body, Part, described, is_body, part_name
from meristem.nn.linear import Linear
from meristem.nn.network import Network, described_ends

STRUCTURE: dict[str, Any] = {  # and the options of the body; not all files have the entries with "?"
    **{"body": TEXT, "n_in": SIZE, "n_out": SIZE, "width": SIZE, "embed_bias": FLAG, "head_bias": FLAG, "members": [SIZE]},
    **{"feature_gates?": FLAG, "embed?": OBJECT, "head?": OBJECT},
}
RESERVED = {name.removesuffix("?") for name in STRUCTURE} - {"width"}  # options of bodies have other names
MODEL = {"model": TEXT, "values": OBJECT, "bodies": {TEXT: OBJECT}}
SIZES = ["n_in", "n_out", "width", "depth", "capacity"]
Structure = dict[str, Any]
Kinds = Sequence[type]
T = TypeVar("T")


def pack_network(network: Network) -> tuple[Structure, Arrays]:
    """Return a network's or a population's structure, made of JSON's values, and its arrays by path, on the host."""
    return structure_of(network), by_path(network)


def unpack_network(structure: Structure, arrays: Mapping[str, np.ndarray], kinds: Kinds = ()) -> Network:
    """Return the network, on the host, after all checks; ValueError of one line if it cannot be computed."""
    check_sizes(structure, arrays)
    network = fill(population(shapes(structure, kinds), structure["members"]), arrays)
    check_model(network)
    return network


def check_sizes(structure: Structure, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError if the structure is larger than the arrays, before its shapes are computed."""
    most = max((array.size for array in arrays.values()), default=0)
    for name in SIZES:
        value = None if name == "n_in" and "embed" in structure else structure.get(name)  # of an image n_in is its height
        if type(value) is int and value > most:
            raise ValueError(f"{name}={short(value)} is more than its arrays have: {most} numbers in the largest.")


def structure_of(network: Network) -> Structure:
    """Return everything of a network except its arrays."""
    if type(network) is not Network:
        raise ValueError(f"network is a {type(network).__name__}; give one that Network.create(…) made.")
    n_axes = len(network.members)
    single = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[n_axes:], leaf.dtype), network)
    options = described(single.body)  # those of a body in a single network
    name = options.pop(PART)
    if taken := [option for option in options if option in RESERVED]:
        what = f"A {type(network.body).__name__} cannot be saved: files use {taken[0]!r} for something else"
        raise ValueError(f"{what}; give the constructor's argument another name.")
    return {
        "body": name,
        "n_in": network.input_shape[0],
        "n_out": network.n_out,
        "width": network.width,
        "embed_bias": network.has_embed_bias,
        "head_bias": network.has_head_bias,
        "members": list(network.members),
        "feature_gates": network.features is not None,
        **described_ends(single),
        **options,
    }


def cached_by_structure(function: Callable[..., T]) -> Callable[..., T]:
    """Cache `function(structure, …)` by the structure's JSON text: computing shapes takes longer than reading a small file."""
    from_key = lru_cache(maxsize=64)(lambda text, arguments, *setting: function(json.loads(text), *arguments))

    @wraps(function)
    def call(structure: Any, *arguments: Any) -> T:
        arguments = tuple(tuple(value) if isinstance(value, list) else value for value in arguments)
        setting = tuple(REGISTRY.values()), jax.config.read("jax_enable_x64")
        try:
            key = json.dumps(structure, sort_keys=True), arguments, *setting
            hash(key)
        except (TypeError, ValueError, RecursionError):  # not JSON, or a user's objective that has no hash
            return function(structure, *arguments)
        return from_key(*key)

    return call


@cached_by_structure
@shapes_alone()
def shapes(structure: Structure, kinds: Kinds = ()) -> Network:
    """Return one network of a structure with shapes and types in place of arrays; nothing is computed, however large it is."""
    body = part_class("body", structure.get("body"), kinds)
    if not issubclass(body, Body):
        raise ValueError(f"body={structure['body']!r} is no body, but a part of a network.")
    constructor = {name: value for name, value in inspect.signature(body).parameters.items() if name != "key"}
    options = {name if value.default is value.empty else f"{name}?": ANY for name, value in constructor.items()}
    check_json(structure, options | STRUCTURE)
    n_in, n_out, width = (structure[name] for name in ("n_in", "n_out", "width"))
    body_entries = {PART: structure["body"]} | {name: structure[name] for name in constructor if name in structure}

    def end(name: str, *sizes: int) -> Part:
        if name in structure:
            return make_part(structure[name], kinds)
        return Linear(*sizes, use_bias=structure[f"{name}_bias"], key=jax.random.key(0))

    return jax.eval_shape(
        lambda: Network(
            end("embed", n_in, width),
            cast(Body, make_part(body_entries, kinds)),
            end("head", width, n_out),
            features=Confined(jnp.ones(n_in)) if structure.get("feature_gates") else None,
        )
    )


@cached_by_structure
def n_layers(structure: Structure, kinds: Kinds = ()) -> int:
    """Return the number of soft sizes of such a network's body, which is the length of a history's rows."""
    single = shapes(structure, kinds)
    sample = jax.ShapeDtypeStruct((1, *single.input_shape), single.dtype)
    return int(jax.eval_shape(lambda network, x: layer_sizes(network, x), single, sample).shape[0])


def part_class(entry: str, name: Any, kinds: Kinds) -> type[Part]:
    """Return the class of this name: one of `kinds`, or one that registered itself."""
    classes = REGISTRY | {part_name(kind): kind for kind in kinds if issubclass(kind, Part)}
    if not isinstance(name, str) or name not in classes:
        raise ValueError(
            f"{entry}={str(name)[:40]!r} is not known; import the module that defines the class, or give it: "
            f"load(path, kinds=[…]). There are {', '.join(classes)}."
        )
    return classes[name]


@shapes_alone()
def make_part(description: Mapping[str, Any], kinds: Kinds = ()) -> Part:
    """Call a part's constructor with a file's options, in a trace; ValueError unless the part reports the same options."""
    part = part_class(PART, description.get(PART), kinds)
    options = {name: value for name, value in description.items() if name != PART}
    arguments = options | ({"key": jax.random.key(0)} if "key" in inspect.signature(part).parameters else {})
    for name, value in options.items():
        if isinstance(value, int) and abs(value) >= 2**31:
            raise ValueError(f"{name}={short(value)} must be below 2**31.")
        if isinstance(value, list) and value and all(isinstance(entry, dict) and PART in entry for entry in value):
            arguments[name] = [make_part(entry, kinds) for entry in value]
    made = part(**arguments)
    actual = made.options()
    for name, value in options.items():
        if name not in actual or actual[name] != value:
            raise ValueError(f"a {part.__name__} of {name}={short(value)} says otherwise of itself.")
    return made


def population(tree: Any, members: Sequence[int]) -> Any:
    """Return the shapes of stacked trees, [*members, …]."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((*members, *leaf.shape), leaf.dtype), tree)


def pack_model(model: eqx.Module) -> tuple[dict[str, Any], Arrays]:
    header = {"model": type(model).__name__, "values": _values(model), "bodies": _bodies(model)}
    return header, by_path(eqx.filter(model, _is_array))


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
        raise ValueError("{!r} is {} in the file and {} in the model that like=… gives.".format(*difference))
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
        made = [jax.eval_shape(lambda n=n: make_part(options | {"capacity": n}, [type(body)])) for n in (before, capacity)]
        return jax.tree.map(with_new_shape, body, *made)

    def with_new_shape(leaf: Any, before: Any, now: Any) -> jax.ShapeDtypeStruct:
        members = leaf.shape[: leaf.ndim - before.ndim]  # of a body in a population
        return jax.ShapeDtypeStruct((*members, *now.shape), leaf.dtype)

    return jax.tree_util.tree_map_with_path(resized, model, is_leaf=is_body)
