"""Texts and tables where nothing limits their width and nothing is bold: in pipes and files.

The lines are those of :mod:`aqmlab._util.terminal` in a window that is wide enough. rich, which
draws for terminals, takes as long to load as all the rest of a small command.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from aqmlab._util.table import ColumnKind, TableModel
from aqmlab._util.words import printable

__all__ = ["lines"]


_GAP = "  "
"""Between columns."""


def lines(part: str | TableModel) -> Iterator[str]:
    """The lines of a text or a table."""
    if isinstance(part, str):
        yield from printable(part).split("\n")
        return
    if part.title:
        yield from printable(part.title).split("\n")
    if not part.columns:
        yield ""
        return
    heads = [_split(column.short) for column in part.columns]
    rows = [[_split(cell.text) for cell in row] for row in part.rows]
    widths = [
        max(max(map(_width, cell)) for cell in cells) for cells in zip(heads, *rows, strict=True)
    ]
    to_right = [column.is_number for column in part.columns]
    is_prose = any(column.kind is ColumnKind.TEXT for column in part.columns)
    for number, row in enumerate([heads, *rows]):
        # Prose begins beside what it is about; elsewhere the last lines stand beside each other.
        height = 0 if is_prose and number else max(map(len, row))
        cells = [[""] * (height - len(cell)) + cell for cell in row]
        for line in zip_longest(*cells, fillvalue=""):
            yield _GAP.join(map(_filled, line, widths, to_right))


def _split(text: str) -> list[str]:
    """The lines of a cell."""
    return printable(text).split("\n")


def _filled(text: str, width: int, to_right: bool) -> str:
    """A line of a cell, as wide as its column."""
    if to_right:
        text = text.rstrip()
        return " " * (width - _width(text)) + text
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # wide and combining characters

    return cell_len(text)
