"""QUIC as exchanges: what the sizes and times of its packets say, as everything else is encrypted.

A flow is QUIC if its first datagram is an Initial packet, padded as it must be (RFC 9000, section
14.1), and long datagrams answer it. Of captures without payload the length alone says so. Small
datagrams of the client are acknowledgements. What follows the server's data sooner than a round
trip of the pair was asked before them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from aqmlab._util.lazy import np
from aqmlab.traffic.segments import Datagrams, Loops
from aqmlab.traffic.turns import CHUNK_S, LAST_S, Chunk, Exchange, Talk

__all__ = ["Quic", "read_quic"]


_INITIAL = 1000
"""Bytes of a padded first datagram, at least."""
_REQUEST = 62
"""A client's smaller datagrams only acknowledge."""
_DATA = 172
"""A server's smaller datagrams, too."""
_LONG = 1000
"""A datagram with as much shows that a flow carries data."""
_HEADERS = 30
"""Bytes of QUIC's own in each datagram: short header, tag, the head of a frame."""
_FLIGHT = 12_000
"""A server's certificates are shorter."""
_NEAR = 0.9
"""A round trip that is a little shorter than the least of the pair."""
_AT_ONCE_S = 0.01
"""A hello may take several datagrams."""


@dataclass(frozen=True)
class Quic:
    """The QUIC connections of a capture."""

    talks: list[Talk]
    octets: tuple[float, float]
    """Bytes of their packets: towards home, and away from it."""
    packets: tuple[float, float]
    loops: Loops
    """Of handshakes: each end answers the other's first datagrams at once."""


def read_quic(datagrams: Datagrams, last_s: float) -> Quic:
    """The flows that are QUIC; `last_s` is when the capture ends."""
    order = np.argsort(datagrams.flow, kind="stable")
    limits = np.flatnonzero(np.diff(datagrams.flow[order], prepend=-1, append=-1))
    flows = [order[a:b] for a, b in pairwise(limits.tolist())]
    chosen = [part for part in flows if _is_quic(datagrams, part)]
    rows = [row for part in chosen for row in _handshake_loops(datagrams, part)]
    sent = np.array([place for place, _ in rows], dtype=np.int64)
    loop_s = np.array([loop for _, loop in rows])
    pair, is_home = datagrams.pair[sent], datagrams.is_home[sent]
    loops = Loops.of(datagrams.time_s[sent], loop_s, pair, is_home, np.zeros(len(sent), dtype=bool))
    octets, packets = [0.0, 0.0], [0.0, 0.0]
    found = []
    for part in chosen:
        leaves = datagrams.is_home[part]
        for side in (False, True):
            mine = datagrams.wire_bytes[part[leaves == side]]
            octets[side] += float(mine.sum())
            packets[side] += len(mine)
        same = (pair == datagrams.pair[part[0]]) & (is_home == datagrams.is_home[part[0]])
        found.append(_talk(datagrams, part, float(loop_s[same].min(initial=math.inf)), last_s))
    return Quic(
        [one for one in found if one.exchanges],
        (octets[0], octets[1]),
        (packets[0], packets[1]),
        loops,
    )


def _is_quic(datagrams: Datagrams, part: np.ndarray) -> bool:
    """Whether a padded Initial begins the flow, and a long datagram of the other end answers."""
    if not datagrams.may_begin_quic[part[0]]:
        return False
    answers = datagrams.payload[part[~datagrams.is_opener[part]]]
    return bool(datagrams.payload[part[0]] >= _INITIAL and len(answers) and answers.max() >= _LONG)


def _handshake_loops(datagrams: Datagrams, part: np.ndarray) -> Iterator[tuple[int, float]]:
    """Datagrams that the other end answers at once, and how long that takes."""
    is_opener, time = datagrams.is_opener[part], datagrams.time_s[part]
    answered = int(np.argmin(is_opener))
    # Of an Initial that is sent again the loop is not known.
    if time[answered - 1] - time[0] < _AT_ONCE_S:
        yield int(part[0]), float(time[answered] - time[0])
    after = np.flatnonzero(is_opener[answered:])
    if len(after):
        yield int(part[answered]), float(time[answered + after[0]] - time[answered])


def _talk(datagrams: Datagrams, part: np.ndarray, far_s: float, last_s: float) -> Talk:
    """One connection; `far_s` is the least time from the tap to the server and back."""
    first = int(part[0])
    is_home, pair = bool(datagrams.is_home[first]), int(datagrams.pair[first])
    time = datagrams.time_s[part]
    exchanges = list(_exchanges(datagrams, part, far_s if math.isfinite(far_s) else 0.0))
    answers = part[~datagrams.is_opener[part]]
    until = float(time[-1])
    return Talk(
        int(datagrams.flow[first]),
        float(time[0]),
        until,
        has_syn=True,
        goes_on=until > last_s - LAST_S,
        pair=pair,
        is_home=is_home,
        exchanges=exchanges,
        acked_s=float(datagrams.time_s[answers[-1]]),
        transport="quic",
    )


def _exchanges(datagrams: Datagrams, part: np.ndarray, far_s: float) -> Iterator[Exchange]:
    """Requests and what answers them."""
    is_opener, payload = datagrams.is_opener[part], datagrams.payload[part]
    useful = payload >= np.where(is_opener, _REQUEST, _DATA)
    rows = [
        (float(t), bool(o), int(p) - _HEADERS)
        for t, o, p in zip(
            datagrams.time_s[part][useful], is_opener[useful], payload[useful], strict=True
        )
    ]
    rows = rows[_handshake(rows) :]
    answers = np.array([t for t, o, _ in rows if not o])
    current: Exchange | None = None
    for time, is_request, octets in rows:
        if is_request:
            # Data that arrive within a round trip answer earlier requests.
            until = np.searchsorted(answers, time + _NEAR * far_s)
            is_crossing = until > np.searchsorted(answers, time, side="right")
            if current is None or (current.chunks and not is_crossing):
                if current is not None:
                    yield current
                current = Exchange(time, time, octets)
            else:
                current.request += octets
                if not current.chunks:
                    current.end_s = time
            continue
        if current is None:
            current = Exchange(time, time, 0)
        chunks = current.chunks
        if chunks and time - chunks[-1].end_s <= CHUNK_S:
            chunks[-1].octets += octets
            chunks[-1].end_s = time
        else:
            chunks.append(Chunk(time, time, octets))
    if current is not None:
        yield current


def _handshake(rows: list[tuple[float, bool, int]]) -> int:
    """Where the first request begins, behind both ends' hellos and the server's certificates."""
    flight, is_answered = 0, False
    for at, (_, is_request, octets) in enumerate(rows):
        if not is_request:
            is_answered = True
            flight += octets
        elif is_answered:
            if flight > _FLIGHT:
                return 0
            # A padded datagram only ends the handshake.
            padded = octets >= _INITIAL and any(one for _, one, _ in rows[at + 1 : at + 3])
            return at + 1 if padded else at
    return 0
