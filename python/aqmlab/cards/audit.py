"""Whom a queue drops: every packet of a few short runs of the candidate alone.

Other tests compare sums. These runs record each packet, so a loss has a cause: the size of the
packet, its place in the flow, the rate of the flow, the time, the rate of the link. Three
links have a light load, where a queue has nothing to drop. One is full, and one is full for long.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aqmlab.cards.generator import SuiteCell, cells
from aqmlab.cards.packet_kinds import LIGHT, LOAD, LONG
from aqmlab.cards.suites import Row
from aqmlab.results.run import Run
from aqmlab.scenario.quantities import parsed_rate

__all__ = ["AREA", "WORDS", "asked", "taken"]


AREA = "audit"

_MS, _S = 1_000_000, 1_000_000_000
_WINDOW = 100 * _MS
_FEWEST = 20
"""Packets of a window, or of a flow, that are looked at alone."""
_STILL = 0.1
"""A window in which less of the link than this is used has next to nothing."""
_LONGER, _LONGER_NS = 3.0, 20 * _MS
"""A packet is held back if it waits so many times the median of its time, and so much longer."""

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]


# --- runs ---


def _light(rate: str, part: float, duration: str, further: str = "") -> Row:
    sizes = "; ".join(
        f"3 cbr, name=of-{size}, rate={part * 80:g} kbit/s, packet={size} bytes, gaps=exponential"
        for size in (60, 200, 500, 900, 1400)
    )
    return Row(
        id=next(name for name, text in LIGHT.items() if text == rate),
        section="-",
        scenario=f"a light load of {rate}",
        area=AREA,
        rate=rate,
        rtt="40 ms",
        buffer="225000 bytes",
        traffic=(
            f"{sizes}; 3 cbr, name=ect, rate={part * 80:g} kbit/s, packet=500 bytes, "
            f"gaps=exponential, ect=ect0; 3 cbr, name=dscp, rate={part * 80:g} kbit/s, "
            f"packet=500 bytes, gaps=exponential, dscp=46; - probes, rate=20 /s{further}"
        ),
        ecn="yes",
        aqm="both",
        warm_up="1 s",
        duration=duration,
    )


_ROWS = (
    _light("2 Mbit/s", 0.2, "149 s"),
    _light("12 Mbit/s", 1.0, "29 s", "; - objects, rate=1 /s"),
    _light("100 Mbit/s", 8.0, "7 s", "; - objects, rate=8 /s"),
    Row(
        id=LOAD,
        section="-",
        scenario="kinds of packets on a full link",
        area=AREA,
        rate="12 Mbit/s",
        rtt="40 ms",
        buffer="225000 bytes",
        traffic=(
            "3 cubic, name=down; 3 cubic, name=up, direction=reverse; "
            "3 cbr, name=small, rate=56 kbit/s, packet=60 bytes, gaps=exponential; "
            "3 cbr, name=large, rate=56 kbit/s, packet=1400 bytes, gaps=exponential; "
            "- probes, rate=20 /s; - objects, rate=4 /s"
        ),
        aqm="both",
        warm_up="5 s",
        duration="40 s",
    ),
    Row(
        id=LONG,
        section="-",
        scenario="two minutes of one load",
        area=AREA,
        rate="12 Mbit/s",
        rtt="40 ms",
        buffer="225000 bytes",
        traffic="12 cubic, name=down",
        warm_up="10 s",
        duration="120 s",
    ),
)


WORDS = (AREA, *(row.id for row in _ROWS))
"""What asks for these runs: all of them, or one."""


def asked(only: Sequence[str] = ()) -> list[SuiteCell]:
    """The runs that are asked for, without a word all; each has one seed and records packets."""
    wanted = [row for row in _ROWS if not only or AREA in only or row.id in only]
    return [cell for row in wanted for cell in cells(row)]


# --- numbers ---


class _Packets:
    """The packets that reached the bottleneck, by arrival, as arrays."""

    def __init__(self, table: pa.Table) -> None:
        self._table = rows = table.sort_by("arrive_ns")
        self.arrived: Whole = _whole(rows, "arrive_ns")
        self.waited: Floats = rows["wait_ns"].cast(pa.float64()).fill_null(math.nan).to_numpy()
        self.size, self.number = _whole(rows, "size_bytes"), _whole(rows, "number")
        self.again: Flags = rows["again"].to_numpy()
        self.forward: Flags = self.among("direction", "forward")
        self.dropped: Flags = ~self.among("outcome", "left", "marked", "wire", "waiting")
        # A flow of the queue is one direction of a connection.
        self.flow: Whole = 2 * _whole(rows, "flow") + self.forward

    def among(self, column: str, *texts: str) -> Flags:
        """Which packets have one of these texts in a column."""
        found: Flags = pc.is_in(
            self._table[column].cast(pa.string()), value_set=pa.array(texts)
        ).to_numpy()
        return found

    def __len__(self) -> int:
        return len(self.arrived)


def _whole(table: pa.Table, column: str) -> Whole:
    found: Whole = table[column].to_numpy().astype(np.int64)
    return found


def taken(run: Run, test: str) -> dict[str, float]:
    """The numbers behind the findings, of a run of this module.

    ``GROUP sent`` and ``GROUP lost`` count packets of a kind, without a group all packets.
    """
    if run.packets is None or not run.packets.num_rows:
        return {}
    packets = _Packets(run.packets)
    if test == LONG:
        return {**dict(_thirds(run, packets)), "smallest share": _smallest(packets, "down")}
    found = dict(_groups(packets))
    found["out of order"], found["left"] = _order(packets)
    if test == LOAD:
        found |= dict(_classes(packets))
        found |= dict(_waits(packets))
        shares = [_smallest(packets, name) for name in ("down", "up", "small", "large")]
        found["smallest share"] = min(shares)
    else:
        ect = packets.among("class", "ect")
        found["ect arrived"] = float(ect.sum())
        found["ect marked"] = float((ect & (packets.among("outcome", "marked"))).sum())
    return found


def _groups(packets: _Packets) -> Iterator[tuple[str, float]]:
    yield "sent", float(len(packets))
    yield "lost", float(packets.dropped.sum())
    for name, chosen in _chosen(packets):
        yield f"{name} sent", float(chosen.sum())
        yield f"{name} lost", float((chosen & packets.dropped).sum())
    yield "unlike flows", _dispersion(packets, packets.flow)
    yield "unlike times", _dispersion(packets, packets.arrived // _WINDOW)


def _chosen(packets: _Packets) -> Iterator[tuple[str, Flags]]:
    """Which packets belong to each group."""
    size, number = packets.size, packets.number
    yield "at most 100 bytes", size <= 100
    yield "101 to 300 bytes", (size > 100) & (size <= 300)
    yield "301 to 1200 bytes", (size > 300) & (size <= 1200)
    yield "more than 100 bytes", size > 100
    yield "more than 300 bytes", size > 300
    yield "more than 1200 bytes", size > 1200
    yield "ACKs", packets.among("kind", "ack")
    yield "first", number == 0
    yield "young", (number >= 1) & (number <= 9)
    yield "old", number >= 400
    slow, brief, fast = _rates(packets)
    yield "slow", slow
    yield "brief", brief
    yield "fast", fast
    yield "bursts", _since_own(packets, 1) < 2 * _MS
    yield "long bursts", _since_own(packets, 3) < 10 * _MS
    yield "after idle", _since_any(packets) > 10 * _MS
    yield "may be marked", ~packets.among("ecn", "not-ect")
    yield "not ECT", packets.among("ecn", "not-ect")
    yield "DSCP", packets.among("class", "dscp")
    yield "sent again", packets.again
    start = packets.arrived[0]
    yield "early", packets.arrived < start + 5 * _S
    yield "later", packets.arrived > start + 30 * _S
    yield "late", packets.arrived > (start + packets.arrived[-1]) // 2
    yield "pauses", _paused(packets)


def _rates(packets: _Packets) -> tuple[Flags, Flags, Flags]:
    """Packets of slow, of slow or brief, and of fast flows."""
    _, index, counts = np.unique(packets.flow, return_inverse=True, return_counts=True)
    first = np.full(len(counts), np.iinfo(np.int64).max)
    last = np.zeros(len(counts), dtype=np.int64)
    np.minimum.at(first, index, packets.arrived)
    np.maximum.at(last, index, packets.arrived)
    lasts = last - first
    rates = np.where(lasts > 5 * _S, counts * _S / np.maximum(lasts, 1), math.nan)
    whole = max(int(packets.arrived[-1] - packets.arrived[0]), 1)
    return rates[index] < 30, (counts * _S / whole)[index] < 30, rates[index] > 100


def _since_own(packets: _Packets, before: int) -> Whole:
    """The time since so many packets before it in its flow; very long for the first ones."""
    order = np.lexsort((packets.arrived, packets.flow))
    found = np.full(len(packets), np.iinfo(np.int64).max)
    flows, arrived = packets.flow[order], packets.arrived[order]
    same = flows[before:] == flows[:-before]
    found[order[before:][same]] = (arrived[before:] - arrived[:-before])[same]
    return found


def _since_any(packets: _Packets) -> Whole:
    """The time since the packet before it in its direction."""
    found = np.zeros(len(packets), dtype=np.int64)
    for way in (packets.forward, ~packets.forward):
        found[way] = np.diff(packets.arrived[way], prepend=packets.arrived[way][:1])
    return found


def _paused(packets: _Packets) -> Flags:
    """Packets in windows of 100 ms in which all packets of a direction are dropped."""
    window = 2 * (packets.arrived // _WINDOW) + packets.forward
    _, index, counts = np.unique(window, return_inverse=True, return_counts=True)
    lost = np.bincount(index, packets.dropped)
    found: Flags = ((lost >= 0.9 * counts) & (counts >= 5))[index]
    return found


def _dispersion(packets: _Packets, parts: Whole) -> float:
    """How unlike the losses of parts are: near 1 if each packet is dropped with one chance."""
    _, index, counts = np.unique(parts, return_inverse=True, return_counts=True)
    lost = np.bincount(index, packets.dropped)
    many = counts >= _FEWEST
    if many.sum() < 2 or not lost[many].sum():
        return 0.0
    share = lost[many].sum() / counts[many].sum()
    expected = share * counts[many]
    terms = (lost[many] - expected) ** 2 / (expected * max(1 - share, 1e-9))
    return float(terms.sum() / (many.sum() - 1))


def _order(packets: _Packets) -> tuple[float, float]:
    """Packets that leave after one of their flow that came later, and packets that leave."""
    left = ~np.isnan(packets.waited)
    arrived, flow = packets.arrived[left], packets.flow[left]
    gone = arrived + packets.waited[left].astype(np.int64)
    order = np.lexsort((np.arange(len(arrived)), flow))
    gone, flow = gone[order], flow[order]
    passed = 0
    starts = np.flatnonzero(np.diff(flow, prepend=flow[:1] - 1)).tolist()
    for begin, end in itertools.pairwise([*starts, len(flow)]):
        own = gone[begin:end]
        # A later packet of the flow left before: the least time behind is below its own.
        least = np.minimum.accumulate(own[::-1])[::-1]
        passed += int((least[1:] < own[:-1]).sum())
    return float(passed), float(len(gone))


def _classes(packets: _Packets) -> Iterator[tuple[str, float]]:
    """Kinds whose losses can be compared on a full link."""
    data = packets.among("kind", "data")
    bulk = packets.among("class", "down", "up")
    objects = packets.among("class", "objects") & data & (packets.size > 1000) & ~packets.again
    found: dict[str, Flags] = {
        "bulk ACKs": bulk & (packets.among("kind", "ack")),
        "bulk data": bulk & data,
        "small stream": packets.among("class", "small"),
        "first ten": objects & (packets.number < 10),
        "next ten": objects & (packets.number >= 10) & (packets.number < 22),
    }
    for name, chosen in found.items():
        yield f"{name} sent", float(chosen.sum())
        yield f"{name} lost", float((chosen & packets.dropped).sum())


def _waits(packets: _Packets) -> Iterator[tuple[str, float]]:
    """Mean waits of kinds, and how many small packets are held back behind their like."""
    left = ~np.isnan(packets.waited) & packets.forward
    kinds: dict[str, Flags] = {
        "small stream": packets.among("class", "small"),
        "large stream": packets.among("class", "large"),
        "new flows": packets.among("class", "probes", "objects"),
        "bulk data": packets.among("class", "down"),
    }
    for name, chosen in kinds.items():
        if (chosen & left).any():
            yield f"{name} wait", _typical(packets, chosen & left)
    chosen = left & packets.among("class", "probes")
    waits, window = packets.waited[chosen], packets.arrived[chosen] // (5 * _WINDOW)
    order = np.argsort(window, kind="stable")
    parts = np.split(waits[order], np.flatnonzero(np.diff(window[order])) + 1)
    held = sum(
        int((part > _LONGER * np.median(part) + _LONGER_NS).sum()) for part in parts if len(part)
    )
    yield "probes left", float(len(waits))
    yield "probes held back", float(held)


def _typical(packets: _Packets, chosen: Flags) -> float:
    """The median over flows of their mean waits, in seconds: few flows share a queue by chance."""
    _, index, counts = np.unique(packets.flow[chosen], return_inverse=True, return_counts=True)
    return float(np.median(np.bincount(index, packets.waited[chosen]) / counts)) / _S


def _smallest(packets: _Packets, name: str) -> float:
    """What the flow of a class that gets least passes on, as a share of the mean of the class.

    The second half alone: what happens at the beginning is no matter of shares.
    """
    late = packets.arrived > (packets.arrived[0] + packets.arrived[-1]) // 2
    data = packets.among("class", name) & packets.among("kind", "data")
    _, index = np.unique(packets.flow[data], return_inverse=True)
    passed = data & late & ~np.isnan(packets.waited)
    bits = np.bincount(index, (packets.size * passed)[data])
    return float(bits.min() / bits.mean()) if bits.any() else 1.0


def _thirds(run: Run, packets: _Packets) -> Iterator[tuple[str, float]]:
    """How much of the link is used, and how much is dropped, in each third of the run."""
    rate = parsed_rate(run.scenario["topology"]["bottleneck"]["forward"]["rate"])
    end = packets.arrived[-1]
    begin = 10 * _S
    edges = np.linspace(begin, end, 4)
    passed = packets.forward & ~packets.dropped & (packets.arrived >= begin)
    windows = np.bincount((packets.arrived[passed] - begin) // _WINDOW, 8 * packets.size[passed])
    yield "still", float((windows < _STILL * rate * _WINDOW / _S).mean()) if len(windows) else 1.0
    for name, low, high in zip(("first", "middle", "last"), edges[:-1], edges[1:], strict=True):
        inside = packets.forward & (packets.arrived >= low) & (packets.arrived < high)
        bits = 8 * packets.size[inside & ~packets.dropped].sum()
        yield f"{name} used", float(bits / (rate * (high - low) / _S))
        yield f"{name} sent", float(inside.sum())
        yield f"{name} lost", float((inside & packets.dropped).sum())
