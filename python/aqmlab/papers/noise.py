"""What a paper's tables can decide: claims judged on noisy copies of a paper's own tables.

Each printed number is one experiment. Another run of the same laboratory would have printed others:
``[noise]`` in ``claims.toml`` says by how much, and where that is known from. A claim whose rule is
true of less than :data:`aqmlab.papers.judge.DECIDABLE` of the copies would often be contradicted
by the laboratory that made it; whether our numbers satisfy it proves nothing. The same noise on
our own numbers shows which verdicts a single run of each row leaves to chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aqmlab._util.lazy import np
from aqmlab.papers.rule import case

if TYPE_CHECKING:
    from aqmlab.papers.claim import NoiseOf
    from aqmlab.papers.paper import Paper, Table
    from aqmlab.papers.scoreboard import PaperCell

__all__ = ["as_printed", "shares", "shares_of_ours"]


@dataclass(frozen=True)
class _Noise:
    """How the experiments of some tables vary from one run of the laboratory to the next."""

    tables: tuple[str, ...]
    """Rows of one label in them are one experiment: whatever moves it moves all its numbers."""
    relative: Mapping[str, float]
    """By column: what one standard deviation makes of a number, as a fraction of it."""
    residuals: Mapping[str, np.ndarray]
    """By column: relative differences between rows that are printed twice, all of one order."""

    def factors(
        self, columns: Sequence[str], copies: int, draws: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """What the numbers of one experiment are multiplied by in each copy, by column."""
        deviation = draws.standard_normal(copies)
        sign = draws.choice([-1.0, 1.0], copies)
        rows = len(next(iter(self.residuals.values()), ()))
        drawn = draws.integers(0, max(rows, 1), copies)
        found = {}
        for column in columns:
            if column in self.residuals:
                found[column] = 1 + sign * self.residuals[column][drawn] / math.sqrt(2)
            else:
                found[column] = 1 + self.relative.get(column, 0.0) * deviation
        return found


def shares(paper: Paper) -> dict[str, float]:
    """Share of noisy copies of the printed tables of which the rule of a claim is true, by claim.

    Claims are left out whose rules need a number that is not printed, and papers that say nothing
    about their noise. Experiments vary independently of each other; their numbers are rounded as
    printed.
    """
    printed = replace(paper, tables=tuple(map(as_printed, paper.tables)))
    texts = {
        (table.id, row.label, column.name): row.published[column.name]
        for table in printed.tables
        for row in table.rows
        for column in table.columns
    }
    noisy = {
        place: np.round(float(texts[place]) * factor, len(texts[place].partition(".")[2]))
        for place, factor in _factors(printed).items()
        if texts[place]
    }
    return _shares(printed, noisy)


def shares_of_ours(paper: Paper, cells: Sequence[PaperCell]) -> dict[str, float]:
    """The same of noisy copies of our numbers, by claim: by how much its verdict may be chance.

    Where it is neither near 0 nor near 1, a single run of each row does not decide the claim.
    """
    means = {(cell.table, cell.row, cell.column.name): cell.mean for cell in cells}
    noisy = {
        place: mean * factor
        for place, factor in _factors(paper).items()
        if (mean := means.get(place)) is not None
    }
    return _shares(paper, noisy)


def _shares(paper: Paper, noisy: Mapping[tuple[str, str, str], np.ndarray]) -> dict[str, float]:
    """Of which share of the copies the rule of each claim is true whose numbers are all there."""
    if not noisy:
        return {}
    copies = paper.claims.noise.copies if paper.claims.noise else 0
    values = {place: numbers.tolist() for place, numbers in noisy.items()}
    found = {}
    for claim in paper.claims.entries:
        cases = [case(rule, paper, values, copies) for rule in claim.rules]
        known = [one for one in cases if one is not None]
        if claim.rules and len(known) == len(cases):
            answers = [all(one.true_of([copy]) for one in known) for copy in range(copies)]
            found[claim.id] = float(np.mean(answers))
    return found


def as_printed(table: Table) -> Table:
    """A table whose rows say of every column whether the paper prints it."""
    empty = {column.name: "" for column in table.columns}
    return replace(
        table, rows=tuple(replace(row, published={**empty, **row.published}) for row in table.rows)
    )


def _factors(paper: Paper) -> dict[tuple[str, str, str], np.ndarray]:
    """What the number at a table, row and column is multiplied by in each copy; empty: no noise."""
    spec = paper.claims.noise
    if spec is None:
        return {}
    copies = spec.copies
    draws = np.random.default_rng(spec.seed)
    found = {}
    kinds = [_noise(paper, entry) for entry in spec.of]
    noisy = {name for kind in kinds for name in kind.tables}
    kinds.append(_Noise(tuple({table.id for table in paper.tables} - noisy), {}, {}))
    for kind in kinds:
        tables = [table for table in paper.tables if table.id in kind.tables]
        labels = dict.fromkeys(row.label for table in tables for row in table.rows)
        names = list(dict.fromkeys(column.name for table in tables for column in table.columns))
        factors = {label: kind.factors(names, copies, draws) for label in labels}
        for table in tables:
            for row in table.rows:
                for column in table.columns:
                    place = (table.id, row.label, column.name)
                    found[place] = factors[row.label][column.name]
    return found


def _noise(paper: Paper, entry: NoiseOf) -> _Noise:
    """An entry of ``[noise]`` with the residuals that it names."""
    residuals: dict[str, np.ndarray] = {}
    if entry.residuals:
        one, other = (paper.table(name) for name in entry.residuals)
        printed = {name for row in one.rows for name, text in row.published.items() if text}
        names = [column.name for column in one.columns if column.name in printed]
        again = {row.label: row.published for row in other.rows}
        twice = [
            (row.published, again[row.label])
            for row in one.rows
            if row.label in again and _measured_twice(row.published, again[row.label], names)
        ]
        for name in names:
            differences = [float(second[name]) / float(first[name]) - 1 for first, second in twice]
            residuals[name] = np.array(differences)
    return _Noise(entry.tables, entry.relative, residuals)


def _measured_twice(one: Mapping[str, str], other: Mapping[str, str], names: Sequence[str]) -> bool:
    """Whether both rows have every number; rows that are equal to the last digit are a copy."""
    pairs = [(one.get(name, ""), other.get(name, "")) for name in names]
    return all(map(all, pairs)) and any(first != second for first, second in pairs)
