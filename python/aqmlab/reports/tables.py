"""The tables of a report, whatever it is written as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab.reports.data import TAIL, Distributions, Traces
from aqmlab.reports.fidelity import PublishedNumber
from aqmlab.results.compare import ALL, Difference
from aqmlab.results.groups import Group
from aqmlab.results.metrics import FLOWS, LINK, RESPONSES, Metric, compared, look_up
from aqmlab.results.shown import (
    Shown,
    change_in_words,
    datagram_rows,
    in_words,
    link_rows,
    quality_rows,
    response_rows,
    seeds_in_words,
    transfer_rows,
)
from aqmlab.results.statistics import Estimate

__all__ = [
    "Cell",
    "Table",
    "class_table",
    "difference_table",
    "fidelity_table",
    "flow_table",
    "link_table",
    "main_tables",
    "reason_table",
    "shown_difference",
    "shown_estimate",
    "tail_table",
    "trace_table",
    "within_table",
]


@dataclass(frozen=True)
class _Bar:
    """A horizontal bar, in percent of the cell's width; a whisker with a dot if it has a middle."""

    begin: float
    end: float
    middle: float | None = None
    zero: float | None = None
    """Where zero lies."""


@dataclass(frozen=True)
class Cell:
    """A cell: what it says, how that is to be taken, and a picture of it."""

    text: str
    tone: str = ""
    """``better``, ``worse``, or nothing."""
    bar: _Bar | None = None


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows."""

    name: str
    """Short name for addresses inside the page."""
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: int = 1
    """Columns of words, from the left; the others are numbers."""
    note: str = ""


def _number(value: float, decimals: int) -> str:
    """A number as people write it."""
    return f"{value:,.{decimals}f}"


def _shown(estimate: Estimate | None, scale: float = 1.0, decimals: int = 0) -> str:
    """An estimate with its interval, or a dash."""
    if estimate is None:
        return "-"
    return in_words(estimate, lambda value: _number(scale * value, decimals))


def shown_estimate(estimate: Estimate | None, metric: Metric) -> str:
    """An estimate in the metric's unit with its interval, or a dash."""
    return _shown(estimate, metric.scale, metric.decimals)


def _metric_cell(metric: Metric, group: Group, place: Sequence[str]) -> Cell:
    """A number of a configuration, or a dash."""
    return Cell(_shown(group.estimate(*place, metric.key), metric.scale, metric.decimals))


def main_tables(groups: Sequence[Group]) -> list[Table]:
    """What users felt, and what the loaded queues did; each says how many seeds are behind it."""
    seeds = seeds_in_words(groups)
    parts = (
        ("summary", f"Response times, {seeds}", response_rows(groups)),
        *(
            (f"applications-{number}", f"Applications, {seeds}", shown)
            for number, shown in enumerate(quality_rows(groups), 1)
        ),
        ("transfers", f"Bulk transfers, {seeds}", transfer_rows(groups)),
        ("datagrams", f"Datagrams, {seeds}", datagram_rows(groups)),
        ("loaded", f"Loaded links, {seeds}", link_rows(groups)),
    )
    return [_shown_table(name, caption, shown) for name, caption, shown in parts if shown.rows]


def _shown_table(name: str, caption: str, shown: Shown) -> Table:
    """A table of what is shown of some runs."""
    rows = [
        [
            *map(Cell, names),
            *(
                Cell(_shown(values.get(metric.key), metric.scale, metric.decimals))
                for metric in shown.metrics
            ),
        ]
        for names, values in shown.rows
    ]
    head = ["configuration", *shown.corners[1:], *(metric.head for metric in shown.metrics)]
    return Table(name, caption, head, rows, words=len(shown.corners))


def _total(group: Group, path: Sequence[str]) -> float:
    """A count over all runs of a configuration."""
    return sum(float(look_up(run.summary, path) or 0) for run in group.runs)


def class_table(groups: Sequence[Group]) -> Table:
    """Response times by class of traffic."""
    return _by_class("responses", "Response times by class", "responses", RESPONSES, groups)


def flow_table(groups: Sequence[Group]) -> Table:
    """Connections by class of traffic."""
    return _by_class("flows", "Connections by class", "flows", FLOWS, groups)


def _by_class(
    name: str, caption: str, part: str, metrics: Sequence[Metric], groups: Sequence[Group]
) -> Table:
    """One row per configuration and class; a single class hides the equal row of all."""
    rows = []
    for group in groups:
        names = list(look_up(group.first.summary, (part,)) or ())
        mixed = part == "responses" and ALL not in group.classes
        for traffic in names:
            if traffic != ALL or not (len(names) == 2 or mixed):
                cells = [_metric_cell(metric, group, (part, traffic)) for metric in metrics]
                rows.append([Cell(group.label), Cell(traffic), *cells])
    head = ["configuration", "class", *(metric.head for metric in metrics)]
    return Table(name, caption, head, rows, words=2)


def link_table(groups: Sequence[Group]) -> Table:
    """Both directions of the links."""
    rows = [
        [
            Cell(group.label),
            Cell(f"{link} {side}"),
            *(_metric_cell(metric, group, place) for metric in LINK),
        ]
        for group in groups
        for link, side, place in _sides(group)
    ]
    head = ["configuration", "link", *(metric.head for metric in LINK)]
    return Table("links", "Links and queues", head, rows, words=2)


def _sides(group: Group) -> list[tuple[str, str, tuple[str, ...]]]:
    """Every direction of every link, with its place in the summaries."""
    links: Mapping[str, Any] = look_up(group.first.summary, ("links",)) or {}
    return [(link, side, ("links", link, side)) for link in links for side in links[link]]


def reason_table(groups: Sequence[Group]) -> Table | None:
    """Drops and marks by reason, as shares of the arrived packets; None without any."""
    found = []
    for group in groups:
        for link, side, place in _sides(group):
            arrived = _total(group, (*place, "arrived_packets"))
            for action, key in (("dropped", "drops"), ("marked", "marks")):
                reasons = look_up(group.first.summary, (*place, key)) or {}
                for reason in reasons:
                    packets = _total(group, (*place, key, reason))
                    if packets and arrived:
                        where = f"{link} {side}"
                        found.append((group, where, action, reason, packets, packets / arrived))
    if not found:
        return None
    most = max(share for *_, share in found)
    rows = [
        [
            Cell(group.label),
            Cell(where),
            Cell(action),
            Cell(reason.replace("_", " ")),
            Cell(_number(packets / len(group.runs), 0)),
            Cell(_number(100 * share, 3), bar=_Bar(0, 100 * share / most)),
        ]
        for group, where, action, reason, packets, share in found
    ]
    head = ["configuration", "link", "action", "reason", "packets per run", "of arrivals (%)"]
    return Table("reasons", "Drops and marks by reason", head, rows, words=4)


def difference_table(changes: Sequence[Difference]) -> Table:
    """Differences to the baseline, with intervals and their picture."""
    by_row: dict[tuple[str, str, str], dict[str, Difference]] = {}
    for change in changes:
        row = by_row.setdefault((change.run, change.baseline, change.traffic), {})
        row[change.metric] = change
    metrics = list(dict.fromkeys(change.metric for change in changes))
    spans = {
        metric: _span([row[metric] for row in by_row.values() if metric in row])
        for metric in metrics
    }
    rows = [
        [
            *map(Cell, names),
            *(
                _difference_cell(row[metric], spans[metric]) if metric in row else Cell("-")
                for metric in metrics
            ),
            Cell(next(iter(row.values())).basis),
        ]
        for names, row in by_row.items()
    ]
    heads = [compared(metric).change_head for metric in metrics]
    bases = list(dict.fromkeys(change.basis for change in changes))
    if len(bases) == 1:  # said once, not in every row
        rows = [row[:-1] for row in rows]
    else:
        heads.append("interval from")
    corners = ["configuration", "against", "class"]
    baselines = {baseline for _, baseline, _ in by_row}
    for column, lone in (
        (2, {traffic for *_, traffic in by_row} == {ALL}),
        (1, len(baselines) < 2),
    ):
        if lone:
            corners.pop(column)
            rows = [[*row[:column], *row[column + 1 :]] for row in rows]
    to = next(iter(baselines)) if len(baselines) == 1 else "the baselines"
    return Table(
        "differences",
        f"Differences to {to}, with 95 % intervals",
        [*corners, *heads],
        rows,
        words=len(corners),
        note=f"Intervals from {bases[0]}." if len(bases) == 1 else "",
    )


def _span(changes: Sequence[Difference]) -> float:
    """The largest distance from zero that some differences and their intervals reach."""
    ends = [abs(end) for change in changes for end in (change.interval or ())]
    return max([*ends, *(abs(change.difference) for change in changes)], default=0.0) or 1.0


def shown_difference(change: Difference) -> str:
    """A difference and its interval in the metric's unit."""
    metric = compared(change.metric)
    return change_in_words(change.estimate, lambda value: metric.shown(value, "+"))


def _difference_cell(change: Difference, reach: float) -> Cell:
    """A difference, its interval, and where both lie about zero."""
    text = shown_difference(change)
    low, high = change.interval or (change.difference, change.difference)
    begin, end, middle = (50 + 50 * value / reach for value in (low, high, change.difference))
    return Cell(text, change.tone, _Bar(begin, end, middle, 50))


def fidelity_table(published: Sequence[PublishedNumber]) -> Table:
    """Published numbers beside ours."""
    tones = {"within": "better", "outside": "worse", "missing": "worse"}
    rows = [
        [
            Cell(number.row),
            Cell(number.table),
            Cell(number.column),
            Cell(number.published),
            Cell(number.ours),
            Cell(number.verdict, tones.get(number.verdict, "")),
        ]
        for number in published
    ]
    papers = "; ".join(dict.fromkeys(number.paper for number in published))
    head = ["published row", "table", "column", "published", "ours", "verdict"]
    return Table("fidelity", papers, head, rows, words=3)


def within_table(found: Distributions) -> Table:
    """Shares of the responses within some times: the numbers behind the distribution."""
    rows = [
        [Cell(curve.group), Cell(curve.traffic), *(Cell(_number(100 * s, 2)) for s in curve.within)]
        for curve in found.curves
    ]
    head = ["configuration", "class", *(f"≤ {time:g} s (%)" for time in found.marks)]
    return Table("within", "Responses that ended within a time", head, rows, words=2)


def tail_table(found: Distributions) -> Table:
    """Percentiles: the numbers behind the tail."""
    rows = [
        [
            Cell(curve.group),
            Cell(curve.traffic),
            Cell(_number(curve.count, 0)),
            *(Cell(_number(time, 3)) for time in curve.tail),
        ]
        for curve in found.curves
    ]
    heads = ["slowest (s)" if share == 1 else f"{100 * share:g} % (s)" for share in TAIL]
    head = ["configuration", "class", "responses", *heads]
    return Table("tail", "Percentiles of the response times", head, rows, words=2)


def trace_table(found: Traces) -> Table:
    """Smallest, mean and largest values: the numbers behind the traces."""
    rows = []
    for trace in found.traces:
        columns = trace.columns
        mean = sum(columns["mean"]) / len(columns["mean"])
        values = (min(columns["min"]), mean, max(columns["max"]))
        cells = [Cell(f"{value:.4g}") for value in values]
        rows.append([Cell(trace.group), Cell(trace.direction), Cell(trace.variable), *cells])
    head = ["configuration", "link", "variable", "smallest", "mean", "largest"]
    return Table("traced", "Queues and inner variables", head, rows, words=3)
