"""Settings that nobody can know, drawn from the candidate: no queue is made for them.

The draw comes from SHA-256 over the plug-in's file, or the table, and the card's version. It
repeats; another word draws other settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

__all__ = ["AREA", "COUNT", "MEASURE", "Sealed", "SealedSetting", "score"]


AREA = "sealed"
COUNT = 6
"""Settings of a card."""
MEASURE = "wait p95"
LEAST_KNOWN, LEAST_SEALED = 0.5, 0.25
"""A queue whose known scores are at least the first, and whose sealed mean is below the second,
was made for the known tests."""
_LEAST_GAIN = 0.05
"""Settings in which the baselines gain less than this (in logarithms) on drop-tail say nothing."""
_LOWEST, _HIGHEST = -1.0, 1.25


@dataclass(frozen=True)
class SealedSetting:
    """What came out in one of them: waits in seconds."""

    label: str
    candidate: float
    """Not a number if its run failed."""
    droptail: float
    baselines: Sequence[float]

    @property
    def score(self) -> float | None:
        """0 is drop-tail, 1 the median of the baselines; None where they hardly differ."""
        return score(self.candidate, self.droptail, self.baselines)


@dataclass(frozen=True)
class Sealed:
    """The settings of a card and what came out."""

    word: str
    """What they were drawn from, in hexadecimal digits."""
    settings: Sequence[SealedSetting]

    @property
    def mean(self) -> float | None:
        """The mean of the scores; None: no setting can tell."""
        found = [one.score for one in self.settings if one.score is not None]
        return math.fsum(found) / len(found) if found else None

    def fails(self, known: Sequence[float | None]) -> bool:
        """Whether the candidate does well in what is known, and not in what is not.

        Args:
            known: its scores in the areas delay and stability.
        """
        mean = self.mean
        if mean is None or any(one is None or one < LEAST_KNOWN for one in known):
            return False
        return mean < LEAST_SEALED

    def to_json(self) -> dict[str, Any]:
        """For ``card.json``."""
        return {
            "word": self.word,
            "settings": [
                {
                    "label": one.label,
                    "candidate": one.candidate if math.isfinite(one.candidate) else None,
                    "droptail": one.droptail,
                    "baselines": list(one.baselines),
                }
                for one in self.settings
            ],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Sealed:
        """What :meth:`to_json` made."""
        return cls(
            data["word"],
            [
                SealedSetting(
                    one["label"],
                    math.nan if one["candidate"] is None else one["candidate"],
                    one["droptail"],
                    one["baselines"],
                )
                for one in data["settings"]
            ],
        )


def score(candidate: float, droptail: float, baselines: Sequence[float]) -> float | None:
    """A wait on the scale from drop-tail (0) to the median of the baselines (1)."""
    floor = 1e-4
    step = math.log(max(median(baselines), floor) / max(droptail, floor))
    if -step < _LEAST_GAIN:
        return None
    if math.isnan(candidate):
        return _LOWEST
    gained = math.log(max(candidate, floor) / max(droptail, floor))
    return min(_HIGHEST, max(_LOWEST, gained / step))
