"""Traced connections of runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run
from aqmlab.results.statistics import Floats

__all__ = ["Traced", "trace"]


Words: TypeAlias = "np.ndarray[Any, np.dtype[np.str_]]"
_COLUMNS = ("time_s", "cwnd_bytes", "rtt_s", "in_flight_bytes")


@dataclass(frozen=True)
class Traced:
    """A connection over time: rows in order of time."""

    traffic: str
    """Its class."""
    time_s: Floats
    cwnd_bytes: Floats
    rtt_s: Floats
    """NaN where the sender has no estimate."""
    in_flight_bytes: Floats
    phase: Words
    """What its congestion control is doing; empty where nothing says it."""

    @property
    def is_timed(self) -> bool:
        """Whether any row has a round-trip time."""
        return not bool(np.isnan(self.rtt_s).all())

    @property
    def rate(self) -> Floats:
        """Bytes in flight over the round-trip time, in bytes per second."""
        found: Floats = self.in_flight_bytes / self.rtt_s
        return found

    def after(self, begin_s: float) -> Traced:
        """Its rows from a time on."""
        kept = self.time_s >= begin_s
        found = {name: getattr(self, name)[kept] for name in (*_COLUMNS, "phase")}
        return replace(self, **found)


def trace(run: Run, flow: int | None = None) -> list[tuple[str, Traced]]:
    """A run's traced connections, each with its name; one of them if its number is given."""
    table = run.read("flow_trace")
    if table is None or table.num_rows == 0:
        return []
    columns = [table[name].to_numpy().astype(float) for name in _COLUMNS]
    known = "phase" in table.column_names  # runs of earlier versions have none
    phases = np.array(table["phase"].to_pylist() if known else [""] * table.num_rows)
    number_of = table["flow"].to_numpy()
    order = np.lexsort((columns[0], number_of))
    numbers, begins = np.unique(number_of[order], return_index=True)
    if flow is not None and flow not in numbers:
        raise AqmlabError(
            f"{run.path}: flow: found {flow}; the trace has {', '.join(map(str, numbers))}"
        )
    found = []
    for number, rows in zip(numbers.tolist(), np.split(order, begins[1:]), strict=True):
        traffic = str(table["class"][int(rows[0])].as_py())
        time_s, cwnd, rtt, in_flight = (column[rows] for column in columns)
        part = Traced(traffic, time_s, cwnd, rtt, in_flight, phases[rows])
        if flow in (None, number) and part.is_timed:
            found.append((f"{number} ({traffic})", part))
    return found
