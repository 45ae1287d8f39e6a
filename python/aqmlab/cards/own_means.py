"""The means of one's own numbers on a card, as a table shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from aqmlab.cards.numbers import Numbers, numbers_of
from aqmlab.cards.suites import Measure

__all__ = ["AREA", "means"]


AREA = "own"
"""What scored measures of one's own count for."""


def means(
    columns: Numbers, own: Sequence[Measure], queues: Sequence[str]
) -> list[tuple[Measure, dict[str, float]]]:
    """The mean of each measure for each queue, over settings and seeds.

    It is not a number where some run of the queue did not measure it.
    """
    runs: dict[tuple[str, str], set[tuple[str, int]]] = {}
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in numbers_of(columns):
        runs.setdefault((row.test, row.queue), set()).add((row.cell, row.seed))
        found.setdefault((row.test, row.measure, row.queue), []).append(row.value)

    def mean(measure: Measure, queue: str) -> float:
        known = found.get((measure.test, measure.measure, queue), [])
        whole = len(known) == len(runs.get((measure.test, queue), ()))
        return math.fsum(known) / len(known) if known and whole else math.nan

    return [(one, {queue: mean(one, queue) for queue in queues}) for one in own]
