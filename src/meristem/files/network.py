"""Networks as data: the structure as a few names and sizes, the rest as arrays; and `save` and `load`.

    {"body": "budding", "n_in": 2, "n_out": 1, "width": 10, "capacity": 8, "activation": "relu", "probe": "bud",
     "embed_bias": false, "head_bias": true, "members": []}

A tree of leaves is one of the arrays, so a grown network is written like a fresh one. A network is rebuilt by asking the
class that `nn.network.BODIES` has under that name for the shapes of such a network, which runs nothing, and filling them.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import unknown
from meristem.files.document import PATHS, about, read_document, write_document
from meristem.files.arrays import by_path, check, fill
from meristem.nn.budding import Budding
from meristem.nn.linear import Linear
from meristem.nn.network import BODIES, Network

KIND = "network"
Structure = dict[str, Any]


def save(path: PATHS, network: Network) -> None:
    """Write a network, or a population of them, to a file; `load` gives it back to the bit.

    >>> import jax, jax.numpy as jnp, tempfile
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=10, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.safetensors", network)
    ...     same = load(f"{folder}/model.safetensors")
    >>> bool((same(jnp.ones(2)) == network(jnp.ones(2))).all())
    True
    """
    structure, arrays = pack_network(network)
    write_document(path, KIND, arrays, structure)


def load(path: PATHS) -> Network:
    """The network of a file that `save` wrote. Nothing in the file is executed; what is wrong with it is said in one line.

    >>> load("nowhere.safetensors")
    Traceback (most recent call last):
    ValueError: 'nowhere.safetensors' does not exist; check the path.
    """
    structure, arrays = read_document(path, KIND)
    with about(path):
        return unpack_network(structure, arrays)


def pack_network(network: Network) -> tuple[Structure, dict[str, np.ndarray]]:
    """A network's structure, made of JSON's values, and its arrays by path, on the host.

    >>> import jax
    >>> from meristem.nn import Network
    >>> structure, arrays = pack_network(Network.create("plain", n_in=2, n_out=1, width=4, depth=3, key=jax.random.key(0)))
    >>> structure["body"], structure["depth"], arrays["body.weight"].shape
    ('plain', 3, (3, 4, 4))
    """
    structure, arrays = structure_of(network), by_path(network)
    try:
        check(shapes(structure), arrays)
    except ValueError as error:
        raise ValueError(f"This network cannot be saved, it is not built as Network.create does: {error}") from error
    return structure, arrays


def unpack_network(structure: Any, arrays: Mapping[str, np.ndarray]) -> Network:
    """The network; raises ValueError of one line where structure and arrays do not fit.

    >>> import jax
    >>> from meristem.nn import Network
    >>> network = Network.create("budding", n_in=2, n_out=1, capacity=8, key=jax.random.key(0))
    >>> unpack_network(*pack_network(network)).body.capacity
    8
    """
    return fill(shapes(structure), arrays)


def structure_of(network: Network) -> Structure:
    """All of a network but its numbers."""
    if not isinstance(network, Network):
        raise ValueError(f"network is a {type(network).__name__}; give one that Network.create(…) made.")
    body: Any = network.body
    name = next((name for name, kind in BODIES.items() if type(body) is kind), None)
    if name is None:
        raise unknown("body", type(body).__name__, [kind.__name__ for kind in BODIES.values()])
    *members, width, n_in = jnp.shape(network.embed.weight)
    return {
        "body": name,
        "n_in": n_in,
        "n_out": jnp.shape(network.head.weight)[-2],
        "width": width,
        _rows(name): jnp.shape(body.weight)[-3],
        **{option: getattr(body, option) for option in _names(name)},
        "embed_bias": network.embed.bias is not None,
        "head_bias": network.head.bias is not None,
        "members": members,
    }


def shapes(structure: Any) -> Network:
    """The network of a structure with shapes and types in place of arrays; nothing is computed, however large it is.

    >>> import jax
    >>> from meristem.nn import Network
    >>> structure = structure_of(Network.create("highway", n_in=2, n_out=1, width=4, depth=3, key=jax.random.key(0)))
    >>> shapes({**structure, "depth": 10**9}).body.bias.shape
    (1000000000, 4)
    """
    body = structure.get("body") if isinstance(structure, dict) else None
    if not isinstance(body, str) or body not in BODIES:
        raise unknown("body", body, list(BODIES))
    sizes, flags, names = ["n_in", "n_out", "width", _rows(body)], ["embed_bias", "head_bias"], _names(body)
    expected = {"body", *sizes, *flags, *names, "members"}
    if expected != set(structure):
        raise ValueError(f"the structure of a {body} network has other entries: {sorted(expected ^ set(structure))}.")
    for entries, kind, what in ((flags, bool, "true or false"), (names, str, "a name"), (["members"], list, "sizes")):
        for entry in entries:
            if not isinstance(structure[entry], kind):
                raise ValueError(f"{entry}={structure[entry]!r} must be {what}.")
    n_in, n_out, width, rows = (_size(name, structure[name]) for name in sizes)
    members = tuple(_size("members", count) for count in structure["members"])
    options = {_rows(body): rows, **{name: structure[name] for name in names}}

    def create() -> Network:
        key = jax.random.key(0)
        return Network(
            Linear(n_in, width, use_bias=structure["embed_bias"], key=key),
            BODIES[body](width, **options, key=key),
            Linear(width, n_out, use_bias=structure["head_bias"], key=key),
        )

    return population(jax.eval_shape(create), members)


def population(tree: Any, members: tuple[int, ...]) -> Any:
    """The shapes of that many trees stacked."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((*members, *leaf.shape), leaf.dtype), tree)


def _size(name: str, value: Any) -> int:
    """A size as a file gives it, which may be anything."""
    if type(value) is not int or not 1 <= value < 2**31:
        raise ValueError(f"{name}={value!r} must be an integer of at least 1 and below 2**31.")
    return value


def _rows(body: str) -> str:
    """What a body calls the number of its layers."""
    return "capacity" if BODIES[body] is Budding else "depth"


def _names(body: str) -> list[str]:
    """The settings of a body that are no numbers, such as its activation."""
    kind: Any = BODIES[body]
    return [field.name for field in dataclasses.fields(kind) if field.metadata.get("static")]
