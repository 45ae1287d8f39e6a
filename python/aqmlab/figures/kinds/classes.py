"""Bars by class of traffic."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from aqmlab.errors import AqmlabError
from aqmlab.figures import curves
from aqmlab.figures.axes import linear, name_axis
from aqmlab.figures.cases import Case, Sources, cases, seeds_in_words
from aqmlab.figures.files import Chart
from aqmlab.figures.findings import Finding, finding
from aqmlab.figures.quantities import Quantity, quantity
from aqmlab.figures.theme import Data, Heading, Look, View
from aqmlab.figures.timelines import RATIO
from aqmlab.results.metrics import SHORT_NAMES, metric_key

__all__ = ["classes"]


def classes(
    runs: Sources,
    *,
    metric: str | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """A metric by class of traffic, a bar for each configuration.

    Bars are means over the seeds, with their 95 % intervals. Classes of very different height get
    plots of their own.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        metric: Metric of responses or connections, such as p95 or goodput; default: the median
            response time, or goodput where no class has responses.
        look: Width and theme.
    """
    found = cases(runs)
    of = _by_class(metric, found)
    if not of:
        raise AqmlabError(
            f"{metric or 'p50'}: no class of traffic has measured it; try --metric goodput"
        )
    rows = {
        name: [_row(case, name, one) for case in found if one.values(case)]
        for name, one in of.items()
    }
    tops = {name: max(_top(row) for row in some) for name, some in rows.items()}
    alike = max(tops.values()) <= 5 * RATIO * max(min(tops.values()), 1e-12)
    panels = [list(of)] if alike else [[name] for name in of]
    unlike = next(iter(of.values()))
    names = [case.label for case in found]
    heading = Heading(
        _title(found, of),
        (
            f"{unlike.label} by class of traffic; {seeds_in_words(found)}",
            *(("bars: means; lines: 95 % intervals over the seeds",) if _several(found) else ()),
            *(() if alike else ("each class has an axis of its own",)),
        ),
    )

    def build(room: float) -> Chart:
        plots = []
        for panel in panels:
            some = [row for name in panel for row in rows[name]]
            y = linear(unlike.title, [_top(row) for row in some], count=4, zero=True)
            each = room if len(panels) == 1 else room / len(panels) - 3.4 * look.size.text
            # One class alone has its configurations on the axis: a single label would say nothing.
            alone = len(panel) == 1 and len(names) > 1
            axis = name_axis(names if alone else panel, each, look.size.text)
            beside = alt.Undefined if alone else alt.XOffset("series:N", sort=names)
            base = alt.Chart(
                Data(values=some), width=max(each, 30), height=look.size.height
            ).encode(
                x=alt.X(
                    "series:N" if alone else "class:N",
                    title=panel[0] if alone else None,
                    sort=names if alone else panel,
                    axis=axis,
                ),
                xOffset=beside,
            )
            bars = base.mark_bar().encode(
                y=y.y("y"),
                color=look.colour(names).legend(
                    None
                    if len(names) < 2
                    else alt.Legend(title=None, symbolType="square", symbolStrokeWidth=0)
                ),
            )
            lines = (
                base.mark_rule(strokeWidth=look.size.stroke, color=look.colours.text)
                .encode(y=y.y("low"), y2="high:Q")
                .transform_filter("isValid(datum.low)")
            )
            plots.append(alt.layer(bars, lines))
        return plots[0] if len(plots) == 1 else alt.hconcat(*plots, spacing=look.size.text)

    return View(heading, build).chart(look)


def _by_class(metric: str | None, found: Sequence[Case]) -> dict[str, Quantity]:
    """The metric of each class that has measured it."""
    for name in [metric] if metric else ["p50", "goodput"]:
        key = SHORT_NAMES.get(name) or metric_key(name)
        section, _, last = key.partition(".")[0], None, key.rpartition(".")[2]
        if section not in ("responses", "flows"):
            raise AqmlabError(
                f"metric: found {name}, which is of links; expected one of classes, such as p95"
            )
        known = dict.fromkeys(one for case in found for one in case.runs[0].classes)
        of = {one: quantity(f"{section}.{one}.{last}", found) for one in known}
        measured = {one: q for one, q in of.items() if any(q.values(case) for case in found)}
        if measured:
            return measured
    return {}


def _row(case: Case, name: str, of: Quantity) -> curves.Row:
    """A bar."""
    estimate = of.estimate(case)
    assert estimate is not None, "only what was measured is drawn"
    return {
        "series": case.label,
        "class": name,
        "y": curves.number(estimate.mean),
        "low": curves.number(estimate.low),
        "high": curves.number(estimate.high),
    }


def _top(row: curves.Row) -> float:
    """The height of a bar with its interval."""
    return max(float(str(row[key])) for key in ("y", "high") if row[key] is not None)


def _several(found: Sequence[Case]) -> bool:
    return any(len(case.runs) > 1 for case in found)


def _title(found: Sequence[Case], of: dict[str, Quantity]) -> str:
    """What changes most, or which class has the most."""
    if len(found) == 1:
        [case] = found
        said = [Finding(name, one.values(case)) for name, one in of.items()]
        one = next(iter(of.values()))
        return finding(said, one.label if len(of) > 1 else one.words, one.unit)

    def ratio(one: Quantity) -> float:
        means = [sum(v.values()) / len(v) for case in found if (v := one.values(case))]
        return max(means) / max(min(means), 1e-12) if means else 0.0

    most = max(of.values(), key=ratio)
    return finding(
        [Finding(case.label, most.values(case)) for case in found], most.words, most.unit
    )
