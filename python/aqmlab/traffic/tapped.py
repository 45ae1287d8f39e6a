"""Where the time of responses went, as far as a capture shows it from one place.

Packets are seen as they pass the place of the capture. A lost packet is one whose bytes pass again,
or whose bytes are missing when later ones pass. What the place cannot show is in :data:`UNKNOWN`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from aqmlab import _native
from aqmlab._util.lazy import np
from aqmlab._util.words import counted
from aqmlab.errors import AqmlabError
from aqmlab.traffic.capture_files import unpacked

__all__ = ["PARTS", "UNKNOWN", "Tapped", "TappedExchange", "read_exchanges"]


PARTS = {
    "handshake": "handshake",
    "syn_timeout": "SYN time-out",
    "server": "server",
    "timeout": "time-out",
    "recovery": "recovery",
    "transfer": "transfer",
}
"""Parts of a response time that a capture shows, and what they are called."""
UNKNOWN = (
    "Queues: handshake, recovery and transfer contain their waits.",
    "Rules of end points: transfer contains delayed ACKs, pacing and full windows.",
    "Pauses of a client between handshake and request: transfer contains them, too.",
    "Why a packet was lost. If only its copy passes here, its time is in server or transfer.",
    "Timers: a copy after 100 ms of silence counts as a time-out, although it may be a probe.",
    "The way between this place and the client: times begin and end here.",
    "The wait for a FIN: a response ends with its last byte.",
    "What is encrypted: each change of direction counts as a request and its response.",
)
"""What a capture from one place cannot show."""
_SILENCE_S = 0.1
"""A copy that follows so long a silence, beside the way to the sender and back, is a time-out's."""
_SYN, _ACK = 2, 16
_WRAP = 1 << 32
_WORDS = 7


@dataclass
class TappedExchange:
    """A request and its response, as they pass the place of the capture."""

    connection: int
    """Number of the connection in the capture, from 0."""
    start_s: float
    """Since the first packet of the capture."""
    response_bytes: int
    response_s: float
    parts: dict[str, float] = field(default_factory=dict)
    """Seconds by the key of :data:`PARTS`; they add up to the response time."""
    round_trips: int = 0
    """Round trips of the response's data."""
    syn_timeouts: int = 0
    """Waits for the timer of a SYN or SYN-ACK."""
    timeouts: int = 0
    """Waits for a retransmission timer of data."""
    request_bytes: int = 0
    """What the client sent; without a response it is an upload, which ends with its last ACK."""

    def to_json(self) -> dict[str, Any]:
        """For ``--json`` and ``--tsv``."""
        return {
            "connection": self.connection,
            "start_s": self.start_s,
            "request_bytes": self.request_bytes,
            "response_bytes": self.response_bytes,
            "response_s": self.response_s,
            **{f"{key}_s": self.parts.get(key, 0.0) for key in PARTS},
            "round_trips": self.round_trips,
            "syn_timeouts": self.syn_timeouts,
            "timeouts": self.timeouts,
        }


@dataclass(frozen=True)
class Tapped:
    """The exchanges of a capture."""

    capture: str
    exchanges: list[TappedExchange]
    connections: int
    """Connections that are seen from their SYN to the end of a response."""
    left_out: int
    """The other connections."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What was put right in front of this."""


@dataclass(frozen=True)
class _Segment:
    time_s: float
    side: int
    """Who sends it: 0 the client, 1 the server."""
    seq: int
    ack: int
    payload: int
    flags: int

    @property
    def end(self) -> int:
        """Behind its last byte."""
        return self.seq + self.payload


def read_exchanges(capture: Path) -> Tapped:
    """The exchanges of a capture (pcap or pcapng).

    Connections count from their SYN on: what had begun before the capture is left out.

    Raises:
        AqmlabError: it is no capture, or has no whole exchange over TCP.
    """
    try:
        with unpacked(capture) as plain:
            (words, _, _), origin, noted = _native.capture_segments(str(plain))
    except OSError as error:
        raise AqmlabError(f"{capture}: cannot be read: {error.strerror or error}") from None
    rows = np.frombuffer(words, dtype="<u8").reshape(-1, _WORDS)
    found: list[TappedExchange] = []
    connections = left_out = 0
    if len(rows):
        order = np.lexsort((rows[:, 0], rows[:, 1]))
        limits = np.flatnonzero(np.diff(rows[order, 1])) + 1
        for part in np.split(order, limits):
            lines = rows[part].tolist()
            exchanges = _exchanges_of([*_segments(lines, origin)], int(lines[0][1]))
            connections += bool(exchanges)
            left_out += not exchanges
            found += exchanges
    if not found:
        raise AqmlabError(
            f"{capture}: has no whole exchange over TCP: found {_counted(rows)}; a capture needs "
            "both directions, and the SYN of a connection"
        )
    return Tapped(str(capture), found, connections, left_out, json.loads(noted))


def _counted(rows: np.ndarray) -> str:
    """What of connections a capture holds, in words."""
    if not len(rows):
        return "no TCP packet"
    connections = len(np.unique(rows[:, 1]))
    opened = len(np.unique(rows[(rows[:, 5] & np.uint64(_SYN)) > 0, 1]))
    answered = len(np.unique(rows[rows[:, 2] == 1, 1]))
    return (
        f"{counted(connections, 'connection')}, {opened:,} with a SYN, {answered:,} with an answer"
    )


def _segments(rows: Sequence[Sequence[int]], origin: int) -> Iterator[_Segment]:
    """The segments of a connection, with numbers from 0 on for each sender."""
    first: dict[int, int] = {}
    latest = [0, 0]
    for time, _, side, seq, ack, rest, _ in rows:
        flags, payload = rest & 0xFF, rest >> 8
        if flags & _SYN:
            first.setdefault(side, seq)
        if side not in first:
            continue
        begin = _near(seq - first[side], latest[side])
        latest[side] = max(latest[side], begin)
        has_ack = flags & _ACK and 1 - side in first
        acked = _near(ack - first[1 - side], latest[1 - side]) if has_ack else 0
        yield _Segment((time - origin) / 1e9, side, begin, acked, payload, flags)


def _near(number: int, known: int) -> int:
    """A sequence number beyond 32 bits: the one that is nearest to a known one."""
    ahead = (number - known) % _WRAP
    return known + ahead - (_WRAP if ahead >= _WRAP // 2 else 0)


@dataclass(frozen=True)
class _Gap:
    """Between the time at which bytes passed first, or were missed, and that of their copy."""

    first_s: float
    set_s: float
    """When the timer was set that ended it; without a timer that of the copy."""
    copy_s: float


@dataclass
class _Stream:
    """The data of one direction in one exchange: what was missing, and until when."""

    begin: int
    """The first sequence number."""
    way_s: float
    """From this place to the sender and back."""
    top: int = 0
    """Behind the highest byte seen."""
    acked: int = 0
    """Behind the highest byte that the other side has acknowledged."""
    set_s: float = 0.0
    """When the sender's timer was set, as it would pass here."""
    seen: dict[int, float] = field(default_factory=dict)
    """When a segment passed first, by its begin."""
    holes: dict[int, float] = field(default_factory=dict)
    """Bytes that have not passed: begin, and when they were missed."""
    gaps: list[_Gap] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.top = self.acked = self.begin

    def add(self, segment: _Segment, silence_s: float) -> bool:
        """A segment with data passes; whether its bytes are needed."""
        now = segment.time_s
        if segment.end > self.top and segment.seq >= self.top:
            if segment.seq > self.top:
                self.holes[self.top] = now
            if self.acked >= self.top:
                self.set_s = now
            self.top = segment.end
            self.seen[segment.seq] = now
            return True
        first = self.seen.get(segment.seq)
        if first is None:
            first = self.holes.pop(segment.seq, now)
            self.seen[segment.seq] = first
        by_timer = silence_s > self.way_s + _SILENCE_S
        is_needed = segment.end > self.acked
        if by_timer or is_needed:
            set_s = min(max(first, self.set_s), now) if by_timer else now
            self.gaps.append(_Gap(first, set_s, now))
        if by_timer:
            self.set_s = now
        self.top = max(self.top, segment.end)
        return is_needed

    def acknowledge(self, number: int, time_s: float) -> None:
        """An ACK of the other side passes."""
        if number > self.acked:
            self.acked = number
            self.set_s = time_s + self.way_s


def _exchanges_of(segments: Sequence[_Segment], number: int) -> list[TappedExchange]:
    """The whole exchanges of a connection that begins with its SYN."""
    syns = [one.time_s for one in segments if one.flags & _SYN and not one.side]
    answers = [one.time_s for one in segments if one.flags & _SYN and one.side]
    opened = next((one.time_s for one in segments if one.side == 0 and one.ack > 0), None)
    if not syns or not answers or opened is None or not syns[0] <= answers[0] <= opened:
        return []
    # The last SYN before an answer, and the last answer before the client goes on.
    asked = [time for time in syns if time <= answers[0]]
    answered = [time for time in answers if time <= opened]
    ways = (opened - answered[-1], answers[0] - asked[-1])
    lost_s = asked[-1] - asked[0] + answered[-1] - answered[0]
    # Both ends may repeat what one loss delays: copies close to each other are of one wait.
    pairs = pairwise(answered)
    expiries = len(asked) - 1 + sum(b - a > ways[1] + _SILENCE_S for a, b in pairs)
    found: list[TappedExchange] = []
    at = 0
    for request, response, until in _turns(segments):
        exchange = _exchange(segments[at : until + 1], (request, response), ways, number)
        if exchange is not None:
            if at == 0:
                exchange.parts["syn_timeout"] = lost_s
                exchange.parts["handshake"] = opened - syns[0] - lost_s
                exchange.parts["transfer"] += exchange.start_s - opened
                exchange.syn_timeouts = expiries
                exchange.response_s += exchange.start_s - syns[0]
                exchange.start_s = syns[0]
            found.append(exchange)
        at = until
    return found


def _turns(segments: Sequence[_Segment]) -> list[tuple[int, int, int]]:
    """Where exchanges begin and end.

    Of each: the first number of the request and that of the response, and the first segment of the
    next exchange.
    """
    found: list[tuple[int, int, int]] = []
    client = server = request = response = 1
    has_answer = False
    for place, one in enumerate(segments):
        if not one.payload:
            continue
        if one.side:
            has_answer = has_answer or (client > request and one.end > response)
            server = max(server, one.end)
            if client == request:
                response = server  # the server speaks first: no answer to anything
        elif one.end > client:
            if has_answer:
                found.append((request, response, place))
                request, response, has_answer = client, server, False
            client = one.end
    # Nothing but ACKs comes back on the whole connection: an upload ends with the last of them.
    if has_answer or (not found and client > request and server == 1):
        found.append((request, response, len(segments)))
    return found


def _exchange(
    segments: Sequence[_Segment],
    begins: tuple[int, int],
    ways: tuple[float, float],
    number: int,
) -> TappedExchange | None:
    """An exchange; None if its response, or without one its request, does not pass as a whole.

    Args:
        segments: of the exchange, and the first one of the next, which may acknowledge its end.
        begins: the first numbers of request and response.
        ways: from the place of the capture to client and server, and back.
        number: of the connection.
    """
    streams = [_Stream(begin, way) for begin, way in zip(begins, ways, strict=True)]
    answered = streams[1]
    start = first_answer = request_end = ended = uploaded = math.nan
    last, rounds, mark = -math.inf, 0, begins[1]
    for one in segments:
        other = streams[1 - one.side]
        if one.flags & _ACK:
            before = other.acked
            other.acknowledge(min(one.ack, other.top), one.time_s)
            if one.side and other.acked > before:
                uploaded = one.time_s
            if one.side == 0 and answered.acked > mark:
                rounds, mark = rounds + 1, answered.top
        if one.payload and one.end > streams[one.side].begin:
            is_needed = streams[one.side].add(one, one.time_s - last)
            if one.side:
                ended = one.time_s if is_needed else ended
                first_answer = one.time_s if math.isnan(first_answer) else first_answer
            else:
                start = one.time_s if math.isnan(start) else start
                if math.isnan(first_answer):
                    request_end = one.time_s
        last = one.time_s
    is_upload = math.isnan(first_answer)
    if is_upload:
        ended = first_answer = uploaded
    missing = any(stream.acked < stream.top for stream in streams[: 1 if is_upload else 2][-1:])
    if math.isnan(start) or math.isnan(ended) or missing:
        return None
    gaps = [gap for stream in streams for gap in stream.gaps if gap.copy_s <= ended]
    timeout, recovery, count = _divided(gaps, start, ended)
    # The first answer follows the request's last copy by the way to the server and its work.
    server = 0.0 if is_upload else max(0.0, first_answer - request_end - ways[1])
    server = max(0.0, min(server, ended - start - timeout - recovery))
    parts = {"server": server, "timeout": timeout, "recovery": recovery}
    parts["transfer"] = max(0.0, ended - start - math.fsum(parts.values()))
    size, sent = (stream.top - stream.begin for stream in (answered, streams[0]))
    return TappedExchange(
        number,
        start,
        size,
        ended - start,
        parts,
        rounds,
        timeouts=count,
        request_bytes=sent,
    )


def _divided(gaps: Sequence[_Gap], start: float, ended: float) -> tuple[float, float, int]:
    """The time that gaps cover together: of timers, and of recovery; and how many timers."""
    timeout = recovery = 0.0
    count, covered = 0, start
    for gap in sorted(gaps, key=lambda gap: gap.copy_s):
        begin, end = max(gap.first_s, covered), min(gap.copy_s, ended)
        if end <= begin:
            continue
        timer = min(max(gap.set_s, begin), end)
        recovery += timer - begin
        timeout += end - timer
        count += end > timer
        covered = end
    return timeout, recovery, count
