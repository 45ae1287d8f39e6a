"""The built-in tests of a link: what their own load and probes saw, in numbers."""

from __future__ import annotations

import gzip
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Any

from aqmlab._util.lazy import np
from aqmlab.shell import load

__all__ = ["BuiltIn", "LinkTest", "responsiveness"]

_BEST = 0.95
"""The share of times that RPM counts: the draft discards the worst 5 %."""
_GRACE_S = 30.0
"""What a test may take beyond its span: probes, and what it asks for in the end."""
_FLENT_STEP_S = 0.2


class BuiltIn(str, Enum):
    """A test that needs no program."""

    RPM = "rpm"
    """Responsiveness under load (draft-ietf-ippm-responsiveness), without TLS."""
    RRUL = "rrul"
    """Transfers each way with four code points; datagrams and pings beside them."""


@dataclass(frozen=True)
class LinkTest:
    """A built-in test of some length; its first third, at most 5 s, is not counted."""

    kind: BuiltIn
    seconds: float

    @property
    def warm_up_s(self) -> float:
        """What is not counted."""
        return min(5.0, self.seconds / 3)

    @property
    def longest_s(self) -> float:
        """How long it takes at most."""
        return self.seconds + _GRACE_S

    @contextmanager
    def program(self) -> Iterator[tuple[list[str], Path]]:
        """The words of the program that tests, and the file that it writes."""
        with tempfile.TemporaryDirectory(prefix="aqmlab-") as folder:
            file = Path(folder) / "seen.json"
            times = [str(self.warm_up_s), str(self.seconds)]
            yield [sys.executable, load.__file__, self.kind.value, *times, str(file)], file

    def results(self, file: Path, folder: Path) -> dict[str, Any]:
        """The numbers of what the program saw.

        Args:
            file: what it wrote.
            folder: the run directory; ``rrul`` leaves a file there that Flent reads.
        """
        if not file.is_file():
            return {"kind": self.kind.value, "failed": ["the test did not come to its end"]}
        seen = json.loads(file.read_text(encoding="utf-8"))
        if self.kind is BuiltIn.RRUL:
            _write_flent(folder / "rrul.flent.gz", seen, self.seconds)
        return {"kind": self.kind.value, **self._numbers(seen)}

    def _numbers(self, seen: Mapping[str, Any]) -> dict[str, Any]:
        span = self.seconds - self.warm_up_s
        goodput = {
            name: _rate_bps(samples, self.warm_up_s, self.seconds)
            for name, samples in seen["bulk"].items()
        }
        probes = {name: self._probe(samples) for name, samples in seen["probes"].items()}
        found: dict[str, Any] = {"span_s": span}
        if self.kind is BuiltIn.RPM:
            times = [took for at, took in seen["probes"]["page"] if at >= self.warm_up_s and took]
            found |= {
                "rpm": responsiveness(times, seen["round_trips_s"]),
                "probe_rpm": _per_minute(times, 2),
                "load_rpm": _per_minute(seen["round_trips_s"], 1),
            }
        for way in ("down", "up"):
            rates = [rate for name, rate in goodput.items() if name.startswith(way)]
            found[f"goodput_{way}_bps"] = math.fsum(rates)
        return {**found, "probes": probes, "goodput_bps": goodput, "failed": seen["failed"]}

    def _probe(self, samples: Sequence[tuple[float, float | None]]) -> dict[str, Any]:
        """Percentiles of the probes after the warm-up, and how many were lost."""
        own = [took for at, took in samples if at >= self.warm_up_s]
        times = [took for took in own if took is not None]
        found: dict[str, Any] = {"count": len(own), "lost": len(own) - len(times)}
        for share in (50, 95, 99):
            found[f"p{share}_s"] = float(np.percentile(times, share)) if times else None
        return found


def responsiveness(probes_s: Sequence[float], round_trips_s: Sequence[float]) -> float | None:
    """Round trips per minute under load, without TLS; none if one of the two was not seen.

    Args:
        probes_s: a handshake and an exchange on a connection of its own; the draft takes the mean
            of these two.
        round_trips_s: those of the load's senders.
    """
    foreign, own = _per_minute(probes_s, 2), _per_minute(round_trips_s, 1)
    return None if foreign is None or own is None else (foreign + own) / 2


def _per_minute(times_s: Sequence[float], parts: int) -> float | None:
    """How many of the best times fit into a minute; each is so many round trips."""
    if not times_s:
        return None
    best = np.sort(np.asarray(times_s))
    weights = np.clip(_BEST * len(best) - np.arange(len(best)), 0.0, 1.0)
    mean = float(np.sum(weights * best) / np.sum(weights))
    return 60 * parts / mean if mean > 0 else None


def _rate_bps(samples: Sequence[tuple[float, int]], begin_s: float, end_s: float) -> float:
    """Bits per second between two moments, of bytes that were counted now and then."""
    if len(samples) < 2:
        return 0.0
    times, totals = np.asarray(samples, dtype=float).T
    first, last = np.interp([begin_s, end_s], times, totals)
    return float(8 * (last - first) / (end_s - begin_s))


def _write_flent(path: Path, seen: Mapping[str, Any], seconds: float) -> None:
    """Writes what Flent's plots and tables read (version 4 of its format)."""
    grid = np.arange(0.0, seconds, _FLENT_STEP_S)
    results: dict[str, list[float | None]] = {}
    for name, samples in seen["bulk"].items():
        way, point = name.split()
        rates = [
            _rate_bps(samples, float(at), float(at) + _FLENT_STEP_S) / 1e6
            if samples and at + _FLENT_STEP_S > samples[0][0]
            else None
            for at in grid
        ]
        results[f"TCP {way}load {point}"] = rates
    for name, samples in seen["probes"].items():
        bins: list[list[float]] = [[] for _ in grid]
        for at, took in samples:
            place = int(at / _FLENT_STEP_S)
            if took is not None and place < len(bins):
                bins[place].append(1e3 * took)
        means = [math.fsum(times) / len(times) if times else None for times in bins]
        results[f"Ping (ms) {name}"] = means
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    metadata = {
        "NAME": "rrul",
        "TITLE": "aqmlab shell",
        "TIME": now,
        "T0": now,
        "LENGTH": seconds,
        "TOTAL_LENGTH": seconds,
        "STEP_SIZE": _FLENT_STEP_S,
        "HOST": load.HOST,
        "HOSTS": [load.HOST],
        "DATA_FILENAME": path.name,
        "TEST_PARAMETERS": {},
        "FAILED_RUNNERS": 0,
    }
    content = {
        "version": 4,
        "metadata": metadata,
        "x_values": [round(float(at), 3) for at in grid],
        "results": results,
        "raw_values": {name: [] for name in results},
    }
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        json.dump(content, stream)
