"""Who looks on while a network is trained: callbacks, a person at the terminal, and Ctrl-C.

with watched("TunnelClassifier", 200, 3e-3, callbacks=[…], verbose=True) as (watch, pulse): fit(…, watch=watch, pulse=pulse)
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from meristem.estimators.interrupt import one_interrupt
from meristem.show.progress import Progress
from meristem.train.step import EpochInfo

SCALES = (1.0, 0.3, 0.1)  # of the rate, one after the other
Callback = Callable[[dict[str, float]], Any]
Watch = Callable[[int, EpochInfo], bool]
Pulse = Callable[[int, float], None]


@contextmanager
def watched(
    name: str, epochs: int, rate: float, *, callbacks: list[Callback], verbose: bool, before: int = 0
) -> Iterator[tuple[Watch, Pulse | None]]:
    """What training calls after each epoch and within long ones; `before`: epochs of earlier fits."""
    with ExitStack() as stack:
        interrupt = stack.enter_context(one_interrupt())
        progress = shown = None
        if verbose:
            progress = stack.enter_context(Progress())
            progress.plan({(name, "fit"): epochs})
            shown = stack.enter_context(progress.group(name, "fit", (rate,), SCALES, epochs))
        told: dict[str, float] = {}

        def watch(epoch: int, info: EpochInfo) -> bool:
            told.update(as_told(before + epoch, info, rate))
            if shown is not None:
                shown.watch(0, epoch, info)
            stops = [bool(callback(dict(told))) for callback in callbacks]
            return interrupt.asked or any(stops)

        def pulse(epoch: int, share: float) -> None:
            if shown is not None:
                shown.pulse(0, epoch, share)

        yield watch, pulse if verbose else None
        if progress is not None and told:
            progress.say(
                f"{name}: {told['epoch']} epochs, loss {told['loss']:.4g} (development {told['dev_loss']:.4g}), "
                f"soft size {told['soft_size']:.1f}, hard size {told['hard_size']}"
            )


def as_told(epoch: int, info: EpochInfo, rate: float) -> dict[str, float]:
    """An epoch as a callback sees it."""
    measures = {name: float(getattr(info, name)) for name in ("loss", "error", "dev_loss", "dev_error")}
    sizes = {"soft_size": float(info.layer_sizes.sum()), "hard_size": int(info.hard_size)}
    return {"epoch": epoch, **measures, **sizes, "rate": rate * SCALES[min(int(info.stage), len(SCALES) - 1)]}
