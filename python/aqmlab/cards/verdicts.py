"""What findings are made of: sums of counts, and words about them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from aqmlab.cards.numbers import Numbers, numbers_of

__all__ = [
    "FAIL",
    "NOTE",
    "PASS",
    "PREFIX",
    "WARN",
    "CardFinding",
    "Pooled",
    "clearly",
    "judged",
    "percent",
]


PREFIX = "find:"
"""What the names of the numbers begin with."""
FAIL, WARN, NOTE, PASS = "FAIL", "WARN", "note", "pass"
APART = 2.0
"""Counts differ clearly if their square roots are so far apart."""


@dataclass(frozen=True)
class CardFinding:
    """What a queue does, or does not do, to some packets."""

    name: str
    outcome: str
    """:data:`FAIL`, :data:`WARN`, :data:`NOTE` or :data:`PASS`."""
    text: str
    """What was found; empty where nothing is wrong."""

    def to_json(self) -> dict[str, Any]:
        """For ``card.json``."""
        return {"name": self.name, "outcome": self.outcome, "text": self.text}


class Pooled:
    """Sums over the seeds of the numbers of one queue."""

    def __init__(self, numbers: Numbers, queue: str) -> None:
        self._found: dict[tuple[str, str], list[float]] = {}
        for row in numbers_of(numbers):
            if row.queue == queue and row.measure.startswith(PREFIX):
                name = row.measure.removeprefix(PREFIX)
                self._found.setdefault((row.test, name), []).append(row.value)

    def has(self, test: str) -> bool:
        """Whether a test has any number."""
        return any(one == test for one, _ in self._found)

    def sum(self, test: str, name: str) -> float:
        """The sum of a number over the seeds; 0 if there is none."""
        return math.fsum(self._found.get((test, name), []))

    def mean(self, test: str, name: str) -> float:
        """The mean of a number over the seeds; not a number if there is none."""
        values = self._found.get((test, name), [])
        return math.fsum(values) / len(values) if values else math.nan

    def share(self, test: str, part: str, whole: str) -> float:
        """A sum over another sum; 0 if the latter is 0."""
        total = self.sum(test, whole)
        return self.sum(test, part) / total if total else 0.0


def clearly(more: tuple[float, float], less: tuple[float, float]) -> bool:
    """Whether chance does not explain that the first loses more: each is packets lost and sent."""
    # Of equally many packets: square roots of Poisson counts have a variance of 1/4.
    expected = less[0] * (more[1] / less[1] if less[1] else 1.0)
    return math.sqrt(more[0]) - math.sqrt(expected) > APART


def percent(share: float) -> str:
    """A share in two digits."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.2g} %"


def judged(name: str, text: str, *, fails: bool = False, warns: bool = False) -> CardFinding:
    """A finding with its outcome."""
    outcome = FAIL if fails else WARN if warns else PASS
    return CardFinding(name, outcome, text if fails or warns else "")
