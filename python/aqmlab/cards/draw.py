"""The draw of sealed settings; see :mod:`aqmlab.cards.sealed`."""

from __future__ import annotations

import hashlib
import json

from aqmlab.cards.candidates import Candidate
from aqmlab.cards.generator import SuiteCell, cells
from aqmlab.cards.sealed import AREA, COUNT
from aqmlab.cards.suites import Row

__all__ = ["drawn", "word_of"]


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


def word_of(candidate: Candidate, version: int, extra: str = "") -> str:
    """What the settings of a candidate are drawn from."""
    own = candidate.sha256 or json.dumps(candidate.table, sort_keys=True)
    return hashlib.sha256(f"{own}\n{version}\n{extra}".encode()).hexdigest()


def drawn(word: str) -> list[tuple[SuiteCell, int]]:
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
