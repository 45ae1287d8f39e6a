"""A metric against a parameter."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np

from aqmlab.figures import curves, parameters
from aqmlab.figures.axes import linear, logarithmic, name_axis
from aqmlab.figures.cases import Case, Sources, cases, seeds_in_words
from aqmlab.figures.files import Chart
from aqmlab.figures.findings import Finding, change, finding, is_single, shown
from aqmlab.figures.quantities import Quantity, quantity
from aqmlab.figures.theme import Data, Heading, Look, View

__all__ = ["parameter"]


_SPREAD = 20.0
"""From this ratio of a parameter's values on, its axis is logarithmic."""


def parameter(
    runs: Sources,
    *,
    metric: str = "p50",
    x: str | None = None,
    series: str | None = None,
    link: str | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """A metric against a swept parameter, a curve for each value of another one.

    Dots are means over the seeds, bars their 95 % intervals. Parameters are the variables of a
    sweep, or the fields in which the scenarios of the runs differ. An axis of numbers that span
    more than a factor of twenty is logarithmic.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        metric: Metric such as p95, delay, loss, or a key of summary.json.
        x: The parameter; default: the one with the most numeric values.
        series: Another parameter, with a curve for each of its values; default: all others.
        link: A link, for metrics of links; default: the busiest one.
        look: Width and theme.
    """
    found = cases(runs)
    of = quantity(metric, found, link)
    known = of.measured(found)
    along = parameters.chosen(known, x) if x else parameters.default_axis(known)
    by = (
        [parameters.chosen(known, series)]
        if series
        else [n for n in parameters.named(known) if n != along]
    )
    names = list(dict.fromkeys(_name(case, by) for case in known))
    heading = Heading(
        _title(known, of, along, by),
        (
            f"{of.words} against {along}; {seeds_in_words(known)}",
            *(("dots: means over the seeds; bars: 95 % intervals",) if _has_bars(known) else ()),
        ),
    )
    rows = [_row(case, of, along, by) for case in known]
    # A parameter that neither axis nor series shows would put several dots above one value.
    y = linear(
        of.title,
        [float(str(row[k])) for row in rows for k in ("y", "low", "high") if row[k] is not None],
        zero=True,
    )

    def build(room: float) -> Chart:
        horizontal = _horizontal(known, along, look, room)
        base = alt.Chart(Data(values=rows), width=room, height=look.size.height).encode(
            x=horizontal,
            color=look.colour(names),
            tooltip=[
                alt.Tooltip("series:N", title="runs"),
                alt.Tooltip("x:N", title=along),
                alt.Tooltip("y:Q", title=of.title, format=".4~g"),
                alt.Tooltip("low:Q", title="from", format=".4~g"),
                alt.Tooltip("high:Q", title="to", format=".4~g"),
            ],
        )
        line = base.mark_line(strokeWidth=look.size.stroke).encode(
            y=y.y("y"), strokeDash=look.pattern(names)
        )
        dots = base.mark_point(filled=True, size=5 * look.size.text, opacity=1).encode(y=y.y("y"))
        bars = (
            base.mark_rule(strokeWidth=look.size.stroke)
            .encode(y=y.y("low"), y2="high:Q")
            .transform_filter("isValid(datum.low)")
        )
        return alt.layer(bars, line, dots)

    return View(heading, build).chart(look)


def _horizontal(known: Sequence[Case], along: str, look: Look, room: float) -> alt.X:
    """The parameter's axis: of numbers, or of names in their order."""
    values = parameters.values_of(known, along)
    if not parameters.is_number(known, along):
        order = [parameters.text_of(value) for value in values]
        return alt.X(
            "x:N",
            title=along,
            sort=order,
            axis=name_axis(order, room, look.size.text),
            scale=alt.Scale(padding=0.5),
        )
    numbers = [parameters.number_of(value) or 0.0 for value in values]
    unit = parameters.unit_of(values[0])
    title = f"{along} ({unit})" if unit else along
    if min(numbers) > 0 and max(numbers) > _SPREAD * min(numbers):
        axis = logarithmic(f"{title}, logarithmic", [min(numbers) / 1.1, max(numbers) * 1.1])
    else:
        reach = 0.04 * (max(numbers) - min(numbers))
        axis = linear(title, [min(numbers) - reach, max(numbers) + reach], tight=True)
    return axis.x("x")


def _name(case: Case, by: Sequence[str]) -> str:
    """The curve of a configuration."""
    values = [(name, parameters.text_of(case.parameters.get(name))) for name in by]
    if len(values) == 1 and parameters.number_of(case.parameters.get(by[0])) is None:
        return values[0][1]
    return ", ".join(f"{name} {value}" for name, value in values)


def _row(case: Case, of: Quantity, along: str, by: Sequence[str]) -> curves.Row:
    """A dot and its bar."""
    value = case.parameters.get(along)
    number = parameters.number_of(value)
    estimate = of.estimate(case)
    assert estimate is not None, "only what was measured is drawn"
    return {
        "series": _name(case, by),
        "x": parameters.text_of(value) if number is None else number,
        "y": curves.number(estimate.mean),
        "low": curves.number(estimate.low),
        "high": curves.number(estimate.high),
    }


def _has_bars(known: Sequence[Case]) -> bool:
    return any(len(case.runs) > 1 for case in known)


def _title(known: Sequence[Case], of: Quantity, along: str, by: Sequence[str]) -> str:
    """How the metric changes from end to end; of several curves where they are furthest apart."""
    values = parameters.values_of(known, along)
    by_value = {
        parameters.text_of(value): [
            Finding(_name(case, by), of.values(case))
            for case in known
            if case.parameters.get(along) == value
        ]
        for value in values
    }
    if all(len(one) == 1 for one in by_value.values()):
        ends = [by_value[parameters.text_of(value)][0] for value in (values[0], values[-1])]
        return _from_end_to_end(
            ends, of, along, [parameters.text_of(v) for v in (values[0], values[-1])]
        )
    at, widest = max(
        by_value.items(), key=lambda item: float(np.ptp([one.mean for one in item[1]]))
    )
    return f"At {along} {at}: {finding(widest, of.words, of.unit)}"


def _from_end_to_end(ends: Sequence[Finding], of: Quantity, along: str, at: Sequence[str]) -> str:
    """What a single curve does between its ends."""
    first, last = ends
    words = of.words[0].upper() + of.words[1:]
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
