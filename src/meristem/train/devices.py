"""Members that share a program, on all devices of this machine, in as few groups as fit into their memory.

    groups = groups_that_fit(groups, runs, prepared, watcher)       then, of the runs of each group:
    packed = spread(runs)                                           stacked, their axis divided among the devices
    gathered(packed).each()                                         on one device again

Members never talk to each other: a program (programs.py) runs on each device with the members that are there, without
collectives. Each device has as many members: a group is filled up with copies of its last member that have stopped. Where the
user has chosen a device (`jax.default_device`), only that is used. How much memory a member needs is a guess; where it is too
low, the group is halved (loop.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from meristem.check import many
from meristem.memory import memory
from meristem.train.callbacks import Watcher
from meristem.train.programs import AXIS
from meristem.train.run import Run, stacked
from meristem.train.training_data import Prepared

COPIES = 10  # of a member's state while it trains: two states, the best network, gradients, and what a step computes
SHARE = 0.8  # of the memory that members may take


def used_devices() -> list[jax.Device]:
    """Return the local devices, or the one that the user has chosen."""
    chosen: Any = jax.config.jax_default_device  # type: ignore[attr-defined]  # defined when jax is imported
    return jax.local_devices() if chosen is None else jax.local_devices()[:1]


def most_members(run: Run, prepared: Prepared) -> int:
    """Return how many members like this one, or those of a population, fit into the memory of all devices, data included."""
    devices, available = used_devices(), memory()
    if available is None:
        return 2**31
    if devices[0].platform == "cpu":  # all have the memory of the machine
        available //= len(devices)
    data = sum(getattr(part, "nbytes", 0) for part in prepared.data)
    total = sum(leaf.nbytes for leaf in jax.tree.leaves((run.state, run.knobs)) if hasattr(leaf, "nbytes"))
    own = COPIES * total / (run.members or (1,))[0]
    return max(1, int((SHARE * available - data) / own)) * len(devices)


def are_one_group(run: Run, prepared: Prepared) -> bool:
    """Return whether a population needs neither several devices nor several groups."""
    return len(used_devices()) == 1 and run.members[0] <= most_members(run, prepared)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether a program needed more memory than there is; JAX raises either of two types, with either of two texts."""
    is_of_jax = isinstance(error, jax.errors.JaxRuntimeError | ValueError)
    return is_of_jax and any(text in str(error) for text in ("RESOURCE_EXHAUSTED", "Out of memory"))


def groups_that_fit(
    groups: Sequence[Sequence[int]], runs: Mapping[int, Run], prepared: Prepared, watcher: Watcher
) -> list[list[int]]:
    """Return the groups, divided so that each fits into memory; the watcher is told of more than one group or device."""
    parts = []
    for group in groups:
        size = most_members(runs[group[0]], prepared)
        parts += [list(group[start : start + size]) for start in range(0, len(group), size)]
    n_devices = len(used_devices())
    if n_devices > 1 or len(parts) > 1:
        watcher.say(f"{many(len(runs), 'network')} on {many(n_devices, 'device')}, in {many(len(parts), 'group')}")
    return parts


def spread(runs: Sequence[Run]) -> Run:
    """Return runs of single networks as a population on all devices, with as many members on each."""
    devices = used_devices()
    if len(devices) == 1:
        return stacked(runs)
    last, n_more = runs[-1], -len(runs) % len(devices)
    plateau = last.state.plateau
    plateau = plateau._replace(stage=jnp.full_like(plateau.stage, len(last.recipe.scales)))
    copies = [replace(last, state=replace(last.state, plateau=plateau))] * n_more
    return _put(stacked([*runs, *copies]), NamedSharding(_mesh(devices), PartitionSpec(AXIS)))


def on_all(prepared: Prepared) -> Prepared:
    """Return the data on all devices; those that stay on the host are sent to all."""
    devices = used_devices()
    if len(devices) == 1 or prepared.rows_at_once is not None:
        return prepared
    return prepared._replace(data=jax.device_put(prepared.data, NamedSharding(_mesh(devices), PartitionSpec())))


def gathered(run: Run) -> Run:
    """Return the population on the first device."""
    devices = used_devices()
    return run if len(devices) == 1 else _put(run, devices[0])


def _mesh(devices: Sequence[jax.Device]) -> jax.sharding.Mesh:
    return jax.make_mesh((len(devices),), (AXIS,), axis_types=(AxisType.Auto,), devices=devices)


def _put(run: Run, where: Any) -> Run:
    state, best, knobs = jax.device_put((run.state, run.best, run.knobs), where)
    return replace(run, state=state, best=best, knobs=knobs)
