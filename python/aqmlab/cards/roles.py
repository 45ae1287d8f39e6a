"""Who takes part in an evaluation: the candidate, the baselines, and what runs without either."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aqmlab.cards.campaign import Role
from aqmlab.cards.candidates import (
    CUBIC,
    DROPTAIL,
    ECN,
    Candidate,
    CandidateControl,
    candidate,
    control,
    named,
    with_ecn,
)
from aqmlab.cards.card import TIERS, card_rows
from aqmlab.cards.generator import SuiteCell, cells, scenario_of
from aqmlab.cards.kinds import CONTROL, QUEUE, Kind
from aqmlab.cards.scoring import SOLO
from aqmlab.cards.suites import chosen, measures, names
from aqmlab.errors import AqmlabError

__all__ = ["BASELINES", "CONTROLS", "Roles", "control_roles", "queue_roles", "tier_cells"]


BASELINES = ("fq-codel", "pie", "dualpi2", "cake")
"""Deployed queues, whose median scores 1."""
CONTROLS = ("bbr3",)
"""Deployed controls, which are shown beside CUBIC."""
Roles = Callable[[SuiteCell], Sequence[Role]]
"""Who runs a cell."""


def tier_cells(tier: str, only: Sequence[str] = (), kind: Kind = QUEUE) -> list[SuiteCell]:
    """The cells of a tier's tests.

    Raises:
        AqmlabError: a word names no test of the tier; the message names the tier that has it.
    """
    rows = card_rows(tier, kind)
    for word in only:
        if not any(names(word, row) for row in rows):
            for larger in TIERS[TIERS.index(tier) + 1 :]:
                if any(names(word, row) for row in card_rows(larger, kind)):
                    raise AqmlabError(
                        f'--only: "{word}" is a test of the {larger} tier, not of the {tier} one; '
                        f"add --tier {larger}"
                    )
    return [cell for row in chosen(rows, only) for cell in cells(row)]


def queue_roles(
    queue: str | Candidate, baselines: Sequence[str]
) -> tuple[Kind, Candidate | CandidateControl, Roles, list[str]]:
    """What the runs of a queue's card are made with, and the names of the baselines."""
    under_test = queue if isinstance(queue, Candidate) else candidate(queue)
    others = {name: named(name) for name in baselines}
    # The candidate may be a baseline: what it is called here never decides anything.
    roles = [Role("candidate", under_test), Role(DROPTAIL, named(DROPTAIL))]
    roles += [Role(name, one) for name, one in others.items() if name != DROPTAIL]
    return QUEUE, under_test, lambda _: roles, [*others]


def control_roles(
    text: str | CandidateControl, ecn: str, baselines: Sequence[str]
) -> tuple[Kind, Candidate | CandidateControl, Roles, list[str]]:
    """What the runs of a control's card are made with, and the names of the baselines."""
    if ecn not in ECN:
        raise AqmlabError(f'--ecn: found "{ecn[:40]}"; expected one of {", ".join(ECN)}')
    queue = named(DROPTAIL)
    under_test = with_ecn(text if isinstance(text, CandidateControl) else control(text), ecn)
    _check_ecn(under_test, ecn, queue)
    # Where queues mark, the yardstick of L4S is Prague.
    anchor = with_ecn(control("prague") if ecn == "l4s" else CUBIC, ecn)
    roles = [Role("candidate", queue, under_test), Role(CUBIC.name, queue, CUBIC, anchor)]
    others = [name for name in dict.fromkeys(baselines) if name != CUBIC.name]
    marked = "none" if ecn == "none" else "classic"
    for name in others:
        one = control(name)
        if _refused(one, queue):
            roles.append(Role(name, queue, with_ecn(one, "l4s")))
        else:
            roles.append(Role(name, queue, one, with_ecn(one, marked)))
    harmed = {one.test for one in measures() if one.letter == "H"}
    solo = Role(SOLO, queue, None)
    return (
        CONTROL,
        under_test,
        lambda cell: [*roles, solo] if cell.row.id in harmed else roles,
        [CUBIC.name, *others],
    )


def _refused(under_test: CandidateControl, queue: Candidate) -> str:
    """Why a control cannot run; empty if it can."""
    [first, *_] = tier_cells("quick", (), CONTROL)
    try:
        scenario_of(first, queue, under_test)
    except AqmlabError as error:
        return str(error)
    return ""


def _check_ecn(under_test: CandidateControl, ecn: str, queue: Candidate) -> None:
    """An error if a control cannot run with this ECN."""
    why = _refused(under_test, queue)
    if not why:
        return
    ways = [way for way in ECN if way != ecn and not _refused(with_ecn(under_test, way), queue)]
    if not ways:
        raise AqmlabError(f"{under_test.name}: {why}")
    raise AqmlabError(
        f"--control: {under_test.name} cannot run with --ecn {ecn}; expected --ecn {ways[-1]} "
        "with it"
    )
