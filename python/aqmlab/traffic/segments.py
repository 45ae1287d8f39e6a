"""Segments and datagrams of a capture as columns, and loops from data to acknowledgements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from aqmlab import _native
from aqmlab._util.lazy import np

__all__ = ["HEADERS", "Datagrams", "Loops", "Segments", "loops", "near", "read_segments"]


HEADERS = 52
"""Bytes of IP and TCP with time stamps."""
_FULL_WITHOUT = 1448
"""A longer payload leaves no room for time stamps."""
_WORDS = 7
_DATAGRAM_WORDS = 5
_UDP_AND_IP = 28
_FIN, _SYN, _PSH, _ACK = 1, 2, 8, 16
_HALF = 1 << 31
_NEAR_S = (0.025, 0.05, 0.1, 0.25)
"""A loop says how long the queue is within the shortest of these that holds enough loops."""
_ENOUGH = 3


@dataclass(frozen=True)
class Datagrams:
    """The UDP datagrams of a capture, as columns in order of time."""

    time_s: np.ndarray
    flow: np.ndarray
    is_opener: np.ndarray
    """Whether the sender sent the first datagram of the flow."""
    payload: np.ndarray
    may_begin_quic: np.ndarray
    """Whether its first bytes are those of an Initial packet, or not known."""
    is_home: np.ndarray
    """Whether the sender is at home."""
    pair: np.ndarray
    """Number of the pair of addresses, as for segments."""

    @classmethod
    def read(cls, words: bytes, origin: int) -> Datagrams:
        """From what the extension gives."""
        rows = np.frombuffer(words, dtype="<u8").reshape(-1, _DATAGRAM_WORDS).astype(np.int64)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        time, flow, side, payload, place = rows.T
        way = place & 3
        return cls(
            (time - origin) / 1e9,
            flow,
            side == 0,
            payload >> 1,
            payload & 1 > 0,
            np.where(way == 0, side == 0, way == 2),
            place >> 2,
        )

    @property
    def wire_bytes(self) -> np.ndarray:
        """Bytes of each packet from IP on."""
        return self.payload + _UDP_AND_IP

    def __len__(self) -> int:
        """How many there are."""
        return len(self.time_s)


@dataclass(frozen=True)
class Segments:
    """Columns of one length, in order of time."""

    time_s: np.ndarray
    """Since the first packet of the capture, of any kind."""
    connection: np.ndarray
    is_opener: np.ndarray
    """Whether the sender opened the connection."""
    begin: np.ndarray
    """The first sequence number, counted from 0 for each sender."""
    ack: np.ndarray
    """What it acknowledges, in the other sender's numbers; below 0: nothing."""
    payload: np.ndarray
    flags: np.ndarray
    is_home: np.ndarray
    """Whether the sender is at home: the segment goes up."""
    pair: np.ndarray
    """Number of the pair of addresses."""
    notes: Mapping[str, Any]
    """What was put right in front of this."""
    datagrams: Datagrams
    """Of UDP."""
    homes: np.ndarray
    """For each pair of addresses the number of the one at home."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self.time_s)

    @property
    def end(self) -> np.ndarray:
        """Behind the last number that a segment takes; SYN and FIN take one."""
        found: np.ndarray = self.begin + self.payload + ((self.flags & (_SYN | _FIN)) > 0)
        return found

    @property
    def wire_bytes(self) -> np.ndarray:
        """Bytes of each packet from IP on."""
        return self.payload + np.where(self.payload > _FULL_WITHOUT, 40, HEADERS)


@dataclass(frozen=True)
class Loops:
    """From data at the place of the capture to their answer there."""

    time_s: np.ndarray
    """When the data pass."""
    loop_s: np.ndarray
    pair: np.ndarray
    is_home: np.ndarray
    """Whether the data come from home: the loop leads to the far side and back."""
    excess_s: np.ndarray
    """Above the least loop of the pair of addresses on that side."""
    is_sure: np.ndarray
    """Whether nothing but the network delays the answer."""

    @classmethod
    def of(
        cls,
        time_s: np.ndarray,
        loop_s: np.ndarray,
        pair: np.ndarray,
        is_home: np.ndarray,
        is_sure: np.ndarray,
    ) -> Loops:
        """Loops with their excess."""
        key = 2 * pair + is_home
        least = np.full(int(key.max(initial=0)) + 1, np.inf)
        np.minimum.at(least, key, loop_s)
        return cls(time_s, loop_s, pair, is_home, loop_s - least[key], is_sure)

    def joined(self, other: Loops) -> Loops:
        """The loops of both."""
        names = ("time_s", "loop_s", "pair", "is_home", "is_sure")
        return Loops.of(
            *(np.concatenate((getattr(self, name), getattr(other, name))) for name in names)
        )


def read_segments(capture: Path) -> Segments:
    """The segments of a capture that is not compressed."""
    (words, datagrams, homes), origin, noted = _native.capture_segments(str(capture))
    rows = np.frombuffer(words, dtype="<u8").reshape(-1, _WORDS)
    rows = rows[np.argsort(rows[:, 0], kind="stable")].astype(np.int64)
    time, connection, side, seq, ack, rest, place = rows.T
    flags, way = rest & 0xFF, place & 3
    begin, acked = _numbers(connection, side, seq, ack, flags)
    # Without sides home opens the connections.
    return Segments(
        (time - origin) / 1e9,
        connection,
        side == 0,
        begin,
        acked,
        rest >> 8,
        flags,
        np.where(way == 0, side == 0, way == 2),
        place >> 2,
        json.loads(noted),
        Datagrams.read(datagrams, origin),
        np.frombuffer(homes, dtype="<u8").astype(np.int64),
    )


def _numbers(
    connection: np.ndarray, side: np.ndarray, seq: np.ndarray, ack: np.ndarray, flags: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sequence and acknowledgement numbers from 0 on for each sender of a connection."""
    begin, acked = np.zeros_like(seq), np.full_like(ack, -1)
    if not len(seq):
        return begin, acked
    stream = 2 * connection + side
    first = np.full(int(stream.max()) + 2, -1)
    order = np.argsort(stream, kind="stable")
    heads = _heads(stream[order])
    first[stream[order][heads]] = seq[order][heads]
    begin[order] = _unrolled(seq[order], heads, seq[order][heads])
    has = ((flags & _ACK) > 0) & (first[2 * connection + 1 - side] >= 0)
    order = order[has[order]]
    if len(order):
        heads = _heads(stream[order])
        other = first[(2 * connection + 1 - side)[order][heads]]
        acked[order] = _unrolled(ack[order], heads, other)
    return begin, acked


def _heads(groups: np.ndarray) -> np.ndarray:
    """Where each group begins."""
    return np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))


def _unrolled(numbers: np.ndarray, heads: np.ndarray, bases: np.ndarray) -> np.ndarray:
    """Numbers of 32 bits without their wraps, counted from each group's base."""
    steps = np.empty_like(numbers)
    steps[1:] = numbers[1:] - numbers[:-1]
    steps[heads] = numbers[heads] - bases
    steps = (steps + _HALF) % (2 * _HALF) - _HALF
    total = np.cumsum(steps)
    before = np.concatenate(([0], total))[heads]
    found: np.ndarray = total - np.repeat(before, np.diff(np.append(heads, len(numbers))))
    return found


def loops(segments: Segments) -> Loops:
    """The loops of both senders, one for each acknowledgement.

    An acknowledgement answers the last segment that it covers. What is sent again, or passes while
    something is missing, has no loop (Karn).
    """
    data, acks = [], []
    order = np.argsort(segments.connection, kind="stable")
    limits = np.append(_heads(segments.connection[order]), len(order)) if len(order) else order
    end = segments.end
    for at, until in pairwise(limits):
        part = order[at:until]
        for from_opener in (True, False):
            sent, answered = _loops_of(segments, part, end, from_opener)
            data.append(sent)
            acks.append(answered)
    nothing = np.zeros(0, dtype=np.int64)
    sent, answered = np.concatenate([nothing, *data]), np.concatenate([nothing, *acks])
    loop = segments.time_s[answered] - segments.time_s[sent]
    pair, is_home = segments.pair[sent], segments.is_home[sent]
    is_sure = (segments.flags[sent] & _PSH) == 0
    return Loops.of(segments.time_s[sent], loop, pair, is_home, is_sure)


def _loops_of(
    segments: Segments, part: np.ndarray, end: np.ndarray, from_opener: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Data of one sender, and what acknowledges them."""
    mine = segments.is_opener[part] == from_opener
    sent = part[mine & (end[part] > segments.begin[part])]
    acks = part[~mine & (segments.ack[part] >= 0)]
    if not len(sent) or not len(acks):
        return sent[:0], acks[:0]
    top = np.maximum.accumulate(end[sent])
    before = np.concatenate(([segments.begin[sent[0]]], top[:-1]))
    in_order = segments.begin[sent] == before
    ack = np.maximum.accumulate(segments.ack[acks])
    is_new = np.concatenate(([True], ack[1:] > ack[:-1]))
    acks, ack = acks[is_new], ack[is_new]
    last = np.searchsorted(top, ack, side="right") - 1
    held = last >= 0
    acks, last = acks[held], last[held]
    disorder = np.cumsum(~in_order)
    seen = np.searchsorted(segments.time_s[sent], segments.time_s[acks], side="right") - 1
    right = (seen >= last) & in_order[last]
    right &= disorder[np.maximum(seen, 0)] == disorder[last]
    # Each segment has one acknowledgement.
    right &= np.concatenate(([True], last[1:] != last[:-1])) if len(last) else right
    return sent[last[right]], acks[right]


def near(found: Loops, is_home: bool, times: np.ndarray) -> np.ndarray:
    """How long the queues in one side's loops are at these times; nan: no loop is near.

    The median of the excess of loops that begin near each time. Loops of a write's last segment
    are left out, whose acknowledgement may wait for an answer, unless there are no others.
    """
    mine = found.is_home == is_home
    sure = mine & found.is_sure
    median = _medians(found, sure, times)
    open_ = np.isnan(median)
    if open_.any():
        median[open_] = _medians(found, mine, times[open_])
    return median


def _medians(found: Loops, chosen: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The median excess of the chosen loops near each time."""
    order = np.flatnonzero(chosen)
    order = order[np.argsort(found.time_s[order], kind="stable")]
    time, excess = found.time_s[order], found.excess_s[order]
    low = high = np.zeros(len(times), dtype=np.int64)
    for width in _NEAR_S:
        wider = high - low < _ENOUGH
        low = np.where(wider, np.searchsorted(time, times - width), low)
        high = np.where(wider, np.searchsorted(time, times + width, side="right"), high)
    median = np.full(len(times), np.nan)
    for at, (begin, end) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if end > begin:
            part = np.sort(excess[begin:end])
            median[at] = part[(len(part) - 1) // 2]
    return median
