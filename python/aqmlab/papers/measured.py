"""What the tables took from each run of a paper, kept in a small file.

``measured.json`` has a line per run, by run name: the numbers that columns and fits are made of,
and where the published percentiles lie among ours. The name of a run holds the key of its scenario,
and so the name of the engine. ``quantities`` says which terms of a summary each number is the sum
of: it counts for the same terms only, whatever the column is called. ``sha256`` is the hash
of all that follows it except the CPU seconds: a digit that was changed by hand or on the disk is
noticed, and runs that are made again give the same hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from aqmlab import _native
from aqmlab._util.files import read_text
from aqmlab.errors import AqmlabError
from aqmlab.results.distributions import Distribution
from aqmlab.results.run import Run
from aqmlab.results.term_names import numbers
from aqmlab.results.terms import Percentile, Rank, Term, total

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab.papers.paper import Fit, Paper, PaperColumn, PaperRow, Table
    from aqmlab.papers.plan import Plan

__all__ = [
    "FILE",
    "Asked",
    "Measurements",
    "measure",
    "merged",
    "quantities",
    "rank",
    "read",
    "reusable",
    "sealed",
    "to_text",
    "wanted",
]


FILE = "measured.json"
"""The file's name, in a paper's folder and beside ``cells.csv``."""

_FORMAT = 3
"""What the file's ``format`` is; another number means that its fields are others."""
_CPU_S = re.compile(r'"cpu_s": ?[-+.\de]+')
_MAX_BYTES = 64 * 2**20
"""Largest file that is read."""
_PLAIN = Term("")
"""The fields of a term that are not written because they say nothing."""

_Terms: TypeAlias = "tuple[Term, ...]"


class Asked(NamedTuple):
    """What a cell or a fit takes from a run."""

    terms: _Terms
    """The number: the sum of these."""
    published: str = ""
    """The printed percentile whose rank is wanted; empty: none is."""
    points: float = 0.0
    """The tolerance of that rank."""

    @classmethod
    def of(cls, column: PaperColumn, published: str) -> Asked:
        """What a cell takes."""
        points = _points(column, published)
        return cls(column.terms) if points is None else cls(column.terms, published, points)


@dataclass(frozen=True)
class Measurements:
    """What was measured in one run."""

    engine: str
    """The name of the engine that made the run."""
    cpu_s: float
    """CPU time of the run."""
    numbers: Mapping[_Terms, float]
    ranks: Mapping[Asked, Rank | None]
    """None: the run has no percentile of the kind."""

    def covers(self, wanted: Iterable[Asked]) -> bool:
        """Whether all of these are there."""
        return all(
            one.terms in self.numbers and (not one.published or one in self.ranks) for one in wanted
        )

    def __getitem__(self, quantity: Asked) -> tuple[float, Rank | None]:
        """The number, and the rank if that is wanted and there is one."""
        rank = self.ranks[quantity] if quantity.published else None
        return self.numbers[quantity.terms], rank


def wanted(table: Table, row: PaperRow) -> list[tuple[PaperColumn, str]]:
    """Columns of a row and what is published in them: none that the paper leaves out of this row.

    Of columns that the paper has not, the published number is empty.
    """
    published = ((column, row.published.get(column.name)) for column in table.columns)
    return [(column, number or "") for column, number in published if number != ""]


def quantities(
    plan: Plan, tables: Sequence[Table], fits: Sequence[Fit] = ()
) -> dict[str, set[Asked]]:
    """What some tables and fits take from runs, by run name."""
    found: dict[str, set[Asked]] = {}
    for table in tables:
        for row in table.rows:
            of_row = {
                Asked.of(column, published)
                for column, published in wanted(table, row)
                if not column.by_seed
            }
            for name in plan.rows.get((table.id, row.label), ()):
                found.setdefault(name, set()).update(of_row)
    for fit in fits:
        for row in plan.paper.table(fit.over).rows:
            for name in plan.rows.get((fit.over, row.label), ()):
                found.setdefault(name, set()).add(Asked(fit.terms))
    return found


def measure(
    runs: Mapping[str, Run | AqmlabError], wanted: Mapping[str, Iterable[Asked]]
) -> dict[str, Measurements]:
    """What is wanted of the runs that ended well.

    Every run is read once and let go, so memory does not grow with the number of runs.
    """
    return {
        name: _measurements(run.without_tables(), wanted[name])
        for name, run in runs.items()
        if isinstance(run, Run) and name in wanted
    }


def _measurements(run: Run, wanted: Iterable[Asked]) -> Measurements:
    """What is wanted of a run."""
    summary = numbers(run)
    return Measurements(
        engine=_native.engine(),  # runs of another engine are not used
        cpu_s=run.metadata["cpu_s"],
        numbers={quantity.terms: total(quantity.terms, summary) for quantity in wanted},
        ranks={quantity: _rank(quantity, run) for quantity in wanted if quantity.published},
    )


def rank(column: PaperColumn, published: str, run: Run) -> Rank | None:
    """Where a published percentile lies in a run, if the column is judged by rank.

    None, too, when the run has nothing of the kind.
    """
    quantity = Asked.of(column, published)
    return _rank(quantity, run) if quantity.published else None


def _points(column: PaperColumn, published: str) -> float | None:
    """The tolerance of a cell's rank; None: the cell is not judged by rank."""
    if column.percentile is None or column.tolerance is None or not published:
        return None
    return column.tolerance.rank or 0.0


def _rank(quantity: Asked, run: Run) -> Rank | None:
    """Where the published percentile of a quantity lies in a run."""
    [term] = quantity.terms
    of = Percentile.named(term.key)
    times = Distribution.of_run(run, of.what, of.traffic_class)
    return times.rank(float(quantity.published) / term.factor, quantity.points)


def reusable(
    cached: Mapping[str, Measurements],
    quantities: Mapping[str, set[Asked]],
    others: Container[str],
) -> dict[str, Measurements]:
    """What stands in place of runs, but not of others: of this engine, and all that is wanted."""
    return {
        name: cached[name]
        for name, of_run in quantities.items()
        if name in cached
        and name not in others
        and cached[name].engine == _native.engine()
        and cached[name].covers(of_run)
    }


def merged(
    old: Mapping[str, Measurements], new: Mapping[str, Measurements]
) -> dict[str, Measurements]:
    """What both hold; old numbers of other engines are left out, for no run can take them."""
    cached = {name: entry for name, entry in old.items() if entry.engine == _native.engine()}
    both = {
        name: Measurements(
            entry.engine,
            entry.cpu_s,
            {**cached[name].numbers, **entry.numbers},
            {**cached[name].ranks, **entry.ranks},
        )
        for name, entry in new.items()
        if name in cached
    }
    return {**cached, **new, **both}


def to_text(paper: Paper, runs: Mapping[str, Measurements]) -> str:
    """The file: sorted, a line per run and per quantity, so that versions can be compared.

    Numbers that neither a column nor a fit of the paper asks for are left out.
    """
    names = _names(paper)
    specs = {name: [_term_spec(term) for term in terms] for terms, name in names.items()}
    lines = {name: _entry_json(runs[name], names) for name in runs}
    body = (
        f'"paper": {json.dumps(paper.name)},\n'
        f'"quantities": {_by_line(specs)},\n"runs": {_by_line(lines)}\n}}\n'
    )
    return sealed(body)


def sealed(body: str) -> str:
    """The whole file: its format and the hash of the rest, then the rest.

    The hash leaves out the CPU seconds, in which machines differ.
    """
    digest = hashlib.sha256(_CPU_S.sub("", body).encode()).hexdigest()
    return f'{{\n"format": {_FORMAT},\n"sha256": "{digest}",\n{body}'


def _by_line(entries: Mapping[str, Any]) -> str:
    """A JSON object with a line per entry, in the order of their names."""
    lines = (f"{json.dumps(name)}: {_compact(entries[name])}" for name in sorted(entries))
    return "{\n" + ",\n".join(lines) + "\n}" if entries else "{}"


def _compact(value: object) -> str:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _names(paper: Paper) -> dict[_Terms, str]:
    """A name for all that a paper's tables and fits ask: that of the first column that does.

    Other terms whose column is called the same get a number behind it.
    """
    columns = [
        (column.name, column.terms)
        for table in paper.tables
        for column in table.columns
        if not column.by_seed
    ]
    found: dict[_Terms, str] = {}
    taken: set[str] = set()
    for name, terms in [*columns, *((fit.id, fit.terms) for fit in paper.fits)]:
        if terms in found:
            continue
        free = (free for free in _numbered(name) if free not in taken)
        found[terms] = next(free)
        taken.add(found[terms])
    return found


def _numbered(name: str) -> Iterator[str]:
    """The name, and behind it 2, 3 and so on."""
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _term_spec(term: Term) -> dict[str, Any]:
    """A term as ``tables.toml`` writes it."""
    fields = {"factor": term.factor, "per": term.per, "empty": term.empty}
    plain = {name: getattr(_PLAIN, name) for name in fields}
    return {"key": term.key} | {
        name: value for name, value in fields.items() if value != plain[name]
    }


def _entry_json(entry: Measurements, names: Mapping[_Terms, str]) -> dict[str, Any]:
    """The line of a run."""
    ranks: dict[str, list[Any]] = {}
    for quantity in sorted(entry.ranks, key=lambda one: (float(one.published), one[1:])):
        if quantity.terms in names:
            rank = entry.ranks[quantity]
            place = None if rank is None else [rank.at, rank.span_s]
            given = [quantity.published, quantity.points, place]
            ranks.setdefault(names[quantity.terms], []).append(given)
    return {
        "engine": entry.engine,
        "cpu_s": entry.cpu_s,
        "numbers": {
            names[terms]: number for terms, number in entry.numbers.items() if terms in names
        },
        **({"ranks": ranks} if ranks else {}),
    }


def read(path: Path, paper: Paper) -> dict[str, Measurements]:
    """What a file holds, by run name; nothing if there is none.

    Raises:
        AqmlabError: it is damaged, of another paper or of a later version.
    """
    if not path.exists():
        return {}
    text = read_text(path, "measured numbers", _MAX_BYTES)
    try:
        content = json.loads(text)
        version, name = content["format"], content["paper"]
        if version != _FORMAT:
            raise AqmlabError(f"{path}: is of format {version}; this aqmlab reads format {_FORMAT}")
        _, _, body = text.partition(f'"sha256": "{content["sha256"]}",\n')
        if text != sealed(body):
            raise AqmlabError(
                f"{path}: is damaged: it was changed after it was written, as its hash shows; take "
                "the file as it was, or make the runs again"
            )
        if name != paper.name:
            raise AqmlabError(f"{path}: holds what runs of {name} gave, not of {paper.name}")
        terms = {
            quantity: tuple(Term(**spec) for spec in specs)
            for quantity, specs in content["quantities"].items()
        }
        return {run: _entry(line, terms) for run, line in content["runs"].items()}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        what = str(error) if isinstance(error, ValueError) else repr(error)
        raise AqmlabError(f"{path}: is damaged: {what}") from None


def _entry(line: Mapping[str, Any], terms: Mapping[str, _Terms]) -> Measurements:
    """What the line of a run says."""
    ranks = {
        Asked(terms[name], _text(published), _number(points)): (
            None if place is None else Rank(*(_number(value) for value in place))
        )
        for name, given in line.get("ranks", {}).items()
        for published, points, place in given
    }
    return Measurements(
        engine=_text(line["engine"]),
        cpu_s=_number(line["cpu_s"]),
        numbers={terms[name]: _number(value) for name, value in line["numbers"].items()},
        ranks=ranks,
    )


def _number(value: object) -> float:
    """A number that was read."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"found {value!r} where a number stands")  # noqa: TRY004 - like the others
    return float(value)


def _text(value: object) -> str:
    """A text that was read."""
    if not isinstance(value, str):
        raise ValueError(f"found {value!r} where a text stands")  # noqa: TRY004 - like the others
    return value
