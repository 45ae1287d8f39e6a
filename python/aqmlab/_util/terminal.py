"""Tables on a terminal, whole at any width: no number is ever cut or wrapped.

A table that is too wide for its window is turned (a row for each column, the rows beside each
other) if that fits, else it is split into blocks of columns that follow each other. Long labels are
shortened in the middle, prose is wrapped.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from aqmlab._util.table import Cell, ColumnKind, TableModel
from aqmlab._util.words import printable

_GAP = 2
"""Spaces between columns."""
_LEAST_LABEL = 12
"""No label is shortened below this width."""


@dataclass
class _Column:
    """A column as it is drawn."""

    head: str
    kind: ColumnKind
    is_number: bool
    cells: list[Text] = field(default_factory=list)

    @property
    def shrinks(self) -> bool:
        """Whether its cells may be shortened."""
        return self.kind is ColumnKind.KEY and not self.is_number

    @property
    def width(self) -> int:
        """What it needs."""
        return max(map(_width, (self.head, *(cell.plain for cell in self.cells))))

    def shortened(self, width: int, *, in_words: bool) -> _Column | None:
        """The column within a width; None if its labels do not fit or no longer differ."""
        if not self.shrinks or self.width <= width:
            return self
        short = {cell.plain: _shortened(cell.plain, width, in_words) for cell in self.cells}
        if len(set(short.values())) < len(short) or max(map(cell_len, short.values())) > width:
            return None
        cells = [Text(short[cell.plain], style=cell.style) for cell in self.cells]
        return _Column(_shortened(self.head, width, in_words), self.kind, self.is_number, cells)


class Drawing:
    """A table as a terminal or a pipe shows it."""

    def __init__(self, table: TableModel) -> None:
        """Takes the texts of a table; the title stands above it."""
        self._title = printable(table.title)
        self._columns = [
            _Column(
                printable(column.short),
                column.kind,
                column.is_number,
                [_text(row[place]) for row in table.rows],
            )
            for place, column in enumerate(table.columns)
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draws it within the width that there is."""
        if self._title:
            yield Text(self._title)
        for number, grid in enumerate(self._fitting(options.max_width)):
            if number:
                yield Text("")
            yield grid

    def _fitting(self, width: int) -> Iterator[Grid]:
        """What is drawn within a width."""
        if any(column.kind is ColumnKind.TEXT for column in self._columns):
            yield _prose(self._columns, width)
        elif _total(self._columns) <= width:
            yield _grid(self._columns)
        elif (turned := _turned(self._columns, width)) is not None:
            yield _grid(turned)
        else:
            yield from map(_grid, _blocks(self._columns, width))


def _text(cell: Cell) -> Text:
    """What a cell says; what stands out is bold."""
    return Text(printable(cell.text), style="bold" if cell.tone else "")


def _width(text: str) -> int:
    """The width of a text's widest line."""
    return max(map(cell_len, text.split("\n")))


def _total(columns: Sequence[_Column]) -> int:
    """The width of columns beside each other."""
    return sum(column.width for column in columns) + _GAP * (len(columns) - 1)


def _grid(columns: Sequence[_Column]) -> Grid:
    """Columns beside each other, each as wide as it needs."""
    grid = _empty_grid()
    for column in columns:
        grid.add_column(
            Text(column.head),
            justify="right" if column.is_number else "left",
            vertical="bottom",
            no_wrap=True,
        )
    grid.width = _total(columns)
    return _filled(grid, columns)


def _prose(columns: Sequence[_Column], width: int) -> Grid:
    """Columns of which some are prose, which wraps; so do keys that would take half the width."""
    grid = _empty_grid()
    for column in columns:
        grid.add_column(
            Text(column.head),
            justify="right" if column.is_number else "left",
            no_wrap=column.kind is not ColumnKind.TEXT and column.width <= width // 2,
            overflow="fold",
        )
    return _filled(grid, columns)


def _empty_grid() -> Grid:
    """A grid without lines."""
    return Grid(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")


def _filled(grid: Grid, columns: Sequence[_Column]) -> Grid:
    """A grid with the rows of its columns."""
    for cells in zip(*(column.cells for column in columns), strict=True):
        grid.add_row(*cells)
    return grid


def _turned(columns: Sequence[_Column], width: int) -> list[_Column] | None:
    """A row for each column but the first, whose cells become heads; None if that is too wide.

    Heads wrap between words.
    """
    first, *others = columns
    side = _Column(first.head, ColumnKind.KEY, is_number=False)
    side.cells = [Text(column.head, style="bold") for column in others]
    turned = [
        _Column(head.plain, ColumnKind.NUMBER, is_number=True, cells=list(cells))
        for head, *cells in zip(*(column.cells for column in columns), strict=True)
    ]
    longest = max((column.width for column in turned), default=0)
    for limit in range(longest, 0, -1):
        fitting = [side, *(_with_wrapped_head(column, limit) for column in turned)]
        if _total(fitting) <= width:
            return fitting
        if all(column.width > limit for column in fitting[1:]):
            return None
    return None


def _with_wrapped_head(column: _Column, width: int) -> _Column:
    """A column whose head takes several lines, of whole words, where it is longer than a width."""
    lines = textwrap.wrap(column.head, width, break_long_words=False, break_on_hyphens=False)
    return _Column("\n".join(lines), column.kind, column.is_number, column.cells)


def _blocks(columns: Sequence[_Column], width: int) -> Iterator[list[_Column]]:
    """The numbers in groups that fit, each beside the keys, which may be shortened."""
    numbers = [column for column in columns if column.kind is ColumnKind.NUMBER]
    widest = max((column.width for column in numbers), default=0)
    keys = [column for column in columns if column.kind is ColumnKind.KEY]
    keys = _shortened_keys(keys, width // 2, width - _GAP - widest)
    block = [*keys]
    for column in numbers:
        if len(block) > len(keys) and _total([*block, column]) > width:
            yield block
            block = [*keys]
        block.append(column)
    yield block


def _shortened_keys(keys: Sequence[_Column], good: int, most: int) -> list[_Column]:
    """Keys whose labels are shortened, the longest first, until they fit or are short enough.

    Words give way to reach the good width. They are cut only where there is no room otherwise.
    """
    longest = max((key.width for key in keys if key.shrinks), default=0)
    short = [*keys]
    for in_words, room in ((False, min(good, most)), (True, most)):
        for limit in range(longest, _LEAST_LABEL - 1, -1):
            if _total(short) <= room:
                break
            short = [
                key.shortened(limit, in_words=in_words) or before
                for key, before in zip(keys, short, strict=True)
            ]
    return short


def _shortened(text: str, width: int, in_words: bool) -> str:
    """A text within a width, if that is possible: its middle words give way to dots.

    Where words may be cut, the middle of the text does if that is not enough.
    """
    if cell_len(text) <= width:
        return text
    words = text.split()
    # As many words at the end as at the beginning, which has one more if there is room.
    for kept in range(len(words) - 1, 1, -1):
        left, right = words[: (kept + 1) // 2], words[len(words) - kept // 2 :]
        if cell_len(short := " ".join([*left, "…", *right])) <= width:
            return short
    return f"{text[: width // 2]}…{text[len(text) - (width - 1) // 2 :]}" if in_words else text
