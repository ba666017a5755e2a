"""Networks as data: the structure as a few names and sizes, everything else as arrays.

    {"body": "budding", "n_in": 2, "n_out": 1, "embed_bias": false, "head_bias": true, "members": [], "feature_gates": false,
     "width": 10, "capacity": 8, "activation": "relu", "probe": "bud", "root": "layer", "learn_width": false}

The second line is `body.options()`; "body" is the lower-case name of the class, under which it registered itself (nn/part.py).
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

from meristem.check import cut, short
from meristem.complexity import layer_sizes
from meristem.files.document import in_one_line
from meristem.files.named_arrays import Arrays, by_path, check, check_network, fill, on_device
from meristem.gate import Confined
from meristem.memory import shapes_alone
from meristem.nn.body import Body
from meristem.nn.ends import described_ends
from meristem.nn.linear import Linear
from meristem.nn.network import BODIES, Network
from meristem.nn.part import PART, REGISTRY, Part, part_name

ENTRIES = ["body", "n_in", "n_out", "width", "embed_bias", "head_bias", "members"]  # of every network; `width` of most bodies
LATER = ["feature_gates", "embed", "head"]  # not in all files
SIZES = ["n_in", "n_out", "width", "depth", "capacity"]
Structure = dict[str, Any]
Kinds = Sequence[type]
F = TypeVar("F", bound=Callable[..., Any])


def pack_network(network: Network) -> tuple[Structure, Arrays]:
    """Return a network's or a population's structure, made of JSON's values, and its arrays by path, on the host.

    >>> from meristem.nn import Network
    >>> network = Network.create("budding", n_in=2, n_out=1, capacity=8, key=jax.random.key(0))
    >>> structure, arrays = pack_network(network)
    >>> structure["body"], unpack_network(structure, arrays).body.capacity
    ('budding', 8)
    """
    structure, arrays = structure_of(network), by_path(network)
    try:
        check(shapes(structure, [type(network.body)]), arrays)
    except ValueError as error:
        raise ValueError(f"This network cannot be saved, it is not built as Network.create does: {error}") from error
    return structure, arrays


def unpack_network(structure: Any, arrays: Mapping[str, np.ndarray], kinds: Kinds = ()) -> Network:
    """Return the network; ValueError of one line if structure and arrays do not fit."""
    return on_device(shapes(structure, kinds), fill_network(structure, arrays, kinds))


def fill_network(structure: Any, arrays: Mapping[str, np.ndarray], kinds: Kinds = ()) -> Network:
    """Return the network with arrays of the host, after all checks; ValueError of one line if it cannot be computed."""
    check_sizes(structure, arrays)
    network = fill(shapes(structure, kinds), arrays)
    check_network(network)
    return network


def check_sizes(structure: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError if the structure is larger than the arrays, before its shapes are computed."""
    most = max((array.size for array in arrays.values()), default=0)
    for name in SIZES:
        value = structure.get(name) if isinstance(structure, dict) else None
        if type(value) is int and value > most:
            raise ValueError(f"{name}={short(value)} is more than its arrays have: {most} numbers in the largest.")


def structure_of(network: Network) -> Structure:
    """Return everything of a network except its arrays."""
    if type(network) is not Network:
        raise ValueError(f"network is a {type(network).__name__}; give one that Network.create(…) made.")
    members = list(network.members)
    structure = {
        "body": body_name(type(network.body)),
        "n_in": network.input_shape[0],
        "n_out": network.n_out,
        "width": network.width,
        "embed_bias": network.has_embed_bias,
        "head_bias": network.has_head_bias,
        "members": members,
        "feature_gates": network.features is not None,
    }
    # Options of a body are those of a single network.
    single = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[len(members) :], leaf.dtype), network)
    options = single.body.options()
    taken = [name for name in options if name in ENTRIES + LATER and name != "width"]
    if taken:
        raise ValueError(
            f"A {type(network.body).__name__} cannot be saved: its option {taken[0]!r} is what files call something else; "
            "give the constructor's argument another name."
        )
    return structure | described_ends(single) | options


def body_name(kind: type) -> str:
    """Return the name of a body's class in files."""
    name = part_name(kind)
    if BODIES.get(name, kind) is not kind:
        raise ValueError(f"{name!r} is a body of meristem's own; give your class {kind.__name__} another name to save it.")
    return name


def cached_by_structure(function: F) -> F:
    """Cache `function(structure, …)` by the structure's JSON text: computing shapes takes longer than reading a small file."""

    @lru_cache(maxsize=64)
    def from_text(text: str, arguments: tuple[Any, ...], registered: tuple[type, ...], x64: bool) -> Any:
        return function(json.loads(text), *arguments)

    @wraps(function)
    def call(structure: Any, *arguments: Any) -> Any:
        x64 = jax.config.read("jax_enable_x64")
        try:
            key = json.dumps(structure, sort_keys=True), arguments, tuple(REGISTRY.values()), x64
            hash(key)
        except (TypeError, ValueError, RecursionError):  # not JSON, or a user's objective that has no hash
            return function(structure, *arguments)
        return from_text(*key)

    return cast(F, call)


def shapes(structure: Any, kinds: Kinds = ()) -> Network:
    """Return the network of a structure with shapes and types in place of arrays; nothing is computed, however large it is.

    >>> from meristem.nn import Network
    >>> structure = structure_of(Network.create("highway", n_in=2, n_out=1, width=4, depth=3, key=jax.random.key(0)))
    >>> shapes({**structure, "depth": 10**9}).body.bias.shape
    (1000000000, 4)
    """
    if not isinstance(structure, dict):
        raise ValueError("the structure of a network is no dictionary.")
    return _shapes(structure, tuple(kinds))


@cached_by_structure
@shapes_alone()
def _shapes(structure: Structure, kinds: Kinds) -> Network:
    name = structure.get("body")
    body = part_class("body", name, kinds)
    if not issubclass(body, Body):
        raise ValueError(f"body={name!r} is no body, but a part of a network.")
    constructor = {key: value for key, value in inspect.signature(body).parameters.items() if key != "key"}
    required = {key for key, parameter in constructor.items() if parameter.default is parameter.empty} | set(ENTRIES)
    wrong = (required - set(structure)) | (set(structure) - set(ENTRIES + LATER) - set(constructor))
    if wrong:
        names = ", ".join(cut(entry, 40) for entry in sorted(wrong)[:3])
        raise ValueError(f"the structure of a {name} network has other entries: {names}.")
    structure = dict[str, Any](feature_gates=False) | structure
    flags = ["embed_bias", "head_bias", "feature_gates"]
    for entries, kind, what in ((flags, bool, "true or false"), (["members"], list, "sizes")):
        for entry in entries:
            if not isinstance(structure[entry], kind):
                raise ValueError(f"{entry}={short(structure[entry])} must be {what}.")
    n_in, n_out, width = (_size(entry, structure[entry]) for entry in ("n_in", "n_out", "width"))
    members = tuple(_size("members", count) for count in structure["members"])

    def end(name: str, *sizes: int) -> Part:
        if name in structure:
            return _described_part(structure[name], kinds)
        return Linear(*sizes, use_bias=structure[f"{name}_bias"], key=jax.random.key(0))

    network = jax.eval_shape(
        lambda: Network(
            end("embed", n_in, width),
            cast(Body, make_part(body, {key: structure[key] for key in constructor if key in structure}, kinds)),
            end("head", width, n_out),
            features=Confined(jnp.ones(n_in)) if structure["feature_gates"] else None,
        )
    )
    return population(network, members)


def n_layers(structure: Structure, kinds: Kinds = ()) -> int:
    """Return the number of soft sizes of such a network's body, which is the length of a history's rows."""
    return _n_layers({**structure, "members": []}, tuple(kinds))


@cached_by_structure
def _n_layers(structure: Structure, kinds: Kinds) -> int:
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


def _described_part(description: Any, kinds: Kinds) -> Part:
    if not isinstance(description, dict):
        raise ValueError(f"a part of its network is {short(description)}, which is no description.")
    options = {name: value for name, value in description.items() if name != PART}
    return make_part(part_class(PART, description.get(PART), kinds), options, kinds)


@shapes_alone()
def make_part(part: type[Part], options: Mapping[str, Any], kinds: Kinds = ()) -> Part:
    """Call a part's constructor with a file's options, in a trace; ValueError unless the part reports the same options."""
    for name, value in options.items():
        if isinstance(value, int) and abs(value) >= 2**31:
            raise ValueError(f"{name}={short(value)} must be below 2**31.")
    key = {"key": jax.random.key(0)} if "key" in inspect.signature(part).parameters else {}
    parts = {name: [_described_part(x, kinds) for x in value] for name, value in options.items() if _are_parts(value)}
    try:
        made = part(**{**options, **parts}, **key)
        actual = made.options()
    except Exception as error:  # a user's constructor may raise anything for forged options
        raise ValueError(in_one_line(error)) from error
    for name, value in options.items():
        if name not in actual or actual[name] != value:
            raise ValueError(f"a {part.__name__} of {name}={short(value)} says otherwise of itself.")
    return made


def _are_parts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) and PART in entry for entry in value)


def population(tree: Any, members: tuple[int, ...]) -> Any:
    """Return the shapes of stacked trees, [*members, …]."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((*members, *leaf.shape), leaf.dtype), tree)


def _size(name: str, value: Any) -> int:
    if type(value) is not int or not 1 <= value < 2**31:
        raise ValueError(f"{name}={short(value)} must be an integer of at least 1 and below 2**31.")
    return value
