"""Why claims fail: what ``[[causes]]`` says of them, and the rows that decide.

Some rows are behind a claim that fails if it holds once the paper's own numbers stand in place of
ours in these rows alone. That takes no runs. It shows where the cause lies, not what it is.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from aqmlab._util.markup import markdown
from aqmlab.papers.claim import STATES, Claim
from aqmlab.papers.rule import decide, rows_of
from aqmlab.results.verdict import FAILS, HOLDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from aqmlab.papers.claim import ClaimCause
    from aqmlab.papers.judge import Judged
    from aqmlab.papers.paper import Paper
    from aqmlab.papers.scoreboard import PaperCell

__all__ = ["NOT_STATED", "behind", "by_cause", "failing", "in_states", "meanings", "to_markdown"]


NOT_STATED = "not stated"
"""The state of claims that fail and have no cause."""


def failing(judged: Iterable[Judged]) -> list[Judged]:
    """The claims that count and fail."""
    return [one for one in judged if one.counts and one.outcome == FAILS]


def behind(claim: Claim, paper: Paper, cells: Sequence[PaperCell]) -> tuple[str, ...]:
    """Rows with whose printed numbers in place of ours a claim holds, and with no fewer of them.

    Empty: the paper does not print the numbers, or the claim does not hold with all of them.
    """
    rows = rows_of(claim, paper)
    values = {
        (cell.table, cell.row, cell.column.name): cell
        for cell in cells
        if (cell.table, cell.row) in rows
    }

    def holds(labels: Collection[str]) -> bool:
        numbers = {
            place: [cell.target] * len(cell.ours)
            if cell.row in labels and cell.target is not None
            else cell.ours
            for place, cell in values.items()
        }
        return decide(claim, paper, numbers).outcome == HOLDS

    needed = sorted({label for _, label in rows})
    if not holds(needed):
        return ()
    for label in needed:
        if holds([label]):
            return (label,)
    for label in list(needed):
        fewer = [one for one in needed if one != label]
        if holds(fewer):
            needed = fewer
    return tuple(needed)


def meanings() -> str:
    """What the states of causes mean, as a list."""
    return "\n".join(": ".join((f"- *{state}*", meaning)) for state, meaning in STATES.items())


def by_cause(paper: Paper, judged: Iterable[Judged]) -> list[tuple[ClaimCause, list[str]]]:
    """The causes with the claims that fail of them."""
    failed = {one.claim.id for one in failing(judged)}
    found = [
        (cause, [name for name in cause.claims if name in failed]) for cause in paper.claims.causes
    ]
    return [(cause, names) for cause, names in found if names]


def in_states(paper: Paper, judged: Sequence[Judged]) -> Counter[str]:
    """How many claims fail in each state of their cause; those without one: :data:`NOT_STATED`."""
    found: Counter[str] = Counter()
    for cause, names in by_cause(paper, judged):
        found[cause.state] += len(names)
    lacking = len(failing(judged)) - found.total()
    return found + Counter({NOT_STATED: lacking})


def to_markdown(paper: Paper, judged: Sequence[Judged], cells: Sequence[PaperCell]) -> str:
    """Why claims fail, as a section of the report."""
    lines = [[", ".join(names), cause.state, cause.why] for cause, names in by_cause(paper, judged)]
    text = f"{meanings()}\n\n{markdown(['claims', 'state', 'cause'], lines, left=3)}"
    rows = [
        [one.claim.id, ", ".join(found)]
        for one in failing(judged)
        if one.claim.rules and (found := behind(one.claim, paper, cells))
    ]
    if rows:
        text += (
            "\n\nEach of these claims holds once the paper's numbers stand in place of ours in the "
            "rows beside it, and in no others. Claims about numbers that the paper does not print "
            "are not listed.\n\n" + markdown(["claim", "rows"], rows, left=2)
        )
    return text
