"""compact(): the same function with nothing in it that is closed; of a network, of a body, or of a model with bodies in it.

    a Network     a `CompactNetwork`: the layers of its parts, joined in as few products as possible (layers/join.py)
    a body        a `CompactNetwork` [width] → [width] of its layers alone; a body that copies its input has none
    a model       of one's own: the same model, each body or Network in it replaced by its compact form

Closed dimensions of a trunk and closed inputs are left out, their gates multiplied into what reads them; the parts say their
layers (`Part.compact_layers`). Exact by construction: sums are taken in another order, so outputs agree to rounding, not to the
bit. Host functions: they look at the values of the gates.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem.layers.compact_network import CompactNetwork, n_floats
from meristem.layers.join import join, plainer
from meristem.layers.layer import Affine, Layer, Pick
from meristem.nn.axes import INPUT, ArrayAxes, Axes, along, has_positions, members_of, take, tree_map
from meristem.nn.body import Body
from meristem.nn.network import Network

M = TypeVar("M", bound=eqx.Module)


@overload
def compact(model: Network | Body | CompactNetwork) -> CompactNetwork: ...
@overload
def compact(model: M) -> M: ...
def compact(model: Any) -> Any:
    """The same function with nothing in it that is closed. A host function: it looks at the values of the gates.

    Outputs agree to rounding: within 1e-5 of the largest output in float32, 1e-12 in float64; on a GPU under
    `jax.default_matmul_precision("highest")`, without which it rounds more than that in either network. In a model of one's own
    the compact bodies are called as the bodies were; `priced` gives them a price of 0.

    >>> network = Network.create("tunnel", n_in=2, n_out=1, width=10, depth=10, key=jax.random.key(0))
    >>> small = compact(network)                                                  # all gates are 0: an affine map
    >>> small.layers[0].weight.shape
    (1, 2)
    >>> bool(jnp.allclose(small(jnp.ones(2)), network(jnp.ones(2)), rtol=1e-5))
    True
    >>> compact(network.body).layers
    ()
    """
    if isinstance(model, CompactNetwork):
        return model

    def is_compactable(node: Any) -> bool:
        return isinstance(node, (Network, Body))

    def compacted(node: Any) -> Any:
        if not is_compactable(node):
            return node
        return compact_network(node) if isinstance(node, Network) else compact_body(node)

    if not any(map(is_compactable, jax.tree.leaves(model, is_leaf=is_compactable))):
        raise ValueError(
            f"compact() takes a Network, a body or a model that holds some, got a {type(model).__name__} without any; "
            "make one with Network.create(…)."
        )
    return jax.tree.map(compacted, model, is_leaf=is_compactable)


def n_parameters(model: Any) -> int:
    """How many numbers the compact form of a network, a body or a model stores: weights, biases, gates and shares.

    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=10, key=jax.random.key(0))
    >>> n_parameters(network), n_parameters(network.body)
    (3, 0)
    """
    return n_floats(compact(model))


def compact_network(network: Network) -> CompactNetwork:
    """The layers of its parts, joined."""
    check_concrete("compact()", network)
    (n_in, *positions), declared = network.input_shape, network.axes()
    gates = trunk_gates(declared)
    if network.features is not None:
        gates[INPUT] = np.asarray(network.features.value, np.float64)
    small, places = on_open_places(network, declared, gates)
    pick = [Pick(tuple(places[INPUT].tolist()), n_in)] if INPUT in places else []
    layers = [layer for part in (small.embed, small.body, small.head) for layer in part.compact_layers()]
    return _stored([*pick, *join(layers)], network.dtype, positions)


def compact_body(body: Body) -> CompactNetwork:
    """The layers of a body; one that copies its input has none."""
    check_values("compact()", body, ("body", "bodies"))
    declared = body.axes()
    gates, name, positions = trunk_gates(declared), type(body).__name__, getattr(body, "positions", ())
    if gates and has_positions(declared):
        raise ValueError(f"compact() takes a {name} on positions with its embedding and head: a Network.")
    if has_positions(declared) and not positions:
        raise ValueError(
            f"compact() needs the positions of a {name} outside of a Network: give it an attribute, positions = (10,)."
        )
    small, places = on_open_places(body, declared, gates)
    layers = [plainer(layer) for layer in small.compact_layers()]
    enters, leaves = declared.trunks[0], declared.trunks[-1]
    if enters in places:  # what enters is cut to the open dimensions, what comes out is put in its places
        layers = [Pick(tuple(places[enters].tolist()), len(gates[enters])), *layers]
    if leaves in places:
        layers = [*layers, Affine(np.diag(gates[leaves])[:, places[leaves]], None)]
    dtypes = [leaf.dtype for leaf in jax.tree.leaves(body) if eqx.is_inexact_array(leaf)]
    return _stored(layers, dtypes[0] if dtypes else jnp.result_type(float), positions)


def trunk_gates(declared: Axes) -> dict[str, np.ndarray]:
    """How open the dimensions of each trunk are, where they may close."""
    axes = {name: declared.axis(name) for name in declared.trunks}
    return {name: np.asarray(axis.openness(), np.float64) for name, axis in axes.items() if axis.closable and axis.openness}


def on_open_places(module: Any, declared: Axes, gates: Mapping[str, np.ndarray]) -> tuple[Any, dict[str, np.ndarray]]:
    """The same function on the open places of some axes, their gates in what reads them; and which. One is kept at least."""
    if not gates:
        return module, {}
    places = {name: np.flatnonzero(values) if values.any() else np.zeros(1, int) for name, values in gates.items()}

    def with_gates(entry: ArrayAxes, leaf: Any) -> Any:
        if (name := entry.read) is None or name not in gates:
            return leaf
        place = len(entry.names) - 1 - entry.names[::-1].index(name)  # of a map of the trunk to itself its columns
        return leaf * along(declared, entry, place, gates[name][places[name]], leaf.ndim)

    return tree_map(with_gates, declared, take(module, declared, places)), places


def _stored(layers: list[Layer], dtype: Any, positions: Any) -> CompactNetwork:
    """On the device, in the precision that the model has."""
    arrays = jax.device_put(jax.tree.map(lambda a: a.astype(dtype), tuple(layers)))
    return CompactNetwork(arrays, tuple(positions))


def check_concrete(what: str, network: Any) -> None:
    """Raise a ValueError of one line unless this is one network with values in it."""
    if not isinstance(network, Network):
        raise ValueError(f"{what} takes a Network, got a {type(network).__name__}; make one with Network.create(…).")
    check_values(what, network, ("network", "networks"))


def check_values(what: str, model: Any, single: tuple[str, str] | None = None) -> None:
    """Raise a ValueError of one line unless all arrays have values; with `single`, what to call it, also of a population."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(model)):
        raise ValueError(f"{what} looks at the values of the gates, which jit, vmap and grad hide; call it outside of them.")
    if single is not None and (members := members_of(model, model.axes())):
        pick = f"jax.tree.map(lambda a: a[0], {single[1]})"
        raise ValueError(f"{what} takes one {single[0]}, got a population of {members[0]}; pick one: {pick}.")
