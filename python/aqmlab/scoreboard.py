"""Published numbers beside ours: how a cell is computed, judged, counted and written down."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from aqmlab.errors import AqmlabError

CSV_HEAD = (
    "table",
    "row",
    "column",
    "published",
    "ours",
    "spread",
    "seeds",
    "difference",
    "relative_difference",
    "verdict",
)
SLACK = 1e-9
"""Rounding of floating-point differences that a tolerance forgives."""


@dataclass(frozen=True)
class Term:
    """One summand of a column: a key of ``summary.json`` times a factor."""

    key: str
    """Path in the summary, such as ``links.bottleneck.forward.loss_rate``."""
    factor: float = 1.0
    """Converts the key's unit into the column's."""
    per: str | None = None
    """Path of a divisor, such as ``measured_s``."""

    def value(self, summary: Mapping[str, Any]) -> float:
        """The summand's value in one run."""
        value = self.factor * look_up(summary, self.key)
        return value / look_up(summary, self.per) if self.per else value


def look_up(summary: Mapping[str, Any], path: str) -> float:
    """The number at a dotted path of a summary; an error names the whole path."""
    node: Any = summary
    for part in path.split("."):
        if not isinstance(node, Mapping) or part not in node:
            raise AqmlabError(f"the summary has no key {path}")
        node = node[part]
    if node is None:
        raise AqmlabError(f"the summary's {path} is empty: nothing was measured")
    return float(node)


def total(terms: Iterable[Term], summary: Mapping[str, Any]) -> float:
    """The sum of some terms in one run."""
    return sum(term.value(summary) for term in terms)


@dataclass(frozen=True)
class Tolerance:
    """How far ours may lie from the published number; one satisfied bound is enough."""

    relative: float | None = None
    """Largest difference as a fraction of the published number."""
    absolute: float | None = None
    """Largest difference in the column's unit."""

    def admits(self, ours: float, published: float) -> bool:
        """Whether ours is close enough."""
        bounds = [] if self.absolute is None else [self.absolute]
        if self.relative is not None:
            bounds.append(self.relative * abs(published))
        return any(abs(ours - published) <= bound + SLACK for bound in bounds)

    def __str__(self) -> str:
        parts = [] if self.relative is None else [f"±{100 * self.relative:g} %"]
        if self.absolute is not None:
            parts.append(f"±{self.absolute:g}")
        return " or ".join(parts)


@dataclass(frozen=True)
class Column:
    """A published column and how its counterpart follows from a run's summary."""

    name: str
    title: str
    terms: tuple[Term, ...] = ()
    tolerance: Tolerance | None = None
    """None: the column is shown but not scored."""


@dataclass(frozen=True)
class Cell:
    """One published number and ours."""

    table: str
    row: str
    column: Column
    published: str
    """The number as it is printed; empty: the paper prints none, and ours stands alone."""
    ours: tuple[float, ...] = ()
    """Ours, one value per seed; empty: no run ended."""
    excluded: str = ""
    """Why the cell does not count; empty: it does."""

    @property
    def target(self) -> float | None:
        """The published number."""
        return float(self.published) if self.published else None

    @property
    def mean(self) -> float | None:
        """Mean of ours over the seeds."""
        return fmean(self.ours) if self.ours else None

    @property
    def spread(self) -> float | None:
        """Largest minus smallest of ours over the seeds; None with fewer than two."""
        return max(self.ours) - min(self.ours) if len(self.ours) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours minus the published number, in the column's unit."""
        return None if self.mean is None or self.target is None else self.mean - self.target

    @property
    def relative(self) -> float | None:
        """The difference as a fraction of the published number; None where that is zero."""
        return None if self.difference is None or not self.target else self.difference / self.target

    @property
    def scored(self) -> bool:
        """Whether the cell counts."""
        return self.column.tolerance is not None and self.target is not None and not self.excluded

    @property
    def within(self) -> bool:
        """Whether the mean over the seeds is within tolerance. A cell without a run is not."""
        tolerance = self.column.tolerance
        return (
            tolerance is not None
            and self.mean is not None
            and self.target is not None
            and tolerance.admits(self.mean, self.target)
        )

    def formatted(self, value: float | None) -> str:
        """A value with as many decimals as the published number has, or a dash."""
        if value is None:
            return "-"
        if not self.published:
            return f"{value:.4g}"
        return f"{value:.{len(self.published.partition('.')[2])}f}"

    def __str__(self) -> str:
        ours = self.formatted(self.mean)
        return f"{ours} / {self.published}" if self.published else ours


@dataclass
class Scoreboard:
    """All cells of some tables, in the order in which they are printed."""

    titles: Mapping[str, str]
    """Title of every table, by its id."""
    scored: bool
    """False for quick runs, whose numbers are too noisy and too early to judge."""
    cells: list[Cell] = field(default_factory=list)

    def count(self, cells: Iterable[Cell] | None = None) -> dict[str, int | None]:
        """How many of the scored cells are within tolerance, and how many there are."""
        counted = [cell for cell in (self.cells if cells is None else cells) if cell.scored]
        within = sum(cell.within for cell in counted) if self.scored else None
        return {"within": within, "total": len(counted)}

    def to_json(self) -> dict[str, Any]:
        """The score of everything, of every table and of every column."""
        tables = {}
        for table, title in self.titles.items():
            cells = [cell for cell in self.cells if cell.table == table]
            columns = {
                column.name: self.count(cell for cell in cells if cell.column is column)
                for column in columns_of(cells)
                if column.tolerance is not None
            }
            tables[table] = {"title": title, **self.count(cells), "columns": columns}
        return {"scored": self.scored, "cells": self.count(), "tables": tables}

    def to_csv(self) -> str:
        """Every cell in a line: published, ours, spread over the seeds, differences, verdict."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(CSV_HEAD)
        for cell in self.cells:
            numbers = [cell.mean, cell.spread, len(cell.ours), cell.difference, cell.relative]
            written = ["" if number is None else f"{number:.6g}" for number in numbers]
            names = [cell.table, cell.row, cell.column.name, cell.published]
            writer.writerow([*names, *written, self.verdict(cell)])
        return text.getvalue()

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
            cells = [cell for cell in self.cells if cell.table == table]
            parts.append(f"## {title}\n\n{self._markdown_table(cells)}")
        return "\n\n".join(parts) + "\n"

    def _score_table(self) -> str:
        lines = []
        for table, title in self.titles.items():
            score = self.count(cell for cell in self.cells if cell.table == table)
            if score["total"]:
                lines.append([title, *score_words(score)])
        if not lines:
            return "The paper prints no numbers: ours stand alone."
        lines.append(["**all**", *score_words(self.count())])
        return markdown(["table", "cells within", "share"], lines)

    def _exclusions(self) -> list[str]:
        """What is not scored, and why."""
        reasons = Counter(cell.excluded for cell in self.cells if cell.excluded and cell.published)
        if not reasons:
            return []
        lines = [f"- {count} cells: {reason}." for reason, count in reasons.items()]
        return ["Shown in italics and not scored:\n\n" + "\n".join(lines)]

    def _markdown_table(self, cells: Sequence[Cell]) -> str:
        columns = columns_of(cells)
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
            lines.append(["*within*", *(score_words(score)[0] for score in scores)])
        head = "ours / published" if any(cell.published for cell in cells) else "ours"
        return markdown([head, *(column.title for column in columns)], lines)

    def _marked(self, cell: Cell) -> str:
        """A cell with a star if it is outside its tolerance, in italics if it is excluded."""
        if cell.excluded and cell.published:
            return f"*{cell}*"
        return f"{cell} \\*" if self.verdict(cell) in ("outside", "missing") else f"{cell}"


def columns_of(cells: Iterable[Cell]) -> list[Column]:
    """The columns of some cells, in their order, each once."""
    return list({cell.column.name: cell.column for cell in cells}.values())


def score_words(score: Mapping[str, int | None]) -> list[str]:
    """A score as "n of m" and as a percentage; dashes where nothing was scored."""
    within, counted = score["within"], score["total"]
    if within is None or not counted:
        return ["-", "-"]
    return [f"{within} of {counted}", f"{100 * within / counted:.0f} %"]


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, the others to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])
