"""Where the values of a C program lie: in x, in y, or in one array of memory that values share when their times do not overlap.

    placed(steps, last, x) → {value: Place}, the steps with copies where they are needed, and the size of the array

A step may write over a value that nothing reads later; a view lies in the value that it is a view of. Values that end up
in one piece of memory are a region; regions whose times overlap lie apart, each as low as it fits. Pure function of the steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from meristem.layers.ops.c import Step, Value, View


@dataclass(eq=False)
class Region:
    size: int
    first: int  # the step that writes it first
    last: int  # the last step that reads it
    array: str = "m"
    offset: int = 0


@dataclass(frozen=True, eq=False)
class Place:
    region: Region
    start: int

    def __str__(self) -> str:
        at = self.region.offset + self.start
        return f"{self.region.array} + {at}" if at else self.region.array


@dataclass(eq=False)
class Storage:
    places: dict[Value, Place] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    size: int = 0

    def overlap(self, a: Value, b: Value) -> bool:
        first, second = self.places[a], self.places[b]
        same = first.region is second.region
        return same and first.start < second.start + b.size and second.start < first.start + a.size


def placed(steps: Sequence[Step | View], last: Value, x: Value | None = None) -> Storage:
    """Return the places of all values; `last` is read at the end, `x` is the caller's array, which is never written."""
    storage, end, regions = Storage(), len(steps), list[Region]()
    last_read = {value: number for number, step in enumerate(steps) for value in step.reads} | {last: end}
    if x is not None:
        storage.places[x] = Place(Region(x.size, -1, end, "x"), 0)

    def is_free(value: Value, number: int) -> bool:
        """Return whether nothing that shares its memory is read after this step."""
        if storage.places[value].region.array == "x":
            return False
        return all(last_read.get(v, -1) <= number for v in storage.places if storage.overlap(value, v))

    def put(value: Value, place: Place) -> None:
        storage.places[value] = place
        place.region.last = max(place.region.last, last_read.get(value, place.region.first))

    homes: dict[Value, tuple[View, int]] = {}  # the view that a value is made for, and its place there
    for step in reversed(steps):
        if isinstance(step, View) and len(step.reads) > 1:
            starts = accumulate((value.size for value in step.reads), initial=0)
            for value, start in zip(step.reads, starts, strict=False):
                homes.setdefault(value, (step, start))
    of_view: dict[View, Region] = {}

    def new(value: Value, number: int) -> None:
        if value in homes:
            view, start = homes[value]
            if view not in of_view:
                of_view[view] = Region(sum(part.size for part in view.reads), number, number)
                regions.append(of_view[view])
            put(value, Place(of_view[view], start))
            return
        regions.append(Region(value.size, number, number))
        put(value, Place(regions[-1], 0))

    def add(step: Step, number: int) -> None:
        over = None if step.over is None else step.reads[step.over]
        others = [value for k, value in enumerate(step.reads) if k != step.over]
        if over is not None and is_free(over, number) and not any(storage.overlap(over, value) for value in others):
            put(step.out, storage.places[over])
        else:
            new(step.out, number)
            if over is not None:
                storage.steps.append(Step(f"copy({over.size}, {{0}}, {{y}});", (over,), step.out))
        storage.steps.append(step)

    for number, step in enumerate(steps):
        if isinstance(step, Step):
            add(step, number)
            continue
        first = storage.places[step.reads[0]]
        ends, at = [], first.start
        for value in step.reads:
            ends.append(storage.places[value].region is first.region and storage.places[value].start == at)
            at += value.size
        if all(ends):
            put(step.out, replace(first, start=first.start + step.start))
            continue
        new(step.out, number)
        at = 0
        for value in step.reads:
            part = Value(value.size)
            storage.places[part] = replace(storage.places[step.out], start=at)
            storage.steps.append(Step(f"copy({value.size}, {{0}}, {{y}});", (value,), part))
            at += value.size
    result = storage.places[last].region
    if result.array == "m" and result.size == last.size:
        result.array = "y"
    storage.size = _spread([region for region in regions if region.array == "m"])
    return storage


def _spread(regions: list[Region]) -> int:
    """Give each region the lowest offset at which nothing of its time lies; return the size of all."""
    done = list[Region]()
    for region in sorted(regions, key=lambda region: (-region.size, region.first)):
        taken = [other for other in done if other.first <= region.last and region.first <= other.last]
        ends = sorted({0, *(other.offset + other.size for other in taken)})
        region.offset = next(at for at in ends if all(at + region.size <= o.offset or o.offset + o.size <= at for o in taken))
        done.append(region)
    return max((region.offset + region.size for region in regions), default=0)
