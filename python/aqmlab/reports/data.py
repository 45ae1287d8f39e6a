"""What a report draws: distributions and traces, thinned so that the page stays small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from aqmlab._util.lazy import np, pc
from aqmlab.figures.curves import ccdf_points, cdf_points
from aqmlab.results.directions import in_words
from aqmlab.results.distributions import Distribution, is_exact
from aqmlab.results.groups import Group, headline_class
from aqmlab.results.links import LinkDirection, loaded_links, main_link
from aqmlab.results.metrics import ALL
from aqmlab.results.run import Run

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

__all__ = [
    "CURVE_POINTS",
    "MOST_DRAWN",
    "PACKETS",
    "TAIL",
    "TRACE_BINS",
    "Distributions",
    "Trace",
    "Traces",
    "axis_limits",
    "binned",
    "distributions",
    "rows",
    "traces",
]


_Floats: TypeAlias = "npt.NDArray[np.float64]"

_POINTS = 45_000
"""Points of all curves of one chart together."""
MOST_DRAWN = 100
"""Most configurations that are drawn; all stand in the tables."""
CURVE_POINTS = (60, 500)
"""Fewest and most points of a curve."""
_TRACE_VALUES = 100_000
"""Numbers of all traces together."""
TRACE_BINS = (30, 240)
"""Fewest and most intervals of a trace."""
_NICE_TIMES = (
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    20.0,
    50.0,
    100.0,
    200.0,
    500.0,
)
"""Ends of the time axis, in seconds."""
TAIL = (0.5, 0.9, 0.95, 0.99, 0.999, 1.0)
"""Percentiles, as shares, that stand beside the tail's curve."""


@dataclass(frozen=True)
class _PageCurve:
    """The responses of a class under a configuration, all its runs together."""

    group: str
    traffic: str
    count: int
    cdf: tuple[_Floats, _Floats]
    """Time in seconds, share of responses up to it."""
    ccdf: tuple[_Floats, _Floats]
    """Time in seconds, share of responses that took that long or longer."""
    within: tuple[float, ...]
    """Shares at :attr:`Distributions.marks`."""
    tail: tuple[float, ...]
    """Times at the shares of :data:`TAIL`, in seconds."""


@dataclass(frozen=True)
class Distributions:
    """All distributions of a report."""

    curves: list[_PageCurve]
    limits: list[float]
    """Ends of the time axis to choose from, in seconds."""
    limit: float
    """The one that is chosen first."""
    points: int
    """Most points of a curve."""
    binned: bool
    """Whether some of the times are known to the width of a bin only."""

    @property
    def traffic(self) -> str:
        """The class whose curves are shown at first."""
        return self.curves[0].traffic

    @property
    def marks(self) -> list[float]:
        """Times at which the table beside the curves states the share, in seconds."""
        return self.limits[-8:]


def distributions(groups: Sequence[Group]) -> Distributions | None:
    """The distributions of all configurations; None if no run tells any.

    They are exact where a run recorded its responses, up to a million, else of the bins that every
    run keeps.
    """
    known = _with_table(groups, "responses", "distribution")
    limits, limit = axis_limits(known)
    if not known or not limits:
        return None
    several = max(len(group.classes) for group in known)
    points = _share_out(_POINTS, len(known) * several, CURVE_POINTS)
    binned = any(not is_exact(run.without_tables()) for group in known for run in group.runs)
    result = Distributions([], limits, limit, points, binned)
    for group in known:
        runs = [_response_times(run, group.classes) for run in group.runs]
        for traffic in group.classes:
            parts = [times[traffic] for times in runs if traffic in times and times[traffic].total]
            if parts:
                result.curves.append(_curve(group.label, traffic, parts, result))
    return result if result.curves else None


def _with_table(groups: Sequence[Group], *names: str) -> list[Group]:
    """The configurations that have one of some tables, as far as they are drawn."""
    found = [group for group in groups if any(group.first.has(name) for name in names)]
    return found[:MOST_DRAWN]


def axis_limits(groups: Sequence[Group]) -> tuple[list[float], float]:
    """Ends of the time axis: from the fastest median to the slowest 99th percentile."""
    traffic = headline_class(groups) if groups else ALL
    summaries = [
        run.summary["responses"].get(traffic, {}) for group in groups for run in group.runs
    ]
    found = [
        [float(summary[key]) for key in ("p50_s", "p90_s", "p99_s")]
        for summary in summaries
        if summary.get("p99_s") is not None
    ]
    if not found:
        return [], 0.0
    medians, p90s, p99s = (sorted(column) for column in zip(*found, strict=True))
    top = next((time for time in _NICE_TIMES if time >= p99s[-1]), _NICE_TIMES[-1])
    limits = [time for time in _NICE_TIMES if medians[0] <= time <= top] or [top]
    middle = p90s[len(p90s) // 2]
    return limits, next((time for time in limits if time >= middle), limits[-1])


def _share_out(budget: int, parts: int, bounds: tuple[int, int]) -> int:
    """What each part may have of a budget, within bounds."""
    return min(max(budget // max(parts, 1), bounds[0]), bounds[1])


def _response_times(run: Run, classes: Sequence[str]) -> dict[str, Distribution]:
    """A run's response times by class; read anew, so that memory is freed."""
    read = run.without_tables()
    if not is_exact(read):
        return {
            name: Distribution.of_run(read, "response", None if name == ALL else name)
            for name in classes
        }
    table = _read_columns(run, "responses", ["class", "response_s"])
    parts = {str(name): pc.equal(table["class"], name) for name in pc.unique(table["class"])}
    times = {name: table.filter(mask)["response_s"].to_numpy() for name, mask in parts.items()}
    times[ALL] = table["response_s"].to_numpy()
    return {name: Distribution.exact(np.sort(found)) for name, found in times.items()}


def _read_columns(run: Run, name: str, columns: list[str] | None) -> pa.Table:
    """Columns of one of a run's tables."""
    table = run.read(name, columns)
    assert table is not None  # a run without the table is left out before
    return table


def _curve(
    group: str, traffic: str, parts: Sequence[Distribution], of: Distributions
) -> _PageCurve:
    """The distribution of some runs' times together."""
    times = Distribution.together(parts)
    return _PageCurve(
        group=group,
        traffic=traffic,
        count=times.total,
        cdf=_thinned(*cdf_points(times, of.limits[-1]), of.points),
        ccdf=_thinned(*ccdf_points(times), of.points),
        within=tuple(map(float, times.shares(np.array(of.marks)))),
        tail=tuple(times.time_s(share) for share in TAIL),
    )


def _thinned(at: _Floats, share: _Floats, most: int) -> tuple[_Floats, _Floats]:
    """At most so many of a curve's points, the first and the last among them."""
    kept = np.unique(np.linspace(0, len(at) - 1, min(len(at), most)).astype(int))
    return at[kept], share[kept]


PACKETS = "packets"
"""The variable that every queue has."""


@dataclass(frozen=True)
class Trace:
    """One variable of a queue over time: smallest, mean, largest by interval."""

    group: str
    direction: str
    """Link and direction in words, such as "upload"."""
    variable: str
    """``packets``, or an inner variable of the law."""
    columns: Mapping[str, list[float]]
    """``time`` (simulated seconds), ``min``, ``mean``, ``max``."""


@dataclass(frozen=True)
class Traces:
    """All traces of a report: of each configuration the run of its smallest seed."""

    traces: list[Trace]
    bins: int
    """Most intervals of a trace."""

    @property
    def directions(self) -> list[str]:
        """Links and directions, the most loaded one first."""
        return list(dict.fromkeys(trace.direction for trace in self.traces))

    @property
    def probabilities(self) -> list[Trace]:
        """Each law's probability of a signal, in the first direction; the papers call it p or p_b.

        A name is not enough: DCN's p_ref is a number of packets.
        """
        found: dict[str, Trace] = {}
        for trace in sorted(self.traces, key=lambda trace: trace.variable != "p"):
            named = trace.variable == "p" or trace.variable.startswith("p_")
            first = trace.direction == self.directions[0]
            if named and first and max(trace.columns["max"]) <= 1:
                found.setdefault(trace.group, trace)
        order = {trace.group: number for number, trace in enumerate(self.traces)}
        return sorted(found.values(), key=lambda trace: order[trace.group])

    @property
    def variables(self) -> list[str]:
        """Names of the inner variables, in the order in which they appear."""
        names = dict.fromkeys(trace.variable for trace in self.traces)
        return [name for name in names if name != PACKETS]


_KEYS = ("link", "direction", "time_s", PACKETS, "bytes")
"""Columns of ``queue.parquet`` that are not inner variables."""


def traces(groups: Sequence[Group]) -> Traces | None:
    """Queue lengths and inner variables at the links that are loaded in one direction at least.

    None if no run recorded its queue.
    """
    recorded = _with_table(groups, "queue")
    places = _places([group.first for group in recorded])
    series = [
        (
            group.label,
            in_words(at, group.first.scenario),
            variable,
            *(part[name].to_numpy() for name in ("time_s", variable)),
        )
        for group in recorded
        for table in [_read_columns(group.first, "queue", None)]
        for at in places
        for part in [_at(table, at)]
        for variable in [PACKETS, *(name for name in table.column_names if name not in _KEYS)]
        if part[variable].null_count < len(part)
    ]
    if not series:
        return None
    bins = _share_out(_TRACE_VALUES, 4 * len(series), TRACE_BINS)
    return Traces(
        [
            Trace(label, direction, variable, binned(time, values, bins))
            for label, direction, variable, time, values in series
        ],
        bins,
    )


def _places(runs: Sequence[Run]) -> list[LinkDirection]:
    """The most loaded direction, the other loaded ones, then what lies opposite to them."""
    loaded = loaded_links(runs)
    first = [main_link(runs)] if loaded else []
    opposite = [LinkDirection(at.link, _OPPOSITE[at.direction]) for at in loaded]
    return list(dict.fromkeys([*first, *loaded, *opposite]))


_OPPOSITE = {"forward": "reverse", "reverse": "forward"}


def _at(table: pa.Table, at: LinkDirection) -> pa.Table:
    """The samples of one direction of a link."""
    own = pc.and_(pc.equal(table["link"], at.link), pc.equal(table["direction"], at.direction))
    return table.filter(own)


def binned(time: _Floats, values: _Floats, bins: int) -> dict[str, list[float]]:
    """Smallest, mean and largest value in equal intervals of time; empty ones are left out.

    So are values that are not finite.
    """
    values = values.astype(float)
    known = np.isfinite(values)
    times, values = time[known], values[known]
    begin = float(times.min(initial=np.inf))
    width = float(np.ptp(times)) / bins if len(times) > 1 else 0.0
    index = np.clip(np.floor((times - begin) / (width or 1.0)), 0, bins - 1)
    order = np.argsort(index, kind="stable")
    _, first, count = np.unique(index[order], return_index=True, return_counts=True)
    times, values = times[order], values[order]
    found = {
        "time": np.add.reduceat(times, first) / count,
        "min": np.minimum.reduceat(values, first),
        "mean": np.add.reduceat(values, first) / count,
        "max": np.maximum.reduceat(values, first),
    }
    return {name: _rounded(column) for name, column in found.items()}


def _rounded(values: _Floats, digits: int = 5) -> list[float]:
    """Values to some significant digits, so that they take little room."""
    return [int(value) if value == int(value) else float(f"{value:.{digits}g}") for value in
            map(float, values)]  # fmt: skip


def rows(
    found: Distributions, which: Literal["cdf", "ccdf"], most: int = CURVE_POINTS[1]
) -> list[dict[str, Any]]:
    """The curves as a chart's data: one row per curve, its points as lists."""
    shown = [(curve, curve.cdf if which == "cdf" else curve.ccdf) for curve in found.curves]
    points = [(curve, _thinned(at, share, most)) for curve, (at, share) in shown]
    return [
        {
            "run": curve.group,
            "class": curve.traffic,
            "time": _rounded(at),
            "share": _rounded(100 * share),
        }
        for curve, (at, share) in points
    ]
