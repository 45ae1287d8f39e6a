"""What applications did, without the old queue: connection vectors out of a capture's segments.

Round trips are the least loops of each pair of addresses, both ways from the tap added. A pause is
what passed at the tap, less the way to who pauses and back, and less the queue at that time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from aqmlab._util.lazy import np
from aqmlab.errors import AqmlabError
from aqmlab.traffic.capture_files import replaced, unpacked
from aqmlab.traffic.quic import Quic, read_quic
from aqmlab.traffic.rates import Arrivals, PassedShares, Rate, behind, link_rates, shares, varying
from aqmlab.traffic.segments import Loops, Segments, loops, near, read_segments
from aqmlab.traffic.turns import Talk, TapLoop, response_times, talks

__all__ = ["Inferred", "VectorFile", "write_vectors"]


_LEAST_RTT_S = 0.005
"""The nearest host of a link whose queue never empties."""
_STANDING = 0.02
"""A link below half of its rate for a smaller share of the time has a standing queue."""
_FULL = 0.5
"""Above so much of its rate a link is taken to be busy."""
_WINDOW_S = 0.1
_QUIET = 0.3
"""Below so much of its rate the other direction adds nothing to a loop."""
_QUIET_S = 2.0
"""And its queue is empty after so long."""
_LONG_BYTES = 2_000_000
"""A response that shows what its congestion control does."""
_BOTH = 0.1
"""Both directions are full for so much of the time: their buffers are not separable."""
_GRID_S = 0.25
_MOST_HOSTS = 32
"""Addresses at home that are kept apart."""


@dataclass(frozen=True)
class Inferred:
    """What is read off a capture."""

    capture: Path
    segments: Segments
    acks: Loops
    """From data to their acknowledgements."""
    found: Loops
    """These, and the loops of QUIC's handshakes."""
    rates: tuple[Rate, Rate]
    """Towards home, and away from it."""
    passed: PassedShares
    quic: Quic
    busy: tuple[np.ndarray, np.ndarray]
    """The share of the rate that is used, in windows of 100 ms."""
    behind: tuple[bool, bool]
    """Whether packets of a direction have passed their queue at the tap."""

    @classmethod
    def read(cls, capture: Path, rates_bps: tuple[float, float] | None = None) -> Inferred:
        """Reads a capture; `rates_bps` are stated, else the capture shows them."""
        with unpacked(capture) as plain:
            segments = read_segments(plain)
            if not len(segments):
                raise AqmlabError(f"{capture}: found no TCP packet to predict from")
            acks = loops(segments)
            arrivals = Arrivals.read(plain, segments)
            if rates_bps:
                down, up = (Rate(bps, "stated", is_proven=True) for bps in rates_bps)
            else:
                down, up = link_rates(segments, acks, arrivals)
            quic = read_quic(segments.datagrams, float(segments.time_s[-1]))
            passed = shares(segments, arrivals, quic)
        found, busy = acks.joined(quic.loops), (np.zeros(0), np.zeros(0))
        taps = behind(segments, acks, arrivals)
        read = cls(capture, segments, acks, found, (down, up), passed, quic, busy, taps)
        if not (down.is_proven or up.is_proven):
            down, up = read.varying(arrivals)
        used = []
        for side, rate in enumerate((down, up)):
            width, packets, octets = arrivals.over(_WINDOW_S, side)
            bps = rate.at(width * np.arange(len(octets)))
            used.append(8 * (octets + 38 * packets) / width / bps)
        return replace(read, rates=(down, up), busy=(used[0], used[1]))

    def varying(self, arrivals: Arrivals) -> tuple[Rate, Rate]:
        """The rates, with that of the busier direction as it varies, if the queue shows it."""
        side = int(self.passed.octets[1] > self.passed.octets[0])
        waits, is_behind = self._way(side).waits, self.behind[side]
        found = varying(arrivals, self.segments, side, waits, is_behind=is_behind)
        rates = list(self.rates)
        rates[side] = found or rates[side]
        return rates[0], rates[1]

    def _way(self, side: int) -> TapLoop:
        """The loop that holds the queue of a direction: of its own data, if they pass it later."""
        return self.ways[1 - side if self.behind[side] and not self._is_idle(side) else side]

    def _is_idle(self, side: int) -> bool:
        """Whether a direction never fills its link: a loop without a queue says little of it."""
        return bool(len(self.busy[side])) and self.is_full(side) < _STANDING

    @property
    def _holds_both(self) -> bool:
        """Whether one loop holds the queues of both directions, and the other none."""
        down, up = self.behind
        return down != up and not self._is_idle(0 if down else 1)

    @property
    def seconds(self) -> float:
        """From the first packet to the last segment."""
        return float(self.segments.time_s[-1])

    @cached_property
    def talks(self) -> list[Talk]:
        """The connections."""
        return talks(self.segments) + self.quic.talks

    @cached_property
    def ways(self) -> tuple[TapLoop, TapLoop]:
        """The ways from the tap towards home, and away from it."""
        of_all = (self.segments.pair, self.segments.datagrams.pair)
        pairs = max(int(one.max(initial=0)) for one in of_all) + 1
        down, up = (TapLoop.read(self.found, side, pairs) for side in (False, True))
        return down, up

    @cached_property
    def hosts(self) -> dict[int, int]:
        """For each pair of addresses the number of its host at home, the busiest first.

        Addresses beyond the most that are kept apart share hosts in turn.
        """
        homes = self.segments.homes
        octets = np.zeros(int(homes.max(initial=0)) + 1)
        for one in self.talks:
            octets[homes[one.pair]] += sum(e.request + e.response for e in one.exchanges)
        rank = np.argsort(np.argsort(-octets, kind="stable"), kind="stable") % _MOST_HOSTS
        return dict(enumerate(rank[homes].tolist()))

    @property
    def tap(self) -> str:
        """Where the capture was taken, in words."""
        down, up = ("behind" if one else "before" for one in self.behind)
        return f"{down} the queue down, {up} the queue up"

    @cached_property
    def round_trips(self) -> np.ndarray:
        """By pair of addresses; nan: one of the ways shows no loop."""
        home, far = self.ways
        total: np.ndarray = home.least_s + far.least_s
        return total

    @cached_property
    def standing_s(self) -> float:
        """By how much round trips may be too long, as the queue never empties; 0: it does."""
        for side, rate in enumerate(self.rates):
            if rate.is_proven and float(np.mean(self.busy[side] < _FULL)) < _STANDING:
                least = float(np.nanmin(self.round_trips, initial=math.inf))
                return max(0.0, least - _LEAST_RTT_S) if math.isfinite(least) else 0.0
        return 0.0

    def is_full(self, side: int) -> float:
        """The share of the time in which a direction is above half of its rate."""
        return float(np.mean(self.busy[side] > _FULL))

    def responses(self, warm_up_s: float) -> np.ndarray:
        """Response times, as those who asked have them; none with one direction only."""
        if len(np.unique(self.segments.is_opener)) < 2:
            return np.zeros(0)
        home, far = self.ways
        return response_times(self.talks, (far, home), warm_up_s)[1]

    def delay(self, warm_up_s: float) -> float:
        """The 95th percentile of the queues of both directions together, over time."""
        grid = np.arange(warm_up_s, self.seconds, _GRID_S)
        total = sum((way.waits(grid) for way in self.ways), np.zeros(len(grid)))
        return float(np.quantile(total, 0.95)) if len(grid) else 0.0

    def buffer_s(self, side: int) -> float | None:
        """How long the queue of a direction grows while the other is quiet; None: it never is.

        At the mean rate, if it varies.
        """
        way = self._way(side)
        mine = way.found.is_home == way.is_home
        times = np.unique(np.round(way.found.time_s[mine], 1))
        if self._holds_both:
            other = self.busy[1 - side]
            window_s = self.seconds / len(other)
            place = np.arange(len(other))
            last = np.maximum.accumulate(np.where(other > _QUIET, place, -1))
            quiet = place - last > _QUIET_S / window_s
            times = times[quiet[np.minimum((times / window_s).astype(int), len(other) - 1)]]
        waited = near(self._at_mean_rate(way.found, side), way.is_home, times)
        waited = waited[~np.isnan(waited)]
        return float(np.quantile(waited, 0.999)) if len(waited) else None

    def _at_mean_rate(self, found: Loops, side: int) -> Loops:
        """Loops whose excess is what passes in the meantime, at the mean rate of a direction.

        The same bytes are a longer wait while the rate is lower. Behind the queue a wait ends with
        its loop; before the queue it begins with it.
        """
        rate = self.rates[side]
        if rate.series is None:
            return found
        begins = found.time_s
        if self.behind[side]:
            begins = begins + found.loop_s - found.excess_s
        return replace(found, excess_s=rate.bits(begins, begins + found.excess_s) / rate.bps)

    def both_s(self) -> float | None:
        """How long the queues of both directions grow together; None: no loop holds both."""
        if not self._holds_both or min(self.is_full(0), self.is_full(1)) < _BOTH:
            return None
        grid = np.arange(0, self.seconds, _GRID_S)
        return float(np.quantile(self._way(0).waits(grid), 0.999))


@dataclass
class VectorFile:
    """Vectors of one class."""

    name: str
    direction: str
    is_long: bool
    transport: str
    host: int
    """Number of the host at home, from 0."""
    number: int = 0
    lines: list[tuple[float, str]] = field(default_factory=list)


def write_vectors(found: Inferred, folder: Path, lowered_s: float = 0.0) -> list[VectorFile]:
    """Writes vectors and returns the files that hold any.

    Round trips are shorter by `lowered_s`, which the capture cannot tell from a standing queue.
    """
    files: dict[str, VectorFile] = {}
    pauses = _Pauses(found)
    for one in found.talks:
        if not one.exchanges:
            continue
        is_upload = not any(exchange.chunks for exchange in one.exchanges)
        is_long = max(max(e.response, e.request) for e in one.exchanges) >= _LONG_BYTES
        is_forward = one.is_home != is_upload
        direction = "forward" if is_forward else "reverse"
        host = found.hosts[one.pair]
        kind = "long" if is_long else "short"
        name = f"{one.transport}-{kind}-{direction}-{host + 1}"
        file = files.setdefault(name, VectorFile(name, direction, is_long, one.transport, host))
        file.number += 1
        file.lines.append((one.begin_s, _vector(one, found, pauses, lowered_s, is_upload)))
    used = list(files.values())
    for file in used:
        with replaced(folder / f"{file.name}.cvec") as out:
            out.writelines(text for _, text in sorted(file.lines))
    return used


class _Pauses:
    """The queue at the times at which pauses begin, for all connections at once."""

    def __init__(self, found: Inferred) -> None:
        times: tuple[list[float], list[float]] = ([], [])
        for one in found.talks:
            for exchange in one.exchanges:
                times[one.is_home].append(exchange.end_s)
                times[not one.is_home].extend(chunk.end_s for chunk in exchange.chunks)
        self.ways = found.ways
        self.known = tuple(
            dict(zip(some, way.waits(np.array(some)).tolist(), strict=True)) if some else {}
            for some, way in zip(times, found.ways, strict=True)
        )

    def loop(self, is_home: bool, pair: int, time_s: float) -> float:
        """From data of one side to what answers them: the way there and back, and its queue."""
        least = float(self.ways[is_home].least_s[pair])
        return (0.0 if math.isnan(least) else least) + float(self.known[is_home][time_s])


def _vector(one: Talk, found: Inferred, pauses: _Pauses, lowered_s: float, is_upload: bool) -> str:
    """A connection in the original format of tmix."""
    adus = list(_adus(one, pauses, 4 * found.seconds * max(r.bps for r in found.rates) / 8))
    if is_upload:
        size = sum(octets for _, octets, _ in adus)
        adus = [(">", 1, 0.0), ("<", size, 0.0)]
    head = f"SEQ {_micros(one.begin_s)} {sum(a[0] == '>' for a in adus)} 0 {one.number}\n"
    rtt = float(found.round_trips[one.pair]) - lowered_s
    if rtt > 0:
        head += f"r {_micros(rtt)}\n"
    return head + "".join(f"{side} {size}\nt {_micros(t)}\n" for side, size, t in adus) + "\n"


def _micros(seconds: float) -> int:
    return max(0, round(1e6 * seconds))


def _adus(one: Talk, pauses: _Pauses, endless: float) -> Iterator[tuple[str, int, float]]:
    """What a connection sends: who, how many bytes, and the pause behind them."""
    last = len(one.exchanges) - 1
    for at, exchange in enumerate(one.exchanges):
        chunks = exchange.chunks
        if exchange.request:
            pause = 0.0
            if chunks:
                way = pauses.loop(one.is_home, one.pair, exchange.end_s)
                pause = max(0.0, chunks[0].begin_s - exchange.end_s - way)
            yield ">", _size(exchange.request, one, endless, is_only=not last), pause
        for place, chunk in enumerate(chunks):
            pause = 0.0
            if place + 1 < len(chunks):
                pause = chunks[place + 1].begin_s - chunk.end_s
            elif at < last:
                way = pauses.loop(not one.is_home, one.pair, chunk.end_s)
                pause = max(0.0, one.exchanges[at + 1].begin_s - chunk.end_s - way)
            is_only = last == 0 and len(chunks) == 1
            yield "<", _size(chunk.octets, one, endless, is_only=is_only), pause


def _size(octets: int, one: Talk, endless: float, *, is_only: bool) -> int:
    """Bytes of an ADU; what goes on behind the capture has no end."""
    is_endless = is_only and one.goes_on and octets >= _LONG_BYTES
    return max(1, int(endless) if is_endless else octets)
