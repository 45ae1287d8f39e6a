"""Tables of results for a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from aqmlab.results.compare import Difference, Distance
from aqmlab.results.groups import Group
from aqmlab.results.links import links_of, loaded_links
from aqmlab.results.metrics import ALL, FLOWS, LINK, RESPONSES, TRANSFERS, Metric, compared
from aqmlab.results.run import Run
from aqmlab.results.shown import Shown, link_rows, response_rows, seeds_in_words, transfer_rows
from aqmlab.results.statistics import Estimate
from aqmlab.scenario.catalog import Entry

__all__ = [
    "compare_tables",
    "difference_tables",
    "distance_tables",
    "explanation",
    "list_table",
    "run_tables",
    "score_table",
]


def run_tables(run: Run) -> list[RenderableType]:
    """What one run measured: its loaded links, its responses, its connections."""
    summary = run.summary
    title = run.scenario.get("title") or run.label
    how = "in real time" if "live" in summary else "simulated"
    span = f"{summary['measured_s']:g} s measured of {summary['simulated_s']:g} s {how}"
    every, loaded = links_of(run), loaded_links([run])
    links = {str(at): values for at, values in every.items() if at in loaded}
    idle = [str(at) for at in every if at not in loaded]
    head = f"{title}: {run.label}, seed {summary['seed']}, {span}"
    invalid = [f"[bold]invalid:[/bold] {escape(reason)}" for reason in run.invalid]
    return [
        escape(head),
        *invalid,
        _grid("link", LINK, links),
        *([f"idle, not shown: {_some(idle)}"] if idle else []),
        *_class_tables(summary),
    ]


def _some(names: Sequence[str], most: int = 4) -> str:
    """The first of some names and how many there are besides."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return escape(", ".join(names[:most]) + more)


def _class_tables(summary: Mapping[str, Any]) -> list[RenderableType]:
    """The classes with responses, and the connections of all classes."""
    responses = {
        name: values
        for name, values in _by_class(summary["responses"]).items()
        if values.get("count")
    }
    return [
        *([_grid("class", RESPONSES, responses)] if responses else []),
        _grid("class", FLOWS, _by_class(summary["flows"])),
    ]


def _by_class(results: Mapping[str, Any]) -> dict[str, Any]:
    """Results by class; "all" is left out if it says nothing new."""
    named = {name: values for name, values in results.items() if name != "all"}
    return named if len(named) == 1 else {**named, "all": results.get("all", {})}


def compare_tables(groups: Sequence[Group]) -> list[RenderableType]:
    """What users felt, then what the loaded queues did; one row per group, class or link."""
    seeds = seeds_in_words(groups)
    parts = (
        (response_rows(groups), f"response times, {seeds}"),
        (transfer_rows(groups), f"traffic without responses, {seeds}"),
        (link_rows(groups), f"loaded links, {seeds}"),
    )
    found: list[RenderableType] = []
    for shown, title in parts:
        if shown.rows:
            found += [*([""] if found else []), title, _shown_table(shown)]
    return found


def _shown_table(shown: Shown) -> Table:
    """A table of estimates: means, with half of the interval where there is one."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for corner in shown.corners:
        table.add_column(corner, no_wrap=True)
    for metric in shown.metrics:
        table.add_column(metric.short, justify="right", no_wrap=True)
    for names, values in shown.rows:
        cells = [_estimate_cell(metric, values.get(metric.key)) for metric in shown.metrics]
        table.add_row(*map(escape, names), *cells)
    return table


def _estimate_cell(metric: Metric, found: Estimate | None) -> str:
    """A mean and half of its interval; "-" if there is none."""
    if found is None:
        return "-"
    mean = metric.shown(found.mean)
    return mean if math.isnan(found.half_width) else f"{mean} ± {metric.shown(found.half_width)}"


def difference_tables(found: Sequence[Difference]) -> list[RenderableType]:
    """Differences with their intervals, a table for each baseline; clear ones are bold."""
    tables: list[RenderableType] = []
    for baseline in dict.fromkeys(entry.baseline for entry in found):
        own = [entry for entry in found if entry.baseline == baseline]
        kinds = [
            [entry for entry in own if (entry.metric in _TRANSFER_KEYS) is moved]
            for moved in (False, True)
        ]
        for kind in filter(None, kinds):
            bases = ", ".join(dict.fromkeys(entry.basis for entry in kind))
            title = f"against {escape(baseline)}, with 95 % intervals ({bases})"
            if not any(entry.interval for entry in kind):
                title = f"against {escape(baseline)} ({bases}: no intervals)"
            tables += ["", title, _difference_table(kind)]
    return tables[1:]


_TRANSFER_KEYS = {metric.key for metric in TRANSFERS}
"""Numbers of classes that get no responses."""


def _difference_table(found: Sequence[Difference]) -> Table:
    """Differences to one baseline."""
    several = {difference.traffic for difference in found} != {ALL}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("run", no_wrap=True)
    if several:
        table.add_column("class", no_wrap=True)
    metrics = list(dict.fromkeys(difference.metric for difference in found))
    for metric in metrics:
        table.add_column(compared(metric).change_head, justify="right", no_wrap=True)
    for run, traffic in dict.fromkeys((entry.run, entry.traffic) for entry in found):
        entries = {d.metric: d for d in found if (d.run, d.traffic) == (run, traffic)}
        cells = [
            _shown_difference(entries[metric]) if metric in entries else "-" for metric in metrics
        ]
        table.add_row(escape(run), *([escape(traffic)] if several else []), *cells)
    return table


def distance_tables(found: Sequence[Distance]) -> list[RenderableType]:
    """Kolmogorov's distances of the response times, a table for each baseline."""
    tables: list[RenderableType] = []
    for baseline in dict.fromkeys(entry.baseline for entry in found):
        title = f"distance of the response times from those of {escape(baseline)}"
        table = Table(box=None, pad_edge=False, header_style="bold")
        for head in ("run", "class"):
            table.add_column(head, no_wrap=True)
        table.add_column("Kolmogorov", justify="right", no_wrap=True)
        for entry in found:
            if entry.baseline == baseline:
                cells = (entry.run, entry.traffic, f"{entry.kolmogorov:.3f}")
                table.add_row(*map(escape, cells))
        tables += ["", title, table]
    return tables[1:]


def _shown_difference(entry: Difference) -> str:
    """A difference and its interval."""
    middle, low, high = (
        compared(entry.metric).shown(value, "+")
        for value in (entry.difference, entry.low, entry.high)
    )
    text = middle if entry.interval is None else f"{middle} ({low} to {high})"
    return f"[bold]{text}[/bold]" if entry.clear else text


def _grid(corner: str, metrics: Sequence[Metric], rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """A table of summary values, one row per name."""
    columns = [metric for metric in metrics if metric.short]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(corner, no_wrap=True)
    for column in columns:
        table.add_column(column.short, justify="right", no_wrap=True)
    for name, values in rows.items():
        table.add_row(escape(name), *(_cell(column, values.get(column.key)) for column in columns))
    return table


def _cell(metric: Metric, value: float | None) -> str:
    """A value as printed; "-" if there is none."""
    return "-" if value is None or math.isnan(value) else metric.shown(value)


def score_table(result: Mapping[str, Any]) -> Table:
    """How many published cells, and claims, were met: of each table, or of each paper."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    whole = "papers" in result
    table.add_column("paper" if whole else "table", no_wrap=True)
    table.add_column("cells within", justify="right")
    if whole:
        table.add_column("claims hold", justify="right")
    table.add_column("what")
    parts = result["papers"] if whole else result["tables"]
    for name, part in {**parts, "all": result}.items():
        cells = part.get("cells", part)
        shown = f"{cells['within']}/{cells['total']}" if cells["total"] else "-"
        shown = shown if result["scored"] else "not scored"
        cells_and_claims = [shown, _claims_words(part["claims"])] if whole else [shown]
        table.add_row(escape(name), *cells_and_claims, escape(part.get("title", "")))
    return table


def _claims_words(score: Mapping[str, int]) -> str:
    """How many of the claims that were decided hold."""
    return f"{score['holds']}/{score['holds'] + score['fails']}"


def list_table(kind: str, entries: Mapping[str, str]) -> Table:
    """Names and what they mean."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(kind, no_wrap=True)
    table.add_column("what it is")
    for name, summary in entries.items():
        table.add_row(escape(name), escape(summary))
    return table


def explanation(entry: Entry) -> list[RenderableType]:
    """What something is, and its parameters."""
    head = f"[bold]{escape(entry.name)}[/bold] ({escape(entry.kind)})\n{escape(entry.summary)}"
    if entry.about:
        head += _origin(entry.about)
    if not entry.parameters:
        return [head]
    table = Table(box=None, pad_edge=False, header_style="bold")
    has_values = any("value" in parameter for parameter in entry.parameters)
    table.add_column("parameter", no_wrap=True)
    table.add_column("value" if has_values else "default", no_wrap=True)
    table.add_column("meaning")
    for parameter in entry.parameters:
        table.add_row(*map(escape, (parameter["name"], _given(parameter), _meaning(parameter))))
    departures = [f"- {escape(text)}" for text in (entry.about or {}).get("departures", [])]
    if departures:
        departures.insert(0, "\n[bold]departures from the source[/bold]")
    return [head, "", table, *departures]


def _origin(about: Mapping[str, Any]) -> str:
    """What a discipline is for and where it comes from."""
    lines = {"": about["purpose"], "source: ": about["paper"], "memory: ": about["memory"]}
    return "\n" + "\n".join(f"{key}{escape(text)}" for key, text in lines.items())


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
