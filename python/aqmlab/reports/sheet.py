"""A report as pages (PDF) or as one picture (PNG): neither needs a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import vl_convert

from aqmlab._util.files import write_bytes
from aqmlab.document.sheet import (
    COLOURS,
    MARGIN,
    Strip,
    clean,
    gap,
    heading,
    paged,
    pair,
    sheet,
    table,
    text,
)
from aqmlab.figures.pdf import A4, pdf
from aqmlab.reports.charts import stills, stroke
from aqmlab.reports.sections import SECTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab.reports.content import Report

__all__ = ["write_pdf", "write_png"]


_HEIGHT = A4[0]
"""Of a page, landscape."""


def write_pdf(report: Report, path: Path) -> None:
    """Writes the whole report as pages."""
    strips = [*_main_strips(report), *_detail_strips(report)]
    pages = paged(strips, _HEIGHT - 2 * MARGIN)
    drawings = (
        sheet(content, _HEIGHT, f"{report.title}, page {number} of {len(pages)}")
        for number, content in enumerate(pages, 1)
    )
    scenarios = {
        f"scenario-{number}.toml": scenario.text
        for number, scenario in enumerate(report.scenarios, 1)
    }
    write_bytes(path, pdf(drawings, clean(report.title), attachments=scenarios))


def write_png(report: Report, path: Path) -> None:
    """Writes summary, differences, charts and drops as one picture."""
    [content] = paged(list(_main_strips(report)), float("inf"))
    height = 2 * MARGIN + sum(strip.height for strip in content)
    write_bytes(path, vl_convert.svg_to_png(sheet(content, height, ""), scale=1.5))


def _main_strips(report: Report) -> Iterator[Strip]:
    """What a reader wants to see first."""
    yield from text(report.title, 24, bold=True)
    yield from text(report.question, 14, colour=COLOURS["--soft"])
    yield from text("; ".join(filter(None, report.subjects[:4])), 11, colour=COLOURS["--soft"])
    yield from text("   ".join(f"{name}: {value}" for name, value in report.facts), 11)
    for part in report.parts or [report]:
        if report.parts:
            yield gap(24)
            yield from text(part.title, 20, bold=True)
        yield from _result_strips(part)


def _result_strips(report: Report) -> Iterator[Strip]:
    """What the runs of one scenario say."""
    yield from heading(SECTIONS["summary"])
    for line in report.verdict:
        yield from text(line, 12, bold=not line.startswith(" "))
    yield gap(6)
    for label, words in report.words:
        yield from text(f"{label}: {words}", 12)
    yield gap(6)
    for one in report.summary:
        yield from table(_strokes(report), one)
    if report.differences:
        yield from heading(SECTIONS["differences"])
        yield from text(report.differences.note, 11, colour=COLOURS["--soft"])
        yield from table(_strokes(report), report.differences)
    pictures = stills(report)
    if report.distributions:
        yield from _headed("responses", [pair([pictures["cdf"], pictures["ccdf"]])])
    if report.traces:
        names = [name for name in ("queue", "probability") if name in pictures]
        yield from _headed("queues", [pair([pictures[name]]) for name in names])
    if report.pictures:
        yield from _headed("pictures", [pair([one.still]) for one in report.pictures])
    if report.reasons:
        yield from heading(SECTIONS["reasons"])
        yield from table(_strokes(report), report.reasons)


def _detail_strips(report: Report) -> Iterator[Strip]:
    """The rest, for readers who check."""
    if report.fidelity:
        yield from heading(SECTIONS["fidelity"])
        yield from table(_strokes(report), report.fidelity)
    yield from heading(SECTIONS["details"])
    for part in report.parts or [report]:
        if report.parts:
            yield from text(part.title, 14, bold=True)
        for one in (*part.details, part.within, part.tail, part.traced):
            if one is not None and one.rows:
                yield from table(_strokes(part), one)
    yield from heading(SECTIONS["method"])
    for note in report.notes:
        yield from text(f"- {note}", 11)
    yield from text(
        "The scenarios are attached to this file, and complete: aqmlab run repeats a run from its "
        "scenario and seed, byte for byte.",
        11,
    )


def _headed(section: str, drawn: Sequence[Strip]) -> Iterator[Strip]:
    """Pictures under the heading of a section, which stays with the first of them."""
    yield from heading(SECTIONS[section], below=drawn[0].height if drawn else 0)
    yield from drawn


def _strokes(report: Report) -> dict[str, dict[str, str]]:
    """The line of each configuration, as its curves have it."""
    return {name: stroke(place) for name, place in report.places.items()}
