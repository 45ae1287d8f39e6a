"""What makes the numbers of a program behind a queue say something else than they seem to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aqmlab.results.metrics import ALL
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario
from aqmlab.shell.link import PROGRAM

__all__ = ["controls", "idle_users", "notes", "refusals", "trust", "ways_out"]

_FEW_PACKETS = 10
"""A buffer for fewer full packets than these holds no burst of a window of ten (RFC 6928)."""
_PACKET_BYTES = 1500
_UNITS = {"packets": _PACKET_BYTES, "bytes": 1, "kB": 1000, "KiB": 1024, "MB": 10**6, "MiB": 2**20}
_HOST, _TEST, _DNS = "100.64.0.1", "100.64.0.3", "53"
_SHORT_S = 5.0
"""A run of less has few packets, so that one pause of the machine makes it invalid."""
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


def ways_out(runs: Sequence[Run]) -> list[str]:
    """What to do about runs that are not valid; nothing if all are."""
    wrong = [run for run in runs if run.invalid]
    if not wrong:
        return []
    lines = ["--repeat 3, or more, runs it again: a table has the means of valid runs"]
    if any(run.summary["live"]["program"]["time_s"] < _SHORT_S for run in wrong):
        lines.append("in a short run a few late packets decide: a longer program helps")
    if any("Too many open files" in reason for run in wrong for reason in run.invalid):
        lines.append("each connection takes files here: a higher ulimit -Hn -Sn lets more in")
    return lines


def refusals(run: Run, words: Sequence[str]) -> list[str]:
    """A line for each place that the program asked for in vain, with the way out.

    Args:
        run: its run.
        words: the program and its arguments.
    """
    found = run.summary["live"]["program"]["not_reached"]
    places = [entry for entry in found if not _asks_names(entry)]
    lines = [_refusal(entry) for entry in places[:5]]
    if len(places) > len(lines):
        lines.append(f"{len(places) - len(lines)} more places")
    if not found and _is_silent(run) and (match := _LOOPBACK.search(" ".join(words))):
        lines.append(
            f"nothing crossed the link: {match[1]} is the program's own; --net host reaches this "
            "machine's servers as host.aqmlab"
        )
    heads = ["refused", *[""] * len(lines)]
    lines = [f"  {word:<8} {line}" for word, line in zip(heads, lines, strict=False)]
    return lines + [f"  {'names':<8} {_unanswered(entry)}" for entry in found if _asks_names(entry)]


def _asks_names(entry: Mapping[str, Any]) -> bool:
    """Whether it is the link's end that was asked for the address of a name."""
    return bool(entry["place"] == f"{_HOST}:{_DNS}")


def _unanswered(entry: Mapping[str, Any]) -> str:
    """What became of questions for names: a program that knows its addresses needs no answer."""
    many = "1 name look-up" if entry["count"] == 1 else f"{entry['count']} name look-ups"
    return f"{many} got no answer; if the program needs names, use --net all"


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
    if entry["needs"] == "host":
        what = f"this machine's port {port}" if address == _HOST else "private networks"
        return f"{text}: --net host reaches {what}"
    if entry["needs"] == "all":
        return f"{text}: --net all reaches public addresses"
    return f"{text}: {'nothing listens there' if entry['refused'] else 'no answer'}"
