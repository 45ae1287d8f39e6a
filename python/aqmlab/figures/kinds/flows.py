"""Connections over time: congestion window, round-trip time, rate."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from aqmlab.errors import AqmlabError
from aqmlab.figures.compared import compared
from aqmlab.figures.findings import Finding, finding, shown
from aqmlab.figures.grammar import Chart
from aqmlab.figures.phases import has_phases, strip
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.figures.timelines import Panel, Series, stacked
from aqmlab.figures.tracing import Traced, trace
from aqmlab.results.configurations import Configuration, Sources
from aqmlab.results.run import Run
from aqmlab.results.statistics import Floats

__all__ = ["flows"]


_MOST = 4
"""Connections of a run that are drawn."""
_MOST_TOGETHER = 8
"""Connections of several configurations that are drawn."""
_PANELS: Sequence[tuple[str, Callable[[Traced], Floats]]] = (
    ("Cwnd (kB)", lambda part: part.cwnd_bytes / 1e3),
    ("RTT (ms)", lambda part: 1e3 * part.rtt_s),
    ("Rate (Mbit/s)", lambda part: 8e-6 * part.rate),
)


def flows(
    runs: Sources,
    *,
    flow: int | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Window, round-trip time and rate of connections.

    The data are in flow_trace.parquet (measure.flow_trace), for the smallest seed, after the
    warm-up. The figure shows the connections that last longest: up to four for one configuration,
    at least one of each class. For several configurations it shows one of each class, or of the
    first class if that makes more than eight curves. The round-trip time is the sender's smoothed
    estimate. The rate is an estimate, too: bytes in flight over that time. A strip below shows the
    phases of controls that have some, such as BBR.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        flow: Number of a connection; default: the connections that last longest.
        look: Width and theme.
    """
    found = compared(runs, look)
    return _view(found, flow, look).chart(look)


def _view(found: Sequence[Configuration], flow: int | None, look: Look) -> Figure:
    """The three plots."""
    traced = {entry.label: _measured(entry.runs[0], flow) for entry in found}
    series = _named(traced)
    if not series:
        raise AqmlabError(
            "no run recorded a connection after the warm-up: set measure.flow_trace, such as "
            '{ flows = 4, period = "20 ms" }, and run again'
        )
    panels = [
        Panel("", title, {name: _column(one.time_s, of(one)) for name, one in series.items()})
        for title, of in _PANELS
    ]
    of_seed = ", ".join(f"seed {seed}" for seed in sorted({entry.runs[0].seed for entry in found}))
    who = f" of {found[0].label}" if len(found) == 1 else ""
    which = (
        f"connection{'s' if len(series) > 1 else ''} {', '.join(series)}"
        if who
        else "the longest-lived connection of each"
    )
    heading = Heading(
        _finding(found, series),
        (
            f"{which}{who}; {of_seed}",
            "RTT: the sender's smoothed one; rate: an estimate, bytes in flight / RTT",
        ),
    )

    # A curve that is a configuration has its colour, also beside one that recorded none.
    labels = [entry.label for entry in found]
    names = labels if len(found) > 1 and set(series) <= set(labels) else list(series)

    def build(room: float) -> Chart:
        if not has_phases(series):
            return stacked(panels, names, look, room)
        return stacked(panels, names, look, room, lambda x: strip(series, look, x, room))

    return Figure(heading, build)


def _measured(run: Run, flow: int | None) -> list[tuple[str, Traced]]:
    """The traced connections of a run, after its warm-up."""
    begin = float(run.summary["simulated_s"]) - float(run.summary["measured_s"])
    parts = [(name, part.after(begin)) for name, part in trace(run, flow)]
    return [(name, part) for name, part in parts if part.is_timed]


def _finding(found: Sequence[Configuration], series: Mapping[str, Traced]) -> str:
    """What happens to the round-trip time."""
    medians = {name: 1e3 * float(np.median(_rtt(one))) for name, one in series.items()}
    if len(found) > 1:
        said = [Finding(name, {0: value}) for name, value in medians.items()]
        return finding(said, "median round-trip time", "ms")
    least = 1e3 * min(float(_rtt(one).min()) for one in series.values())
    middle = float(np.median(list(medians.values())))
    return (
        f"Round-trip times: {shown(least)} ms at the least, {shown(middle)} ms in the median "
        "(one seed)"
    )


def _named(traced: Mapping[str, Sequence[tuple[str, Traced]]]) -> dict[str, Traced]:
    """The connections that are drawn, by their names in the legend."""
    known = {label: _longest_first(one) for label, one in traced.items() if one}
    if len(known) == 1:
        return dict(next(iter(known.values()))[:_MOST])
    each = {label: _one_each(one) for label, one in known.items()}
    together = {f"{label}, {part.traffic}": part for label, parts in each.items() for part in parts}
    several = any(len(parts) > 1 for parts in each.values())
    if several and len(together) <= _MOST_TOGETHER:
        return together
    return {label: parts[0] for label, parts in each.items()}


def _longest_first(
    traced: Sequence[tuple[str, Traced]],
) -> list[tuple[str, Traced]]:
    """Connections by how long they last: the longest of each class, then the second ones, ..."""
    by_class: dict[str, list[tuple[str, Traced]]] = {}
    for name, part in sorted(traced, key=lambda one: -_lasts_s(one[1])):
        by_class.setdefault(part.traffic, []).append((name, part))
    classes = list(dict.fromkeys(part.traffic for _, part in traced))
    turns = itertools.zip_longest(*(by_class[name] for name in classes))
    return [one for turn in turns for one in turn if one is not None]


def _one_each(ordered: Sequence[tuple[str, Traced]]) -> list[Traced]:
    """The longest-lived connection of each class."""
    found: dict[str, Traced] = {}
    for _, part in ordered:
        found.setdefault(part.traffic, part)
    return list(found.values())


def _lasts_s(part: Traced) -> float:
    """How long a connection is traced."""
    return round(float(part.time_s[-1] - part.time_s[0]), 3)


def _rtt(part: Traced) -> np.ndarray:
    """A connection's round-trip times, in seconds."""
    return part.rtt_s[~np.isnan(part.rtt_s)]


def _column(times: Floats, values: Floats) -> Series:
    """A connection's values over time, where there are any."""
    known = ~np.isnan(values)
    return [(times[known], values[known])]
