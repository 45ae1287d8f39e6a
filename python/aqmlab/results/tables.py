"""The tables of results, whatever they are written as.

A table about queues has a row for each loaded direction of a link (see
:func:`~aqmlab.results.links.loaded_links`), one about users a column for each number that some of
its rows have. Traffic that gets responses is shown by its response times, bulk transfers by
goodput, fairness and round trips, datagrams by loss, delay and jitter. Applications have
figures of their own: page load times, stalls, opinion scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

from aqmlab._util.table import Bar, Cell, TableModel
from aqmlab.results.directions import in_words
from aqmlab.results.formats import format_change, format_estimate, format_seeds
from aqmlab.results.groups import Group, transfer_classes
from aqmlab.results.links import links_of, loaded_links
from aqmlab.results.metrics import (
    ALL,
    FLOWS,
    LINK,
    OWN,
    QUALITY,
    RESPONSES,
    TRANSFERS,
    Metric,
    chosen,
    compared,
    look_up,
)
from aqmlab.results.statistics import Estimate, equal_words

if TYPE_CHECKING:
    from aqmlab.results.compare import Difference, Distance

__all__ = [
    "all_numbers",
    "comparison",
    "difference_cell",
    "difference_tables",
    "differences",
    "distances",
    "estimate_cell",
    "key_numbers_table",
    "one_run",
    "reasons",
]


_LINK = chosen(
    LINK,
    "loss_rate",
    "mark_rate",
    "throughput_bps",
    "utilization",
    "queue_mean_packets",
    "sojourn_mean_s",
    "sojourn_p99_s",
)
_RESPONSES = chosen(RESPONSES, "count", "p50_s", "p90_s", "p99_s", "le_1s", "le_2s", "gt_3s")
_TRANSFER_KEYS = {metric.key for metric in TRANSFERS}
"""Numbers of classes that get no responses."""
_QUALITY_KEYS = {metric.key for metric in QUALITY}
"""Figures of applications."""

_Row = tuple[tuple[str, ...], Mapping[str, Estimate | None]]
"""Names of a row, and its numbers over the seeds by the key of their metric."""


def comparison(groups: Sequence[Group]) -> list[TableModel]:
    """What users felt, then what the loaded queues did; each says how many seeds are behind it."""
    seeds = format_seeds(groups)
    datagrams = _datagram_classes(groups)
    bulk = [name for name in transfer_classes(groups) if name not in datagrams]
    parts = [
        _response_table(groups, f"response times, {seeds}"),
        *_quality_tables(groups, f"applications, {seeds}"),
        _flow_table(groups, bulk, "transfers", f"bulk transfers, {seeds}"),
        _flow_table(groups, datagrams, "datagrams", f"datagrams, {seeds}"),
        _loaded_table(groups, f"loaded links, {seeds}"),
        _own_table(groups, f"metrics of your own, {seeds}"),
    ]
    return [table for table in parts if table.rows]


def all_numbers(groups: Sequence[Group]) -> list[TableModel]:
    """Response times by class, both directions of the links, and connections by class."""
    return [
        _by_class("responses", "Response times by class", "responses", RESPONSES, groups),
        _every_link(groups),
        _by_class("flows", "Connections by class", "flows", FLOWS, groups),
    ]


def _start(
    title: str, corners: Iterable[str], metrics: Iterable[Metric], *, name: str = ""
) -> TableModel:
    """A table whose first columns name its rows, without rows."""
    table = TableModel(title, name=name)
    for corner in corners:
        # Documents call the runs of a row a configuration.
        table.add_key("configuration" if corner == "run" else corner, short=corner)
    for metric in metrics:
        table.add_number(metric.head, short=metric.short)
    return table


def _estimates(
    title: str,
    corners: Sequence[str],
    metrics: Sequence[Metric],
    rows: Sequence[_Row],
    *,
    name: str,
    every: bool = False,
) -> TableModel:
    """Means over the seeds, of the metrics that some row has, or of every metric."""
    used = [m for m in metrics if every or any(values[m.key] is not None for _, values in rows)]
    if equal := equal_words(values[m.key] for _, values in rows for m in used):
        title = f"{title}; {equal}"
    table = _start(title, corners, used, name=name)
    for names, values in rows:
        table.add_row(*names, *(estimate_cell(m, values[m.key]) for m in used))
    return table


def estimate_cell(metric: Metric, found: Estimate | None) -> str:
    """A mean in the metric's unit and half of its interval; "-" if there is none."""
    return "-" if found is None else format_estimate(found, metric.shown)


def _numbers(
    group: Group, path: Sequence[str], metrics: Iterable[Metric]
) -> dict[str, Estimate | None]:
    """Numbers at a place of the summaries by their key."""
    return {metric.key: group.number(path, metric) for metric in metrics}


def _loaded_table(groups: Sequence[Group], title: str) -> TableModel:
    """A row for each group and each direction of a link that is loaded in any of their runs."""
    loaded = loaded_links([run for group in groups for run in group.runs])
    rows = [
        ((group.label, in_words(at, group.first.scenario)), _numbers(group, at.path, _LINK))
        for group in groups
        for at in loaded
        if at in links_of(group.first)
    ]
    marks = any(found and found.mean for _, values in rows if (found := values["mark_rate"]))
    metrics = [m for m in _LINK if marks or m.key != "mark_rate"]
    return _estimates(title, ("run", "link"), metrics, rows, name="loaded")


def _own_table(groups: Sequence[Group], title: str) -> TableModel:
    """A row for each group, if there are metrics of one's own."""
    own = list(OWN.values())
    rows: list[_Row] = [((group.label,), _numbers(group, ("metrics",), own)) for group in groups]
    return _estimates(title, ("run",), own, rows if own else [], name="metrics", every=True)


def _response_table(groups: Sequence[Group], title: str) -> TableModel:
    """A row for each group, and each class if there is traffic without responses beside it."""
    others = transfer_classes(groups)
    served = [name for group in groups for name in _served(group) if name not in others]
    alike = all(ALL in group.classes for group in groups)
    names = dict.fromkeys(served) if others or not alike else [ALL] if served else []
    rows: list[_Row] = [
        ((group.label, name), _numbers(group, ("responses", name), _RESPONSES))
        for group in groups
        for name in names
    ]
    corners: tuple[str, ...] = ("run", "class")
    if not others and alike:
        corners, rows = ("run",), [(label[:1], values) for label, values in rows]
    return _estimates(title, corners, _RESPONSES, rows, name="summary")


def _served(group: Group) -> list[str]:
    """Classes that get responses; the one that headlines speak of comes first."""
    found = (run.summary.get("responses", {}) for run in group.runs)
    every = [name for one in found for name, row in one.items() if name != ALL and row.get("count")]
    return [*(name for name in group.classes if name in every), *every]


def _quality_tables(groups: Sequence[Group], title: str) -> list[TableModel]:
    """Of each kind of application, a row for each group and each class of it."""
    runs = [run for group in groups for run in group.runs]
    kinds: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(name for run in runs for name in run.summary.get("quality", {})):
        found = (look_up(run.summary, ("quality", name)) or {} for run in runs)
        kinds.setdefault(tuple(dict.fromkeys(key for one in found for key in one)), []).append(name)
    metrics = [metric for metric in QUALITY if metric.short]
    return [
        _estimates(
            f"{title}: {', '.join(names)}" if len(kinds) > 1 else title,
            ("run", "class"),
            metrics,
            [
                ((group.label, name), _numbers(group, ("quality", name), metrics))
                for group in groups
                for name in names
            ],
            name=f"applications-{number}",
        )
        for number, names in enumerate(kinds.values(), 1)
    ]


def _datagram_classes(groups: Sequence[Group]) -> list[str]:
    """Classes that get no responses and send datagrams in some run."""
    runs = [run for group in groups for run in group.runs]
    return [
        name
        for name in transfer_classes(groups)
        if any(look_up(run.summary, ("flows", name, "datagrams_sent")) for run in runs)
    ]


def _flow_table(groups: Sequence[Group], names: Sequence[str], name: str, title: str) -> TableModel:
    """A row for each group and each of some classes that get no responses."""
    rows = [
        ((group.label, traffic), _numbers(group, ("flows", traffic), TRANSFERS))
        for group in groups
        for traffic in names
    ]
    return _estimates(title, ("run", "class"), TRANSFERS, rows, name=name)


def _by_class(
    name: str, title: str, part: str, metrics: Sequence[Metric], groups: Sequence[Group]
) -> TableModel:
    """One row per configuration and class; a single class hides the equal row of all."""
    rows = []
    for group in groups:
        names = list(look_up(group.first.summary, (part,)) or ())
        mixed = part == "responses" and ALL not in group.classes
        for traffic in names:
            if traffic != ALL or not (len(names) == 2 or mixed):
                values = _numbers(group, (part, traffic), metrics)
                rows.append(((group.label, traffic), values))
    return _estimates(title, ("run", "class"), metrics, rows, name=name, every=True)


def _every_link(groups: Sequence[Group]) -> TableModel:
    """Both directions of the links."""
    rows = [
        ((group.label, in_words(at, group.first.scenario)), _numbers(group, at.path, LINK))
        for group in groups
        for at in links_of(group.first)
    ]
    return _estimates("Links and queues", ("run", "link"), LINK, rows, name="links", every=True)


def one_run(
    corner: str, metrics: Sequence[Metric], rows: Mapping[str, Mapping[str, Any]]
) -> TableModel:
    """Values of one run's summary, a row for each name: those that a terminal has room for."""
    shown = [metric for metric in metrics if metric.short]
    table = _start("", [corner], shown)
    for name, values in rows.items():
        table.add_row(name, *(_value(metric, values.get(metric.key)) for metric in shown))
    return table


def _value(metric: Metric, value: float | None) -> str:
    """A value as printed; "-" if there is none."""
    return "-" if value is None or math.isnan(value) else metric.shown(value)


def reasons(groups: Sequence[Group]) -> TableModel | None:
    """Drops and marks by reason, as shares of the arrived packets; None without any."""
    found = []
    for group in groups:
        for at in links_of(group.first):
            arrived = _total(group, (*at.path, "arrived_packets"))
            for action, key in (("dropped", "drops"), ("marked", "marks")):
                for reason in look_up(group.first.summary, (*at.path, key)) or {}:
                    packets = _total(group, (*at.path, key, reason))
                    if packets and arrived:
                        where = in_words(at, group.first.scenario)
                        names = (group.label, where, action, reason.replace("_", " "))
                        found.append((names, packets / len(group.runs), packets / arrived))
    if not found:
        return None
    most = max(share for *_, share in found)
    table = _start("Drops and marks by reason", ("run", "link", "action", "reason"), (),
                   name="reasons")  # fmt: skip
    table.add_number("packets per run")
    table.add_number("of arrivals (%)")
    for names, packets, share in found:
        bar = Bar(0, 100 * share / most)
        table.add_row(*names, f"{packets:,.0f}", Cell(f"{100 * share:,.3f}", bar=bar))
    return table


def _total(group: Group, path: Sequence[str]) -> float:
    """A count over all runs of a configuration."""
    return sum(float(look_up(run.summary, path) or 0) for run in group.runs)


def key_numbers_table(groups: Sequence[Group], changes: Sequence[Difference]) -> list[TableModel]:
    """The few numbers that matter, a column for each group; of two groups their differences.

    A star marks what clearly differs from the baseline, of users and of links, and nothing else
    anywhere.
    """
    from aqmlab.results.conclusion import key_numbers  # one run has no use for it

    seeds = format_seeds(groups)
    bases = list(dict.fromkeys(one.baseline for one in changes))
    whose = bases[0] if len(bases) == 1 else "its baseline"
    title = f"{seeds}; *: clearly differs from {whose}" if changes else seeds
    table = TableModel(title, ["number"], (group.label for group in groups))
    title = f"against {whose}, with 95 % intervals"
    apart = TableModel(title, ["number"], ["difference"], ["interval from"])
    by_key = {(one.run, one.traffic, one.metric): one for one in changes}
    for number in key_numbers(groups):
        cells = []
        for group in groups:
            entry = by_key.get((group.label, number.owner, number.metric.key))
            text = estimate_cell(number.metric, number.of(group))
            cells.append(f"{text} *" if entry and _is_clear(entry) else text)
            if entry and len(groups) == 2:
                apart.add_row(number.change_head, difference_cell(entry), entry.basis)
        table.add_row(number.head, *cells)
    return [table, *([apart] if len(groups) == 2 and changes else [])]


def difference_tables(found: Sequence[Difference]) -> list[TableModel]:
    """Differences with their intervals, a table for each baseline and each kind of numbers."""
    by_kind: dict[tuple[str, str, bool], list[Difference]] = {}
    datagrams = {entry.traffic for entry in found if entry.metric.startswith("datagram_")}
    own: dict[str, dict[str, None]] = {}
    for entry in found:
        if entry.metric in _QUALITY_KEYS:
            own.setdefault(entry.traffic, {})[entry.metric] = None
    for entry in found:
        moved = entry.metric in _TRANSFER_KEYS
        # Classes of one kind of application have the same figures.
        figures = ",".join(own[entry.traffic]) if entry.metric in _QUALITY_KEYS else str(moved)
        own_one = entry.metric in OWN
        kind = (entry.baseline, figures, (moved and entry.traffic in datagrams) or own_one)
        by_kind.setdefault(kind, []).append(entry)
    tables = []
    for same in by_kind.values():
        bases = ", ".join(dict.fromkeys(entry.basis for entry in same))
        sure = any(entry.interval for entry in same)
        about = f", with 95 % intervals ({bases})" if sure else f" ({bases}: no intervals)"
        tables.append(_difference_table(same, f"against {same[0].baseline}{about}"))
    return tables


def differences(found: Sequence[Difference]) -> TableModel:
    """All differences with their intervals in one table, which says where these come from."""
    baselines = dict.fromkeys(entry.baseline for entry in found)
    to = next(iter(baselines)) if len(baselines) == 1 else "the baselines"
    bases = list(dict.fromkeys(entry.basis for entry in found))
    table = _difference_table(
        found, f"Differences to {to}, with 95 % intervals", with_basis=len(bases) > 1
    )
    table.name = "differences"
    table.note = f"Intervals from {bases[0]}." if len(bases) == 1 else ""
    return table


def _difference_table(
    found: Sequence[Difference], title: str, *, with_basis: bool = False
) -> TableModel:
    """Differences with their intervals and their picture; clear ones stand out."""
    by_row: dict[tuple[str, str, str], dict[str, Difference]] = {}
    for entry in found:
        row = by_row.setdefault((entry.run, entry.baseline, entry.traffic), {})
        row[entry.metric] = entry
    # A name that all rows share is said once, or goes without saying.
    kept = [
        True,
        len({entry.baseline for entry in found}) > 1,
        {entry.traffic for entry in found} != {ALL},
    ]
    corners = compress(("run", "against", "class"), kept)
    table = _start(title, corners, ())
    metrics = list(dict.fromkeys(entry.metric for entry in found))
    reach = {
        metric: _reach([row[metric] for row in by_row.values() if metric in row])
        for metric in metrics
    }
    for metric in metrics:
        table.add_number(compared(metric).change_head)
    if with_basis:
        table.add_number("interval from")
    for names, row in by_row.items():
        table.add_row(
            *(name for name, is_kept in zip(names, kept, strict=True) if is_kept),
            *(difference_cell(row[m], reach[m]) if m in row else "-" for m in metrics),
            *([next(iter(row.values())).basis] if with_basis else []),
        )
    return table


def _reach(found: Sequence[Difference]) -> float:
    """The largest distance from zero that some differences and their intervals reach."""
    ends = [abs(end) for entry in found for end in (entry.interval or ())]
    return max([*ends, *(abs(entry.difference) for entry in found)], default=0.0) or 1.0


def difference_cell(entry: Difference, reach: float | None = None) -> Cell:
    """A difference and its interval in the metric's unit.

    Args:
        entry: the difference.
        reach: the largest distance from zero that the picture beside it shows; None: no picture.
    """
    metric = compared(entry.metric)
    text = format_change(entry.estimate, lambda value: metric.shown(value, "+"))
    if reach is None:
        return Cell(text, _tone(entry))
    low, high = entry.interval or (entry.difference, entry.difference)
    begin, end, middle = (50 + 50 * value / reach for value in (low, high, entry.difference))
    return Cell(text, _tone(entry), Bar(begin, end, middle, 50))


def _is_clear(entry: Difference) -> bool:
    """Whether it is clear and not shown as zero, better or worse."""
    return entry.clear and not compared(entry.metric).is_shown_as_zero(entry.difference)


def _tone(entry: Difference) -> str:
    """Its tone; none of a difference that is shown as zero, however sure it is."""
    return "" if compared(entry.metric).is_shown_as_zero(entry.difference) else entry.tone


def distances(found: Sequence[Distance]) -> list[TableModel]:
    """Kolmogorov's distances of the response times, a table for each baseline."""
    tables = []
    for baseline in dict.fromkeys(entry.baseline for entry in found):
        title = f"distance of the response times from those of {baseline}"
        table = TableModel(title, ["run", "class"], ["Kolmogorov"])
        for entry in found:
            if entry.baseline == baseline:
                table.add_row(entry.run, entry.traffic, f"{entry.kolmogorov:.3f}")
        tables.append(table)
    return tables
