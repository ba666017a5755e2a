"""The history of a run: name → [epochs], for a population [epochs, members], from what each epoch said of itself.

A member's row is its own epoch. Rows after its last one are filled: measures and sizes stay, nothing improves or grows.
"""

from collections.abc import Sequence

import numpy as np

from meristem.train.state import FIELDS, EpochInfo

History = dict[str, np.ndarray]
EVENTS = ["improved", "opened", "closed", "waited"]  # what does not go on when a member has stopped


def with_epochs(past: History, infos: Sequence[EpochInfo], begun_at: np.ndarray) -> History:
    """The history after these epochs; `begun_at`: the epochs that each member had behind it when its history began."""
    if not infos:
        return past
    names = [name for name in (*FIELDS, "soft_size") if name != "epoch" and getattr(infos[0], name) is not None]
    new = {name: np.stack([np.asarray(getattr(info, name)) for info in infos]) for name in names}
    # What is measured now and was not before is NaN there: other data may have other measures.
    past = past and {name: past[name] if name in past else np.full_like(past["loss"], np.nan) for name in names}
    if begun_at.ndim == 0:
        return {name: np.concatenate([past[name], new[name]]) if past else new[name] for name in names}
    rows = np.stack([np.asarray(info.epoch) for info in infos]) - begun_at - 1  # [infos, members]
    had_stopped = past["stopped"][-1] if past else np.zeros(begun_at.shape, bool)
    ran = ~np.concatenate([had_stopped[None], new["stopped"][:-1]])  # [infos, members]
    columns = []
    for m in range(len(begun_at)):
        mine, first = ran[:, m], int(rows[0, m])
        before = {name: values[: first if mine[0] else first + 1, m] for name, values in past.items()}
        columns.append(
            {name: np.concatenate([before[name], new[name][mine, m]]) if past else new[name][mine, m] for name in names}
        )
    return side_by_side(columns)


def side_by_side(columns: Sequence[History]) -> History:
    """Histories of single networks as that of a population: the shorter ones are filled.

    >>> both = side_by_side([{"loss": np.array([3.0, 2.0, 1.0])}, {"loss": np.array([5.0])}])
    >>> both["loss"].tolist()
    [[3.0, 5.0], [2.0, 5.0], [1.0, 5.0]]
    """
    longest = max(columns, key=lambda column: max(map(len, column.values()), default=0))
    return {name: np.stack([_filled(column.get(name), like, name) for column in columns], 1) for name, like in longest.items()}


def _filled(values: np.ndarray | None, like: np.ndarray, name: str) -> np.ndarray:
    """As long as `like`; of a member that has not begun, zeros."""
    if values is None or not len(values):
        return np.zeros_like(like)
    filling = np.zeros_like(values[-1:]) if name in EVENTS else values[-1:]
    return np.concatenate([values, np.repeat(filling, len(like) - len(values), 0)])
