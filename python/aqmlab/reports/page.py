"""What a report says, as blocks: for Markdown, pages and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from aqmlab._util.table import Cell, TableModel
from aqmlab.document.blocks import (
    Block,
    Code,
    Facts,
    Heading,
    Item,
    Items,
    Picture,
    Pictures,
    Table,
    Text,
    Title,
)
from aqmlab.reports.charts import stills, stroke
from aqmlab.results.metrics import ALL

if TYPE_CHECKING:
    from aqmlab.reports.content import Report

__all__ = ["SECTIONS", "blocks"]


SECTIONS = {
    "summary": "Summary",
    "differences": "Differences",
    "responses": "Response times",
    "queues": "Queues",
    "pictures": "Figures",
    "reasons": "Drops",
    "fidelity": "Fidelity",
    "details": "All numbers",
    "method": "Runs",
}
"""Sections of the page, as far as there is something to show."""
_CAPTIONS = {
    "cdf": "Share of the responses that ended within a time",
    "ccdf": "Share of the responses that took a time or longer, both axes logarithmic",
    "queue": "Packets in the queue over time",
    "probability": "Signal probability over time",
}
"""What the charts show."""


def blocks(report: Report, kind: str) -> Iterator[Block]:
    """The report from top to bottom.

    Args:
        report: the report.
        kind: what it is written as. A sheet (``pdf``) has the numbers behind pictures at its end; a
            picture (``png``) has what a reader wants to see first.
    """
    yield Title(report.title, report.question)
    yield Text("; ".join(filter(None, report.subjects[:4])), "soft")
    yield Facts(report.facts)
    parts = report.parts or [report]
    for number, part in enumerate(parts, 1):
        if report.parts:
            yield Heading(part.title)
        yield from _results(part, f"{number}-" if report.parts else "", kind)
        if report.parts and kind == "md":
            yield Heading(SECTIONS["details"], 3)
            yield from _numbers(part, kind)
    if kind == "png":
        return
    if report.fidelity:
        yield Heading(SECTIONS["fidelity"])
        yield Table(report.fidelity)
    if kind == "pdf" or not report.parts:
        yield Heading(SECTIONS["details"])
        for part in parts:
            if report.parts:
                yield Heading(part.title, 3)
            yield from _numbers(part, kind)
    yield Heading(SECTIONS["method"])
    yield Items([Item(note) for note in report.notes])
    if kind == "pdf":
        yield Text(
            "The scenarios are attached to this file, and complete: aqmlab run repeats a run from "
            "its scenario and seed, byte for byte."
        )
        return
    table = TableModel("", ["run", "seed", "engine", "run directory"])
    for run in report.sources:
        where = Cell(run.folder, address=run.folder)
        table.add_row(run.label, str(run.seed), run.engine, where)
    yield Table(table)
    for scenario in report.scenarios:
        yield Heading(f"Scenario: {scenario.label}", 3)
        yield Code(scenario.text)
        yield Text("The text goes on in the run directory." if scenario.cut else "")


def _results(report: Report, prefix: str, kind: str) -> Iterator[Block]:
    """What the runs of one scenario say."""
    strokes = _strokes(report)

    def heading(section: str) -> Heading:
        return Heading(SECTIONS[section], 3 if prefix else 2)

    def pictures(*names: str) -> Pictures:
        return Pictures([drawn[name] for name in names if name in drawn])

    found = report.distributions
    whose = f", class {found.traffic}" if found and found.traffic != ALL else ""
    drawn = {
        name: Picture(
            prefix + name,
            _same(still),
            _CAPTIONS[name] + (whose if name in ("cdf", "ccdf") else ""),
        )
        for name, still in stills(report).items()
    }
    yield heading("summary")
    head, *lines = report.verdict or [""]
    yield Text(head, "verdict")
    yield Items([Item(line.strip()) for line in lines])
    for label, words in report.words:
        yield Text(words, label=label)
    for one in report.summary:
        yield Table(one, strokes)
    if report.differences:
        yield heading("differences")
        yield Text(report.differences.note, "soft")
        yield Table(report.differences, strokes)
    if report.distributions:
        yield heading("responses")
        yield pictures("cdf", "ccdf")
        for behind in (report.within, report.tail):
            if behind and kind == "md":
                yield Table(behind, strokes)
    if report.traces:
        yield heading("queues")
        for name in ("queue", "probability"):
            yield pictures(name)
        if report.traced and kind == "md":
            yield Table(report.traced, strokes)
    if report.pictures:
        yield heading("pictures")
        for shown in report.pictures:
            still = Picture(prefix + shown.name, _same(shown.still), shown.title, True)
            yield Pictures([still])
    if report.reasons:
        yield heading("reasons")
        yield Table(report.reasons, strokes)


def _numbers(report: Report, kind: str) -> Iterator[Block]:
    """The tables of all numbers; on a sheet also those behind pictures."""
    behind = (report.within, report.tail, report.traced) if kind == "pdf" else ()
    for one in (*report.details, *behind):
        if one is not None and one.rows:
            yield Table(one, _strokes(report))


def _strokes(report: Report) -> dict[str, dict[str, str]]:
    """The line of each configuration, as its curves have it."""
    return {name: stroke(place) for name, place in report.places.items()}


def _same(still: str) -> Callable[[str], str]:
    """What draws a picture that is drawn."""
    return lambda _: still
