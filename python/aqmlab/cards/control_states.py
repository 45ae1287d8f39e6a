"""What a control's inner state did in a run, by the trace of its first connection.

A *visit* is a stay in a phase, counted from 1. Functions that find no such visit, and columns that
the control does not fill, give None.

==========================  ==========================================================
``first(PHASE, T)``         when a visit begins, the first from T on
``visits(PHASE, T)``        how many begin from T on
``ends(PHASE, T)``          when the first visit that begins from T on ends
``stays(PHASE, N)``         how long the visit lasts, in s
``rounds(PHASE, N)``        rounds of the control in the visit
``follows(PHASE, NEXT)``    how many visits end in that next phase
``entering(COLUMN, PHASE, N)``  the value at the first row of a visit
``leaving(COLUMN, PHASE, N)``  the value at the first row behind it
``lowest(COLUMN, A, B)``    the smallest value from A to B; ``highest``: the largest
``during(COLUMN, PHASE, N)``  the median in the middle of a visit
==========================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from aqmlab.results.run import Run
from aqmlab.results.statistics import Floats

__all__ = ["STATE_FUNCTIONS"]


class _Trace:
    """The rows of the first traced connection, and its visits."""

    def __init__(self, run: Run) -> None:
        table = run.flow_trace
        self.is_empty = table is None or "phase" not in table.column_names
        if table is None or self.is_empty:
            return
        flows = table["flow"].to_numpy()
        self.table = table.filter(flows == flows.min())
        self.times: Floats = self.table["time_s"].to_numpy()
        phases = np.array(self.table["phase"].to_pylist())
        changes = np.flatnonzero(phases[1:] != phases[:-1]) + 1
        begins = [0, *changes.tolist()]
        ends = [*changes.tolist(), len(phases) - 1]
        self.visits = [
            (str(phases[begin]), begin, end) for begin, end in zip(begins, ends, strict=True)
        ]

    def column(self, name: str) -> Floats:
        """A column as numbers; not a number where it is empty."""
        found: Floats = self.table[name].to_numpy(zero_copy_only=False).astype(float)
        return found

    def visit(self, phase: str, number: float) -> tuple[int, int] | None:
        """The rows of a visit: the first, and the first behind it."""
        if self.is_empty:
            return None
        found = [(begin, end) for name, begin, end in self.visits if name == phase]
        return found[int(number) - 1] if len(found) >= number else None

    def value(self, name: str, row: int) -> float | None:
        """A value; None where it is empty."""
        found = float(self.column(name)[row])
        return None if np.isnan(found) else found


def _first(run: Run, phase: str, since: float = 0.0) -> float | None:
    """When a visit of a phase begins, the first from a time on."""
    trace = _Trace(run)
    if trace.is_empty:
        return None
    begins = [float(trace.times[begin]) for name, begin, _ in trace.visits if name == phase]
    return min((time for time in begins if time >= since), default=None)


def _visits(run: Run, phase: str, since: float = 0.0) -> float | None:
    trace = _Trace(run)
    if trace.is_empty:
        return None
    begins = [float(trace.times[begin]) for name, begin, _ in trace.visits if name == phase]
    return float(sum(time >= since for time in begins))


def _ends(run: Run, phase: str, since: float) -> float | None:
    trace = _Trace(run)
    if trace.is_empty:
        return None
    found = [
        float(trace.times[end])
        for name, begin, end in trace.visits
        if name == phase and float(trace.times[begin]) >= since
    ]
    return min(found, default=None)


def _stays(run: Run, phase: str, number: float = 1) -> float | None:
    trace = _Trace(run)
    rows = trace.visit(phase, number)
    return None if rows is None else float(trace.times[rows[1]] - trace.times[rows[0]])


def _rounds(run: Run, phase: str, number: float = 1) -> float | None:
    begin, end = (edge(run, "round", phase, number) for edge in (_entering, _leaving))
    return None if begin is None or end is None else end - begin


def _follows(run: Run, phase: str, following: str) -> float | None:
    trace = _Trace(run)
    if trace.is_empty:
        return None
    names = [name for name, _, _ in trace.visits]
    return float(sum(pair == (phase, following) for pair in pairwise(names)))


def _entering(run: Run, column: str, phase: str, number: float = 1) -> float | None:
    trace = _Trace(run)
    rows = trace.visit(phase, number)
    return None if rows is None else trace.value(column, rows[0])


def _leaving(run: Run, column: str, phase: str, number: float = 1) -> float | None:
    trace = _Trace(run)
    rows = trace.visit(phase, number)
    return None if rows is None else trace.value(column, rows[1])


def _during(run: Run, column: str, phase: str, number: float = 1) -> float | None:
    trace = _Trace(run)
    rows = trace.visit(phase, number)
    return None if rows is None else trace.value(column, (rows[0] + rows[1]) // 2)


def _within(run: Run, column: str, begin: float, end: float) -> Floats:
    trace = _Trace(run)
    if trace.is_empty:
        return np.empty(0)
    values = trace.column(column)[(trace.times >= begin) & (trace.times <= end)]
    found: Floats = values[~np.isnan(values)]
    return found


def _lowest(run: Run, column: str, begin: float, end: float) -> float | None:
    found = _within(run, column, begin, end)
    return float(found.min()) if len(found) else None


def _highest(run: Run, column: str, begin: float, end: float) -> float | None:
    found = _within(run, column, begin, end)
    return float(found.max()) if len(found) else None


STATE_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "first": _first,
    "visits": _visits,
    "ends": _ends,
    "stays": _stays,
    "rounds": _rounds,
    "follows": _follows,
    "entering": _entering,
    "leaving": _leaving,
    "during": _during,
    "lowest": _lowest,
    "highest": _highest,
}
"""By name: what the numbers of a row may call."""
