"""Settings that nobody can know, drawn from the candidate: no queue is made for them.

The draw comes from SHA-256 over the plug-in's file, or the table, and the card's version. It
repeats; another word draws other settings.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from aqmlab.cards.candidates import Candidate
from aqmlab.cards.generator import Cell, cells
from aqmlab.cards.suites import Row

__all__ = ["AREA", "COUNT", "MEASURE", "Sealed", "Setting", "drawn", "score", "word_of"]


AREA = "sealed"
COUNT = 6
"""Settings of a card."""
MEASURE = "wait p95"
_RATE = (3.0, 60.0)
"""Mbit/s."""
_RTT = (15.0, 100.0)
"""ms."""
_FLOWS = (2, 8)
_BUFFER = (120.0, 400.0)
"""ms of the link."""
_STREAMS = (
    "1 cbr, name=small, rate=112 kbit/s, packet=60 bytes, gaps=exponential; "
    "1 cbr, name=large, rate=112 kbit/s, packet=1400 bytes, gaps=exponential; "
    "- probes, rate=20 /s; - objects, rate=4 /s"
)
LEAST_KNOWN, LEAST_SEALED = 0.5, 0.25
"""A queue whose known scores are at least the first, and whose sealed mean is below the second,
was made for the known tests."""
_LEAST_GAIN = 0.05
"""Settings in which the baselines gain less than this (in logarithms) on drop-tail say nothing."""
_LOWEST, _HIGHEST = -1.0, 1.25


@dataclass(frozen=True)
class Setting:
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
    settings: Sequence[Setting]

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
                Setting(
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


def word_of(candidate: Candidate, version: int, extra: str = "") -> str:
    """What the settings of a candidate are drawn from."""
    own = candidate.sha256 or json.dumps(candidate.table, sort_keys=True)
    return hashlib.sha256(f"{own}\n{version}\n{extra}".encode()).hexdigest()


def drawn(word: str) -> list[tuple[Cell, int]]:
    """The settings and their seeds."""
    found = []
    for number in range(1, COUNT + 1):
        digest = hashlib.sha256(f"{word} {number}".encode()).digest()
        shares = [int.from_bytes(digest[at : at + 6], "big") / 2**48 for at in range(0, 24, 6)]
        rate, rtt, buffer = (
            low * (high / low) ** share
            for (low, high), share in zip((_RATE, _RTT, _BUFFER), shares, strict=False)
        )
        flows = round(_FLOWS[0] * (_FLOWS[1] / _FLOWS[0]) ** shares[3])
        seed = 1 + int.from_bytes(digest[24:28], "big") % 1_000_000
        row = Row(
            id=f"sealed-{number}",
            section="-",
            scenario="a setting that nobody can know",
            area=AREA,
            rate=f"{rate:.3g} Mbit/s",
            rtt=f"{rtt:.3g} ms",
            buffer=f"{buffer:.0f} ms",
            traffic=f"{flows} cubic, name=down; {_STREAMS}",
            warm_up="10 s",
            duration="40 s",
        )
        found += [(cell, seed) for cell in cells(row)]
    return found
