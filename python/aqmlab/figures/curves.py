"""Curves with their bands: distributions, and values over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from aqmlab.figures.axes import Axis
from aqmlab.figures.grammar import Channel, Chart, inline, layer, named_data
from aqmlab.figures.theme import Look
from aqmlab.results.distributions import Distribution

__all__ = [
    "CURVE_POINTS",
    "TIME_BINS",
    "Row",
    "banded",
    "binned",
    "ccdf_points",
    "cdf_points",
    "number",
]


Row: TypeAlias = "dict[str, float | str | None]"
"""A point of a curve."""
CURVE_POINTS = 1000
"""Most points of a distribution's curve."""
TIME_BINS = 300
"""Most intervals of a curve over time."""


def cdf_points(of: Distribution, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (time, share up to it) of a distribution up to `limit`.

    Every point lies on the distribution. At most :data:`CURVE_POINTS` are kept, at evenly
    spaced ranks, so that no step between neighbours hides more than a thousandth of the share
    shown.
    """
    up_to = np.cumsum(of.count)
    bins = int(np.searchsorted(of.below_s, limit, side="right"))
    shown = int(up_to[bins - 1]) if bins else 0
    ranks = np.linspace(0, shown - 1, min(shown, CURVE_POINTS - 2)).astype(int)
    kept = np.unique(np.searchsorted(up_to, ranks, side="right"))
    share = up_to[kept] / of.total
    return np.r_[0.0, of.below_s[kept], limit], np.r_[0.0, share, shown / of.total]


def ccdf_points(of: Distribution) -> tuple[np.ndarray, np.ndarray]:
    """Points (time, share at or beyond it) of a distribution.

    Every point lies on the distribution. The number of slower ones falls from point to point in
    at most :data:`CURVE_POINTS` equal ratios, so that the tail keeps its single ones.
    """
    up_to = np.cumsum(of.count)
    slowest = np.unique(np.geomspace(of.total, 1, CURVE_POINTS).astype(int))
    kept = np.unique(np.searchsorted(up_to, of.total - slowest, side="right"))
    return of.below_s[kept], 1 - (up_to[kept] - of.count[kept]) / of.total


def binned(time: np.ndarray, values: np.ndarray, edges: np.ndarray) -> dict[str, np.ndarray]:
    """Smallest, mean and largest of the values between each two edges of time, by ``min`` ...

    Intervals without a value have none: not a number.
    """
    bins = len(edges) - 1
    index = np.searchsorted(edges, time, side="right") - 1
    index[time == edges[-1]] = bins - 1
    inside = (index >= 0) & (index < bins) & np.isfinite(values)
    index, found = index[inside], values[inside].astype(float)
    count = np.bincount(index, minlength=bins)
    least, most = np.full(bins, np.inf), np.full(bins, -np.inf)
    np.minimum.at(least, index, found)
    np.maximum.at(most, index, found)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(index, weights=found, minlength=bins) / count
    empty = count == 0
    least[empty] = most[empty] = np.nan
    return {"min": least, "mean": mean, "max": most}


def banded(
    rows: Sequence[Row] | str,
    names: Sequence[str],
    look: Look,
    x: Axis,
    y: Axis,
    *,
    width: Any,  # noqa: ANN401 - a number or a word, as Vega-Lite has it
    height: float,
    unit: str = "",
    steps: Literal["step-after", "step-before", "linear"] = "linear",
    legend: bool | None = None,
    labelled: bool = True,
) -> Chart:
    """One curve with its band per name, from rows of ``series``, ``x``, ``y``, ``low``, ``high``.

    Args:
        rows: The points; or the name of the data, if they stand elsewhere.
        names: The curves, in the order of their colours.
        look: The look.
        x: Horizontal axis.
        y: Vertical axis.
        width: Width of the plot.
        height: Height of the plot.
        unit: Unit of the values, for what a pointer shows.
        steps: How the curve goes from point to point.
        legend: Whether there is one; default: with several curves.
        labelled: Whether the horizontal axis has labels and a title: the lowest of several has.
    """
    data = named_data(rows) if isinstance(rows, str) else inline(list(rows))
    suffix = f" ({unit})" if unit else ""
    horizontal = x.x("x") if labelled else x.x("x", labels=False).but(title=None)
    extent = 3.2 * look.size.text
    named = y.lines(height, look.size.text)
    base = Chart(width=width, height=height).encode(
        x=horizontal,
        color=look.colour(names, legend=legend),
        tooltip=[
            Channel("series:N", title="runs"),
            Channel("x:Q", title=x.title, format=".4~g"),
            Channel("y:Q", title=f"value{suffix}", format=".4~g"),
            Channel("low:Q", title=f"from{suffix}", format=".4~g"),
            Channel("high:Q", title=f"to{suffix}", format=".4~g"),
        ],
    )
    band = (
        base.mark("area", interpolate=steps, opacity=0.22, clip=True)
        .encode(y=y.y("low", minExtent=extent).but(title=named), y2="high:Q")
        .keep("isValid(datum.low)")
    )
    line = base.mark("line", interpolate=steps, strokeWidth=look.size.stroke, clip=True).encode(
        y=y.y("y", minExtent=extent).but(title=named), strokeDash=look.pattern(names, legend=legend)
    )
    return layer(band, line, data=data)


def number(value: float) -> float | None:
    """A number with the digits that can be seen; None if it is none."""
    return None if not np.isfinite(value) else float(f"{value:.6g}")
