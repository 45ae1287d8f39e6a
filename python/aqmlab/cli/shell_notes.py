"""What makes the numbers of a program behind a queue say something else than they seem to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aqmlab.engine.shell import PROGRAM
from aqmlab.results.metrics import ALL
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

__all__ = ["controls", "idle_users", "notes", "refusals", "trust"]

_FEW_PACKETS = 10
"""A buffer for fewer full packets than these holds no burst of a window of ten (RFC 6928)."""
_PACKET_BYTES = 1500
_UNITS = {"packets": _PACKET_BYTES, "bytes": 1, "kB": 1000, "KiB": 1024, "MB": 10**6, "MiB": 2**20}
_HOST, _TEST, _DNS = "100.64.0.1", "100.64.0.3", "53"
_LOOPBACK = re.compile(r"\b(127\.0\.0\.1|localhost)\b")


def notes(scenarios: Mapping[str, Scenario]) -> Iterator[str]:
    """What is to be known before programs run: buffers that hold hardly anything.

    Args:
        scenarios: what is about to run, by the names of its queues.
    """
    for name, scenario in scenarios.items():
        bottleneck = scenario.data["topology"]["bottleneck"]
        for way, word in (("forward", "download"), ("reverse", "upload")):
            held = _bytes_of(bottleneck[way]["discipline"].get("limit"))
            if held is not None and held < _FEW_PACKETS * _PACKET_BYTES:
                yield (
                    f"note: {name} has room for {held // _PACKET_BYTES} full packets of the "
                    f"{word}: it loses bursts, and packets never wait long; --buffer '250 ms' is "
                    "that of a home router"
                )


def _bytes_of(limit: object) -> int | None:
    """The bytes that a limit such as ``5 packets`` or ``7500 bytes`` has room for."""
    match = re.fullmatch(r"([0-9.]+) *([A-Za-z]+)", str(limit))
    if match is None or match[2] not in _UNITS:
        return None
    return round(float(match[1]) * _UNITS[match[2]])


def controls(run: Run) -> tuple[str, str]:
    """The congestion control of the program's downloads, and of its uploads."""
    found = run.summary["live"]["program"]["controls"]
    return found["forward"], found["reverse"]


def idle_users(run: Run) -> list[str]:
    """The classes beside the program that moved nothing while it ran."""
    return [
        name
        for name, flows in run.summary["flows"].items()
        if name not in (PROGRAM, ALL)
        and not flows["goodput_bps"]
        and not flows["datagrams_sent"]
        and not run.summary["responses"][name]["count"]
    ]


def trust(run: Run) -> str:
    """Whether a run is valid: why it is not, and what was missing beside the program."""
    if run.invalid:
        return f"INVALID: {'; '.join(run.invalid)}"
    if idle := idle_users(run):
        return f"valid, but {' and '.join(idle)} beside the program moved nothing"
    return "valid"


def refusals(run: Run, words: Sequence[str]) -> list[str]:
    """A line for each place that the program asked for in vain, with the way out.

    Args:
        run: its run.
        words: the program and its arguments.
    """
    found = run.summary["live"]["program"]["not_reached"]
    lines = [_refusal(entry) for entry in found[:5]]
    if len(found) > len(lines):
        lines.append(f"{len(found) - len(lines)} more places")
    if not found and _is_silent(run) and (match := _LOOPBACK.search(" ".join(words))):
        lines.append(
            f"nothing crossed the link: {match[1]} is the program's own; --net host reaches this "
            "machine's servers as host.aqmlab"
        )
    head = ["refused", *[""] * len(lines)]
    return [f"  {word:<8} {line}" for word, line in zip(head, lines, strict=False)]


def _is_silent(run: Run) -> bool:
    """Whether the program sent nothing over the link."""
    flows = run.summary["flows"][PROGRAM]
    return not (flows["count"] or flows["still_open"] or flows["upload_goodput_bps"])


def _refusal(entry: Mapping[str, Any]) -> str:
    """A place that was not reached, how often, and what would reach it."""
    address, _, port = entry["place"].partition(":")
    place = {_HOST: "host.aqmlab", _TEST: "test.aqmlab"}.get(address, address)
    text = f"{place}:{port}" + ("" if entry["is_tcp"] else " (UDP)")
    if entry["count"] > 1:
        text += f", {entry['count']} times"
    if address == _HOST and port == _DNS:
        return f"{text}: names are asked there; --net all asks this machine's name server"
    if entry["needs"] == "host":
        what = f"this machine's port {port}" if address == _HOST else "private networks"
        return f"{text}: --net host reaches {what}"
    if entry["needs"] == "all":
        return f"{text}: --net all reaches public addresses"
    return f"{text}: {'nothing listens there' if entry['refused'] else 'no answer'}"
