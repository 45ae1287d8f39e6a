"""Tables and sentences about the exchanges of a capture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab._util.table import Bar, Cell, TableModel
from aqmlab._util.words import in_sentence
from aqmlab.results.breakdown import BANDS
from aqmlab.results.why import in_words, milliseconds
from aqmlab.traffic.tapped import PARTS, UNKNOWN, Tapped, TappedExchange

__all__ = ["TappedBand", "band_table", "bands", "content", "paragraphs"]


_SHARES = {"all": 1.0, "slowest_50": 0.5, "slowest_10": 0.1, "slowest_1": 0.01}
_TAIL = "slowest_10"
_WORTH = 0.05
"""Parts below this share of the time are left out of sentences."""
_DOING = {
    "handshake": "opening the connection",
    "syn_timeout": "waiting for the timer of a lost SYN or SYN-ACK",
    "server": "waiting for the server",
    "timeout": "waiting for the timer of lost data",
    "recovery": "between a loss and its repair, apart from such timers",
    "transfer": "while data travel",
}


@dataclass(frozen=True)
class TappedBand:
    """Means of some exchanges."""

    count: int
    response_s: float
    parts: dict[str, float]
    """Seconds by the key of a part."""
    round_trips: float
    timer_share: float
    """Share of the exchanges that waited for a timer."""

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "count": self.count,
            "response_s": self.response_s,
            **{f"{key}_s": time for key, time in self.parts.items()},
            "round_trips": self.round_trips,
            "timer_share": self.timer_share,
        }


def bands(exchanges: Sequence[TappedExchange]) -> dict[str, TappedBand]:
    """Means of all exchanges and of the slowest ones, as the breakdown of a run has them."""
    ranked = sorted(exchanges, key=lambda one: -one.response_s)
    return {name: _band(ranked[: math.ceil(share * len(ranked))])
            for name, share in _SHARES.items()}  # fmt: skip


def _band(chosen: Sequence[TappedExchange]) -> TappedBand:
    count = len(chosen)
    return TappedBand(
        count,
        math.fsum(one.response_s for one in chosen) / count,
        {key: math.fsum(one.parts.get(key, 0.0) for one in chosen) / count for key in PARTS},
        sum(one.round_trips for one in chosen) / count,
        sum(one.timeouts + one.syn_timeouts > 0 for one in chosen) / count,
    )


def band_table(tapped: Tapped) -> TableModel:
    """The parts, a column for each band: milliseconds and shares of the time."""
    found = bands(tapped.exchanges)
    title = f"{tapped.capture}: parts of response times, mean ms and share"
    table = TableModel(title, ["part"], BANDS.values(), name="why")
    for key, label in PARTS.items():
        cells = []
        for band in found.values():
            time = band.parts[key]
            share = 100 * time / band.response_s if band.response_s else 0.0
            cells.append(Cell(f"{milliseconds(time)} ({share:.0f} %)", bar=Bar(0, share)))
        table.add_row(label, *cells)
    every = found.values()
    table.add_row("response time", *(Cell(milliseconds(one.response_s), "clear") for one in every))
    table.add_row("that waited for a timer", *(f"{100 * one.timer_share:.0f} %" for one in every))
    table.add_row("round trips of data", *(f"{one.round_trips:.1f}" for one in every))
    table.add_row("responses", *(f"{one.count:,}" for one in every))
    return table


def paragraphs(tapped: Tapped) -> list[str]:
    """What the slowest responses wait for, what was left out, and what a capture cannot show."""
    found = bands(tapped.exchanges)
    tail = found[_TAIL]
    ranked = sorted(tail.parts.items(), key=lambda part: -part[1])
    clauses = [
        f"{100 * time / tail.response_s:.0f} % {_DOING[key]}"
        for key, time in ranked
        if tail.response_s and time >= _WORTH * tail.response_s
    ]
    clauses[:1] = [one.replace(" % ", " % of their time ", 1) for one in clauses[:1]]
    spent = f" The slowest spend {in_sentence(clauses)}." if clauses else ""
    said = (
        f"The slowest 10 % of responses take {in_words(tail.response_s)} on average. All responses "
        f"take {in_words(found['all'].response_s)}.{spent}"
    )
    uploads = sum(not one.response_bytes for one in tapped.exchanges)
    if uploads:
        said += (
            f" {uploads:,} of them are uploads, which nothing but ACKs answers: they end with the "
            "last ACK."
        )
    if tapped.left_out:
        seen = tapped.connections + tapped.left_out
        said += (
            f" {tapped.left_out:,} of {seen:,} connections are left out: their SYN or the end of "
            "a response is missing."
        )
    return [said, "A capture from one place does not show:", *(f"- {one}" for one in UNKNOWN)]


def content(tapped: Tapped) -> dict[str, Any]:
    """Everything as JSON."""
    return {
        "capture": tapped.capture,
        "connections": tapped.connections,
        "left_out": tapped.left_out,
        "bands": {name: band.to_json() for name, band in bands(tapped.exchanges).items()},
        "unknown": list(UNKNOWN),
        "responses": [one.to_json() for one in tapped.exchanges],
    }
