"""Blocks: what a page says, whatever it is written as.

A page is a function that yields its blocks in the order in which they are read. The writers beside
this module walk them: a terminal, a web page, a sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from aqmlab._util.table import TableModel

__all__ = ["Block", "Heading", "Item", "Items", "Pictures", "Table", "Text", "Title"]


@dataclass(frozen=True)
class Title:
    """What the page is about; the first block."""

    text: str
    beside: str = ""


@dataclass(frozen=True)
class Heading:
    """Begins a section; on a terminal an empty line."""

    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str
    tone: str = ""
    """``verdict``, ``soft`` for small print, ``worse``, or nothing."""


@dataclass(frozen=True)
class Item:
    """A line of a list."""

    text: str
    label: str = ""
    word: str = ""
    """What it is: ``FAIL``, ``WARN``, ``pass``, or nothing."""


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[Item]


@dataclass(frozen=True)
class Table:
    """A table."""

    model: TableModel
    is_sortable: bool = False


@dataclass(frozen=True)
class Pictures:
    """Pictures beside each other: what draws each as SVG in a theme, and its caption."""

    drawn: Sequence[tuple[Callable[[str], str], str]]


Block: TypeAlias = Title | Heading | Text | Items | Table | Pictures
