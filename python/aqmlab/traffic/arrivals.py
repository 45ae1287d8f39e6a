"""How the packets of a capture arrive: rates, and how long they remember."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab import _native
from aqmlab._util.files import size_of
from aqmlab._util.table import TableModel
from aqmlab.errors import AqmlabError
from aqmlab.figures.grammar import Chart, concat
from aqmlab.figures.theme import Look, configured
from aqmlab.traffic.capture_files import unpacked
from aqmlab.traffic.describe import BIN_S, Memory, memory
from aqmlab.traffic.views import COLUMNS, logscale

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = [
    "DirectionArrivals",
    "InterfaceArrivals",
    "arrivals",
    "arrivals_figure",
    "arrivals_table",
    "ways",
    "ways_table",
]


_FROM_S = 1.0
"""The Hurst parameter is read off the scales above: longer than round trips."""


@dataclass(frozen=True)
class InterfaceArrivals:
    """What arrived at an interface of a capture (a direction of a simulated link)."""

    capture: str
    interface: int
    bin_s: float
    """Width of the bins."""
    packets: np.ndarray
    """Packets in each bin, from the first packet of the capture on."""
    bytes: np.ndarray
    """Their bytes on the wire, as the capture states them."""

    @property
    def seconds(self) -> float:
        """How long the capture is."""
        return len(self.packets) * self.bin_s

    @cached_property
    def memories(self) -> list[Memory]:
        """Logscale diagrams of packets and of bytes."""
        series = (("packets", self.packets), ("bytes", self.bytes))
        return [memory(name, values, self.bin_s, _FROM_S) for name, values in series]

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "capture": self.capture,
            "interface": self.interface,
            "captured_s": self.seconds,
            "bin_s": self.bin_s,
            "packets": int(self.packets.sum()),
            "bytes": int(self.bytes.sum()),
            "memory": {memory.name: memory.to_json() for memory in self.memories},
        }


@dataclass(frozen=True)
class DirectionArrivals:
    """What passed in one direction of the link."""

    name: str
    packets: int
    octets: int
    busiest_bps: float
    """In the busiest second."""


_WAYS = ("towards home", "away from home", "of neither side")
_SECOND_S = 1.0


def ways(capture: Path) -> tuple[list[DirectionArrivals], dict[str, Any]]:
    """What passed in each direction, and what was put right in the capture."""
    with unpacked(capture) as plain:
        width, series, notes = _native.capture_arrivals(str(plain), _SECOND_S, True, None)
    found = []
    for name, columns in zip(_WAYS, series, strict=False):
        packets, octets = (np.frombuffer(column, "<f8") for column in columns)
        if packets.sum():
            busiest = 8 * float(octets.max()) / width
            found.append(DirectionArrivals(name, int(packets.sum()), int(octets.sum()), busiest))
    return found, json.loads(notes)


def ways_table(found: list[DirectionArrivals], notes: Mapping[str, Any]) -> TableModel:
    """The directions of the link, for a terminal."""
    shown = notes["sides_by"] or "who opens connections"
    table = TableModel(f"both directions of the link: home is known by {shown}")
    table.add_key("direction")
    for name in ("packets", "bytes", "busiest second, Mbit/s"):
        table.add_number(name)
    for one in found:
        busiest = f"{1e-6 * one.busiest_bps:.4g}"
        table.add_row(one.name, f"{one.packets:,}", f"{one.octets:,}", busiest)
    return table


def arrivals(
    capture: Path, bin_s: float = BIN_S, progress: Callable[[float], object] | None = None
) -> list[InterfaceArrivals]:
    """Packets and bytes over time at every interface of a capture (pcap or pcapng).

    `progress` is called with the share that is done.

    Raises:
        AqmlabError: it is no capture, or holds no packet.
    """
    size = size_of(capture, "capture")

    def on_progress(done: int) -> None:
        if progress and size:
            progress(min(done / size, 1.0))

    with unpacked(capture) as plain:
        width, interfaces, _ = _native.capture_arrivals(str(plain), bin_s, False, on_progress)
    if not interfaces:
        raise AqmlabError(f"{capture}: holds no packet; capture for longer, or without a filter")
    columns = [[np.frombuffer(column, "<f8") for column in columns] for columns in interfaces]
    return [
        InterfaceArrivals(capture.name, number, width, packets, octets)
        for number, (packets, octets) in enumerate(columns)
    ]


def arrivals_table(found: list[InterfaceArrivals]) -> TableModel:
    """The interfaces of a capture, for a terminal."""
    table = TableModel(found[0].capture if found else "")
    table.add_key("interface", is_number=True)
    for name in ("seconds", "packets", "packets/s", "Mbit/s", "Hurst: packets", "Hurst: bytes"):
        table.add_number(name)
    for one in found:
        packets, octets = float(one.packets.sum()), float(one.bytes.sum())
        table.add_row(
            str(one.interface),
            f"{one.seconds:,.1f}",
            f"{packets:,.0f}",
            # What passes within one bin has no rate.
            f"{packets / one.seconds:,.1f}" if len(one.packets) > 1 else "",
            f"{8e-6 * octets / one.seconds:.4g}" if len(one.packets) > 1 else "",
            *(_hurst(memory) for memory in one.memories),
        )
    return table


def _hurst(memory: Memory) -> str:
    """An estimate with two standard errors; nothing where there are too few scales."""
    if memory.hurst is None:
        return ""
    return f"{memory.hurst:.2f} ± {2 * (memory.standard_error or 0):.2f}"


def arrivals_figure(found: list[InterfaceArrivals]) -> Chart:
    """A logscale diagram for each interface."""
    views: list[Chart] = [
        logscale(one.memories).properties(title=f"{one.capture}, interface {one.interface}")
        for one in found
    ]
    drawn = concat(*views, columns=COLUMNS).scales(color="independent")
    return configured(drawn, Look())
