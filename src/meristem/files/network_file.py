"""Networks as data: the structure as a few names and sizes, everything else as arrays.

    {"body": "budding", "n_in": 2, "n_out": 1, "embed_bias": false, "head_bias": true, "members": [], "feature_gates": false,
     "width": 10, "capacity": 8, "activation": "relu", "probe": "bud", "root": "layer", "learn_width": false}

The second line is `body.options()`; "body" is the lower-case name of the class, under which it registered itself (nn/body.py).
Where embedding or head are not plain linear maps, "embed" and "head" describe them: {"part": "linear", …}. A tree of leaves is
an array, so a grown network is written like a new one. To load a network, the classes' constructors are traced for its shapes,
without computing anything, and the arrays filled in. An option that an older file lacks has the constructor's default.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import short
from meristem.complexity import layer_sizes
from meristem.files.named_arrays import Arrays, by_path, check_network, fill
from meristem.gate import Confined
from meristem.json_schema import ANY, FLAG, OBJECT, SIZE, TEXT, check_json
from meristem.memory import shapes_alone
from meristem.nn.body import PART, REGISTRY, Body, Part, described, part_name
from meristem.nn.linear import Linear
from meristem.nn.network import Network, described_ends

STRUCTURE: dict[str, Any] = {  # and the options of the body; not all files have the entries with "?"
    **{"body": TEXT, "n_in": SIZE, "n_out": SIZE, "width": SIZE, "embed_bias": FLAG, "head_bias": FLAG, "members": [SIZE]},
    **{"feature_gates?": FLAG, "embed?": OBJECT, "head?": OBJECT},
}
RESERVED = {name.removesuffix("?") for name in STRUCTURE} - {"width"}  # options of bodies have other names
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
    network = fill(shapes(structure, kinds), arrays)
    check_network(network)
    return network


def check_sizes(structure: Structure, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError if the structure is larger than the arrays, before its shapes are computed."""
    most = max((array.size for array in arrays.values()), default=0)
    for name in SIZES:
        value = structure.get(name)
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
    """Return the network of a structure with shapes and types in place of arrays; nothing is computed, however large it is."""
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

    network = jax.eval_shape(
        lambda: Network(
            end("embed", n_in, width),
            cast(Body, make_part(body_entries, kinds)),
            end("head", width, n_out),
            features=Confined(jnp.ones(n_in)) if structure.get("feature_gates") else None,
        )
    )
    return population(network, tuple(structure["members"]))


@cached_by_structure
def n_layers(structure: Structure, kinds: Kinds = ()) -> int:
    """Return the number of soft sizes of such a network's body, which is the length of a history's rows."""
    single = shapes({**structure, "members": []}, kinds)
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
    for name, value in options.items():
        if isinstance(value, int) and abs(value) >= 2**31:
            raise ValueError(f"{name}={short(value)} must be below 2**31.")
    key = {"key": jax.random.key(0)} if "key" in inspect.signature(part).parameters else {}
    parts = {name: [make_part(entry, kinds) for entry in value] for name, value in options.items() if _are_parts(value)}
    made = part(**{**options, **parts}, **key)
    actual = made.options()
    for name, value in options.items():
        if name not in actual or actual[name] != value:
            raise ValueError(f"a {part.__name__} of {name}={short(value)} says otherwise of itself.")
    return made


def _are_parts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) and PART in entry for entry in value)


def population(tree: Any, members: tuple[int, ...]) -> Any:
    """Return the shapes of stacked trees, [*members, …]."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((*members, *leaf.shape), leaf.dtype), tree)
