"""Cells: published numbers beside ours, and how they are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from aqmlab._util.lazy import np
from aqmlab.papers.measured import Measurements, Quantity, wanted
from aqmlab.papers.paper import Column, Fit, Paper, Table, product
from aqmlab.results.terms import SLACK, Rank

if TYPE_CHECKING:
    from aqmlab.papers.plan import Plan

__all__ = ["Cell", "fit_cells", "table_cells", "with_references"]


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
    ranks: tuple[Rank, ...] = ()
    """Of a percentile with a tolerance of rank: where the published one lies, per seed; empty:
    the runs do not tell."""
    excluded: str = ""
    """Why the cell does not count; empty: it does."""
    fitted: str = ""
    """Which setting of its row was chosen with the published numbers in view; empty: none."""
    reference: Cell | None = None
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


def table_cells(table: Table, plan: Plan, measurements: Mapping[str, Measurements]) -> list[Cell]:
    """A table's published cells beside ours; ours alone in columns that the paper has not."""
    cells = []
    for row in table.rows:
        if (table.id, row.label) not in plan.rows:
            continue
        names = plan.rows[table.id, row.label]
        done = [measurements[name] for name in names if name in measurements]
        for column, published in wanted(table, row):
            given = [of_run[Quantity.of(column, published)] for of_run in done]
            ranks = tuple(rank for _, rank in given if rank is not None)
            cells.append(
                Cell(
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


def with_references(cells: Sequence[Cell], paper: Paper) -> list[Cell]:
    """The cells with the same number of the row that they are held against.

    It is taken from the table itself or, if that has no such row, from the first one that has it.
    """
    own = {(cell.table, cell.row, cell.column.name): cell for cell in cells}
    anywhere: dict[tuple[str, str], Cell] = {}
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


def fit_cells(fit: Fit, plan: Plan, measurements: Mapping[str, Measurements]) -> list[Cell]:
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
        Cell(
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
