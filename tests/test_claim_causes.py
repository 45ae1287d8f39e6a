"""Why claims fail: every claim that does has its cause, and the rows that decide are found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from aqmlab.errors import AqmlabError
from aqmlab.papers import causes
from aqmlab.papers.claim import Claim, ClaimCause, Claims
from aqmlab.papers.judge import Judged
from aqmlab.papers.names import names
from aqmlab.papers.paper import Paper
from aqmlab.papers.scoreboard import PaperCell
from conftest import ROOT

SPEC = {"claims": ["X1"], "state": "open", "why": "nobody knows"}


def failing_in_the_records() -> dict[str, set[str]]:
    """Ids of the claims that count and fail, by paper, as the record lists them."""
    page = (ROOT / "records" / "fidelity-claims.md").read_text()
    table = page.partition("Those that fail:")[2].partition("Not counted")[0]
    found: dict[str, set[str]] = {name: set() for name in names()}
    for paper, claim in re.findall(r"^\| (\w+) ([A-Z]\d+(?:-\d+)?) \|", table, re.MULTILINE):
        found[paper].add(claim)
    return found


@pytest.mark.parametrize("name", names())
def test_every_claim_that_fails_has_its_cause_and_no_other_has(name: str) -> None:
    failing = failing_in_the_records()[name]
    assert failing
    stated = {claim for cause in Paper.load(name).claims.causes for claim in cause.claims}
    assert stated == failing


def loss_of(source: Paper, row: str, published: str, ours: float) -> PaperCell:
    columns = source.table("table1").columns
    loss = next(column for column in columns if column.name == "loss_rate_pct")
    return PaperCell("table1", row, loss, published, (ours,))


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        ("sync.loss_rate_pct < reno.loss_rate_pct", ("reno",)),
        ("sync.loss_rate_pct < 3 and reno.loss_rate_pct > 3", ("reno", "sync_tcp")),
        ("sync.loss_rate_pct > 10", ()),
    ],
)
def test_rows_behind_a_failure_are_those_whose_printed_numbers_undo_it(
    rule: str, rows: tuple[str, ...]
) -> None:
    source = Paper.load("synctcp2005")
    cells = [
        loss_of(source, "sync_tcp", "2.0", 3.5),
        loss_of(source, "reno", "3.9", 1.0),
        loss_of(source, "sack_ared_ecn", "13.9", 1.0),
    ]
    spec = {"id": "X", "type": "ordering", "text": "x", "own_tables": "agrees", "rule": rule}
    assert causes.behind(Claim.read(spec, Path("claims.toml")), source, cells) == rows


def test_states_count_claims_that_fail_and_those_without_a_cause() -> None:
    source = Paper.load("synctcp2005")
    one, other, third = source.claims.entries[:3]
    cause = ClaimCause((one.id, third.id), "print", "two sentences")
    with_cause = Paper(**{**vars(source), "claims": Claims(causes=(cause,))})
    judged = [Judged(one, "fails", ""), Judged(other, "fails", ""), Judged(third, "holds", "")]
    assert causes.by_cause(with_cause, judged) == [(cause, [one.id])]
    assert causes.in_states(with_cause, judged) == {"print": 1, causes.NOT_STATED: 1}


def test_a_cause_has_a_known_state_and_claims_that_are_there_once() -> None:
    file = Path("claims.toml")
    cause = ClaimCause.read(SPEC, file)
    assert cause == ClaimCause(("X1",), "open", "nobody knows")
    with pytest.raises(AqmlabError, match="found state 'guess'; expected one of shown, print"):
        ClaimCause.read({**SPEC, "state": "guess"}, file)
    claim = Claim("X1", "ordering", "x", "agrees")
    with pytest.raises(AqmlabError, match="causes: found X1, which is none of its claims"):
        Claims(file, causes=(cause,))._checked()
    with pytest.raises(AqmlabError, match="causes: found two of X1"):
        Claims(file, entries=(claim,), causes=(cause, cause))._checked()
