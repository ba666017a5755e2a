"""The difference of two JSON values, so that the page is sent changes only; page.html applies it (`patched`).

{"is": value}                                     replace the value
{"from": 12, "with": [0.31]}                      a list of plain values: replace everything from an index on
{"at": {"loss": change, …}, "without": ["rate"]}  an object: changes by key, and removed keys
{"each": {"0": change, …}, "length": 3}           a list of objects: changes by index
"""

from itertools import takewhile
from typing import Any

Change = dict[str, Any]


def changes(before: Any, after: Any) -> Change | None:
    """Return the change from one value to the other; None where they are equal.

    >>> changes({"loss": [3, 2], "epoch": 2}, {"loss": [3, 2, 1], "epoch": 3})
    {'at': {'loss': {'from': 2, 'with': [1]}, 'epoch': {'is': 3}}, 'without': []}
    """
    if isinstance(before, dict) and isinstance(after, dict):
        at = _changed(before, after)
        without = [name for name in before if name not in after]
        return {"at": at, "without": without} if at or without else None
    if isinstance(before, list) and isinstance(after, list):
        if not (_are_objects(before) and _are_objects(after)):
            same = sum(1 for _ in takewhile(lambda pair: changes(*pair) is None, zip(before, after, strict=False)))
            return None if same == len(before) == len(after) else {"from": same, "with": after[same:]}
        each = _changed(*({str(i): value for i, value in enumerate(values)} for values in (before, after)))
        return {"each": each, "length": len(after)} if each or len(before) != len(after) else None
    return None if before == after and type(before) is type(after) else {"is": after}


def _changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Change]:
    """Return the changes of keys that are new or have other values."""
    pairs = {name: changes(before[name], value) if name in before else {"is": value} for name, value in after.items()}
    return {name: change for name, change in pairs.items() if change is not None}


def _are_objects(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, dict) for value in values)
