"""The page of the answer as one sheet (A4), without a browser."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from aqmlab._util.files import write_bytes
from aqmlab.document.sheet import Strip, clean, gap, label, sheet, text
from aqmlab.figures.pdf import A4, pdf
from aqmlab.reports.brief import Bars, Brief, BriefCell, BriefRow, runs_of_bold
from aqmlab.results.needs import LEVELS

__all__ = ["write_pdf"]


_WIDTH, _HEIGHT = A4
_MARGIN = 44.0
_ROOM = _WIDTH - 2 * _MARGIN
_GLYPH = 0.53
"""Mean width of a character, in font sizes."""
_HEADS = 0.29
"""Share of the width that the heads of rows take."""
_SOFT, _LINE, _PICK, _ACCENT, _OTHER = "#444444", "#bbbbbb", "#eef3f8", "#0b4a8a", "#999999"
_LEVELS = ("#0b6b3a", "#7a5200", "#a01812")
_SHADES = ("", "#fbf3dc", "#fae5e3")
_LEAST = 0.6
"""Smallest scale of a page that has much to say."""


def write_pdf(page: Brief, path: Path) -> None:
    """Writes the page. What is too much for one sheet is drawn smaller, never cut."""
    room = _ROOM
    for step in range(20):
        scale = max(_LEAST, 1.0 - 0.025 * step)
        room = _ROOM / scale
        strips = list(_strips(page, room))
        if sum(one.height for one in strips) * scale <= _HEIGHT - 2 * _MARGIN:
            break
    content = Strip(0, _stacked(strips, scale))
    write_bytes(path, pdf([sheet([content], _HEIGHT, "", _WIDTH)], clean(page.title)))


def _stacked(strips: Sequence[Strip], scale: float) -> str:
    """Strips below each other, as one drawing."""
    y, parts = 0.0, []
    for one in strips:
        parts.append(f'<g transform="translate(0 {y:.1f})">{one.drawing}</g>')
        y += one.height
    return f'<g transform="scale({scale:.4f})">{"".join(parts)}</g>'


def _strips(page: Brief, room: float) -> Iterator[Strip]:
    """The page from top to bottom."""
    yield from text(page.question, 12, colour=_SOFT, room=room)
    yield gap(4)
    yield from text(page.headline, 27, bold=True, room=room)
    yield gap(2)
    yield from _paragraph(" ".join(page.lead), 14.5, room)
    yield gap(8)
    if page.boxes:
        yield _boxes(page.boxes, room)
        yield gap(10)
    yield from _table(page, room)
    yield _legend(page.legend)
    yield gap(10)
    if page.bars:
        yield _beside([_bars(one) for one in page.bars], room)
        yield gap(6)
    notes = [(title, words) for title, words in page.notes if words]
    if notes:
        yield _beside(
            [_note(title, words, (room - 20) / len(notes)) for title, words in notes], room
        )
        yield gap(8)
    yield from text("To repeat it", 12.5, bold=True, room=room)
    yield from text(page.command, 9, mono=True, room=room)
    yield from text(page.about, 10.5, colour=_SOFT, room=room)


def _paragraph(words: str, size: float, room: float) -> Iterator[Strip]:
    """Text in which some words are bold, a strip a line."""
    lines: list[list[tuple[str, bool]]] = [[]]
    x = 0.0
    for part, bold in runs_of_bold(words):
        for word in part.split():
            wide = _wide(word, size, bold=bold)
            if x and x + wide > room:
                lines.append([])
                x = 0.0
            lines[-1].append((word, bold))
            x += wide + 0.28 * size
    for line in lines:
        spans = "".join(
            f'<tspan font-weight="{"bold" if bold else "normal"}">{escape(clean(word))} </tspan>'
            for word, bold in line
        )
        empty = label("", 0, 1.1 * size, size)
        yield Strip(1.45 * size, empty.replace("></text>", f">{spans}</text>"))


_NARROW, _BROAD = "iljtfrI.,;:!|'()[] ", "mwMW%@"


def _wide(word: str, size: float, *, bold: bool = False) -> float:
    """The width of a word, about, in Liberation Sans."""
    units = sum(
        0.30 if one in _NARROW else 0.85 if one in _BROAD else 0.70 if one.isupper() else 0.55
        for one in word
    )
    return units * size * (1.06 if bold else 1.0)


def _boxes(boxes: Sequence[tuple[str, str, str]], room: float) -> Strip:
    """Boxes beside each other, as high as the highest."""
    wide = (room - 10 * (len(boxes) - 1)) / len(boxes)
    contents = [
        [*text(title, 12, bold=True, room=wide - 24), *text(words, 11.5, room=wide - 24)]
        for title, words, _ in boxes
    ]
    high = 14 + max(sum(one.height for one in strips) for strips in contents)
    drawn = []
    for number, (strips, (_, _, tone)) in enumerate(zip(contents, boxes, strict=True)):
        x = number * (wide + 10)
        colour = {"pick": _ACCENT, "none": _LEVELS[2]}.get(tone, _LEVELS[1])
        drawn.append(
            f'<rect x="{x:.1f}" y="0" width="{wide:.1f}" height="{high:.1f}" rx="5" fill="none" '
            f'stroke="{_LINE}"/><rect x="{x:.1f}" width="4" height="{high:.1f}" fill="{colour}"/>'
            f'<g transform="translate({x + 14:.1f} 6)">{_stacked(strips, 1.0)}</g>'
        )
    return Strip(high, "".join(drawn))


def _table(page: Brief, room: float) -> Iterator[Strip]:
    """The heads, then a strip for each number."""
    wide = room * (1 - _HEADS) / len(page.columns)
    first = room * _HEADS
    heads = []
    for number, column in enumerate(page.columns):
        middle = first + (number + 0.5) * wide
        if column.mark == "take":
            heads.append(_cell_box(first + number * wide, 0, wide, 38, _PICK))
        if column.mark:
            fill = _ACCENT if column.mark == "take" else "none"
            heads.append(
                f'<rect x="{middle - 20:.1f}" y="3" width="40" height="14" rx="7" fill="{fill}" '
                f'stroke="{_ACCENT if column.mark == "take" else _SOFT}"/>'
                + _middle(column.mark, middle, 13.5, 10, "#ffffff" if fill != "none" else _SOFT)
            )
        size = min(13.0, wide / max(1.0, _GLYPH * 1.15 * len(column.name)))
        heads.append(_middle(column.name, middle, 33, size, "#000000", bold=True))
    yield Strip(40, "".join(heads))
    for row in page.rows:
        yield _row(row, first, wide)
    yield gap(4)


def _legend(words: str) -> Strip:
    """What the marks mean."""
    drawn = []
    for level, name in enumerate(LEVELS):
        x = 56.0 * level
        drawn.append(_mark(level, x + 4, 8, _LEVELS[level]))
        drawn.append(label(name, x + 13, 12, 10.5, colour=_LEVELS[level]))
    return Strip(16, "".join([*drawn, label(words, 168, 12, 10.5, colour=_SOFT)]))


def _row(row: BriefRow, first: float, wide: float) -> Strip:
    """A number of a class with its cells."""
    words = list(text(row.what, 10.5, colour=_SOFT, room=first - 8))
    high = 24 + sum(one.height for one in words)
    line = 2 if row.is_price else 1
    end = first + wide * len(row.cells)
    drawn = [f'<path d="M0 0H{end:.1f}" stroke="{_LINE}" stroke-width="{line}"/>']
    drawn.append(label(row.title, 0, 14, 12, bold=True))
    if row.who:
        drawn.append(label(row.who, _wide(row.title, 12, bold=True) + 8, 14, 10.5, colour=_SOFT))
    drawn.append(f'<g transform="translate(0 16)">{_stacked(words, 1.0)}</g>')
    for number, cell in enumerate(row.cells):
        drawn.append(_cell(cell, first + number * wide, wide, high))
    return Strip(high, "".join(drawn))


def _cell(cell: BriefCell, x: float, wide: float, high: float) -> str:
    """A cell: its mark and value, and its words below."""
    shade = _SHADES[cell.level or 0] or (_PICK if cell.is_taken else "")
    drawn = [_cell_box(x, 0.5, wide, high - 1, shade)] if shade else []
    middle = x + wide / 2
    colour = _LEVELS[cell.level] if cell.level is not None else _SOFT
    size = min(12.5, (wide - 6) / max(1.0, 0.6 * (len(cell.text) + (2 if cell.symbol else 0))))
    y = high / 2 + (0 if cell.words else 4)
    if cell.symbol:
        left = middle - _wide(cell.text, size) / 2 - 6
        drawn.append(_mark(cell.level or 0, left - 4, y - 4, colour))
    drawn.append(_middle(cell.text, middle + (3 if cell.symbol else 0), y, size, bold=True))
    if cell.words:
        small = min(10.0, wide / max(1.0, _GLYPH * len(cell.words)))
        drawn.append(_middle(cell.words, middle, y + 12, small, colour))
    return "".join(drawn)


def _mark(level: int, x: float, y: float, colour: str) -> str:
    """A disc that is full, half full or empty: fonts differ in what they have."""
    ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{{}}" stroke="{colour}"/>'
    if level == 0:
        return ring.format(colour)
    half = f'<path d="M{x:.1f} {y - 3.6:.1f}a3.6 3.6 0 0 0 0 7.2z" fill="{colour}"/>'
    return ring.format("none") + (half if level == 1 else "")


def _cell_box(x: float, y: float, wide: float, high: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{colour}"/>'


def _middle(
    words: str, x: float, y: float, size: float, colour: str = "#000000", *, bold: bool = False
) -> str:
    """A line of text round a point."""
    return label(words, x, y, size, bold=bold, colour=colour).replace(
        'text-anchor="start"', 'text-anchor="middle"'
    )


def _beside(drawings: Sequence[Strip], room: float) -> Strip:
    """Drawings in columns of equal width."""
    wide = (room - 20 * (len(drawings) - 1)) / len(drawings)
    parts = [
        f'<g transform="translate({number * (wide + 20):.1f} 0)">{one.drawing}</g>'
        for number, one in enumerate(drawings)
    ]
    return Strip(max(one.height for one in drawings), "".join(parts))


def _note(title: str, words: str, room: float) -> Strip:
    """A heading and its text."""
    strips = [*text(title, 12.5, bold=True, room=room), *text(words, 10.5, colour=_SOFT, room=room)]
    return Strip(sum(one.height for one in strips), _stacked(strips, 1.0))


def _bars(one: Bars) -> Strip:
    """A bar for each queue, its whisker, and the limits."""
    scale, high = 165 / one.most, 20.0 * len(one.bars)
    drawn = [label(one.title, 0, 12, 11.5, bold=True)]
    for value, words in one.limits:
        x = 92 + scale * value
        drawn.append(
            f'<path d="M{x:.1f} 20V{24 + high:.1f}" stroke="{_SOFT}" stroke-dasharray="3 3"/>'
        )
        left = len(one.limits) > 1 and value == min(limit for limit, _ in one.limits)
        drawn.append(label(words, x, 34 + high, 9.5, end=left, colour=_SOFT))
    for number, bar in enumerate(one.bars):
        y = 24 + 20 * number
        size = min(11.0, 86 / max(1.0, 0.56 * len(bar.name)))
        drawn.append(label(bar.name, 86, y + 11, size, bold=bar.is_taken, end=True))
        colour = _ACCENT if bar.is_taken else _OTHER
        drawn.append(_cell_box(92, y + 2, max(0.0, scale * bar.value), 12, colour))
        end = bar.value
        if not math.isnan(bar.low):
            low, last = 92 + scale * max(0.0, bar.low), 92 + scale * bar.high
            drawn.append(
                f'<path d="M{low:.1f} {y + 8}H{last:.1f}M{low:.1f} {y + 5}v6M{last:.1f} {y + 5}v6" '
                'stroke="#000000" fill="none"/>'
            )
            end = bar.high
        drawn.append(label(bar.text, 92 + scale * end + 5, y + 12, 11))
    return Strip(40 + high, "".join(drawn))
