"""The numbers of runs, as a card has them: a table by columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["CardNumber", "Numbers", "numbers_of"]


Numbers = Mapping[str, Sequence[Any]]
"""Columns of equal length: the fields of :class:`CardNumber`."""


class CardNumber(NamedTuple):
    """A number of a run."""

    test: str
    cell: str
    queue: str
    seed: int
    measure: str
    value: float


def numbers_of(columns: Numbers) -> Iterator[CardNumber]:
    """The rows of a table, in order."""
    yield from map(
        CardNumber._make, zip(*(columns[name] for name in CardNumber._fields), strict=True)
    )
