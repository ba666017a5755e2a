"""A run as data: recipe, training state, best network and history; training continues from it to the same bits.

    header      {"state": {"network": {…}, "key": "threefry2x32"}, "best": {…}, "recipe": {…},
                 "least_capacity": 4, "max_capacity": 16, "capacities": []}
    recipe      {"objective": {"name": "quantile", "parameters": {"levels": [0.1, 0.9]}}, "batch_size": 8, "watch": "loss", …,
                 "scales": [1.0, 0.3, 0.1], "optimizer": null}
    arrays      state.…, best.…          by path
                knobs.NAME               of the knobs that are not None
                history.NAME             [epochs, *members, …]; none before the first epoch
                best_epoch, begun_at     [*members]

Networks are described in network_file.py; best and last network differ in their capacity alone. "capacities" has a pair for
each member of a population that was trained one by one: of its last and its best network, before they were stacked. The shapes
of a state are those that `train_state.start` makes for the network and the recipe's optimizer. A user's own optimizer is
functions, which no file holds: the entry is "own", and `load` must be given it. An entry that an older file lacks has its
default.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from meristem.check import cut, many, short, unknown
from meristem.files import network_file
from meristem.files.named_arrays import Arrays, by_path, check, check_state, fill, on_device, with_prefix, without_prefix
from meristem.files.network_file import Kinds
from meristem.nn.network import Network
from meristem.train.hyperparameters import Knobs, Recipe, check_knobs
from meristem.train.objectives import OBJECTIVES, Objective
from meristem.train.run import History, Run
from meristem.train.train_state import FIELDS, TrainState, start

ENTRIES = ["state", "best", "recipe", "least_capacity", "max_capacity", "capacities"]
COUNTS = ["best_epoch", "begun_at"]
PARTS = ["state", "best", "knobs", "history"]
RECIPE = [field.name for field in dataclasses.fields(Recipe)]
OWN = "own"
GENERATORS = ["threefry2x32", "rbg", "unsafe_rbg"]
MEASURED = {*FIELDS, "soft_size"} - {"epoch"}  # what a history may hold
SOMETIMES: dict[str, Callable[[Recipe], bool]] = {  # what not every history holds
    "macro_f1": lambda recipe: recipe.task.outputs_are_labels,
    "dev_macro_f1": lambda recipe: recipe.task.outputs_are_labels,
    "hard_cost": lambda recipe: recipe.price != "units",
    "temperature": lambda recipe: recipe.calibrate,  # and only where there is a development set
}
FLAGS = {"improved", "stopped", "diverged"}

# Recipes --------------------------------------------------------------------------------------------------------------------


def pack_recipe(recipe: Recipe) -> dict[str, Any]:
    """Return the entries of a recipe as JSON's values.

    >>> unpack_recipe(pack_recipe(Recipe(batch_size=8))) == Recipe(batch_size=8)
    True
    """
    task = recipe.task
    if OBJECTIVES.get(task.name, type(task)) is not type(task):
        raise ValueError(f"{task.name!r} is an objective of meristem's; give your class {type(task).__name__} another name.")
    parameters = {field.name: _to_json(getattr(task, field.name)) for field in dataclasses.fields(task)}
    return {name: _to_json(getattr(recipe, name)) for name in RECIPE if name not in ("objective", "optimizer")} | {
        "objective": {"name": task.name, "parameters": parameters},
        "optimizer": None if recipe.optimizer is None else OWN,
    }


def unpack_recipe(entries: Any, kinds: Kinds = (), optimizer: Any = None) -> Recipe:
    """Return the recipe, with `optimizer` where the file says that it was a user's own."""
    if not isinstance(entries, dict) or not set(entries) <= set(RECIPE) or not {"objective", "optimizer"} <= set(entries):
        raise ValueError(f"its recipe has other entries than {', '.join(RECIPE)}.")
    if entries["optimizer"] not in (None, OWN):
        raise ValueError(f"optimizer={entries['optimizer']!r} must be null or {OWN!r}.")
    if entries["optimizer"] == OWN and optimizer is None:
        raise ValueError(
            "it was trained with an optimizer of one's own, which no file holds; give the same: load(path, optimizer=chain)."
        )
    if entries["optimizer"] is None and optimizer is not None:
        raise ValueError("it was trained with meristem's Adam; leave optimizer=… out.")
    for name, value in entries.items():
        if isinstance(value, int) and abs(value) >= 2**31:
            raise ValueError(f"{name}={short(value)} must be below 2**31.")
    if not isinstance(entries.get("scales", []), list):
        raise ValueError(f"scales={entries['scales']!r} must be numbers.")
    fields = {name: _from_json(value) for name, value in entries.items() if name not in ("objective", "optimizer")}
    return Recipe(objective=_objective(entries["objective"], kinds), optimizer=optimizer, **fields)


def _objective(entry: Any, kinds: Kinds) -> Objective:
    if not isinstance(entry, dict) or set(entry) != {"name", "parameters"} or not isinstance(entry["parameters"], dict):
        raise ValueError("its objective has the entries name and parameters, and no other.")
    name = entry["name"]
    classes = OBJECTIVES | {kind.name: kind for kind in kinds if issubclass(kind, Objective)}
    if not isinstance(name, str) or name not in classes:
        raise ValueError(
            f"objective={str(name)[:40]!r} is not known, only {', '.join(classes)}; "
            "give the class of your own: load(path, kinds=[…])."
        )
    extra = set(entry["parameters"]) - {field.name for field in dataclasses.fields(classes[name])}
    if extra:
        raise ValueError(f"objective={name!r} has no parameter {sorted(extra)[0]!r}.")
    return classes[name](**{key: _from_json(value) for key, value in entry["parameters"].items()})


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_to_json(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _from_json(value: Any) -> Any:
    """Return lists as tuples: recipes are compared and hashed."""
    return tuple(map(_from_json, value)) if isinstance(value, list) else value


# States ---------------------------------------------------------------------------------------------------------------------


def pack_state(state: TrainState, recipe: Recipe = Recipe()) -> tuple[dict[str, Any], Arrays]:
    """Return a state's structure, made of JSON's values, and its arrays by path, on the host."""
    structure = {"network": network_file.structure_of(state.network), "key": str(jax.random.key_impl(state.key))}
    arrays = by_path(state)
    try:
        check(_state_shapes(structure, recipe, [type(state.network.body)]), arrays)
    except ValueError as error:
        raise ValueError(f"This state cannot be saved, it is not as training leaves it: {error}") from error
    return structure, arrays


def unpack_state(structure: Any, arrays: Mapping[str, np.ndarray], recipe: Recipe = Recipe(), kinds: Kinds = ()) -> TrainState:
    """Return the state; ValueError of one line if structure, arrays and the recipe's optimizer do not fit."""
    return state_on_device(structure, fill_state(structure, arrays, recipe, kinds), recipe, kinds)


def fill_state(structure: Any, arrays: Mapping[str, np.ndarray], recipe: Recipe = Recipe(), kinds: Kinds = ()) -> TrainState:
    """Return the state with arrays of the host, its key as data, after all checks."""
    network_file.check_sizes(structure.get("network") if isinstance(structure, dict) else None, arrays)
    state = fill(_state_shapes(structure, recipe, kinds), arrays)
    check_state(state, recipe)
    return state


def state_on_device(structure: Any, state: TrainState, recipe: Recipe = Recipe(), kinds: Kinds = ()) -> TrainState:
    """Return the result of `fill_state` as JAX arrays."""
    return on_device(_state_shapes(structure, recipe, kinds), state)


def _state_shapes(structure: Any, recipe: Recipe, kinds: Kinds) -> TrainState:
    if not isinstance(structure, dict) or set(structure) != {"network", "key"}:
        raise ValueError("the structure of a state has the entries network and key, and no other.")
    if structure["key"] not in GENERATORS:
        raise unknown("key", cut(str(structure["key"]), 40), GENERATORS)
    return _traced_state(structure, recipe, tuple(kinds))


@network_file.cached_by_structure
def _traced_state(structure: dict[str, Any], recipe: Recipe, kinds: Kinds) -> TrainState:
    generator = structure["key"]
    members = network_file.shapes(structure["network"], kinds).members
    single = network_file.shapes({**structure["network"], "members": []}, kinds)
    state = jax.eval_shape(lambda network: start(network, recipe, key=jax.random.key(0, impl=generator)), single)
    return network_file.population(state, members)


# Runs -----------------------------------------------------------------------------------------------------------------------


def pack_run(run: Run) -> tuple[dict[str, Any], Arrays]:
    """Return the header, made of JSON's values, and the arrays of a run of one network or of a population."""
    state_structure, state_arrays = pack_state(run.state, run.recipe)
    best_structure, best_arrays = network_file.pack_network(run.best)
    knobs = {name: np.asarray(value) for name, value in run.knobs._asdict().items() if value is not None}
    header = {
        "state": state_structure,
        "best": best_structure,
        "recipe": pack_recipe(run.recipe),
        "least_capacity": run.least_capacity,
        "max_capacity": run.max_capacity,
        "capacities": [list(pair) for pair in run.capacities],
    }
    arrays = {name: np.asarray(getattr(run, name)) for name in COUNTS}
    for prefix, part in zip(PARTS, (state_arrays, best_arrays, knobs, run.history), strict=True):
        arrays |= with_prefix(prefix, part)
    return header, arrays


def unpack_run(header: Any, arrays: Mapping[str, np.ndarray], kinds: Kinds = (), optimizer: Any = None) -> Run:
    """Return the run; ValueError of one line if its parts do not fit together."""
    run = fill_run(header, arrays, kinds, optimizer)
    state = state_on_device(header["state"], run.state, run.recipe, kinds)
    return dataclasses.replace(run, state=state, best=on_device(network_file.shapes(header["best"], kinds), run.best))


def fill_run(header: Any, arrays: Mapping[str, np.ndarray], kinds: Kinds = (), optimizer: Any = None) -> Run:
    """Return the run with state and best network on the host, after all checks."""
    if not isinstance(header, dict) or set(header) != set(ENTRIES):
        raise ValueError(f"a run has the entries {', '.join(ENTRIES)}, and no other.")
    extra = [name for name in arrays if name not in COUNTS and name.partition(".")[0] not in PARTS]
    if extra or not set(COUNTS) <= set(arrays):
        raise ValueError(f"it lacks best_epoch or begun_at, or has unknown arrays: {extra[:3]}.")
    recipe = unpack_recipe(header["recipe"], kinds, optimizer)
    state = fill_state(header["state"], without_prefix("state", arrays), recipe, kinds)
    best = network_file.fill_network(header["best"], without_prefix("best", arrays), kinds)
    _check_alike(header["state"]["network"], header["best"])
    if {leaf.dtype for leaf in jax.tree.leaves(best)} != {leaf.dtype for leaf in jax.tree.leaves(state.network)}:
        raise ValueError("its best and its last network are of different types of numbers.")
    members = state.epoch.shape
    for name in COUNTS:
        if arrays[name].shape != members or arrays[name].dtype.kind != "i" or (arrays[name] < 0).any():
            raise ValueError(f"array {name!r} must hold integers of shape {members}, none below 0.")
    run = Run(
        state=state,
        best=best,
        best_epoch=arrays["best_epoch"],
        knobs=_knobs(without_prefix("knobs", arrays), members),
        recipe=recipe,
        least_capacity=_capacity("least_capacity", header["least_capacity"], 0),
        max_capacity=_capacity("max_capacity", header["max_capacity"], 1),
        begun_at=arrays["begun_at"],
        capacities=_capacities(header["capacities"], state.network, best),
        past=_history(without_prefix("history", arrays), members, recipe),
    )
    epochs, rows = int(run.epochs.max()), len(run.past.get("loss", ()))
    too_few = rows < epochs and (rows or (np.asarray(state.epoch) != run.begun_at).any())
    if too_few or (rows > epochs and not run.stopped.all()):  # a stopped run may be asked for more epochs
        raise ValueError(f"its history has {many(rows, 'epoch')}, its state {epochs:,}.")
    if (run.begun_at > state.epoch).any() or (run.best_epoch > run.epochs).any():
        raise ValueError("its best epoch, or that in which it began, is none that it has had.")
    layers = run.past["layer_sizes"].shape[-1] if rows else None
    if layers is not None and layers != network_file.n_layers(header["best"], kinds):
        raise ValueError(f"its history has the sizes of {layers} layers, which its network has not.")
    return run


def _check_alike(last: dict[str, Any], best: dict[str, Any]) -> None:
    for name in last | best:
        if name != "capacity" and last.get(name) != best.get(name):
            raise ValueError(f"its best and its last network differ in {name}: {best.get(name)!r}, {last.get(name)!r}.")


def _knobs(arrays: Arrays, members: tuple[int, ...]) -> Knobs:
    if not {"learning_rate", "penalty", "l2"} <= set(arrays) <= set(Knobs._fields):
        raise ValueError(f"its knobs are {', '.join(sorted(arrays)) or 'missing'}; there are {', '.join(Knobs._fields)}.")
    rows = arrays.get("measured")
    if rows is not None and (rows.dtype.kind != "i" or rows.shape[:-1] != (*members, 2) or not rows.size or (rows < 0).any()):
        raise ValueError(f"array 'knobs.measured' must hold rows, of shape {(*members, 2)} and how many.")
    return check_knobs(Knobs(**arrays), members)


def _history(arrays: Arrays, members: tuple[int, ...], recipe: Recipe) -> History:
    """Return the history if its entries fit the recipe; measures may be NaN, as in an epoch that diverged."""
    possible = (MEASURED - set(SOMETIMES)) | {name for name, is_measured in SOMETIMES.items() if is_measured(recipe)}
    needed = possible - {"temperature"}
    if arrays and not needed <= set(arrays) <= possible:
        raise ValueError(f"its history has other entries: {', '.join(sorted(set(arrays) ^ needed)[:3])}.")
    lengths = {values.shape[:1] for values in arrays.values()}
    for name, values in arrays.items():
        layers = values.shape[-1:] if name == "layer_sizes" else ()
        kind = "b" if name in FLAGS else "i" if name == "stage" else "bif"
        if len(lengths) != 1 or values.shape[1:] != (*members, *layers) or values.dtype.kind not in kind:
            raise ValueError(f"its history of {name!r} has shape {values.shape}, where there are members {members}.")
    if arrays and ((arrays["stage"] < 0) | (arrays["stage"] > len(recipe.scales))).any():
        raise ValueError("its history has a stage that there is not.")
    return arrays


def _capacities(entry: Any, last: Network, best: Network) -> tuple[tuple[int, int], ...]:
    """Return a pair for each member, each from the capacity in use to that of its network; or none."""
    if entry == []:
        return ()
    both = [(network.capacity, np.atleast_1d(network.in_use())) for network in (last, best)]
    wrong = ValueError(f"its capacities {str(entry)[:60]} are not those of its members.")
    if not isinstance(entry, list) or len(entry) != len(both[0][1]) or not last.capacity:
        raise wrong
    for member, pair in enumerate(entry):
        if not isinstance(pair, list) or [type(value) for value in pair] != [int, int]:
            raise wrong
        if not all(used[member] <= value <= most for value, (most, used) in zip(pair, both, strict=True)):
            raise wrong
    return tuple((pair[0], pair[1]) for pair in entry)


def _capacity(name: str, value: Any, least: int) -> int:
    if type(value) is not int or not least <= value < 2**31:
        raise ValueError(f"{name}={short(value)} must be an integer of at least {least} and below 2**31.")
    return value
