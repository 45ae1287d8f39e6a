"""One number against another: what is gained by what is given up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aqmlab.errors import AqmlabError
from aqmlab.figures.axes import Axis, linear, logarithmic
from aqmlab.figures.findings import Finding, Values, change
from aqmlab.figures.grammar import Channel, Chart, inline
from aqmlab.figures.theme import Look

__all__ = ["Place", "axes", "ellipse", "front", "names_at", "placed", "possibly_on_front"]


_SPREAD = 10.0
"""From this ratio of the largest delay to the smallest on, the axis is logarithmic."""
_CORNERS = 60


@dataclass(frozen=True)
class Place:
    """Where a configuration stands, seed by seed."""

    name: str
    cost: Finding
    """What should be little: delay."""
    gain: Finding
    """What should be much: throughput, utilization."""

    @property
    def points(self) -> np.ndarray:
        """Cost and gain, a row per seed that has both."""
        seeds = [seed for seed in self.cost.values if seed in self.gain.values]
        return np.array([[self.cost.values[seed], self.gain.values[seed]] for seed in seeds])

    @property
    def mean(self) -> tuple[float, float]:
        """Means over the seeds."""
        cost, gain = self.points.mean(axis=0)
        return float(cost), float(gain)


def placed(found: Iterable[tuple[str, Values, Values]]) -> list[Place]:
    """Where each configuration stands that measured both numbers.

    Args:
        found: Name, cost and gain of each.
    """
    places = [Place(name, Finding(name, cost), Finding(name, gain)) for name, cost, gain in found]
    known = [place for place in places if len(place.points)]
    if not known:
        raise AqmlabError("no run measured both numbers; `aqmlab show` lists what there is")
    return known


def axes(places: Sequence[Place], cost: str, gain: str) -> tuple[Axis, Axis]:
    """The axes: cost runs from right to left, so that up and to the right is better."""
    costs = [value for place in places for value in place.cost.values.values()]
    gains = [value for place in places for value in place.gain.values.values()]
    title = f"{cost}, less to the right"
    least = min((value for value in costs if value > 0), default=0.0)
    if least > 0 and max(costs) > _SPREAD * least:
        log = logarithmic(title, [0.85 * least, 1.15 * max(costs)])
        x = Axis(log.title, log.low, log.high, log.ticks, log=True, reverse=True)
    else:
        reach = 0.08 * (max(costs) - min(costs) or max(costs) or 1)
        x = linear(title, [max(0, min(costs) - reach), max(costs) + reach], reverse=True)
    reach = 0.15 * (max(gains) - min(gains) or 0.1 * max(map(abs, gains)) or 1)
    y = linear(gain, [min(gains) - reach, max(gains) + reach])
    if min(gains) >= 0 > y.low:
        y = replace(y, low=0.0, ticks=tuple(tick for tick in y.ticks if tick >= 0))
    return x, y


def ellipse(place: Place) -> list[dict[str, float | str]]:
    """The 1-sigma ellipse of the seeds: the contour of the normal distribution of their covariance.

    As K. Winstein and H. Balakrishnan draw it ("TCP ex Machina: Computer-Generated Congestion
    Control", SIGCOMM 2013, figure 4). Empty with fewer than three seeds, which give no area.
    """
    points = place.points
    if len(points) < 3:
        return []
    variances, directions = np.linalg.eigh(np.cov(points.T))
    angle = np.linspace(0, 2 * np.pi, _CORNERS)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    contour = directions @ (np.sqrt(np.maximum(variances, 0))[:, np.newaxis] * circle)
    centre = points.mean(axis=0)
    return [
        {"series": place.name, "x": float(x), "y": float(y), "order": number}
        for number, (x, y) in enumerate((contour.T + centre).tolist())
    ]


def front(places: Sequence[Place]) -> list[Place]:
    """The Pareto front of the means: nothing else costs less and gains as much, or the reverse."""
    return sorted(
        (one for one in places if not any(_beats(other.mean, one.mean) for other in places)),
        key=lambda one: one.mean,
    )


def possibly_on_front(places: Sequence[Place]) -> list[Place]:
    """What is off the front by less than the seeds differ."""
    best = front(places)
    return [
        one
        for one in places
        if one not in best
        and not any(_beats(other.mean, one.mean) and _clearly(other, one) for other in places)
    ]


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether a point is at least as good in both ways and better in one."""
    return one != other and one[0] <= other[0] and one[1] >= other[1]


def _clearly(one: Place, other: Place) -> bool:
    """Whether two places differ by more than their seeds do, in a way."""
    return change(one.cost, other.cost).clear or change(one.gain, other.gain).clear


def names_at(places: Sequence[Place], names: Sequence[str], look: Look, x: Axis, y: Axis) -> Chart:
    """Means as dots, each with its name beside it where the names are few."""
    rows = [{"series": one.name, "x": one.mean[0], "y": one.mean[1]} for one in places]
    base = Chart(inline(rows)).encode(x=x.x("x"), y=y.y("y"), color=look.colour(names, legend=True))
    dots: Chart = base.mark(
        "point", filled=True, opacity=1, size=7 * look.size.text, stroke=look.colours.background
    ).encode(
        shape=look.shape(names, legend=True),
        tooltip=[
            Channel("series:N", title="runs"),
            Channel("x:Q", title=x.title, format=".4~g"),
            Channel("y:Q", title=y.title, format=".4~g"),
        ],
    )
    return dots
