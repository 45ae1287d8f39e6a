"""Claims: what a paper says in words, as predicates over the cells of its tables.

``claims.toml`` explains itself. A predicate is judged over the seeds together: they are drawn
with replacement (all draws of up to four seeds, else :data:`_DRAWS` at random), the predicate is
asked of each draw's means, and it *holds* when it is true of at least 95 % of the draws, *fails*
when it is true of at most 5 %, else it is *undecided*. Rows keep their seeds together: the same
seed means the same users in all of them. A claim is judged over the seeds that all of its rows
have: some may have more than others (``[[further]]``). A single seed is a single draw. A predicate
with ``each`` is true where it is true of every case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from string import Template
from typing import Any

from aqmlab._util.expressions import Expression
from aqmlab._util.lazy import np
from aqmlab._util.markup import markdown
from aqmlab.errors import AqmlabError
from aqmlab.papers.paper import Fit, Paper, Row, Table, combinations
from aqmlab.papers.scoreboard import Cell
from aqmlab.results.verdict import FAILS, HOLDS, UNDECIDED, Verdict

__all__ = [
    "CONTRADICTED",
    "DECIDABLE",
    "FUNCTIONS",
    "case",
    "decide",
    "further_seeds",
    "judge",
    "place",
    "rows_of",
    "rules",
    "score",
    "score_by_type",
    "to_json",
    "to_markdown",
    "within_noise",
]


CONTRADICTED = ("partly", "disagrees")
"""What the paper's own tables say of claims that are not counted."""
DECIDABLE = 0.8
"""Least share of noisy copies of the printed tables of which a rule is true if they decide
its claim; see :mod:`aqmlab.papers.noise`."""
_CONFIDENCE = 0.95
"""Share of the draws that decides."""
_DRAWS = 1000
"""Draws of five seeds and more."""
_VALUE = re.compile(r"\b([A-Za-z_]\w*)\.([A-Za-z_]\w*)")
"""``rows.column`` in a predicate."""
_SHOWN = 8
"""Most numbers that are given for a verdict on many cases."""
_ROUNDING = 1e-9
"""What numbers may differ by and still be the same."""


def _falling(values: np.ndarray) -> bool:
    """Whether each value is below the one before."""
    return bool(np.all(np.diff(values) < 0))


def _at_max(x: np.ndarray, y: np.ndarray) -> float:
    """The x at which y is largest."""
    return float(x[np.argmax(y)])


def _step(by: float, *four: float) -> bool:
    """Whether the third is above the second, and each other above its own by less than half."""
    below, rise, above = np.diff(four)
    return bool(rise >= by and max(below, above) < rise / 2)


def _near(a: float, b: float, relative: float, absolute: float = 0.0) -> bool:
    """Whether a differs from b by no more than a share of b, or than a number."""
    return abs(a - b) <= max(relative * abs(b), absolute) + _ROUNDING


def _at_most(a: float, b: float, relative: float, absolute: float = 0.0) -> bool:
    """Whether a is below b or, by the same measure, near it."""
    return a <= b or _near(a, b, relative, absolute)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": lambda *values: min(float(np.min(value)) for value in values),
    "max": lambda *values: max(float(np.max(value)) for value in values),
    "mean": lambda values: float(np.mean(values)),
    "spread": lambda values: float(np.max(values) - np.min(values)),
    "abs": np.abs,
    "first": lambda values: float(values[0]),
    "last": lambda values: float(values[-1]),
    "falling": _falling,
    "at_max": _at_max,
    "near": _near,
    "at_most": _at_most,
    "step": _step,
    "largest": lambda *values: np.maximum.reduce(values),
    "quantile": lambda share, values: float(np.quantile(values, share)),
    "within": lambda low, high, *values: all(
        bool(np.all((low <= value) & (value <= high))) for value in values
    ),
}
"""What predicates may use beside arithmetic and comparisons; arithmetic goes row by row."""


def _contradicted(verdict: Verdict) -> bool:
    """Whether the paper's own tables, the caveat of a claim, contradict it, wholly or in part."""
    return verdict.caveat in CONTRADICTED


def _undecidable(verdict: Verdict, decidable: Mapping[str, float]) -> bool:
    """Whether another run of the paper's own laboratory would often have contradicted it."""
    return not _contradicted(verdict) and decidable.get(verdict.id, 1.0) < DECIDABLE


def within_noise(
    paper: Paper, ours: Mapping[str, float], seeds: int, *, with_further: bool
) -> set[str]:
    """The claims that one run of each row decides, and whose verdict may be chance.

    `ours` has the share of noisy copies of our numbers of which a rule is true; `seeds` is how many
    every row has, and `with_further` says whether some have further ones.
    """
    if seeds > 1:
        return set()
    entries = paper.claims.get("further", []) if with_further else []
    further = {name for entry in entries for name in entry["claims"]}
    open_ones = {name for name, share in ours.items() if 1 - _CONFIDENCE < share < _CONFIDENCE}
    return open_ones - further


def to_json(
    verdict: Verdict, decidable: Mapping[str, float], ours: Mapping[str, float]
) -> dict[str, Any]:
    """What became of a claim, for ``scoreboard.json``.

    ``noisy_copies``, ``noisy_runs``: of which share of the noisy copies of the paper's tables, and
    of our numbers, its rule is true; see :mod:`aqmlab.papers.noise`. ``counts``: it is among those
    that the paper's tables decide.
    """
    return {
        "id": verdict.id,
        "text": verdict.statement,
        "verdict": verdict.outcome,
        "because": verdict.measured,
        "own_tables": verdict.caveat,
        "noisy_copies": decidable.get(verdict.id),
        "noisy_runs": ours.get(verdict.id),
        "counts": not (_contradicted(verdict) or _undecidable(verdict, decidable)),
    }


_Values = Mapping[tuple[str, str, str], Sequence[float] | None]
"""Ours over the seeds, by table, row and column; None: a run is missing."""


def judge(
    paper: Paper,
    cells: Sequence[Cell],
    *,
    tables: Collection[str] | None = None,
    quick: bool = False,
) -> list[Verdict]:
    """The claims of a paper whose tables were reproduced, and those that no table decides.

    Reproduced are these ``tables``, though some of their rows may not have been run; None: those
    that have cells.
    """
    values: _Values = {
        (cell.table, cell.row, cell.column.name): None if cell.lacks_runs else cell.ours
        for cell in cells
    }
    done = {cell.table for cell in cells} if tables is None else set(tables)
    verdicts = []
    for spec in paper.claims.get("claims", []):
        if "undecided" in spec:
            verdicts.append(_verdict(spec, UNDECIDED, spec["undecided"]))
        elif quick and spec["type"] not in paper.claims["quick"]:
            verdicts.append(_verdict(spec, UNDECIDED, "quick runs decide orderings only"))
        elif {place.table for rule in rules(spec) for place in _places(rule, paper)} <= done:
            verdicts.append(decide(spec, paper, values))
    return verdicts


def _verdict(spec: Mapping[str, Any], word: str, because: str) -> Verdict:
    """A claim's verdict."""
    return Verdict(spec["id"], spec["text"], word, because, spec["own_tables"])


def decide(spec: Mapping[str, Any], paper: Paper, values: _Values) -> Verdict:
    """Judges a claim that has a rule, over the seeds that all of its rows have."""
    try:
        seeds = _common_seeds(spec, paper, values)
        found = [case(rule, paper, values, seeds) for rule in rules(spec)]
    except AqmlabError as error:
        where = f"{paper.folder / 'claims.toml'}: {spec['id']}"
        raise AqmlabError(f"{where}: rule {error}") from None
    cases = [one for one in found if one is not None]
    if len(cases) < len(found):
        return _verdict(spec, UNDECIDED, "a run is missing")
    answers = [all(case.true_of(draw) for case in cases) for draw in _draws(seeds)]
    share = float(np.mean(answers))
    word = HOLDS if share >= _CONFIDENCE else FAILS if share <= 1 - _CONFIDENCE else UNDECIDED
    more = f" ({seeds} seeds)" if seeds > len(paper.seeds) else ""
    doubt = f" (true of {100 * share:.0f} % of the draws of seeds)" if word == UNDECIDED else ""
    return _verdict(spec, word, _reason(cases, seeds) + more + doubt)


def _common_seeds(spec: Mapping[str, Any], paper: Paper, values: _Values) -> int:
    """How many seeds all rows have that a claim's rules need; at least one."""
    lines = (
        values.get((place.table, row.label, place.column))
        for rule in rules(spec)
        for place in _places(rule, paper)
        if place.measured
        for row in place.rows
    )
    return min((len(line) for line in lines if line), default=1)


@dataclass(frozen=True)
class _Case:
    """A predicate and its values."""

    predicate: Expression
    values: Mapping[str, np.ndarray]
    """Rows by seeds."""

    def true_of(self, draw: Sequence[int]) -> bool:
        """Whether it is true of the means over drawn seeds."""
        drawn = {name: _means(array, draw) for name, array in self.values.items()}
        return bool(self.predicate.value(drawn))


def case(rule: str, paper: Paper, values: _Values, seeds: int) -> _Case | None:
    """A rule with the numbers of its places; None where a run is missing."""
    predicate = Expression.parse(_VALUE.sub(r"\1__\2", rule), FUNCTIONS)
    found = {}
    for place in _places(rule, paper):
        numbers = _samples(place, values, seeds)
        if numbers is None:
            return None
        found[place.name] = numbers
    return _Case(predicate, found)


def _reason(cases: Sequence[_Case], seeds: int) -> str:
    """The numbers behind a verdict: of the cases that are not true of the means, or of all."""
    wrong = [case for case in cases if not case.true_of(range(seeds))]
    values = {name: array for case in wrong or cases for name, array in case.values.items()}
    texts = [
        f"{name.replace('__', '.')} {_written(array.mean(axis=1))}"
        for name, array in values.items()
    ]
    if len(cases) > 1 and len(texts) > _SHOWN:
        texts[_SHOWN:] = ["..."]
    if wrong and len(cases) > 1:
        texts.append(f"not true in {len(wrong)} of {len(cases)} cases")
    return "; ".join(texts)


def rules(spec: Mapping[str, Any]) -> list[str]:
    """A claim's rules, each for every combination of the texts that ``each`` gives its $NAMEs."""
    given = [spec["rule"]] if isinstance(spec["rule"], str) else spec["rule"]
    texts = combinations(spec.get("each", {}))
    return list(dict.fromkeys(Template(rule).substitute(text) for rule in given for text in texts))


def rows_of(spec: Mapping[str, Any], paper: Paper) -> set[tuple[str, str]]:
    """The rows whose runs a claim's rules need: table and label."""
    return {
        (place.table, row.label)
        for rule in rules(spec)
        for place in _places(rule, paper)
        if place.measured
        for row in place.rows
    }


def further_seeds(paper: Paper) -> dict[tuple[str, str], tuple[int, ...]]:
    """The seeds that rows have beside the paper's, by table and label.

    ``[[further]]`` names claims; the rows that they need have its seeds, and so has every row of
    another table that is the same experiment.
    """
    specs = {spec["id"]: spec for spec in paper.claims.get("claims", [])}
    tables = {table.id: table for table in paper.tables}
    found: dict[Hashable, list[int]] = {}
    for entry in paper.claims.get("further", []):
        for name in entry["claims"]:
            if name not in specs:
                file = paper.folder / "claims.toml"
                raise AqmlabError(f"{file}: further: found {name}, which is none of its claims")
            for table, label in rows_of(specs[name], paper):
                if table in tables:
                    experiment = _experiment(tables[table], tables[table].row(label))
                    found.setdefault(experiment, []).extend(entry["seeds"])
    return {
        (table.id, row.label): tuple(sorted(set(more)))
        for table in paper.tables
        for row in table.rows
        if (more := found.get(_experiment(table, row)))
    }


def _experiment(table: Table, row: Row) -> Hashable:
    """What makes the runs of a row."""
    return table.scenario, row.overrides


@dataclass(frozen=True)
class _Place:
    """Where a value of a rule stands."""

    name: str
    """What expressions call it."""
    table: str
    rows: tuple[Row, ...]
    column: str
    measured: bool
    """Whether runs give it; else it is the paper's alone, such as a number of flows."""


def _places(rule: str, paper: Paper) -> list[_Place]:
    """The values of a rule, each once."""
    return [place(alias, column, paper) for alias, column in dict.fromkeys(_VALUE.findall(rule))]


def place(alias: str, column: str, paper: Paper) -> _Place:
    """The first table of those that ``[rows]`` names which has such rows and the column."""
    *tables, pattern = _row_names(alias, paper)
    parts: list[Table | Fit] = [*paper.tables, *paper.fits]
    for part in (part for part in parts if part.id in tables):
        found = tuple(row for row in part.rows if fnmatchcase(row.label, pattern))
        measured = column in _compared(part)
        if found and (measured or column in found[0].published):
            return _Place(f"{alias}__{column}", part.id, found, column, measured)
    where = " or ".join(tables)
    raise AqmlabError(f"{paper.name}: table {where} has no column {column} in a row {pattern}")


def _row_names(alias: str, paper: Paper) -> Sequence[str]:
    """Tables and pattern of labels that a name of rows stands for."""
    aliases: Mapping[str, list[str]] = paper.claims["rows"]
    if alias in aliases:
        return aliases[alias]
    for name, (*tables, pattern) in aliases.items():
        first, star, last = name.partition("*")
        if star and alias.startswith(first) and alias.endswith(last):
            inner = alias[len(first) : len(alias) - len(last)]
            return [*tables, Template(pattern).substitute(name=inner)]
    raise AqmlabError(f"{paper.folder / 'claims.toml'}: there is no row {alias}")


def _compared(part: Table | Fit) -> set[str]:
    """The columns for which a table or fit has numbers of ours."""
    columns = part.columns if isinstance(part, Table) else (part.column,)
    return {column.name for column in columns}


def _samples(place: _Place, values: _Values, seeds: int) -> np.ndarray | None:
    """The numbers at a place: an array of rows by seeds, or None where a run is missing.

    Of several rows those count for which the paper prints the column.
    """
    lines = []
    for row in place.rows:
        printed = row.published.get(place.column)
        if not place.measured:
            line: Sequence[float] | None = [float(printed or "nan")] * seeds
        else:
            line = values.get((place.table, row.label, place.column))
        if line:
            lines.append(line[:seeds])
        elif printed != "" or len(place.rows) == 1:
            return None
    return np.array(lines, dtype=float) if lines else None


def _means(array: np.ndarray, draw: Sequence[int]) -> Any:  # noqa: ANN401 - a number or an array
    """Means over drawn seeds: of a single row a number, of several an array."""
    chosen = list(draw)
    result = array[:, chosen[0]] if len(chosen) == 1 else array[:, chosen].mean(axis=1)
    return float(result[0]) if len(result) == 1 else result


def _draws(seeds: int) -> Iterator[Sequence[int]]:
    """Draws of as many seeds as there are, with replacement."""
    if seeds <= 4:
        return product(range(seeds), repeat=seeds)
    return iter(np.random.default_rng(0).integers(0, seeds, (_DRAWS, seeds)).tolist())


def _written(values: np.ndarray) -> str:
    """The means of some rows, or the ends of many."""
    if len(values) > 8:
        return f"{values.min():.4g} to {values.max():.4g}"
    return ", ".join(f"{value:.4g}" for value in values)


def score(verdicts: Sequence[Verdict], decidable: Mapping[str, float]) -> dict[str, int]:
    """How many claims hold, fail and are undecided.

    Counted apart are those that the paper's own tables contradict, and those that its print cannot
    decide: `decidable` has the share of noisy copies of its tables of which a rule is true.
    """
    sound = [found for found in verdicts if not _contradicted(found)]
    counted = [found.outcome for found in sound if not _undecidable(found, decidable)]
    return {
        **{word: counted.count(word) for word in (HOLDS, FAILS, UNDECIDED)},
        "undecidable": len(sound) - len(counted),
        "contradicted": len(verdicts) - len(sound),
    }


def score_by_type(
    paper: Paper, verdicts: Sequence[Verdict], decidable: Mapping[str, float]
) -> dict[str, dict[str, int]]:
    """The score of orderings, equalities, thresholds and crossovers apart.

    Equalities are cheap: a network in which queues did nothing would satisfy most of them.
    """
    types = {spec["id"]: spec["type"] for spec in paper.claims.get("claims", [])}
    return {
        kind: score([found for found in verdicts if types[found.id] == kind], decidable)
        for kind in dict.fromkeys(types.values())
    }


def to_markdown(
    verdicts: Sequence[Verdict],
    decidable: Mapping[str, float],
    marks: Mapping[str, str],
) -> str:
    """The claims with their verdicts, and how many hold.

    `marks` says more of some, by their ids: what they rest on.
    """
    counted = score(verdicts, decidable)
    head = (
        f"{counted[HOLDS]} hold, {counted[FAILS]} fail, {counted[UNDECIDED]} are undecided; "
        f"{counted['contradicted']} more that the paper's own tables contradict are not counted"
    )
    if counted["undecidable"]:
        head += (
            f", nor are {counted['undecidable']} that its print cannot decide: their rules are "
            f"true of less than {100 * DECIDABLE:.0f} % of copies of its tables in which each "
            "number varies as another run of the laboratory would have made it"
        )
    head += "."
    lines = []
    for found in verdicts:
        mark = " (the paper's own tables contradict it)" if _contradicted(found) else ""
        if _undecidable(found, decidable):
            share = 100 * decidable[found.id]
            mark = f" (undecidable: true of {share:.0f} % of noisy copies of the paper's tables)"
        if found.id in marks:
            mark += f" ({marks[found.id]})"
        word = f"**{found.outcome}**" if found.outcome == FAILS else found.outcome
        lines.append([f"{found.id}: {found.statement}{mark}", word, found.measured])
    return f"{head}\n\n" + markdown(
        ["claim", "verdict", "measured, or why undecided"], lines, left=3
    )
