"""What changed from one card to another: regressions, and differences too small to matter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol
from xml.etree import ElementTree

import numpy as np

from aqmlab.cards.gates import Gate
from aqmlab.cards.kinds import CONTROL, QUEUE
from aqmlab.cards.numbers import Numbers, numbers_of
from aqmlab.cards.scoring import UNSCORED, matters
from aqmlab.cards.suites import Measure, measures, rows
from aqmlab.errors import AqmlabError
from aqmlab.results.statistics import CONFIDENCE, Floats, estimate, paired_difference

__all__ = ["CardChange", "Comparison", "compared"]


_LOGS = "DTRGH"
"""Letters whose values are compared by their logarithms."""
_LEAST = 1e-9
"""Smaller values count as this one where a logarithm is taken."""


@dataclass(frozen=True)
class CardChange:
    """One number of a test in two cards."""

    test: str
    measure: Measure
    before: float
    """Its mean over seeds in the reference; geometric where logarithms are compared."""
    now: float
    difference: float
    """Of logarithms, or of values."""
    verdict: str
    """``regressed``, ``improved``, ``small`` (clear, too small to matter), ``unclear`` or
    ``same``."""

    @property
    def text(self) -> str:
        """The change in a few words."""
        if self.measure.letter in _LOGS:
            return f"{100 * math.expm1(self.difference):+.1f} %"
        return f"{self.difference:+.3g}"


@dataclass(frozen=True)
class Comparison:
    """A card beside its reference."""

    name: str
    reference: str
    changes: Sequence[CardChange]
    gates: Sequence[str]
    """Gates that passed in the reference and fail now."""
    seeds: Sequence[int]
    """Seeds that both have."""

    @property
    def regressions(self) -> list[str]:
        """What got worse, a line each."""
        return [
            *(f"gate {name}: failed, passed before" for name in self.gates),
            *(
                f"{one.test} {one.measure.measure}: {one.text}"
                for one in self.changes
                if one.verdict == "regressed"
            ),
        ]

    def count(self, verdict: str) -> int:
        """How many numbers have a verdict."""
        return sum(one.verdict == verdict for one in self.changes)

    def to_json(self) -> dict[str, Any]:
        """For ``aqmlab evaluate --against --json``."""
        return {
            "reference": self.reference,
            "seeds": list(self.seeds),
            "regressions": self.regressions,
            "gates": list(self.gates),
            "changes": [
                {
                    "test": one.test,
                    "measure": one.measure.measure,
                    "before": one.before,
                    "now": one.now,
                    "change": one.text,
                    "verdict": one.verdict,
                }
                for one in self.changes
            ],
        }

    @property
    def summary(self) -> str:
        """The verdict in a line."""
        words = {
            "regressed": "worse",
            "improved": "better",
            "small": "changed, too small to matter",
            "unclear": "not clear",
            "same": "the same",
        }
        counts = ", ".join(
            f"{self.count(verdict)} {word}"
            for verdict, word in words.items()
            if self.count(verdict)
        )
        gates = f"; gates that fail now: {', '.join(self.gates)}" if self.gates else ""
        return f"{self.name} against {self.reference}: {counts or 'nothing in common'}{gates}"

    def markdown(self) -> str:
        """A summary for the step of a workflow."""
        words = {"regressed": "worse", "improved": "better"}
        lines = [f"## {self.name}: report card", "", f"**{self.summary}**", ""]
        shown = [one for word in words for one in self.changes if one.verdict == word]
        if shown:
            lines += [
                "| | test | number | before | now | change |",
                "| --- | --- | --- | ---: | ---: | ---: |",
            ]
            lines += [
                f"| {words[one.verdict]} | {_titled(one.test)} | {one.measure.titled} | "
                f"{one.measure.shown(one.before)} | {one.measure.shown(one.now)} | {one.text} |"
                for one in shown
            ]
            lines += ["", self._rule, _AGAIN.format(shown[0].test)]
        return "\n".join(lines).rstrip() + "\n"

    @property
    def _rule(self) -> str:
        """When a number is worse or better."""
        return (
            f"Means over {len(self.seeds)} seeds. Worse and better: with the same seeds, by enough "
            "to matter, and the 95 % interval leaves out zero "
            f"(Holm's correction over {len(self.changes)} numbers)."
        )

    def junit(self) -> str:
        """The same as JUnit XML: a test case for each number and for each gate that fails."""
        failed = [one for one in self.changes if one.verdict == "regressed"]
        suite = ElementTree.Element(
            "testsuite",
            name=f"aqmlab evaluate {self.name}",
            tests=str(len(self.changes) + len(self.gates)),
            failures=str(len(failed) + len(self.gates)),
        )
        for one in self.changes:
            number = one.measure.measure
            case = ElementTree.SubElement(
                suite, "testcase", classname=_titled(one.test), name=number
            )
            if one in failed:
                before, now = (
                    f"{one.measure.shown(value)} {one.measure.unit}".rstrip()
                    for value in (one.before, one.now)
                )
                text = f"{number} is {now}, was {before} ({one.text})"
                ElementTree.SubElement(case, "failure", message=text).text = _AGAIN.format(one.test)
        for name in self.gates:
            case = ElementTree.SubElement(suite, "testcase", classname="gates", name=name)
            ElementTree.SubElement(case, "failure", message="passed before, fails now")
        ElementTree.indent(suite)
        return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


_AGAIN = "To repeat a test: the same command with `--only {}`."


def _titled(test: str) -> str:
    """A test with what it is about."""
    return f"{test}: {_scenarios()[test]}" if test in _scenarios() else test


@cache
def _scenarios() -> Mapping[str, str]:
    """What the tests of cards are about, by their names."""
    return {row.id: row.scenario for kind in (QUEUE, CONTROL) for row in rows(kind.suite)}


class Side(Protocol):
    """What a comparison needs of a card."""

    @property
    def name(self) -> str:
        """The candidate."""

    @property
    def seeds(self) -> Sequence[int]:
        """Its seeds."""

    @property
    def gates(self) -> Sequence[Gate]:
        """How it passes the gates."""

    @property
    def own(self) -> Sequence[Measure]:
        """Its numbers of one's own."""

    @property
    def columns(self) -> Numbers:
        """The numbers of its runs."""


def compared(card: Side, reference: Side) -> Comparison:
    """What changed from a reference to a card.

    A number regresses if it is worse with the same seeds, if the 95 % interval of the change leaves
    out zero after Holm's correction over all numbers, and if the change is large enough to matter.

    Raises:
        AqmlabError: the cards have fewer than two seeds in common, or no test.
    """
    seeds = sorted({*card.seeds} & {*reference.seeds})
    if len(seeds) < 2:
        theirs, own = (", ".join(map(str, one.seeds)) for one in (reference, card))
        raise AqmlabError(
            f"the reference has seeds {theirs}, the card {own}; expected two or more in common"
        )
    frames = [_by_key(one.columns, seeds) for one in (reference, card)]
    found = []
    for measure in (*measures(), *(one for one in card.own if one in reference.own)):
        if measure.letter == UNSCORED:
            continue
        sides = _sides(measure, frames, seeds)
        if sides is not None:
            found.append((measure, *sides))
    if not found:
        raise AqmlabError("the card and the reference have no test in common")
    clear = _clear([now - before for _, before, now in found])
    passed = {gate.rule.name for gate in reference.gates if gate.passed}
    return Comparison(
        card.name,
        reference.name,
        [_change(*one, is_clear=known) for one, known in zip(found, clear, strict=True)],
        [
            gate.rule.name
            for gate in card.gates
            if gate.passed is False and gate.rule.name in passed
        ],
        seeds,
    )


_Values = dict[tuple[str, str], dict[str, dict[int, float]]]


def _by_key(numbers: Numbers, seeds: Sequence[int]) -> _Values:
    """Values of the candidate by test and measure, then by cell and seed."""
    found: _Values = {}
    for row in numbers_of(numbers):
        if row.queue == "candidate" and row.seed in seeds:
            cells = found.setdefault((row.test, row.measure), {})
            cells.setdefault(row.cell, {})[row.seed] = row.value
    return found


def _sides(
    measure: Measure, frames: Sequence[_Values], seeds: Sequence[int]
) -> tuple[Floats, Floats] | None:
    """A measure in both cards, seed by seed, as it is compared: the mean over common cells."""
    cells = [frame.get((measure.test, measure.measure), {}) for frame in frames]
    both = [
        cell
        for cell in cells[0]
        if cell in cells[1] and all(len(side[cell]) == len(seeds) for side in cells)
    ]
    if not both:
        return None
    sides = []
    for side in cells:
        values = np.array([[side[cell][seed] for seed in seeds] for cell in both])
        logs = measure.letter in _LOGS
        sides.append(np.mean(np.log(np.maximum(values, _LEAST)) if logs else values, axis=0))
    return sides[0], sides[1]


def _clear(differences: Sequence[Floats]) -> list[bool]:
    """Which differences leave out zero after Holm's correction.

    The surest is tested at 5 % over the number of differences, the next at 5 % over one less, and
    so on up to the first that holds zero.
    """
    order = sorted(range(len(differences)), key=lambda k: -_sureness(differences[k]))
    found = [False] * len(differences)
    for place, k in enumerate(order):
        level = (1 - CONFIDENCE) / (len(differences) - place)
        if not estimate(differences[k], 1 - level).clear:
            break
        found[k] = True
    return found


def _sureness(values: Floats) -> float:
    """How many standard errors a mean lies off zero."""
    mean, spread = abs(float(values.mean())), float(values.std(ddof=1))
    if mean == 0:
        return 0.0
    return mean / spread if spread else math.inf


def _change(measure: Measure, before: Floats, now: Floats, *, is_clear: bool) -> CardChange:
    """A number with its verdict."""
    back = math.exp if measure.letter in _LOGS else float
    old = back(float(before.mean()))
    difference = paired_difference(before, now).mean
    if difference == 0 and np.array_equal(before, now):
        verdict = "same"
    elif not is_clear:
        verdict = "unclear"
    elif not matters(measure, difference, old):
        verdict = "small"
    else:
        worse = (difference > 0) == measure.less_is_better
        verdict = "regressed" if worse else "improved"
    return CardChange(measure.test, measure, old, back(float(now.mean())), difference, verdict)
