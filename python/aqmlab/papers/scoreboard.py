"""Published numbers beside ours: how a cell is computed, judged, counted and written down."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from aqmlab._util.lazy import np
from aqmlab._util.markup import markdown
from aqmlab.papers.counts import Counts
from aqmlab.papers.measured import Asked, Measurements, wanted
from aqmlab.papers.paper import Fit, Paper, PaperColumn, Table, product
from aqmlab.results.terms import SLACK, Rank

if TYPE_CHECKING:
    from aqmlab.papers.plan import Plan

__all__ = [
    "PaperCell",
    "Power",
    "Score",
    "Scoreboard",
    "fit_cells",
    "table_cells",
    "with_references",
]


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
class PaperCell:
    """One published number and ours."""

    table: str
    row: str
    column: PaperColumn
    published: str
    """The number as it is printed; empty: the paper prints none, and ours stands alone."""
    ours: tuple[float, ...] = ()
    """Ours, one value per seed; empty: no run ended."""
    ranks: tuple[Rank, ...] = ()
    """Of a percentile with a tolerance of rank: where the published one lies, per seed; empty:
    the runs do not tell."""
    excluded: str = ""
    """Why the cell does not count; empty: it does."""
    fitted: str = ""
    """Which setting of its row was chosen with the published numbers in view; empty: none."""
    reference: PaperCell | None = None
    """The same number of the row without active queue management at the same load, if there is
    one; see :attr:`informative`."""
    lacks_runs: bool = False
    """A run of the row is missing: ours is the mean over the others."""

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
        """Whether one of the tolerances is kept. A cell without a run is not within."""
        return self.by_value or bool(self.by_rank)

    @property
    def informative(self) -> bool:
        """Whether the published number tells the row from the reference: it is not within.

        A laboratory in which no queue management did anything would miss these cells.
        """
        tolerance, reference = self.column.tolerance, self._printed_reference
        return (
            self.scored
            and tolerance is not None
            and self.target is not None
            and reference is not None
            and not tolerance.admits(self.target, reference)
        )

    @property
    def right_side(self) -> bool:
        """Whether ours lies on the side of our reference on which the published number lies."""
        ours = None if self.reference is None else self.reference.mean
        if self.mean is None or self.target is None or ours is None:
            return False
        printed = self._printed_reference
        return printed is not None and (self.mean - ours) * (self.target - printed) > 0

    @property
    def reference_within(self) -> bool:
        """Whether the printed number of the reference would be within, by value, in its place."""
        tolerance, reference = self.column.tolerance, self._printed_reference
        return (
            tolerance is not None
            and self.target is not None
            and reference is not None
            and tolerance.admits(reference, self.target)
        )

    @property
    def _printed_reference(self) -> float | None:
        """The published number of the reference."""
        return None if self.reference is None else self.reference.target

    @property
    def by_value(self) -> bool:
        """Whether the mean over the seeds is close enough to the published number."""
        tolerance = self.column.tolerance
        return (
            tolerance is not None
            and self.mean is not None
            and self.target is not None
            and tolerance.admits(self.mean, self.target)
        )

    @property
    def by_rank(self) -> bool | None:
        """Whether our distribution is flat there and the rank close enough; None: no rank.

        Flat: the tolerance of ranks, half of it on either side of the published time, spans more
        time than the tolerance of values admits as a difference.
        """
        tolerance, percentile = self.column.tolerance, self.column.percentile
        if self.rank is None or self.target is None or not (tolerance and percentile):
            return None
        span = self.column.terms[0].factor * fmean(rank.span_s for rank in self.ranks)
        flat = span > tolerance.bound(self.target)
        away = abs(self.rank - percentile.rank)
        return flat and away <= (tolerance.rank or 0.0) + SLACK

    @property
    def rank(self) -> float | None:
        """Share of ours that took at most the published time, in per cent."""
        return fmean(rank.at for rank in self.ranks) if self.ranks else None

    def formatted(self, value: float | None) -> str:
        """A value with as many decimals as the published number has, or a dash."""
        if value is None:
            return "-"
        if not self.published:
            return f"{value:.4g}"
        return f"{value:.{len(self.published.partition('.')[2])}f}"

    def __str__(self) -> str:
        ours = self.formatted(self.mean)
        rank = "" if self.rank is None else f" ({self.rank:.0f} %)"
        return f"{ours} / {self.published}{rank}" if self.published else ours


def table_cells(
    table: Table, plan: Plan, measurements: Mapping[str, Measurements]
) -> list[PaperCell]:
    """A table's published cells beside ours; ours alone in columns that the paper has not."""
    cells = []
    for row in table.rows:
        if (table.id, row.label) not in plan.rows:
            continue
        names = plan.rows[table.id, row.label]
        done = [name for name in names if name in measurements]
        for column, published in wanted(table, row):
            if column.by_seed:
                lines = [row.by_seed[plan.scenarios[name].seed] for name in done]
                given: list[tuple[float, Rank | None]] = [
                    (float(line[column.by_seed]), None) for line in lines
                ]
            else:
                quantity = Asked.of(column, published)
                given = [measurements[name][quantity] for name in done]
            ranks = tuple(rank for _, rank in given if rank is not None)
            cells.append(
                PaperCell(
                    table=table.id,
                    row=row.label,
                    column=column,
                    published=published,
                    ours=tuple(ours for ours, _ in given),
                    ranks=ranks if len(ranks) == len(given) else (),
                    excluded=plan.paper.why_excluded(table.id, row, column.name),
                    fitted=plan.paper.why_fitted(table.id, row, column.name),
                    lacks_runs=len(done) < len(names),
                )
            )
    return cells


def with_references(cells: Sequence[PaperCell], paper: Paper) -> list[PaperCell]:
    """The cells with the same number of the row that they are held against.

    It is taken from the table itself or, if that has no such row, from the first one that has it.
    """
    own = {(cell.table, cell.row, cell.column.name): cell for cell in cells}
    anywhere: dict[tuple[str, str], PaperCell] = {}
    for cell in cells:
        anywhere.setdefault((cell.row, cell.column.name), cell)
    labels = {
        (table.id, row.label): paper.reference_of(row)
        for table in paper.tables
        for row in table.rows
    }
    found = []
    for cell in cells:
        label, column = labels[cell.table, cell.row], cell.column.name
        reference = own.get((cell.table, label, column), anywhere.get((label, column)))
        found.append(replace(cell, reference=reference))
    return found


def fit_cells(fit: Fit, plan: Plan, measurements: Mapping[str, Measurements]) -> list[PaperCell]:
    """A fit's published cells beside ours: one least-squares line per seed.

    There are none where some of its rows are left out.
    """
    rows = plan.paper.table(fit.over).rows
    if any((fit.over, row.label) not in plan.rows for row in rows):
        return []
    x = [product(fit.x, row.published) for row in rows]
    lines = [
        np.polyfit(x, [measurements[name].numbers[fit.terms] for name in of_seed], 1)
        # Some rows may have further seeds.
        for of_seed in zip(*(plan.rows[fit.over, row.label] for row in rows), strict=False)
        if all(name in measurements for name in of_seed)
    ]
    return [
        PaperCell(
            table=fit.id,
            row=row.label,
            column=fit.column,
            published=row.published[fit.column.name],
            ours=tuple(
                float((float(row.published[fit.target_column]) - intercept) / slope)
                for slope, intercept in lines
            ),
        )
        for row in fit.rows
    ]


@dataclass(frozen=True)
class Score(Counts):
    """How many cells are within; None: they are not scored."""

    within: int | None
    by_value: int | None
    """How many by value alone."""
    total: int
    """Of how many that count."""

    def words(self) -> list[str]:
        """As "n of m", as a percentage, and by value alone; dashes where nothing was scored."""
        if self.within is None or not self.total:
            return ["-", "-", "-"]
        share = f"{100 * self.within / self.total:.0f} %"
        return [f"{self.within} of {self.total}", share, f"{self.by_value}"]


@dataclass(frozen=True)
class Power(Counts):
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


@dataclass
class Scoreboard:
    """All cells of some tables, in the order in which they are printed."""

    titles: Mapping[str, str]
    """Title of every table, by its id."""
    scored: bool
    """False for quick runs, whose numbers are too noisy and too early to judge."""
    cells: list[PaperCell] = field(default_factory=list)

    def count(self, cells: Iterable[PaperCell] | None = None) -> Score:
        """The score of some cells, or of all."""
        counted = self._scored(cells)
        within = sum(cell.within for cell in counted) if self.scored else None
        by_value = sum(cell.by_value for cell in counted) if self.scored else None
        return Score(within, by_value, len(counted))

    def power(self, cells: Iterable[PaperCell] | None = None) -> Power:
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

    def of_table(self, table: str) -> list[PaperCell]:
        """The cells of a table."""
        return [cell for cell in self.cells if cell.table == table]

    def _scored(self, cells: Iterable[PaperCell] | None) -> list[PaperCell]:
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

    def verdicts(self, cell: PaperCell) -> list[str]:
        """``within`` or ``outside`` by value and by rank; empty where the cell is not judged so."""
        judged = self.scored and cell.scored and cell.ours
        answers = [cell.by_value, cell.by_rank] if judged else [None, None]
        words = {True: "within", False: "outside", None: ""}
        return [words[answer] for answer in answers]

    def verdict(self, cell: PaperCell) -> str:
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

    def _markdown_table(self, cells: Sequence[PaperCell]) -> str:
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

    def _marked(self, cell: PaperCell) -> str:
        """A cell with a cross outside its tolerance, a dagger within by rank alone, or in italics.

        A double dagger stands for a fitted setting. Italics mean that it is excluded.
        """
        verdict = self.verdict(cell)
        if verdict == "excluded" and cell.published:
            return f"*{cell}*"
        mark = "‡" if cell.fitted and cell.scored else ""
        if verdict in ("outside", "missing"):
            return f"{cell} ✗{mark}"
        by_rank = verdict == "within" and not cell.by_value
        return f"{cell} †{mark}" if by_rank else f"{cell} {mark}".rstrip()


def _columns_of(cells: Iterable[PaperCell]) -> list[PaperColumn]:
    """The columns of some cells, in their order, each once."""
    return list({cell.column.name: cell.column for cell in cells}.values())
