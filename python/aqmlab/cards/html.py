"""The card as one web page that needs no network, and as A4 pages."""

from __future__ import annotations

from pathlib import Path

from aqmlab._util.files import write_bytes, write_text
from aqmlab.cards.card import Card
from aqmlab.cards.page import blocks
from aqmlab.cards.pictures import areas_svg, waits_svg
from aqmlab.document import html, sheet
from aqmlab.document.blocks import Picture, Pictures
from aqmlab.figures.files import check_address_space

__all__ = ["write_html", "write_pdf"]


def write_html(card: Card, path: Path) -> None:
    """Writes the web page."""
    check_address_space()
    write_text(path, html.page(_title(card), blocks(card, pictures=_pictures(card))))


def write_pdf(card: Card, path: Path) -> None:
    """Writes the pages."""
    check_address_space()
    write_bytes(path, sheet.document(_title(card), blocks(card, pictures=_pictures(card))))


def _title(card: Card) -> str:
    return f"{card.name}: report card"


def _pictures(card: Card) -> Pictures:
    """The pictures that the card has numbers for."""
    bars = "Scores by area. The bar is the candidate's 95 % interval; without a bar there is none."
    found = [Picture("areas", lambda theme: areas_svg(card, colours_of=theme), bars)]
    if waits_svg(card):
        caption = (
            f"Wait against goodput: a line from {card.about.called} to the candidate for each test."
            " Left and up is better."
        )
        found.append(Picture("waits", lambda theme: waits_svg(card, colours_of=theme), caption))
    return Pictures(found)
