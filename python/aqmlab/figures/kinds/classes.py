"""Bars by class of traffic."""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.errors import AqmlabError
from aqmlab.figures import curves
from aqmlab.figures.axes import linear, logarithmic, name_axis
from aqmlab.figures.compared import compared
from aqmlab.figures.findings import Finding, finding
from aqmlab.figures.grammar import Channel, Chart, inline, layer
from aqmlab.figures.quantities import Plotted, by_class
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.results.configurations import Configuration, Sources, seeds_in_words

__all__ = ["classes"]


_UNLIKE = 10.0
"""From this ratio of the means on, the axis is logarithmic."""


def classes(
    runs: Sources,
    *,
    metric: str | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """A metric by class of traffic, in bars.

    Each configuration has a bar. Bars are means over the seeds, with their 95 % intervals. Where
    means differ by more than a factor of ten, the figure has dots on a logarithmic axis instead.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        metric: Metric of responses or connections, such as p95 or goodput; default: the median
            response time, or goodput if no class has responses.
        look: Width and theme.
    """
    found = compared(runs, look)
    of = by_class(metric, found)
    if not of:
        raise AqmlabError(
            f"{metric or 'p50'}: no class of traffic has measured it; try --metric goodput"
        )
    classes = [look.named(name) for name in of]
    rows = [
        _row(entry, look.named(name), one)
        for name, one in of.items()
        for entry in found
        if one.values(entry)
    ]
    means = [float(str(row["y"])) for row in rows]
    # A bar has no place to stand on a logarithmic axis.
    is_log = min(means) > 0 and max(means) > _UNLIKE * min(means)
    first = next(iter(of.values()))
    names = [entry.label for entry in found]
    mark = "dots" if is_log else "bars"
    heading = Heading(
        _title(found, of),
        (
            f"{first.label} by class of traffic; {seeds_in_words(found)}",
            *((f"{mark}: means; lines: 95 % intervals over the seeds",) if _several(found) else ()),
        ),
    )
    if is_log:
        ends = [_top(row) for row in rows]
        y = logarithmic(f"{first.title}, logarithmic", [0.8 * min(means), 1.1 * max(ends)])
        rows = [_above(row, y.low) for row in rows]
    else:
        y = linear(first.title, [_top(row) for row in rows], count=4, zero=True)
    # One class alone has its configurations on the axis: a single label would say nothing.
    alone = len(classes) == 1 and len(names) > 1

    def build(room: float) -> Chart:
        base = Chart(inline(rows), width=room, height=look.size.height).encode(
            x=Channel(
                "series:N" if alone else "class:N",
                title=classes[0] if alone else None,
                sort=names if alone else classes,
                axis=name_axis(names if alone else classes, room, look.size.text),
            ),
            xOffset=None if alone else Channel("series:N", sort=names),
        )
        drawn = (
            base.mark("point", filled=True, opacity=1, size=7 * look.size.text)
            if is_log
            else base.mark("bar")
        )
        values = drawn.encode(
            y=y.y("y"),
            color=look.colour(names).but(
                legend=None
                if len(names) < 2
                else {"title": None, "symbolType": "square", "symbolStrokeWidth": 0}
            ),
        )
        lines = (
            base.mark("rule", strokeWidth=look.size.stroke, color=look.colours.text)
            .encode(y=y.y("low"), y2="high:Q")
            .keep("isValid(datum.low) && isValid(datum.high)")
        )
        return layer(lines, values) if is_log else layer(values, lines)

    return Figure(heading, build, margin=4.4).chart(look)


def _above(row: curves.Row, least: float) -> curves.Row:
    """A row whose interval ends on the axis."""
    low = row["low"]
    return row if low is None else {**row, "low": max(float(str(low)), least)}


def _row(entry: Configuration, name: str, of: Plotted) -> curves.Row:
    """A bar."""
    estimate = of.estimate(entry)
    assert estimate is not None, "only what was measured is drawn"
    return {
        "series": entry.label,
        "class": name,
        "y": curves.number(estimate.mean),
        "low": curves.number(estimate.low),
        "high": curves.number(estimate.high),
    }


def _top(row: curves.Row) -> float:
    """The height of a bar with its interval."""
    return max(float(str(row[key])) for key in ("y", "high") if row[key] is not None)


def _several(found: Sequence[Configuration]) -> bool:
    return any(len(entry.runs) > 1 for entry in found)


def _title(found: Sequence[Configuration], of: dict[str, Plotted]) -> str:
    """What changes most, or which class has the most."""
    if len(found) == 1:
        [entry] = found
        said = [Finding(name, one.values(entry)) for name, one in of.items()]
        one = next(iter(of.values()))
        return finding(said, one.label if len(of) > 1 else one.words, one.unit, is_change=False)

    def ratio(one: Plotted) -> float:
        means = [sum(v.values()) / len(v) for entry in found if (v := one.values(entry))]
        return max(means) / max(min(means), 1e-12) if means else 0.0

    most = max(of.values(), key=ratio)
    return finding(
        [Finding(entry.label, most.values(entry)) for entry in found], most.words, most.unit
    )
