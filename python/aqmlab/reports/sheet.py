"""A report as pages (PDF) or as one picture (PNG), laid out here: neither needs a browser.

Everything is a *strip*, a piece of known height that spans the sheet; strips are stacked, and a
page ends where the next one does not fit. Every page is an SVG, which vl-convert turns into PDF or
PNG as it does with the charts.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import vl_convert

from aqmlab._util.files import write_bytes
from aqmlab._util.table import Cell, TableModel
from aqmlab.figures.files import inside
from aqmlab.figures.palette import PALETTE
from aqmlab.figures.pdf import A4, paper, pdf, size_of
from aqmlab.reports.charts import stills, stroke
from aqmlab.reports.sections import SECTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab.reports.content import Report

__all__ = [
    "Strip",
    "clean",
    "gap",
    "label",
    "paged",
    "sheet",
    "table",
    "text",
    "write_pdf",
    "write_png",
]


_HEIGHT, _WIDTH = A4
"""Of a page, landscape."""
_MARGIN = 44.0
_ROOM = _WIDTH - 2 * _MARGIN
"""Width of what stands on the sheet."""
_GLYPH = 0.56
"""Mean width of a character, in font sizes."""
_SERIFLESS = "'Liberation Sans', Arial, Helvetica, sans-serif"
_MONO = "'Liberation Mono', 'DejaVu Sans Mono', monospace"
_SIZE = 11.0
"""Font size of tables."""
_PAD = 12.0
"""Room beside a cell."""
_LEAST_SCALE = 0.8
"""Tables that do not fit are made smaller, down to this; wider ones are split."""
_COLOURS = PALETTE["light"]


@dataclass(frozen=True)
class Strip:
    """A piece of the sheet."""

    height: float
    drawing: str
    """SVG, from (0, 0) downwards."""
    head: Strip | None = None
    """What stands above it again when it begins a page."""
    below: float = 0.0
    """Room that must be left below it on its page: headings do not stand alone."""


def write_pdf(report: Report, path: Path) -> None:
    """Writes the whole report as pages."""
    strips = [*_main_strips(report), *_detail_strips(report)]
    pages = paged(strips, _HEIGHT - 2 * _MARGIN)
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
    height = 2 * _MARGIN + sum(strip.height for strip in content)
    write_bytes(path, vl_convert.svg_to_png(sheet(content, height, ""), scale=1.5))


def _main_strips(report: Report) -> Iterator[Strip]:
    """What a reader wants to see first."""
    yield from text(report.title, 24, bold=True)
    yield from text(report.question, 14, colour=_COLOURS["--soft"])
    yield from text("; ".join(filter(None, report.subjects[:4])), 11, colour=_COLOURS["--soft"])
    yield from text("   ".join(f"{name}: {value}" for name, value in report.facts), 11)
    for part in report.parts or [report]:
        if report.parts:
            yield gap(24)
            yield from text(part.title, 20, bold=True)
        yield from _result_strips(part)


def _result_strips(report: Report) -> Iterator[Strip]:
    """What the runs of one scenario say."""
    yield from _heading("summary")
    for line in report.verdict:
        yield from text(line, 12, bold=not line.startswith(" "))
    yield gap(6)
    for label, words in report.words:
        yield from text(f"{label}: {words}", 12)
    yield gap(6)
    for one in report.summary:
        yield from table(report.places, one)
    if report.differences:
        yield from _heading("differences")
        yield from text(report.differences.note, 11, colour=_COLOURS["--soft"])
        yield from table(report.places, report.differences)
    pictures = stills(report)
    if report.distributions:
        yield from _headed("responses", [_pair([pictures["cdf"], pictures["ccdf"]])])
    if report.traces:
        names = [name for name in ("queue", "probability") if name in pictures]
        yield from _headed("queues", [_pair([pictures[name]]) for name in names])
    if report.pictures:
        yield from _headed("pictures", [_pair([one.still]) for one in report.pictures])
    if report.reasons:
        yield from _heading("reasons")
        yield from table(report.places, report.reasons)


def _detail_strips(report: Report) -> Iterator[Strip]:
    """The rest, for readers who check."""
    if report.fidelity:
        yield from _heading("fidelity")
        yield from table(report.places, report.fidelity)
    yield from _heading("details")
    for part in report.parts or [report]:
        if report.parts:
            yield from text(part.title, 14, bold=True)
        for one in (*part.details, part.within, part.tail, part.traced):
            if one is not None and one.rows:
                yield from table(part.places, one)
    yield from _heading("method")
    for note in report.notes:
        yield from text(f"- {note}", 11)
    yield from text(
        "The scenarios are attached to this file, and complete: aqmlab run repeats a run from its "
        "scenario and seed, byte for byte.",
        11,
    )


def _heading(section: str, below: float = 90) -> Iterator[Strip]:
    """The heading of a section."""
    yield gap(18)
    *lines, last = text(SECTIONS[section], 17, bold=True)
    yield from lines
    yield replace(last, below=below)


def gap(height: float) -> Strip:
    """White space."""
    return Strip(height, "")


def text(
    words: str,
    size: float,
    *,
    bold: bool = False,
    mono: bool = False,
    colour: str = "",
    room: float = _ROOM,
    lines: int | None = None,
) -> Iterator[Strip]:
    """A paragraph, a strip a line; at most so many lines if that is given."""
    most = int(room / (size * (0.62 if mono or bold else 0.53)))
    for line in textwrap.wrap(
        words, most, drop_whitespace=not mono, max_lines=lines, placeholder=" …"
    ) or ([""] if mono else []):
        drawn = label(line, 0, 1.1 * size, size, bold=bold, mono=mono, colour=colour)
        yield Strip(1.5 * size, drawn)


def label(
    words: str,
    x: float,
    y: float,
    size: float,
    *,
    bold: bool = False,
    mono: bool = False,
    end: bool = False,
    colour: str = "",
) -> str:
    """A line of text, from a point or up to it."""
    attributes = {
        "x": f"{x:.1f}",
        "y": f"{y:.1f}",
        "font-size": f"{size:g}",
        "font-family": _MONO if mono else _SERIFLESS,
        "font-weight": "bold" if bold else "normal",
        "text-anchor": "end" if end else "start",
        "fill": colour or _COLOURS["--text"],
        "xml:space": "preserve",
    }
    given = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f"<text {given}>{escape(clean(words))}</text>"


def clean(words: str) -> str:
    """Text without the characters that XML cannot hold."""
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "", words)


def _headed(section: str, drawn: Sequence[Strip]) -> Iterator[Strip]:
    """Pictures under the heading of a section, which stays with the first of them."""
    yield from _heading(section, below=drawn[0].height if drawn else 0)
    yield from drawn


def _pair(pictures: Sequence[str]) -> Strip:
    """Pictures beside each other; alone, one is as wide as the sheet but no higher than a page."""
    room = (_ROOM - 20 * (len(pictures) - 1)) / len(pictures)
    drawn, height = [], 0.0
    for number, picture in enumerate(pictures):
        wide, tall = size_of(picture)
        scale = min(room / wide, (_HEIGHT - 2 * _MARGIN - 60) / tall, 1.25)
        height = max(height, scale * tall)
        drawn.append(inside(picture, number * (room + 20), scale))
    return Strip(height + 8, "".join(drawn))


def table(places: Mapping[str, int], one: TableModel, room: float = _ROOM) -> Iterator[Strip]:
    """A table: its caption, its head, a strip for each row; in parts where it is too wide.

    Args:
        places: Of each configuration the place by which its colour goes.
        one: The table.
        room: Width that there is.
    """
    parts = _parts(one, room)
    for number, part in enumerate(parts, 1):
        caption = one.caption + (f" ({number} of {len(parts)})" if len(parts) > 1 else "")
        yield from _fitting_table(places, part, caption, room)


def _natural(one: TableModel) -> list[float]:
    """The width that each column needs at full size."""
    columns = zip(one.head, *([cell.text for cell in row] for row in one.rows), strict=True)
    widths = [max(map(len, column)) * _GLYPH * _SIZE + _PAD for column in columns]
    widths[0] += 30  # the line in the configuration's colour
    return widths


def _parts(one: TableModel, room: float) -> list[TableModel]:
    """A table's columns in groups that stay readable, each beside the columns of words."""
    widths = _natural(one)
    most = room / _LEAST_SCALE
    kept = sum(widths[: one.words])
    groups: list[list[int]] = [[]]
    for column in range(one.words, len(widths)):
        if groups[-1] and kept + sum(widths[k] for k in groups[-1]) + widths[column] > most:
            groups.append([])
        groups[-1].append(column)
    return [one.part(group, whole=len(groups) == 1) for group in groups]


def _fitting_table(
    places: Mapping[str, int], one: TableModel, caption: str, room: float
) -> Iterator[Strip]:
    """A table that fits: its caption, its head, a strip for each row."""
    size, pad = _SIZE, _PAD
    natural = _natural(one)
    scale = min(1.0, room / sum(natural))
    ends = [sum(natural[: k + 1]) for k in range(len(natural))]
    strokes = {name: stroke(place) for name, place in places.items()}
    line = 1.75 * size

    def row(cells: Sequence[tuple[str, str]], *, bold: bool, mark: str = "") -> str:
        parts = [mark]
        for k, (words, colour) in enumerate(cells):
            left = ends[k] - natural[k] + (26 if k == 0 else 0)
            place = left if k < one.words else ends[k] - pad
            parts.append(
                label(words, place, 1.2 * size, size, bold=bold, end=k >= one.words, colour=colour)
            )
        return f'<g transform="scale({scale:.4f})">{"".join(parts)}</g>'

    width = scale * ends[-1]
    tall = f"{scale * line:.1f}"
    shade = f'<rect width="{width:.1f}" height="{tall}" fill="{_COLOURS["--shade"]}"/>'
    head = Strip(scale * line, shade + row([(name, "") for name in one.head], bold=True))
    rule = f'<path d="M0 {tall}H{width:.1f}" stroke="{_COLOURS["--line"]}"/>'
    *words, last = text(caption, 12, bold=True, room=room)
    yield from words
    yield replace(last, below=3 * scale * line)
    yield replace(head, below=scale * line)
    for cells in one.rows:
        mark = _key(strokes.get(cells[0].text), size)
        drawn = row([(cell.text, _tone(cell)) for cell in cells], bold=False, mark=mark)
        yield Strip(scale * line, drawn + rule, head=head)
    yield gap(12)


def _tone(cell: Cell) -> str:
    """The colour of a cell's text."""
    return _COLOURS.get(f"--{cell.tone}", "")


def _key(look: dict[str, str] | None, size: float) -> str:
    """The line of a configuration as its curves have it; nothing for other rows."""
    if look is None:
        return ""
    colour = _COLOURS[look["colour"].removeprefix("var(").removesuffix(")")]
    return (
        f'<line x1="0" x2="20" y1="{0.85 * size:.1f}" y2="{0.85 * size:.1f}" stroke="{colour}" '
        f'stroke-width="2.5" stroke-dasharray="{look["dash"]}"/>'
    )


def paged(strips: Iterable[Strip], height: float) -> list[list[Strip]]:
    """Strips by page."""
    pages: list[list[Strip]] = [[]]
    used = 0.0
    for strip in strips:
        if pages[-1] and used + strip.height + strip.below > height:
            pages.append([strip.head] if strip.head else [])
            used = strip.head.height if strip.head else 0.0
        if strip.drawing or pages[-1]:  # no white space at the top of a page
            pages[-1].append(strip)
            used += strip.height
    return pages


def sheet(strips: Sequence[Strip], height: float, foot: str, width: float = _WIDTH) -> str:
    """A page as SVG."""
    y, parts = _MARGIN, []
    for strip in strips:
        parts.append(f'<g transform="translate({_MARGIN:g} {y:.1f})">{strip.drawing}</g>')
        y += strip.height
    if foot:
        parts.append(
            label(foot, width - _MARGIN, height - 20, 9, end=True, colour=_COLOURS["--soft"])
        )
    return paper("".join(parts), width, height)
