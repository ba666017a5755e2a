"""Networks as data: the structure as a few names and sizes, the rest as arrays.

    {"body": "budding", "n_in": 2, "n_out": 1, "embed_bias": false, "head_bias": true, "members": [], "feature_gates": false,
     "width": 10, "capacity": 8, "activation": "relu", "probe": "bud", "root": "layer", "learn_width": false}

The second line is what the body says of itself, `body.options()`; "body" is the name of its class in small letters, by which
classes register themselves (nn/part.py). Where embedding or head are no plain linear maps, "embed" and "head" describe them:
{"part": "linear", …}, as a body of several stages describes its parts. A tree of leaves is one of the arrays, so a grown
network is written like a fresh one. A network is rebuilt by asking these classes for the shapes of such a network, which runs
nothing, and filling them. An option that an older file lacks has the constructor's default.
"""

import inspect
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import cut
from meristem.complexity import layer_sizes
from meristem.files.arrays import Arrays, by_path, check, fill, on_device
from meristem.files.document import in_one_line
from meristem.files.meaning import check_network
from meristem.gate import Confined
from meristem.memory import shapes_alone
from meristem.nn.body import Body
from meristem.nn.ends import described_ends
from meristem.nn.linear import Linear
from meristem.nn.network import BODIES, Network
from meristem.nn.part import PART, REGISTRY, Part, part_name

KIND = "network"
ENTRIES = ["body", "n_in", "n_out", "width", "embed_bias", "head_bias", "members"]  # of every network; `width` of most bodies
LATER = ["feature_gates", "embed", "head"]  # not in all files
SIZES = ["n_in", "n_out", "width", "depth", "capacity"]
Structure = dict[str, Any]
Kinds = Sequence[type]


def pack(network: Network) -> tuple[Structure, Arrays]:
    """A network's structure, made of JSON's values, and its arrays by path, on the host; also of a population.

    >>> import jax
    >>> from meristem.nn import Network
    >>> structure, arrays = pack(Network.create("plain", n_in=2, n_out=1, width=4, depth=3, key=jax.random.key(0)))
    >>> structure["body"], structure["depth"], arrays["body.weight"].shape
    ('plain', 3, (3, 4, 4))
    """
    structure, arrays = structure_of(network), by_path(network)
    try:
        check(shapes(structure, [type(network.body)]), arrays)
    except ValueError as error:
        raise ValueError(f"This network cannot be saved, it is not built as Network.create does: {error}") from error
    return structure, arrays


def unpack(structure: Any, arrays: Mapping[str, np.ndarray], kinds: Kinds = ()) -> Network:
    """The network; raises ValueError of one line where structure and arrays do not fit.

    >>> import jax
    >>> from meristem.nn import Network
    >>> network = Network.create("budding", n_in=2, n_out=1, capacity=8, key=jax.random.key(0))
    >>> unpack(*pack(network)).body.capacity
    8
    """
    return on_device(shapes(structure, kinds), checked(structure, arrays, kinds))


def checked(structure: Any, arrays: Mapping[str, np.ndarray], kinds: Kinds = ()) -> Network:
    """The network with arrays of the host, if it can be computed; ValueError of one line else."""
    check_sizes(structure, arrays)
    network = fill(shapes(structure, kinds), arrays)
    check_network(network)
    return network


def check_sizes(structure: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError where the structure is larger than the arrays, before anything is made of it."""
    most = max((array.size for array in arrays.values()), default=0)
    for name in SIZES:
        value = structure.get(name) if isinstance(structure, dict) else None
        if type(value) is int and value > most:
            raise ValueError(f"{name}={_told(value)} is more than its arrays have: {most} numbers in the largest.")


def structure_of(network: Network) -> Structure:
    """All of a network but its numbers."""
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
    # A body knows nothing of populations: it is asked as if it were alone.
    alone = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[len(members) :], leaf.dtype), network)
    options = alone.body.options()
    taken = [name for name in options if name in ENTRIES + LATER and name != "width"]
    if taken:
        raise ValueError(
            f"A {type(network.body).__name__} cannot be saved: its option {taken[0]!r} is what files call something else; "
            "give the constructor's argument another name."
        )
    return structure | described_ends(alone) | options


def body_name(kind: type) -> str:
    """What files call a body: its class, in small letters.

    >>> from meristem.nn import Budding
    >>> body_name(Budding)
    'budding'
    """
    name = part_name(kind)
    if BODIES.get(name, kind) is not kind:
        raise ValueError(f"{name!r} is a body of meristem's own; give your class {kind.__name__} another name to save it.")
    return name


def shapes(structure: Any, kinds: Kinds = ()) -> Network:
    """The network of a structure with shapes and types in place of arrays; nothing is computed, however large it is.

    Of a structure that was asked for before, the same: to find them takes longer than to read a small file.

    >>> import jax
    >>> from meristem.nn import Network
    >>> structure = structure_of(Network.create("highway", n_in=2, n_out=1, width=4, depth=3, key=jax.random.key(0)))
    >>> shapes({**structure, "depth": 10**9}).body.bias.shape
    (1000000000, 4)
    """
    if not isinstance(structure, dict):
        raise ValueError("the structure of a network is no dictionary.")
    try:
        text = json.dumps(structure, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return _shapes(structure, kinds)
    return _known_shapes(text, (*REGISTRY.values(), *kinds), jax.config.read("jax_enable_x64"))


@lru_cache(maxsize=64)
def _known_shapes(text: str, kinds: tuple[type, ...], x64: bool) -> Network:
    return _shapes(json.loads(text), kinds)


@shapes_alone()
def _shapes(structure: Structure, kinds: Kinds) -> Network:
    name, body = structure.get("body"), body_class(structure.get("body"), kinds)
    constructor = {key: value for key, value in inspect.signature(body).parameters.items() if key != "key"}
    required = {key for key, parameter in constructor.items() if parameter.default is parameter.empty} | set(ENTRIES)
    off = (required - set(structure)) | (set(structure) - set(ENTRIES + LATER) - set(constructor))
    if off:
        raise ValueError(
            f"the structure of a {name} network has other entries: {', '.join(cut(entry, 40) for entry in sorted(off)[:3])}."
        )
    structure = dict[str, Any](feature_gates=False) | structure
    flags = ["embed_bias", "head_bias", "feature_gates"]
    for entries, kind, what in ((flags, bool, "true or false"), (["members"], list, "sizes")):
        for entry in entries:
            if not isinstance(structure[entry], kind):
                raise ValueError(f"{entry}={_told(structure[entry])} must be {what}.")
    n_in, n_out, width = (_size(entry, structure[entry]) for entry in ("n_in", "n_out", "width"))
    members = tuple(_size("members", count) for count in structure["members"])

    def end(name: str, *sizes: int) -> Part:
        if name in structure:
            return made_part(structure[name], kinds)
        return Linear(*sizes, use_bias=structure[f"{name}_bias"], key=jax.random.key(0))

    made = jax.eval_shape(
        lambda: Network(
            end("embed", n_in, width),
            cast(Body, made_with(body, {key: structure[key] for key in constructor if key in structure}, kinds)),
            end("head", width, n_out),
            features=Confined(jnp.ones(n_in)) if structure["feature_gates"] else None,
        )
    )
    return population(made, members)


def n_layers(structure: Structure, kinds: Kinds = ()) -> int:
    """How many soft sizes the body of such a network has: as long are the rows of a history."""
    text = json.dumps({**structure, "members": []}, sort_keys=True)
    return _known_layers(text, (*REGISTRY.values(), *kinds))


@lru_cache(maxsize=64)
def _known_layers(text: str, kinds: tuple[type, ...]) -> int:
    alone = shapes(json.loads(text), kinds)
    sample = jax.ShapeDtypeStruct((1, *alone.input_shape), alone.dtype)
    return int(jax.eval_shape(lambda network, x: layer_sizes(network, x), alone, sample).shape[0])


def body_class(name: Any, kinds: Kinds) -> type[Body]:
    """The body that a file calls so."""
    body = part_class("body", name, kinds)
    if not issubclass(body, Body):
        raise ValueError(f"body={name!r} is no body, but a part of a network.")
    return body


def part_class(entry: str, name: Any, kinds: Kinds) -> type[Part]:
    """The part that a file calls so: one of the `kinds` that are given, or of those that registered themselves."""
    classes = REGISTRY | {part_name(kind): kind for kind in kinds if issubclass(kind, Part)}
    if not isinstance(name, str) or name not in classes:
        raise ValueError(
            f"{entry}={str(name)[:40]!r} is not known; import the module that defines the class, or give it: "
            f"load(path, kinds=[…]). There are {', '.join(classes)}."
        )
    return classes[name]


def made_part(description: Any, kinds: Kinds) -> Part:
    """The part that a file describes; called where nothing is computed."""
    if not isinstance(description, dict):
        raise ValueError(f"a part of its network is {_told(description)}, which is no description.")
    options = {name: value for name, value in description.items() if name != PART}
    return made_with(part_class(PART, description.get(PART), kinds), options, kinds)


@shapes_alone()
def made_with(body: type[Part], options: Mapping[str, Any], kinds: Kinds = ()) -> Part:
    """The part that its constructor makes of a file's options, if it keeps them; called where nothing is computed."""
    for name, value in options.items():
        if isinstance(value, int) and abs(value) >= 2**31:
            raise ValueError(f"{name}={_told(value)} must be below 2**31.")
    key = {"key": jax.random.key(0)} if "key" in inspect.signature(body).parameters else {}
    parts = {name: [made_part(entry, kinds) for entry in value] for name, value in options.items() if _are_parts(value)}
    try:
        made = body(**{**options, **parts}, **key)
        kept = made.options()
    except Exception as error:  # a constructor of a person's own may say anything to options that somebody forged
        raise ValueError(in_one_line(error)) from error
    off = [name for name, value in options.items() if name not in kept or kept[name] != value]
    if off:
        raise ValueError(f"a {body.__name__} of {off[0]}={_told(options[off[0]])} says otherwise of itself.")
    return made


def _are_parts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) and PART in entry for entry in value)


def population(tree: Any, members: tuple[int, ...]) -> Any:
    """The shapes of that many trees stacked."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((*members, *leaf.shape), leaf.dtype), tree)


def _size(name: str, value: Any) -> int:
    """A size as a file gives it, which may be anything."""
    if type(value) is not int or not 1 <= value < 2**31:
        raise ValueError(f"{name}={_told(value)} must be an integer of at least 1 and below 2**31.")
    return value


def _told(value: Any) -> str:
    """A value as a message tells it: whatever it is, not at length."""
    return cut(repr(value), 40)
