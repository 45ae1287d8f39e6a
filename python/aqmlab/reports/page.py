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
from aqmlab.reports.sections import SECTIONS
from aqmlab.results.metrics import ALL

if TYPE_CHECKING:
    from aqmlab.reports.content import Report

__all__ = ["rest", "results"]


_CAPTIONS = {
    "cdf": "Share of the responses that ended within a time",
    "ccdf": "Share of the responses that took a time or longer, both axes logarithmic",
    "queue": "Packets in the queue over time",
    "probability": "Signal probability over time",
}
"""What the charts show."""


def results(report: Report, *, on_sheet: bool) -> Iterator[Block]:
    """What a reader wants to see first. On a sheet, numbers behind pictures come with the rest."""
    yield Title(report.title, report.question)
    yield Text("; ".join(filter(None, report.subjects[:4])), "soft")
    yield Facts(report.facts)
    for number, part in enumerate(report.parts or [report], 1):
        if report.parts:
            yield Heading(part.title)
        yield from _results(part, f"{number}-" if report.parts else "", on_sheet=on_sheet)
        if report.parts and not on_sheet:
            yield from _details(part, 3)


def rest(report: Report, *, on_sheet: bool) -> Iterator[Block]:
    """What was published, all numbers, and how everything came about."""
    if report.fidelity:
        yield Heading(SECTIONS["fidelity"])
        yield Table(report.fidelity)
    if on_sheet and report.parts:
        yield Heading(SECTIONS["details"])
    for part in report.parts if on_sheet else ():
        yield Heading(part.title, 3)
        yield from _numbers(part, on_sheet=True)
    if not report.parts:
        yield from _details(report, 2, on_sheet=on_sheet)
    yield Heading(SECTIONS["method"])
    yield Items([Item(note) for note in report.notes])
    if on_sheet:
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


def _results(report: Report, prefix: str, *, on_sheet: bool) -> Iterator[Block]:
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
            if behind and not on_sheet:
                yield Table(behind, strokes)
    if report.traces:
        yield heading("queues")
        for name in ("queue", "probability"):
            yield pictures(name)
        if report.traced and not on_sheet:
            yield Table(report.traced, strokes)
    if report.pictures:
        yield heading("pictures")
        for shown in report.pictures:
            still = Picture(prefix + shown.name, _same(shown.still), shown.title, True)
            yield Pictures([still])
    if report.reasons:
        yield heading("reasons")
        yield Table(report.reasons, strokes)


def _details(report: Report, level: int, *, on_sheet: bool = False) -> Iterator[Block]:
    """All numbers."""
    yield Heading(SECTIONS["details"], level)
    yield from _numbers(report, on_sheet=on_sheet)


def _numbers(report: Report, *, on_sheet: bool) -> Iterator[Block]:
    """The tables of all numbers; on a sheet also those behind pictures."""
    behind = (report.within, report.tail, report.traced) if on_sheet else ()
    for one in (*report.details, *behind):
        if one is not None and one.rows:
            yield Table(one, _strokes(report))


def _strokes(report: Report) -> dict[str, dict[str, str]]:
    """The line of each configuration, as its curves have it."""
    return {name: stroke(place) for name, place in report.places.items()}


def _same(still: str) -> Callable[[str], str]:
    """What draws a picture that is drawn."""
    return lambda _: still
