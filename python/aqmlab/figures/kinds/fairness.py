"""Fairness over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aqmlab.errors import AqmlabError
from aqmlab.figures import curves
from aqmlab.figures.axes import Axis, linear
from aqmlab.figures.compared import compared
from aqmlab.figures.findings import Finding, finding
from aqmlab.figures.grammar import Chart
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.figures.tracing import trace
from aqmlab.results.configurations import Configuration, Sources, seeds_in_words
from aqmlab.results.run import Run
from aqmlab.results.statistics import estimates

__all__ = ["fairness", "jain", "windows"]


def fairness(
    runs: Sources,
    *,
    window_s: float = 1.0,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Jain's index of the connections' rates over time.

    The index is 1 where all get the same, and 1/n where one of n gets all. The data are in
    flow_trace.parquet. The rate of a connection in a window is an estimate: mean bytes in flight
    over the round-trip time, and 0 without acknowledgements. Connections that end within a window
    do not count, nor do windows with fewer than two connections.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        window_s: Length of the intervals in seconds.
        look: Width and theme.
    """
    if not window_s > 0:
        raise AqmlabError(f"window_s: found {window_s}; expected a time above 0")
    found = compared(runs, look)
    by_case = {
        entry.label: {run.seed: windows(run, window_s) for run in entry.runs} for entry in found
    }
    if not any(len(times) for one in by_case.values() for times, _ in one.values()):
        raise AqmlabError(
            "no run traced two connections over a whole window: set measure.flow_trace, such as "
            '{ flows = 8, period = "100 ms" }, or a longer window_s, and run again'
        )
    return _view(found, by_case, window_s, look).chart(look)


def _view(
    found: Sequence[Configuration],
    by_case: dict[str, dict[int, tuple[np.ndarray, np.ndarray]]],
    window_s: float,
    look: Look,
) -> Figure:
    """The curves."""
    said = [
        Finding(name, {seed: float(index.mean()) for seed, (_, index) in one.items() if len(index)})
        for name, one in by_case.items()
    ]
    rows = [row for name, one in by_case.items() for row in _rows(name, list(one.values()))]
    ends = [float(str(row["x"])) for row in rows]
    x = linear("Simulated time (s)", ends, count=6, tight=True)
    y = Axis("Jain's index", 0.0, 1.0, (0, 0.2, 0.4, 0.6, 0.8, 1))
    names = [entry.label for entry in found]
    several = any(len(entry.runs) > 1 for entry in found)
    who = f" of {found[0].label}" if len(found) == 1 else ""
    heading = Heading(
        finding(said, "mean Jain's index", ""),
        (
            f"traced connections{who}, windows of {window_s:g} s; {seeds_in_words(found)}",
            "rates are estimates: bytes in flight / RTT"
            + ("; bands: 95 % intervals of the mean over seeds" if several else ""),
        ),
    )

    def build(room: float) -> Chart:
        plot: Chart = curves.banded(rows, names, look, x, y, width=room, height=look.size.height)
        return plot

    return Figure(heading, build)


def _rows(name: str, runs: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[curves.Row]:
    """A curve: of one run, or the mean of several where all of them have the window."""
    every = sorted(set.intersection(*(set(times.tolist()) for times, _ in runs)))
    table = (
        np.stack(
            [
                [dict(zip(times.tolist(), index, strict=True))[at] for at in every]
                for times, index in runs
            ]
        )
        if every
        else np.empty((len(runs), 0))
    )
    mean, low, high, _ = estimates(table, bounds=(0.0, 1.0))
    return [
        {
            "series": name,
            "x": at,
            "y": curves.number(value),
            "low": curves.number(below),
            "high": curves.number(above),
        }
        for at, value, below, above in zip(every, mean, low, high, strict=True)
    ]


def windows(run: Run, window_s: float) -> tuple[np.ndarray, np.ndarray]:
    """The middles of a run's windows in seconds, and Jain's index in each.

    Windows begin with the measured span.
    """
    traced = trace(run.without_tables())
    begin = float(run.summary["simulated_s"]) - float(run.summary["measured_s"])
    count = int((float(run.summary["simulated_s"]) - begin) / window_s + 1e-9)
    rates = np.full((len(traced), count), np.nan)
    for number, (_, part) in enumerate(traced):
        known = ~np.isnan(part.rtt_s)
        time, rate = part.time_s[known], part.rate[known]
        index = np.floor((time - begin) / window_s).astype(int)
        inside = (index >= 0) & (index < count)
        totals = np.bincount(index[inside], weights=rate[inside], minlength=count)
        seen = np.bincount(index[inside], minlength=count)
        # A sender that hears nothing in a window has no row in it: nothing gets through.
        rates[number] = totals / np.maximum(seen, 1)
        starts = begin + window_s * np.arange(count)
        # It lasts the whole window if it has rows at or before its begin, and after its end.
        whole = (time.min() <= starts + 1e-9) & (time.max() >= starts + 0.9 * window_s)
        rates[number, ~whole] = np.nan
    several = np.sum(np.isfinite(rates), axis=0) > 1
    middles = begin + window_s * (np.arange(count) + 0.5)
    index = np.array([jain(column[np.isfinite(column)]) for column in rates[:, several].T])
    return np.round(middles[several], 9), index


def jain(rates: np.ndarray) -> float:
    """Jain's index ``(Σx)² / (n Σx²)``; 1 of nothing but zeros."""
    squares = float(np.sum(rates**2))
    return float(np.sum(rates) ** 2 / (len(rates) * squares)) if squares else 1.0
