"""What happened to one response, event by event, from the rows of ``story.parquet``.

From the event ``answered`` back to ``asked`` the causes are the critical path of a response. Its
parts add up to the response time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from aqmlab.errors import AqmlabError
from aqmlab.results.breakdown import part
from aqmlab.results.directions import in_queue, placed
from aqmlab.results.links import LinkDirection

__all__ = ["Event", "Events", "Moment", "Trip"]


_HANDSHAKE = {"Initial", "Handshake"}
_PACKETS = {*_HANDSHAKE, "0-RTT", "1-RTT"}
"""Packets of QUIC."""


@dataclass(frozen=True)
class Event:
    """A row of ``story.parquet``."""

    number: int
    cause: int
    """The number of the event that caused it; 0: none of the connection's."""
    time_ns: int
    event: str
    """``asked``, ``sent``, ``at-port``, ``dropped``, ``arrived``, ``part`` or ``answered``."""
    sender: str
    """Of a segment: ``client`` or ``server``."""
    seq: int
    ack: int
    payload_bytes: int
    flags: str
    again: bool
    link: str
    direction: str
    reason: str
    part: str
    duration_ns: int
    held_by: str = ""
    """Of a wait in a tree of rates: the node or subscriber that held the packet."""

    @property
    def ends(self) -> int:
        """The sequence number behind a segment."""
        flags = self.flags.split()
        return self.seq + self.payload_bytes + ("SYN" in flags) + ("FIN" in flags)

    def repeats(self, earlier: Event) -> bool:
        """Whether it begins with what an earlier packet of its sender carried."""
        if self._numbers != earlier._numbers:
            return False
        if self._numbers == "limit":
            return True
        return earlier.seq <= self.seq < earlier.ends

    @property
    def _numbers(self) -> str:
        """What its sequence number counts: of QUIC, bytes of the stream or of the handshake."""
        frames = self.flags.split()
        if not _PACKETS.intersection(frames):
            return "segment"
        for frame in ("STREAM", "CRYPTO"):
            if frame in frames:
                return frame if frame == "STREAM" else f"{frame} {frames[0]}"
        return "limit" if "MAX_DATA" in frames else ""

    @property
    def segment(self) -> str:
        """A segment in words."""
        flags = self.flags.split()
        if _PACKETS.intersection(flags):
            return self._datagram(flags)
        if "SYN" in flags:
            return "SYN-ACK" if "ACK" in flags else "SYN"
        if "RST" in flags:
            return "RST"
        if self.payload_bytes:
            last = self.seq + self.payload_bytes - 1
            return f"bytes {self.seq:,}-{last:,}{'+FIN' if 'FIN' in flags else ''}"
        return "FIN" if "FIN" in flags else "ACK"

    def _datagram(self, frames: Sequence[str]) -> str:
        """A datagram of QUIC in words: what of it others wait for."""
        found = []
        if "CRYPTO" in frames and (kinds := [kind for kind in frames if kind in _HANDSHAKE]):
            found.append(" and ".join(kinds))
        early = " as 0-RTT" if "0-RTT" in frames else ""
        if "STREAM" in frames and self.payload_bytes:
            last = self.seq + self.payload_bytes
            fin = "+FIN" if "FIN" in frames else ""
            found.append(f"bytes {self.seq + 1:,}-{last:,}{fin}{early}")
        elif "FIN" in frames:
            found.append(f"FIN{early}")
        if "MAX_DATA" in frames:
            found.append("a new limit")
        if not found:
            said = [name for name in ("HANDSHAKE_DONE", "PING", "CLOSE") if name in frames]
            found = said or ["ACK"]
        return " with ".join(found)

    def lost_in(self, scenario: Mapping[str, Any]) -> str:
        """Where and why a packet was dropped."""
        at = LinkDirection(self.link, self.direction)
        if self.reason == "wire":
            return f"lost on the wire {placed(at, scenario) if at.link else ''}".rstrip()
        reason = self.reason.replace("_", " ")
        return f"dropped {in_queue(at, scenario)} ({reason})"


@dataclass(frozen=True)
class Trip:
    """A segment on its way from one end to the other."""

    sent: Event
    arrived: Event | None
    """None: it was dropped, or the response was complete before it arrived."""
    dropped: Event | None
    is_on_path: bool


@dataclass(frozen=True)
class Moment:
    """Something that happened on the path, in words."""

    time_ns: int
    """Since the exchange began."""
    text: str
    parts: Mapping[str, int] = field(default_factory=dict)
    """What the time since the moment before was spent with, by the key of the part."""
    is_plain: bool = False
    """A segment that simply arrived."""

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {"time_ns": self.time_ns, "text": self.text, "parts": dict(self.parts)}


_WAITS = {
    "syn_timeout": "the timer of the lost SYN or SYN-ACK ends",
    "timeout": "the retransmission timer ends",
    "tail_loss_probe": "the timer of the tail loss probe ends",
    "handshake_probe_timeout": "the probe time-out (PTO) of the handshake ends",
    "probe_timeout": "the probe time-out (PTO) ends",
    "reordering_timer": "the timer for late packets ends",
    "recovery_before_timer": "the timer that finds the loss starts",
    "recovery_behind_timer": "what was lost before it has been repaired",
    "recovery_fast": "later ACKs have shown the loss",
    "delayed_ack": "the timer of the delayed ACK ends",
    "application": "the application has paused",
    "pacing": "the sender's pace lets the next segment go",
}
"""What has happened when a wait at an end is over."""
_WORTH = 0.1
"""Waits in queues below this share of a trip are not named."""


class Events:
    """The events of one response."""

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        response_ns: int,
        start_s: float,
        scenario: Mapping[str, Any],
    ) -> None:
        """Finds the response.

        Args:
            rows: of ``story.parquet``.
            response_ns: how long it took.
            start_s: when it began.
            scenario: the effective scenario of its run.

        Raises:
            AqmlabError: there is no such response.
        """
        self._scenario = scenario
        self._all = {row["number"]: Event(**row) for row in rows}
        for last in self._all.values():
            if last.event != "answered":
                continue
            path = list(self._back_from(last))[::-1]
            took = last.time_ns - path[0].time_ns
            if took == response_ns and abs(path[0].time_ns / 1e9 - start_s) < 1e-6:
                self.path = path
                """Its critical path, from ``asked`` to ``answered``."""
                self.start_ns = path[0].time_ns
                self.end_ns = last.time_ns
                return
        raise AqmlabError(
            f"story: found no response of {response_ns} ns that began at {start_s:.6f} s when the "
            "run is made again; another version of aqmlab made the run, make it again"
        )

    def _back_from(self, last: Event) -> Iterator[Event]:
        """An event and its causes."""
        at: Event | None = last
        while at is not None:
            yield at
            at = self._all.get(at.cause) if at.event != "asked" else None

    @property
    def parts(self) -> dict[str, int]:
        """The parts of the path in nanoseconds."""
        found: dict[str, int] = {}
        for event in self.path:
            if event.part:
                key = event.part.removesuffix("_ns")
                found[key] = found.get(key, 0) + event.duration_ns
        return found

    def sent_of(self, event: Event) -> Event:
        """The segment that an event is about."""
        return next(one for one in self._back_from(event) if one.event in {"sent", "asked"})

    def at_ports(self) -> list[tuple[int, Event]]:
        """When which segment reached the port of a link, in nanoseconds, all of the connection."""
        found = (event for event in self._all.values() if event.event == "at-port")
        return [(event.time_ns, self.sent_of(event)) for event in found]

    def trips(self) -> list[Trip]:
        """Every segment that an end sent while the response was under way."""
        on_path = {event.number for event in self.path}
        arrived: dict[int, Event] = {}
        dropped: dict[int, Event] = {}
        for event in self._all.values():
            if event.event in {"arrived", "dropped"}:
                kept = arrived if event.event == "arrived" else dropped
                kept[self.sent_of(event).number] = event
        return [
            Trip(
                event,
                arrived.get(event.number),
                dropped.get(event.number),
                event.number in on_path
                and (found := arrived.get(event.number)) is not None
                and found.number in on_path,
            )
            for event in self._all.values()
            if event.event == "sent" and self.start_ns <= event.time_ns <= self.end_ns
        ]

    def waits(self) -> list[tuple[str, int, int, str]]:
        """The waits at an end that are on the path: end, from, until, key of the part."""
        found = []
        for is_trip, sent, parts in self._steps():
            if is_trip:
                continue
            for event in parts:
                begin = event.time_ns - event.duration_ns
                found.append((sent, begin, event.time_ns, event.part.removesuffix("_ns")))
        return found

    def _steps(self) -> Iterator[tuple[bool, str, list[Event]]]:
        """The parts of the path in groups: whether they are of a trip, and at which end else."""
        end, parts = "client", list[Event]()
        for event in self.path:
            if event.event == "part":
                parts.append(event)
                continue
            is_trip = event.event == "arrived"
            if parts:
                yield is_trip, end, parts
                parts = []
            if event.event == "sent":
                end = event.sender
            elif is_trip:
                end = _other(end)

    def moments(self) -> list[Moment]:
        """What happened, in words."""
        found: list[Moment] = []
        parts: list[Event] = []
        first: Event | None = None
        dropped = {one.sent.number: one.dropped for one in self.trips() if one.dropped is not None}
        for event in self.path:
            if event.event == "part":
                parts.append(event)
            elif event.event == "arrived":
                assert first is not None
                found.append(self._arrival(event, first, parts))
                parts = []
            elif event.event == "sent":
                found += self._waits(parts)
                parts = []
                if first is not None and event.again:
                    found += self._lost(first, event, dropped)
                again = " again" if event.again else ""
                text = f"{event.sender} sends {event.segment}{again}"
                found.append(Moment(event.time_ns - self.start_ns, text, is_plain=not event.again))
                first = event
            elif event.event == "answered":
                found += self._waits(parts)
                found.append(Moment(self.end_ns - self.start_ns, "the response is complete"))
        return list(_joined(sorted(found, key=lambda one: one.time_ns)))

    def _arrival(self, event: Event, sent: Event, parts: Sequence[Event]) -> Moment:
        """A segment arrives."""
        spent: dict[str, int] = {}
        for one in parts:
            key = one.part.removesuffix("_ns")
            spent[key] = spent.get(key, 0) + one.duration_ns
        took = event.time_ns - sent.time_ns
        waits = {
            key: time
            for key, time in spent.items()
            if key.startswith(("wait_", "ring_", "hold_up")) and time > _WORTH * took
        }
        held = {one.part.removesuffix("_ns"): one.held_by for one in parts if one.held_by}
        named = [
            f"{time / 1e6:,.1f} ms{self._where(key)}" + (f", {held[key]}" if key in held else "")
            for key, time in waits.items()
        ]
        after = f" (queued {', '.join(named)})" if named else ""
        text = f"{_other(sent.sender)} gets {sent.segment}{after}"
        return Moment(event.time_ns - self.start_ns, text, spent, is_plain=True)

    def _where(self, key: str) -> str:
        """Where a packet waited, if that can be asked."""
        at = part(key).at
        if at is None:
            return " at the host" if key == "wait_hosts" else " on the wire"
        links = {one.link for found in self.parts if (one := part(found).at) is not None}
        ring = " in the device ring" if key.startswith("ring_") else ""
        return ring + (f" at {at.link}" if len(links) > 1 else "")

    def _waits(self, parts: Sequence[Event]) -> Iterator[Moment]:
        """Waits at an end are over. What a pacer let go, one by one, is one moment."""
        paced = "pacing_ns"
        for _, waits in groupby(parts, key=lambda one: one.part == paced or one.number):
            events = list(waits)
            key = events[0].part.removesuffix("_ns")
            what = _WAITS.get(key, part(key).story or part(key).label)
            took = sum(event.duration_ns for event in events)
            times = f"{len(events)} times, " if len(events) > 1 else ""
            text = f"{what} ({times}{took / 1e6:,.1f} ms)"
            yield Moment(events[-1].time_ns - self.start_ns, text, {key: took})

    def _lost(self, first: Event, last: Event, dropped: Mapping[int, Event]) -> list[Moment]:
        """What became of a segment that is sent again, and of the copies in between."""
        found = []
        for event in self._all.values():
            is_copy = event.event == "sent" and event.sender == first.sender
            if not is_copy or not last.repeats(event):
                continue
            if not first.time_ns <= event.time_ns < last.time_ns:
                continue
            at = event.time_ns - self.start_ns
            if event.number != first.number:
                found.append(Moment(at, f"{event.sender} sends {event.segment} again"))
            if (lost := dropped.get(event.number)) is not None:
                are = "are" if event.segment.startswith("bytes") else "is"
                text = f"{event.segment} {are} {lost.lost_in(self._scenario)}"
                found.append(Moment(lost.time_ns - self.start_ns, text))
        return found


def _joined(moments: Sequence[Moment]) -> Iterator[Moment]:
    """Moments of which an arrival, and what is sent at once because of it, are one."""
    waiting: Moment | None = None
    for moment in moments:
        if waiting is not None:
            sender, _, what = moment.text.partition(" sends ")
            if what and moment.time_ns == waiting.time_ns and waiting.text.startswith(sender):
                text = f"{waiting.text}, sends {what}"
                yield replace(waiting, text=text, is_plain=moment.is_plain)
                waiting = None
                continue
            yield waiting
        waiting = moment
        if not moment.is_plain or not moment.parts:
            yield moment
            waiting = None
    if waiting is not None:
        yield waiting


def _other(end: str) -> str:
    return "server" if end == "client" else "client"
