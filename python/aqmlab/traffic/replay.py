"""From a capture to a scenario in which its applications meet another queue.

The connections of the capture become connection vectors (:mod:`aqmlab.traffic.captures`). What a
capture cannot say, the link's rate and its buffer, is assumed, and every assumption is printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab._util.files import write_text
from aqmlab._util.words import counted
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario.quantities import FRAME_BITS, loads_text, rate_text, rounded, time_text
from aqmlab.scenario.scenario import Scenario, inline
from aqmlab.traffic.capture_files import notes_in_words, unpacked
from aqmlab.traffic.captures import from_capture
from aqmlab.traffic.describe import example
from aqmlab.traffic.rates import Arrivals, PassedShares, rates, shares
from aqmlab.traffic.segments import read_segments
from aqmlab.traffic.tapped import read_exchanges
from aqmlab.traffic.uploads import part_uploads

__all__ = ["Replay", "refuse_unknown", "replay", "sized"]


_BUFFER_S = 0.1
"""The buffer holds so much at the faster rate."""
_LEAST_BUFFER = 20
"""Packets: two initial windows of ten."""
_WARM_UP = 0.1
"""Share of the capture that is replayed and not counted."""


@dataclass(frozen=True)
class Replay:
    """A capture as a scenario, and how it came about."""

    file: Path
    """The scenario, beside the connection vectors that it names."""
    disciplines: tuple[str, ...]
    """Queue disciplines as values of ``topology.bottleneck.discipline``."""
    assumed: tuple[str, ...]
    """What the capture does not say, in sentences."""
    left_out: tuple[str, ...]
    """What of the capture is not replayed, with its number."""
    notes: tuple[str, ...] = ()
    """What was put right in the capture before it was read."""
    rates_bps: tuple[float, float] = (0.0, 0.0)
    """Of the link: down and up."""
    present: str = "droptail"
    """The present queue as a value of ``topology.bottleneck.discipline``."""


def replay(
    capture: Path,
    folder: Path,
    disciplines: Sequence[str],
    *,
    rates_bps: tuple[float, float] | None = None,
    rtt_s: float | None = None,
    present: str = "droptail",
    progress: Callable[[float], object] | None = None,
) -> Replay:
    """Writes a scenario that replays a capture, and the connection vectors that it needs.

    Args:
        capture: pcap or pcapng.
        folder: where the two files go, under the capture's name.
        disciplines: presets, tables, or ``droptail`` and ``red``, which are sized for the link.
        rates_bps: the way home, and the other; None: what the capture shows of them.
        rtt_s: round-trip time of every connection; None: as each had it in the capture.
        present: the queue that was there.
        progress: called with the share of the capture that has been read.
    """
    refuse_unknown(disciplines, "--discipline")
    refuse_unknown([present], "--present")
    stem = capture.stem or capture.name
    vectors, outside = folder / f"{stem}.cvec", folder / f"{stem}-outside.cvec"
    uploads = folder / f"{stem}-uploads.cvec"
    report = from_capture(capture, vectors, outside=outside, progress=progress)
    made = report["connections"]["made"]
    seconds = max(report["packets"]["duration_s"], 1.0)
    try:
        _refuse_long(capture, seconds)
        with unpacked(capture) as plain:
            segments = read_segments(plain)
            arrivals = Arrivals.read(plain, segments)
            found_rates = None if rates_bps else rates(plain, segments, arrivals)
            passed = shares(segments, arrivals)
    except AqmlabError:
        vectors.unlink(missing_ok=True)
        outside.unlink(missing_ok=True)
        raise
    opened_outside = report["connections"]["opened_outside"]
    assumed = [
        "connections are opened from the clients: forward is the way of the acceptors' bytes"
        if report["packets"]["sides_by"] is None
        else f"forward is the way home, as {_SIDES[report['packets']['sides_by']]}; "
        f"{opened_outside:,} of {made:,} connections are opened from beyond the link",
        "both ends run TCP as Linux does, with the windows of the capture",
    ]
    if found_rates is not None:
        down, up = found_rates
        rates_bps = (down.bps, up.bps)
        assumed.append(
            f"the link has {rate_text(down.bps)} down ({down.why}) and {rate_text(up.bps)} up "
            f"({up.why}); --rate says it better"
        )
    assert rates_bps is not None
    if 1 - passed.judged >= _WORTH:
        assumed.append("what is not TCP is replayed at its mean rate and answers nothing")
    if rtt_s is None:
        without = made - report["vectors"]["with_rtt"]
        fallback = f"; 100 ms for {without:,} that show none" if without else ""
        assumed.append(f"round-trip times are those of the capture, without its queues{fallback}")
    buffer = max(_LEAST_BUFFER, math.ceil(max(rates_bps) * _BUFFER_S / FRAME_BITS))
    assumed += _sizes(disciplines, buffer)
    chosen = tuple(sized(name, buffer) for name in disciplines)
    classes = [] if opened_outside == made else list(_own_classes(vectors, uploads, assumed))
    if opened_outside:
        classes.append(("opened-from-outside", outside.name, "reverse"))
    text = _scenario_text(capture.name, classes, seconds, rates_bps, rtt_s, chosen[0])
    text += "".join(_background(passed))
    Scenario.from_toml(text, folder=folder)  # what is written is right
    file = folder / f"{stem}.toml"
    write_text(file, text)
    notes = [*notes_in_words(report["packets"]), _load(passed)]
    if any(name == "uploads" for name, _, _ in classes):
        notes += _own_times(capture)
    left_out = tuple(_left_out(report))
    now = sized(present, buffer)
    return Replay(file, chosen, tuple(assumed), left_out, tuple(notes), rates_bps, now)


def _own_classes(
    vectors: Path, uploads: Path, assumed: list[str]
) -> Iterator[tuple[str, str, str]]:
    """Classes of what home opened: name, file and direction."""
    stay, moved = part_uploads(vectors, uploads)
    if stay:
        yield "capture", vectors.name, "forward"
    if moved:
        yield "uploads", uploads.name, "reverse"
        assumed.append(
            f"{moved:,} uploads that only ACKs answer are replayed as responses of hosts at home: "
            "their times count from the SYN to the last byte"
        )


def _sizes(disciplines: Sequence[str], buffer: int) -> Iterator[str]:
    """How queues are sized that need a size."""
    if chosen := [name for name in ("droptail", "red") if name in disciplines]:
        thresholds = (
            "; red's thresholds are an eighth and three eighths of it, 5 and 15 packets at least"
            if "red" in chosen
            else ""
        )
        yield (
            f"the buffer of {' and '.join(chosen)} is {buffer} packets: 100 ms at that rate"
            f"{thresholds}"
        )


def _refuse_long(capture: Path, seconds: float) -> None:
    """Raises an error for what is longer than a scenario can be."""
    if seconds > _LONGEST_S:
        raise AqmlabError(
            f"{capture}: its packets span {seconds / 86_400:,.0f} days; at most "
            f"{_LONGEST_S / 86_400:.0f} can be replayed: look at its time stamps, or cut it"
        )


def _load(passed: PassedShares) -> str:
    """What passed in each direction, in words."""
    return (
        f"captured: {loads_text(*passed.loads_bps)} on average; "
        f"{100 * passed.judged:.0f} % of the bytes are TCP, which the answer judges"
    )


def _own_times(capture: Path) -> Iterator[str]:
    """How long the capture's own uploads take, to be read beside the replayed ones."""
    try:
        found = read_exchanges(capture).exchanges
    except AqmlabError:
        return
    times = sorted(one.response_s for one in found if not one.response_bytes)
    if times:
        half, most = times[len(times) // 2], times[min(len(times) - 1, 9 * len(times) // 10)]
        yield (
            f"captured: half of {len(times):,} uploads take up to {1e3 * half:,.0f} ms, 90 % up "
            f"to {1e3 * most:,.0f} ms"
        )


def _background(passed: PassedShares) -> Iterator[str]:
    """What is not TCP, as a constant load that answers nothing."""
    if 1 - passed.judged < _WORTH:
        return
    for direction, octets in zip(("forward", "reverse"), passed.other, strict=True):
        rate = 8 * octets / passed.seconds
        if rate >= _LEAST_BPS:
            yield f"""
[[traffic]]
name = "not-tcp-{direction}"    # QUIC, UDP and the rest: their mean rate, which answers nothing
kind = "cbr"
flows = 1
rate = "{rate_text(rounded(rate))}"
packet = "1200 bytes"
direction = "{direction}"
rtt = {{ kind = "constant", rtt = "40 ms" }}
"""


_WORTH = 0.02
"""A smaller share of bytes that are not TCP is left out."""
_LEAST_BPS = 1000.0
"""A smaller load, too."""


def sized(name: str, buffer: int) -> str:
    """A queue discipline; ``droptail`` and ``red`` get what a link of this buffer needs."""
    if name == "droptail":
        return f'{{ kind = "droptail", limit = "{buffer} packets" }}'
    if name == "red":  # thresholds in the ratio of three that Floyd recommends
        least = max(5, buffer // 8)
        return (
            f'{{ kind = "red", min_th = "{least} packets", max_th = "{3 * least} packets", '
            f'limit = "{max(buffer, 8 * least)} packets", gentle = true }}'
        )
    return name


_SIDES = {
    "file": "the file says",
    "private addresses": "private addresses show",
    "groups of addresses": "addresses show that have no connection among themselves",
}
"""What shows which side of the link is home."""
_LONGEST_S = 30 * 86_400
"""A scenario can be as long."""


def refuse_unknown(disciplines: Sequence[str], option: str) -> None:
    """Raises an error for what is no discipline, before the work."""
    field = "topology.bottleneck.discipline"
    try:
        for name in disciplines:
            example("cbr", [(field, sized(name, _LEAST_BUFFER))])
    except ScenarioError as error:
        raise ScenarioError(str(error).replace(field, option, 1)) from None


def _left_out(report: Mapping[str, Any]) -> Iterator[str]:
    """What of a capture is not replayed."""
    connections = report["connections"]
    for reason, number in report["packets"]["found"].items():
        yield f"{counted(number, 'packet')}: {reason}"
    for reason, number in connections["skipped"].items():
        yield f"{counted(number, 'connection')}: {reason}"
    for reason, number in connections["partial"].items():
        yield f"what was not captured of {counted(number, 'connection')}: {reason}"


def _scenario_text(
    capture: str,
    classes: Sequence[tuple[str, str, str]],
    seconds: float,
    rates_bps: tuple[float, float],
    rtt_s: float | None,
    discipline: str,
) -> str:
    """The scenario as TOML; `classes` are names, files of vectors, and directions."""
    rtt = (
        '{ kind = "vector" }'
        if rtt_s is None
        else f'{{ kind = "constant", rtt = "{time_text(rtt_s)}" }}'
    )
    forward, reverse = map(rate_text, rates_bps)
    shown = discipline if discipline.startswith("{") else inline(discipline)
    return f"""\
title = {inline(f"Replay of {capture}, {forward} down, {reverse} up")}

[measure]
warm_up = "{time_text(seconds * _WARM_UP)}"      # a tenth of the capture is replayed uncounted
duration = "{time_text(seconds * (1 - _WARM_UP))}"
queue_sample = "{time_text(max(min(0.1, rounded(seconds / 3000)), rounded(seconds / 1e6)))}"
record = ["responses", "flows", "queue", "sojourn"]

[topology]
kind = "dumbbell"

[topology.bottleneck]
discipline = {shown}       # of both directions

[topology.bottleneck.forward]   # the way of the acceptors' bytes: the download
rate = "{forward}"

[topology.bottleneck.reverse]   # the way of the initiators' bytes
rate = "{reverse}"
""" + "".join(
        f"""
[[traffic]]
name = "{name}"
kind = "vectors"
file = {inline(file)}
copies = 1                 # more or less load: 1.2, 0.5
direction = "{direction}"
tcp = "linux"
rtt = {rtt}
"""
        for name, file, direction in classes
    )
