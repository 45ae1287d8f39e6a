"""Tables of results for a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from aqmlab._util.console import strong
from aqmlab._util.table import Table
from aqmlab._util.words import printable
from aqmlab.results.compare import Difference, Distance
from aqmlab.results.links import main_link
from aqmlab.results.metrics import DATAGRAMS, FLOWS, LINK, RESPONSES, Metric, chosen, flattened
from aqmlab.results.run import Run
from aqmlab.scenario.catalog import Entry

__all__ = [
    "compare_table",
    "difference_table",
    "distance_table",
    "explanation",
    "list_table",
    "run_tables",
    "runs_tsv",
    "score_table",
]


_COMPARED_LINK = chosen(LINK, "loss_rate", "utilization", "queue_mean_packets")
_COMPARED_RESPONSES = chosen(
    RESPONSES, "count", "p50_s", "p90_s", "p99_s", "le_1s", "le_2s", "gt_3s"
)


def run_tables(run: Run) -> list[str | Text | Table]:
    """What one run measured: its links, its responses, its connections."""
    summary = run.summary
    title = run.scenario.get("title") or run.label
    how = "in real time" if "live" in summary else "simulated"
    span = f"{summary['measured_s']:g} s measured of {summary['simulated_s']:g} s {how}"
    links = {
        f"{link} {direction}": values
        for link, directions in summary["links"].items()
        for direction, values in directions.items()
    }
    head = f"{title}: {run.label}, seed {summary['seed']}, {span}"
    return [
        head,
        *(strong(f"invalid: {reason}") for reason in run.invalid),
        _grid("link", LINK, links),
        "",
        _grid("class", RESPONSES, _by_class(summary["responses"])),
        "",
        _grid("class", FLOWS, _by_class(summary["flows"])),
        *_datagrams(summary["flows"]),
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


def compare_table(runs: Sequence[Run]) -> Table:
    """One row per run: what its queue did, and what its users felt."""
    name, direction = main_link(runs)
    rows = {
        run.label: {
            **{
                metric.key: run.summary["links"].get(name, {}).get(direction, {}).get(metric.key)
                for metric in _COMPARED_LINK
            },
            **{
                metric.key: run.summary["responses"]["all"].get(metric.key)
                for metric in _COMPARED_RESPONSES
            },
        }
        for run in runs
    }
    return _grid("run", (*_COMPARED_LINK, *_COMPARED_RESPONSES), rows)


def difference_table(found: Sequence[Difference]) -> Table:
    """Differences with their intervals; clear ones are bold."""
    several = len({difference.traffic for difference in found}) > 1
    table = Table(f"against {found[0].baseline}, with 95 % intervals")
    table.add_key("run")
    if several:
        table.add_key("class")
    metrics = list(dict.fromkeys(difference.metric for difference in found))
    for metric in metrics:
        table.add_number(_metric_of(metric).change_head)
    for run, traffic in dict.fromkeys((entry.run, entry.traffic) for entry in found):
        entries = {d.metric: d for d in found if (d.run, d.traffic) == (run, traffic)}
        cells = [_shown_difference(entries[metric]) for metric in metrics]
        table.add_row(run, *([traffic] if several else []), *cells)
    return table


def distance_table(found: Sequence[Distance]) -> Table:
    """Kolmogorov's distances of the response times."""
    table = Table(f"distance of the response times from those of {found[0].baseline}")
    for head in ("run", "class"):
        table.add_key(head)
    table.add_number("Kolmogorov")
    for entry in found:
        table.add_row(entry.run, entry.traffic, f"{entry.kolmogorov:.3f}")
    return table


def _metric_of(key: str) -> Metric:
    """What is known of a compared statistic."""
    [metric] = chosen(RESPONSES, key)
    return metric


def _shown_difference(entry: Difference) -> str | Text:
    """A difference and its interval."""
    middle, low, high = (
        _metric_of(entry.metric).shown(value, "+")
        for value in (entry.difference, entry.low, entry.high)
    )
    text = middle if entry.interval is None else f"{middle} ({low} to {high})"
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


def score_table(result: Mapping[str, Any]) -> Table:
    """How many published cells, and claims, were met: of each table, or of each paper."""
    table = Table()
    whole = "papers" in result
    table.add_key("paper" if whole else "table")
    table.add_number("cells within")
    if whole:
        table.add_number("claims hold")
    table.add_text("what")
    parts = result["papers"] if whole else result["tables"]
    for name, part in {**parts, "all": result}.items():
        cells = part.get("cells", part)
        shown = f"{cells['within']}/{cells['total']}" if cells["total"] else "-"
        shown = shown if result["scored"] else "not scored"
        cells_and_claims = [shown, _claims_words(part["claims"])] if whole else [shown]
        table.add_row(name, *cells_and_claims, part.get("title", ""))
    return table


def _claims_words(score: Mapping[str, int]) -> str:
    """How many of the claims that were decided hold."""
    return f"{score['holds']}/{score['holds'] + score['fails']}"


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
