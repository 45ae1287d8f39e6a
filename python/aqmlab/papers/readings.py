"""Second readings: the claims of a paper judged once more, with other rows in place of some.

``[[readings]]`` in ``tables.toml`` says which rows, and what is set in them. A reading answers what
the first one cannot: which verdicts hang on something that the paper leaves open.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab._util.markup import markdown
from aqmlab.papers import claims
from aqmlab.papers.paper import Paper, Reading
from aqmlab.papers.scoreboard import Cell
from aqmlab.results.verdict import FAILS, HOLDS, Verdict

__all__ = ["Read", "concerned", "judge", "to_json", "to_markdown"]


@dataclass(frozen=True)
class Read:
    """What became of the claims in a second reading."""

    reading: Reading
    score: Mapping[str, int]
    """Of all claims of the paper, in this reading."""
    pairs: tuple[tuple[Verdict, Verdict], ...]
    """The claims that rest on its rows: judged in the first reading, and in this one."""


def concerned(paper: Paper, reading: Reading) -> set[str]:
    """Ids of the claims whose rules need a row that the reading has otherwise."""
    again = _replaced(paper, reading)
    return {
        spec["id"]
        for spec in paper.claims.get("claims", [])
        if "rule" in spec and not again.isdisjoint(claims.rows_of(spec, paper))
    }


def _replaced(paper: Paper, reading: Reading) -> set[tuple[str, str]]:
    """Table and label of the rows that a reading has otherwise."""
    return {
        (table, row.label)
        for table, other in reading.instead.items()
        for row in paper.table(other).rows
    }


def judge(
    paper: Paper,
    cells: Sequence[Cell],
    first: Sequence[Verdict],
    decidable: Mapping[str, float],
    tables: Collection[str],
) -> list[Read]:
    """Judges the claims in every reading all of whose tables were reproduced.

    Args:
        paper: The paper.
        cells: The cells of all tables, those of the readings too.
        first: The verdicts of the first reading.
        decidable: What the paper's tables can decide; see :func:`aqmlab.papers.claims.score`.
        tables: Ids of the tables that were reproduced.
    """
    found = []
    for reading in paper.readings:
        if not set(reading.instead.values()) <= set(tables):
            continue
        resting = concerned(paper, reading)
        again = {
            verdict.id: verdict
            for verdict in claims.judge(paper, _exchanged(cells, paper, reading), tables=tables)
            if verdict.id in resting
        }
        score = claims.score([again.get(verdict.id, verdict) for verdict in first], decidable)
        pairs = tuple((verdict, again[verdict.id]) for verdict in first if verdict.id in again)
        found.append(Read(reading, score, pairs))
    return found


def _exchanged(cells: Sequence[Cell], paper: Paper, reading: Reading) -> list[Cell]:
    """The cells with those of a reading in the places of the first one's.

    A row whose runs the reading lacks has no cells.
    """
    replaced = _replaced(paper, reading)
    back = {other: table for table, other in reading.instead.items()}
    kept = [cell for cell in cells if (cell.table, cell.row) not in replaced]
    moved = [replace(cell, table=back[cell.table]) for cell in cells if cell.table in back]
    return kept + moved


def to_json(read: Read) -> dict[str, Any]:
    """A reading for ``scoreboard.json``."""
    return {
        "id": read.reading.id,
        "title": read.reading.title,
        "why": read.reading.why,
        "mark": read.reading.mark,
        "claims": dict(read.score),
        "concerned": [
            {
                "id": first.id,
                "text": first.statement,
                "first": first.outcome,
                "second": second.outcome,
                "because": second.measured,
            }
            for first, second in read.pairs
        ],
    }


def to_markdown(read: Read) -> str:
    """The claims that rest on the rows of a reading, with both verdicts."""
    gained = sum(one.outcome != HOLDS and two.outcome == HOLDS for one, two in read.pairs)
    lost = sum(one.outcome == HOLDS and two.outcome != HOLDS for one, two in read.pairs)
    lines = [
        [f"{one.id}: {one.statement}", one.outcome, _other(one, two), two.measured]
        for one, two in read.pairs
    ]
    return (
        f"{read.reading.why}\n\n"
        f"{len(read.pairs)} claims rest on these rows; {gained} hold in this reading only, {lost} "
        f"in the first only. In this reading {read.score[HOLDS]} of all claims hold and "
        f"{read.score[FAILS]} fail.\n\n"
        + markdown(["claim", "first reading", "this reading", "measured in it"], lines, left=4)
    )


def _other(first: Verdict, second: Verdict) -> str:
    """The second verdict, in bold where it differs."""
    same = first.outcome == second.outcome
    return second.outcome if same else f"**{second.outcome}**"
