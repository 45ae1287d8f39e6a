"""Distributions of times: of responses, of connections, of packets in a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from aqmlab._util.words import capital
from aqmlab.errors import AqmlabError
from aqmlab.figures import curves
from aqmlab.figures.axes import Axis, limit_above, linear, logarithmic, ticks_between
from aqmlab.figures.findings import Finding, finding
from aqmlab.figures.grammar import Channel, Chart, inline, vconcat
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.results.configurations import Configuration, chosen_links, seeds_in_words
from aqmlab.results.directions import in_words, placed
from aqmlab.results.distributions import Distribution, rows_with
from aqmlab.results.groups import band, headline_class
from aqmlab.results.links import LinkDirection
from aqmlab.results.metrics import ALL
from aqmlab.results.run import Run
from aqmlab.results.statistics import Floats

__all__ = ["Of", "Points", "Selection", "Tail", "view", "views"]


Of = Literal["response", "flow", "delay"]
"""Response times, durations of connections, or queueing delays."""
Tail = Literal["cdf", "ccdf"]
Points: TypeAlias = Sequence[tuple[float, float]]
"""Times in seconds, and the shares that took at most as long."""

_WORDS: Mapping[Of, tuple[str, str]] = {
    "response": ("response time", "responses"),
    "flow": ("duration of connections", "connections"),
    "delay": ("queueing delay", "packets"),
}
"""What the times are called, and whose they are."""
_SPREAD = 12.0
"""From this ratio of the slowest to the fastest curve on, time is logarithmic."""
_SHOWN = 0.9
"""Share of the slowest curve that a linear axis shows."""
_LEAST_S = 1e-5
"""Where a logarithmic axis of time begins, at the least."""


@dataclass(frozen=True)
class Selection:
    """Which times are drawn."""

    of: Of = "response"
    traffic: str | None = None
    """A class of traffic; None: all together."""
    link: str | None = None
    direction: str | None = None
    limit_s: float | None = None
    """End of the time axis; None: it follows from the data."""


@dataclass(frozen=True)
class _Curve:
    """The times of a configuration, a distribution for each run."""

    name: str
    times: Sequence[Distribution]
    seeds: Sequence[int]
    recorded: Run | None
    """The run whose recorded responses give the band, if it is the only one."""
    traffic: str
    """The class whose times these are, or "all"."""

    @cached_property
    def together(self) -> Distribution:
        """The times of all runs."""
        return Distribution.together(self.times)

    def band(self, grid: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean share up to each time, and the ends of its interval."""
        run = None if self.recorded is None else self.recorded.without_tables()
        return band(self.times, grid, run, self.traffic)

    def quantile(self, share: float) -> Finding:
        """A quantile by seed, in seconds."""
        values = [one.time_s(share) for one in self.times]
        return Finding(self.name, dict(zip(self.seeds, values, strict=True)))


@dataclass(frozen=True)
class _Panel:
    """Curves that share a plot."""

    title: str
    curves: Sequence[_Curve]
    place: str = ""
    """Whose the times are, after their name."""


def view(
    found: Sequence[Configuration],
    look: Look,
    tail: Tail,
    selection: Selection,
    published: Mapping[str, Points] | None = None,
) -> Figure:
    """Distributions up to each time, or what took that long or longer.

    Args:
        found: The configurations.
        look: The look.
        tail: Which of the two.
        selection: Which times.
        published: Points to draw beside ours, by the configuration's label.
    """
    [figure] = views(found, look, [tail], selection, published)
    return figure


def views(
    found: Sequence[Configuration],
    look: Look,
    tails: Sequence[Tail],
    selection: Selection,
    published: Mapping[str, Points] | None = None,
) -> list[Figure]:
    """A :func:`view` for each of some tails, of runs that are read once."""
    _check(selection)
    selection = _of_one_kind(found, selection)
    panels = _panels(found, selection)
    return [_view(found, look, tail, selection, panels, published or {}) for tail in tails]


def _view(
    found: Sequence[Configuration],
    look: Look,
    tail: Tail,
    selection: Selection,
    panels: Sequence[_Panel],
    published: Mapping[str, Points],
) -> Figure:
    """The figure of one tail."""
    names = [entry.label for entry in found]
    what, counted = _WORDS[selection.of]
    share, words = (
        (0.5, f"median {what}") if tail == "cdf" else (0.99, f"99th percentile of {what}")
    )
    if selection.of == "response" and tail == "ccdf":
        words = "99th percentile of response times"
    place = f" {panels[0].place}".rstrip()
    if selection.traffic:
        place += f" of {selection.traffic}"
    unit, scale = _unit([one for panel in panels for one in panel.curves])
    said = [one.quantile(share) for one in panels[0].curves]
    in_unit = [
        Finding(one.label, {seed: scale * value for seed, value in one.values.items()})
        for one in said
    ]
    which = "that end within a time" if tail == "cdf" else "that take that long or longer"
    if selection.of == "delay":
        which = "queued at most a time" if tail == "cdf" else "queued that long or longer"
    heading = Heading(
        finding(in_unit, words + place, unit),
        (
            f"Share of {counted} {which}{_whose(selection)}; {_of_whom(found)}",
            *_bands_of(panels),
            *(("dots: published",) if published else ()),
        ),
    )

    x = _time_axis([one for panel in panels for one in panel.curves], tail, selection)
    drawn = [_drawn(panel, tail, selection, x, scale) for panel in panels]

    def build(room: float) -> Chart:
        height = look.size.height if len(drawn) < 3 else 1.4 * look.size.low
        plots = [_plot(one, names, look, tail, (room, height), published) for one in drawn]
        return plots[0] if len(plots) == 1 else vconcat(*plots, spacing=look.size.text)

    return Figure(heading, build)


def _check(selection: Selection) -> None:
    """An error for what would not change the figure: packets have links, the others have classes.

    Raises:
        AqmlabError: a link or direction of times other than queueing delays, or a class of these.
    """
    counted = _WORDS[selection.of][1]
    lost, why, other = ["link", "direction"], f"{counted} belong to no link", "delay"
    if selection.of == "delay":
        lost, why, other = (
            ["traffic"],
            "queueing delays are those of all packets",
            "response or flow",
        )
    for name in lost:
        if (value := getattr(selection, name)) is not None:
            raise AqmlabError(
                f"{name}: found {value}, but {why}; choose of = {other}, or leave it out"
            )


def _of_one_kind(found: Sequence[Configuration], selection: Selection) -> Selection:
    """What was asked for; of responses of different kinds those that headlines speak of."""
    if selection.of != "response" or selection.traffic is not None:
        return selection
    traffic = headline_class([entry.group for entry in found])
    return selection if traffic == ALL else replace(selection, traffic=traffic)


def _of_whom(found: Sequence[Configuration]) -> str:
    """The configuration if it is one, and the seeds."""
    seeds = seeds_in_words(found)
    return f"{found[0].label}, {seeds}" if len(found) == 1 else seeds


def _whose(selection: Selection) -> str:
    """The class in words."""
    return f", class {selection.traffic}" if selection.traffic else ""


def _bands_of(panels: Sequence[_Panel]) -> tuple[str, ...]:
    """What the bands are, in words."""
    drawn = [one for panel in panels for one in panel.curves]
    if any(len(one.times) > 1 for one in drawn):
        return ("bands: 95 % intervals of the mean over seeds",)
    if any(one.recorded is not None for one in drawn):
        return ("bands: 95 % intervals from blocks of the measured time",)
    return ()


def _unit(drawn: Sequence[_Curve]) -> tuple[str, float]:
    """The unit of times, and its number in a second."""
    slowest = max(one.together.time_s(0.95) for one in drawn)
    return ("ms", 1e3) if slowest < 1 else ("s", 1.0)


def _panels(found: Sequence[Configuration], selection: Selection) -> list[_Panel]:
    """The curves: one plot of times that users see, one per direction of those in queues."""
    if selection.of == "delay":
        panels = [
            _Panel(
                in_words(at, found[0].runs[0].scenario),
                _curves(found, selection, at),
                placed(at, found[0].runs[0].scenario),
            )
            for at in chosen_links(found, selection.link, selection.direction)
        ]
        panels = [panel for panel in panels if panel.curves]
        if not panels:
            raise AqmlabError(
                "no run has queueing delays at these links: name others with --link and --direction"
            )
        return panels
    drawn = _curves(found, selection, None)
    if not drawn:
        whose = f" of class {selection.traffic}" if selection.traffic else ""
        raise AqmlabError(
            f"no run has {_WORDS[selection.of][1]}{whose}: the class is unknown, or none ended in "
            "the measured span"
        )
    return [_Panel("", drawn)]


def _curves(
    found: Sequence[Configuration], selection: Selection, at: LinkDirection | None
) -> list[_Curve]:
    """The configurations that tell something.

    Runs are read one after the other: memory holds the recorded rows of one at a time.
    """
    drawn = []
    for entry in found:
        times = {run.seed: _times(run.without_tables(), selection, at) for run in entry.runs}
        known = {seed: one for seed, one in times.items() if one.total}
        if not known:
            continue
        only = entry.runs[0] if len(entry.runs) == 1 else None
        blocks = selection.of == "response" and only is not None and only.has("responses")
        recorded = only if blocks else None
        traffic = selection.traffic or ALL
        drawn.append(_Curve(entry.label, list(known.values()), list(known), recorded, traffic))
    return drawn


def _times(run: Run, selection: Selection, at: LinkDirection | None) -> Distribution:
    """The times of a run: exact where it recorded rows, else of its bins; maybe nothing."""
    if at is not None:
        table = run.read("sojourn")
        if table is None:
            return Distribution.together([])
        chosen = rows_with(table["link"], at[0]) & rows_with(table["direction"], at[1])
        own = [table[name].to_numpy()[chosen] for name in ("below_s", "count")]
        return Distribution.together([Distribution(*own)])
    of: Literal["response", "flow"] = "flow" if selection.of == "flow" else "response"
    if selection.traffic is None:
        return Distribution.known_of(run, of)
    if run.distribution is None:
        return Distribution.together([])
    return Distribution.of_run(run, of, selection.traffic)


@dataclass(frozen=True)
class _Drawn:
    """What stands in a plot."""

    title: str
    x: Axis
    y: Axis
    rows: Sequence[curves.Row]
    scale: float
    """What turns seconds into the unit of the axis."""


def _drawn(panel: _Panel, tail: Tail, selection: Selection, x: Axis, scale: float) -> _Drawn:
    """Axes and points of a plot; all plots have the same axis of time."""
    counted = _WORDS[selection.of][1]
    rows = [row for one in panel.curves for row in _rows(one, tail, x, scale)]
    if tail == "cdf":
        y = Axis(f"Share of {counted} (%)", 0, 100, (0, 20, 40, 60, 80, 100))
    else:
        rarest = min(share for row in rows if isinstance(share := row["y"], float) and share)
        y = logarithmic(f"Share of {counted} (%)", [rarest, 100])
    return _Drawn(panel.title, x, y, rows, scale)


def _plot(
    drawn: _Drawn,
    names: Sequence[str],
    look: Look,
    tail: Tail,
    room: tuple[float, float],
    published: Mapping[str, Points],
) -> Chart:
    """One plot of a width and height."""
    x, y, scale = drawn.x, drawn.y, drawn.scale
    chart = curves.banded(
        drawn.rows,
        names,
        look,
        x,
        y,
        width=room[0],
        height=room[1],
        unit="%",
        steps="step-after" if tail == "cdf" else "step-before",
    )
    dots = [
        {"series": name, "x": scale * time, "y": 100 * (share if tail == "cdf" else 1 - share)}
        for name, points in published.items()
        for time, share in points
        if x.low <= scale * time <= x.high and (tail == "cdf" or share < 1)
    ]
    if dots:
        chart += (
            Chart(inline(dots))
            .mark(
                "point",
                filled=True,
                opacity=1,
                size=5 * look.size.text,
                stroke=look.colours.background,
                strokeWidth=0.7,
            )
            .encode(
                x=x.x("x"),
                y=y.y("y"),
                color=look.colour(names),
                tooltip=[Channel("series:N", title="published")],
            )
        )
    return chart.properties(title=drawn.title) if drawn.title else chart


def _time_axis(drawn: Sequence[_Curve], tail: Tail, selection: Selection) -> Axis:
    """The axis of times: as far as the data go, logarithmic where they are of unlike size."""
    unit, scale = _unit(drawn)
    what = _WORDS[selection.of][0]
    title = f"{capital(what)} ({unit})"
    all_times = [one.together for one in drawn]
    if selection.limit_s is not None and tail == "cdf":
        if not selection.limit_s > 0:
            raise AqmlabError(f"limit_s: found {selection.limit_s}; expected a time above 0")
        end = scale * selection.limit_s
        return Axis(title, 0, end, ticks_between(0, end, 6))
    if tail == "ccdf":
        low = min(float(one.below_s[0]) for one in all_times)
        high = max(float(one.below_s[-1]) for one in all_times)
        low = max(low, _LEAST_S, high / 1e5)
        return logarithmic(f"{title}, logarithmic", [scale * low, scale * high])
    slow = max(one.time_s(_SHOWN) for one in all_times)
    fast = max(min(one.time_s(0.5) for one in all_times), _LEAST_S)
    if slow <= _SPREAD * fast:
        return linear(title, [0, limit_above(scale * slow)], count=6, tight=True)
    low = max(min(one.time_s(0.01) for one in all_times), _LEAST_S)
    high = max(one.time_s(0.995) for one in all_times)
    return logarithmic(f"{title}, logarithmic", [scale * low, scale * high])


def _rows(one: _Curve, tail: Tail, x: Axis, scale: float) -> list[curves.Row]:
    """A curve and its band, in per cent."""
    if tail == "cdf":
        at = curves.cdf_points(one.together, x.high / scale)[0]
        at = np.r_[x.low / scale, at[at > x.low / scale]]
        mean, low, high = one.band(at)
    else:
        at = curves.ccdf_points(one.together)[0]
        # Up to just before each time: what takes that long or longer is the rest.
        mean, low, high = one.band(np.nextafter(at, 0))
        mean, low, high = 1 - mean, 1 - high, 1 - low
        # A logarithmic axis has no zero: below a tenth of the curve a band is not drawn further.
        low = np.maximum(low, mean / 10)
    return [
        {
            "series": one.name,
            "x": curves.number(scale * time),
            "y": curves.number(100 * share),
            "low": curves.number(100 * below),
            "high": curves.number(100 * above),
        }
        for time, share, below, above in zip(at, mean, low, high, strict=True)
    ]
