"""The link that a program is behind: from options or from a scenario, as a scenario."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from aqmlab import _native
from aqmlab._util.lazy import tomllib
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario.quantities import parsed_rate, parsed_time, rate_text, time_text
from aqmlab.scenario.scenario import Scenario
from aqmlab.scenario.traces import mean_rate_bps, opportunities
from aqmlab.shell.wifi import ShellWifi

__all__ = ["PROGRAM", "FileLink", "Link", "Span", "Users", "trace_rate_bps"]

PROGRAM = "program"
"""The class of traffic that stands for the program."""
Users = Sequence[Mapping[str, Any]]
"""Classes of traffic beside a program, as a scenario has them."""
_SMALLEST_BUFFER = 2 * 1500
"""Bytes of two full packets."""
_SAMPLE_S = 0.01


class Span(NamedTuple):
    """How long a program is measured at most, and the head start of users beside it."""

    duration_s: float
    warm_up_s: float = 0.0


@dataclass(frozen=True)
class Link:
    """The link that a program is behind.

    Rates are in bits per second of IP packets, times in seconds. The round trip is that of an empty
    queue. Queues are kinds or presets, as ``NAME``, ``NAME:BUFFER`` or a TOML table. Traces are
    files of opportunities to send 1500 bytes; the rates are their means.
    """

    down_bps: float
    up_bps: float
    rtt_s: float = 0.02
    jitter_s: float = 0.0
    loss: float = 0.0
    queue_down: str = "droptail"
    queue_up: str = "droptail"
    buffer: str | None = None
    trace_down: Path | None = None
    trace_up: Path | None = None
    wifi: ShellWifi | None = None

    @property
    def asked(self) -> str | None:
        """The queue of both directions as ``NAME:BUFFER``, whatever bytes that is in each."""
        return _asked(self.queue_down, self.queue_up)

    def __str__(self) -> str:
        """The link in a few words."""
        queues = self.queue_down
        if self.queue_up != self.queue_down:
            queues += f" (down), {self.queue_up} (up)"
        ways = [
            f"{rate_text(rate)} {way}{f' by {trace.name}' if trace else ''}"
            for rate, way, trace in (
                (self.down_bps, "down", self.trace_down),
                (self.up_bps, "up", self.trace_up),
            )
        ]
        return f"{', '.join(ways)}, {time_text(self.rtt_s)}, {queues}{_behind(self.wifi)}"

    def scenario(self, title: str, seed: int, span: Span, users: Users = ()) -> Scenario:
        """The link as a scenario; its first user stands for the program."""
        bottleneck: dict[str, object] = {
            "delay": time_text(self.rtt_s / 2),
            "framing": "none",
            "loss": float(self.loss) or None,
        }
        options = down, up = _queue_options(self.queue_down, self.queue_up)
        for direction, option, queue, rate_bps, trace in (
            ("forward", down, self.queue_down, self.down_bps, self.trace_down),
            ("reverse", up, self.queue_up, self.up_bps, self.trace_up),
        ):
            bottleneck[direction] = {
                "rate": rate_text(rate_bps),
                "trace": {"file": os.fspath(trace.absolute())} if trace else None,
                "discipline": _discipline(option, queue, rate_bps, self.rtt_s, self.buffer),
            }
        try:
            return _stands_for_program(
                (bottleneck, self.wifi), self.rtt_s, title, seed, span, users
            )
        except ScenarioError as error:
            raise AqmlabError(_of_options(str(error), options)) from None


def _behind(wifi: ShellWifi | None) -> str:
    """The end of a link in a few words."""
    return "" if wifi is None else ", then Wi-Fi"


def _asked(queue_down: str, queue_up: str) -> str | None:
    """The queue of both directions as ``NAME:BUFFER``, whatever bytes that is in each."""
    is_both = queue_down == queue_up and not queue_down.startswith("{")
    return queue_down if is_both and ":" in queue_down else None


def _queue_options(queue_down: str | None, queue_up: str | None) -> tuple[str, str]:
    """The options that queues come from: one, or one for each direction."""
    return ("--queue", "--queue") if queue_down == queue_up else ("--queue-down", "--queue-up")


def _of_options(message: str, queue_options: tuple[str, str]) -> str:
    """What is wrong with a field, by the option that it comes from."""
    down, up = queue_options
    options = {
        "loss": "--loss",
        "forward.discipline": down,
        "reverse.discipline": up,
        "forward.trace": "--down",
        "reverse.trace": "--up",
    }
    for key, option in options.items():
        path, colon, rest = message.partition(f"topology.bottleneck.{key}")
        if colon and not path:
            return option + rest.removeprefix(".kind").replace(".", ": ", rest[0] == ".")
    return message


def _discipline(
    option: str, text: str, rate_bps: float, rtt_s: float, buffer: str | None
) -> dict[str, object]:
    """A discipline as a scenario has it.

    Args:
        option: where it comes from.
        text: ``NAME``, ``NAME:BUFFER`` or a TOML table.
        rate_bps: of its link.
        rtt_s: of the empty link.
        buffer: the size of a queue that states none.
    """
    if text.lstrip().startswith("{"):
        try:
            found: dict[str, object] = tomllib.loads(f"discipline = {text}")["discipline"]
        except tomllib.TOMLDecodeError as error:
            raise AqmlabError(f"{option}: found {text[:60]}: {error}") from None
        return found
    name, _, size = (part.strip() for part in text.partition(":"))
    catalog = json.loads(_native.catalog())
    discipline: dict[str, object] = {"kind": name}
    if name in catalog["presets"]:
        values = catalog["presets"][name]["parameters"]
        discipline = {value["name"]: value["value"] for value in values}
    fields = catalog["disciplines"].get(discipline["kind"], {}).get("parameters", [])
    [limit] = [field for field in fields if field["name"] == "limit"] or [None]
    if size:
        discipline["limit"] = _size(option, size, rate_bps, rtt_s)
    elif limit is not None and buffer:
        discipline["limit"] = _size("--buffer", buffer, rate_bps, rtt_s)
    elif limit is not None and limit["required"] and "limit" not in discipline:
        discipline["limit"] = _size(option, "1 bdp", rate_bps, rtt_s)
    return discipline


def _size(option: str, text: str, rate_bps: float, rtt_s: float) -> str:
    """A buffer as a scenario has it: times, and bandwidth-delay products, become bytes.

    Bytes wait as long whatever the sizes of the packets.
    """
    match = re.fullmatch(r"([0-9]*\.?[0-9]+) *(bdp|us|ms|s)", text, re.IGNORECASE)
    if match is None:
        if re.fullmatch(r"[0-9]*\.?[0-9]+ *(packets|bytes|[kM]i?B)", text):
            return text
        raise AqmlabError(
            f'{option}: found the buffer "{text[:40]}"; expected one such as "100 packets", '
            '"64 kB", "250 ms" or "1 bdp"'
        )
    unit = rtt_s if match[2].lower() == "bdp" else parsed_time(f"1 {match[2].lower()}")
    return f"{max(_SMALLEST_BUFFER, round(float(match[1]) * unit * rate_bps / 8))} bytes"


@dataclass(frozen=True)
class FileLink:
    """The bottleneck of a scenario, whose users stay away.

    The round trip is that of the link's delays, unless another is given; a link without delay has
    that of :class:`Link`. A direction keeps its queue unless another is given.
    """

    file: Path
    bottleneck: dict[str, Any]
    rtt_s: float
    jitter_s: float = 0.0
    queue_down: str | None = None
    queue_up: str | None = None
    wifi: ShellWifi | None = None

    @classmethod
    def load(
        cls,
        file: Path,
        rtt_s: float | None,
        jitter_s: float,
        queue_down: str | None = None,
        queue_up: str | None = None,
        buffer: str | None = None,
    ) -> FileLink:
        """Reads a scenario.

        Args:
            file: the scenario.
            rtt_s: replaces its link's delays.
            jitter_s: the random delay of each packet at most.
            queue_down: replaces the queue of the download, as in :class:`Link`.
            queue_up: replaces that of the upload.
            buffer: the size of queues that replace others and state none.
        """
        return cls.of(Scenario.load(file), file, rtt_s, jitter_s, queue_down, queue_up, buffer)

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        file: Path,
        rtt_s: float | None,
        jitter_s: float,
        queue_down: str | None = None,
        queue_up: str | None = None,
        buffer: str | None = None,
        wifi: ShellWifi | None = None,
    ) -> FileLink:
        """The bottleneck of a scenario, and Wi-Fi behind it; the rest as in :meth:`load`."""
        topology = deepcopy(scenario.data["topology"])
        if topology["kind"] != "dumbbell":
            raise AqmlabError(
                f'{file}: topology.kind: found "{topology["kind"]}", but programs are behind one '
                'link; expected "dumbbell"'
            )
        bottleneck = topology["bottleneck"]
        ways = [bottleneck["forward"], bottleneck["reverse"]]
        _check_changes(file, ways)
        if rtt_s is None and not any(parsed_time(way["delay"]) for way in ways):
            rtt_s = Link.rtt_s
        if rtt_s is not None:
            for way in ways:
                way["delay"] = time_text(rtt_s / 2)
        rtt_s = sum(parsed_time(way["delay"]) for way in ways)
        queues = (queue_down, queue_up)
        for option, way, queue in zip(_queue_options(*queues), ways, queues, strict=True):
            if queue is not None:
                rate_bps = parsed_rate(way["rate"])
                way["discipline"] = _discipline(option, queue, rate_bps, rtt_s, buffer)
        return cls(file, bottleneck, rtt_s, jitter_s, *queues, wifi)

    @property
    def asked(self) -> str | None:
        """As of :class:`Link`; None where the file says what the queue is."""
        both = self.queue_down is not None and self.queue_up is not None
        return _asked(str(self.queue_down), str(self.queue_up)) if both else None

    def __str__(self) -> str:
        """The link in a few words."""
        down, up = (self.bottleneck[way] for way in ("forward", "reverse"))
        given = (self.queue_down, self.queue_up)
        kinds = [
            queue or way["discipline"]["kind"] for queue, way in zip(given, (down, up), strict=True)
        ]
        queues = kinds[0] if kinds[0] == kinds[1] else f"{kinds[0]} (down), {kinds[1]} (up)"
        rates = f"{down['rate']} down, {up['rate']} up"
        end = _behind(self.wifi)
        return f"{rates}, {time_text(self.rtt_s)}, {queues}{end} ({self.file.name})"

    def scenario(self, title: str, seed: int, span: Span, users: Users = ()) -> Scenario:
        """The link as a scenario; its first user stands for the program."""
        try:
            return _stands_for_program(
                (self.bottleneck, self.wifi), self.rtt_s, title, seed, span, users
            )
        except ScenarioError as error:
            options = _queue_options(self.queue_down, self.queue_up)
            raise AqmlabError(_of_options(str(error), options)) from None


def _check_changes(file: Path, ways: Sequence[Mapping[str, Any]]) -> None:
    """Refuses changes of a link that wait for a phase."""
    for way in ways:
        for key, changes in way.items():
            if key.endswith("_changes") and any("when" in change for change in changes):
                raise AqmlabError(
                    f"{file}: topology.bottleneck.{key}: found a change with when, but only a "
                    "simulation sees the phases of a congestion control; expected at with a time"
                )


def trace_rate_bps(file: Path, direction: str) -> float:
    """The mean rate of a trace of opportunities to send 1500 bytes."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise AqmlabError(f"{file}: no trace can be read: {error}") from None
    try:
        return mean_rate_bps(opportunities(text, direction))
    except ValueError as error:
        raise AqmlabError(f"{file}: found a trace {error}") from None


def _stands_for_program(
    link: tuple[dict[str, object], ShellWifi | None],
    rtt_s: float,
    title: str,
    seed: int,
    span: Span,
    users: Users,
) -> Scenario:
    """A scenario of a link, and of Wi-Fi behind it if there is any.

    Its first user stands for the program, others are beside it.
    """
    bottleneck, wifi = link
    topology: dict[str, object] = {"kind": "dumbbell", "bottleneck": bottleneck}
    if wifi is not None:
        topology |= wifi.topology(PROGRAM, [str(user["name"]) for user in users])
    rtt = {"kind": "constant", "rtt": time_text(rtt_s)}
    measure = {
        "warm_up": time_text(span.warm_up_s),
        "duration": time_text(span.duration_s),
        "queue_sample": time_text(_SAMPLE_S),
    }
    content = {
        "title": title,
        "seed": seed,
        "measure": measure,
        "topology": topology,
        "traffic": [
            {"name": PROGRAM, "kind": "bulk", "flows": 1, "tcp": "linux", "rtt": rtt},
            *users,
        ],
    }
    return Scenario.from_dict(content, wifi.sets if wifi else ())
