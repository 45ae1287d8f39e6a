"""Blocks as pages (PDF), laid out here: that needs no browser.

Everything is a *strip*, a piece of known height that spans the sheet; strips are stacked, and a
page ends where the next one does not fit. Every page is an SVG, which vl-convert turns into PDF or
PNG as it does with the charts.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from xml.sax.saxutils import escape

import vl_convert

from aqmlab._util.table import Cell, ColumnKind, TableModel
from aqmlab.document.blocks import Block, Facts, Heading, Items, Pictures, Table, Text, Title
from aqmlab.figures.files import inside
from aqmlab.figures.palette import PALETTE
from aqmlab.figures.pdf import A4, paper, pdf, size_of

__all__ = [
    "Strip",
    "clean",
    "document",
    "gap",
    "label",
    "paged",
    "picture",
    "sheet",
    "table",
    "text",
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
_INDENT = 28.0
"""Room for the line in a configuration's colour, and below the name of a group of rows."""
_PROSE = 0.38
"""Most of the room that a column of prose takes."""
_COLOURS = PALETTE["light"]
Strokes: TypeAlias = Mapping[str, Mapping[str, str]]
"""Colour and pattern of lines, by the label of a configuration."""


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


def document(
    title: str,
    blocks: Iterable[Block],
    *,
    is_upright: bool = True,
    attachments: Mapping[str, str] | None = None,
) -> bytes:
    """Blocks as A4 pages (PDF), with texts that go with the document, by file name."""
    width, height = A4 if is_upright else A4[::-1]
    pages = paged(_all_strips(blocks, width - 2 * _MARGIN), height - 2 * _MARGIN)
    drawings = (
        sheet(content, height, f"{title}, page {number} of {len(pages)}", width)
        for number, content in enumerate(pages, 1)
    )
    return pdf(drawings, clean(title), attachments=attachments)


def picture(blocks: Iterable[Block]) -> bytes:
    """Blocks as one picture (PNG)."""
    [content] = paged(_all_strips(blocks, _ROOM), float("inf"))
    height = 2 * _MARGIN + sum(strip.height for strip in content)
    return vl_convert.svg_to_png(sheet(content, height, ""), scale=1.5)


def _all_strips(blocks: Iterable[Block], room: float) -> Iterator[Strip]:
    """Blocks as strips; a heading stays with the picture that follows it."""
    made = [strips for block in blocks if (strips := [*_strips(block, room)])]
    for strips, following in zip(made, [*made[1:], []], strict=True):
        *above, last = strips
        yield from above
        yield (
            replace(last, below=max(last.below, following[0].height))
            if (last.below and following)
            else last
        )


def _strips(block: Block, room: float) -> Iterator[Strip]:
    """A block on a sheet."""
    soft = _COLOURS["--soft"]
    if isinstance(block, Title):
        yield from text(block.text, 24, bold=True, room=room)
        yield from text(block.beside, 12, colour=soft, room=room)
    elif isinstance(block, Heading):
        yield gap(18)
        *lines, last = text(block.text, 21 - 2 * block.level, bold=True, room=room)
        yield from lines
        yield replace(last, below=90)
    elif isinstance(block, Text):
        words = ": ".join(filter(None, (block.label, block.words)))
        size = 12 if block.tone == "verdict" else 11
        colour = _COLOURS.get(f"--{block.tone}", "")
        yield from text(words, size, bold=size == 12, colour=colour, room=room)
        yield gap(4)
    elif isinstance(block, Facts):
        yield from text("   ".join(f"{name}: {it}" for name, it in block.pairs), 11, room=room)
    elif isinstance(block, Items):
        for one in block.items:
            colour = _COLOURS["--worse"] if one.word == "FAIL" else ""
            yield from text(f"- {one.said}", 11, colour=colour, room=room)
        yield gap(6)
    elif isinstance(block, Table):
        yield from table(block.strokes, block.model, room)
    elif isinstance(block, Pictures) and block.pictures:
        yield _pair([shown.draw("light") for shown in block.pictures], room)
        for shown in block.pictures:
            words = "" if shown.has_title else shown.caption
            yield from text(words, 11, colour=soft, room=room)


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
) -> Iterator[Strip]:
    """A paragraph, a strip a line."""
    most = int(room / (size * (0.62 if mono or bold else 0.53)))
    for line in textwrap.wrap(words, most, drop_whitespace=not mono) or ([""] if mono else []):
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


def _pair(pictures: Sequence[str], room: float = _ROOM) -> Strip:
    """Pictures beside each other; alone, one is as wide as the sheet but no higher than a page."""
    each = (room - 20 * (len(pictures) - 1)) / len(pictures)
    drawn, height = [], 0.0
    for number, picture in enumerate(pictures):
        wide, tall = size_of(picture)
        scale = min(each / wide, (_HEIGHT - 2 * _MARGIN - 60) / tall, 1.25)
        height = max(height, scale * tall)
        drawn.append(inside(picture, number * (each + 20), scale))
    return Strip(height + 8, "".join(drawn))


def table(strokes: Strokes, one: TableModel, room: float = _ROOM) -> Iterator[Strip]:
    """A table: its caption, its head, a strip for each row; in parts where it is too wide.

    Args:
        strokes: Of each configuration the line that its curves have.
        one: The table.
        room: Width that there is.
    """
    groups: list[Cell] = []
    if one.is_grouped:
        groups = [row[0] for row in one.rows]
        one = one.select(range(1, len(one.columns)))
    indent = _INDENT if strokes or groups else 0.0
    parts = _parts(one, room, indent)
    for number, part in enumerate(parts, 1):
        caption = one.caption + (f" ({number} of {len(parts)})" if len(parts) > 1 else "")
        yield from _fitting_table(strokes, part, caption, room, indent, groups)


def _natural(one: TableModel, room: float, indent: float) -> list[float]:
    """The width that each column needs at full size; prose wraps in a part of the room."""
    columns = zip(one.head, *([cell.text for cell in row] for row in one.rows), strict=True)
    widths = [max(map(len, column)) * _GLYPH * _SIZE + _PAD for column in columns]
    widths[0] += indent
    return [
        min(width, _PROSE * room) if column.kind is ColumnKind.TEXT else width
        for width, column in zip(widths, one.columns, strict=True)
    ]


def _parts(one: TableModel, room: float, indent: float) -> list[TableModel]:
    """A table's columns in groups that stay readable, each beside the columns of words."""
    widths = _natural(one, room, indent)
    most = room / _LEAST_SCALE
    kept = sum(widths[: one.words])
    groups: list[list[int]] = [[]]
    for column in range(one.words, len(widths)):
        if groups[-1] and kept + sum(widths[k] for k in groups[-1]) + widths[column] > most:
            groups.append([])
        groups[-1].append(column)
    whole = len(groups) == 1 or one.is_grouped
    return [one.part(group, whole=whole) for group in groups]


def _fitting_table(
    strokes: Strokes,
    one: TableModel,
    caption: str,
    room: float,
    indent: float,
    groups: Sequence[Cell],
) -> Iterator[Strip]:
    """A table that fits: its caption, its head, a strip for each row and for each group of rows."""
    size, pad = _SIZE, _PAD
    natural = _natural(one, room, indent)
    scale = min(1.0, room / sum(natural))
    ends = [sum(natural[: k + 1]) for k in range(len(natural))]
    line = 1.75 * size
    width = scale * ends[-1]

    def row(cells: Sequence[Cell], *, bold: bool = False, mark: str = "", shade: str = "") -> Strip:
        parts, most = [mark], 1
        for k, cell in enumerate(cells):
            is_number = one.columns[k].kind is ColumnKind.NUMBER
            place = ends[k] - pad if is_number else ends[k] - natural[k] + (0 if k else indent)
            lines = [cell.text]
            if one.columns[k].kind is ColumnKind.TEXT:
                lines = textwrap.wrap(cell.text, int((natural[k] - pad) / _GLYPH / size)) or [""]
            most = max(most, len(lines))
            for number, words in enumerate(lines):
                y = 1.2 * size + 1.3 * number * size
                parts.append(
                    label(words, place, y, size, bold=bold, end=is_number, colour=_tone(cell))
                )
        height = scale * (line + 1.3 * size * (most - 1))
        back = f'<rect width="{width:.1f}" height="{height:.1f}" fill="{shade}"/>' if shade else ""
        rule = f'<path d="M0 {height:.1f}H{width:.1f}" stroke="{_COLOURS["--line"]}"/>'
        drawn = f'{back}<g transform="scale({scale:.4f})">{"".join(parts)}</g>'
        return Strip(height, drawn if shade else drawn + rule)

    head = row([Cell(name) for name in one.head], bold=True, shade=_COLOURS["--shade"])
    if caption:
        *words, last = text(caption, 12, bold=True, room=room)
        yield from words
        yield replace(last, below=3 * scale * line)
    yield replace(head, below=scale * line)
    for number, cells in enumerate(one.rows):
        if groups and groups[number].text:
            named = label(groups[number].text, 0, 1.3 * size, size, bold=True)
            note = label(groups[number].note, 120, 1.3 * size, size, colour=_COLOURS["--soft"])
            drawn = f'<g transform="scale({scale:.4f})">{named}{note}</g>'
            yield Strip(scale * line, drawn, head=head, below=scale * line)
        mark = _key(strokes.get(cells[0].text), size)
        yield replace(row(cells, mark=mark), head=head)
    yield gap(12)


def _tone(cell: Cell) -> str:
    """The colour of a cell's text."""
    return _COLOURS.get(f"--{cell.tone}", "")


def _key(look: Mapping[str, str] | None, size: float) -> str:
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
