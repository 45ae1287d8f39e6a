"""From the rows of a suite to scenarios: TOML text, which ``aqmlab run`` takes.

Alternatives in a column stand between bars: ``10 ms | 50 ms``. A row with several has a cell for
each combination. What the traffic column calls a class stands in ``suites/words.toml``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from aqmlab._util.lazy import tomllib
from aqmlab._util.shipped import SHIPPED
from aqmlab.cards.candidates import CUBIC, DROPTAIL, Candidate, CandidateControl, named
from aqmlab.cards.suites import Row
from aqmlab.errors import AqmlabError
from aqmlab.scenario.content import value_of
from aqmlab.scenario.quantities import parsed_rate, parsed_time, time_text
from aqmlab.scenario.scenario import Scenario, inline

__all__ = ["FOLDER", "SuiteCell", "cells", "files_of", "scenario_of", "seconds_of", "toml_of"]


FOLDER = SHIPPED / "scenarios"
"""Where the files are that cells name."""
_PACKET = 1500
"""IP bytes of a packet where a buffer is given in packets."""
_VARIED = ("rate", "rtt", "buffer", "load", "link", "links", "aqm", "queue", "traffic")
"""Columns that may hold alternatives, in the order of the cells."""
_SUBJECT = "subject"
"""The word for flows of the control under test."""
_CONTROL = "$control"
"""What stands for it."""
_WAY_BACK = {"kind": "droptail", "limit": "20000 packets"}
"""The queue of acknowledgements: it never is the bottleneck."""
_NOT_SAID = frozenset(
    [
        "name",
        "path",
        "direction",
        "start",
        "stop",
        "start_within",
        "packet",
        "every",
        "tcp.profile",
        "tcp.congestion_control",
        "tcp.timestamps",
    ]
)
"""Keys of a class that labels leave out."""
_EACH = re.compile(r"(\S+) ([\w-]+)( each)?")
_TIMES = re.compile(r"([\d.]+)([SC])")
"""A number times the RFC's S (packets in the pipe and the buffer) or C (the rate)."""


@dataclass(frozen=True)
class SuiteCell:
    """A row with one alternative of each column: one scenario."""

    row: Row
    """With these alternatives alone."""
    number: int
    """From 1; 0 if the row has only one."""
    label: str
    """What tells it from the other cells of its row."""

    @property
    def id(self) -> str:
        """Its name: ``r7928-6.1/3``."""
        return f"{self.row.id}/{self.number}" if self.number else self.row.id

    @property
    def file(self) -> str:
        """The name of its scenario file."""
        return f"{self.id.replace('/', '-')}.toml"


def cells(row: Row) -> list[SuiteCell]:
    """The cells of a row; none if it is not realised."""
    if row.not_realised:
        return []
    columns = {name: _alternatives(getattr(row, name)) for name in _VARIED}
    varied = [name for name in _VARIED if len(columns[name]) > 1]
    found = []
    for number, values in enumerate(itertools.product(*columns.values()), 1):
        chosen = dict(zip(_VARIED, values, strict=True))
        label = ", ".join(_called(name, chosen[name]) for name in varied)
        if own := re.fullmatch(r"at (.+?): (.+)", chosen["link"]):
            chosen |= {"rate": own[1], "link": own[2]}
        found.append(SuiteCell(replace(row, **chosen), number if varied else 0, label))
    return found


def _alternatives(text: str) -> list[str]:
    """What stands between the bars of a cell."""
    return [part.strip() for part in text.split(" | ")]


def _called(column: str, value: str) -> str:
    """An alternative in a few words."""
    if column == "traffic":
        words = [_worded(first, keys) for first, keys in _entries(value)]
        return re.sub(r"[{}\"]", "", " + ".join(words))
    if column in ("link", "links"):
        return re.sub(r"[{}\[\]\"]", "", value)
    return {"load": "load ", "rtt": "RTT "}.get(column, "") + value


def _worded(first: str, keys: Mapping[str, str]) -> str:
    """A class in a few words: how many of what, and its name if it has one of its own."""
    number, word = first.split(" ")[:2]
    name = keys.get("name", word)
    own = [name] if name != word else []
    own += [
        f"{key.rpartition('.')[2]} {text}" for key, text in keys.items() if key not in _NOT_SAID
    ]
    about = f" ({', '.join(own)})" if own else ""
    return f"{word}{about}" if number == "-" else f"{number} {word}{about}"


def seconds_of(row: Row) -> float:
    """Simulated seconds of a run."""
    return parsed_time(row.warm_up) + parsed_time(row.duration)


def scenario_of(
    cell: SuiteCell, queue: Candidate, control: CandidateControl | None = CUBIC
) -> Scenario:
    """The scenario of a cell, checked."""
    text = toml_of(cell, queue, control)
    return replace(Scenario.from_toml(text, folder=FOLDER), name=cell.file.removesuffix(".toml"))


def files_of(cell: SuiteCell) -> list[str]:
    """The files that a cell's scenario names, relative to :data:`FOLDER`."""
    return re.findall(r'file = "([^"]+)"', cell.row.link)


def toml_of(cell: SuiteCell, queue: Candidate, control: CandidateControl | None = CUBIC) -> str:
    """The scenario of a cell as TOML.

    Args:
        cell: the cell.
        queue: the discipline under test.
        control: the congestion control of its subject; None: without its subject.
    """
    row = cell.row
    link = _Link.of(row)
    rtts = list(_rtts(row))
    title = f"{row.id}: {row.scenario}" + (f" ({cell.label})" if cell.label else "")
    lines = [
        f"# {row.section}" + (f"; differs: {row.differs}" if row.differs else ""),
        f"title = {inline(title)}",
        "seed = 1",
        *([f"load = {row.load}"] if row.load else []),
        "",
        "[measure]",
        f"warm_up = {inline(row.warm_up)}",
        f"duration = {inline(row.duration)}",
        'queue_sample = "20 ms"',
        'record = ["queue"]',
        *_traced(row),
        "",
        *_topology(row, queue, link, max(rtts, default=0.1)),
    ]
    pipe = link.rate * max(rtts, default=0.1) / 8
    room = _bytes(row.buffer, link.rate, max(rtts, default=0.1))
    for table in _classes(row, control, link.rate, (pipe + room) / _PACKET):
        lines += ["", "[[traffic]]", *(f"{key} = {inline(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _traced(row: Row) -> Iterator[str]:
    """The senders that are sampled."""
    if row.trace:
        period = row.period or "100 ms"
        yield f"flow_trace = {{ flows = {row.trace}, period = {inline(period)} }}"


@dataclass(frozen=True)
class _Link:
    """The rates of a bottleneck, in bits per second."""

    rate: float
    back: float

    @classmethod
    def of(cls, row: Row) -> _Link:
        """Those of a row: ``10 Mbit/s`` or ``10/1 Mbit/s``."""
        forward, slash, back = re.fullmatch(r"([\d.]+)(/?)([\d.]*) \S+", row.rate).groups()  # type: ignore[union-attr]
        unit = row.rate.rpartition(" ")[2]
        return cls(
            parsed_rate(f"{forward} {unit}"), parsed_rate(f"{back if slash else forward} {unit}")
        )


def _topology(row: Row, queue: Candidate, link: _Link, rtt: float) -> Iterator[str]:
    """The network."""
    yield "[topology]"
    if row.links:
        yield 'kind = "network"'
        for part in row.links.split(";"):
            name, _, about = part.partition("=")
            rate, _, other = about.partition("@")
            speed = parsed_rate(rate.strip())
            placed = named(other.strip()) if other else queue
            table = placed.limited(_bytes(row.buffer, speed, rtt), marks=bool(row.ecn))
            yield f"\n[topology.links.{name.strip()}]"
            yield f'rate = {inline(rate.strip())}\nframing = "none"'
            yield f"discipline = {inline(table)}"
            yield f"reverse = {{ discipline = {inline(_WAY_BACK)} }}"
        yield "\n[topology.paths]"
        for part in row.paths.split(";"):
            name, _, over = part.partition("=")
            yield f"{name.strip()} = {{ links = {inline(over.split())} }}"
        return
    yield 'kind = "dumbbell"'
    if row.wifi:
        yield from _wifi(row, queue, rtt)
    yield '\n[topology.bottleneck]\nframing = "none"'
    tested = {"": ("forward",), "both": ("forward", "reverse")}.get(row.aqm, (row.aqm,))
    tested = () if row.wifi else tested
    prescribed = named(row.queue) if row.queue else None
    end = seconds_of(row)
    for way, speed, keys in (("forward", link.rate, row.link), ("reverse", link.back, row.back)):
        room = _bytes(row.buffer, speed, rtt)
        chosen: Mapping[str, object] = _WAY_BACK
        if way in tested:
            chosen = (prescribed or queue).limited(room, marks=bool(row.ecn))
        elif row.aqm or (row.wifi and way == "forward"):
            chosen = named(DROPTAIL).limited(room, marks=False)
        yield f"\n[topology.bottleneck.{way}]\nrate = {inline(_rate(speed))}"
        yield f"discipline = {inline(chosen)}"
        yield from _further(keys, end)


def _wifi(row: Row, queue: Candidate, rtt: float) -> Iterator[str]:
    """An access point with the queue under test for each station, and a client at each."""
    keys = dict(re.findall(r"(\w+) = (\[.*?\]|[^,]+)(?:, |$)", row.wifi))
    clients = sum(stations["count"] for stations in value_of(keys["stations"]))
    room = _bytes(row.buffer, 0.0, rtt)
    yield f"hosts = {{ clients = {clients}, servers = {clients} }}"
    yield "\n[topology.wifi]"
    yield from (f"{key} = {value}" for key, value in keys.items())
    yield f"discipline = {inline(queue.limited(room, marks=bool(row.ecn)))}"


def _rate(bps: float) -> str:
    """A rate, exactly."""
    return f"{bps:.0f} bit/s"


def _further(keys: str, end: float) -> Iterator[str]:
    """Further keys of a link; ``rates = A, B every T`` stands for a list of changes."""
    square = re.fullmatch(r"rates = (.+), (.+) every (.+)", keys)
    if square is None:
        if keys:
            yield re.sub(r", (?=[a-z_]+ = )(?![^\[{]*[\]}])", "\n", keys)
        return
    step = parsed_time(square[3])
    changes = [
        {"at": time_text(k * step), "rate": square[1 + k % 2]}
        for k in range(1, int(end / step + 1e-9))
    ]
    yield f"rate_changes = {inline(changes)}"


def _bytes(buffer: str, rate: float, rtt: float) -> int:
    """A buffer in bytes: ``1 BDP``, ``250 ms`` of the link, ``240 packets``, ``100 kB``."""
    number, unit = buffer.split()
    each = {"BDP": rate * rtt / 8, "packets": _PACKET, "bytes": 1, "kB": 1000, "ms": rate / 8000}
    return max(2 * _PACKET, round(float(number) * each[unit]))


def _rtts(row: Row) -> Iterator[float]:
    """The round trips of the classes that have a constant one, in seconds."""
    for _, keys in _entries(row.traffic):
        text = keys.get("rtt", row.rtt)
        if not text.startswith("{"):
            yield parsed_time(text)


def _entries(traffic: str) -> Iterator[tuple[str, dict[str, str]]]:
    """What begins each class of a traffic column, and the keys behind it."""
    for part in filter(None, traffic.split(";")):
        first, *keys = re.split(r",\s*(?![^\[{]*[\]}])", part.strip())
        yield first, {key.strip(): value for key, _, value in (one.partition("=") for one in keys)}


@cache
def _words() -> dict[str, dict[str, Any]]:
    """What the words of traffic columns stand for."""
    text = (Path(__file__).parent / "suites" / "words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _classes(
    row: Row, control: CandidateControl | None, rate: float, pipe: float
) -> Iterator[dict[str, Any]]:
    """The classes of traffic."""
    for first, keys in _entries(row.traffic):
        match = _EACH.fullmatch(first)
        if match is None or match[2] not in _words():
            raise AqmlabError(f'{row.id}: found "{first}" as traffic; expected a number and a word')
        if match[2] == _SUBJECT and control is None:
            continue
        table = _under_test(_words()[match[2]], control or CUBIC)
        count_key = table.pop("count")
        number = 0 if match[1] == "-" else _count(match[1], pipe)
        made: dict[str, Any] = {"name": keys.get("name", match[2])}
        made |= {count_key: number} if number else {}
        made |= {**table, "rtt": keys.get("rtt", row.rtt)}
        for key, text in keys.items():
            _put(made, key, text, rate, control or CUBIC)
        made["rtt"] = _rtt(made["rtt"])
        every = made.pop("every", None)
        if not match[3]:
            yield made
            continue
        for k in range(number):
            apart = {"start": time_text(k * parsed_time(every))} if every and k else {}
            yield {**made, "name": f"{made['name']}-{k + 1}", count_key: 1, **apart}


def _under_test(word: Mapping[str, Any], control: CandidateControl) -> dict[str, Any]:
    """What a word stands for, with the control under test in its place."""
    table = deepcopy(dict(word))  # a row's own keys go into its tables
    tcp = table.get("tcp")
    if isinstance(tcp, dict) and tcp.get("congestion_control") == _CONTROL:
        table["tcp"] = {**tcp, "congestion_control": control.table, **control.tcp}
    return table


def _count(text: str, pipe: float) -> int:
    """How many: a number, or a share of the packets in pipe and buffer (RFC 7928, 8.2.1)."""
    times = _TIMES.fullmatch(text)
    return max(1, round(float(times[1]) * pipe)) if times else int(text)


def _put(
    table: dict[str, Any], key: str, text: str, rate: float, control: CandidateControl
) -> None:
    """Sets a key of a class; ``tcp.initial_window`` is one of its stack."""
    times = _TIMES.fullmatch(text)
    value: Any = _rate(float(times[1]) * rate) if times and times[2] == "C" else value_of(text)
    value = control.table if value == _CONTROL else value
    *above, last = key.split(".")
    for name in above:
        if not isinstance(table.get(name), dict):
            table[name] = {"profile": table[name]}
        table = table[name]
    table[last] = value


def _rtt(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can say
    """Round trips as a scenario has them."""
    parsed = value_of(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, dict) else {"kind": "constant", "rtt": parsed}
