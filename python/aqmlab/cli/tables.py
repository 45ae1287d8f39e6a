"""Tables of results for a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from aqmlab._util.console import strong
from aqmlab._util.table import Table
from aqmlab._util.words import printable
from aqmlab.results.compare import Difference, Distance
from aqmlab.results.conclusion import key_numbers
from aqmlab.results.groups import Group, stated_classes
from aqmlab.results.links import links_of, loaded_links
from aqmlab.results.metrics import (
    ALL,
    DATAGRAMS,
    FLOWS,
    LINK,
    QUALITY,
    RESPONSES,
    TRANSFERS,
    Metric,
    compared,
    flattened,
)
from aqmlab.results.run import Run
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
from aqmlab.scenario.catalog import Entry

if TYPE_CHECKING:
    from aqmlab.papers.reproduction import Line

__all__ = [
    "compare_tables",
    "difference_tables",
    "distance_tables",
    "explanation",
    "key_tables",
    "list_table",
    "run_tables",
    "runs_tsv",
    "score_table",
]


def run_tables(run: Run) -> list[str | Text | Table]:
    """What one run measured: its loaded links, its responses, its connections."""
    summary = run.summary
    title = run.scenario.get("title") or run.label
    how = "in real time" if "live" in summary else "simulated"
    span = f"{summary['measured_s']:g} s measured of {summary['simulated_s']:g} s {how}"
    every, loaded = links_of(run), loaded_links([run])
    links = {str(at): values for at, values in every.items() if at in loaded}
    idle = [str(at) for at in every if at not in loaded]
    seed = f", seed {summary['seed']}"
    head = f"{title}: {run.label.removesuffix(seed)}{seed}, {span}"
    return [
        head,
        *(strong(f"invalid: {reason}") for reason in run.invalid),
        _grid("link", LINK, links),
        *([f"idle, not shown: {_some(idle)}"] if idle else []),
        *_class_tables(summary),
        *_datagrams(summary["flows"]),
        *_quality(summary.get("quality", {})),
    ]


def _quality(quality: Mapping[str, Any]) -> list[str | Text | Table]:
    """What users of applications got: a table for each kind of figures."""
    by_figures: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, found in quality.items():
        by_figures.setdefault(tuple(found), {})[name] = found
    return [
        part
        for figures, rows in by_figures.items()
        for part in ("", _grid("application", [m for m in QUALITY if m.key in figures], rows))
    ]


def _datagrams(flows: Mapping[str, Any]) -> list[str | Text | Table]:
    """What the datagrams of classes met, if there were any."""
    named = {name: of for name, of in flows.items() if name != "all" and of.get("datagrams_sent")}
    if not named:
        return []
    return [
        "",
        _grid("datagrams", DATAGRAMS, named if len(named) == 1 else {**named, "all": flows["all"]}),
    ]


def _some(names: Sequence[str], most: int = 4) -> str:
    """The first of some names and how many there are besides."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" * (len(names) > most))


def _class_tables(summary: Mapping[str, Any]) -> list[str | Text | Table]:
    """The classes with responses, and the connections of all classes."""
    responses = {
        name: values
        for name, values in _by_class(summary["responses"]).items()
        if values.get("count")
    }
    if ALL not in stated_classes(summary):
        responses.pop(ALL, None)
    flows = _grid("class", FLOWS, _by_class(summary["flows"]))
    served = [_grid("class", RESPONSES, responses)] if responses else []
    return ["", *_apart([*served, flows])]


def _by_class(results: Mapping[str, Any]) -> dict[str, Any]:
    """Results by class; "all" is left out if it says nothing new."""
    named = {name: values for name, values in results.items() if name != "all"}
    return named if len(named) == 1 else {**named, "all": results.get("all", {})}


def runs_tsv(runs: Sequence[Run]) -> list[dict[str, object]]:
    """A row for each run, for :func:`aqmlab._util.console.print_tsv`: every number by its key."""
    return [
        {"label": run.label, "path": run.path, "seed": run.seed, **flattened(run.summary)}
        for run in runs
    ]


def compare_tables(groups: Sequence[Group]) -> list[str | Text | Table]:
    """What users felt, then what the loaded queues did; one row per group, class or link."""
    seeds = seeds_in_words(groups)
    parts = (
        (response_rows(groups), f"response times, {seeds}"),
        *((shown, f"applications, {seeds}") for shown in quality_rows(groups)),
        (transfer_rows(groups), f"bulk transfers, {seeds}"),
        (datagram_rows(groups), f"datagrams, {seeds}"),
        (link_rows(groups), f"loaded links, {seeds}"),
    )
    return _apart([_shown_table(shown, title) for shown, title in parts if shown.rows])


def key_tables(groups: Sequence[Group], changes: Sequence[Difference]) -> list[str | Text | Table]:
    """The few numbers that matter, a column for each group; of two groups their differences.

    A star marks what clearly differs from the baseline.
    """
    seeds = seeds_in_words(groups)
    bases = list(dict.fromkeys(one.baseline for one in changes))
    whose = bases[0] if len(bases) == 1 else "its baseline"
    table = Table(f"{seeds}; *: clearly differs from {whose}" if changes else seeds)
    table.add_key("number")
    for group in groups:
        table.add_number(group.label)
    apart = Table(f"against {whose}, with 95 % intervals")
    apart.add_key("number")
    apart.add_number("difference")
    apart.add_text("interval from")
    by_key = {(one.run, one.traffic, one.metric): one for one in changes}
    for number in key_numbers(groups):
        cells = []
        for group in groups:
            key = (group.label, number.path[1], number.metric.key)
            entry = by_key.get(key) if number.of_users else None
            text = _estimate_cell(number.metric, number.of(group))
            cells.append(f"{text} *" if entry and entry.clear else text)
            if entry and len(groups) == 2:
                apart.add_row(number.change_head, _shown_difference(entry), entry.basis)
        table.add_row(number.head, *cells)
    return _apart([table, *([apart] if len(groups) == 2 and changes else [])])


def _apart(tables: Sequence[Table]) -> list[str | Text | Table]:
    """Tables with empty lines between them."""
    found: list[str | Text | Table] = []
    for table in tables:
        found += ["", table] if found else [table]
    return found


def _shown_table(shown: Shown, title: str) -> Table:
    """A table of estimates: means, with half of the interval where there is one."""
    table = Table(title)
    for corner in shown.corners:
        table.add_key(corner)
    for metric in shown.metrics:
        table.add_number(metric.short)
    for names, values in shown.rows:
        cells = [_estimate_cell(metric, values.get(metric.key)) for metric in shown.metrics]
        table.add_row(*names, *cells)
    return table


def _estimate_cell(metric: Metric, found: Estimate | None) -> str:
    """A mean and half of its interval; "-" if there is none."""
    if found is None:
        return "-"
    return in_words(found, metric.shown)


_TRANSFER_KEYS = {metric.key for metric in TRANSFERS}
"""Numbers of classes that get no responses."""
_QUALITY_KEYS = {metric.key for metric in QUALITY}
"""Figures of applications."""


def difference_tables(found: Sequence[Difference]) -> list[str | Text | Table]:
    """Differences with their intervals, a table for each baseline; clear ones are bold."""
    by_kind: dict[tuple[str, str, bool], list[Difference]] = {}
    datagrams = {entry.traffic for entry in found if entry.metric.startswith("datagram_")}
    own = _own_figures(found)
    for entry in found:
        moved = entry.metric in _TRANSFER_KEYS
        # Classes of one kind of application have the same figures.
        figures = ",".join(own[entry.traffic]) if entry.metric in _QUALITY_KEYS else str(moved)
        kind = (entry.baseline, figures, moved and entry.traffic in datagrams)
        by_kind.setdefault(kind, []).append(entry)
    return _apart([_difference_table(same) for same in by_kind.values()])


def _own_figures(found: Iterable[Difference]) -> dict[str, dict[str, None]]:
    """The figures of each application by its class."""
    own: dict[str, dict[str, None]] = {}
    for entry in found:
        if entry.metric in _QUALITY_KEYS:
            own.setdefault(entry.traffic, {})[entry.metric] = None
    return own


def _difference_table(found: Sequence[Difference]) -> Table:
    """Differences to one baseline."""
    bases = ", ".join(dict.fromkeys(entry.basis for entry in found))
    sure = any(entry.interval for entry in found)
    about = f", with 95 % intervals ({bases})" if sure else f" ({bases}: no intervals)"
    several = {difference.traffic for difference in found} != {ALL}
    table = Table(f"against {found[0].baseline}{about}")
    table.add_key("run")
    if several:
        table.add_key("class")
    metrics = list(dict.fromkeys(difference.metric for difference in found))
    for metric in metrics:
        table.add_number(compared(metric).change_head)
    for run, traffic in dict.fromkeys((entry.run, entry.traffic) for entry in found):
        entries = {d.metric: d for d in found if (d.run, d.traffic) == (run, traffic)}
        cells = [
            _shown_difference(entries[metric]) if metric in entries else "-" for metric in metrics
        ]
        table.add_row(run, *([traffic] if several else []), *cells)
    return table


def distance_tables(found: Sequence[Distance]) -> list[str | Text | Table]:
    """Kolmogorov's distances of the response times, a table for each baseline."""
    tables = []
    for baseline in dict.fromkeys(entry.baseline for entry in found):
        table = Table(f"distance of the response times from those of {baseline}")
        for head in ("run", "class"):
            table.add_key(head)
        table.add_number("Kolmogorov")
        for entry in found:
            if entry.baseline == baseline:
                table.add_row(entry.run, entry.traffic, f"{entry.kolmogorov:.3f}")
        tables.append(table)
    return _apart(tables)


def _shown_difference(entry: Difference) -> str | Text:
    """A difference and its interval."""
    metric = compared(entry.metric)
    text = change_in_words(entry.estimate, lambda value: metric.shown(value, "+"))
    return strong(text) if entry.clear else text


def _grid(corner: str, metrics: Sequence[Metric], rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """A table of summary values, one row per name."""
    columns = [metric for metric in metrics if metric.short]
    table = Table()
    table.add_key(corner)
    for column in columns:
        table.add_number(column.short)
    for name, values in rows.items():
        table.add_row(name, *(_cell(column, values.get(column.key)) for column in columns))
    return table


def _cell(metric: Metric, value: float | None) -> str:
    """A value as printed; "-" if there is none."""
    return "-" if value is None or math.isnan(value) else metric.shown(value)


def score_table(lines: Sequence[Line], *, of_papers: bool, scored: bool) -> Table:
    """How many published cells, and claims, were met: of each table, or of each paper."""
    table = Table()
    table.add_key("paper" if of_papers else "table")
    table.add_number("cells within")
    if of_papers:
        table.add_number("claims hold")
    table.add_text("what")
    for name, cells, title, claims in lines:
        shown = f"{cells.within}/{cells.total}" if cells.total else "-"
        words = [shown if scored else "not scored"]
        words += [f"{claims.holds}/{claims.decided}"] if claims else []
        table.add_row(name, *words, title)
    return table


def list_table(kind: str, entries: Mapping[str, str]) -> Table:
    """Names and what they mean."""
    table = Table()
    table.add_key(kind)
    table.add_text("what it is")
    for name, summary in entries.items():
        table.add_row(name, summary)
    return table


def explanation(entry: Entry) -> list[str | Text | Table]:
    """What something is, and its parameters."""
    text = f" ({entry.kind})\n{entry.summary}"
    if entry.about:
        text += _origin(entry.about)
    head = Text.assemble(strong(entry.name), printable(text))
    if not entry.parameters:
        return [head]
    table = Table()
    has_values = any("value" in parameter for parameter in entry.parameters)
    table.add_key("parameter")
    table.add_key("value" if has_values else "default")
    table.add_text("meaning")
    for parameter in entry.parameters:
        table.add_row(parameter["name"], _given(parameter), _meaning(parameter))
    departures = [f"- {text}" for text in (entry.about or {}).get("departures", [])]
    if departures:
        return [head, "", table, "", strong("departures from the source"), *departures]
    return [head, "", table]


def _origin(about: Mapping[str, Any]) -> str:
    """What a discipline is for and where it comes from."""
    lines = {"": about["purpose"], "source: ": about["paper"], "memory: ": about["memory"]}
    return "\n" + "\n".join(f"{key}{text}" for key, text in lines.items())


def _given(parameter: Mapping[str, Any]) -> str:
    """The value of a profile's parameter, the default of a kind's."""
    if parameter.get("required"):
        return "required"
    value = parameter.get("value", parameter.get("default"))
    return "-" if value is None else _plain(value)


def _meaning(parameter: Mapping[str, Any]) -> str:
    """What a parameter is, then a profile's note or the words that may stand there."""
    words = [f"{word['name']}: {word['description']}" for word in parameter.get("words", [])]
    lines = [parameter["description"], parameter.get("note", ""), *words]
    return "\n".join(filter(None, lines))


def _plain(value: object) -> str:
    """A value as a scenario would write it, more or less."""
    return value if isinstance(value, str) else json.dumps(value)
