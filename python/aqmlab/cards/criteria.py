"""The criteria of RFC 9743 beside what a card of a congestion control measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aqmlab.cards.card import Card
from aqmlab.cards.suites import Row, rows

__all__ = ["Criterion", "criteria"]


@dataclass(frozen=True)
class Criterion:
    """A criterion, and the answer of a card."""

    section: str
    name: str
    requirement: str
    """The RFC's own word."""
    answer: str
    """What its tests and gates showed; empty: none of them was run."""
    why: str
    """Why no test was run."""
    later: bool
    """Whether the card has a test for it, which was not run."""


def criteria(card: Card) -> list[Criterion]:
    """The criteria in the order of the RFC."""
    ran = {*card.columns["test"]}
    scores = {test.id: test.score for test in card.tests}
    found = []
    for row in rows("rfc9743"):
        own = [test for test in _all_tests(card) if row.id in _sections(test.section)]
        done = [test.id for test in own if test.id in ran]
        parts = [f"{name} {score:.2f}" for name in done if (score := scores.get(name)) is not None]
        parts += [
            f"{gate.rule.name} {'pass' if gate.passed else 'FAIL'}"
            for gate in card.gates
            if gate.rule.section == row.id and gate.passed is not None
        ]
        later = [test for test in own if not test.not_realised]
        found.append(
            Criterion(
                row.section,
                row.scenario,
                row.requirement,
                ", ".join(parts),
                "; ".join(map(_when, later)) or row.not_realised or "no test of the card",
                later=bool(later),
            )
        )
    return found


def _all_tests(card: Card) -> Sequence[Row]:
    """The tests of all tiers."""
    return rows(card.about.suite)


def _when(test: Row) -> str:
    """When a test is run."""
    return f"{test.id}, {test.tier} tier"


def _sections(text: str) -> set[str]:
    """The criteria that a test names: ``r9743-5.2 5.2.1`` names two."""
    found, source = set(), ""
    for word in text.replace(",", " ").split():
        source, _, section = word.rpartition("-") if "-" in word else (source, "-", word)
        found.add(f"{source}-{section}")
    return found
