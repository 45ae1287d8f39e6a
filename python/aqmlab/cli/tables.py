"""Tables of results for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab._util.table import TableModel, strong
from aqmlab._util.words import several
from aqmlab.results.directions import in_words
from aqmlab.results.groups import stated_classes
from aqmlab.results.links import links_of, loaded_links
from aqmlab.results.metrics import ALL, DATAGRAMS, FLOWS, LINK, QUALITY, RESPONSES, flattened
from aqmlab.results.run import Run
from aqmlab.results.tables import one_run

if TYPE_CHECKING:
    from aqmlab.papers.reproduction import ScoreLine

__all__ = [
    "apart",
    "run_tables",
    "runs_tsv",
    "score_table",
]


def run_tables(run: Run) -> list[str | TableModel]:
    """What one run measured: its loaded links, its responses, its connections."""
    summary = run.summary
    title = run.scenario.get("title") or run.label
    how = "in real time" if "live" in summary else "simulated"
    span = f"{summary['measured_s']:g} s measured of {summary['simulated_s']:g} s {how}"
    every, loaded = links_of(run), loaded_links([run])
    named = {at: in_words(at, run.scenario) for at in every}
    links = {named[at]: values for at, values in every.items() if at in loaded}
    idle = [named[at] for at in every if at not in loaded]
    seed = f", seed {summary['seed']}"
    return [
        f"{title}: {run.label.removesuffix(seed)}{seed}",
        span,
        *(strong(f"invalid: {reason}") for reason in run.invalid),
        one_run("link", LINK, links),
        *([f"idle, not shown: {several(idle, 4)}"] if idle else []),
        *_class_tables(summary),
        *_datagrams(summary["flows"]),
        *_quality(summary.get("quality", {})),
    ]


def _quality(quality: Mapping[str, Any]) -> list[str | TableModel]:
    """What users of applications got: a table for each kind of figures."""
    by_figures: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, found in quality.items():
        by_figures.setdefault(tuple(found), {})[name] = found
    return [
        part
        for figures, rows in by_figures.items()
        for part in ("", one_run("application", [m for m in QUALITY if m.key in figures], rows))
    ]


def _datagrams(flows: Mapping[str, Any]) -> list[str | TableModel]:
    """What the datagrams of classes met, if there were any."""
    named = {name: of for name, of in flows.items() if name != "all" and of.get("datagrams_sent")}
    if not named:
        return []
    return [
        "",
        one_run(
            "datagrams", DATAGRAMS, named if len(named) == 1 else {**named, "all": flows["all"]}
        ),
    ]


def _class_tables(summary: Mapping[str, Any]) -> list[str | TableModel]:
    """The classes with responses, and the connections of all classes."""
    responses = {
        name: values
        for name, values in _by_class(summary["responses"]).items()
        if values.get("count")
    }
    if ALL not in stated_classes(summary):
        responses.pop(ALL, None)
    flows = one_run("class", FLOWS, _by_class(summary["flows"]))
    served = [one_run("class", RESPONSES, responses)] if responses else []
    return ["", *apart([*served, flows])]


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


def apart(found: Sequence[TableModel]) -> list[str | TableModel]:
    """Tables with empty lines between them."""
    parts: list[str | TableModel] = []
    for table in found:
        parts += ["", table] if parts else [table]
    return parts


def score_table(lines: Sequence[ScoreLine], *, of_papers: bool, scored: bool) -> TableModel:
    """How many published cells, and claims, were met: of each table, or of each paper."""
    numbers = ["cells within", *(["claims hold"] if of_papers else [])]
    table = TableModel("", ["paper" if of_papers else "table"], numbers, ["what"])
    for name, cells, title, claims in lines:
        shown = f"{cells.within}/{cells.total}" if cells.total else "-"
        words = [shown if scored else "not scored"]
        words += [f"{claims.holds}/{claims.decided}"] if claims else []
        table.add_row(name, *words, title)
    return table
