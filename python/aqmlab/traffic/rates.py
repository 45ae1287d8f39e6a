"""What a capture shows of the rates of its link, and how it is known.

A rate is proven by the gaps between full packets that have passed the queue, or by a plateau of
the load. The load of the busiest second stands in only where nothing shows a faster link.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from aqmlab import _native
from aqmlab._util.lazy import np
from aqmlab.errors import AqmlabError
from aqmlab.scenario.quantities import rate_text

__all__ = ["Load", "Rate", "Shares", "loads", "rates", "shares"]


_FRAMING_BYTES = 38
"""What Ethernet adds to a packet on the wire."""
_HEADERS = 66
"""Bytes of Ethernet, IP and TCP with time stamps."""
_FINE_S = 0.01
"""Windows in which a burst shows that the link is faster than its load."""
_FASTER = 5.0
"""A burst of so many times the busiest second's load shows it."""
_FEWEST = 10
"""Packets of such a burst."""
_BEHIND_S = 0.002
"""The way from the tap and back varies by less where no queue is in it."""
_LONG_S = 10
"""Seconds of capture from which on a rate can be proven."""
_FEWEST_GAPS = 1000
"""Gaps that prove a rate, at least."""
_FULL = 1000
"""Payload of a full packet, at least."""


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


@dataclass(frozen=True)
class Shares:
    """What of a capture is TCP, and what else passes, by direction."""

    octets: tuple[float, float]
    """Towards home, and away from it."""
    other: tuple[float, float]
    """Of these what is not TCP."""
    seconds: float

    @property
    def tcp(self) -> float:
        """TCP's share of the bytes."""
        total = sum(self.octets)
        return 1 - sum(self.other) / total if total else 1.0


def shares(capture: Path) -> Shares:
    """The shares of a capture's bytes; TCP's are those of its headers and payload."""
    words, _ = _native.capture_segments(str(capture))
    rows = np.frombuffer(words, dtype="<u8").reshape(-1, 7)
    down, up = loads(capture)
    tcp = float((rows[:, 5] >> np.uint64(8)).sum()) + _HEADERS * len(rows)
    total = down.octets + up.octets
    packets = down.packets + up.packets
    # Where all packets are TCP, what is left are options of headers.
    rest = max(0.0, total - tcp) if len(rows) < packets else 0.0
    part = rest / total if total else 0.0
    return Shares(
        (down.octets, up.octets), (part * down.octets, part * up.octets), max(down.seconds, 1.0)
    )


def loads(capture: Path) -> tuple[Load, Load]:
    """What passed towards home, and away from it."""
    coarse = _columns(capture, 1.0)
    fine = _columns(capture, _FINE_S)
    found = []
    for side in (0, 1):
        (width, packets, octets), (step, few, bits) = coarse[side], fine[side]
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


def _columns(capture: Path, bin_s: float) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Width of the bins, packets and bytes: home, away; what is of neither side counts as home."""
    width, series = _native.capture_arrivals(str(capture), bin_s, True, None)
    columns = [[np.frombuffer(column, "<f8") for column in columns] for columns in series]
    length = max((len(one[0]) for one in columns), default=0)
    nothing = [np.zeros(length), np.zeros(length)]
    columns += [nothing] * (3 - len(columns))
    home, away, unknown = columns
    return [(width, home[0] + unknown[0], home[1] + unknown[1]), (width, away[0], away[1])]


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


def rates(capture: Path) -> tuple[Rate, Rate]:
    """The rates towards home and away from it.

    Raises:
        AqmlabError: the capture shows that its link was never full, and not how fast it is.
    """
    down, up = loads(capture)
    gaps, is_behind = _gaps(capture)
    found: list[Rate | None] = [None, None]
    if gaps is not None and is_behind and gaps >= 0.95 * down.busiest_bps:
        share = down.busiest_bps / gaps
        if share >= 0.5:
            found[0] = Rate(gaps, "the gaps between full packets")
    for side, load in enumerate((down, up)):
        # A plateau of small packets is that of who sends them.
        is_bulk = load.seconds >= _LONG_S and load.octets >= 500 * load.packets
        if found[side] is None and load.plateau_bps is not None and is_bulk:
            found[side] = Rate(load.plateau_bps, "a load that stands still")
    busier = 0 if down.busiest_bps >= up.busiest_bps else 1
    load = (down, up)[busier]
    if found[busier] is None:
        if is_behind and busier == 0 and load.burst_bps > _FASTER * load.busiest_bps:
            second, burst = (rate_text(_digits(bps)) for bps in (load.busiest_bps, load.burst_bps))
            raise AqmlabError(
                f"{capture}: its link was never full: found {second} in the busiest second and "
                f"{burst} within 10 ms; say its rate by --rate"
            )
        found[busier] = Rate(
            _digits(load.busiest_bps), "that much passed in the busiest second (not proven)"
        )
    other = 1 - busier
    first = found[busier]
    if found[other] is None and first is not None:
        load = (down, up)[other]
        if load.busiest_bps >= 0.5 * first.bps:
            found[other] = Rate(
                _digits(load.busiest_bps), "that much passed in the busiest second (not proven)"
            )
        else:
            bps = max(first.bps, _digits(4 * load.busiest_bps))
            found[other] = Rate(bps, "never full, so its queue is not predicted")
    one, two = found
    if one is None or two is None:
        raise AqmlabError(f"{capture}: shows no load; say the rate by --rate")
    return one, two


def _digits(bps: float) -> float:
    """Two digits, rounded up: more would pretend that it was known."""
    bps = max(bps, 1000.0)
    digit = 10.0 ** (math.floor(math.log10(bps)) - 1)
    return math.ceil(round(bps / digit, 6)) * digit


def _gaps(capture: Path) -> tuple[float | None, bool]:
    """The rate that gaps between full packets of acceptors show.

    And whether no queue is between the tap and who receives them.
    """
    words, _ = _native.capture_segments(str(capture))
    rows = np.frombuffer(words, dtype="<u8").reshape(-1, 7)
    if not len(rows):
        return None, False
    order = np.argsort(rows[:, 0], kind="stable")
    rows = rows[order]
    payload = (rows[:, 5] >> np.uint64(8)).astype(np.int64)
    is_behind = _is_behind(rows, payload)
    down = rows[:, 2] == 1
    times, sizes = rows[down, 0].astype(np.int64), payload[down]
    if not len(times) or times[-1] - times[0] < _LONG_S * 1e9:
        return None, is_behind
    full = (sizes[1:] >= _FULL) & (sizes[:-1] >= _FULL)
    gap = np.diff(times)
    full &= gap > 0
    if full.sum() < _FEWEST_GAPS:
        return None, is_behind
    length = sizes[1:][full] + np.where(sizes[1:][full] > 1448, 40, 52) + _FRAMING_BYTES
    logs = np.sort(np.log(8e9 * length / gap[full]))
    inside = np.searchsorted(logs, logs + 0.04) - np.arange(len(logs))
    most = int(inside.argmax())
    if inside[most] < 0.9 * len(logs):
        return None, is_behind
    return float(np.exp(np.median(logs[most : most + inside[most]]))), is_behind


def _is_behind(rows: np.ndarray, payload: np.ndarray) -> bool:
    """Whether acknowledgements of initiators come at once: 95 % within 2 ms of the fastest."""
    order = np.lexsort((rows[:, 0], rows[:, 1]))
    limits = np.flatnonzero(np.diff(rows[order, 1])) + 1
    excess: list[np.ndarray] = []
    for part in np.split(order, limits):
        data = part[(rows[part, 2] == 1) & (payload[part] > 0)]
        acks = part[(rows[part, 2] == 0) & (rows[part, 5] & np.uint64(16) > 0)]
        if len(data) < 2 or not len(acks):
            continue
        base = int(rows[data[0], 3])
        ends = ((rows[data, 3].astype(np.int64) - base) % (1 << 32)) + payload[data]
        numbers = np.maximum.accumulate(
            np.where((got := (rows[acks, 4].astype(np.int64) - base) % (1 << 32)) < 1 << 31, got, 0)
        )
        is_new = np.concatenate(([True], ends[1:] > np.maximum.accumulate(ends)[:-1]))
        place = np.searchsorted(numbers, ends[is_new])
        held = place < len(acks)
        sent = rows[data[is_new][held], 0].astype(np.int64)
        loop = rows[acks[place[held]], 0].astype(np.int64) - sent
        loop = loop[loop >= 0]
        if len(loop):
            excess.append(loop - loop.min())
    if not excess:
        return False
    return bool(np.quantile(np.concatenate(excess), 0.95) < _BEHIND_S * 1e9)
