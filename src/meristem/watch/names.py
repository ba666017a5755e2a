"""What the networks of a group are called: by their price, by their fold, and by whatever else tells them apart.

    names({"0": {"penalty": 0.003, "l2": 1e-5, "fold": 0}, "1": {…}}) → {0: "λ 0.003, fold 0", 1: …}

It is read from run.json ("members" of a group, folders/run_folder.py): only numbers are taken. Who is not in it has no name.
Imports nothing of meristem; state.py imports it.
"""

from typing import Any

KNOBS = {"penalty": "λ", "l2": "l2", "dropout": "dropout", "learning_rate": "rate"}
COUNTS = ("fold", "seed")
MOST = 2**32


def names(settings: Any) -> dict[int, str]:
    """By the number of a member. The price is named where there is one, the rest where members differ in it.

    >>> names({"0": {"penalty": 0.003, "l2": 1e-5, "fold": 0}, "1": {"penalty": 0.003, "l2": 1e-3, "fold": 0}})
    {0: 'λ 0.003, l2 1e-05', 1: 'λ 0.003, l2 0.001'}
    >>> names({"0": {"penalty": 0.0, "fold": 0}, "1": {"penalty": 0.0, "fold": 1}, "2": {"fold": "x"}}), names(None)
    ({0: 'fold 0', 1: 'fold 1'}, {})
    """
    given = settings.items() if isinstance(settings, dict) else ()
    said = {int(m): _words(own) for m, own in given if m.isdecimal() and len(m) < 10 and isinstance(own, dict)}
    each = {m: own for m, own in said.items() if own}
    differ = {name for name in (*KNOBS, *COUNTS) if len({own.get(name) for own in each.values()}) > 1}
    has_price = any(own.get("penalty", "λ 0") != "λ 0" for own in each.values())
    shown = differ | ({"penalty"} if has_price else set())
    found = {m: ", ".join(words for name, words in own.items() if name in shown) for m, own in each.items()}
    return {m: name for m, name in found.items() if name}


def _words(own: dict[str, Any]) -> dict[str, str]:
    """What is said of each number that there is, in the order in which it is said."""
    knobs = {name: f"{sign} {own[name]:.3g}" for name, sign in KNOBS.items() if _is_number(own.get(name))}
    return knobs | {name: f"{name} {own[name]}" for name in COUNTS if type(own.get(name)) is int and 0 <= own[name] < MOST}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < MOST
