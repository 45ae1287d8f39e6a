"""The card as one web page that needs no network, and as one A4 page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import escape

from rich.console import Console

from aqmlab._util.console import drawn
from aqmlab._util.drawing import templates
from aqmlab._util.files import write_bytes, write_text
from aqmlab._util.table import TableModel
from aqmlab.cards import page as lines
from aqmlab.cards.card import Card, about_seeds
from aqmlab.cards.criteria import criteria
from aqmlab.cards.kinds import QUEUE
from aqmlab.cards.pictures import areas_svg, waits_svg
from aqmlab.cards.scoring import VERSION
from aqmlab.figures.files import check_address_space
from aqmlab.figures.palette import PALETTE
from aqmlab.figures.pdf import A4, paper, pdf, size_of

__all__ = ["write_html", "write_pdf"]


_WIDTH, _HEIGHT = A4
_MARGIN = 36.0
_PICTURES, _GAP = 250.0, 16.0
"""The width of pictures beside the text, and what is left free."""
_MONO = "'Liberation Mono', 'DejaVu Sans Mono', monospace"
_TEXT_WIDTH = 80
_LEAST_SIZE = 6.0
_LINE = 1.22
"""Height of a line in font sizes."""
_GLYPH = 0.602
"""Width of a character of the font."""


def write_html(card: Card, path: Path) -> None:
    """Writes the web page."""
    check_address_space()
    about = {row.id: row for row in card.rows}
    text = (
        templates("aqmlab.cards")
        .get_template("card.html")
        .render(
            card=card,
            version=VERSION,
            seeds=about_seeds(card.seeds),
            head=lines.head(card),
            is_queue=card.about is QUEUE,
            names=lines.beside(card),
            others={name: card.areas_of(name) for name in card.baselines},
            criteria=[] if card.about is QUEUE else criteria(card),
            areas=[
                (place, area)
                for place, area in enumerate(card.areas)
                if any(test.area == area.name for test in card.tests)
            ],
            tests=lines.worst_first(card.tests),
            about=about,
            lines=lines,
            palette=PALETTE,
            pictures=[areas_svg(card), waits_svg(card)],
        )
    )
    write_text(path, text)


def write_pdf(card: Card, path: Path) -> None:
    """Writes the page of the terminal on A4, with its pictures beside it."""
    check_address_space()
    text = _text(card)
    if card.own and len(text) > (_HEIGHT - 2 * _MARGIN) / (_LEAST_SIZE * _LINE):
        text = [*_text(replace(card, own=())), "", "Your metrics: see card.html, they take a page."]
    pictures = [
        one for one in (areas_svg(card, 250, "light"), waits_svg(card, 250, "light")) if one
    ]
    write_bytes(path, pdf([_sheet(text, pictures)], f"{card.name}: report card"))


def _text(card: Card) -> list[str]:
    """The lines of the terminal's page."""
    return [line for part in lines.page(card) for line in _plain(part)]


def _plain(part: str | TableModel) -> list[str]:
    """A part of the terminal's page as lines."""
    stream = io.StringIO()
    Console(file=stream, width=_TEXT_WIDTH, color_system=None, markup=False, highlight=False).print(
        drawn(part), crop=False
    )
    return stream.getvalue().rstrip("\n").split("\n")


def _sheet(text: Sequence[str], pictures: Sequence[str]) -> str:
    """The page as SVG: pictures below each other at the right, the text beside them."""
    beside = _PICTURES + _GAP if pictures else 0.0
    width, height = _WIDTH - 2 * _MARGIN - beside, _HEIGHT - 2 * _MARGIN
    size = min(11.0, width / _TEXT_WIDTH / _GLYPH, height / len(text) / _LINE)
    size = max(_LEAST_SIZE, size)
    parts = [
        f'<text x="{_MARGIN}" y="{_MARGIN + (k + 1) * size * _LINE:.2f}" font-size="{size:.2f}" '
        f'font-family="{_MONO}" xml:space="preserve"{_weight(k)}>{escape(line)}</text>'
        for k, line in enumerate(text)
        if line.strip()
    ]
    top = _MARGIN
    for number, picture in enumerate(pictures):
        wide, high = size_of(picture)
        scale = _PICTURES / wide
        parts.append(
            f'<g transform="translate({_WIDTH - _MARGIN - _PICTURES:.1f} {top:.1f}) '
            f'scale({scale:.4f})">{_inner(picture, number)}</g>'
        )
        top += high * scale + 2 * _GAP
    return paper("".join(parts), _WIDTH, _HEIGHT)


def _weight(line: int) -> str:
    """The first line is bold."""
    return "" if line else ' font-weight="bold"'


def _inner(picture: str, number: int) -> str:
    """An SVG as a part of another: what stands in its outermost element.

    The names of its clips begin with a word of their own, so that two pictures do not share them.
    """
    named = re.sub(r'(id="|#)part', rf"\1p{number}-", picture)
    return re.sub(r"^.*?<svg[^>]*>|</svg>\s*$", "", named, flags=re.DOTALL)
