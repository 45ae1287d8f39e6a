"""Interrupts (Ctrl-C) while modules are loaded.

It imports next to nothing itself: until it is loaded, an interrupt is a traceback of Python's.
"""

from __future__ import annotations

import os
import signal

__all__ = ["INTERRUPTED", "MESSAGE", "leaving_at_once"]


INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
MESSAGE = "aqmlab: interrupted\n"
"""What is said of it on standard error."""


class leaving_at_once:  # noqa: N801 - a context, called like a function
    """Within it an interrupt ends the process.

    While modules are loaded nothing is held that would have to be given back, and many do not stand
    an exception in their midst. Where interrupts are ignored, as in a shell's background jobs, or
    handled in another way, and in other threads than the main one, nothing changes.
    """

    def __enter__(self) -> None:
        self._is_set = False
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                signal.signal(signal.SIGINT, _leave)
            except ValueError:  # only the main thread may
                return
            self._is_set = True

    def __exit__(self, *_: object) -> None:
        if self._is_set:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_number: int, _frame: object) -> None:
    """Says so and ends the process."""
    os.write(2, MESSAGE.encode())
    os._exit(INTERRUPTED)
