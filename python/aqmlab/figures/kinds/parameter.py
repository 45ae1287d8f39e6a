"""A metric against a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aqmlab._util.words import capital
from aqmlab.errors import AqmlabError
from aqmlab.figures import curves, parameters
from aqmlab.figures.axes import Axis, linear, logarithmic, name_axis
from aqmlab.figures.compared import check_curves
from aqmlab.figures.findings import Finding, change, finding, is_single, shown
from aqmlab.figures.grammar import Channel, Chart, concat, inline, layer
from aqmlab.figures.quantities import Plotted, by_class, usual
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.results.configurations import (
    Configuration,
    Sources,
    configurations,
    example,
    in_words,
    seeds_in_words,
    values_of,
)
from aqmlab.results.values import described, number_of, text_of, unit_of

__all__ = ["parameter"]


_SPREAD = 20.0
"""From this ratio of a parameter's values on, its axis is logarithmic."""
_UNLIKE = 10.0
"""From this ratio of the means on, the metric's axis is logarithmic."""
_ALL = 100.0
"""No share is larger, in per cent."""
_FEW_CURVES = 8
"""As many curves have colours of their own; more are divided into plots."""
_MOST_PLOTS = 12
_CLASS = "class"


@dataclass(frozen=True)
class _Point:
    """A configuration's number, where it is drawn."""

    plot: str
    series: str
    entry: Configuration
    of: Plotted

    @property
    def finding(self) -> Finding:
        """Its values by seed, under the name of its curve."""
        return Finding(self.series, self.of.values(self.entry))


def parameter(
    runs: Sources,
    *,
    metric: str | None = None,
    x: str | None = None,
    series: str | None = None,
    facet: str | None = None,
    link: str | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """A metric against a swept parameter.

    A second parameter has a curve for each of its values. Dots are means over the seeds, bars their
    95 % intervals. Parameters are the variables of a sweep, or the fields in which the scenarios of
    the runs differ. Parameters that change together, as in a zip or a table, count once. A curve
    joins runs that differ only in the horizontal axis; nothing joins values that are names. One
    further parameter gets a plot for each of its values; for more of them the command says what to
    filter. Axes are logarithmic where parameters span more than a factor of twenty, or means more
    than a factor of ten.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        metric: Metric, such as p95, delay or loss, or a key of summary.json. Default: the median
            response time, or the mean queueing delay if there are no responses.
        x: Parameter on the horizontal axis, or "subscribers" for the number of subscribers of an
            access network; default: the numeric parameter with the most values.
        series: Draw a curve for each value of this parameter. "class" draws a curve for each class
            of traffic; the metric then describes a class, and its default is goodput. Default: all
            other parameters, if they make at most eight curves.
        facet: Draw a plot for each value of this parameter. All plots have the same axes.
        link: Link; default: the busiest link.
        look: Width and theme.
    """
    found = configurations(runs, look.names)
    is_by_class = series == _CLASS and not any(_CLASS in entry.parameters for entry in found)
    of = by_class(metric or "goodput", found) if is_by_class else {}
    if is_by_class and not of:
        raise AqmlabError(f"{metric or 'goodput'}: no class of traffic has measured it")
    one = None if is_by_class else usual(metric, found, link)
    known = found if one is None else one.measured(found)
    known = parameters.with_subscribers(known) if x == parameters.SUBSCRIBERS else known
    along = parameters.chosen(known, x) if x else parameters.default_axis(known)
    by, plots = _divided(known, along, _CLASS if is_by_class else series, facet)
    points = [
        _Point(_title_of(entry, plots), look.named(name) if name else _name(entry, by), entry, what)
        for entry in known
        for name, what in (of.items() if one is None else [("", one)])
        if what.values(entry)
    ]
    # A curve keeps its colour where another curve was not measured.
    every = map(look.named, of) if is_by_class else (_name(entry, by) for entry in found)
    return _view(points, along, plots, list(dict.fromkeys(every)), look).chart(look)


def _divided(
    known: Sequence[Configuration], along: str, series: str | None, facet: str | None
) -> tuple[list[str], str | None]:
    """The parameters that curves and plots stand for; an error if that leaves some together."""
    plots = parameters.chosen(known, facet) if facet else None
    by = [parameters.chosen(known, series)] if series and series != _CLASS else []
    for name, option in (*((one, "series") for one in by), (plots, "facet")):
        if name == along:
            raise AqmlabError(f"{option}: found {name}, which is the horizontal axis already")
    if by and plots == by[0]:
        raise AqmlabError(f"facet: found {plots}, which the curves stand for already")
    others = parameters.needed(known, along, [*by, *([plots] if plots else [])])
    if series is None:
        combined = {tuple(text_of(entry.parameters.get(n)) for n in others) for entry in known}
        if len(others) < 2 or len(combined) <= _FEW_CURVES:
            by, others = others, []
        else:
            names = [name for name in others if not parameters.is_number(known, name)]
            by = names[:1] or [min(others, key=lambda n: len(values_of(known, n)))]
            others = [name for name in others if name not in by]
    if len(others) == 1 and plots is None:
        plots, others = others[0], []
    if others:
        last = others[-1]
        more = (
            "" if plots else f", and draw a plot for each value of another with --facet {others[0]}"
        )
        raise AqmlabError(
            f"the runs differ in {in_words(known, others)} too: keep one value, such "
            f"as with {example(known, last)}{more}"
        )
    if plots and (count := len(values_of(known, plots))) > _MOST_PLOTS:
        raise AqmlabError(
            f"{plots} has {count} values, and a figure at most {_MOST_PLOTS} plots; keep some, "
            f"such as with {example(known, plots)}"
        )
    return by, plots


def _view(
    points: Sequence[_Point], along: str, plots: str | None, every: Sequence[str], look: Look
) -> Figure:
    """The plots."""
    known = list({id(point.entry): point.entry for point in points}.values())
    names = list(dict.fromkeys(point.series for point in points))
    check_curves(known, len(names))
    label = (
        points[0].of.words
        if len({point.of.number.key for point in points}) == 1
        else (f"{points[0].of.label} by class")
    )
    heading = Heading(
        _title(points, along),
        (
            f"{label} against {along}; {seeds_in_words(known)}",
            *(("dots: means over the seeds; bars: 95 % intervals",) if _has_bars(known) else ()),
        ),
    )
    rows: dict[str, list[curves.Row]] = {}
    order = [_title_of(entry, plots) for entry in _in_order(known, plots)]
    for title in dict.fromkeys(order):
        rows[title] = [_row(point, along) for point in points if point.plot == title]
    y = _vertical(points[0].of.title, [row for some in rows.values() for row in some])
    for row in (row for some in rows.values() for row in some):
        if y.log and row["low"] is not None:
            row["low"] = max(float(str(row["low"])), y.low)
    titles = list(rows)
    columns = min(len(titles), 2 if look.width == "column" else 3)
    count = len(titles)
    # The name of the metric's axis needs its room, too.
    named = 0.54 * look.size.text * len(look.y_label or y.title)
    height = look.size.height if count == 1 else max(0.75 * look.size.height, named)

    def build(room: float) -> Chart:
        each = room / columns - (0 if columns == 1 else 1.2 * look.size.text)
        drawn: list[Chart] = []
        for number, title in enumerate(titles):
            plot = _plot(
                rows[title],
                (names, every),
                look,
                (_horizontal(known, along, look, each), y),
                (each, height),
                # The lowest of each column names the parameter, the first of each row the metric.
                named=(number + columns >= count, number % columns == 0),
            )
            above = {"text": title, "frame": "group"}
            drawn.append(plot.properties(title=above) if title else plot)
        if count == 1:
            return drawn[0]
        return concat(*drawn, columns=columns, spacing=look.size.text)

    return Figure(heading, build, margin=5.2)


def _in_order(known: Sequence[Configuration], plots: str | None) -> Iterable[Configuration]:
    """Configurations in the order of their plots."""
    if plots is None:
        return known
    order = [text_of(value) for value in values_of(known, plots)]
    return sorted(known, key=lambda entry: order.index(text_of(entry.parameters.get(plots))))


def _plot(
    rows: Sequence[curves.Row],
    curved: tuple[Sequence[str], Sequence[str]],
    look: Look,
    axes: tuple[Channel, Axis],
    size: tuple[float, float],
    *,
    named: tuple[bool, bool],
) -> Chart:
    """One plot of a width and height, whose axes may have their names.

    Of its curves it is given the names, and those of all that were asked for.
    """
    names, every = curved
    x, y = axes
    along = str(x["title"])
    # Labels that nobody sees keep the plots of a row at one height.
    vertical = {} if named[1] else {"labelOpacity": 0, "labelLimit": 1}

    def up(field: str) -> Channel:
        axis = y.y(field, **vertical)
        return axis if named[1] else axis.but(title=None)

    base = Chart(inline(list(rows)), width=size[0], height=size[1]).encode(
        x=x if named[0] else x.but(title=None),
        color=look.colour(names, among=every),
        tooltip=[
            Channel("series:N", title="runs"),
            Channel("x:N", title=along),
            Channel("y:Q", title=y.title, format=".4~g"),
            Channel("low:Q", title="from", format=".4~g"),
            Channel("high:Q", title="to", format=".4~g"),
        ],
    )
    # Nothing lies between two names: no line joins them, and dots of one name stand side by side.
    by_name = x["type"] == "nominal"
    if by_name and len(names) > 1:
        base = base.encode(xOffset=Channel("series:N", sort=list(names)))
    dots = base.mark("point", filled=True, size=5 * look.size.text, opacity=1).encode(y=up("y"))
    bars = (
        base.mark("rule", strokeWidth=look.size.stroke)
        .encode(y=up("low"), y2="high:Q")
        .keep("isValid(datum.low) && isValid(datum.high)")
    )
    if by_name:
        return layer(bars.encode(strokeDash=look.pattern(names, among=every)), dots)
    line = base.mark("line", strokeWidth=look.size.stroke).encode(
        y=up("y"), strokeDash=look.pattern(names, among=every)
    )
    return layer(bars, line, dots)


def _vertical(title: str, rows: Sequence[curves.Row]) -> Axis:
    """The metric's axis, the same for all plots."""
    means = [float(str(row["y"])) for row in rows]
    ends = [float(str(row[k])) for row in rows for k in ("low", "high") if row[k] is not None]
    if min(means) > 0 and max(means) > _UNLIKE * min(means):
        return logarithmic(f"{title}, logarithmic", [0.8 * min(means), 1.1 * max(means + ends)])
    # Dots and lines need no zero: where all of them are far from it they use the room.
    near = min(means + ends) < max(means + ends) / 2
    axis = linear(title, means + ends, zero=near)
    if title.endswith("(%)") and max(means + ends) <= _ALL < axis.high:
        return replace(axis, high=_ALL, ticks=tuple(tick for tick in axis.ticks if tick <= _ALL))
    return axis


def _horizontal(known: Sequence[Configuration], along: str, look: Look, room: float) -> Channel:
    """The parameter's axis: of numbers, or of names in their order."""
    values = values_of(known, along)
    if not parameters.is_number(known, along):
        order = [text_of(value) for value in values]
        return Channel(
            "x:N",
            title=along,
            sort=order,
            axis=name_axis(order, room, look.size.text),
            scale={"padding": 0.5},
        )
    numbers = [number_of(value) or 0.0 for value in values]
    unit = unit_of(values[0])
    title = f"{along} ({unit})" if unit else along
    if min(numbers) > 0 and max(numbers) > _SPREAD * min(numbers):
        axis = logarithmic(f"{title}, logarithmic", [min(numbers) / 1.1, max(numbers) * 1.1])
    else:
        reach = 0.04 * (max(numbers) - min(numbers))
        axis = linear(title, [min(numbers) - reach, max(numbers) + reach], tight=True)
    if _have_room(numbers, axis, room / look.size.text):
        axis = replace(axis, ticks=tuple(numbers))
    return axis.x("x")


def _have_room(numbers: Sequence[float], axis: Axis, letters: float) -> bool:
    """Whether the values themselves can be the ticks, in a width of so many letters' heights."""
    at, span = np.array(numbers), axis.high - axis.low
    if axis.log:
        at, span = np.log(at), float(np.log(axis.high / axis.low))
    widths = np.array([len(f"{number:,g}") for number in numbers])
    gaps = np.diff(at) / span * letters
    return len(numbers) > 1 and bool(np.all(gaps > 0.32 * (widths[1:] + widths[:-1]) + 0.5))


def _name(entry: Configuration, by: Sequence[str]) -> str:
    """The curve of a configuration."""
    return described(entry.parameters, by)


def _title_of(entry: Configuration, plots: str | None) -> str:
    """The plot of a configuration; nothing if there is one."""
    return described(entry.parameters, [plots]) if plots else ""


def _row(point: _Point, along: str) -> curves.Row:
    """A dot and its bar."""
    value = point.entry.parameters.get(along)
    number = number_of(value)
    estimate = point.of.estimate(point.entry)
    assert estimate is not None, "only what was measured is drawn"
    return {
        "series": point.series,
        "x": text_of(value) if number is None else number,
        "y": curves.number(estimate.mean),
        "low": curves.number(estimate.low),
        "high": curves.number(estimate.high),
    }


def _has_bars(known: Sequence[Configuration]) -> bool:
    return any(len(entry.runs) > 1 for entry in known)


def _title(points: Sequence[_Point], along: str) -> str:
    """How the metric changes from end to end; of several curves where they are furthest apart.

    Along names it is the smallest and the largest.
    """
    known = [point.entry for point in points]
    of = points[0].of
    values = [text_of(value) for value in values_of(known, along)]
    groups: dict[tuple[str, str], list[Finding]] = {}
    for point in points:
        place = (point.plot, text_of(point.entry.parameters.get(along)))
        groups.setdefault(place, []).append(point.finding)
    if len(groups) == len(values) and all(len(one) == 1 for one in groups.values()):
        alone = {at: groups[points[0].plot, at][0] for at in values}
        if not parameters.is_number(known, along):  # the first and the last name are not ends
            named = [Finding(at, one.values) for at, one in alone.items()]
            return finding(named, of.words, of.unit)
        ends = [alone[values[0]], alone[values[-1]]]
        return _from_end_to_end(ends, of, along, [values[0], values[-1]])
    (plot, at), widest = max(groups.items(), key=lambda item: _apart(item[1]))
    where = f"{plot}, {along} {at}" if plot else f"{along} {at}"
    if len({point.of.number.key for point in points}) == 1:
        return f"At {where}: {finding(widest, of.words, of.unit)}"
    return f"At {where}: {_of_classes(widest, of)}"


def _of_classes(found: Sequence[Finding], of: Plotted) -> str:
    """What tells the classes of the same runs from each other."""
    ranked = sorted(found, key=lambda one: one.mean)
    least, most = ranked[0], ranked[-1]
    unit = f" {of.unit}" if of.unit else ""
    low, high = shown(least.mean), shown(most.mean)
    if not is_single(ranked) and not change(least, most).clear:
        return f"{of.label} of the classes does not clearly differ: {low} to {high}{unit}"
    one_seed = ", one seed" if is_single(ranked) else ""
    return f"{of.label} from {low}{unit} ({least.label}) to {high}{unit} ({most.label}){one_seed}"


def _apart(found: Sequence[Finding]) -> float:
    """How far apart some means are."""
    return float(np.ptp([one.mean for one in found]))


def _from_end_to_end(ends: Sequence[Finding], of: Plotted, along: str, at: Sequence[str]) -> str:
    """What a single curve does between its ends."""
    first, last = ends
    words = capital(of.words)
    unit = f" {of.unit}" if of.unit else ""
    over = f"from {along} {at[0]} to {at[1]}"
    one_seed = " (one seed)" if is_single(ends) else ""
    if not one_seed and not change(first, last).clear:
        means = f"{shown(first.mean)} and {shown(last.mean)}{unit}"
        return f"{words} does not clearly change {over}: {means}"
    verb = "rises" if last.mean > first.mean else "falls"
    if shown(first.mean) == shown(last.mean):
        return f"{words} stays at {shown(first.mean)}{unit} {over}{one_seed}"
    return f"{words} {verb} from {shown(first.mean)} to {shown(last.mean)}{unit} {over}{one_seed}"
