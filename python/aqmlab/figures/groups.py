"""Figures of runs with different seeds taken together: distributions with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import altair as alt
import numpy as np

from aqmlab.figures import base as figures
from aqmlab.results.distributions import Distribution, Of
from aqmlab.results.groups import Group
from aqmlab.results.run import Run
from aqmlab.results.statistics import Floats

__all__ = ["ccdf", "cdf", "comparison", "curve", "distributions"]


_SEEDS = "bands: 95 % intervals of the mean over seeds"
_SINGLE = "one run each"
_BLOCKS = "bands: 95 % intervals from blocks of the measured time; one run each"


def comparison(groups: Sequence[Group], limit_s: float = 2.0) -> figures.Chart:
    """Both distributions with their intervals above the queues of the first seeds.

    The curve of several runs is the mean of theirs. Labels carry the number of runs.
    """
    firsts = _firsts_of(groups)
    views: list[alt.HConcatChart | alt.FacetChart] = []
    if (times := distributions(groups, limit_s)) is not None:
        views.append(times)
    if any(run.queue is not None for run in firsts):
        queues = figures.queue_view(firsts, width=2 * figures.WIDTH + 84)
        if len(firsts) < sum(len(group.runs) for group in groups):
            queues.title = f"{queues.title} (each group's first seed)"
        views.append(queues)
    if not views:
        raise figures.nothing_recorded("responses or queue samples")
    return figures.finish(alt.vconcat(*views, spacing=28).resolve_scale(color="shared"))


def _firsts_of(groups: Sequence[Group]) -> list[Run]:
    """The first run of each group under the group's title: figures know runs by their labels."""
    return [replace(group.runs[0], label=group.title) for group in groups]


def distributions(groups: Sequence[Group], limit_s: float) -> alt.HConcatChart | None:
    """The distribution up to a limit, and beside it the tail; None where no run tells.

    Groups are read one after the other: memory holds the recorded rows of one at a time.
    """
    of: Of = groups[0].of if groups else "response"
    views = (cdf(limit_s, of), ccdf(of))
    curves = [found for group in groups if (found := _curves_of(group.afresh(), views))]
    if not curves:
        return None
    if any(found.runs > 1 for found in curves):
        below = _SEEDS
    elif of == "response" and any(found.recorded for found in curves):
        below = _BLOCKS
    else:
        below = _SINGLE
    titles = [group.title for group in groups]
    near, far = (
        _bands([row for found in curves for row in found.rows[at]], titles, view, below)
        for at, view in enumerate(views)
    )
    return alt.hconcat(near, far, spacing=36)


@dataclass(frozen=True)
class _View:
    """One way to look at a distribution."""

    title: str
    axes: tuple[alt.X, alt.Y]
    steps: Literal["step-after", "step-before"]
    """Which way the curve is level from a point."""
    grid: Callable[[Distribution], Floats]
    """Times to draw, of a distribution."""
    tail: bool
    """Whether it shows the responses that take that long or longer."""


def cdf(limit_s: float, of: Of = "response") -> _View:
    """The distribution from 0 to a limit."""

    def grid(times: Distribution) -> Floats:
        return figures.cdf_points(times, limit_s)[0]

    title = f"{figures.WORDS[of][1].capitalize()} that end within a time"
    return _View(title, figures.cdf_axes(limit_s, of), "step-after", grid, tail=False)


def ccdf(of: Of = "response") -> _View:
    """The tail of the distribution."""

    def grid(times: Distribution) -> Floats:
        return figures.ccdf_points(times)[0]

    title = f"{figures.WORDS[of][1].capitalize()} that take that long or longer"
    return _View(title, figures.ccdf_axes(of), "step-before", grid, tail=True)


_Row: TypeAlias = "dict[str, float | str | None]"
"""A point of a group's curve and band, in percent."""


@dataclass(frozen=True)
class _Curves:
    """What a figure shows of a group."""

    rows: Sequence[Sequence[_Row]]
    """The curve in each of the figure's views."""
    runs: int
    """How many runs are behind it."""
    recorded: bool
    """Whether one of them has recorded its responses."""


def _curves_of(group: Group, views: Sequence[_View]) -> _Curves | None:
    """A group's curves; None where no run tells."""
    if not group.times:
        return None
    return _Curves(
        rows=[curve(group, view) for view in views],
        runs=len(group.times),
        recorded=any(run.responses for run in group.runs),
    )


def _bands(
    rows: Sequence[_Row], titles: Sequence[str], view: _View, subtitle: str
) -> alt.LayerChart | alt.FacetChart:
    """One curve with its band per group."""
    x, y = view.axes
    base = alt.Chart(width=figures.WIDTH, height=figures.HEIGHT).encode(
        x=x,
        color=figures.colour(titles),
        tooltip=[
            alt.Tooltip("run:N", title="runs"),
            alt.Tooltip("time:Q", title="time (s)", format=".3f"),
            alt.Tooltip("share:Q", title="share (%)", format=".3~f"),
            alt.Tooltip("low:Q", title="interval from (%)", format=".3~f"),
            alt.Tooltip("high:Q", title="to (%)", format=".3~f"),
        ],
    )
    lower = y.copy()
    lower.shorthand = "low:Q"
    band = (
        base.mark_area(interpolate=view.steps, opacity=0.2, clip=True)
        .encode(y=lower, y2="high:Q")
        .transform_filter("isValid(datum.low)")
    )
    line = base.mark_line(interpolate=view.steps, strokeWidth=1.8, clip=True).encode(
        y=y, strokeDash=figures.pattern(titles)
    )
    heading = alt.TitleParams(view.title, subtitle=subtitle)
    return alt.layer(band, line, data=figures.Data(values=rows), title=heading)


def curve(group: Group, view: _View) -> list[_Row]:
    """A group's curve and band."""
    at = view.grid(Distribution.together(group.times))
    if view.tail:
        # Up to just before each time: what takes that long or longer is the rest.
        mean, low, high = group.distribution(np.nextafter(at, 0))
        mean, low, high = 1 - mean, 1 - high, 1 - low
        # A logarithmic axis has no zero: below a tenth of the curve a band is not drawn further.
        low = np.maximum(low, mean / 10)
    else:
        mean, low, high = group.distribution(at)
    rows = zip(at, *(100 * share for share in (mean, low, high)), strict=True)
    return [
        {
            "run": group.title,
            "time": _shown(time),
            "share": _shown(share),
            "low": _shown(below),
            "high": _shown(above),
        }
        for time, share, below, above in rows
    ]


def _shown(value: float) -> float | None:
    """A number with the digits that can be seen; None if it is none."""
    return None if np.isnan(value) else float(f"{value:.6g}")
