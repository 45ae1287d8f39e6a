"""Worked traces: what a discipline should do with each packet, computed by hand or by others."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from aqmlab import _native
from aqmlab._util.files import read_text
from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Scenario

__all__ = ["EVENTS", "follow"]

EVENTS = ("arrive", "depart", "idle", "tick")
"""What a row may be."""
_KNOWN = frozenset(
    [
        "step",
        "time_s",
        "event",
        "flow",
        "ect",
        "size_bytes",
        "random_draw",
        "decision",
        "queue_packets_before",
        "queue_bytes_before",
    ]
)
_MOST_BYTES = 64 << 20
"""The longest trace."""
_CLOSE = 1e-9


def follow(path: Path, scenario: Scenario) -> Iterator[str]:
    """Plays a trace on the queue of a scenario's bottleneck: each difference, in words.

    Args:
        path: a CSV file. Columns ``time_s``, ``event`` (:data:`EVENTS`; without the column all
            arrive), ``size_bytes``, ``flow`` (a word), ``ect`` (``true``), ``random_draw`` (the
            numbers that an arrival draws, with semicolons), and what is expected: ``decision`` of
            arrivals (``enqueue``, ``mark``, ``drop_early``, ...), ``queue_packets_before``,
            ``queue_bytes_before``, and any of the discipline's variables. What is empty is not
            compared; other columns are notes.
        scenario: its bottleneck has the discipline, and the rate that the trace is for.

    Raises:
        AqmlabError: the file cannot be read, or a row says nothing that can be played.
    """
    try:
        rows = list(csv.DictReader(read_text(path, "trace", _MOST_BYTES).splitlines()))
    except csv.Error as error:
        raise AqmlabError(f"{path}: cannot be read: {error}") from None
    if not rows or "time_s" not in rows[0]:
        raise AqmlabError(f"{path}: found no row with time_s; expected a CSV file with a head")
    queue = _native.Worked(scenario.effective)
    expectations = {"decision", "queue_packets_before", "queue_bytes_before", *queue.variables()}
    if not expectations & set(rows[0]):
        expected = ", ".join(sorted(expectations))
        raise AqmlabError(f"{path}: found nothing that is expected; a column of {expected}")
    before = 0.0
    for number, row in enumerate(rows, 2):
        place = f"{path.name}:{number}"
        time = _number(place, row, "time_s", before)
        if time < before:
            raise AqmlabError(f"{place}: time_s: found {time}; not before {before}")
        before = time
        for column, waiting in zip(("packets", "bytes"), queue.backlog(), strict=True):
            yield from _compared(place, row, f"queue_{column}_before", waiting)
        try:
            decision = _play(queue, place, row, time)
        except AqmlabError as error:
            text = str(error)
            raise type(error)(text if text.startswith(place) else f"{place}: {text}") from None
        expected = row.get("decision") or decision
        if decision and expected != decision:
            yield f"{place}: decision: found {decision}; expected {expected}"
        for name, value in queue.variables().items():
            if name not in _KNOWN:
                yield from _compared(place, row, name, value)


def _play(queue: _native.Worked, place: str, row: Mapping[str, str], time: float) -> str:
    """Plays a row: what is done with its packet, if it has one."""
    event = row.get("event") or "arrive"
    if event == "arrive":
        size = _number(place, row, "size_bytes", 1000.0)
        flow = int.from_bytes((row.get("flow") or "a").encode()[-8:], "big")
        texts = [text for text in (row.get("random_draw") or "").split(";") if text.strip()]
        draws = [_number(place, {"random_draw": text}, "random_draw", 0.0) for text in texts]
        if not 1 <= size <= 65_535:
            raise AqmlabError(f"{place}: size_bytes: found {size}; expected 1 to 65535")
        decision, left = queue.arrive(time, flow, int(size), row.get("ect") == "true", draws)
        if left:
            raise AqmlabError(f"{place}: random_draw: found {left} more than are drawn")
        return decision
    if event == "depart":
        if not queue.depart(time):
            raise AqmlabError(f"{place}: event: found depart, and nothing waits")
    elif event == "idle":
        queue.idle(time)
    elif event == "tick":
        queue.tick(time)
    else:
        raise AqmlabError(f"{place}: event: found {event}; expected one of {', '.join(EVENTS)}")
    return ""


def _compared(place: str, row: Mapping[str, str], column: str, found: float) -> Iterator[str]:
    if row.get(column):
        expected = _number(place, row, column, 0.0)
        if not math.isclose(found, expected, rel_tol=_CLOSE, abs_tol=_CLOSE * _CLOSE):
            yield f"{place}: {column}: found {found:.12g}; expected {expected:.12g}"


def _number(place: str, row: Mapping[str, str], column: str, default: float) -> float:
    text = row.get(column)
    try:
        number = float(text) if text else default
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise AqmlabError(f"{place}: {column}: found {text}; expected a number")
    return number
