"""What the reproduction of a paper found, as its scoreboard and as its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from aqmlab._util.markup import markdown
from aqmlab.papers import causes, judge
from aqmlab.papers.counts import Counts
from aqmlab.papers.measured import FILE

if TYPE_CHECKING:
    from aqmlab.papers.judge import Alternative, ClaimScore, Judged
    from aqmlab.papers.paper import Paper
    from aqmlab.papers.scoreboard import Score, Scoreboard

__all__ = [
    "FurtherRuns",
    "Reproduction",
    "Reused",
    "Rows",
    "ScoreLine",
]


@dataclass(frozen=True)
class FurtherRuns:
    """The seeds that some rows have beside the others'."""

    seeds: Sequence[int]
    runs: int
    """How many runs these are."""


@dataclass(frozen=True)
class Rows(Counts):
    """How many rows of the tables have all their runs."""

    run: int
    total: int


@dataclass(frozen=True)
class Reused:
    """What numbers of a paper's file stand in for."""

    runs: int
    """How many runs."""
    figures_lacking: Sequence[str]
    """Ids of the figures without some of their curves."""


class ScoreLine(NamedTuple):
    """A line of the table of scores."""

    name: str
    cells: Score
    title: str
    claims: ClaimScore | None = None
    """None: they are not counted by table."""


@dataclass(frozen=True)
class Reproduction:
    """A paper that was repeated."""

    paper: Paper
    engine: str
    seeds: Sequence[int]
    further: FurtherRuns
    quick: str
    """What keeps quick runs from being scored; empty: they are no quick runs."""
    length: str
    """``quick``, ``usual`` or ``published``."""
    rows: Rows
    board: Scoreboard
    judged: Sequence[Judged]
    alternatives: Sequence[Alternative]
    failed: Mapping[str, str]
    """Why runs failed, by name."""
    runs: int
    cpu_s: float
    reused: Reused | None = None
    """None: nothing was to be taken from the paper's file."""
    figures: Mapping[str, str] = field(default_factory=dict)
    """Where figures are, by their ids."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Where the other files are, by what they are."""

    @property
    def claims(self) -> ClaimScore:
        """The score of the claims."""
        return judge.score(self.judged)

    @property
    def unfinished(self) -> bool:
        """Whether runs of some rows are missing; runs that failed are in the report."""
        return self.rows.run < self.rows.total and not self.failed

    def lines(self) -> list[ScoreLine]:
        """The score of each table, and of all."""
        board = self.board
        found = [
            ScoreLine(name, board.count(board.of_table(name)), title)
            for name, title in board.titles.items()
        ]
        return [*found, ScoreLine("all", board.count(), self.paper.title)]

    def to_json(self) -> dict[str, Any]:
        """What ``scoreboard.json`` holds, and where the files are."""
        return {
            "paper": self.paper.name,
            "title": self.paper.title,
            "engine": self.engine,
            "seeds": self.seeds,
            "further": asdict(self.further),
            **({"quick": self.quick} if self.quick else {}),
            "length": self.length,
            "rows": asdict(self.rows),
            **self.board.to_json(),
            "claims": judge.to_json(self.paper.claims, self.judged),
            "causes": dict(causes.in_states(self.paper, self.judged)),
            "readings": [one.to_json() for one in self.alternatives],
            "failed": dict(self.failed),
            "runs": self.runs,
            "cpu_s": self.cpu_s,
            **({"measured": asdict(self.reused)} if self.reused else {}),
            "figures": dict(self.figures),
            **({"files": dict(self.files)} if self.files else {}),
        }

    def to_markdown(self) -> str:
        """The report: a page of its own."""
        parts = [f"# {self.paper.title}", self._head(), self.board.to_markdown().rstrip()]
        if self.judged:
            parts.append(f"## Claims\n\n{judge.to_markdown(self.judged, self._marks())}")
        if self.board.scored and causes.by_cause(self.paper, self.judged):
            why = causes.to_markdown(self.paper, self.judged, self.board.cells)
            parts.append(f"## Why claims fail\n\n{why}")
        parts += [
            f"## Claims in a second reading: {one.interpretation.title}\n\n{one.to_markdown()}"
            for one in self.alternatives
        ]
        if self.figures:
            drawn = [
                [figure.id, figure.title, f"[{figure.file_name}](figures/{figure.file_name})"]
                for figure in self.paper.figures
                if figure.id in self.figures
            ]
            parts.append("## Figures\n\n" + markdown(["figure", "what", "file"], drawn, 3))
        if self.failed:
            listed = "\n".join(f"- {name}: {reason}" for name, reason in self.failed.items())
            parts.append(f"## Runs that failed\n\n{listed}")
        return "\n\n".join(parts) + "\n"

    def _head(self) -> str:
        """How it was made, in a paragraph."""
        words = [f"Ours / published; mean over seeds {', '.join(map(str, self.seeds))}."]
        if self.further.runs:
            seeds = self.further.seeds
            words.append(
                f"Rows of claims whose verdict lies within noise have seed{'s'[: len(seeds) > 1]} "
                f"{', '.join(map(str, seeds))} as well, in {self.further.runs} further runs."
            )
        if self.board.scored:
            words.append("✗ marks a cell outside its tolerance.")
            if self.board.ranked:
                words.append(
                    "In brackets stands the share of ours that took at most the published time; "
                    "a dagger marks a percentile that is within by this rank alone."
                )
        else:
            words.append(f"Quick runs: {self.quick}, so nothing is scored.")
        words.append(f"Engine {self.engine}, {self.runs} runs.")
        if self.reused:
            words.append(f"{self.reused.runs} of them were taken from the paper's `{FILE}`.")
            if lacking := self.reused.figures_lacking:
                words.append(f"It draws no curves: they are missing in {len(lacking)} figures.")
        if self.rows.run < self.rows.total:
            words.append(
                f"{self.rows.run} of {self.rows.total} rows have been run; the others are missing."
            )
        return " ".join(words)

    def _marks(self) -> dict[str, str]:
        """What verdicts rest on, by the claims' ids."""
        noise = "within the noise of one run"
        marks = {one.claim.id: [noise] for one in self.judged if one.within_noise}
        for other in self.alternatives:
            for first, _ in other.pairs if other.interpretation.mark else ():
                marks.setdefault(first.claim.id, []).append(other.interpretation.mark)
        return {name: "; ".join(words) for name, words in marks.items()}
