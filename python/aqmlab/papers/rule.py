"""Rules of claims: predicates over the cells of a paper's tables.

``rows.column`` in a rule is the numbers of some rows; ``claims.toml`` says which rows a name stands
for. Rows keep their seeds together: the same seed means the same users in all of them.

A rule is judged over the seeds together: they are drawn with replacement (all draws of up to four
seeds, else :data:`_DRAWS` at random), the rule is asked of each draw's means, and the claim *holds*
when it is true of at least 95 % of the draws, *fails* when it is true of at most 5 %, else it is
*undecided*. A claim is judged over the seeds that all of its rows have: some may have more than
others (``[[further]]``). A single seed is a single draw. A rule of several cases is true where it
is true of all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from aqmlab._util.expressions import Expression
from aqmlab._util.lazy import np
from aqmlab.errors import AqmlabError
from aqmlab.results.verdict import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from aqmlab.papers.claim import Claim
    from aqmlab.papers.paper import Fit, Paper, PaperRow, Table

__all__ = [
    "CONFIDENCE",
    "FUNCTIONS",
    "Decision",
    "PredicateCase",
    "Values",
    "case",
    "decide",
    "place",
    "rows_of",
    "tables_of",
]


Values: TypeAlias = "Mapping[tuple[str, str, str], Sequence[float] | None]"
"""Ours over the seeds, by table, row and column; None: a run is missing."""

_VALUE = re.compile(r"\b([A-Za-z_]\w*)\.([A-Za-z_]\w*)")
"""``rows.column`` in a predicate."""
_ROUNDING = 1e-9
"""What numbers may differ by and still be the same."""
CONFIDENCE = 0.95
"""Share of the draws that decides."""
_DRAWS = 1000
"""Draws of five seeds and more."""
_SHOWN = 8
"""Most numbers that are given for a verdict on many cases."""


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


@dataclass(frozen=True)
class _Place:
    """Where a value of a rule stands."""

    name: str
    """What expressions call it."""
    table: str
    rows: tuple[PaperRow, ...]
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
    aliases = paper.claims.rows
    if alias in aliases:
        return aliases[alias]
    for name, (*tables, pattern) in aliases.items():
        first, star, last = name.partition("*")
        if star and alias.startswith(first) and alias.endswith(last):
            inner = alias[len(first) : len(alias) - len(last)]
            return [*tables, Template(pattern).substitute(name=inner)]
    raise AqmlabError(f"{paper.claims.file}: there is no row {alias}")


def _compared(part: Table | Fit) -> set[str]:
    """The columns for which a table or fit has numbers of ours."""
    return {column.name for column in part.columns}


def tables_of(claim: Claim, paper: Paper) -> set[str]:
    """Ids of the tables and fits that a claim's rules need."""
    return {place.table for rule in claim.rules for place in _places(rule, paper)}


def rows_of(claim: Claim, paper: Paper) -> set[tuple[str, str]]:
    """The rows whose runs a claim's rules need: table and label."""
    return {
        (place.table, row.label)
        for rule in claim.rules
        for place in _places(rule, paper)
        if place.measured
        for row in place.rows
    }


@dataclass(frozen=True)
class PredicateCase:
    """A predicate and its values."""

    predicate: Expression
    values: Mapping[str, np.ndarray]
    """Rows by seeds."""

    def true_of(self, draw: Sequence[int]) -> bool:
        """Whether it is true of the means over drawn seeds."""
        drawn = {name: _means(array, draw) for name, array in self.values.items()}
        try:
            return bool(self.predicate.value(drawn))
        except ValueError:  # an array has no truth
            text = self.predicate.text.replace("__", ".")
            raise AqmlabError(
                f'"{text}" answers row by row; expected one answer, as of min, max or within'
            ) from None


def case(rule: str, paper: Paper, values: Values, seeds: int) -> PredicateCase | None:
    """A rule with the numbers of its places; None where a run is missing."""
    predicate = Expression.parse(_VALUE.sub(r"\1__\2", rule), FUNCTIONS)
    found = {}
    for place in _places(rule, paper):
        numbers = _samples(place, values, seeds)
        if numbers is None:
            return None
        found[place.name] = numbers
    return PredicateCase(predicate, found)


def _samples(place: _Place, values: Values, seeds: int) -> np.ndarray | None:
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


class Decision(NamedTuple):
    """What the rules of a claim come to."""

    outcome: str
    """``holds``, ``fails`` or ``undecided``."""
    measured: str
    """The numbers behind it, or why it is undecided."""


def decide(claim: Claim, paper: Paper, values: Values) -> Decision:
    """What the rules of a claim come to, over the seeds that all of its rows have."""
    try:
        seeds = _common_seeds(claim, paper, values)
        found = [case(rule, paper, values, seeds) for rule in claim.rules]
        cases = [one for one in found if one is not None]
        if len(cases) < len(found):
            return Decision(UNDECIDED, "a run is missing")
        answers = [all(case.true_of(draw) for case in cases) for draw in _draws(seeds)]
    except AqmlabError as error:
        raise AqmlabError(f"{paper.claims.file}: {claim.id}: rule {error}") from None
    share = float(np.mean(answers))
    word = HOLDS if share >= CONFIDENCE else FAILS if share <= 1 - CONFIDENCE else UNDECIDED
    more = f" ({seeds} seeds)" if seeds > len(paper.seeds) else ""
    doubt = f" (true of {100 * share:.0f} % of the draws of seeds)" if word == UNDECIDED else ""
    return Decision(word, _reason(cases, seeds) + more + doubt)


def _draws(seeds: int) -> Iterator[Sequence[int]]:
    """Draws of as many seeds as there are, with replacement."""
    if seeds <= 4:
        return product(range(seeds), repeat=seeds)
    return iter(np.random.default_rng(0).integers(0, seeds, (_DRAWS, seeds)).tolist())


def _reason(cases: Sequence[PredicateCase], seeds: int) -> str:
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


def _written(values: np.ndarray) -> str:
    """The means of some rows, or the ends of many."""
    if len(values) > 8:
        return f"{values.min():.4g} to {values.max():.4g}"
    return ", ".join(f"{value:.4g}" for value in values)


def _common_seeds(claim: Claim, paper: Paper, values: Values) -> int:
    """How many seeds all rows have that a claim's rules need; at least one."""
    lines = (
        values.get((place.table, row.label, place.column))
        for rule in claim.rules
        for place in _places(rule, paper)
        if place.measured
        for row in place.rows
    )
    return min((len(line) for line in lines if line), default=1)
