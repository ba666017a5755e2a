"""Who looks on while an estimator is trained: its callbacks, Ctrl-C, and with `verbose` a person at the terminal.

    with watchers(name, epochs, measure, callbacks=…, verbose=…, before=…) as (watch, say): fit(…, watch=watch); say("done")

All are watchers of train/watching.py. `say` writes a line that stays, and nothing unless `verbose`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from meristem.estimators.interrupt import one_interrupt
from meristem.show.measures import Measure
from meristem.show.progress import Progress
from meristem.train.watching import Everyone, Watcher, watcher_of


@contextmanager
def watchers(
    name: str, epochs: int, measure: Measure, *, callbacks: Any, verbose: bool, before: int
) -> Iterator[tuple[Everyone, Callable[[str], None]]]:
    """What `fit` takes as `watch`; `before`: the epochs of earlier fits."""
    with ExitStack() as stack:
        everyone: list[Watcher] = [stack.enter_context(one_interrupt()), watcher_of("callbacks", callbacks)]
        if not verbose:
            yield Everyone(everyone), lambda line: None
            return
        progress = stack.enter_context(Progress())
        progress.plan({(name, "fit"): epochs})
        shown = stack.enter_context(progress.group(name, "fit", epochs, measure, before=before))
        yield Everyone([shown, *everyone]), progress.say
