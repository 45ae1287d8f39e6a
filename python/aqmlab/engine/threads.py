"""How many threads the runs of a process may keep at work.

A run simulates in one thread. A second thread, where one is free, encodes the run's records; the
files are the same either way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from aqmlab import _native
from aqmlab.errors import AqmlabError

__all__ = ["VARIABLE", "bound", "limited", "share"]


VARIABLE = "AQMLAB_THREADS"
"""The environment variable that bounds the threads of a process's runs."""

_given: ContextVar[int | None] = ContextVar("threads", default=None)
"""What somebody has set for the runs of this thread."""


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Bounds the threads of the runs that this thread makes while the block lasts."""
    before = _given.set(threads)
    try:
        yield
    finally:
        _given.reset(before)


def bound() -> int:
    """Threads that the runs of this process may keep at work together.

    By default those that the machine, its control groups and the process's affinity leave to it.
    """
    given = _given.get()
    if given is not None:
        return given
    text = os.environ.get(VARIABLE)
    if not text:
        return _native.available_threads()
    if not (text.isdecimal() and int(text) > 0):
        raise AqmlabError(f'{VARIABLE}: found "{text}"; a whole number from 1 on would be right')
    return int(text)


def share(jobs: int) -> int:
    """Threads for each of some processes which make runs at the same time."""
    return max(1, bound() // jobs)
