"""How much memory runs may take.

A run that cannot fit is refused before it begins; one that grows beyond the bound ends with an
error, and leaves nothing behind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from aqmlab import _native
from aqmlab.errors import AqmlabError

__all__ = ["VARIABLE", "bound", "limit", "limited", "share"]


VARIABLE = "AQMLAB_MEMORY"
"""The environment variable that bounds the runs of a process where nothing else does."""

_given: int | None = None
"""Bytes that somebody has set for this process."""


def limit(memory: str | int | None) -> None:
    """Bounds the runs of this process: bytes, or text such as "4 GiB". None: as if never set."""
    global _given  # noqa: PLW0603 - memory is the process's
    _given = None if memory is None else _bytes(memory, "memory")


@contextmanager
def limited(memory: str | int | None) -> Iterator[None]:
    """Bounds the runs of this process while the block lasts; None changes nothing."""
    before = _given
    if memory is not None:
        limit(memory)
    try:
        yield
    finally:
        limit(before)


def bound() -> int | None:
    """Bytes that a run may take; None: most of what is free when it begins."""
    if _given is not None:
        return _given
    text = os.environ.get(VARIABLE)
    return _bytes(text, VARIABLE) if text else None


def share(jobs: int) -> int | None:
    """Bytes that each of some processes may take which run at the same time."""
    most = _native.memory_free() if (most := bound()) is None else most
    return None if most is None else most // jobs


def _bytes(memory: str | int, name: str) -> int:
    """Bytes, of which there must be some."""
    text = f"{memory} bytes" if isinstance(memory, int) else memory
    try:
        found = _native.parse_bytes(text)
    except AqmlabError as error:
        raise AqmlabError(f"{name}: {error}") from None
    if found == 0:
        raise AqmlabError(f"{name}: found {text}; a run needs some memory")
    return found
