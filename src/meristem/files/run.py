"""A run as data: everything it needs to go on to the same bits, its best model and its history included.

The header: {"state": {…}, "best": {…}, "recipe": {…}, "least_capacity": 4, "max_capacity": 16, "capacities": []}, see state.py,
network.py and recipe.py. Best and last network differ in their capacity alone; "capacities" has a pair for each member of a
population whose members are trained alone, of its last and its best network, before they were stacked. The arrays:

    state.…, best.…          by path
    knobs.NAME               of the knobs that are not None
    history.NAME             [epochs, *members, …]; none before the first epoch
    best_epoch, begun_at     [*members]
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meristem.files import network, recipe, state
from meristem.files.arrays import Arrays, with_prefix, without_prefix
from meristem.files.network import Kinds
from meristem.nn.network import Network
from meristem.train.history import History
from meristem.train.knobs import Knobs, checked
from meristem.train.run import Run
from meristem.train.state import FIELDS

KIND = "run"
ENTRIES = ["state", "best", "recipe", "least_capacity", "max_capacity", "capacities"]
COUNTS = ["best_epoch", "begun_at"]
PARTS = ["state", "best", "knobs", "history"]
MEASURED = {*FIELDS, "soft_size"} - {"epoch"}  # what a history may hold
FOR_LABELS = {"macro_f1", "dev_macro_f1", "hard_cost", "temperature"}  # what not every history holds


def pack(run: Run) -> tuple[dict[str, Any], Arrays]:
    """A run of one network or of a population; its header is made of JSON's values.

    >>> import jax
    >>> from meristem.nn import Network
    >>> from meristem.train.recipe import Recipe
    >>> from meristem.train.run import begin
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> run = begin(network, Recipe(batch_size=32), Knobs(learning_rate=3e-3, penalty=1e-3), jax.random.key(1))
    >>> unpack(*pack(run)).recipe == run.recipe
    True
    """
    state_structure, state_arrays = state.pack(run.state, run.recipe)
    best_structure, best_arrays = network.pack(run.best)
    knobs = {name: np.asarray(value) for name, value in run.knobs._asdict().items() if value is not None}
    header = {
        "state": state_structure,
        "best": best_structure,
        "recipe": recipe.pack(run.recipe),
        "least_capacity": run.least_capacity,
        "max_capacity": run.max_capacity,
        "capacities": [list(pair) for pair in run.capacities],
    }
    arrays = {name: np.asarray(getattr(run, name)) for name in COUNTS}
    for prefix, part in zip(PARTS, (state_arrays, best_arrays, knobs, run.history), strict=True):
        arrays |= with_prefix(prefix, part)
    return header, arrays


def unpack(header: Any, arrays: Mapping[str, np.ndarray], kinds: Kinds = (), optimizer: Any = None) -> Run:
    """The run; raises ValueError of one line where its parts do not fit together."""
    if not isinstance(header, dict) or set(header) != set(ENTRIES):
        raise ValueError(f"a run has the entries {', '.join(ENTRIES)}, and no other.")
    off = [name for name in arrays if name not in COUNTS and name.partition(".")[0] not in PARTS]
    if off or not set(COUNTS) <= set(arrays):
        raise ValueError(f"it lacks best_epoch or begun_at, or has unknown arrays: {off[:3]}.")
    how = recipe.unpack(header["recipe"], kinds, optimizer)
    now = state.unpack(header["state"], without_prefix("state", arrays), how, kinds)
    best = network.unpack(header["best"], without_prefix("best", arrays), kinds)
    _check_alike(header["state"]["network"], header["best"])
    members = now.epoch.shape
    for name in COUNTS:
        if arrays[name].shape != members or arrays[name].dtype.kind != "i":
            raise ValueError(f"array {name!r} must hold integers of shape {members}.")
    run = Run(
        state=now,
        best=best,
        best_epoch=arrays["best_epoch"],
        knobs=_knobs(without_prefix("knobs", arrays), members),
        recipe=how,
        least_capacity=_capacity("least_capacity", header["least_capacity"], 0),
        max_capacity=_capacity("max_capacity", header["max_capacity"], 1),
        begun_at=arrays["begun_at"],
        capacities=_capacities(header["capacities"], now.network, best),
        past=_history(without_prefix("history", arrays), members),
    )
    epochs, rows = int(run.epochs.max()), len(run.past.get("loss", ()))
    if rows != epochs and (rows or (np.asarray(now.epoch) != run.begun_at).any()):
        raise ValueError(f"its history has {rows} epochs, its state {epochs}.")
    return run


def _check_alike(last: dict[str, Any], best: dict[str, Any]) -> None:
    off = [name for name in last | best if name != "capacity" and last.get(name) != best.get(name)]
    if off:
        raise ValueError(f"its best and its last network differ in {off[0]}: {best.get(off[0])!r}, {last.get(off[0])!r}.")


def _knobs(parts: Arrays, members: tuple[int, ...]) -> Knobs:
    if not {"learning_rate", "penalty", "l2"} <= set(parts) <= set(Knobs._fields):
        raise ValueError(f"its knobs are {', '.join(sorted(parts)) or 'missing'}; there are {', '.join(Knobs._fields)}.")
    return checked(Knobs(**parts), members)


def _history(parts: Arrays, members: tuple[int, ...]) -> History:
    if parts and not MEASURED - FOR_LABELS <= set(parts) <= MEASURED:
        raise ValueError(f"its history has other entries: {sorted(set(parts) ^ (MEASURED - FOR_LABELS))[:3]}.")
    lengths = {values.shape[:1] for values in parts.values()}
    for name, values in parts.items():
        layers = values.shape[-1:] if name == "layer_sizes" else ()
        if len(lengths) != 1 or values.shape[1:] != (*members, *layers) or values.dtype.kind not in "bif":
            raise ValueError(f"its history of {name!r} has shape {values.shape}, where there are members {members}.")
    return parts


def _capacities(entry: Any, last: Network, best: Network) -> tuple[tuple[int, int], ...]:
    """A pair for each member, of at most what it has and at least what it uses; or none."""
    if entry == []:
        return ()
    both = [(network.body.capacity, np.atleast_1d(network.body.in_use())) for network in (last, best)]
    wrong = ValueError(f"its capacities {str(entry)[:60]} are not those of its members.")
    if not isinstance(entry, list) or len(entry) != len(both[0][1]) or not last.body.capacity:
        raise wrong
    for member, pair in enumerate(entry):
        if not isinstance(pair, list) or [type(one) for one in pair] != [int, int]:
            raise wrong
        if not all(used[member] <= one <= most for one, (most, used) in zip(pair, both, strict=True)):
            raise wrong
    return tuple((pair[0], pair[1]) for pair in entry)


def _capacity(name: str, value: Any, least: int) -> int:
    if type(value) is not int or not least <= value < 2**31:
        raise ValueError(f"{name}={value!r} must be an integer of at least {least} and below 2**31.")
    return value
