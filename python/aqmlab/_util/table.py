"""Tables, whatever they are written as: on a terminal, in a page, on a sheet, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from aqmlab._util.words import capital

__all__ = [
    "ON_PAGES",
    "WIDE",
    "Bar",
    "Cell",
    "ColumnKind",
    "Strong",
    "TableColumn",
    "TableModel",
    "strong",
]


WIDE, ON_PAGES = 1, 2
"""The room that a column needs: one that telephones lack; one that terminals lack, too."""


class Strong(str):
    """A text whose first characters stand out on a terminal."""

    strong: int
    """How many of them."""


def strong(first: str, rest: str = "") -> Strong:
    """A text of which a part stands out on a terminal.

    Args:
        first: what stands out.
        rest: what follows it.
    """
    found = Strong(first + rest)
    found.strong = len(first)
    return found


class ColumnKind(Enum):
    """What a column holds, and so what may become of it where room is short."""

    KEY = "key"
    """What tells rows apart; stands in every part, its texts may be shortened."""
    NUMBER = "number"
    """Stays whole."""
    TEXT = "text"
    """Prose, which wraps."""


@dataclass(frozen=True)
class Bar:
    """A horizontal bar, in percent of the cell's width; a whisker with a dot if it has a middle."""

    begin: float
    end: float
    middle: float | None = None
    zero: float | None = None
    """Where zero lies."""


@dataclass(frozen=True)
class Cell:
    """A cell: what it says, how that is to be taken, and a picture of it."""

    text: str
    tone: str = ""
    """``better``, ``worse`` or ``clear``, which stand out; or nothing."""
    bar: Bar | None = None
    note: str = ""
    """Small print below it on a page."""
    address: str = ""
    """Where a page links it to."""


@dataclass(frozen=True)
class TableColumn:
    """A column: its head, and what it holds."""

    head: str
    kind: ColumnKind
    is_number: bool
    short: str
    """Its head where room is short: on a terminal."""
    room: int = 0
    """What it needs: nothing, ``WIDE``, or ``ON_PAGES``."""


class TableModel:
    """A table. Its columns are added first, then its rows."""

    def __init__(
        self,
        title: str = "",
        keys: Iterable[str] = (),
        numbers: Iterable[str] = (),
        texts: Iterable[str] = (),
        *,
        name: str = "",
        note: str = "",
        is_grouped: bool = False,
    ) -> None:
        """Begins a table without rows.

        Args:
            title: what stands above it.
            keys: heads of the columns that tell rows apart.
            numbers: heads of the columns of numbers, which follow.
            texts: heads of the columns of prose, which come last.
            name: short name for addresses inside a page.
            note: where its numbers come from.
            is_grouped: whether rows whose first cell is empty belong to the row above them.
        """
        self.title = title
        self.name = name
        self.note = note
        self.is_grouped = is_grouped
        self.columns: list[TableColumn] = []
        self.rows: list[tuple[Cell, ...]] = []
        for add, heads in (
            (self.add_key, keys),
            (self.add_number, numbers),
            (self.add_text, texts),
        ):
            for head in heads:
                add(head)

    def add_key(self, head: str, *, is_number: bool = False, short: str = "") -> None:
        """Adds a column that tells rows apart; keys come first."""
        self.columns.append(TableColumn(head, ColumnKind.KEY, is_number, short or head))

    def add_number(self, head: str, *, short: str = "", room: int = 0) -> None:
        """Adds a column of numbers."""
        self.columns.append(TableColumn(head, ColumnKind.NUMBER, True, short or head, room))

    def add_text(self, head: str) -> None:
        """Adds a column of prose."""
        self.columns.append(TableColumn(head, ColumnKind.TEXT, False, head))

    def add_row(self, *cells: str | Cell) -> None:
        """Adds a row, a cell for each column."""
        assert len(cells) == len(self.columns)
        self.rows.append(tuple(Cell(cell) if isinstance(cell, str) else cell for cell in cells))

    @property
    def caption(self) -> str:
        """The title as a sentence begins."""
        return capital(self.title)

    @property
    def head(self) -> list[str]:
        """The heads of its columns."""
        return [column.head for column in self.columns]

    @property
    def words(self) -> int:
        """Columns that tell rows apart, from the left."""
        return sum(column.kind is ColumnKind.KEY for column in self.columns)

    def fitting(self, room: int) -> TableModel:
        """The table without the columns that need so much room."""
        return self.select([k for k, one in enumerate(self.columns) if one.room < room])

    def part(self, columns: Sequence[int], *, whole: bool = False) -> TableModel:
        """Some columns beside the keys, with the rows that have something there.

        Args:
            columns: their places.
            whole: whether the other rows are kept, too.
        """
        found = self.select([*range(self.words), *columns])
        if not whole:
            numbers = slice(self.words, None)
            found.rows = [row for row in found.rows if any(it.text != "-" for it in row[numbers])]
        return found

    def select(self, places: Sequence[int]) -> TableModel:
        """The columns at some places."""
        found = TableModel(self.title, name=self.name, note=self.note, is_grouped=self.is_grouped)
        found.columns = [self.columns[place] for place in places]
        found.rows = [tuple(row[place] for place in places) for row in self.rows]
        return found
