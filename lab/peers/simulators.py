"""Programs of ours for other simulators: how they are called, and what they print."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from aqmlab.errors import RunError

__all__ = ["called", "parsed", "plain"]


_UNITS = (
    {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
    | {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
    | {"bytes": 1, "kB": 1e3, "MB": 1e6, "MiB": 2**20, "packets": 1, "/s": 1}
)
_COUNTS = {"goodput_bps", "arrived_packets", "dropped_packets", "queue_mean_packets"}
"""The numbers that a program prints; beside them its simulator's version, if that knows it."""


def plain(quantity: str) -> float:
    """A quantity of a scenario in seconds, bits per second, bytes, packets or 1/s."""
    number, _, unit = quantity.partition(" ")
    return float(number) * _UNITS[unit]


def called(simulator: str, command: Sequence[str | Path], what: str, limit_s: float = 3600) -> str:
    """What a program prints for a scenario, whose name is `what`, within a time."""
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{simulator}: {what} took more than {limit_s} s") from None
    if process.returncode != 0:
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"{simulator}: {what} ended with status {process.returncode}: {last}")
    return process.stdout


def parsed(simulator: str, printed: str) -> tuple[dict[str, float], str]:
    """The numbers, by metric, and the simulator's version, from lines "name value"."""
    lines = dict(line.split(maxsplit=1) for line in printed.splitlines() if " " in line)
    version = lines.pop("version", "")
    try:
        counts = {name: float(lines[name]) for name in _COUNTS}
    except (KeyError, ValueError) as error:
        wanted = ", ".join(sorted(_COUNTS))
        raise RunError(f"{simulator}: must print {wanted}; found {printed!r}") from error
    arrived = counts["arrived_packets"]
    if arrived == 0:
        raise RunError(f"{simulator}: no packet came to the queue")
    return {
        "goodput": counts["goodput_bps"],
        "loss": counts["dropped_packets"] / arrived,
        "queue": counts["queue_mean_packets"],
    }, version
