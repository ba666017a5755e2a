"""What is different between two pictures, for those who have the first: `patched(before, changes(before, after)) == after`.

    {"is": value}                                     another value
    {"from": 12, "with": [0.31]}                      a list of plain values: what stands from this place on
    {"at": {"loss": change, …}, "without": ["rate"]}  an object: what changed in it, and what is gone
    {"each": {"0": change, …}, "length": 3}           a list of objects: what changed in which

page.html has the same function in JavaScript. Pure; imports nothing of meristem.
"""

from typing import Any

Change = dict[str, Any]


def changes(before: Any, after: Any) -> Change | None:
    """From one value to the other; None where they are the same.

    >>> changes({"loss": [3, 2], "epoch": 2}, {"loss": [3, 2, 1], "epoch": 3})
    {'at': {'loss': {'from': 2, 'with': [1]}, 'epoch': {'is': 3}}, 'without': []}
    """
    if isinstance(before, dict) and isinstance(after, dict):
        found = {name: {"is": after[name]} if name not in before else changes(before[name], after[name]) for name in after}
        at = {name: change for name, change in found.items() if change is not None}
        without = [name for name in before if name not in after]
        return {"at": at, "without": without} if at or without else None
    if isinstance(before, list) and isinstance(after, list):
        return _of_objects(before, after) if _are_objects(before) and _are_objects(after) else _of_values(before, after)
    return None if before == after and type(before) is type(after) else {"is": after}


def patched(before: Any, change: Change | None) -> Any:
    """The value after a change.

    >>> patched([{"epoch": 1}], {"each": {"0": {"at": {"epoch": {"is": 2}}, "without": []}, "1": {"is": {}}}, "length": 2})
    [{'epoch': 2}, {}]
    """
    if change is None:
        return before
    if "is" in change:
        return change["is"]
    if "from" in change:
        return [*before[: change["from"]], *change["with"]]
    if "each" in change:
        old = enumerate([*before, *[None] * change["length"]][: change["length"]])
        return [patched(one, change["each"].get(str(place))) for place, one in old]
    kept = {name: value for name, value in before.items() if name not in change["without"]}
    return kept | {name: patched(kept.get(name), one) for name, one in change["at"].items()}


def _of_values(before: list[Any], after: list[Any]) -> Change | None:
    same = 0
    while same < min(len(before), len(after)) and changes(before[same], after[same]) is None:
        same += 1
    return None if same == len(before) == len(after) else {"from": same, "with": after[same:]}


def _of_objects(before: list[Any], after: list[Any]) -> Change | None:
    each = {str(i): {"is": one} if i >= len(before) else changes(before[i], one) for i, one in enumerate(after)}
    changed = {place: change for place, change in each.items() if change is not None}
    return {"each": changed, "length": len(after)} if changed or len(before) != len(after) else None


def _are_objects(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(one, dict) for one in values)
