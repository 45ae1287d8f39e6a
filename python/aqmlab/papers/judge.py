"""Verdicts: the claims of a paper, judged by its cells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from aqmlab._util.markup import markdown
from aqmlab.papers import noise
from aqmlab.papers.counts import Counts
from aqmlab.papers.rule import CONFIDENCE, decide, rows_of, tables_of
from aqmlab.results.verdict import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from aqmlab.papers.claim import Claim, Claims
    from aqmlab.papers.paper import Interpretation, Paper
    from aqmlab.papers.scoreboard import PaperCell

__all__ = [
    "DECIDABLE",
    "Alternative",
    "ClaimScore",
    "Judged",
    "alternatives",
    "concerned",
    "judge",
    "score",
    "score_by_type",
    "to_json",
    "to_markdown",
    "with_noise",
]


DECIDABLE = 0.8
"""Least share of noisy copies of the printed tables of which a rule is true if they decide its
claim; see :mod:`aqmlab.papers.noise`."""


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
    """Share of noisy copies of our numbers of which its rule is true; None: not known."""
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
    cells: Iterable[PaperCell],
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
        if claim.elsewhere:
            verdicts.append(Judged(claim, claim.elsewhere, claim.because))
        elif not claim.rules:
            verdicts.append(Judged(claim, UNDECIDED, claim.undecided))
        elif quick and claim.type not in paper.claims.quick:
            verdicts.append(Judged(claim, UNDECIDED, "quick runs decide orderings only"))
        elif tables_of(claim, paper) <= done:
            verdicts.append(Judged(claim, *decide(claim, paper, values)))
    return verdicts


def with_noise(
    paper: Paper, judged: Sequence[Judged], cells: Sequence[PaperCell], seeds: int, *, further: bool
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
            and 1 - CONFIDENCE < runs.get(one.claim.id, 1.0) < CONFIDENCE,
        )
        for one in judged
    ]


@dataclass(frozen=True)
class ClaimScore(Counts):
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


def to_json(claims: Claims, judged: Sequence[Judged]) -> dict[str, Any]:
    """The claims for ``scoreboard.json``."""
    types = score_by_type(claims, judged)
    return {
        **asdict(score(judged)),
        "types": {kind: asdict(found) for kind, found in types.items()},
        "within_noise": sorted(one.claim.id for one in judged if one.within_noise),
        "verdicts": [one.to_json() for one in judged],
    }


def to_markdown(judged: Sequence[Judged], marks: Mapping[str, str]) -> str:
    """Claims with their verdicts, and how many hold.

    `marks` says more of some, by their ids: what they rest on.
    """
    counted = score(judged)
    head = (
        f"{counted.holds} hold, {counted.fails} fail, {counted.undecided} are undecided; "
        f"{counted.contradicted} more that the paper's own tables contradict are not counted"
    )
    if counted.undecidable:
        head += (
            f", nor are {counted.undecidable} that its print cannot decide: their rules are "
            f"true of less than {100 * DECIDABLE:.0f} % of copies of its tables in which each "
            "number varies as another run of the laboratory would have made it"
        )
    lines = []
    for one in judged:
        mark = " (the paper's own tables contradict it)" if one.claim.contradicted else ""
        if one.undecidable:
            share = 100 * (one.noisy_copies or 0.0)
            mark = f" (undecidable: true of {share:.0f} % of noisy copies of the paper's tables)"
        if one.claim.id in marks:
            mark += f" ({marks[one.claim.id]})"
        word = f"**{one.outcome}**" if one.outcome == FAILS else one.outcome
        lines.append([f"{one.claim.id}: {one.claim.text}{mark}", word, one.measured])
    columns = ["claim", "verdict", "measured, or why undecided"]
    return f"{head}.\n\n{markdown(columns, lines, left=3)}"


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

    def to_markdown(self) -> str:
        """The claims that rest on the rows of an interpretation, with both verdicts."""
        moved = [(one.outcome == HOLDS, two.outcome == HOLDS) for one, two in self.pairs]
        lines = [
            [
                f"{one.claim.id}: {one.claim.text}",
                one.outcome,
                two.outcome if one.outcome == two.outcome else f"**{two.outcome}**",
                two.measured,
            ]
            for one, two in self.pairs
        ]
        return (
            f"{self.interpretation.why}\n\n"
            f"{len(moved)} claims rest on these rows; {moved.count((False, True))} hold in this "
            f"reading only, {moved.count((True, False))} in the first only. In this reading "
            f"{self.score.holds} of all claims hold and {self.score.fails} fail.\n\n"
            + markdown(["claim", "first reading", "this reading", "measured in it"], lines, left=4)
        )


def alternatives(
    paper: Paper, cells: Sequence[PaperCell], first: Sequence[Judged], tables: Collection[str]
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
        there = replace(paper, claims=paper.claims.without(other.without))
        again = {
            one.claim.id: one
            for one in judge(there, _exchanged(cells, paper, other), tables=tables)
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
    """Ids of the claims whose rules need a row that an interpretation has otherwise.

    Those that need a row which it leaves apart are none of them.
    """
    again = _replaced(paper, other)
    found = set()
    for claim in paper.claims.entries:
        rows = rows_of(claim, paper)
        names = {name for place in rows for name in place}
        apart = any(fnmatchcase(name, one) for name in names for one in other.apart)
        if not apart and not again.isdisjoint(rows):
            found.add(claim.id)
    return found


def _replaced(paper: Paper, other: Interpretation) -> set[tuple[str, str]]:
    """Table and label of the rows that an interpretation has otherwise."""
    return {
        (table, row.label)
        for table, instead in other.replaces.items()
        for row in paper.table(instead).rows
    }


def _exchanged(cells: Sequence[PaperCell], paper: Paper, other: Interpretation) -> list[PaperCell]:
    """The cells with those of an interpretation in the places of the first one's.

    A row whose runs the interpretation lacks has no cells.
    """
    replaced = _replaced(paper, other)
    back: Mapping[str, str] = {instead: table for table, instead in other.replaces.items()}
    stay = [cell for cell in cells if (cell.table, cell.row) not in replaced]
    return stay + [replace(cell, table=back[cell.table]) for cell in cells if cell.table in back]
