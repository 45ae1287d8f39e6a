"""Every paper in turn, and one scoreboard of all of them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from aqmlab._util.files import write_text
from aqmlab._util.markup import markdown
from aqmlab._util.words import ranged
from aqmlab.papers import causes
from aqmlab.papers.claim import STATES
from aqmlab.papers.counts import Counts
from aqmlab.papers.judge import Alternative, ClaimScore, Judged, score_by_type
from aqmlab.papers.measured import FILE
from aqmlab.papers.names import names
from aqmlab.papers.reproduce import reproduce
from aqmlab.papers.reproduction import Reproduction, Reused, Rows, ScoreLine
from aqmlab.papers.scoreboard import Power, Score
from aqmlab.results.verdict import FAILS, HOLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Fidelity", "intact", "reproduce_all"]


_Sum = TypeVar("_Sum", bound=Counts)

_HEAD = """# Fidelity

How close aqmlab comes to what five studies published: every cell that a paper prints, and every
claim. [What could not be reproduced](not-reproduced/index.md) says which results fail, and why.
[Reproduce](reproduce.md) says how cells and claims are judged. `aqmlab reproduce all` writes this
page, and [cells by table, claims by type](../records/fidelity-claims.md)."""
_CLAIMS_HEAD = """# Cells by table, claims by type, and second readings

[Fidelity](../docs/fidelity.md) counts the claims. `aqmlab reproduce all` writes this page."""
_LENGTHS = {"published": "as published", "usual": "partly shorter", "quick": "quick"}
"""How long a paper's runs are."""
_SEAL = "<!-- Generated: what is changed by hand does not fit its hash, {} -->"
"""The last line of a generated page."""


def reproduce_all(out: Path | None = None, **options: Any) -> Fidelity:  # noqa: ANN401 - passed on
    """Repeats every known paper, one after the other.

    Args:
        out: Folder of the papers' own folders, of ``scoreboard.json`` and of ``pages``; None:
            ``out/reproduce``. Finished runs found there are not run again.
        options: What :func:`aqmlab.papers.reproduce.reproduce` takes beside paper and tables.
    """
    folder = out or Path("out") / "reproduce"
    return _written(
        Fidelity({name: reproduce(name, out=folder / name, **options) for name in names()}), folder
    )


@dataclass(frozen=True)
class Fidelity:
    """All papers, repeated."""

    papers: Mapping[str, Reproduction]
    files: Mapping[str, str] = field(default_factory=dict)
    """Where the files of all are, by what they are."""

    def _sum(self, of: Callable[[Reproduction], _Sum]) -> _Sum:
        """The sum of something over the papers."""
        return reduce(add, map(of, self.papers.values()))

    @property
    def scored(self) -> bool:
        """Whether all are; quick runs are not."""
        return all(one.board.scored for one in self.papers.values())

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return next(one.engine for one in self.papers.values())

    @property
    def cells(self) -> Score:
        """The score of all cells."""
        return self._sum(lambda one: one.board.count())

    @property
    def power(self) -> Power:
        """What the score can tell."""
        return self._sum(lambda one: one.board.power())

    @property
    def claims(self) -> ClaimScore:
        """The score of all claims."""
        return self._sum(lambda one: one.claims)

    @property
    def rows(self) -> Rows:
        """How many rows have their runs."""
        return self._sum(lambda one: one.rows)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return sum(one.runs for one in self.papers.values())

    @property
    def cpu_s(self) -> float:
        """Their CPU time."""
        return sum(one.cpu_s for one in self.papers.values())

    @property
    def failed(self) -> dict[str, str]:
        """Why runs failed, by paper and name."""
        return {
            f"{name}/{run}": reason
            for name, one in self.papers.items()
            for run, reason in one.failed.items()
        }

    @property
    def figures(self) -> dict[str, str]:
        """Where figures are, by paper and id."""
        return {
            f"{name} {figure}": file
            for name, one in self.papers.items()
            for figure, file in one.figures.items()
        }

    @property
    def reused(self) -> Reused | None:
        """What numbers of the papers' files stand in for; None: nothing was to be taken."""
        found = {name: one.reused for name, one in self.papers.items() if one.reused is not None}
        if not found:
            return None
        lacking = [f"{name} {figure}" for name in found for figure in found[name].figures_lacking]
        return Reused(sum(one.runs for one in found.values()), lacking)

    def lines(self) -> list[ScoreLine]:
        """The score of each paper, and of all."""
        found = [
            ScoreLine(name, one.board.count(), one.paper.title, one.claims)
            for name, one in self.papers.items()
        ]
        return [*found, ScoreLine("all", self.cells, "", self.claims)]

    def to_json(self) -> dict[str, Any]:
        """What ``scoreboard.json`` holds: the sums over the papers, and each of them."""
        reused = self.reused
        return {
            "engine": self.engine,
            "scored": self.scored,
            "cells": asdict(self.cells),
            "power": asdict(self.power),
            "claims": asdict(self.claims),
            "rows": asdict(self.rows),
            "runs": self.runs,
            "failed": self.failed,
            "cpu_s": self.cpu_s,
            "figures": self.figures,
            "papers": {name: one.to_json() for name, one in self.papers.items()},
            **({"measured": asdict(reused)} if reused else {}),
            **({"files": dict(self.files)} if self.files else {}),
        }

    def to_markdown(self) -> str:
        """The scoreboard of all papers as a page of ``docs``."""
        made = f"Engine {self.engine}, {self.runs} runs, {self.cpu_s / 3600:.1f} hours of CPU time."
        if reused := self.reused:
            made += f" {reused.runs} of the runs were taken from the `{FILE}` of the papers."
        if not self.scored:
            made += " Quick runs: cells are not scored."
        parts = [
            _HEAD,
            made,
            f"## Papers\n\n{_papers_table(self)}",
            f"## What the cells can tell\n\n{_power_table(self)}",
            f"## Why claims fail\n\n{_states_table(self.papers)}",
        ]
        return "\n\n".join(parts) + "\n"

    def claims_to_markdown(self) -> str:
        """Cells by table, claims by type and those that fail, as a page of ``records``."""
        parts = [
            _CLAIMS_HEAD,
            f"## Cells\n\n{_cells_table(self)}",
            f"## Claims\n\n{_types_table(self.papers)}\n\n{_claims_table(self.papers)}",
            f"## Why claims fail\n\n{_causes_table(self.papers)}",
            f"## Second readings\n\n{_alternatives_table(self.papers)}",
        ]
        return "\n\n".join(parts) + "\n"


def _written(whole: Fidelity, folder: Path) -> Fidelity:
    """Writes the scoreboard, its page for ``docs``, and what that links for ``records``.

    A paper some of whose rows have not been run gets none, so that an earlier page of it stays.
    """
    pages = folder / "pages"
    for name, one in whole.papers.items():
        if not one.unfinished:
            # The figures stay in the paper's own folder: links to them would lead nowhere.
            page = replace(one, figures={}).to_markdown()
            write_text(pages / "records" / f"fidelity-{name}.md", _sealed(page))
    first = pages / "docs" / "fidelity.md"
    write_text(first, _sealed(whole.to_markdown()))
    write_text(pages / "records" / "fidelity-claims.md", _sealed(whole.claims_to_markdown()))
    board = folder / "scoreboard.json"
    write_text(board, json.dumps(whole.to_json(), indent=2, ensure_ascii=False) + "\n")
    return replace(whole, files={"scoreboard": str(board), "report": str(first)})


def _sealed(text: str) -> str:
    """A page that shows whether somebody has changed it since; see :func:`intact`."""
    return f"{text}\n{_seal(text)}\n"


def _seal(text: str) -> str:
    """The line that a page of this text ends with."""
    return _SEAL.format(hashlib.sha256(text.encode()).hexdigest()[:16])


def intact(page: str) -> bool:
    """Whether nobody has changed a generated page."""
    text, _, last = page.removesuffix("\n").rpartition("\n")
    return last == _seal(text)


def _papers_table(whole: Fidelity) -> str:
    """The state of each paper in a line."""
    lines = [
        [
            f"[{name}](../records/fidelity-{name}.md)",
            *_state(one.rows, one.board.count(), one.claims),
            _seeds(one),
            _LENGTHS[one.length],
        ]
        for name, one in whole.papers.items()
    ]
    lines.append(["**all**", *_state(whole.rows, whole.cells, whole.claims), "", ""])
    head = [
        *("paper", "rows run", "cells within"),
        *("claims hold", "fail", "undecided", "undecidable", "contradicted"),
        *("seeds", "length of runs"),
    ]
    titles = "\n".join(f"- {name}: {one.paper.title}" for name, one in whole.papers.items())
    missing = [name for name, one in whole.papers.items() if one.unfinished]
    note = (
        f"**Not all rows of {' and '.join(missing)} have been run**: what stands here is of those "
        "that have, and the report behind the link is an earlier one.\n\n"
        if missing
        else ""
    )
    by_value = _part(whole.cells.by_value or 0, whole.cells.total) if whole.scored else "-"
    return (
        f"{titles}\n\n{markdown(head, lines)}\n\n{note}"
        "A percentile is within by value or, where the distribution is flat, by rank. "
        f"By value alone, within are {by_value} cells.\n\n"
        "Rows that have not been run have no cells, and claims that need them are undecided; the "
        "share of the claims that hold is that of the decided. "
        "Undecidable: another run of the paper's own laboratory would often have said otherwise. "
        "Contradicted: the paper's own tables say otherwise. These claims do not count."
    )


def _state(rows: Rows, cells: Score, claims: ClaimScore) -> list[str]:
    """Rows run, cells within and claims of a paper, or of all."""
    counts = (claims.fails, claims.undecided, claims.undecidable, claims.contradicted)
    return [
        _part(rows.run, rows.total),
        "-" if cells.within is None else _part(cells.within, cells.total),
        f"{claims.holds}{_share(claims.holds, claims.decided)}",
        *map(str, counts),
    ]


def _part(some: int, whole: int) -> str:
    """Some of a whole, with their share; a dash of nothing."""
    return f"{some} of {whole}{_share(some, whole)}" if whole else "-"


def _share(some: int, whole: int) -> str:
    """A share in brackets; nothing of nothing."""
    return f" ({100 * some / whole:.0f} %)" if whole else ""


def _cells_table(whole: Fidelity) -> str:
    """How many cells are within tolerance, by paper and table."""
    lines = []
    for name, one in whole.papers.items():
        *tables, every = one.lines()
        counted = [line for line in tables if line.cells.total]
        lines += [[name, line.title, *line.cells.words()] for line in counted]
        if len(counted) > 1:
            lines.append([name, "**all**", *every.cells.words()])
    lines.append(["**all**", "", *whole.cells.words()])
    head = ["paper", "table", "cells within", "share", "by value alone"]
    return markdown(head, lines, left=2) + (
        "\n\nA percentile is within by value or, where the distribution is flat, by rank. "
        "Papers that print plots only have no cells."
    )


def _power_table(whole: Fidelity) -> str:
    """What the cells can tell, by paper."""
    every = [(name, one.board.power(), one.board.count()) for name, one in whole.papers.items()]
    lines = [
        [name, *power.words(cells.total), _part(power.unfitted_within or 0, power.unfitted)]
        for name, power, cells in [*every, ("**all**", whole.power, whole.cells)]
        if power.informative and cells.within is not None
    ]
    if not lines:
        return "No paper that was scored has a row without active queue management beside others."
    head = [
        *("paper", "informative cells", "within by value", "on the right side"),
        *("within if every row were the reference's", "within without fitted settings"),
    ]
    return markdown(head, lines) + (
        "\n\nA cell is informative where the published number is not within tolerance of that of "
        "drop-tail with 240 packets at the same load, so that a network in which queue management "
        "did nothing would miss it. The right side is that of our drop-tail on which the published "
        "number lies of theirs."
    )


def _types_table(papers: Mapping[str, Reproduction]) -> str:
    """The claims by what they assert: equalities are cheap, orderings are not."""
    lines = [
        [name, kind, _part(found.holds, found.decided), str(found.undecided)]
        for name, one in papers.items()
        for kind, found in score_by_type(one.paper.claims, one.judged).items()
    ]
    return markdown(["paper", "type", "hold, of the decided", "undecided"], lines, left=2)


def _claims_table(papers: Mapping[str, Reproduction]) -> str:
    """The claims that fail, with measured values; those that the tables cannot decide apart."""
    failed = {
        counts: [
            [f"{name} {found.claim.id}", _text(found, one.alternatives), found.measured]
            for name, one in papers.items()
            for found in one.judged
            if found.outcome == FAILS and not found.claim.contradicted and found.counts is counts
        ]
        for counts in (True, False)
    }
    head = ["claim", "text", "measured"]
    parts = ["None of the decided claims fails."]
    if failed[True]:
        parts = ["Those that fail:\n\n" + markdown(head, failed[True], left=3)]
    if failed[False]:
        parts.append(
            "Not counted, because the paper's tables cannot decide them, and false of our "
            "numbers:\n\n" + markdown(head, failed[False], left=3)
        )
    return "\n\n".join(parts)


def _states_table(papers: Mapping[str, Reproduction]) -> str:
    """How many claims fail, by paper and by what is known of the cause."""
    found = {name: causes.in_states(one.paper, one.judged) for name, one in papers.items()}
    every: Counter[str] = sum(found.values(), Counter())
    states = [state for state in (*STATES, causes.NOT_STATED) if every[state]]
    lines = [
        [name, str(counts.total()), *(str(counts[state]) for state in states)]
        for name, counts in [*found.items(), ("**all**", every)]
    ]
    return (
        f"{markdown(['paper', 'claims that fail', *states], lines)}\n\n{causes.meanings()}\n\n"
        "[Each claim with its cause](../records/fidelity-claims.md#why-claims-fail)."
    )


def _causes_table(papers: Mapping[str, Reproduction]) -> str:
    """The causes of all papers with the claims that fail of them."""
    lines = [
        [name, ", ".join(ids), cause.state, cause.why]
        for name, one in papers.items()
        for cause, ids in causes.by_cause(one.paper, one.judged)
    ]
    return (
        f"{markdown(['paper', 'claims', 'state', 'cause'], lines, left=4)}\n\n"
        f"{causes.meanings()}\n\nThe report of each paper also lists, for each claim that fails, "
        "the rows in which the paper's numbers in place of ours make it hold."
    )


def _text(found: Judged, others: Iterable[Alternative]) -> str:
    """A claim, with what its verdict rests on."""
    marks = [
        f" ({one.interpretation.mark})"
        for one in others
        if one.interpretation.mark and any(first.claim == found.claim for first, _ in one.pairs)
    ]
    return found.claim.text + "".join(marks)


def _alternatives_table(papers: Mapping[str, Reproduction]) -> str:
    """Other interpretations, and how many claims hold in either."""
    lines = []
    for name, one in papers.items():
        for other in one.alternatives:
            moved = [(a.outcome == HOLDS, b.outcome == HOLDS) for a, b in other.pairs]
            lines.append(
                [
                    *(name, other.interpretation.title, str(len(moved))),
                    *(_part(each.holds, each.decided) for each in (one.claims, other.score)),
                    *(str(moved.count(way)) for way in ((False, True), (True, False))),
                ]
            )
    if not lines:
        return "There are none."
    head = [
        *("paper", "second reading", "claims that rest on it"),
        *("hold, of the decided, first reading", "in the second"),
        *("in the second only", "in the first only"),
    ]
    return markdown(head, lines, left=2) + (
        "\n\nWhat a paper leaves open is read in one way for the counts above, and in another way "
        "here. The reports say what is open, and give both verdicts of each claim."
    )


def _seeds(one: Reproduction) -> str:
    """The seeds of a paper's rows, and those that some have beside them."""
    first, further = ranged(one.seeds), one.further.seeds
    return f"{first}; some rows {ranged([*one.seeds, *further])}" if further else first
