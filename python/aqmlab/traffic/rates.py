"""What a capture shows of the rates of its link, and how it is known.

A rate is proven by the gaps between full packets that have passed the queue, by what is
acknowledged while a queue stands behind the tap, or by a plateau of the load. The busiest second
proves nothing: it is the load, not the link.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aqmlab import _native
from aqmlab._util.lazy import np
from aqmlab.errors import AqmlabError
from aqmlab.scenario.quantities import rate_text
from aqmlab.traffic.quic import Quic
from aqmlab.traffic.segments import Loops, Segments, loops, near, read_segments

__all__ = [
    "Arrivals",
    "Gaps",
    "Load",
    "PassedShares",
    "Rate",
    "behind",
    "is_behind",
    "link_rates",
    "loads",
    "rates",
    "shares",
    "varying",
]


_FRAMING_BYTES = 38
"""What Ethernet adds to a packet on the wire."""
_FINE_S = 0.01
"""Windows in which a burst shows that the link is faster than its load."""
_DAY_S = 86_400.0
"""Longer captures are counted by the second."""
_FASTER = 5.0
"""A burst of so many times the busiest second's load shows it."""
_FEWEST = 10
"""Packets of such a burst."""
_BEHIND_S = 0.002
"""The way from the tap and back varies by less where no queue is in it."""
_QUEUE_S = 0.02
"""Loops that grow by more show a queue."""
_LONG_S = 10
"""Seconds of capture from which on a rate can be proven."""
_FEWEST_GAPS = 1000
"""Gaps that prove a rate, at least."""
_AGREE = 0.9
"""So many of them show one rate."""
_FULL = 1000
"""Payload of a full packet, at least."""
_ACKED_S = 0.25
"""Windows of what is acknowledged."""
_FEWEST_WINDOWS = 20
"""Busy windows that prove a rate, at least."""
_REACHED = 0.9
"""The busiest second of a link that was full is above so much of its rate."""
_NEARED = 0.5
"""The gaps of one direction count if its busiest second is above so much of what they show."""
_PARTLY_S = 0.1
"""Windows in which gaps and load of a link that is full in part are compared."""
_FEWEST_FULL = 10
"""Such windows with a queue, at least."""
_OFTEN = 0.2
"""So many of all windows with a queue have the rate."""
_WIDTH = 0.015
"""Of the kernel over the logarithm of rates."""
_WIRE = 1538 / 1448
"""Bytes on the wire for each byte of data."""
_SERIES_S = 0.5
"""Windows in which a rate that varies is read."""
_STANDS_S = 0.01
"""A longer wait shows that the link is full."""
_GROWN_S = 0.05
"""Loops grow by more if the rate varies and was not found otherwise."""
_SEEN = 0.3
"""A queue stands in so many of the windows, at least."""
_IDLE = 4.0
"""The rate of a link that was never full: so many times the busiest second."""


@dataclass(frozen=True)
class Load:
    """What passed in one direction."""

    octets: float
    packets: float
    seconds: float
    busiest_bps: float
    """In the busiest second, with framing."""
    burst_bps: float
    """In the busiest 10 ms that hold enough packets."""
    plateau_bps: float | None
    """The rate at which most seconds stand still."""


@dataclass(frozen=True)
class Rate:
    """The rate of one direction, and how it is known."""

    bps: float
    why: str
    is_proven: bool = False
    """Otherwise it is a guess, and nothing is concluded from it."""
    series: tuple[np.ndarray, np.ndarray] | None = None
    """Of a rate that varies: from when on it has which value. Then `bps` is the mean."""

    def at(self, times: np.ndarray) -> np.ndarray:
        """The rate at these times."""
        if self.series is None:
            return np.full(len(times), self.bps)
        begins, values = self.series
        found: np.ndarray = values[np.maximum(np.searchsorted(begins, times, side="right") - 1, 0)]
        return found

    def bits(self, begins_s: np.ndarray, ends_s: np.ndarray) -> np.ndarray:
        """What the link carries between these times if it is full."""
        if self.series is None:
            whole: np.ndarray = self.bps * (ends_s - begins_s)
            return whole
        begins, values = self.series
        edges = np.append(begins, 2 * begins[-1] - begins[-2])
        total = np.concatenate(([0.0], np.cumsum(values * np.diff(edges))))
        found: np.ndarray = np.interp(ends_s, edges, total) - np.interp(begins_s, edges, total)
        return found


@dataclass(frozen=True)
class Gaps:
    """What the gaps between full packets that follow each other show."""

    bps: float
    """The most common rate; 0: there are too few gaps."""
    share: float
    """How many gaps show it."""
    number: int

    def agree(self, load: Load) -> bool:
        """Whether nearly all show one rate, and no second has more."""
        return self.share >= _AGREE and self.bps >= 0.95 * load.busiest_bps

    def near(self, load: Load) -> bool:
        """Whether the load comes near the rate that they show."""
        return load.busiest_bps >= _NEARED * self.bps

    def fill(self, load: Load) -> bool:
        """Whether they are those of a link that the load fills."""
        return self.agree(load) and load.busiest_bps >= _REACHED * self.bps


@dataclass(frozen=True)
class PassedShares:
    """What of a capture is TCP, and what else passes, by direction."""

    octets: tuple[float, float]
    """Towards home, and away from it."""
    other: tuple[float, float]
    """Of these what is neither TCP nor among the `quic` connections."""
    packets: tuple[float, float]
    """How many packets are in `other`."""
    seconds: float
    quic: float = 0.0
    """Bytes of QUIC connections, which are not in `other`."""

    @property
    def loads_bps(self) -> tuple[float, float]:
        """IP bits of each direction per second of the capture."""
        down, up = (8 * octets / self.seconds for octets in self.octets)
        return down, up

    @property
    def judged(self) -> float:
        """The share of the bytes in connections that are replayed."""
        total = sum(self.octets)
        return 1 - sum(self.other) / total if total else 1.0

    @property
    def quic_share(self) -> float:
        """QUIC's share of the bytes."""
        return self.quic / max(sum(self.octets), 1.0)


@dataclass(frozen=True)
class Arrivals:
    """Packets and bytes over time: towards home, and away from it."""

    step_s: float
    packets: tuple[np.ndarray, np.ndarray]
    octets: tuple[np.ndarray, np.ndarray]

    @classmethod
    def read(cls, capture: Path, segments: Segments) -> Arrivals:
        """Reads a capture once; what is of neither side counts as towards home."""
        seconds = float(segments.time_s[-1]) if len(segments) else 0.0
        width = _FINE_S if seconds <= _DAY_S else 1.0
        step, series, _ = _native.capture_arrivals(str(capture), width, True, None)
        columns = [[np.frombuffer(column, "<f8") for column in columns] for columns in series]
        length = max((len(one[0]) for one in columns), default=0)
        nothing = [np.zeros(length), np.zeros(length)]
        columns += [nothing] * (3 - len(columns))
        home, away, unknown = columns
        return cls(step, (home[0] + unknown[0], away[0]), (home[1] + unknown[1], away[1]))

    def over(self, window_s: float, side: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Width of windows that are about so long, and packets and bytes in each."""
        each = max(1, round(window_s / self.step_s))
        starts = np.arange(0, len(self.packets[side]), each)
        if not len(starts):
            return each * self.step_s, self.packets[side], self.octets[side]
        columns = (np.add.reduceat(one[side], starts) for one in (self.packets, self.octets))
        packets, octets = columns
        return each * self.step_s, packets, octets


def shares(segments: Segments, arrivals: Arrivals, quic: Quic | None = None) -> PassedShares:
    """The shares of a capture's bytes; TCP's are those of its headers and payload."""
    quic_octets, quic_packets = (quic.octets, quic.packets) if quic else ((0.0, 0.0), (0.0, 0.0))
    both = loads(arrivals)
    other, packets = [], []
    for load, is_home in zip(both, (False, True), strict=True):
        mine = segments.is_home == is_home
        more = max(0.0, load.packets - float(mine.sum()) - quic_packets[is_home])
        # Where all packets are TCP, what is left are options of headers.
        rest = load.octets - float(segments.wire_bytes[mine].sum()) - quic_octets[is_home]
        other.append(min(max(rest, 0.0), 1500 * more))
        packets.append(more)
    down, up = both
    return PassedShares(
        (down.octets, up.octets),
        (other[0], other[1]),
        (packets[0], packets[1]),
        max(down.seconds, 1.0),
        sum(quic_octets),
    )


def loads(arrivals: Arrivals) -> tuple[Load, Load]:
    """What passed towards home, and away from it."""
    found = []
    for side in (0, 1):
        width, packets, octets = arrivals.over(1.0, side)
        step, few, bits = arrivals.over(_FINE_S, side)
        bps = 8 * (octets + _FRAMING_BYTES * packets) / width
        burst = 8 * (bits + _FRAMING_BYTES * few)[few >= _FEWEST] / step
        found.append(
            Load(
                float(octets.sum()),
                float(packets.sum()),
                len(octets) * width,
                float(bps.max(initial=0.0)),
                float(burst.max(initial=0.0)) if step <= _FINE_S else 0.0,
                _plateau(bps),
            )
        )
    return found[0], found[1]


def _plateau(bps: np.ndarray) -> float | None:
    """The load at which four in ten seconds stand, if none has much more."""
    busy = bps[bps > 0]
    if len(busy) < _LONG_S:
        return None
    logs = np.sort(np.log(busy))
    inside = np.searchsorted(logs, logs + 0.06) - np.arange(len(logs))
    most = int(inside.argmax())
    if inside[most] < 0.4 * len(logs):
        return None
    found = float(np.exp(np.median(logs[most : most + inside[most]])))
    return found if busy.max() < 1.15 * found else None


def rates(
    capture: Path, segments: Segments | None = None, arrivals: Arrivals | None = None
) -> tuple[Rate, Rate]:
    """The rates towards home and away from it.

    Raises:
        AqmlabError: the capture does not show how fast its link is.
    """
    segments = read_segments(capture) if segments is None else segments
    arrivals = Arrivals.read(capture, segments) if arrivals is None else arrivals
    found = loops(segments)
    down, up = link_rates(segments, found, arrivals)
    if down.is_proven or up.is_proven:
        return down, up
    both = loads(arrivals)
    load = max(both, key=lambda one: one.busiest_bps)
    if not load.packets:
        raise AqmlabError(f"{capture}: shows no load; say the rate by --rate DOWN/UP")
    second, burst = (rate_text(_digits(bps)) for bps in (load.busiest_bps, load.burst_bps))
    if load is both[0] and is_behind(found, False) and load.burst_bps > _FASTER * load.busiest_bps:
        raise AqmlabError(
            f"{capture}: its link was never full: found {second} in the busiest second and "
            f"{burst} within 10 ms; say its rate by --rate DOWN/UP"
        )
    if load.seconds >= _LONG_S and not _has_queue(found):
        return down, up
    why = "that much passed in the busiest second (not proven)"
    most = [
        Rate(_digits(one.busiest_bps), why)
        if one.busiest_bps >= 0.5 * load.busiest_bps
        else Rate(_idle(one, _digits(load.busiest_bps)), _NEVER)
        for one in both
    ]
    return most[0], most[1]


def _has_queue(found: Loops) -> bool:
    """Whether loops of either side grow as if a queue stood."""
    growths = (found.excess_s[found.is_home == side] for side in (False, True))
    return any(len(one) and np.quantile(one, 0.95) > _QUEUE_S for one in growths)


_NEVER = "never full, so its queue is not predicted"


def link_rates(segments: Segments, found: Loops, arrivals: Arrivals) -> tuple[Rate, Rate]:
    """The rates that are proven; the others are high enough for what passed."""
    both = loads(arrivals)
    gaps = _gaps(segments, False), _gaps(segments, True)
    taps = _behind(found, both, gaps)
    proven = [_proven(arrivals, segments, found, both, taps, gaps, side) for side in (0, 1)]
    most = []
    for side, rate in enumerate(proven):
        other = proven[1 - side]
        least = other.bps if other else _digits(both[1 - side].busiest_bps)
        most.append(rate or Rate(_idle(both[side], least), _NEVER))
    return most[0], most[1]


def _proven(
    arrivals: Arrivals,
    segments: Segments,
    found: Loops,
    both: tuple[Load, Load],
    taps: tuple[bool, bool],
    gaps: tuple[Gaps, Gaps],
    side: int,
) -> Rate | None:
    """The rate of one direction; None: nothing proves it."""
    load, mine, is_home = both[side], gaps[side], bool(side)
    if load.seconds < _LONG_S:
        return None
    if taps[side]:
        # Behind both queues each stands in a loop of its own: that of the other direction.
        apart = all(taps) and not any(is_behind(found, one) for one in (False, True))
        if mine.agree(load) or (apart and _fills(arrivals, found, mine, is_home)):
            return Rate(mine.bps, f"gaps of {100 * mine.share:.0f} % of full packets", True)
        if apart:
            return None
    elif acked := _acknowledged(arrivals, segments, found, is_home):
        return Rate(acked, "what is acknowledged while a queue stands", True)
    # A plateau of small packets is that of who sends them.
    if load.plateau_bps is not None and load.octets >= 500 * load.packets:
        return Rate(load.plateau_bps, "a load that stands still", True)
    return None


def behind(segments: Segments, found: Loops, arrivals: Arrivals) -> tuple[bool, bool]:
    """Whether packets towards home, and away from it, have passed their queues at the tap.

    A loop without a queue shows it. Behind both queues each loop holds the queue of the other
    direction, so the gaps of full packets show it: before a queue they are not those of a link
    that is full.
    """
    gaps = _gaps(segments, False), _gaps(segments, True)
    return _behind(found, loads(arrivals), gaps)


def _behind(found: Loops, both: tuple[Load, Load], gaps: tuple[Gaps, Gaps]) -> tuple[bool, bool]:
    by_loops = [is_behind(found, side) for side in (False, True)]
    full = [one.fill(load) for one, load in zip(gaps, both, strict=True)]
    has = [bool(np.any(found.is_home == side)) for side in (False, True)]
    if all(has) and not any(by_loops) and any(full):
        return True, True
    down, up = (
        by_loops[side]
        or full[side]
        # A host that sends faster than its link has gaps that its load comes nowhere near.
        or (full[1 - side] and gaps[side].agree(both[side]) and gaps[side].near(both[side]))
        for side in (0, 1)
    )
    return down, up


def _fills(arrivals: Arrivals, found: Loops, gaps: Gaps, is_home: bool) -> bool:
    """Whether the load is that of the most common gaps while a queue stands.

    The other direction's loop says so, which holds this queue and no other.
    """
    width, packets, octets = arrivals.over(_PARTLY_S, int(is_home))
    if width > 2 * _PARTLY_S or gaps.number * gaps.share < _FEWEST_GAPS:
        return False
    load = 8 * (octets + _FRAMING_BYTES * packets) / width / gaps.bps
    waited = near(found, not is_home, width * (np.arange(len(load)) + 0.5))
    stands = load[np.nan_to_num(waited) > _STANDS_S]
    if len(stands) < _FEWEST_FULL:
        return False
    low, high = np.quantile(stands, (0.25, 0.95))
    return bool(low > 0.95 and high < 1.05)


def varying(
    arrivals: Arrivals,
    segments: Segments,
    side: int,
    waits: Callable[[np.ndarray], np.ndarray],
    *,
    is_behind: bool,
) -> Rate | None:
    """A rate that varies: what leaves while a queue stands, and linear between; None: no proof.

    `waits` says how long the queue is at given times. Before the queue, what passes the tap leaves
    that much later, without what is lost and sent again.
    """
    width, packets, octets = arrivals.over(_SERIES_S, side)
    if width > 2 * _SERIES_S or len(packets) * width < _LONG_S:
        return None
    passed = octets + _FRAMING_BYTES * packets
    if not is_behind:
        grid = 0.1 * _SERIES_S * np.arange(10 * len(packets))
        passed = _left(arrivals, segments, side, (grid, waits(grid)), width)
    begins = width * np.arange(len(packets))
    queued = waits(begins + 0.5 * width)
    bps = 8 * passed / width
    busy = (queued > _STANDS_S) & (bps > 0)
    busy[-1] = False  # the capture ends within this window
    if np.quantile(queued, 0.95) < _GROWN_S or np.mean(busy) < _SEEN:
        return None
    values = np.interp(begins, begins[busy], bps[busy])
    low, high = (rate_text(_digits(float(one))) for one in np.quantile(values, (0.05, 0.95)))
    share = f"{100 * float(np.mean(busy)):.0f} % of the time"
    why = f"varies between {low} and {high}: what passes while a queue stands, {share}"
    return Rate(float(values.mean()), why, True, (begins, values))


def _left(
    arrivals: Arrivals,
    segments: Segments,
    side: int,
    waits: tuple[np.ndarray, np.ndarray],
    width: float,
) -> np.ndarray:
    """Bytes that leave a queue behind the tap in each window; `waits` are times and waits."""
    step, packets, octets = arrivals.over(arrivals.step_s, side)
    count = math.ceil(len(packets) * step / width)
    times = step * (np.arange(len(packets)) + 0.5)
    passed = octets + _FRAMING_BYTES * packets
    data = np.flatnonzero((segments.is_home == bool(side)) & (segments.payload > 0))
    order = data[np.lexsort((segments.begin[data], segments.connection[data]))]
    again = (np.diff(segments.connection[order]) == 0) & (np.diff(segments.begin[order]) == 0)
    lost = order[:-1][again]
    lost_times = segments.time_s[lost]
    lost_bytes = segments.wire_bytes[lost] + _FRAMING_BYTES
    found = _binned(times + np.interp(times, *waits), passed, width, count)
    found -= _binned(lost_times + np.interp(lost_times, *waits), lost_bytes, width, count)
    left: np.ndarray = np.maximum(found, 0.0)
    return left


def _idle(load: Load, least_bps: float) -> float:
    return max(_digits(_IDLE * load.busiest_bps), least_bps, 1000.0)


def _digits(bps: float) -> float:
    """Two digits, rounded up: more would pretend that it was known."""
    bps = max(bps, 1000.0)
    digit = 10.0 ** (math.floor(math.log10(bps)) - 1)
    return math.ceil(round(bps / digit, 6)) * digit


def is_behind(found: Loops, is_home: bool) -> bool:
    """Whether data of one side have passed their queue when they pass the tap.

    Then 95 % of their acknowledgements come within 2 ms of the fastest of the pair, unless the
    other direction's queue is in their loop.
    """
    excess = found.excess_s[found.is_home == is_home]
    return bool(len(excess)) and bool(np.quantile(excess, 0.95) < _BEHIND_S)


def _gaps(segments: Segments, is_home: bool) -> Gaps:
    """The gaps between the full packets of one direction."""
    other = segments.datagrams
    mine, its = segments.is_home == is_home, other.is_home == is_home
    times = np.concatenate((segments.time_s[mine], other.time_s[its]))
    payload = np.concatenate((segments.payload[mine], other.payload[its]))
    wire = np.concatenate((segments.wire_bytes[mine], other.wire_bytes[its]))
    order = np.argsort(times, kind="stable")
    is_full = payload[order] >= _FULL
    gap = np.diff(np.round(1e9 * times[order]))
    used = is_full[1:] & is_full[:-1] & (gap > 0)
    if used.sum() < _FEWEST_GAPS:
        return Gaps(0.0, 0.0, 0)
    octets = wire[order][1:][used] + _FRAMING_BYTES
    logs = np.sort(np.log(8e9 * octets / gap[used]))
    inside = np.searchsorted(logs, logs + 0.04) - np.arange(len(logs))
    most = int(inside.argmax())
    bps = float(np.exp(np.median(logs[most : most + inside[most]])))
    return Gaps(bps, float(inside[most] / len(logs)), len(logs))


def _acknowledged(
    arrivals: Arrivals, segments: Segments, found: Loops, is_home: bool
) -> float | None:
    """The rate at which data leave a queue behind the tap: as their acknowledgements say.

    What is not acknowledged, ACKs of the other direction and datagrams, shares the link.
    """
    width, packets, octets = arrivals.over(_ACKED_S, int(is_home))
    count = len(packets)
    if not count or width > 2 * _ACKED_S:
        return None
    mine = segments.is_home == is_home
    data = mine & (segments.payload > 0)
    weights = segments.wire_bytes[data] + _FRAMING_BYTES
    sent = _binned(segments.time_s[data], weights, width, count)
    other = np.maximum(octets + _FRAMING_BYTES * packets - sent, 0.0)
    times, new = _newly_acknowledged(segments, ~mine)
    acked = _WIRE * _binned(times, new, width, count)
    total = 8 * (acked + other) / width
    busy = total > 0.6 * np.quantile(total[total > 0], 0.95) if (total > 0).any() else total > 0
    busy &= acked > other
    excess = found.excess_s[found.is_home == is_home]
    when = found.time_s[found.is_home == is_home]
    each = np.maximum(_binned(when, np.ones(len(when)), width, count), 1)
    waited = _binned(when, excess, width, count) / each
    busy &= waited > _BEHIND_S
    if busy.sum() < _FEWEST_WINDOWS:
        return None
    logs = np.sort(np.log(total[busy]))
    density = [float(np.exp(-0.5 * ((logs - one) / _WIDTH) ** 2).sum()) for one in logs]
    mode = logs[int(np.argmax(density))]
    if np.mean(np.abs(logs - mode) < 0.03) < 0.3:
        return None
    # A link that varies has other rates, too, while a queue stands.
    stands = total[(waited > _STANDS_S) & (total > 0)]
    if len(stands) and np.mean(np.abs(np.log(stands) - mode) < 0.03) < _OFTEN:
        return None
    return float(np.exp(mode))


def _binned(times: np.ndarray, weights: np.ndarray, width: float, count: int) -> np.ndarray:
    """The sum of the weights in each window."""
    place = np.minimum((times / width).astype(np.int64), count - 1)
    return np.bincount(place, weights=weights, minlength=count)


def _newly_acknowledged(segments: Segments, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """When acknowledgements pass, and how many bytes each is the first to acknowledge."""
    chosen = np.flatnonzero(chosen & (segments.ack >= 0))
    chosen = chosen[np.argsort(segments.connection[chosen], kind="stable")]
    if not len(chosen):
        return segments.time_s[:0], segments.time_s[:0]
    connection = segments.connection[chosen]
    top = np.maximum.accumulate(segments.ack[chosen] + connection * (1 << 42))
    new = np.diff(top, prepend=top[0])
    new[1:][connection[1:] != connection[:-1]] = 0
    return segments.time_s[chosen], new
