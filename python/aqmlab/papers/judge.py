"""Verdicts: the claims of a paper, judged by its cells.

A rule is judged over the seeds together: they are drawn with replacement (all draws of up to four
seeds, else :data:`_DRAWS` at random), the rule is asked of each draw's means, and the claim *holds*
when it is true of at least 95 % of the draws, *fails* when it is true of at most 5 %, else it is
*undecided*. A claim is judged over the seeds that all of its rows have: some may have more than
others (``[[further]]``). A single seed is a single draw. A rule of several cases is true where it
is true of all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from aqmlab._util.lazy import np
from aqmlab.errors import AqmlabError
from aqmlab.papers import noise
from aqmlab.papers.rule import Case, Values, case, common_seeds, places, rows_of
from aqmlab.results.verdict import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from aqmlab.papers.cells import Cell
    from aqmlab.papers.claim import Claim, Claims
    from aqmlab.papers.paper import Interpretation, Paper

__all__ = [
    "DECIDABLE",
    "Alternative",
    "ClaimScore",
    "Judged",
    "alternatives",
    "concerned",
    "decide",
    "judge",
    "score",
    "score_by_type",
    "with_noise",
]


DECIDABLE = 0.8
"""Least share of noisy copies of the printed tables of which a rule is true if they decide its
claim; see :mod:`aqmlab.papers.noise`."""
_CONFIDENCE = 0.95
"""Share of the draws that decides."""
_DRAWS = 1000
"""Draws of five seeds and more."""
_SHOWN = 8
"""Most numbers that are given for a verdict on many cases."""


@dataclass(frozen=True)
class Judged:
    """A claim and what became of it."""

    claim: Claim
    outcome: str
    """``holds``, ``fails`` or ``undecided``."""
    measured: str
    """The numbers behind it, or why it is undecided."""
    noisy_copies: float | None = None
    """Share of noisy copies of the paper's tables of which its rule is true; None: not known."""
    noisy_runs: float | None = None
    """The same of noisy copies of our numbers."""
    within_noise: bool = False
    """Whether one run of each row decides it, and another run could say otherwise."""

    @property
    def undecidable(self) -> bool:
        """Whether another run of the paper's own laboratory would often have contradicted it."""
        copies = 1.0 if self.noisy_copies is None else self.noisy_copies
        return not self.claim.contradicted and copies < DECIDABLE

    @property
    def counts(self) -> bool:
        """Whether it is among the claims that the paper's tables decide."""
        return not (self.claim.contradicted or self.undecidable)

    def to_json(self) -> dict[str, Any]:
        """For ``scoreboard.json``."""
        return {
            "id": self.claim.id,
            "text": self.claim.text,
            "verdict": self.outcome,
            "because": self.measured,
            "own_tables": self.claim.own_tables,
            "noisy_copies": self.noisy_copies,
            "noisy_runs": self.noisy_runs,
            "counts": self.counts,
        }


def judge(
    paper: Paper,
    cells: Iterable[Cell],
    *,
    tables: Collection[str] | None = None,
    quick: bool = False,
) -> list[Judged]:
    """The claims of a paper whose tables were reproduced, and those that no table decides.

    Reproduced are these ``tables``, though some of their rows may not have been run; None: those
    that have cells.
    """
    values: dict[tuple[str, str, str], Sequence[float] | None] = {
        (cell.table, cell.row, cell.column.name): None if cell.lacks_runs else cell.ours
        for cell in cells
    }
    done = {table for table, _, _ in values} if tables is None else set(tables)
    verdicts = []
    for claim in paper.claims.entries:
        if not claim.rules:
            verdicts.append(Judged(claim, UNDECIDED, claim.undecided))
        elif quick and claim.type not in paper.claims.quick:
            verdicts.append(Judged(claim, UNDECIDED, "quick runs decide orderings only"))
        elif {place.table for rule in claim.rules for place in places(rule, paper)} <= done:
            verdicts.append(decide(claim, paper, values))
    return verdicts


def decide(claim: Claim, paper: Paper, values: Values) -> Judged:
    """Judges a claim that has rules, over the seeds that all of its rows have."""
    try:
        seeds = common_seeds(claim, paper, values)
        found = [case(rule, paper, values, seeds) for rule in claim.rules]
    except AqmlabError as error:
        raise AqmlabError(f"{paper.claims.file}: {claim.id}: rule {error}") from None
    cases = [one for one in found if one is not None]
    if len(cases) < len(found):
        return Judged(claim, UNDECIDED, "a run is missing")
    answers = [all(case.true_of(draw) for case in cases) for draw in _draws(seeds)]
    share = float(np.mean(answers))
    word = HOLDS if share >= _CONFIDENCE else FAILS if share <= 1 - _CONFIDENCE else UNDECIDED
    more = f" ({seeds} seeds)" if seeds > len(paper.seeds) else ""
    doubt = f" (true of {100 * share:.0f} % of the draws of seeds)" if word == UNDECIDED else ""
    return Judged(claim, word, _reason(cases, seeds) + more + doubt)


def _draws(seeds: int) -> Iterator[Sequence[int]]:
    """Draws of as many seeds as there are, with replacement."""
    if seeds <= 4:
        return product(range(seeds), repeat=seeds)
    return iter(np.random.default_rng(0).integers(0, seeds, (_DRAWS, seeds)).tolist())


def _reason(cases: Sequence[Case], seeds: int) -> str:
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


def with_noise(
    paper: Paper, judged: Sequence[Judged], cells: Sequence[Cell], seeds: int, *, further: bool
) -> list[Judged]:
    """The verdicts with what noise on the paper's tables, and on our numbers, makes of them.

    Args:
        paper: The paper.
        judged: Its claims.
        cells: What they were judged by; none: our numbers are those of quick runs.
        seeds: How many every row has: a verdict within noise rests on a single one.
        further: Whether the rows of some claims have further ones.
    """
    copies, runs = noise.shares(paper), noise.shares_of_ours(paper, cells)
    decided = {name for one in paper.claims.further for name in one.claims if further}
    return [
        replace(
            one,
            noisy_copies=copies.get(one.claim.id),
            noisy_runs=runs.get(one.claim.id),
            within_noise=seeds == 1
            and one.claim.id not in decided
            and 1 - _CONFIDENCE < runs.get(one.claim.id, 1.0) < _CONFIDENCE,
        )
        for one in judged
    ]


@dataclass(frozen=True)
class ClaimScore:
    """How many claims hold, fail and are undecided, of those that the paper's tables decide."""

    holds: int = 0
    fails: int = 0
    undecided: int = 0
    undecidable: int = 0
    """Those that the paper's tables cannot decide."""
    contradicted: int = 0
    """Those that the paper's own tables contradict."""

    @property
    def decided(self) -> int:
        """How many hold or fail."""
        return self.holds + self.fails

    def __add__(self, other: ClaimScore) -> ClaimScore:
        mine, theirs = asdict(self), asdict(other)
        return ClaimScore(**{name: mine[name] + theirs[name] for name in mine})


def score(judged: Iterable[Judged]) -> ClaimScore:
    """The score of some claims."""
    found = list(judged)
    counted = [one.outcome for one in found if one.counts]
    return ClaimScore(
        holds=counted.count(HOLDS),
        fails=counted.count(FAILS),
        undecided=counted.count(UNDECIDED),
        undecidable=sum(one.undecidable for one in found),
        contradicted=sum(one.claim.contradicted for one in found),
    )


def score_by_type(claims: Claims, judged: Sequence[Judged]) -> dict[str, ClaimScore]:
    """The score of orderings, equalities, thresholds and crossovers apart.

    Equalities are cheap: a network in which queues did nothing would satisfy most of them.
    """
    return {kind: score(one for one in judged if one.claim.type == kind) for kind in claims.types()}


@dataclass(frozen=True)
class Alternative:
    """What became of the claims in another interpretation of what the paper leaves open."""

    interpretation: Interpretation
    score: ClaimScore
    """Of all claims of the paper, in this interpretation."""
    pairs: tuple[tuple[Judged, Judged], ...]
    """The claims that rest on its rows: judged in the first interpretation, and in this one."""

    def to_json(self) -> dict[str, Any]:
        """For ``scoreboard.json``."""
        return {
            "id": self.interpretation.id,
            "title": self.interpretation.title,
            "why": self.interpretation.why,
            "mark": self.interpretation.mark,
            "claims": asdict(self.score),
            "concerned": [
                {
                    "id": first.claim.id,
                    "text": first.claim.text,
                    "first": first.outcome,
                    "second": second.outcome,
                    "because": second.measured,
                }
                for first, second in self.pairs
            ],
        }


def alternatives(
    paper: Paper, cells: Sequence[Cell], first: Sequence[Judged], tables: Collection[str]
) -> list[Alternative]:
    """The claims judged by the rows of every interpretation all of whose tables were reproduced.

    Args:
        paper: The paper.
        cells: The cells of all tables, those of the interpretations too.
        first: The verdicts of the first interpretation.
        tables: Ids of the tables that were reproduced.
    """
    found = []
    for other in paper.interpretations:
        if not set(other.replaces.values()) <= set(tables):
            continue
        resting = concerned(paper, other)
        again = {
            one.claim.id: one
            for one in judge(paper, _exchanged(cells, paper, other), tables=tables)
            if one.claim.id in resting
        }
        pairs = tuple(
            (one, replace(one, outcome=second.outcome, measured=second.measured))
            for one in first
            if (second := again.get(one.claim.id)) is not None
        )
        changed = {second.claim.id: second for _, second in pairs}
        whole = score(changed.get(one.claim.id, one) for one in first)
        found.append(Alternative(other, whole, pairs))
    return found


def concerned(paper: Paper, other: Interpretation) -> set[str]:
    """Ids of the claims whose rules need a row that an interpretation has otherwise."""
    again = _replaced(paper, other)
    return {
        claim.id for claim in paper.claims.entries if not again.isdisjoint(rows_of(claim, paper))
    }


def _replaced(paper: Paper, other: Interpretation) -> set[tuple[str, str]]:
    """Table and label of the rows that an interpretation has otherwise."""
    return {
        (table, row.label)
        for table, instead in other.replaces.items()
        for row in paper.table(instead).rows
    }


def _exchanged(cells: Sequence[Cell], paper: Paper, other: Interpretation) -> list[Cell]:
    """The cells with those of an interpretation in the places of the first one's.

    A row whose runs the interpretation lacks has no cells.
    """
    replaced = _replaced(paper, other)
    back: Mapping[str, str] = {instead: table for table, instead in other.replaces.items()}
    stay = [cell for cell in cells if (cell.table, cell.row) not in replaced]
    return stay + [replace(cell, table=back[cell.table]) for cell in cells if cell.table in back]
