"""Values over time: one run's with their spread inside each interval, or the mean over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from aqmlab.figures import curves
from aqmlab.figures.axes import Axis, linear, logarithmic
from aqmlab.figures.grammar import Chart, vconcat
from aqmlab.figures.theme import Look
from aqmlab.results.statistics import estimates

__all__ = ["RATIO", "Panel", "Series", "band_words", "grouped", "stacked"]


Series: TypeAlias = Sequence[tuple[np.ndarray, np.ndarray]]
"""Times in seconds and values of each run of a configuration."""
RATIO = 4.0
"""Curves of a greater ratio of their heights have plots of their own."""
_UNLIKE = 10.0
"""From this ratio of the heights on, the axis that plots share is logarithmic."""
_DEPTH = 1000.0
"""How far below the highest value a logarithmic axis begins, at the most."""
_BINS_PER_RUN = 300
_BINS_OF_SEEDS = 30


@dataclass(frozen=True)
class Panel:
    """A plot: curves that share an axis."""

    title: str
    axis: str
    """Title of the vertical axis."""
    series: Mapping[str, Series]

    @property
    def peak(self) -> float:
        """The height of the largest curve without its rarest values."""
        return max(_height(one) for one in self.series.values())


def grouped(title: str, axis: str, series: Mapping[str, Series]) -> list[Panel]:
    """Curves in one plot where they can be told apart, else a plot for each.

    They share one if they are means over seeds, whose bands are narrow, and of similar height.
    """
    heights = [_height(one) for one in series.values()]
    narrow = all(len(one) > 1 for one in series.values())
    if len(series) < 2 or (narrow and max(heights) <= RATIO * max(min(heights), 1e-12)):
        return [Panel(title, axis, series)]
    parts = [" · ".join(filter(None, (title, name))) for name in series]
    return [
        Panel(part, axis, {name: one})
        for part, (name, one) in zip(parts, series.items(), strict=True)
    ]


def stacked(
    panels: Sequence[Panel],
    names: Sequence[str],
    look: Look,
    room: float,
    below: Callable[[Axis], Chart] | None = None,
) -> Chart:
    """Plots above each other on one axis of time.

    Those of the same quantity share the vertical axis too; it is logarithmic if their heights are
    unlike. `below` makes a further plot of the axis.
    """
    times = [time for panel in panels for one in panel.series.values() for time, _ in one]
    begin = min(float(time.min()) for time in times if len(time))
    end = max(float(time.max()) for time in times if len(time))
    x = linear("Simulated time (s)", [begin, end], count=6, tight=True)
    height = look.size.low if len(panels) > 2 else 1.4 * look.size.low
    legend = len(names) > 1 and any(len(panel.series) > 1 for panel in panels)
    rows = [_points(panel, np.linspace(begin, end, _bins(panel) + 1)) for panel in panels]
    plots: list[Chart] = []
    for number, panel in enumerate(panels):
        alike = [some for one, some in zip(panels, rows, strict=True) if one.axis == panel.axis]
        y = _vertical(panel.axis, alike, unlike=_are_unlike(panels, panel.axis))
        if y.log:
            rows[number] = [_within(row, y.low) for row in rows[number]]
        plot = curves.banded(
            rows[number],
            names,
            look,
            x,
            y,
            width=room,
            height=height,
            legend=legend,
            labelled=below is None and number == len(panels) - 1,
        )
        plots.append(plot.properties(title=panel.title) if panel.title else plot)
    spacing = look.size.text * 0.9
    chart = vconcat(*plots, spacing=spacing)
    if below is None:
        return chart
    # Curves share their colours; what is below them has its own. Independent dashes keep colours
    # and dashes of curves in one legend.
    return vconcat(chart, below(x), spacing=spacing).scales(
        color="independent", strokeDash="independent"
    )


def band_words(panels: Sequence[Panel]) -> str:
    """What lines and bands are, and whether heights of plots may be compared."""
    several = any(len(one) > 1 for panel in panels for one in panel.series.values())
    edge = "; what is below a logarithmic axis is drawn at its edge"
    own = edge if any(_are_unlike(panels, panel.axis) for panel in panels) else ""
    if several:
        return f"lines: means over the seeds; bands: their 95 % intervals{own}"
    return f"lines: means of short intervals; bands: smallest to largest sample{own}"


def _are_unlike(panels: Sequence[Panel], axis: str) -> bool:
    """Whether the plots of a quantity are of very different height."""
    peaks = [panel.peak for panel in panels if panel.axis == axis]
    return len(peaks) > 1 and max(peaks) > _UNLIKE * min(peaks)


def _vertical(title: str, alike: Sequence[Sequence[curves.Row]], *, unlike: bool) -> Axis:
    """The axis of all plots of a quantity."""
    drawn = [row[key] for rows in alike for row in rows for key in ("y", "low", "high")]
    values = [value for value in drawn if isinstance(value, float)]
    positive = [value for value in values if value > 0]
    if not unlike or not positive:
        return linear(title, [0.0, *values], count=3, zero=True)
    return logarithmic(title, [max(min(positive), max(positive) / _DEPTH), max(positive)])


def _within(row: curves.Row, least: float) -> curves.Row:
    """A point whose values are on a logarithmic axis, maybe at its edge."""
    ends = {key: row[key] for key in ("y", "low", "high")}
    return {
        **row,
        **{key: max(one, least) if isinstance(one, float) else one for key, one in ends.items()},
    }


def _points(panel: Panel, edges: np.ndarray) -> list[curves.Row]:
    """The points of all curves of a plot."""
    return [row for name, one in panel.series.items() for row in _rows(name, one, edges)]


def _bins(panel: Panel) -> int:
    """Into how many intervals the time is divided."""
    several = any(len(one) > 1 for one in panel.series.values())
    longest = max(len(time) for one in panel.series.values() for time, _ in one)
    return max(2, min(_BINS_OF_SEEDS if several else _BINS_PER_RUN, longest))


def _height(series: Series) -> float:
    """How high a curve goes without its rarest values."""
    found = [np.quantile(values, 0.99) for _, values in series if len(values)]
    return float(max(found, default=0.0))


def _rows(name: str, series: Series, edges: np.ndarray) -> list[curves.Row]:
    """A curve and its band; gaps where nothing was measured."""
    middle = (edges[:-1] + edges[1:]) / 2
    parts = [curves.binned(time, values, edges) for time, values in series]
    if len(parts) == 1:
        mean, low, high = parts[0]["mean"], parts[0]["min"], parts[0]["max"]
    else:
        mean, low, high, _ = estimates(
            np.stack([part["mean"] for part in parts]), bounds=(0.0, np.inf)
        )
    return [
        {
            "series": name,
            "x": curves.number(at),
            "y": curves.number(value),
            "low": curves.number(below),
            "high": curves.number(above),
        }
        for at, value, below, above in zip(middle, mean, low, high, strict=True)
        if np.isfinite(value)
    ]
