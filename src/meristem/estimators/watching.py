"""Who looks on while an estimator is trained: its callbacks, Ctrl-C, and with `verbose` a person at the terminal.

    with watchers(name, epochs, measure, callbacks=…, verbose=…, before=…) as (watch, say): fit(…, watch=watch); say("done")

All are watchers of train/callbacks.py. `say` writes a line that stays, and nothing unless `verbose`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from meristem.estimators.interrupt import one_interrupt
from meristem.show.measure import Measure
from meristem.show.progress import Progress
from meristem.train.callbacks import Watcher, WatcherGroup, watcher_of


@contextmanager
def watchers(
    name: str, epochs: int, measure: Measure, *, callbacks: Any, verbose: bool, before: int
) -> Iterator[tuple[WatcherGroup, Callable[[str], None]]]:
    """What `fit` takes as `watch`; `before`: the epochs of earlier fits."""
    with ExitStack() as stack:
        everyone: list[Watcher] = [stack.enter_context(one_interrupt()), watcher_of("callbacks", callbacks)]
        if not verbose:
            yield WatcherGroup(everyone), lambda line: None
            return
        progress = stack.enter_context(Progress())
        progress.plan({(name, "fit"): epochs})
        shown = stack.enter_context(progress.group(name, "fit", epochs, measure, before=before))
        yield WatcherGroup([shown, *everyone]), progress.say
