"""Connections of a capture as exchanges, and their response times by one rule.

Data of a client that cross a response belong to the request before it; a client that has
acknowledged everything begins a new exchange. So connections with several requests under way
(HTTP/2) have turns, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from aqmlab._util.lazy import np
from aqmlab.traffic.segments import Loops, Segments, near

__all__ = [
    "CHUNK_S",
    "LAST_S",
    "LONGEST_S",
    "SILENT_S",
    "Chunk",
    "Exchange",
    "Talk",
    "TapLoop",
    "response_times",
    "talks",
]


SILENT_S = 0.2
"""A client that was silent for so long behind a response asks anew."""
LONGEST_S = 25.0
"""Longer connections have no response times: they are films and downloads."""
CHUNK_S = 0.5
"""A pause of a server, with all acknowledged, that parts a response."""
_AT_ONCE_S = 0.02
"""Segments of one window follow each other within this time."""
_FIN, _SYN, _RST = 1, 2, 4
_FAR_APART = 1 << 42
"""Sequence numbers of two connections never meet."""
LAST_S = 1.0
"""What sends within the last second of the capture goes on behind it."""


@dataclass
class Chunk:
    """Data of the acceptor without a pause."""

    begin_s: float
    end_s: float
    octets: int


@dataclass
class Exchange:
    """A request and what answers it."""

    begin_s: float
    """When the first byte of the request passes."""
    end_s: float
    """When the last byte before the answer passes."""
    request: int
    chunks: list[Chunk] = field(default_factory=list)

    @property
    def response(self) -> int:
        """Bytes of the answer."""
        return sum(chunk.octets for chunk in self.chunks)


@dataclass
class Talk:
    """A connection."""

    number: int
    begin_s: float
    last_s: float
    has_syn: bool
    goes_on: bool
    """Whether it is open and sends in the last second of the capture."""
    pair: int
    is_home: bool
    """Whether home opened it."""
    exchanges: list[Exchange]
    acked_s: float
    """When the last acknowledgement of the opener's data passes."""
    transport: str = "tcp"


@dataclass(frozen=True)
class TapLoop:
    """From the tap to one side and back: the least loop of each pair, and the queues in it."""

    found: Loops
    is_home: bool
    """Whether the data that are timed come from home: then the loop leads to the far side."""
    least_s: np.ndarray
    """By pair; nan: no loop was seen."""

    @classmethod
    def read(cls, found: Loops, is_home: bool, pairs: int) -> TapLoop:
        """The way that data of one side take."""
        mine = found.is_home == is_home
        least = np.full(pairs, np.inf)
        np.minimum.at(least, found.pair[mine], found.loop_s[mine])
        return cls(found, is_home, np.where(np.isinf(least), np.nan, least))

    def waits(self, times: np.ndarray) -> np.ndarray:
        """How long the queues are at these times; where no loop is near, as around them."""
        waited = near(self.found, self.is_home, times)
        known = ~np.isnan(waited)
        if known.all():
            return waited
        mine = self.found.is_home == self.is_home
        if not mine.any():
            return np.zeros(len(times))
        grid = np.unique(np.round(self.found.time_s[mine], 1))
        filled: np.ndarray = np.interp(times, grid, near(self.found, self.is_home, grid))
        return np.where(known, waited, filled)


def talks(segments: Segments) -> list[Talk]:
    """The connections, in the order of their first packets."""
    if not len(segments):
        return []
    order = np.argsort(segments.connection, kind="stable")
    connection = segments.connection[order]
    limits = np.flatnonzero(np.diff(connection, prepend=-1, append=-1))
    acked = _acked(segments, order)
    last = float(segments.time_s[-1])
    return [_talk(segments, order[a:b], acked, last) for a, b in pairwise(limits)]


def _acked(segments: Segments, order: np.ndarray) -> np.ndarray:
    """For each segment what the opener has acknowledged when it passes, in acceptor's numbers."""
    apart = segments.connection[order] * _FAR_APART
    said = np.where(segments.is_opener[order], segments.ack[order], -1)
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.maximum.accumulate(said + apart) - apart
    return found


def _talk(segments: Segments, part: np.ndarray, acked: np.ndarray, last_s: float) -> Talk:
    """One connection; `part` are its segments in order of time."""
    flags = segments.flags[part]
    first = part[0]
    has_syn = bool(flags[0] & _SYN) and bool(segments.is_opener[first])
    data = part[segments.payload[part] > 0]
    answers = part[~segments.is_opener[part] & (segments.ack[part] >= 0)]
    acked_s = float(segments.time_s[first])
    if len(answers):
        numbers = segments.ack[answers]
        acked_s = float(segments.time_s[answers[int(numbers.argmax())]])
    is_home = bool(segments.is_home[first]) == bool(segments.is_opener[first])
    ended = bool((flags & (_FIN | _RST)).any())
    until = float(segments.time_s[part[-1]])
    return Talk(
        int(segments.connection[first]),
        float(segments.time_s[first]),
        until,
        has_syn,
        not ended and until > last_s - LAST_S,
        int(segments.pair[first]),
        is_home,
        _exchanges(segments, data, acked),
        acked_s,
    )


def _exchanges(segments: Segments, data: np.ndarray, acked: np.ndarray) -> list[Exchange]:
    """The exchanges among the data segments of a connection."""
    found: list[Exchange] = []
    tops: list[int | None] = [None, None]
    last_s = -1.0
    columns = (segments.time_s, segments.is_opener, segments.begin, segments.payload, acked)
    alone = _alone(segments, data)
    for time, is_opener, begin, payload, known, is_alone in zip(
        *(column[data].tolist() for column in columns), alone.tolist(), strict=True
    ):
        end = begin + payload
        top = tops[is_opener]
        new = payload if top is None else max(0, min(payload, end - top))
        tops[is_opener] = end if top is None else max(top, end)
        if is_opener:
            answered = tops[0]
            is_done = not found or (found[-1].chunks and (answered is None or known >= answered))
            if new and is_done:
                found.append(Exchange(time, time, new))
            elif found:
                found[-1].request += new
                if not found[-1].chunks:
                    found[-1].end_s = time
            continue
        if not found:
            found.append(Exchange(time, time, 0))
        chunks = found[-1].chunks
        is_new_chunk = time - last_s > CHUNK_S and top is not None and known >= top
        if not chunks:
            # A segment alone, and others later, is what a timer sends again.
            late = is_alone and time - found[-1].end_s > SILENT_S
            chunks.append(Chunk(found[-1].end_s if late else time, time, new))
        elif new and is_new_chunk and not is_alone:
            chunks.append(Chunk(time, time, new))
        elif new or end > known:
            chunks[-1].octets += new
            chunks[-1].end_s = time
        last_s = time
    return found


def _alone(segments: Segments, data: np.ndarray) -> np.ndarray:
    """Segments that no other of the sender follows at once, though one follows."""
    found = np.zeros(len(data), dtype=bool)
    for side in (False, True):
        mine = np.flatnonzero(segments.is_opener[data] == side)
        time = segments.time_s[data[mine]]
        found[mine[:-1]] = np.diff(time) > _AT_ONCE_S
    return found


def response_times(
    found: list[Talk], near_side: tuple[TapLoop, TapLoop], warm_up_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """When responses begin, and how long they last for those who asked.

    From the SYN, or from the first byte of a request behind a silence, to the last byte of the
    answer. An upload that only ACKs answer ends with the last of them. `near_side` are the ways
    from the tap to clients beyond the link and at home.
    """
    rows = [row for one in found if one.last_s - one.begin_s < LONGEST_S for row in _rows(one)]
    if not rows:
        return np.zeros(0), np.zeros(0)
    begin, end, pair, is_home, is_first, is_cut = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    for side in (0, 1):
        mine = is_home == side
        way = near_side[side]
        end[mine] += np.nan_to_num(way.least_s[pair[mine].astype(int)]) + way.waits(end[mine])
    # A client that was silent behind a response asks anew.
    is_new = np.ones(len(begin), dtype=bool)
    is_new[1:] = begin[1:] - end[:-1] >= SILENT_S
    heads = np.flatnonzero(is_new | is_first)
    first, length = begin[heads], np.maximum.reduceat(end, heads) - begin[heads]
    used = (first >= warm_up_s) & ~np.maximum.reduceat(is_cut, heads)
    return first[used], length[used]


def _rows(one: Talk) -> Iterator[tuple[float, float, int, bool, bool, bool]]:
    """The exchanges of a connection: begin, end, pair, side; whether it is the first, and cut."""
    last = len(one.exchanges) - 1
    for at, exchange in enumerate(one.exchanges):
        is_first = at == 0
        begin = one.begin_s if is_first and one.has_syn else exchange.begin_s
        end = exchange.chunks[-1].end_s if exchange.chunks else one.acked_s
        is_cut = (is_first and not one.has_syn) or (at == last and one.goes_on)
        yield begin, end, one.pair, one.is_home, is_first, is_cut
