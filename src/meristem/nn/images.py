"""The parts of a network on images, as `Network.create` makes them: stages of equal blocks, each of half as many positions.

    stem    stage 1    map    stage 2    map    …    mean over positions, linear head

A stage has a trunk of its own, whose width may be learned. `width` and `max_width` hold a number for each stage, `depth` too,
or one for all.
"""

import inspect
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from meristem.check import check_number, check_size, short, unknown
from meristem.nn.body import Body, Part
from meristem.nn.conv_branch import ConvBranch
from meristem.nn.conv_inverted import ConvInverted
from meristem.nn.conv_tunnel import ConvTunnel
from meristem.nn.image_ends import PIXEL_MEAN, PIXEL_SCALE, Downsample, ImageStem, halved, image_shape
from meristem.nn.linear import PooledLinear
from meristem.nn.stages import Stages

IMAGE_BODIES: dict[str, Any] = {"conv-tunnel": ConvTunnel, "conv-branch": ConvBranch, "conv-inverted": ConvInverted}
STAGES = 32, 64, 128  # the width of each stage, at most, where nobody says


def image_parts(
    body: str,
    input_shape: Any,
    n_out: int,
    width: Any,
    max_width: Any,
    *,
    depth: Any = 2,
    expansion: float | None = None,
    kernel: int = 3,
    pixel_mean: Any = PIXEL_MEAN,
    pixel_scale: Any = PIXEL_SCALE,
    key: PRNGKeyArray,
    **options: Any,
) -> tuple[Part, Body, Part]:
    """Return the embedding, the body and the head; `options` are those of the body's blocks."""
    kind, (height, columns, *_) = IMAGE_BODIES[body], image_shape(input_shape)
    names = [
        name for name in inspect.signature(kind).parameters if name not in ("width", "units", "positions", "learn_width", "key")
    ]
    choices = dict.fromkeys([*names, *["expansion"] * (kind.expansion is not None), "pixel_mean", "pixel_scale"])
    for option in options | ({} if expansion is None else {"expansion": expansion}):
        if option not in choices:
            raise unknown(f"option of body={body!r}", option, list(choices))
    learns = width is None or isinstance(width, str)
    most = STAGES if max_width is None else max_width
    widths = _sizes("max_width", most) if learns else _sizes("width", width)
    depths = _sizes("depth", depth) if isinstance(depth, list | tuple) else _sizes("depth", depth) * len(widths)
    if len(depths) != len(widths):
        raise ValueError(f"depth={short(depth)} must be a number, or {len(widths)}: one for each stage.")
    stem_key, head_key, *keys = jax.random.split(key, 2 + 2 * len(widths))
    positions, parts = tuple[int, ...]((height, columns)), list[Any]()
    for stage, (n, n_blocks) in enumerate(zip(widths, depths, strict=True)):
        if stage:
            parts.append(Downsample(widths[stage - 1], n, positions, key=keys[2 * stage]))
            positions = halved(positions)
        units = {} if kind.expansion is None else {"units": inner_units(n, kind.expansion if expansion is None else expansion)}
        own = {"width": n, "depth": n_blocks, "positions": positions, "learn_width": learns, **units, **options}
        parts.append(kind(**own, kernel=kernel, key=keys[2 * stage + 1]))
    stem = ImageStem(input_shape, widths[0], kernel=kernel, pixel_mean=pixel_mean, pixel_scale=pixel_scale, key=stem_key)
    pooled: Any = PooledLinear  # whose constructor is that of Linear, which mypy does not see
    stages = parts[0] if len(parts) == 1 else Stages(parts)
    return stem, stages, pooled(widths[-1], n_out, positions=positions, key=head_key)


def inner_units(width: int, expansion: float) -> int:
    """Return how many gated channels a block on a trunk of this width has."""
    check_number("expansion", expansion, "above 0 and at most 64", lambda value: 0 < value <= 64)
    return max(1, round(expansion * width))


def _sizes(name: str, value: Any) -> tuple[int, ...]:
    """Return the size of each stage; a number is that of a single one."""
    sizes = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not sizes:
        raise ValueError(f"{name}={short(value)} must hold a number for each stage, at least one.")
    return tuple(check_size(name, size) for size in sizes)
