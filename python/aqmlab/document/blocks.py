"""Blocks: what a page says, whatever it is written as.

A page is a function that yields its blocks in the order in which they are read. The writers beside
this module walk them: a terminal, a web page, a sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from aqmlab._util.table import TableModel

__all__ = [
    "Block",
    "Code",
    "Facts",
    "Heading",
    "Item",
    "Items",
    "Picture",
    "Pictures",
    "Table",
    "Text",
    "Title",
]


@dataclass(frozen=True)
class Title:
    """What the page is about; the first block."""

    text: str
    beside: str = ""


@dataclass(frozen=True)
class Heading:
    """Begins a section; on a terminal an empty line."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str
    tone: str = ""
    """``verdict``, ``soft`` for small print, ``worse``, or nothing."""
    label: str = ""
    """What it is about."""


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Item:
    """A line of a list."""

    text: str
    label: str = ""
    word: str = ""
    """What it is: ``FAIL``, ``WARN``, ``pass``, or nothing."""

    @property
    def said(self) -> str:
        """All of it in a line."""
        head = " ".join(filter(None, (self.word, self.label)))
        return ": ".join(filter(None, (head, self.text)))


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[Item]


@dataclass(frozen=True)
class Table:
    """A table."""

    model: TableModel
    strokes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Colour and pattern of lines, by the label of a configuration."""
    is_sortable: bool = False


@dataclass(frozen=True)
class Picture:
    """A picture."""

    name: str
    """Of its file."""
    draw: Callable[[Literal["page", "light"]], str]
    """Draws it as SVG in a theme: ``page`` follows the page's colours, ``light`` is for paper."""
    caption: str
    has_title: bool = False
    """Whether the picture itself shows the caption."""


@dataclass(frozen=True)
class Pictures:
    """Pictures beside each other."""

    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Code:
    """A text of TOML."""

    text: str


Block: TypeAlias = Title | Heading | Text | Facts | Items | Table | Pictures | Code
