"""Figures of a discipline's validation: one drawing below the other.

A ``[[figures]]`` table of a validation file names its ``kind`` (see :data:`_DRAWINGS`), the
variants (``of``; default: all) and the values of ``each`` (``at``; default: all) that it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from aqmlab.errors import AqmlabError
from aqmlab.figures.curves import Row, binned, cdf_points, number
from aqmlab.figures.files import save
from aqmlab.figures.grammar import Channel, Chart, inline, layer, vconcat
from aqmlab.figures.theme import Look, configured
from aqmlab.results.distributions import Distribution

from lab.disciplines.checks import label, mean_value, samples

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab.results.run import Run

    from lab.disciplines.checks import Point, Results, Validation

__all__ = ["draw"]


_Drawing = Callable[["Validation", "Results", Mapping[str, Any]], Chart]

_LOOK = Look()
_REFERENCE = _LOOK.colours.soft
"""Colour of lines and bands that show what is wanted."""
_WIDTH, _HEIGHT = 760, 260
"""Size of a plot in pixels."""
_BINS = 300
"""Most intervals of a curve over time."""


def draw(validation: Validation, results: Results, svg: Path, png: Path) -> None:
    """Draws a validation's figures, for its page and to look at; nothing if it has none."""
    if not validation.figures:
        return
    drawn = [_DRAWINGS[spec["kind"]](validation, results, spec) for spec in validation.figures]
    chart: Chart = vconcat(*drawn, spacing=28).scales(color="independent", strokeDash="independent")
    for path in (svg, png):
        save(configured(chart, _LOOK), path)


def _over_each(validation: Validation, results: Results, spec: Mapping[str, Any]) -> Chart:
    """``lines``: ``quantity`` against the values of ``each``, with the wanted ``band`` in grey."""
    quantity = validation.quantities[spec["quantity"]]
    [name] = validation.each
    values = [
        {"variant": point[0], "at": point[1], "value": mean_value(quantity, results, point)}
        for point in _chosen(validation, spec)
    ]
    wanted = [{"low": low, "high": high} for low, high in [spec["band"]]] if "band" in spec else []
    band = (
        Chart(inline(wanted))
        .mark("rect", color=_REFERENCE, opacity=0.18)
        .encode(y=Channel("low:Q", title=quantity.title), y2="high:Q")
    )
    drawn = (
        Chart(inline(values))
        .mark("line", strokeWidth=1.8, point={"size": 45})
        .encode(
            x=Channel("at:Q", title=spec.get("x", name), scale={"nice": False, "padding": 12}),
            y=Channel("value:Q", title=quantity.title),
            color=_colour([str(row["variant"]) for row in values]),
        )
    )
    return layer(band, drawn, title=spec.get("title", ""), width=_WIDTH, height=_HEIGHT)


def _bars(validation: Validation, results: Results, spec: Mapping[str, Any]) -> Chart:
    """``bars``: some ``quantities`` beside each other, one group for each variant."""
    quantities = {name: validation.quantities[name] for name in spec["quantities"]}
    values = [
        {
            "variant": _name_of(validation, spec, point),
            "quantity": quantity.title,
            "value": mean_value(quantity, results, point),
        }
        for point in _chosen(validation, spec)
        for quantity in quantities.values()
    ]
    titles = [quantity.title for quantity in quantities.values()]
    groups = list(dict.fromkeys(str(row["variant"]) for row in values))
    chart: Chart = (
        _plot(values, spec)
        .mark("bar")
        .encode(
            x=Channel("variant:N", title=None, sort=groups, axis={"labelAngle": 0}),
            xOffset=Channel("quantity:N", sort=titles),
            y=Channel("value:Q", title=spec["y"]),
            color=_colour(titles, "quantity").but(
                legend={"symbolType": "square", "symbolStrokeWidth": 0}
            ),
        )
    )
    return chart


def _over_time(validation: Validation, results: Results, spec: Mapping[str, Any]) -> Chart:
    """``time``: a ``column`` of the samples over time (first seed), with ``rule`` lines if given.

    A line through the means of equal intervals, and a band from their smallest to their largest.
    """
    values = []
    for point in _chosen(validation, spec):
        times, found = samples(results[point][0], spec["column"], spec.get("window_s"))
        name = _name_of(validation, spec, point)
        values += [{"run": name, "rule": None, **row} for row in _over_intervals(times, found)]
    names = list(dict.fromkeys(str(row["run"]) for row in values))
    rules = [{"run": name, "rule": rule} for name in names for rule in spec.get("rule", [])]
    y = Channel("min:Q", title=spec["y"], axis={"tickCount": 4})
    base = Chart(width=_WIDTH, height=spec.get("height", 90)).encode(
        x=Channel("time:Q", title="simulated time (s)", scale={"zero": False, "nice": False}),
        color=_colour(names, "run", legend=False),
    )
    layers = [
        base.mark("area", opacity=0.3).encode(y=y, y2="max:Q"),
        base.mark("line", strokeWidth=1.4).encode(y=Channel("mean:Q", title=spec["y"])),
        Chart().mark("rule", strokeDash=[5, 4], color=_REFERENCE).encode(y="rule:Q"),
    ]
    return layer(*layers, data=inline([*values, *rules])).facet(
        row=Channel(
            "run:N",
            title=None,
            sort=names,
            header={"labelOrient": "top", "labelAnchor": "start", "labelFontSize": 12},
        ),
        title=spec.get("title", ""),
        spacing=10,
    )


def _over_intervals(time: np.ndarray, values: np.ndarray) -> list[Row]:
    """Smallest, mean and largest of the values in each interval of time."""
    edges = np.linspace(time.min(), time.max(), min(_BINS, len(time)) + 1)
    parts = binned(time, values, edges)
    middle = (edges[:-1] + edges[1:]) / 2
    return [
        {"time": number(at), "min": number(low), "mean": number(mean), "max": number(high)}
        for at, low, mean, high in zip(
            middle, *(parts[key] for key in ("min", "mean", "max")), strict=True
        )
        if np.isfinite(mean)
    ]


def _response_times(validation: Validation, results: Results, spec: Mapping[str, Any]) -> Chart:
    """``cdf``: response times up to ``limit_s`` (first seed), of one ``class`` if given."""
    limit = float(spec["limit_s"])
    points = _chosen(validation, spec)
    names = [_name_of(validation, spec, point) for point in points]
    values = [
        {"run": name, "time": float(time), "share": float(100 * share)}
        for name, point in zip(names, points, strict=True)
        for time, share in zip(*cdf_points(_of_figure(results[point][0], spec), limit), strict=True)
    ]
    chart: Chart = (
        _plot(values, spec)
        .mark("line", interpolate="step-after", clip=True)
        .encode(
            x=Channel("time:Q", title="response time (s)", scale={"domain": [0, limit]}),
            y=Channel("share:Q", title="share of responses (%)", scale={"domain": [0, 100]}),
            color=_colour(names, "run"),
        )
    )
    return chart


def _of_figure(run: Run, spec: Mapping[str, Any]) -> Distribution:
    """Response times of a run; of one class if the figure names it."""
    responses = run.responses
    if responses is None:
        raise AqmlabError(f"{run.path}: no responses: add responses to measure.record")
    if "class" in spec:
        is_wanted = pc.equal(responses.column("class").cast(pa.string()), spec["class"])
        responses = responses.filter(is_wanted)
    return Distribution.exact(np.sort(responses.column("response_s").to_numpy()))


_DRAWINGS: Mapping[str, _Drawing] = {
    "lines": _over_each,
    "bars": _bars,
    "time": _over_time,
    "cdf": _response_times,
}
"""How each ``kind`` of figure is drawn."""


def _chosen(validation: Validation, spec: Mapping[str, Any]) -> list[Point]:
    """The points that a figure shows, in the order of the file."""
    variants = spec.get("of", list(validation.variants))
    unknown = [name for name in variants if name not in validation.variants]
    if unknown:
        raise AqmlabError(f"{validation.name}: a figure names the unknown variant {unknown[0]}")
    return [(variant, at) for variant in variants for at in spec.get("at", validation.points)]


def _name_of(validation: Validation, spec: Mapping[str, Any], point: Point) -> str:
    """A point in words; where a figure shows one value of ``each``, its title says which."""
    return point[0] if len(spec.get("at", ())) == 1 else label(validation, point)


def _colour(names: list[str], of: str = "variant", *, legend: bool = True) -> Channel:
    """A colour for each name, in their order."""
    known = list(dict.fromkeys(names))
    scale = {"domain": known, "range": [_LOOK.stroke(k) for k in range(len(known))]}
    encoding = Channel(f"{of}:N", title=None, sort=known, scale=scale)
    return encoding if legend else encoding.but(legend=None)


def _plot(rows: list[dict[str, Any]], spec: Mapping[str, Any]) -> Chart:
    """An empty plot as wide as the page, under the figure's title."""
    return Chart(inline(rows), title=spec.get("title", ""), width=_WIDTH, height=_HEIGHT)
