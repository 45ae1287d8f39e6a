"""Estimates, differences and seeds in words, as tables and sentences have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from aqmlab.results.statistics import Estimate

if TYPE_CHECKING:
    from aqmlab.results.groups import Group

__all__ = ["format_change", "format_estimate", "format_seeds"]


def format_estimate(found: Estimate, write: Callable[[float], str]) -> str:
    """A mean with its interval, for a table.

    Half of the interval follows ``±``; where one side is more than twice as long as the other, both
    ends are written. Equal values have a note instead.

    Args:
        found: the mean and its interval.
        write: a number in the metric's unit.
    """
    mean = write(found.mean)
    if math.isnan(found.low):
        return f"{mean} ({found.note})" if found.note else mean
    ends = write(found.low), write(found.high)
    if found.is_lopsided and ends != (mean, mean):
        return f"{mean} ({ends[0]} to {ends[1]})"
    half = write(found.half_width)
    if not any(digit in half for digit in "123456789"):
        half = f"<{half[:-1]}1"  # it varies, by less than is written
    return f"{mean} ± {half}"


def format_change(found: Estimate, write: Callable[[float], str]) -> str:
    """A difference with the ends of its interval; of equal ones it says so."""
    middle, low, high = (write(value) for value in (found.mean, found.low, found.high))
    if math.isnan(found.low):
        return f"{middle} ({found.note})" if found.note else middle
    return f"{middle} ({low} to {high})"


def format_seeds(groups: Sequence[Group]) -> str:
    """How many seeds are behind each row of a table."""
    counts = sorted({len(group.runs) for group in groups})
    if counts == [1]:
        return "one seed each"
    if len(counts) == 1:
        return f"{counts[0]} seeds each"
    return f"{counts[0]} to {counts[-1]} seeds each"
