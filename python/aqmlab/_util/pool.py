"""Several runs at a time: threads over the engine, which needs no interpreter lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from aqmlab.errors import AqmlabError

T = TypeVar("T")
R = TypeVar("R")

STEP_S = 0.2
"""How long an interrupt may go unnoticed."""
OnProgress = Callable[[float], None]
"""Called by a piece of work with the share of it that is done."""


_WHOLE = 2**30
"""A whole piece of work in the units of :class:`Shares`."""


class Shares:
    """Adds up the shares of several pieces of work; it may be called from several threads.

    Args:
        total: how many pieces there are.
        progress: called with the share of all that is done.
    """

    def __init__(self, total: int, progress: OnProgress) -> None:
        self._whole = total * _WHOLE
        self._progress = progress
        self._shares: dict[Hashable, int] = {}
        self._done = 0
        self._lock = threading.Lock()

    def __call__(self, piece: Hashable, done: float) -> None:
        """Notes how much of a piece, its index or its name, is done."""
        share = round(done * _WHOLE)  # sums of whole numbers are exact
        with self._lock:
            self._done += share - self._shares.get(piece, 0)
            self._shares[piece] = share
            total = self._done / self._whole
        self._progress(total)


class _Interrupted(Exception):  # noqa: N818 - a signal between threads, not an error
    """The work is to end because its caller has been interrupted."""


def available_cpus() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def run_all(
    work: Callable[[T, OnProgress], R],
    items: Sequence[T],
    *,
    jobs: int | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> list[R | AqmlabError]:
    """Does some work for each item, several at a time.

    An interrupt (Ctrl-C) ends all of them at their next report.

    Args:
        work: is given an item and a function that it calls now and then with its progress.
        items: what to work on.
        jobs: how many at a time; default: the number of processors.
        progress: called, from several threads, with an item's index and the share of it that is
            done; 1 exactly once, at its end.

    Returns:
        The results in the order of the items; where work failed, its error.
    """
    from concurrent.futures import ThreadPoolExecutor  # with the modules of logging

    stop, ended = threading.Event(), threading.Event()
    left = len(items)
    counting = threading.Lock()

    def count() -> None:
        nonlocal left
        with counting:
            left -= 1
            if not left:
                ended.set()

    def one(index: int) -> R | AqmlabError:
        def report(done: float) -> None:
            if stop.is_set():
                raise _Interrupted
            if progress is not None and done < 1.0:
                progress(index, done)

        try:
            report(0.0)
            return work(items[index], report)
        except AqmlabError as error:
            return error
        finally:
            try:
                if progress is not None and not stop.is_set():
                    progress(index, 1.0)
            finally:
                count()

    with ThreadPoolExecutor(max_workers=max(1, jobs or available_cpus())) as executor:
        try:
            futures = [executor.submit(one, index) for index in range(len(items))]
            # Libraries that catch interrupts too let a wait without end sleep on; hence the steps.
            # To ask each of thousands of futures at every step takes longer than some work does.
            while items and not ended.wait(STEP_S):
                pass
        except BaseException:
            stop.set()
            executor.shutdown(wait=True, cancel_futures=True)
            raise
        return [future.result() for future in futures]
