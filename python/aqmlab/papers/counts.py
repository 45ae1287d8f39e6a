"""Counts of rows, cells and claims that add up over the papers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Counts"]


_Own = TypeVar("_Own", bound="Counts")


@dataclass(frozen=True)
class Counts:
    """Some counts; None: what is not scored."""

    def __add__(self: _Own, other: _Own) -> _Own:
        """Field by field; None where one of the two is not scored."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return type(self)(*(None if None in pair else sum(pair) for pair in pairs))
