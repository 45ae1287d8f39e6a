"""Rates over time in the formats that people hold, as opportunities of a link's ``trace``.

The engine reads one format: the milliseconds of opportunities. What is written otherwise becomes
that here, before it reads a scenario, and a ``rate`` that is left out becomes the trace's mean.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from aqmlab._util.words import listing
from aqmlab.errors import ScenarioError
from aqmlab.scenario.content import content, value_of

__all__ = ["from_traces", "mean_rate_bps", "opportunities"]


_PACKET_BITS = 12_000
"""Of an opportunity."""
_MOST = 4_000_000
"""Opportunities of a trace, at most."""
_MOST_BYTES = 64 << 20
"""Of a file, as the engine has it."""
_MARK = "\ufeff"
"""What some editors put in front of a text."""
_DIRECTIONS = ("forward", "reverse")
_WORDS = {"forward": ("down", "dl", "rx"), "reverse": ("up", "ul", "tx")}
"""How the names of columns begin that belong to a direction."""
_UNITS = {"gbit": 1e9, "gbps": 1e9, "mbit": 1e6, "mbps": 1e6, "kbit": 1e3, "kbps": 1e3, "bps": 1.0}
"""Units in the names of columns."""
_TIMES = {"ms": 1e-3, "millisecond": 1e-3}
"""Units of a column of times; all others are seconds."""


def opportunities(text: str, direction: str) -> list[int]:
    """The milliseconds of opportunities to send 1500 bytes that a trace has.

    Args:
        text: milliseconds line by line; or seconds and Mbit/s; or CSV with a header.
        direction: whose column of a CSV counts, ``forward`` or ``reverse``.

    Raises:
        ValueError: it is none of them; the message goes on after "found FILE, ".
    """
    lines = [
        (number, line.strip())
        for number, line in enumerate(text.removeprefix(_MARK).splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise ValueError("which has no line")
    first = re.split(r"[,;\s]+", lines[0][1])
    if len(first) == 1:
        return _milliseconds(lines)
    if _number(first[0]) is None:
        return _granted(_of_columns(lines, direction))
    return _granted(_of_pairs(lines))


def mean_rate_bps(stamps: Sequence[int]) -> int:
    """The mean rate of a trace, as the engine has it."""
    return 1000 * _PACKET_BITS * len(stamps) // stamps[-1]


def _is_milliseconds(text: str) -> bool:
    """Whether a trace is in the engine's own format: its first line is one word."""
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return len(first.split()) <= 1 and "," not in first and ";" not in first


def _milliseconds(lines: Sequence[tuple[int, str]]) -> list[int]:
    """A trace in the engine's own format."""
    found = []
    for number, line in lines:
        if not line.isascii() or not line.isdigit():
            raise ValueError(
                f"where line {number} is {json.dumps(line[:40])}; expected a whole number of "
                "milliseconds, or seconds and Mbit/s"
            )
        found.append(int(line))
        if len(found) > 1 and found[-1] < found[-2]:
            raise ValueError(
                f"where line {number} is {found[-1]} ms after {found[-2]} ms; opportunities ascend"
            )
    if not found[-1]:
        raise ValueError("which has only 0 ms; the last one is the length of the trace")
    return found


def _number(text: str) -> float | None:
    """A finite number, not below 0."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def _of_pairs(lines: Iterable[tuple[int, str]]) -> list[tuple[float, float]]:
    """Seconds and bits per second."""
    found = []
    for number, line in lines:
        cells = re.split(r"[,;\s]+", line)
        values = [_number(cell) for cell in cells]
        if len(values) != 2 or values[0] is None or values[1] is None:
            raise ValueError(
                f"where line {number} is {json.dumps(line[:40])}; expected seconds and Mbit/s"
            )
        found.append((values[0], 1e6 * values[1]))
    return found


def _of_columns(lines: Sequence[tuple[int, str]], direction: str) -> list[tuple[float, float]]:
    """A CSV with a header: its times, and the column of a direction in bits per second."""
    head = lines[0][1]
    delimiter = next((one for one in (",", ";", "\t") if one in head), " ")
    names = [name.strip().strip('"').lower() for name in head.split(delimiter)]
    rates = {
        place: unit
        for place, name in enumerate(names)
        if (unit := next((size for word, size in _UNITS.items() if word in name), None))
    }
    if not rates:
        raise ValueError(
            f"whose header is {json.dumps(head[:60])}; expected a column of times, and one of "
            "rates whose name has a unit, such as down_kbit, mbps or bps"
        )
    own = [one for one in rates if names[one].startswith(_WORDS[direction])]
    other = next(one for one in _DIRECTIONS if one != direction)
    neutral = [one for one in rates if not names[one].startswith(_WORDS[other])]
    chosen = own or neutral
    if len(chosen) != 1:
        raise ValueError(
            f"whose columns of rates are {listing([names[one] for one in rates], 'and')}; expected "
            f"one for {direction}, with a name that begins with {_WORDS[direction][0]}, or one "
            "without a direction"
        )
    place = chosen[0]
    clock = next((one for one in range(len(names)) if one not in rates), None)
    if clock is None:
        raise ValueError(f"whose header is {json.dumps(head[:60])}; expected a column of times")
    words = re.split(r"[^a-z]+", names[clock])
    second = next((size for word, size in _TIMES.items() if word in words), 1.0)
    found = []
    rows = csv.reader((line for _, line in lines[1:]), delimiter=delimiter)
    for (number, line), row in zip(lines[1:], rows, strict=False):
        cells = [_number(row[one]) if one < len(row) else None for one in (clock, place)]
        if cells[0] is None or cells[1] is None:
            raise ValueError(
                f"where line {number} is {json.dumps(line[:40])}; expected numbers as "
                f"{names[clock]} and {names[place]}"
            )
        found.append((second * cells[0], rates[place] * cells[1]))
    return found


def _granted(rows: Sequence[tuple[float, float]]) -> list[int]:
    """Opportunities of rates that hold from a time on; the last as long as the one before."""
    if len(rows) < 2:
        raise ValueError("which has fewer than two rows of time and rate")
    times = [time for time, _ in rows]
    for before, after in pairwise(times):
        if after <= before:
            raise ValueError(f"where {after:g} s follows {before:g} s; times ascend")
    times.append(2 * times[-1] - times[-2])
    length = round(1e3 * (times[-1] - times[0]))
    if not 1 <= length < 2**32:
        raise ValueError(f"which lasts {length / 1e3:,.0f} s; expected 1 ms to 49 days")
    bits = [rate * (end - begin) for (begin, rate), end in zip(rows, times[1:], strict=True)]
    total = sum(bits)
    number = round(total / _PACKET_BITS)
    if not 1 <= number <= _MOST:
        raise ValueError(
            f"which carries {number:,} packets of 1500 bytes; expected 1 to {_MOST:,}: cut it"
        )
    found: list[int] = []
    passed = 0.0
    step = total / number
    for (begin, rate), much in zip(rows, bits, strict=True):
        while len(found) < number - 1 and (wanted := (len(found) + 1) * step) <= passed + much:
            at = begin - times[0] + (wanted - passed) / rate
            found.append(min(length, round(1e3 * at)))
        passed += much
    # The last one ends the trace, whatever rounding has left.
    return [*found, *[length] * (number - len(found))]


def from_traces(
    source: str, folder: Path, overrides: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """What to add to a scenario's overrides: traces of other formats, and rates left out.

    Args:
        source: the scenario as TOML.
        folder: where the files are that it names.
        overrides: full paths and TOML.
    """
    topology = _topology(source, overrides)
    links = topology.get("links")
    places = {"topology.bottleneck": topology.get("bottleneck")}
    if isinstance(links, dict):
        places |= {f"topology.links.{name}": link for name, link in links.items()}
    return [
        entry
        for place, link in places.items()
        if isinstance(link, dict)
        for direction in _DIRECTIONS
        for entry in _of_link(place, link, direction, folder)
    ]


def _of_link(
    path: str, link: dict[str, Any], direction: str, folder: Path
) -> Iterator[tuple[str, str]]:
    """What a direction of a link needs."""
    own = link.get(direction)
    merged = {**link, **own} if isinstance(own, dict) else link
    trace = merged.get("trace")
    if not isinstance(trace, dict):
        return
    stamps = trace.get("opportunities")
    name = trace.get("file")
    if isinstance(name, str) and not stamps:
        try:
            if (folder / name).stat().st_size > _MOST_BYTES:
                return  # which the engine says
            text = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return  # which the engine says
        is_plain = not text.startswith(_MARK) and _is_milliseconds(text)
        if is_plain and "rate" in merged:
            return
        try:
            stamps = opportunities(text, direction)
        except ValueError as error:
            where = f"{path}.{direction}.trace.file"
            raise ScenarioError(f"{where}: found {json.dumps(name)}, {error}") from None
        rest = {key: value for key, value in trace.items() if key != "file"}
        inner = "".join(f", {key} = {json.dumps(value)}" for key, value in rest.items())
        if not is_plain:
            table = f"{{ opportunities = {json.dumps(stamps)}{inner} }}"
            yield f"{path}.{direction}.trace", table
    is_whole = isinstance(stamps, list) and stamps and all(type(one) is int for one in stamps)
    if "rate" not in merged and is_whole and stamps and stamps[-1] > 0:
        yield f"{path}.{direction}.rate", json.dumps(f"{mean_rate_bps(stamps)} bit/s")


def _topology(source: str, overrides: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The topology with overrides put in, as far as it can be read."""
    found = content(source).get("topology", {})
    for path, text in overrides:
        head, *rest = (part.strip() for part in path.split("."))
        if head == "topology" and rest:
            found = _put(found, rest, value_of(text))
    return found if isinstance(found, dict) else {}


def _put(table: Any, keys: Sequence[str], value: object) -> Any:  # noqa: ANN401 - any TOML value
    """A table with a value at the end of a path; what is no table has no keys."""
    if not keys:
        return value
    if not isinstance(table, dict):
        return table
    head, *rest = keys
    return {**table, head: _put(table.get(head, {}), rest, value)}
