"""Network = embed → body → head: as a rule a linear projection without bias, a body of equal width, a linear output.

y = head(body(embed(f ⊙ x)))     f ∈ [0, 1]^n_in, a gate for each input, where inputs may close; at first 1, its price Σ f

Embedding and head are parts (body.py), such as `Linear`; a body of several stages is `Stages`. `input_shape`, `n_out`, `width`,
`members` and `dtype` hold for one network, for a population with leading axes, and for shapes in place of arrays. Nobody
outside of nn reads the arrays of `embed` and `head`: other packages (files, train, estimators) call the functions below.
"""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from meristem.check import as_key, check_size, unknown
from meristem.gate import Confined, fully_open, is_confined
from meristem.layers.compact_network import CompactNetwork
from meristem.nn.axes import INPUT, OUTPUT, ArrayAxes, Axes, Axis, members_of, n_places, take
from meristem.nn.axis_counts import half_norm, hard_size, soft_parameters, used
from meristem.nn.body import Body, Part, described, read, with_price
from meristem.nn.budding import Budding
from meristem.nn.images import IMAGE_BODIES, image_parts
from meristem.nn.linear import Linear
from meristem.nn.stack import Highway, Plain, Residual, Tunnel
from meristem.nn.stages import renamed

WIDTH = 10
MAX_WIDTH = 64  # of a trunk that learns its width
UsedEnds = tuple[Array, Array]  # [n_in] and [n_out], see `Network.used_ends`
BODIES = {"tunnel": Tunnel, "budding": Budding, "highway": Highway, "plain": Plain, "residual": Residual}


class Network(eqx.Module):
    """One sample [n_in, …] → [n_out].

    >>> network = Network.create("tunnel", n_in=2, n_out=1, width=10, depth=10, key=jax.random.key(0))
    >>> network(jnp.ones(2)).shape
    (1,)
    """

    embed: Part
    body: Body
    head: Part
    features: Confined | None = eqx.field(default=None, kw_only=True)  # [n_in]; the gates of the inputs

    @classmethod
    def create(
        cls,
        body: str,
        n_in: int | None = None,
        n_out: int | None = None,
        *,
        input_shape: Sequence[int] | None = None,
        width: Any = None,
        max_width: Any = None,
        feature_gates: bool = False,
        key: Any,
        **options: Any,
    ) -> Self:
        """A fresh network with a body by name: on vectors of `n_in` numbers, or, a "conv-…", on images of `input_shape`.

        A width of "auto" is learned, up to `max_width`; with `feature_gates` inputs may close. `options` go to the body:
        `activation`; `depth` of all but a budding body, which has `capacity` and `probe`; `gate_bias` of a highway; those of
        images are the arguments of `meristem.nn.images.image_parts`.

        Images are [height, width] or [height, width, channels]. `width` and `max_width` then hold a number for each stage, at
        twice the distance between positions of the stage before, and are learned by default.

        >>> network = Network.create(
        ...     "conv-branch", input_shape=(8, 8), n_out=10, max_width=(4, 8), depth=1, key=jax.random.key(0)
        ... )
        >>> network.input_shape, jax.vmap(network)(jnp.ones((5, 8, 8))).shape
        ((8, 8), (5, 10))
        """
        if body not in BODIES | IMAGE_BODIES:
            raise unknown("body", body, [*BODIES, *IMAGE_BODIES])
        if n_out is None:
            raise ValueError(f"n_out=None must be the number of outputs: Network.create({body!r}, …, n_out=10).")
        if isinstance(width, str) and width != "auto":
            raise ValueError(f"width={width!r} must be a whole number, or 'auto'.")
        if body in IMAGE_BODIES:
            if n_in is not None or input_shape is None or feature_gates:
                text = "takes no n_in and no feature_gates, but the shape of an image: input_shape=(32, 32, 3)"
                raise ValueError(f"body={body!r} {text}.")
            return cls(*image_parts(body, input_shape, n_out, width, max_width, key=as_key("key", key), **options))
        if n_in is None or input_shape is not None:
            raise ValueError(f"body={body!r} takes vectors: n_in=…, the number of their entries, in place of input_shape.")
        if isinstance(width, str):
            width, options = (
                check_size("max_width", MAX_WIDTH if max_width is None else max_width),
                options | {"learn_width": True},
            )
        names = list(inspect.signature(BODIES[body]).parameters)
        for option in options:
            if option not in names or option == "width":
                raise unknown(f"option of body={body!r}", option, [name for name in names if name not in ("width", "key")])
        if "depth" in names and "depth" not in options:
            raise ValueError(f"body={body!r} needs its number of layers: Network.create({body!r}, …, depth=10).")
        embed_key, body_key, head_key = jax.random.split(as_key("key", key), 3)
        width = check_size("width", WIDTH if width is None else width)
        return cls(
            Linear(n_in, width, use_bias=False, key=embed_key),
            BODIES[body](width, key=body_key, **options),
            Linear(width, n_out, key=head_key),
            features=Confined(jnp.ones(n_in)) if feature_gates else None,
        )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one sample.

        >>> network = Network.create("tunnel", n_in=2, n_out=1, width=10, depth=3, key=jax.random.key(0))
        >>> network.input_shape, network.n_out, network.width, network.members
        ((2,), 1, 10, ())
        """
        return tuple(self.embed.input_shape)  # type: ignore[attr-defined]

    @property
    def width(self) -> int:
        """The dimensions of the trunk that what enters the body has, open or closed."""
        declared = self.embed.axes()
        return n_places(self.embed, declared, declared.trunks[-1])

    @property
    def members(self) -> tuple[int, ...]:
        """The leading axes of a population; () for one network."""
        return members_of(self.embed, self.embed.axes())

    def in_use(self) -> Int[Array | np.ndarray, "*members"]:
        """How many of them are filled, of one network or of each in a population."""
        count = self.body.axes().in_use
        return np.zeros(self.members, np.int32) if count is None else count()

    n_out = property(lambda self: int(self.head.n_out))
    dtype = property(lambda self: jax.tree.leaves(self.embed)[0].dtype)  # of its weights
    capacity = property(lambda self: self.body.axes().capacity)  # the places for layers that growth may fill; 0: nothing grows
    has_embed_bias = property(lambda self: getattr(self.embed, "bias", None) is not None)
    has_head_bias = property(lambda self: getattr(self.head, "bias", None) is not None)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, " out"]:
        if x.ndim != len(self.input_shape):
            shape = "features" if len(self.input_shape) == 1 else ", ".join(map(str, self.input_shape))
            raise ValueError(f"A network takes one sample [{shape}], got shape {x.shape}; use jax.vmap(network)(x).")
        return self.priced(x)[0]

    def priced(self, x: Float[Array, "in ..."]) -> tuple[Float[Array, " out"], Float[Array, ""]]:
        """The output and the price of body and input gates."""
        h, price = self.body.priced(self.embedded(x))
        return self.read_out(h), with_price(self.features, price)

    def embedded(self, x: Float[Array, "in ..."]) -> Float[Array, "width ..."]:
        """What reaches the body."""
        return self.embed(read(self.features, x))

    def axes(self, inputs: Any = None, weight: Any = None, used_ends: UsedEnds | None = None) -> Axes:
        """The axes of embedding, body and head; what leaves a part and enters the next is one axis of both.

        `inputs` reach the body. Inputs and outputs whose weights are all 0 are padding, and cost nothing; `used_ends`: which
        are not, if that is known.
        """
        body, features = self.body.axes(inputs, weight), self.features
        embed, head = self._ends(body)

        @cache
        def used_in() -> Array:
            return used(self.embed, embed, INPUT) if used_ends is None else used_ends[0]

        @cache
        def used_out() -> Array:
            return used(self.head, head, OUTPUT) if used_ends is None else used_ends[1]

        def openness() -> Array:
            return used_in() if features is None else used_in() * features.value

        arrays = Network(embed.arrays, body.arrays, head.arrays, features=jax.tree.map(lambda _: ArrayAxes((INPUT,)), features))
        ends = {
            INPUT: Axis(openness, None if features is None else lambda: features.is_open),
            OUTPUT: Axis(used_out),
        }
        return replace(body, arrays=arrays, axes={**embed.axes, **head.axes, **body.axes, **ends})

    def used_ends(self) -> UsedEnds:
        """1 for the inputs, and for the outputs, with a weight other than 0; training leaves the padding at 0."""
        embed, head = self._ends(self.body.axes())
        return used(self.embed, embed, INPUT), used(self.head, head, OUTPUT)

    def _ends(self, body: Axes) -> tuple[Axes, Axes]:
        """The axes of embedding and head."""
        embed = _between(self.embed.axes(), "embed", INPUT, body.trunks[0])
        return embed, _between(self.head.axes(), "head", body.trunks[-1], OUTPUT)

    def read_out(self, h: Float[Array, "width ..."]) -> Float[Array, " out"]:
        """The outputs, of what leaves the body."""
        return self.head(h)

    def half_norm(self) -> Float[Array, ""]:
        """½ ‖W‖² over what is open of embed, body and head."""
        declared = self.axes()
        ends = replace(declared, arrays=(declared.arrays.embed, declared.arrays.head))
        return half_norm((self.embed, self.head), ends) + half_norm(self.body, replace(declared, arrays=declared.arrays.body))

    def live_parameters(self) -> int:
        """The numbers that the output depends on: those of the body, gates included, and all of embedding and head."""
        body = fully_open(self.body)
        declared, gates = body.axes(), jax.tree.leaves(body, is_leaf=is_confined)
        stored = round(float(soft_parameters(body)))
        single = sum(is_confined(gate) and gate.value.ndim == 0 for gate in gates)
        nodes = int(hard_size(declared)) if declared.capacity else 0
        return stored + nodes + single + sum(leaf.size for leaf in jax.tree.leaves((self.embed, self.head)))

    def compact(self) -> CompactNetwork:
        """Exactly the live network, see `meristem.compact.compact`."""
        from meristem.nn.compaction import compact_network  # which imports this file

        return compact_network(self)


def _between(part: Axes, name: str, enters: str, leaves: str) -> Axes:
    """The declaration of an end of a network, its axes named by what they are there."""
    own = {axis: f"{name}.{axis}" for axis in part.axes}
    return renamed(part, own | {part.trunks[0]: enters, part.trunks[-1]: leaves})


def described_ends(network: Network) -> dict[str, Any]:
    """Return what files say of embedding and head; nothing of plain linear maps around one trunk, as `Network.create` has."""
    embed, head = network.embed, network.head
    is_plain_embed = type(embed) is Linear and not embed.positions
    is_plain_head = type(head) is Linear and not head.positions and head.input_shape[0] == network.width
    return ({} if is_plain_embed else {"embed": described(embed)}) | ({} if is_plain_head else {"head": described(head)})


def linear_ends(network: Network) -> tuple[Linear, Linear]:
    """Return embedding and head of a network on vectors; ValueError where they are something else."""
    embed, head = network.embed, network.head
    if described_ends(network) or not isinstance(embed, Linear) or not isinstance(head, Linear):
        raise ValueError(f"its embedding is a {type(embed).__name__}, its head a {type(head).__name__}; both must be Linear.")
    return embed, head


def mask_ends(network: Network, n_in: Array | int, n_out: Array | int, unused_output: Float[Array, ""] | float) -> Network:
    """Return a fresh network that uses its first inputs and outputs; other inputs do nothing, other outputs never change.

    Its weights are as large as if there were no others: uniform on ±√(6 / (fan_in + fan_out)).
    """
    (all_in,), all_out, width = network.input_shape, network.n_out, network.width
    embed, head = linear_ends(network)
    assert head.bias is not None
    is_input, is_output = jnp.arange(all_in) < n_in, jnp.arange(all_out) < n_out
    embed_scale, head_scale = (jnp.sqrt((n + width) / (used + width)) for n, used in ((all_in, n_in), (all_out, n_out)))
    if network.features is not None:
        network = eqx.tree_at(lambda n: n.features, network, network.features.at(is_input.astype(head.bias.dtype)))
    embedding = jnp.where(is_input[None, :], embed_scale * embed.weight, 0)
    weight, bias = jnp.where(is_output[:, None], head_scale * head.weight, 0), jnp.where(is_output, head.bias, unused_output)
    return eqx.tree_at(lambda n: (n.embed.weight, n.head.weight, n.head.bias), network, (embedding, weight, bias))


def trim_ends(network: Network, n_in: int, n_out: int) -> Network:
    """Return the network with its first inputs and outputs, and no others. A host function."""
    linear_ends(network)
    network = jax.device_get(network)  # cutting on the device would compile a program for each shape
    return jax.device_put(take(network, network.axes(), {INPUT: np.arange(n_in), OUTPUT: np.arange(n_out)}))


def divide_outputs(network: Network, divisor: float) -> Network:
    """Return the network with its outputs divided by a number. A host function."""
    head = jax.tree.map(lambda leaf: (np.asarray(leaf) / divisor).astype(leaf.dtype), network.head)  # compiles nothing
    return eqx.tree_at(lambda n: n.head, network, jax.device_put(head))
