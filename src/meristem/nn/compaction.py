"""What compaction keeps: the open places of every axis, and of each part the layers that it says it is.

    compact_network(network) → CompactNetwork          compact_body(body) → CompactNetwork

Closed dimensions of a trunk and closed inputs are left out, their gates multiplied into what reads them; the parts say their
layers (`Part.compact_layers`), which are joined in as few products as possible (layers/join.py). Host functions: they look at
the values of the gates.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem.layers.compact_network import CompactNetwork
from meristem.layers.join import join, plainer
from meristem.layers.layer import Affine, Layer, Pick
from meristem.nn.axes import ArrayAxes, Axes, along, members_of, take, tree_map, with_axes

INPUT = "input"


def compact_network(network: Any) -> CompactNetwork:
    """The live network: the layers of its parts, joined."""
    check_concrete("compact()", network)
    dtype, (n_in, *positions), declared = network.dtype, network.input_shape, network.axes()
    gates = trunk_gates(declared)
    if network.features is not None:
        gates[INPUT] = np.asarray(network.features.value, np.float64)
    small, places = on_open_places(network, declared, gates)
    pick = [Pick(tuple(places[INPUT].tolist()), n_in)] if INPUT in places else []
    layers = [layer for part in (small.embed, small.body, small.head) for layer in part.compact_layers()]
    return _stored([*pick, *join(layers)], dtype, positions)


def compact_body(body: Any) -> CompactNetwork:
    """The live body; one that copies its input has no layers."""
    check_values("compact()", body)
    declared = body.axes()
    if members := members_of(body, declared):
        raise ValueError(
            f"compact() takes one body, got a population of {members[0]}; pick one: jax.tree.map(lambda a: a[0], bodies)."
        )
    gates = trunk_gates(declared)
    if gates and any(entry.positions > 1 for entry, _ in with_axes(body, declared)):
        raise ValueError(f"compact() takes a {type(body).__name__} on positions with its embedding and head: a Network.")
    small, places = on_open_places(body, declared, gates)
    layers = [plainer(layer) for layer in small.compact_layers()]
    enters, leaves = declared.trunks[0], declared.trunks[-1]
    if enters in places:  # what enters is cut to the open dimensions, what comes out is put in its places
        layers = [Pick(tuple(places[enters].tolist()), len(gates[enters])), *layers]
    if leaves in places:
        back = np.zeros((len(gates[leaves]), len(places[leaves])))
        back[places[leaves], np.arange(len(places[leaves]))] = gates[leaves][places[leaves]]
        layers = [*layers, Affine(back, None)]
    dtypes = [leaf.dtype for leaf in jax.tree.leaves(body) if eqx.is_inexact_array(leaf)]
    return _stored(layers, dtypes[0] if dtypes else jnp.result_type(float), ())


def trunk_gates(declared: Axes) -> dict[str, np.ndarray]:
    """How open the dimensions of each trunk are, where they may close."""
    axes = {name: declared.axis(name) for name in declared.trunks}
    return {name: np.asarray(axis.openness(), np.float64) for name, axis in axes.items() if axis.closable and axis.openness}


def on_open_places(module: Any, declared: Axes, gates: Mapping[str, np.ndarray]) -> tuple[Any, dict[str, np.ndarray]]:
    """The same function on the open places of some axes, their gates in what reads them; and which. One is kept at least."""
    places = {name: np.flatnonzero(values) if values.any() else np.zeros(1, int) for name, values in gates.items()}

    def with_gates(entry: ArrayAxes, leaf: Any) -> Any:
        if (name := entry.read) is None or name not in gates:
            return leaf
        return leaf * along(declared, entry, entry.names.index(name), gates[name][places[name]], leaf.ndim)

    return tree_map(with_gates, declared, take(module, declared, places)), places


def _stored(layers: list[Layer], dtype: Any, positions: Any) -> CompactNetwork:
    """On the device, in the precision that the model has."""
    arrays = jax.device_put(jax.tree.map(lambda a: a.astype(dtype), tuple(layers)))
    return CompactNetwork(arrays, tuple(positions))


def check_concrete(what: str, network: Any) -> None:
    """Raise a ValueError of one line unless this is one network with values in it."""
    if not hasattr(network, "input_shape"):
        raise ValueError(f"{what} takes a Network, got a {type(network).__name__}; make one with Network.create(…).")
    check_values(what, network)
    if network.members:
        raise ValueError(
            f"{what} takes one network, got a population of {network.members[0]}; "
            "pick one: jax.tree.map(lambda a: a[0], networks)."
        )


def check_values(what: str, model: Any) -> None:
    """Raise a ValueError of one line unless all arrays have values."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(model)):
        raise ValueError(f"{what} looks at the values of the gates, which jit, vmap and grad hide; call it outside of them.")
