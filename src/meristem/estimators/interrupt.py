"""Ctrl-C while training: the first one ends it after the epoch, with the best model; a second one raises KeyboardInterrupt."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from meristem.train.callbacks import Watcher
from meristem.train.train_state import EpochInfo


class Interrupt(Watcher):
    """Ends the training when someone has asked to."""

    asked = False

    def epoch(self, member: int, info: EpochInfo) -> bool:
        return self.asked

    def over(self) -> bool:
        return self.asked


@contextmanager
def one_interrupt() -> Iterator[Interrupt]:
    """Inside, SIGINT sets `asked`; the second one raises.

    Nothing changes outside the main thread, which alone may handle signals, and where SIGINT is ignored or someone else's: the
    command line ends in an order of its own (commands/ending.py).
    """
    interrupt = Interrupt()

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.asked:
            raise KeyboardInterrupt
        interrupt.asked = True
        print("Ctrl-C: training ends with this epoch, the best model is kept. Once more to give up.", file=sys.stderr)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield interrupt
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
