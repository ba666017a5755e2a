"""The room of a network: the width and the number of layers of the arrays in which its units open.

    rooms(most)                     32 × 2 first, then doubled up to the largest, which the user sets
    is_crowded(network, room)       whether the network uses so much of it that a larger one may be better

A network that ends with some hundred parameters needs no arrays of 64 × 5 at every step: half the time of a fit, at the same
scores (results/log/2026-11-18-room-and-batches.md). So training begins in a small room, and where the network that results is
crowded, another one is trained in a room of twice the size, and the better of the two is kept. There are few rooms, so that
most tables share their compiled programs.
"""

from typing import NamedTuple

from meristem.compact import compact
from meristem.nn import Network

CROWDED = 0.5  # of all units


class Room(NamedTuple):
    """The width and the layers of a network's arrays."""

    width: int
    depth: int


FIRST = Room(32, 2)


def rooms(most: Room, first: Room = FIRST) -> list[Room]:
    """Return the rooms up to the largest, the smallest first; one that is nearly as large as the largest is left out.

    >>> rooms(Room(64, 5)), rooms(Room(16, 2))
    ([Room(width=32, depth=2), Room(width=64, depth=5)], [Room(width=16, depth=2)])
    """
    room = Room(min(first.width, most.width), min(first.depth, most.depth))
    sizes = [room]
    while room != most:
        doubled = Room(min(2 * room.width, most.width), min(2 * room.depth, most.depth))
        room = most if most.width < 2 * doubled.width and most.depth < 2 * doubled.depth else doubled
        sizes.append(room)
    return sizes


def is_crowded(network: Network, room: Room) -> bool:
    """Return whether more than half of the units are open."""
    return sum(compact(network).units) > CROWDED * room.width * room.depth
