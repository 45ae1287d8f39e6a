"""How large ``packets.parquet`` becomes, before a run is made.

The estimate takes the links as full of packets of 1000 bytes, each with an ACK the other way. Bulk
transfers have half as many: their packets have 1500 bytes, and an ACK answers two.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from aqmlab import _native
from aqmlab.errors import AqmlabError
from aqmlab.scenario.quantities import parsed_time
from aqmlab.scenario.scenario import Scenario

__all__ = ["Size", "check", "estimate"]


_PACKET_BITS = 1000 * 8
_WITH_ACKS = 2.0
"""Packets for each that carries data."""
_ROW_BYTES = 15
"""A row as it is written, measured."""
_LIMIT_BYTES = 2_000_000_000
"""The largest file."""
_UNITS = {"bytes": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}


@dataclass(frozen=True)
class Size:
    """About how many rows some tables of packets have."""

    rows: float

    @property
    def bytes(self) -> float:
        """How large they are on disk."""
        return self.rows * _ROW_BYTES

    def __str__(self) -> str:
        """In words."""
        return f"at most about {_number(self.rows)} rows, {_size(self.bytes)}"


def _number(value: float) -> str:
    """A number in words."""
    if value >= 1e6:
        return f"{value / 1e6:,.1f} million"
    return f"{float(f'{value:.2g}'):,.0f}"


def _size(value: float) -> str:
    """Bytes in the largest unit of which there is one."""
    unit = next((unit for unit in ("GB", "MB", "kB") if value >= _UNITS[unit]), "bytes")
    return f"{value / _UNITS[unit]:.3g} {unit}"


def estimate(scenario: Scenario) -> Size | None:
    """The size of a run's table at full links; None: it has none."""
    measure = scenario.data["measure"]
    if "packets" not in measure["record"]:
        return None
    rates = {
        (link, way): rate
        for index in range(len(scenario.data["traffic"]))
        for link, way, rate in _native.loaded_links(scenario.effective, index)
    }
    # The slowest link of a path bounds what crosses the others.
    topology = scenario.data["topology"]
    links = topology.get("links") or ["bottleneck"]
    load = min(1.0, scenario.offered_load or 1.0)
    bits = len(links) * sum(rates.values())
    seconds = parsed_time(measure["duration"])
    return Size(load * bits * seconds / _PACKET_BITS * _WITH_ACKS)


def check(scenarios: Iterable[Scenario], folder: Path) -> Size | None:
    """The size of all tables together; an error if one is too large, or if the disk is too full.

    Args:
        scenarios: what is to be run.
        folder: where the runs go, or a folder that will be made.
    """
    rows = 0.0
    for scenario in scenarios:
        if (size := estimate(scenario)) is None:
            continue
        if size.bytes > _LIMIT_BYTES:
            raise AqmlabError(
                f"measure.record: packets.parquet has {size}, and its limit is "
                f"{_size(_LIMIT_BYTES)}; shorten measure.duration"
            )
        rows += size.rows
    if not rows:
        return None
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if
                 place.exists())  # fmt: skip
    free = shutil.disk_usage(there).free
    if rows * _ROW_BYTES > free:
        raise AqmlabError(
            f"measure.record: the tables of packets have {Size(rows)}, and {there} has "
            f"{_size(free)} left; shorten measure.duration"
        )
    return Size(rows)
