"""The story of one response: the parts of its time, from its row in ``breakdown.parquet``."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab._util.lazy import np
from aqmlab._util.table import Bar, Cell, TableModel
from aqmlab.errors import AqmlabError
from aqmlab.results.breakdown import check_breakdown, part
from aqmlab.results.directions import in_queue, placed
from aqmlab.results.events import Events, Moment
from aqmlab.results.links import LinkDirection
from aqmlab.results.run import Run

__all__ = ["Story", "story"]


_TABLE = "breakdown"
COUNTS = {
    "propagation_handshake": ("trips_handshake", "trip"),
    "propagation_exchange": ("trips_exchange", "trip"),
    "propagation_slow_start": ("trips_slow_start", "trip"),
    "propagation_congestion_avoidance": ("trips_congestion_avoidance", "trip"),
    "propagation_receive_window": ("trips_receive_window", "trip"),
    "propagation_recovery": ("trips_recovery", "trip"),
    "syn_timeout": ("syn_timeouts", "expiry"),
    "timeout": ("timeouts", "expiry"),
    "tail_loss_probe": ("tail_loss_probes", "expiry"),
    "handshake_probe_timeout": ("handshake_probe_timeouts", "expiry"),
    "probe_timeout": ("probe_timeouts", "expiry"),
    "delayed_ack": ("delayed_acks", "expiry"),
}
"""What is counted beside the time of a part, and what one of it is."""
PLURAL = {"trip": "trips", "expiry": "expiries"}
SEGMENTS = {
    "syn": "a SYN or SYN-ACK",
    "data": "a segment with data",
    "fin": "a FIN",
    "handshake": "a packet of the handshake",
    "limit": "a new limit of the receiver's",
}
_MOST_MOMENTS = 30
"""From so many moments on, trips without a loss are one line."""
_KEPT = 2
"""Trips that remain at each end of what is one line."""


@dataclass(frozen=True)
class Story:
    """One response and where its time went."""

    run: Run
    number: int
    """Its row, the first being 1."""
    rank: int
    """Its place among the responses, the slowest being 1."""
    of: int
    """How many there are: of its class, if one was asked for."""
    row: Mapping[str, Any]
    """Its row in ``breakdown.parquet``."""

    @property
    def response_ns(self) -> int:
        """Its response time in nanoseconds."""
        return int(self.row["response_ns"])

    @property
    def parts(self) -> dict[str, int]:
        """The parts of this time in nanoseconds, without those that took none."""
        return {
            key[:-3]: int(value)
            for key, value in self.row.items()
            if key.endswith("_ns") and key != "response_ns" and value
        }

    def head(self) -> list[str]:
        """Which response it is."""
        row, run = self.row, self.run
        which = f"response {self.number:,} of {run.label}, seed {run.seed}"
        size = f"{row['response_bytes']:,} bytes"
        time = f"{_exact(self.response_ns)} ms"
        return [
            f"{which}: class {row['class']}, connection {row['flow']}",
            f"It began at {row['start_s']:.6f} s, carried {size} and took {time}.",
            f"By time it is number {self.rank:,} of {self.of:,}, the slowest first.",
        ]

    def table(self) -> TableModel:
        """A row for each part that took time."""
        table = TableModel("", ["part"], ["ms", "%", "count"])
        found = self.parts
        one = len({at.link for key in found if (at := part(key).at) is not None}) < 2
        for key, time in found.items():
            share = 100 * time / self.response_ns
            table.add_row(
                part(key).named(self.run.scenario, only_link=one),
                _exact(time),
                Cell(f"{share:.1f}", bar=Bar(0, share)),
                self._count(key),
            )
        table.add_row("response time", Cell(_exact(self.response_ns), "clear"), "100.0", "-")
        return table

    def _count(self, key: str) -> str:
        """How many trips or expiries are behind a part."""
        column, noun = COUNTS.get(key, ("", ""))
        count = int(self.row.get(column) or 0)
        return f"{count} {noun if count == 1 else PLURAL[noun]}" if count else "-"

    def events_table(self, events: Events) -> TableModel:
        """A row for each event on the path; many trips without a loss are one row."""
        table = TableModel()
        table.add_key("ms", is_number=True)
        table.add_text("event")
        for moment in _shortened(events.moments()):
            table.add_row(f"{moment.time_ns / 1e6:,.3f}", moment.text)
        return table

    def losses(self) -> list[str]:
        """What was lost on its path."""
        row = self.row
        said = []
        if not row.get("loss_s"):
            said.append("No packet that this response waited for was lost.")
        else:
            what = SEGMENTS.get(str(row["loss_segment"]), "a packet")
            why = str(row["loss_reason"]).replace("_", " ")
            at = LinkDirection(str(row["loss_link"]), str(row["loss_direction"]))
            if why == "wire":
                how = "was lost on the wire"
                place = f" {placed(at, self.run.scenario)}" if at.link else ""
            else:
                how = f"was dropped (reason: {why})"
                place = f" {in_queue(at, self.run.scenario)}"
            said.append(
                f"The costliest loss: {what} {how}{place}. It was sent again "
                f"{1e3 * row['loss_s']:,.3f} ms after its first transmission."
            )
            if row.get("losses", 0) > 1:
                said.append(f"The response waited for {row['losses']} lost segments in turn.")
        if arrived := row.get("first_copies_arrived"):
            times = "once" if arrived == 1 else f"{arrived} times"
            said.append(f"A segment that had arrived was sent again {times}: its ACK came late.")
        return said

    def to_json(self, events: Events | None = None) -> dict[str, Any]:
        """For ``--json``; with its events, if they are known."""
        steps = [] if events is None else [one.to_json() for one in events.moments()]
        return {
            "label": self.run.label,
            "path": str(self.run.path),
            "response": self.number,
            "rank": self.rank,
            "of": self.of,
            **self.row,
            **({"events": steps} if events is not None else {}),
        }


def story(
    run: Run, *, response: int | None = None, slowest: int = 1, traffic: str | None = None
) -> Story:
    """The story of a response.

    Args:
        run: the run; it must have a breakdown.
        response: its row in ``responses.parquet``, the first being 1; None: the one of this rank.
        slowest: its rank by response time, the slowest being 1.
        traffic: the class among which it is ranked; None: all responses.

    Raises:
        AqmlabError: the run has no breakdown, or no such response.
    """
    check_breakdown([run])
    table = run.read(_TABLE)
    if table is None:
        raise AqmlabError(f"{run.path / _TABLE}.parquet: is missing; run the scenario again")
    times = table["response_ns"].to_numpy()
    among = np.arange(len(times))
    if traffic is not None:
        if traffic not in run.classes:
            names = ", ".join(run.classes)
            raise AqmlabError(f"class: found {traffic}; the run has {names}")
        among = np.flatnonzero(np.asarray(table["class"].to_pylist()) == traffic)
    # Of equally slow responses the first in the table comes first.
    ranked = among[np.argsort(times[among].astype(np.int64) * -1, kind="stable")]
    if response is not None:
        if not 1 <= response <= len(times):
            raise AqmlabError(
                f"response: found {response}; the run has the responses 1 to {len(times)}"
            )
        index = response - 1
        if index not in among:
            raise AqmlabError(f"response: found {response}, which is not one of {traffic}")
    elif not 1 <= slowest <= len(ranked):
        raise AqmlabError(f"slowest: found {slowest}; there are {len(ranked)} responses")
    else:
        index = int(ranked[slowest - 1])
    [row] = table.slice(index, 1).to_pylist()
    rank = int(np.flatnonzero(ranked == index)[0]) + 1
    return Story(run, index + 1, rank, len(ranked), row)


def _shortened(moments: Sequence[Moment]) -> list[Moment]:
    """Moments of which those between plain ones are one, if there are many."""
    if len(moments) <= _MOST_MOMENTS:
        return list(moments)
    found: list[Moment] = []
    for is_plain, group in itertools.groupby(moments, key=lambda one: one.is_plain):
        run = list(group)
        inner = run[_KEPT:-_KEPT]
        if not is_plain or len(inner) < 2 * _KEPT:
            found += run
            continue
        spent: dict[str, float] = {}
        for moment in inner:
            for key, time in moment.parts.items():
                cause = part(key).cause.name
                spent[cause] = spent.get(cause, 0.0) + time / 1e6
        trips = sum(bool(moment.parts) for moment in inner)
        most = sorted(spent.items(), key=lambda item: -item[1])[:2]
        named = ", ".join(f"{cause} {time:,.0f} ms" for cause, time in most)
        text = f"... {trips} more trips: {named}"
        found += [*run[:_KEPT], Moment(inner[-1].time_ns, text), *run[-_KEPT:]]
    return found


def _exact(nanoseconds: int) -> str:
    """Milliseconds with all digits that a nanosecond leaves."""
    return f"{nanoseconds // 1_000_000:,}.{nanoseconds % 1_000_000:06d}"
