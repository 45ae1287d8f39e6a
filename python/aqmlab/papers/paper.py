"""Papers: published tables, and the scenarios that repeat them.

A paper is a folder with a ``tables.toml``, which explains itself, CSV files of published numbers,
and scenarios that the rows vary.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, cast

from aqmlab._util.fields import Field, toml_table
from aqmlab.errors import AqmlabError
from aqmlab.papers.by_seed import BySeed, line_of
from aqmlab.papers.claim import Claims, combinations
from aqmlab.papers.names import folder_of
from aqmlab.results import term_names
from aqmlab.results.distributions import Of
from aqmlab.results.own_metrics import define, table_of
from aqmlab.results.terms import Percentile, Term, Tolerance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aqmlab.scenario.scenario import Override

__all__ = [
    "Fit",
    "Interpretation",
    "Paper",
    "PaperColumn",
    "PaperFigure",
    "PaperRow",
    "Table",
    "column",
    "product",
    "read_figures",
]

_NAMED = 12
"""Tables and figures that an error names."""


@dataclass(frozen=True)
class PaperColumn:
    """A published column and how its counterpart follows from a run's summary."""

    name: str
    title: str
    terms: tuple[Term, ...] = ()
    tolerance: Tolerance | None = None
    """None: the column is shown but not scored."""
    percentile: Percentile | None = None
    """What is judged by rank too, if the tolerance has one."""
    by_seed: str = ""
    """Column of the paper's file by seed that it shows, in place of something measured."""


@dataclass(frozen=True)
class PaperRow:
    """One published row."""

    label: str
    """Readable and unique within its table."""
    published: Mapping[str, str]
    """The CSV's columns as printed; an empty one is not published."""
    overrides: tuple[Override, ...] = ()
    """What turns the table's scenario into this row's."""
    templates: tuple[tuple[str, str], ...] = ()
    """The same, where it differs from seed to seed: texts that columns of `by_seed` fill in."""
    by_seed: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Lines of the paper's file by seed."""

    def of_seed(self, seed: int) -> tuple[Override, ...]:
        """What turns the table's scenario into this row's with a seed."""
        if not self.templates:
            return self.overrides
        return self.filled(line_of(self.by_seed, seed, self.label))

    def filled(self, line: Mapping[str, str]) -> tuple[Override, ...]:
        """The overrides, with a line of the file by seed filled in."""
        own = ((path, Template(text).substitute(line)) for path, text in self.templates)
        return (*own, *self.overrides)


@dataclass(frozen=True)
class Table:
    """A published table, each row of which is one experiment."""

    id: str
    title: str
    columns: tuple[PaperColumn, ...]
    rows: tuple[PaperRow, ...]
    scenario: Path
    """What every row varies."""
    quick_rows: str = "*"
    """Pattern of the labels of the rows that quick runs have."""
    shows: tuple[str, ...] = ()
    """Figures that plot the same numbers: other names of the table."""

    def row(self, label: str) -> PaperRow:
        """The row of this label."""
        return next(row for row in self.rows if row.label == label)


@dataclass(frozen=True)
class Fit:
    """A published number that a straight line through the runs of a table gives."""

    id: str
    title: str
    over: str
    """Id of the table whose runs are used."""
    column: PaperColumn
    x: Mapping[str, Any]
    """What the line runs over: a product, as in a table's ``set``."""
    terms: tuple[Term, ...]
    """What the line gives."""
    target_column: str
    """Published column whose value the line has to reach."""
    rows: tuple[PaperRow, ...]

    @property
    def columns(self) -> tuple[PaperColumn, ...]:
        """What there are numbers of ours for, as of a table."""
        return (self.column,)


@dataclass(frozen=True)
class _Mark:
    """Published cells of which something must be said, such as why they are not scored."""

    tables: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]]
    """Patterns by column, of which a row's value matches one."""
    columns: tuple[str, ...]
    """Patterns of the columns' names."""
    reason: str

    def covers(self, table: str, row: PaperRow, column: str) -> bool:
        """Whether a cell is among them."""
        return (
            table in self.tables
            and any(fnmatchcase(column, pattern) for pattern in self.columns)
            and all(
                any(fnmatchcase(row.published.get(key, ""), pattern) for pattern in patterns)
                for key, patterns in self.where.items()
            )
        )


@dataclass(frozen=True)
class Interpretation:
    """What a paper leaves open, taken otherwise: some rows once more, with other settings.

    The rows form tables of their own, which are not scored. Claims are judged with them, too.
    """

    id: str
    title: str
    why: str
    """What the paper leaves open, and which settings are fitted."""
    mark: str
    """What is said of the claims that rest on these rows in the first interpretation; empty:
    nothing."""
    replaces: Mapping[str, str]
    """Ids of the tables with its rows, by the id of the table whose rows they replace."""
    apart: tuple[str, ...] = ()
    """Patterns of the tables, or of the labels of rows, that it has not: no claim that needs one is
    judged in it."""
    without: tuple[str, ...] = ()
    """Columns that say nothing in it: its tables lack them, and rules leave out what compares
    them."""


@dataclass(frozen=True)
class Paper:
    """A paper's tables, with the scenarios behind them."""

    name: str
    title: str
    folder: Path
    seeds: tuple[int, ...]
    common: tuple[tuple[str, str], ...]
    """Overrides of every run."""
    quick: tuple[tuple[str, str], ...]
    """Overrides of a quick run on top."""
    full: tuple[tuple[str, str], ...]
    """Overrides of a run of the published length on top, if that is not the scenario's."""
    tables: tuple[Table, ...]
    fits: tuple[Fit, ...]
    excluded: tuple[_Mark, ...]
    """Cells that are shown, but not scored, because they cannot be right or be met."""
    fitted: tuple[_Mark, ...]
    """Cells of rows with a setting that was chosen with the published numbers in view."""
    reference: Mapping[str, str]
    """``row``: label of the row without active queue management that goes with a row, whose columns
    it names; ``except``: pattern of the rows that have none; empty: no row has one."""
    claims: Claims
    figures: tuple[PaperFigure, ...] = ()
    """What ``figures.toml`` asks for."""
    by_seed: BySeed | None = None
    """Where rates by seed are; None: no row has any."""
    interpretations: tuple[Interpretation, ...] = ()
    """Other interpretations of what the paper leaves open; their tables are among ``tables``."""

    @classmethod
    def load(cls, name: str) -> Paper:
        """Reads a paper by its name, or by the path of its folder."""
        folder = folder_of(name)
        source = _toml(folder / "tables.toml")
        figures, signatures = folder / "figures.toml", folder / "signatures.toml"
        if signatures.exists():
            raise AqmlabError(f"{signatures}: found signatures; expected rules in claims.toml")
        try:
            file = folder / "tables.toml"
            _define(source, file)
            columns = {key: column(key, spec, file) for key, spec in source["columns"].items()}
            specs = {spec["id"]: spec for spec in source["tables"]}
            seeded = BySeed.read(source["by_seed"], folder) if "by_seed" in source else None
            tables = [
                _table(_complete(spec, specs, source), columns, folder, seeded)
                for spec in source["tables"]
            ]
            interpretations = _interpretations(source.get("readings", []), tables, columns)
            return cls(
                name=folder.name,
                title=source["paper"],
                folder=folder,
                seeds=tuple(source["seeds"]),
                common=tuple(source["common"].items()),
                quick=tuple(source["quick"].items()),
                full=tuple(source.get("full", {}).items()),
                tables=tuple(tables),
                fits=tuple(_fit(spec, columns, folder) for spec in source.get("fits", [])),
                excluded=tuple(_mark(spec) for spec in source.get("excluded", [])),
                fitted=tuple(_mark(spec) for spec in source.get("fitted", [])),
                reference=source.get("reference", {}),
                claims=Claims.load(folder),
                figures=_figures_of(_toml(figures), tables) if figures.exists() else (),
                by_seed=seeded,
                interpretations=interpretations,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise AqmlabError(f"{folder / 'tables.toml'}: {error!r}") from error

    def table(self, name: str) -> Table:
        """The table of this id."""
        return next(table for table in self.tables if table.id == name)

    @property
    def measures_early(self) -> bool:
        """Whether quick runs have another warm-up or duration than the usual ones."""
        return any(field.startswith("measure.") for field, _ in self.quick)

    @property
    def why_quick(self) -> str:
        """What keeps quick runs from being scored."""
        if self.measures_early:
            return "too short and too early to judge"
        return "of full length, but of one seed"

    def why_excluded(self, table: str, row: PaperRow, column: str) -> str:
        """Why a cell is not scored; empty: it is."""
        found = (entry.reason for entry in self.excluded if entry.covers(table, row, column))
        return next(found, "")

    def why_fitted(self, table: str, row: PaperRow, column: str) -> str:
        """Which of a row's settings were chosen with published numbers in view; empty: none."""
        found = (entry.reason for entry in self.fitted if entry.covers(table, row, column))
        return "; ".join(found)

    def reference_of(self, row: PaperRow) -> str:
        """Label of the row that a row's numbers are held against; empty: there is none."""
        if not self.reference or fnmatchcase(row.label, self.reference.get("except", "")):
            return ""
        return Template(self.reference["row"]).safe_substitute(row.published)

    def select(self, ids: Sequence[str] | None) -> tuple[list[Table], list[Fit], list[PaperFigure]]:
        """The wanted tables, fits and figures, in the paper's order; None: all.

        Figures all of whose rows are of wanted tables come with them.
        """
        parts: list[Table | Fit | PaperFigure] = [*self.tables, *self.fits, *self.figures]
        known = [part.id for part in parts] + [
            name for table in self.tables for name in table.shows
        ]
        wanted = {name.lower() for name in (known if ids is None else ids)}
        for name in ids or ():
            if name.lower() not in (entry.lower() for entry in known):
                few = ", ".join(known[:_NAMED])
                rest = f", ... ({len(known)} in all)" if len(known) > _NAMED else ""
                raise AqmlabError(f"{self.name} has no table or figure {name}; it has {few}{rest}")
        return (
            [table for table in self.tables if {table.id.lower(), *table.shows} & wanted],
            [fit for fit in self.fits if fit.id.lower() in wanted],
            [
                figure
                for figure in self.figures
                if figure.id.lower() in wanted
                or {table.lower() for table, _ in figure.rows} <= wanted
            ],
        )


def _figures_of(source: Mapping[str, Any], tables: Sequence[Table]) -> tuple[PaperFigure, ...]:
    """What a ``figures.toml`` asks for; every figure has rows in its table."""
    known = {table.id: table for table in tables}
    found = [figure for spec in source["figures"] for figure in read_figures(spec)]
    for figure in found:
        figure.places(known)
    return tuple(found)


def _toml(path: Path) -> dict[str, Any]:
    """A file of a paper."""
    return toml_table(path, "paper")


def _define(source: Mapping[str, Any], file: Path) -> None:
    """Defines the metrics of one's own that a ``tables.toml`` has."""
    if "metrics" in source:
        try:
            define(table_of(Field("metrics", source["metrics"]), str(file)))
        except AqmlabError as error:
            raise AqmlabError(f"{file}: {error}") from None


def column(name: str, spec: Mapping[str, Any], file: Path = Path("tables.toml")) -> PaperColumn:
    """A column as ``tables.toml`` describes it."""
    tolerance = Tolerance(**spec["tolerance"]) if "tolerance" in spec else None
    terms = _terms(spec.get("terms", []), f"{file}: columns.{name}")
    ranked = tolerance is not None and tolerance.rank is not None
    return PaperColumn(
        name=spec.get("name", name),
        title=spec["title"],
        terms=terms,
        tolerance=tolerance,
        percentile=Percentile.named(" + ".join(term.key for term in terms)) if ranked else None,
        by_seed=spec.get("by_seed", ""),
    )


def _terms(specs: Sequence[Mapping[str, Any]], where: str) -> tuple[Term, ...]:
    """Summands; an error says where a name stands that no number has."""
    try:
        return tuple(term_names.read(spec) for spec in specs)
    except AqmlabError as error:
        what, sep, known = str(error).partition("; possible are")
        hint = " (one of your own needs an entry in [metrics], or --metrics FILE)" if sep else ""
        raise AqmlabError(f"{where}: {what}{hint}{sep}{known}") from None


def _complete(
    spec: Mapping[str, Any], specs: Mapping[str, Any], paper: Mapping[str, Any]
) -> dict[str, Any]:
    """A table's description, completed by the one that it is ``like`` and by the paper's."""
    shared = {key: paper[key] for key in ("scenario", "settings") if key in paper}
    like = _complete(specs[spec["like"]], specs, paper) if "like" in spec else {}
    return {**shared, **like, "shows": [], **spec}


def _table(
    spec: Mapping[str, Any], columns: Mapping[str, PaperColumn], folder: Path, seeded: BySeed | None
) -> Table:
    """A table as ``tables.toml`` describes it, with its published rows."""
    return Table(
        id=spec["id"],
        title=spec["title"],
        columns=tuple(columns[name] for name in spec["compare"]),
        rows=tuple(_seeded(row, spec, seeded) for row in _rows(spec, folder)),
        scenario=folder / spec["scenario"],
        quick_rows=spec.get("quick_rows", "*"),
        shows=tuple(spec["shows"]),
    )


def _interpretations(
    specs: Sequence[Mapping[str, Any]], tables: list[Table], columns: Mapping[str, PaperColumn]
) -> tuple[Interpretation, ...]:
    """What ``[[readings]]`` in ``tables.toml`` describes; its tables are added to the others."""
    known = {table.id: table for table in tables}
    found = []
    for spec in specs:
        again = {
            name: _alternative(known[name], spec, part, columns)
            for part in spec["of"]
            for name in part["tables"]
        }
        tables += again.values()
        found.append(
            Interpretation(
                spec["id"],
                spec["title"],
                spec["why"],
                mark=spec.get("mark", ""),
                replaces={name: table.id for name, table in again.items()},
                apart=tuple(spec.get("apart", ())),
                without=tuple(spec.get("without", ())),
            )
        )
    return tuple(found)


def _alternative(
    table: Table,
    other: Mapping[str, Any],
    part: Mapping[str, Any],
    columns: Mapping[str, PaperColumn],
) -> Table:
    """Those rows of a table that an interpretation has, with its settings on top of theirs.

    It may measure a column otherwise, or show more of them. Where it sets what differs from seed to
    seed, nothing of the file by seed is shown.
    """
    pattern, settings = part.get("rows", "*"), part.get("set", {})
    instead = {name: columns[key] for name, key in part.get("columns", {}).items()}
    if unknown := instead.keys() - {column.name for column in table.columns}:
        raise ValueError(f"reading {other['id']}: table {table.id} has no column {min(unknown)}")
    rows = tuple(
        replace(
            row,
            overrides=(
                *row.overrides,
                *((path, _setting(value, row.published)) for path, value in settings.items()),
            ),
        )
        for row in table.rows
        if fnmatchcase(row.label, pattern)
    )
    replaced = {path for row in rows for path, _ in row.templates} & settings.keys()
    more = [columns[key] for key in part.get("compare", ())]
    shown = [
        replace(instead.get(column.name, column), name=column.name)
        for column in table.columns
        if not (replaced and column.by_seed) and column.name not in other.get("without", ())
    ]
    if not rows:
        raise ValueError(f"reading {other['id']}: there is no row {pattern} in table {table.id}")
    return replace(
        table,
        id=f"{table.id}-{other['id']}",
        title=f"{table.title}: {other['title']}",
        columns=tuple(
            replace(column, tolerance=None, percentile=None) for column in (*shown, *more)
        ),
        rows=rows,
        quick_rows="",
        shows=(),
    )


def _mark(spec: Mapping[str, Any]) -> _Mark:
    """Some cells, as ``tables.toml`` describes them."""
    where = {
        key: (patterns,) if isinstance(patterns, str) else tuple(patterns)
        for key, patterns in spec["where"].items()
    }
    return _Mark(
        tables=tuple(spec["tables"]),
        where=where,
        columns=tuple(spec["columns"]),
        reason=spec["reason"],
    )


def _fit(spec: Mapping[str, Any], columns: Mapping[str, PaperColumn], folder: Path) -> Fit:
    """A fit as ``tables.toml`` describes it."""
    return Fit(
        id=spec["id"],
        title=spec["title"],
        over=spec["over"],
        column=columns[spec["column"]],
        x=spec["x"],
        terms=_terms(spec["terms"], f"{folder / 'tables.toml'}: fits.{spec['id']}"),
        target_column=spec["target_column"],
        rows=_rows(spec, folder),
    )


def _rows(spec: Mapping[str, Any], folder: Path) -> tuple[PaperRow, ...]:
    """A table's rows, each with the scenario fields that it sets.

    They are the published ones that match ``where``, or a single empty one; each is repeated for
    every combination of the values that ``vary`` lists. Those of ``also`` follow.
    """
    lines: list[dict[str, str]] = [{}]
    if "published" in spec:
        with (folder / spec["published"]).open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
    where = spec.get("where", {})
    varied = [
        {**line, **values}
        for line in lines
        if all(line[key] == where[key] for key in where)
        for values in combinations(spec.get("vary", {}))
    ]
    varied += combinations(spec["also"]) if "also" in spec else []
    return tuple(_row(line, spec) for line in varied)


def _row(line: Mapping[str, str], spec: Mapping[str, Any]) -> PaperRow:
    """A row; ``settings`` give its values further texts to be filled in."""
    filled = dict(line)
    for name, settings in spec.get("settings", {}).items():
        filled |= settings.get(line.get(name), {})
    return PaperRow(
        label=Template(spec["row"]).substitute(filled),
        published=line,
        overrides=tuple(
            (path, _setting(value, filled)) for path, value in spec.get("set", {}).items()
        ),
    )


def _seeded(row: PaperRow, spec: Mapping[str, Any], seeded: BySeed | None) -> PaperRow:
    """A row with what its table's ``set_by_seed`` gives it."""
    templates = tuple(spec.get("set_by_seed", {}).items())
    if not templates or seeded is None:
        return row
    return replace(row, templates=templates, by_seed=seeded.of(row.published))


def _setting(value: str | Mapping[str, Any], line: Mapping[str, str]) -> str:
    """What a row gives a scenario field: a text with its columns filled in, or a product."""
    if isinstance(value, str):
        return Template(value).substitute(line)
    number = f"{product(value, line):.15g}"
    return f'"{number} {value["unit"]}"' if "unit" in value else number


def product(value: Mapping[str, Any], line: Mapping[str, str]) -> float:
    """``{ column, factor }`` in a row; ``unit``, if there is one, does not matter to the number."""
    return float(line[value["column"]]) * float(value["factor"])


@dataclass(frozen=True)
class PaperFigure:
    """Rows of tables whose distributions are drawn together."""

    id: str
    title: str
    rows: tuple[tuple[str, str], ...]
    """Tables, and patterns of their rows' labels."""
    of: Of
    limit_s: float
    """End of the time axis; the tail beside it has none."""

    @property
    def file_name(self) -> str:
        """``figure-`` and its id in lower case, without blanks."""
        return f"figure-{re.sub(r'[^a-z0-9.]+', '-', self.id.lower()).strip('-')}.svg"

    def places(self, tables: Mapping[str, Table]) -> list[tuple[str, str]]:
        """Table and label of each of its rows, in the order of the patterns."""
        found = []
        for name, pattern in self.rows:
            known = [row.label for row in tables[name].rows] if name in tables else []
            matching = [(name, label) for label in known if fnmatchcase(label, pattern)]
            if not matching:
                raise ValueError(f"figure {self.id}: there is no row {pattern} in table {name}")
            found += matching
        return list(dict.fromkeys(found))


def read_figures(spec: Mapping[str, Any]) -> list[PaperFigure]:
    """The figures of an entry: one, or one per value of ``each``, which ``$each`` stands for."""
    values = spec.get("each", [""])
    return [
        PaperFigure(
            id=_filled(spec["id"], value),
            title=_filled(spec["title"], value),
            rows=tuple((table, _filled(row, value)) for table, row in spec["rows"]),
            of=cast("Of", spec.get("of", "response")),
            limit_s=float(spec["limit_s"]),
        )
        for value in values
    ]


def _filled(text: str, value: object) -> str:
    """A text with its ``$each`` filled in."""
    return Template(text).substitute(each=value)
