"""The runs that a paper's tables and figures need."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from aqmlab.errors import AqmlabError
from aqmlab.papers.paper import Paper, PaperRow, Table
from aqmlab.papers.rule import rows_of
from aqmlab.scenario.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Mapping, Sequence

    from aqmlab.papers.paper import PaperFigure

__all__ = ["Plan", "further_seeds"]


@dataclass
class Plan:
    """The runs that are needed, each once, and who needs them."""

    paper: Paper
    seeds: Sequence[int]
    quick: bool = False
    """Only the rows that quick runs have, as short as quick runs are."""
    full: bool = False
    """As long as the paper's runs, where the usual ones are shorter."""
    further: Mapping[tuple[str, str], Sequence[int]] = field(default_factory=dict)
    """The seeds that rows have beside these, by table and label."""
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    """By run name. Rows that are the same experiment share their runs."""
    rows: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Names of the runs, one per seed, of a table's row, by table and label; the further seeds come
    last."""

    def add_tables(self, tables: Sequence[Table]) -> None:
        """Plans every row of some tables."""
        for table in tables:
            for row in table.rows:
                self._add_row(table, row)

    def _add_row(self, table: Table, row: PaperRow) -> None:
        """Plans a row, unless quick runs do without it."""
        if not self.quick or fnmatchcase(row.label, table.quick_rows):
            more = self.further.get((table.id, row.label), ())
            seeds = dict.fromkeys([*self.seeds, *more])
            self.rows[table.id, row.label] = [self._add(table, row, seed) for seed in seeds]

    def add_figures(self, wanted: Sequence[PaperFigure]) -> None:
        """Plans the rows that some figures show."""
        for figure in wanted:
            for name, label in self._places(figure):
                table = self.paper.table(name)
                self._add_row(table, table.row(label))

    def keep(self, names: Container[str], reused: Container[str] = ()) -> None:
        """Forgets every row one of whose runs is not among these.

        Rows may also have runs for which numbers stand in.
        """
        self.rows = {
            row: runs
            for row, runs in self.rows.items()
            if all(name in names or name in reused for name in runs)
        }
        used = {name for runs in self.rows.values() for name in runs}
        self.scenarios = {name: self.scenarios[name] for name in self.scenarios if name in used}

    def _add(self, table: Table, row: PaperRow, seed: int) -> str:
        """Plans a run and returns its name."""
        paper = self.paper
        length = paper.quick if self.quick else paper.full if self.full else ()
        overrides = [*paper.common, *row.of_seed(seed), *length, ("seed", str(seed))]
        scenario = Scenario.load(table.scenario, overrides)
        name = f"{scenario.key[:16]}-s{seed}"
        self.scenarios.setdefault(name, scenario)
        return name

    def drawn(self, figures: Sequence[PaperFigure], names: Sequence[str]) -> set[str]:
        """The runs of which more than numbers is needed: those of figures of these names.

        Other figures come with their tables, and do without.

        Raises:
            AqmlabError: quick runs have no row of a named figure.
        """
        named = {name.lower() for name in names}
        needed: set[str] = set()
        for figure in figures:
            if figure.id.lower() in named:
                places = [place for place in self._places(figure) if place in self.rows]
                if not places:
                    raise AqmlabError(
                        f"figure {figure.id}: quick runs leave out all of its rows; "
                        "repeat the figure without --quick"
                    )
                needed.update(name for place in places for name in self.rows[place])
        return needed

    def lacking(self, figures: Sequence[PaperFigure], reused: Container[str]) -> list[str]:
        """Ids of the figures without some of their curves, because numbers draw none."""
        return [
            figure.id
            for figure in figures
            if any(
                name in reused
                for place in self._places(figure)
                for name in self.rows.get(place, ())
            )
        ]

    def _places(self, figure: PaperFigure) -> list[tuple[str, str]]:
        """Table and label of the rows of a figure."""
        return figure.places({table.id: table for table in self.paper.tables})

    @property
    def further_runs(self) -> int:
        """How many runs are of further seeds."""
        first = {name for names in self.rows.values() for name in names[: len(self.seeds)]}
        return len({name for names in self.rows.values() for name in names} - first)


def further_seeds(paper: Paper) -> dict[tuple[str, str], tuple[int, ...]]:
    """The seeds that rows have beside the paper's, by table and label.

    ``[[further]]`` names claims; the rows that they need have its seeds, and so has every row of
    another table that is the same experiment.
    """
    tables = {table.id: table for table in paper.tables}
    found: dict[Hashable, list[int]] = {}
    for entry in paper.claims.further:
        for name in entry.claims:
            for table, label in rows_of(paper.claims.named(name), paper):
                if table in tables:
                    experiment = _experiment(tables[table], tables[table].row(label))
                    found.setdefault(experiment, []).extend(entry.seeds)
    return {
        (table.id, row.label): tuple(sorted(set(more)))
        for table in paper.tables
        for row in table.rows
        if (more := found.get(_experiment(table, row)))
    }


def _experiment(table: Table, row: PaperRow) -> Hashable:
    """What makes the runs of a row."""
    seeds = sorted(row.by_seed)
    return table.scenario, row.overrides, tuple(row.of_seed(seed) for seed in seeds)
