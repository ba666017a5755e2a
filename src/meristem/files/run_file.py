"""A run as data: recipe, training state, best network and history; training continues from it to the same bits.

    header      {"state": {"network": {…}, "key": "threefry2x32"}, "best": {…}, "recipe": {…},
                 "least_capacity": 4, "max_capacity": 16, "capacities": []}
    recipe      {"objective": {"name": "quantile", "parameters": {"levels": [0.1, 0.9]}}, "batch_size": 8, "watch": "loss", …,
                 "scales": [1.0, 0.3, 0.1], "optimizer": null}
    arrays      state.…, best.…          by path
                knobs.NAME               of the knobs that are not None
                history.NAME             [epochs, *members, …]; none before the first epoch
                best_epoch, begun_at     [*members]

Best and last network (network_file.py) differ in their capacity alone. "capacities" has a pair for each member of a population
that was trained one by one: of its last and its best network, before they were stacked. The shapes of a state are those that
`train_state.start` makes. A user's own optimizer is functions, which no file holds: the entry is "own", and `load` must be
given it. An entry that an older file lacks has its default.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from meristem.check import many
from meristem.files import network_file
from meristem.files.named_arrays import Arrays, by_path, check_state, fill, separated
from meristem.files.network_file import Kinds
from meristem.json_schema import ANY, OBJECT, SIZE, TEXT, Rule, check_json, first_difference, integer, one_of
from meristem.nn.network import Network
from meristem.train.hyperparameters import Knobs, Recipe, check_knobs, check_samples
from meristem.train.objectives import OBJECTIVES, Objective
from meristem.train.run import History, Run
from meristem.train.train_state import FIELDS, TrainState, start

OWN, LISTS = "own", ("scales", "augment")
SETTING = Rule("a setting below 2**31", lambda value: not isinstance(value, int) or abs(value) < 2**31)
SETTINGS = [field.name for field in dataclasses.fields(Recipe) if field.name not in ("objective", "optimizer")]
RECIPE = {
    "objective": {"name": TEXT, "parameters": OBJECT},
    "optimizer": (None, one_of([OWN])),
    **{f"{name}?": [ANY] if name in LISTS else SETTING for name in SETTINGS},
}
STATE = {"network": OBJECT, "key": one_of(["threefry2x32", "rbg", "unsafe_rbg"])}
RUN = {
    **{"state": STATE, "best": OBJECT, "recipe": RECIPE},
    **{"least_capacity": integer(0, bits=31), "max_capacity": SIZE, "capacities": [[SIZE]]},
}
PARTS = ["state", "best", "knobs", "history", "best_epoch", "begun_at"]
MEASURED = {*FIELDS, "soft_size"} - {"epoch"}  # what a history may hold
FLAGS = {"improved", "stopped", "diverged"}


def pack_recipe(recipe: Recipe) -> dict[str, Any]:
    task = recipe.task
    if OBJECTIVES.get(task.name, type(task)) is not type(task):
        raise ValueError(f"{task.name!r} is an objective of meristem's; give your class {type(task).__name__} another name.")
    parameters = {field.name: _to_json(getattr(task, field.name)) for field in dataclasses.fields(task)}
    return {name: _to_json(getattr(recipe, name)) for name in SETTINGS} | {
        "objective": {"name": task.name, "parameters": parameters},
        "optimizer": None if recipe.optimizer is None else OWN,
    }


def unpack_recipe(entries: Any, kinds: Kinds = (), optimizer: Any = None) -> Recipe:
    """Return the recipe, with `optimizer` where the file says that it was a user's own."""
    check_json(entries, RECIPE)
    if entries["optimizer"] == OWN and optimizer is None:
        raise ValueError("it was trained with your own optimizer, which no file holds; give it: load(path, optimizer=chain).")
    if entries["optimizer"] is None and optimizer is not None:
        raise ValueError("it was trained with meristem's Adam; leave optimizer=… out.")
    name, parameters = entries["objective"]["name"], entries["objective"]["parameters"]
    classes = OBJECTIVES | {kind.name: kind for kind in kinds if issubclass(kind, Objective)}
    if name not in classes:
        options = f"only {', '.join(classes)}; give the class of your own: load(path, kinds=[…])"
        raise ValueError(f"objective={name[:40]!r} is not known, {options}.")
    check_json(parameters, {f"{field.name}?": ANY for field in dataclasses.fields(classes[name])}, f"objective={name!r}: ")
    task = classes[name](**{key: _from_json(value) for key, value in parameters.items()})
    settings = {name: _from_json(value) for name, value in entries.items() if name in SETTINGS}
    return Recipe(objective=task, optimizer=optimizer, **settings)


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_to_json(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _from_json(value: Any) -> Any:
    """Return lists as tuples: recipes are compared and hashed."""
    return tuple(map(_from_json, value)) if isinstance(value, list) else value


def state_structure(state: TrainState) -> dict[str, Any]:
    """Return everything of a state except its arrays."""
    return {"network": network_file.structure_of(state.network), "key": str(jax.random.key_impl(state.key))}


def unpack_state(structure: Any, arrays: Mapping[str, np.ndarray], recipe: Recipe = Recipe(), kinds: Kinds = ()) -> TrainState:
    """Return the state, on the host but for its key; ValueError of one line if structure, arrays and recipe do not fit."""
    check_json(structure, STATE)
    network_file.check_sizes(structure["network"], arrays)
    state = fill(_state_shapes(structure, recipe, kinds), arrays)
    check_state(state, recipe)
    return state


@network_file.cached_by_structure
def _state_shapes(structure: dict[str, Any], recipe: Recipe, kinds: Kinds) -> TrainState:
    network = network_file.shapes(structure["network"], kinds)
    state = jax.eval_shape(lambda single: start(single, jax.random.key(0, impl=structure["key"]), recipe), network)
    return network_file.population(state, structure["network"]["members"])


def pack_run(run: Run) -> tuple[dict[str, Any], Arrays]:
    """Return the header, made of JSON's values, and the arrays of a run of one network or of a population."""
    header = {
        "state": state_structure(run.state),
        "best": network_file.structure_of(run.best),
        "recipe": pack_recipe(run.recipe),
        "least_capacity": run.least_capacity,
        "max_capacity": run.max_capacity,
        "capacities": [list(pair) for pair in run.capacities],
    }
    parts = {"state": run.state, "best": run.best, "knobs": run.knobs._asdict(), "history": run.history}
    return header, by_path(parts | {"best_epoch": run.best_epoch, "begun_at": run.begun_at})


def unpack_run(header: Any, arrays: Mapping[str, np.ndarray], kinds: Kinds = (), optimizer: Any = None) -> Run:
    """Return the run, its state and best network on the host; ValueError of one line if its parts do not fit together."""
    check_json(header, RUN)
    parts = separated(arrays, PARTS)
    recipe = unpack_recipe(header["recipe"], kinds, optimizer)
    state = unpack_state(header["state"], parts["state"], recipe, kinds)
    best = network_file.unpack_network(header["best"], parts["best"], kinds)
    if difference := first_difference(header["best"] | {"capacity": None}, header["state"]["network"] | {"capacity": None}):
        raise ValueError("its best and its last network differ in {}: {}, {}.".format(*difference))
    if {leaf.dtype for leaf in jax.tree.leaves(best)} != {leaf.dtype for leaf in jax.tree.leaves(state.network)}:
        raise ValueError("its best and its last network are of different types of numbers.")
    members = state.epoch.shape
    for name in ("best_epoch", "begun_at"):
        count = arrays.get(name)
        if count is None or count.shape != members or count.dtype.kind != "i" or (count < 0).any():
            raise ValueError(f"array {name!r} must hold integers of shape {members}, none below 0.")
    run = Run(
        state=state,
        best=best,
        best_epoch=arrays["best_epoch"],
        knobs=_knobs(parts["knobs"], members),
        recipe=recipe,
        least_capacity=header["least_capacity"],
        max_capacity=header["max_capacity"],
        begun_at=arrays["begun_at"],
        capacities=_capacities(header["capacities"], state.network, best),
        past=_history(parts["history"], members, recipe),
    )
    check_samples(run.knobs, recipe, state.network)
    epochs, rows = int(run.epochs.max()), len(run.past.get("loss", ()))
    too_few = rows < epochs and (rows or (np.asarray(state.epoch) != run.begun_at).any())
    if too_few or (rows > epochs and not run.stopped.all()):  # a stopped run may be asked for more epochs
        raise ValueError(f"its history has {many(rows, 'epoch')}, its state {epochs:,}.")
    if (run.begun_at > state.epoch).any() or (run.best_epoch > run.epochs).any():
        raise ValueError("its best epoch, or that in which it began, is none that it has had.")
    if rows and (layers := run.past["layer_sizes"].shape[-1]) != network_file.n_layers(header["best"], kinds):
        raise ValueError(f"its history has the sizes of {layers} layers, which its network has not.")
    return run


def _knobs(arrays: Arrays, members: tuple[int, ...]) -> Knobs:
    if not {"learning_rate", "penalty", "l2"} <= set(arrays) <= set(Knobs._fields):
        raise ValueError(f"its knobs are {', '.join(sorted(arrays)) or 'missing'}; there are {', '.join(Knobs._fields)}.")
    rows = arrays.get("measured")
    if rows is not None and (rows.dtype.kind != "i" or rows.shape[:-1] != (*members, 2) or not rows.size or (rows < 0).any()):
        raise ValueError(f"array 'knobs.measured' must hold rows, of shape {(*members, 2)} and how many.")
    return check_knobs(Knobs(**arrays), members)


def _history(arrays: Arrays, members: tuple[int, ...], recipe: Recipe) -> History:
    """Return the history if its entries fit the recipe; measures may be NaN, as in an epoch that diverged."""
    sometimes = dict.fromkeys(("macro_f1", "dev_macro_f1"), recipe.task.outputs_are_labels)
    sometimes |= {"hard_cost": recipe.price != "units", "temperature": recipe.calibrate}
    possible = {name for name in MEASURED if sometimes.get(name, True)}
    needed = possible - {"temperature"}  # only where there is a development set
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


def _capacities(pairs: list[list[int]], last: Network, best: Network) -> tuple[tuple[int, int], ...]:
    """Return a pair for each member, each from the capacity in use to that of its network; or none."""
    if not pairs:
        return ()
    most, used = (last.capacity, best.capacity), np.stack([np.atleast_1d(network.in_use()) for network in (last, best)], 1)
    is_complete = bool(last.capacity) and len(pairs) == len(used) and all(len(pair) == 2 for pair in pairs)
    if not is_complete or ((pairs < used) | (np.array(pairs) > most)).any():
        raise ValueError(f"its capacities {str(pairs)[:60]} are not those of its members.")
    return tuple((of_last, of_best) for of_last, of_best in pairs)
