"""Interrupts (Ctrl-C) while modules are loaded."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["INTERRUPTED", "TOLD", "leaving_at_once"]


INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
TOLD = "aqmlab: interrupted\n"
"""What is said of it on standard error."""


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Within it an interrupt ends the process.

    While modules are loaded nothing is held that would have to be given back, and many do not stand
    an exception in their midst.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # a shell's background job ignores interrupts, a program may have its own way
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_number: int, _frame: object) -> None:
    """Says so and ends the process."""
    os.write(2, TOLD.encode())
    os._exit(INTERRUPTED)
