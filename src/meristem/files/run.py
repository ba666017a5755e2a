"""A run as data: everything it needs to go on to the same bits, its best model and its history included.

The header: {"state": {…}, "best": {…}, "recipe": {…}, "least_capacity": 4, "max_capacity": 16, "capacities": []}, see state.py,
network.py and recipe.py. Best and last network differ in their capacity alone; "capacities" has a pair for each member of a
population whose members are trained alone, of its last and its best network, before they were stacked. The arrays:

    state.…, best.…          by path
    knobs.NAME               of the knobs that are not None
    history.NAME             [epochs, *members, …]; none before the first epoch
    best_epoch, begun_at     [*members]
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from meristem.check import many
from meristem.files import network, recipe, state
from meristem.files.arrays import Arrays, on_device, with_prefix, without_prefix
from meristem.files.network import Kinds
from meristem.nn.network import Network
from meristem.train.hyperparameters import Knobs, Recipe, check_knobs
from meristem.train.run import History, Run
from meristem.train.train_state import FIELDS

KIND = "run"
ENTRIES = ["state", "best", "recipe", "least_capacity", "max_capacity", "capacities"]
COUNTS = ["best_epoch", "begun_at"]
PARTS = ["state", "best", "knobs", "history"]
MEASURED = {*FIELDS, "soft_size"} - {"epoch"}  # what a history may hold
SOMETIMES: dict[str, Callable[[Recipe], bool]] = {  # what not every history holds
    "macro_f1": lambda recipe: recipe.task.outputs_are_labels,
    "dev_macro_f1": lambda recipe: recipe.task.outputs_are_labels,
    "hard_cost": lambda recipe: recipe.price != "units",
    "temperature": lambda recipe: recipe.calibrate,  # and only where there is a development set
}
FLAGS = {"improved", "stopped", "diverged"}


def pack(run: Run) -> tuple[dict[str, Any], Arrays]:
    """A run of one network or of a population; its header is made of JSON's values.

    >>> import jax
    >>> from meristem.nn import Network
    >>> from meristem.train.hyperparameters import Recipe
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
    run = checked(header, arrays, kinds, optimizer)
    now = state.placed(header["state"], run.state, run.recipe, kinds)
    return replace(run, state=now, best=on_device(network.shapes(header["best"], kinds), run.best))


def checked(header: Any, arrays: Mapping[str, np.ndarray], kinds: Kinds = (), optimizer: Any = None) -> Run:
    """The run with a state and a best network of the host, if it can go on; ValueError of one line else."""
    if not isinstance(header, dict) or set(header) != set(ENTRIES):
        raise ValueError(f"a run has the entries {', '.join(ENTRIES)}, and no other.")
    off = [name for name in arrays if name not in COUNTS and name.partition(".")[0] not in PARTS]
    if off or not set(COUNTS) <= set(arrays):
        raise ValueError(f"it lacks best_epoch or begun_at, or has unknown arrays: {off[:3]}.")
    how = recipe.unpack(header["recipe"], kinds, optimizer)
    now = state.checked(header["state"], without_prefix("state", arrays), how, kinds)
    best = network.checked(header["best"], without_prefix("best", arrays), kinds)
    _check_alike(header["state"]["network"], header["best"])
    if {leaf.dtype for leaf in jax.tree.leaves(best)} != {leaf.dtype for leaf in jax.tree.leaves(now.network)}:
        raise ValueError("its best and its last network are of different types of numbers.")
    members = now.epoch.shape
    for name in COUNTS:
        if arrays[name].shape != members or arrays[name].dtype.kind != "i" or (arrays[name] < 0).any():
            raise ValueError(f"array {name!r} must hold integers of shape {members}, none below 0.")
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
        past=_history(without_prefix("history", arrays), members, how),
    )
    epochs, rows = int(run.epochs.max()), len(run.past.get("loss", ()))
    too_few = rows < epochs and (rows or (np.asarray(now.epoch) != run.begun_at).any())
    if too_few or (rows > epochs and not run.stopped.all()):  # a run that has stopped may be asked for more
        raise ValueError(f"its history has {many(rows, 'epoch')}, its state {epochs:,}.")
    if (run.begun_at > now.epoch).any() or (run.best_epoch > run.epochs).any():
        raise ValueError("its best epoch, or that in which it began, is none that it has had.")
    layers = run.past["layer_sizes"].shape[-1] if rows else None
    if layers is not None and layers != network.n_layers(header["best"], kinds):
        raise ValueError(f"its history has the sizes of {layers} layers, which its network has not.")
    return run


def _check_alike(last: dict[str, Any], best: dict[str, Any]) -> None:
    off = [name for name in last | best if name != "capacity" and last.get(name) != best.get(name)]
    if off:
        raise ValueError(f"its best and its last network differ in {off[0]}: {best.get(off[0])!r}, {last.get(off[0])!r}.")


def _knobs(parts: Arrays, members: tuple[int, ...]) -> Knobs:
    if not {"learning_rate", "penalty", "l2"} <= set(parts) <= set(Knobs._fields):
        raise ValueError(f"its knobs are {', '.join(sorted(parts)) or 'missing'}; there are {', '.join(Knobs._fields)}.")
    measured = parts.get("measured")
    if measured is not None and (
        measured.dtype.kind != "i" or measured.shape[:-1] != (*members, 2) or not measured.size or (measured < 0).any()
    ):
        raise ValueError(f"array 'knobs.measured' must hold rows, of shape {(*members, 2)} and how many.")
    return check_knobs(Knobs(**parts), members)


def _history(parts: Arrays, members: tuple[int, ...], how: Recipe) -> History:
    """Of measures, whatever they were: the loss of an epoch that diverged is NaN."""
    always = MEASURED - set(SOMETIMES)
    needed = always | {name for name, has in SOMETIMES.items() if has(how) and name != "temperature"}
    if parts and not needed <= set(parts) <= always | {name for name, has in SOMETIMES.items() if has(how)}:
        raise ValueError(f"its history has other entries: {', '.join(sorted(set(parts) ^ needed)[:3])}.")
    lengths = {values.shape[:1] for values in parts.values()}
    for name, values in parts.items():
        layers = values.shape[-1:] if name == "layer_sizes" else ()
        kind = "b" if name in FLAGS else "i" if name == "stage" else "bif"
        if len(lengths) != 1 or values.shape[1:] != (*members, *layers) or values.dtype.kind not in kind:
            raise ValueError(f"its history of {name!r} has shape {values.shape}, where there are members {members}.")
    if parts and ((parts["stage"] < 0) | (parts["stage"] > len(how.scales))).any():
        raise ValueError("its history has a stage that there is not.")
    return parts


def _capacities(entry: Any, last: Network, best: Network) -> tuple[tuple[int, int], ...]:
    """A pair for each member, of at most what it has and at least what it uses; or none."""
    if entry == []:
        return ()
    both = [(network.capacity, np.atleast_1d(network.in_use())) for network in (last, best)]
    wrong = ValueError(f"its capacities {str(entry)[:60]} are not those of its members.")
    if not isinstance(entry, list) or len(entry) != len(both[0][1]) or not last.capacity:
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
