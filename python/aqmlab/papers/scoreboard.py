"""The scoreboard: cells counted, and written down."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from aqmlab._util.markup import markdown

if TYPE_CHECKING:
    from aqmlab.papers.cells import Cell
    from aqmlab.papers.paper import Column

__all__ = ["Power", "Score", "Scoreboard"]


_CSV_HEAD = (
    "table",
    "row",
    "column",
    "published",
    "ours",
    "spread",
    "seeds",
    "difference",
    "relative_difference",
    "rank",
    "by_value",
    "by_rank",
    "verdict",
)


@dataclass(frozen=True)
class Score:
    """How many cells are within; None: they are not scored."""

    within: int | None
    by_value: int | None
    """How many by value alone."""
    total: int
    """Of how many that count."""

    def __add__(self, other: Score) -> Score:
        return Score(
            _added(self.within, other.within),
            _added(self.by_value, other.by_value),
            self.total + other.total,
        )

    def words(self) -> list[str]:
        """As "n of m", as a percentage, and by value alone; dashes where nothing was scored."""
        if self.within is None or not self.total:
            return ["-", "-", "-"]
        share = f"{100 * self.within / self.total:.0f} %"
        return [f"{self.within} of {self.total}", share, f"{self.by_value}"]


@dataclass(frozen=True)
class Power:
    """What the score of some cells can tell; None: they are not scored."""

    informative_within: int | None
    """How many informative cells are within by value."""
    right_side: int | None
    """How many of them are on the right side of our reference."""
    unfitted_within: int | None
    """How many cells without fitted settings are within."""
    informative: int
    """Cells whose published number is not within tolerance of the reference's."""
    unfitted: int
    """Cells without fitted settings."""
    reference_within: int
    """How many cells would be within by value if every row were the reference's."""

    def __add__(self, other: Power) -> Power:
        return Power(
            _added(self.informative_within, other.informative_within),
            _added(self.right_side, other.right_side),
            _added(self.unfitted_within, other.unfitted_within),
            self.informative + other.informative,
            self.unfitted + other.unfitted,
            self.reference_within + other.reference_within,
        )

    def words(self, cells: int) -> list[str]:
        """How many cells are informative, how many of these are within and on the right side.

        Last: how many of some cells would be within if every row were the reference's.
        """
        shown = [
            "-"
            if number is None or not self.informative
            else f"{number} ({100 * number / self.informative:.0f} %)"
            for number in (self.informative_within, self.right_side)
        ]
        return [str(self.informative), *shown, f"{self.reference_within} of {cells}"]


def _added(one: int | None, other: int | None) -> int | None:
    """The sum; None if one of them is."""
    return None if one is None or other is None else one + other


@dataclass
class Scoreboard:
    """All cells of some tables, in the order in which they are printed."""

    titles: Mapping[str, str]
    """Title of every table, by its id."""
    scored: bool
    """False for quick runs, whose numbers are too noisy and too early to judge."""
    cells: list[Cell] = field(default_factory=list)

    def count(self, cells: Iterable[Cell] | None = None) -> Score:
        """The score of some cells, or of all."""
        counted = self._scored(cells)
        within = sum(cell.within for cell in counted) if self.scored else None
        by_value = sum(cell.by_value for cell in counted) if self.scored else None
        return Score(within, by_value, len(counted))

    def power(self, cells: Iterable[Cell] | None = None) -> Power:
        """What the score of some cells, or of all, can tell."""
        counted = self._scored(cells)
        informative = [cell for cell in counted if cell.informative]
        unfitted = [cell for cell in counted if not cell.fitted]
        return Power(
            informative_within=sum(cell.by_value for cell in informative) if self.scored else None,
            right_side=sum(cell.right_side for cell in informative) if self.scored else None,
            unfitted_within=sum(cell.within for cell in unfitted) if self.scored else None,
            informative=len(informative),
            unfitted=len(unfitted),
            reference_within=sum(cell.reference_within for cell in counted),
        )

    def of_table(self, table: str) -> list[Cell]:
        """The cells of a table."""
        return [cell for cell in self.cells if cell.table == table]

    def _scored(self, cells: Iterable[Cell] | None) -> list[Cell]:
        """Those of some cells, or of all, that count."""
        return [cell for cell in (self.cells if cells is None else cells) if cell.scored]

    def to_json(self) -> dict[str, Any]:
        """The score of everything, of every table and of every column."""
        tables = {}
        for table, title in self.titles.items():
            cells = self.of_table(table)
            columns = {
                column.name: asdict(self.count(cell for cell in cells if cell.column is column))
                for column in _columns_of(cells)
                if column.tolerance is not None
            }
            tables[table] = {"title": title, **asdict(self.count(cells)), "columns": columns}
        return {
            "scored": self.scored,
            "cells": asdict(self.count()),
            "power": asdict(self.power()),
            "tables": tables,
        }

    def to_csv(self) -> str:
        """Every cell in a line: published, ours, spread over the seeds, differences, verdicts."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_CSV_HEAD)
        for cell in self.cells:
            numbers = [cell.mean, cell.spread, len(cell.ours), cell.difference, cell.relative]
            written = [
                "" if number is None else f"{number:.6g}" for number in (*numbers, cell.rank)
            ]
            names = [cell.table, cell.row, cell.column.name, cell.published]
            writer.writerow([*names, *written, *self.verdicts(cell), self.verdict(cell)])
        return text.getvalue()

    def verdicts(self, cell: Cell) -> list[str]:
        """``within`` or ``outside`` by value and by rank; empty where the cell is not judged so."""
        judged = self.scored and cell.scored and cell.ours
        answers = [cell.by_value, cell.by_rank] if judged else [None, None]
        words = {True: "within", False: "outside", None: ""}
        return [words[answer] for answer in answers]

    def verdict(self, cell: Cell) -> str:
        """``within``, ``outside``, ``missing`` (no run ended), ``excluded`` or ``not scored``."""
        if not cell.ours:
            return "missing"
        if cell.excluded:
            return "excluded"
        if not (self.scored and cell.scored):
            return "not scored"
        return "within" if cell.within else "outside"

    def to_markdown(self) -> str:
        """The score, then every table with ours / published in each cell."""
        parts = [self._score_table(), *self._exclusions()]
        for table, title in self.titles.items():
            parts.append(f"## {title}\n\n{self._markdown_table(self.of_table(table))}")
        return "\n\n".join(parts) + "\n"

    def _score_table(self) -> str:
        scores = [(title, self.count(self.of_table(name))) for name, title in self.titles.items()]
        lines = [[title, *score.words()] for title, score in scores if score.total]
        if not lines:
            return "The paper prints no numbers: ours stand alone."
        lines.append(["**all**", *self.count().words()])
        head = ["table", "cells within", "share", "by value alone"]
        shown = len(head) if self.ranked else len(head) - 1
        table = markdown(head[:shown], [line[:shown] for line in lines])
        return "\n\n".join([table, *self._power()])

    def _power(self) -> list[str]:
        """What the score can tell: informative cells, and those of fitted settings apart."""
        whole, total = self.power(), self.count().total
        scores = [
            (title, self.power(cells), self.count(cells).total)
            for table, title in self.titles.items()
            if (cells := self.of_table(table))
        ]
        parts = []
        if whole.informative:
            head = [
                *("table", "informative cells", "within by value", "on the right side"),
                "within by value if every row were the reference's",
            ]
            lines = [
                [title, *power.words(counted)]
                for title, power, counted in [*scores, ("**all**", whole, total)]
                if counted
            ]
            parts.append(
                "A cell is informative where the published number is not within tolerance of the "
                "reference's: the row without active queue management at the same load. The right "
                "side is that of our own reference on which the published number lies.\n\n"
                + markdown(head, lines)
            )
        if whole.unfitted != total and self.scored:
            parts.append(
                f"Without the cells of fitted settings: {whole.unfitted_within} of "
                f"{whole.unfitted} within."
            )
        return parts

    @property
    def ranked(self) -> bool:
        """Whether cells are judged by rank too."""
        return any(cell.ranks for cell in self.cells)

    def _exclusions(self) -> list[str]:
        """What is not scored, and why; which settings are fitted."""
        printed = [cell for cell in self.cells if cell.published]
        heads = {
            "Shown in italics and not scored:": Counter(
                cell.excluded for cell in printed if cell.excluded
            ),
            "Settings chosen with the published numbers in view (their cells have a ‡):": (
                Counter(cell.fitted for cell in printed if cell.fitted and cell.scored)
            ),
        }
        parts = []
        for head, reasons in heads.items():
            lines = [f"- {count} cells: {reason}." for reason, count in reasons.items()]
            parts += [f"{head}\n\n" + "\n".join(lines)] if lines else []
        return parts

    def _markdown_table(self, cells: Sequence[Cell]) -> str:
        columns = _columns_of(cells)
        rows: dict[str, dict[str, str]] = {}
        for cell in cells:
            rows.setdefault(cell.row, {})[cell.column.name] = self._marked(cell)
        lines = [
            [row, *(written.get(column.name, "") for column in columns)]
            for row, written in rows.items()
        ]
        if self.scored and any(cell.scored for cell in cells):
            tolerances = [str(column.tolerance or "not scored") for column in columns]
            lines.append(["*tolerance*", *tolerances])
            scores = (
                self.count(cell for cell in cells if cell.column is column) for column in columns
            )
            lines.append(["*within*", *(score.words()[0] for score in scores)])
        head = "ours / published" if any(cell.published for cell in cells) else "ours"
        return markdown([head, *(column.title for column in columns)], lines)

    def _marked(self, cell: Cell) -> str:
        """A cell with a star outside its tolerance, a dagger within by rank alone, or in italics.

        A double dagger stands for a fitted setting. Italics mean that it is excluded.
        """
        verdict = self.verdict(cell)
        if verdict == "excluded" and cell.published:
            return f"*{cell}*"
        mark = "‡" if cell.fitted and cell.scored else ""
        if verdict in ("outside", "missing"):
            return f"{cell} \\*{mark}"
        by_rank = verdict == "within" and not cell.by_value
        return f"{cell} †{mark}" if by_rank else f"{cell} {mark}".rstrip()


def _columns_of(cells: Iterable[Cell]) -> list[Column]:
    """The columns of some cells, in their order, each once."""
    return list({cell.column.name: cell.column for cell in cells}.values())
