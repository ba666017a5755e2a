"""A recipe as JSON's values.

    {"objective": {"name": "quantile", "parameters": {"levels": [0.1, 0.9]}}, "batch_size": 8, "depth_decay": 0.75,
     "watch": "loss", "select": "error", "patience": 20, "scales": [1.0, 0.3, 0.1], "optimizer": null}

An optimizer of a person's own is functions, which no file holds: the entry is then "own", and whoever loads it must give it. An
entry that an older file lacks has its default.
"""

import dataclasses
from typing import Any

import numpy as np

from meristem.files.network import Kinds
from meristem.train.hyperparameters import Recipe
from meristem.train.objectives import OBJECTIVES, Objective

NAMES = [field.name for field in dataclasses.fields(Recipe)]
OWN = "own"


def pack(recipe: Recipe) -> dict[str, Any]:
    """The entries of a recipe.

    >>> pack(Recipe(batch_size=8))["scales"]
    [1.0, 0.3, 0.1]
    """
    task = recipe.task
    if OBJECTIVES.get(task.name, type(task)) is not type(task):
        raise ValueError(f"{task.name!r} is an objective of meristem's; give your class {type(task).__name__} another name.")
    parameters = {field.name: _plain(getattr(task, field.name)) for field in dataclasses.fields(task)}
    return {name: _plain(getattr(recipe, name)) for name in NAMES if name not in ("objective", "optimizer")} | {
        "objective": {"name": task.name, "parameters": parameters},
        "optimizer": None if recipe.optimizer is None else OWN,
    }


def unpack(entries: Any, kinds: Kinds = (), optimizer: Any = None) -> Recipe:
    """The recipe, with the optimizer that is given for one that no file holds.

    >>> unpack(pack(Recipe(batch_size=8))) == Recipe(batch_size=8)
    True
    """
    if not isinstance(entries, dict) or not set(entries) <= set(NAMES) or not {"objective", "optimizer"} <= set(entries):
        raise ValueError(f"its recipe has other entries than {', '.join(NAMES)}.")
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
            raise ValueError(f"{name}={value!r} must be below 2**31.")
    if not isinstance(entries.get("scales", []), list):
        raise ValueError(f"scales={entries['scales']!r} must be numbers.")
    given = {name: _unplain(value) for name, value in entries.items() if name not in ("objective", "optimizer")}
    return Recipe(objective=_objective(entries["objective"], kinds), optimizer=optimizer, **given)


def _objective(entry: Any, kinds: Kinds) -> Objective:
    if not isinstance(entry, dict) or set(entry) != {"name", "parameters"} or not isinstance(entry["parameters"], dict):
        raise ValueError("its objective has the entries name and parameters, and no other.")
    name = entry["name"]
    known = OBJECTIVES | {kind.name: kind for kind in kinds if issubclass(kind, Objective)}
    if not isinstance(name, str) or name not in known:
        raise ValueError(
            f"objective={str(name)[:40]!r} is not known, only {', '.join(known)}; "
            "give the class of your own: load(path, kinds=[…])."
        )
    off = set(entry["parameters"]) - {field.name for field in dataclasses.fields(known[name])}
    if off:
        raise ValueError(f"objective={name!r} has no parameter {sorted(off)[0]!r}.")
    return known[name](**{key: _unplain(value) for key, value in entry["parameters"].items()})


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _unplain(value: Any) -> Any:
    """A list as a tuple: recipes are compared and hashed."""
    return tuple(map(_unplain, value)) if isinstance(value, list) else value
