"""Claims: what a paper says in words, as predicates over the cells of its tables.

``claims.toml`` explains itself. A predicate is judged over the seeds together: they are drawn
with replacement (all draws of up to four seeds, else :data:`DRAWS` at random), the predicate is
asked of each draw's means, and it *holds* when it is true of at least 95 % of the draws, *fails*
when it is true of at most 5 %, else it is *undecided*. Rows keep their seeds together: the same
seed means the same users in all of them. A single seed is a single draw.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from aqmlab.errors import AqmlabError
from aqmlab.expressions import Expression
from aqmlab.papers import Paper
from aqmlab.scoreboard import Cell, markdown

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
CONTRADICTED = ("partly", "disagrees")
"""What the paper's own tables say of claims that are not counted."""
CONFIDENCE = 0.95
"""Share of the draws that decides."""
DRAWS = 1000
"""Draws of five seeds and more."""
VALUE = re.compile(r"\b([A-Za-z_]\w*)\.([A-Za-z_]\w*)")
"""``rows.column`` in a predicate."""


def falling(values: np.ndarray) -> bool:
    """Whether each value is below the one before."""
    return bool(np.all(np.diff(values) < 0))


def at_max(x: np.ndarray, y: np.ndarray) -> float:
    """The x at which y is largest."""
    return float(x[np.argmax(y)])


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": lambda *values: min(float(np.min(value)) for value in values),
    "max": lambda *values: max(float(np.max(value)) for value in values),
    "mean": lambda values: float(np.mean(values)),
    "spread": lambda values: float(np.max(values) - np.min(values)),
    "abs": np.abs,
    "first": lambda values: float(values[0]),
    "last": lambda values: float(values[-1]),
    "falling": falling,
    "at_max": at_max,
    "within": lambda low, high, *values: all(
        bool(np.all((low <= value) & (value <= high))) for value in values
    ),
}
"""What predicates may use beside arithmetic and comparisons; arithmetic goes row by row."""


@dataclass(frozen=True)
class Verdict:
    """What became of a claim."""

    id: str
    text: str
    verdict: str
    """``holds``, ``fails`` or ``undecided``."""
    because: str
    """The numbers behind it, or why there is no verdict."""
    own_tables: str
    """``agrees``, ``partly``, ``disagrees``, ``not_tabulated``: what the paper's tables say."""

    @property
    def contradicted(self) -> bool:
        """Whether the paper's own tables contradict the claim, wholly or in part."""
        return self.own_tables in CONTRADICTED

    def to_json(self) -> dict[str, Any]:
        """The verdict as a JSON object."""
        return {
            "id": self.id,
            "text": self.text,
            "verdict": self.verdict,
            "because": self.because,
            "own_tables": self.own_tables,
        }


Values = Mapping[tuple[str, str, str], Sequence[float] | None]
"""Ours over the seeds, by table, row and column; None: a run is missing."""


def judge(paper: Paper, cells: Sequence[Cell], *, quick: bool = False) -> list[Verdict]:
    """The claims of a paper whose tables were reproduced, and those that no table decides."""
    seeds = max((len(cell.ours) for cell in cells), default=0)
    values: Values = {
        (cell.table, cell.row, cell.column.name): cell.ours if len(cell.ours) == seeds else None
        for cell in cells
    }
    done = {cell.table for cell in cells}
    verdicts = []
    for spec in paper.claims.get("claims", []):
        if "rule" not in spec:
            verdicts.append(verdict(spec, UNDECIDED, spec["undecided"]))
        elif quick and spec["type"] not in paper.claims["quick"]:
            verdicts.append(verdict(spec, UNDECIDED, "quick runs decide orderings only"))
        elif all(place[0] in done for place in places(spec["rule"], paper).values()):
            verdicts.append(decide(spec, paper, values, seeds))
    return verdicts


def verdict(spec: Mapping[str, Any], word: str, because: str) -> Verdict:
    """A claim's verdict."""
    return Verdict(spec["id"], spec["text"], word, because, spec["own_tables"])


def decide(spec: Mapping[str, Any], paper: Paper, values: Values, seeds: int) -> Verdict:
    """Judges a claim that has a rule."""
    found = {
        name: samples(paper, place, column, values, seeds)
        for name, (*place, column) in places(spec["rule"], paper).items()
    }
    present = {name: array for name, array in found.items() if array is not None}
    if len(present) < len(found):
        return verdict(spec, UNDECIDED, "a run is missing")
    try:
        predicate = Expression.parse(VALUE.sub(r"\1__\2", spec["rule"]), FUNCTIONS)
    except AqmlabError as error:
        raise AqmlabError(f"{paper.folder / 'claims.toml'}: {spec['id']}: rule {error}") from None
    answers = [
        bool(predicate.value({name: means(array, draw) for name, array in present.items()}))
        for draw in draws(seeds)
    ]
    share = float(np.mean(answers))
    word = HOLDS if share >= CONFIDENCE else FAILS if share <= 1 - CONFIDENCE else UNDECIDED
    numbers = "; ".join(
        f"{name.replace('__', '.')} {written(array.mean(axis=1))}"
        for name, array in present.items()
    )
    doubt = f" (true of {100 * share:.0f} % of the draws of seeds)" if word == UNDECIDED else ""
    return verdict(spec, word, numbers + doubt)


def places(rule: str, paper: Paper) -> dict[str, tuple[str, str, str]]:
    """Table, pattern of rows and column of every value in a rule, by the value's name."""
    aliases = paper.claims["rows"]
    found = {}
    for alias, column in VALUE.findall(rule):
        if alias not in aliases:
            raise AqmlabError(f'{paper.folder / "claims.toml"}: "{rule}": there is no row {alias}')
        table, pattern = aliases[alias]
        found[f"{alias}__{column}"] = (table, pattern, column)
    return found


def samples(
    paper: Paper, place: Sequence[str], column: str, values: Values, seeds: int
) -> np.ndarray | None:
    """A column of some rows: an array of rows by seeds, or None where a run is missing.

    What varies from row to row, such as a number of flows, is a column too.
    """
    table, pattern = place
    measured = {part.id: {entry.name for entry in part.columns} for part in paper.tables}
    parts = {part.id: part.rows for part in paper.tables}
    parts |= {fit.id: fit.rows for fit in paper.fits}
    rows = [row for row in parts[table] if fnmatchcase(row.label, pattern)]
    if not rows:
        raise AqmlabError(f"{paper.name}: table {table} has no row {pattern}")
    lines = []
    for row in rows:
        if (table, row.label, column) in values:
            line = values[table, row.label, column]
        elif column in measured.get(table, ()):  # quick runs have not every row
            return None
        elif row.published.get(column):
            line = [float(row.published[column])] * seeds
        else:
            raise AqmlabError(f"{paper.name}: table {table} has no column {column} ({row.label})")
        if not line:
            return None
        lines.append(line)
    return np.array(lines, dtype=float)


def means(array: np.ndarray, draw: Sequence[int]) -> Any:  # noqa: ANN401 - a number or an array
    """Means over drawn seeds: of a single row a number, of several an array."""
    result = array[:, list(draw)].mean(axis=1)
    return float(result[0]) if len(result) == 1 else result


def draws(seeds: int) -> Iterator[Sequence[int]]:
    """Draws of as many seeds as there are, with replacement."""
    if seeds <= 4:
        return itertools.product(range(seeds), repeat=seeds)
    return iter(np.random.default_rng(0).integers(0, seeds, (DRAWS, seeds)).tolist())


def written(values: np.ndarray) -> str:
    """The means of some rows, or the ends of many."""
    if len(values) > 8:
        return f"{values.min():.4g} to {values.max():.4g}"
    return ", ".join(f"{value:.4g}" for value in values)


def score(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many claims hold, fail and are undecided; contradicted ones are counted apart."""
    sound = [found.verdict for found in verdicts if not found.contradicted]
    return {
        **{word: sound.count(word) for word in (HOLDS, FAILS, UNDECIDED)},
        "contradicted": len(verdicts) - len(sound),
    }


def to_markdown(verdicts: Sequence[Verdict]) -> str:
    """The claims with their verdicts, and how many hold."""
    counted = score(verdicts)
    head = (
        f"{counted[HOLDS]} hold, {counted[FAILS]} fail, {counted[UNDECIDED]} are undecided; "
        f"{counted['contradicted']} more that the paper's own tables contradict are not counted."
    )
    lines = []
    for found in verdicts:
        mark = " (the paper's own tables contradict it)" if found.contradicted else ""
        word = f"**{found.verdict}**" if found.verdict == FAILS else found.verdict
        lines.append([f"{found.id}: {found.text}{mark}", word, found.because])
    return f"{head}\n\n" + markdown(["claim", "verdict", "measured, or why undecided"], lines)
