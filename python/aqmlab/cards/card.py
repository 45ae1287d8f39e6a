"""The card: what an evaluation comes to, and its JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab._util.files import read_text
from aqmlab.cards import scoring
from aqmlab.cards.candidates import DROPTAIL
from aqmlab.cards.regression import Comparison, compared
from aqmlab.cards.scoring import Area, Gate, MeasureScore, Test
from aqmlab.cards.suites import CARD, Row, measures, rows
from aqmlab.errors import AqmlabError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["AREAS", "TIERS", "Card", "about_seeds", "card_rows"]


TIERS = ("quick", "standard", "full")
"""Each has the tests of those before it."""
AREAS = ("delay", "users", "bursts", "stability", "fairness", "ecn", "two-way", "series")
"""Areas that are graded, in the order of the page."""
_MAX_BYTES = 64 * 2**20


def card_rows(tier: str) -> list[Row]:
    """The tests of a card of queue disciplines in a tier, those without a scenario included."""
    upto = TIERS[: TIERS.index(tier) + 1]
    return [row for row in rows(CARD) if row.card == "aqm" and row.tier in upto]


@dataclass(frozen=True)
class Card:
    """How a queue discipline does beside the baselines: what :func:`aqmlab.evaluate` returns.

    Example:
        >>> import aqmlab
        >>> card = aqmlab.evaluate("pie", only=["a-base"], seeds="1..2", baselines=["codel"])
        >>> [gate.rule.name for gate in card.gates if gate.passed is False]
        []
        >>> card.frame().filter(queue="candidate", measure="wait p95").height
        2
    """

    name: str
    """What people call the candidate."""
    parameters: Mapping[str, Any]
    """Its discipline as the scenario of the first test has it, with all defaults."""
    given: Mapping[str, Any]
    """What of this was asked for."""
    sha256: str
    """The hash of its plug-in's file; empty if it is none."""
    engine: str
    """The engine's name: equal names, equal results."""
    tier: str
    only: Sequence[str]
    """The tests that were asked for; none: all of the tier."""
    seeds: Sequence[int]
    baselines: Sequence[str]
    columns: Mapping[str, Sequence[Any]]
    """The numbers of all runs, by column: see :meth:`frame`. The candidate is ``candidate``."""
    failures: Sequence[tuple[str, int, str]]
    """Cells, seeds and reasons of the candidate's runs that failed."""

    @cached_property
    def _frame(self) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(dict(self.columns))

    def frame(self) -> pl.DataFrame:
        """A row for each number of each run.

        Columns: ``test``, ``cell``, ``queue``, ``seed``, ``measure``, ``value``. Values are in s,
        bit/s and shares. What gates look at has measures such as ``gate:age``.
        """
        return self._frame

    def _tests_of(self, queue: str) -> list[Test]:
        area_of = {row.id: row.area for row in card_rows(self.tier)}
        return scoring.scored_tests(
            self._frame,
            measures(),
            area_of,
            candidate=queue,
            droptail=DROPTAIL,
            baselines=self.baselines,
        )

    @cached_property
    def tests(self) -> list[Test]:
        """The tests with their scores, in the order of the table."""
        return self._tests_of("candidate")

    @cached_property
    def areas(self) -> list[Area]:
        """The areas with their grades."""
        return scoring.areas(self.tests, AREAS)

    def areas_of(self, baseline: str) -> list[Area]:
        """The same for a baseline."""
        return scoring.areas(self._tests_of(baseline), AREAS)

    @cached_property
    def gates(self) -> list[Gate]:
        """The gates, in the order of the page."""
        return scoring.gates(self._frame, "candidate", self.failures)

    def grade(self, area: str) -> str:
        """The grade of an area: ``A`` to ``D``, two of them, or ``?``.

        Raises:
            AqmlabError: there is no such area.
        """
        for one in self.areas:
            if one.name == area:
                return one.grade
        raise AqmlabError(f'found "{area}", which is no area; expected one of {", ".join(AREAS)}')

    def compare(self, other: Card) -> Comparison:
        """What changed from another card to this one: the regressions, and everything else.

        Raises:
            AqmlabError: the cards have fewer than two seeds in common, or no test.
        """
        return compared(self, other)

    @cached_property
    def sentence(self) -> str:
        """What is clearly better and clearly worse than the median of the baselines."""
        scored = [(test, one) for test in self.tests for one in test.measures]
        telling = [(test, one) for test, one in scored if one.measure.letter != scoring.UNSCORED]
        better = [pair for pair in telling if pair[1].better is True]
        worse = [pair for pair in telling if pair[1].better is False]
        if len(self.seeds) < 2:
            return "One seed cannot tell a difference from chance: nothing is compared."
        rest = len(telling) - len(better) - len(worse)
        parts = [
            f"{word} in {len(found)}{_largest(found)}"
            for word, found in (("better", better), ("worse", worse))
            if found
        ]
        last = f"no clear difference that matters in {rest}"
        return (
            f"Beside the median of the baselines, of {len(telling)} numbers: "
            f"{'; '.join([*parts, last])}."
        )

    @property
    def not_tested(self) -> list[tuple[str, str]]:
        """What the card leaves out: tests of this and of further tiers, and why."""
        found = [
            (f"{row.id} ({row.scenario})", row.not_realised or f"in the {row.tier} tier")
            for row in card_rows(TIERS[-1])
            if row.not_realised or row not in card_rows(self.tier)
        ]
        left = [row.id for row in card_rows(self.tier) if self.only and row.id not in self._ran]
        return [*found, *((name, "not asked for") for name in left)]

    @cached_property
    def _ran(self) -> set[str]:
        return set(self.columns["test"])

    def to_json(self) -> dict[str, Any]:
        """The card as JSON; docs/evaluate.md explains its keys."""
        return {
            "card": scoring.VERSION,
            "name": self.name,
            "parameters": dict(self.parameters),
            "given": dict(self.given),
            "sha256": self.sha256,
            "engine": self.engine,
            "tier": self.tier,
            "only": list(self.only),
            "seeds": list(self.seeds),
            "droptail": DROPTAIL,
            "baselines": list(self.baselines),
            "sentence": self.sentence,
            "gates": [_gate_json(gate) for gate in self.gates],
            "areas": [_area_json(area) for area in self.areas],
            "tests": [_test_json(test) for test in self.tests],
            "not_tested": [{"test": name, "why": why} for name, why in self.not_tested],
            "constants": dict(scoring.CONSTANTS),
            "failures": [list(one) for one in self.failures],
            "values": {name: list(values) for name, values in self.columns.items()},
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Card:
        """Reads ``card.json``.

        Raises:
            AqmlabError: it is no card, or one of another version.
        """
        try:
            content = json.loads(read_text(Path(path), "card", _MAX_BYTES))
            version = content["card"]
        except (ValueError, KeyError, TypeError):
            raise AqmlabError(f"{path}: is not a card; expected a card.json") from None
        if version != scoring.VERSION:
            raise AqmlabError(
                f"{path}: is a card of version {version}, which cannot be compared with version "
                f"{scoring.VERSION}; make it again"
            )
        try:
            return cls(
                **{
                    name: content[name]
                    for name in ("name", "parameters", "given", "sha256", "engine", "tier", "only")
                },
                seeds=content["seeds"],
                baselines=content["baselines"],
                columns=content["values"],
                failures=[(cell, seed, why) for cell, seed, why in content["failures"]],
            )
        except (KeyError, TypeError, ValueError):
            raise AqmlabError(f"{path}: is damaged; make the card again") from None


def _largest(found: Sequence[tuple[Test, MeasureScore]]) -> str:
    """The largest relative difference among some, in brackets."""
    relative = [pair for pair in found if pair[1].is_relative]
    if not relative:
        return ""
    test, one = max(relative, key=lambda pair: abs(pair[1].difference.mean))
    return f" (most: {one.measure.measure} of {test.id}, {change(one)})"


def change(one: MeasureScore) -> str:
    """A difference in words: "40 % less", "3.1 times as much"."""
    if not one.is_relative:
        return f"{one.difference.mean:+.2f}"
    ratio = math.exp(one.difference.mean)
    if ratio >= 2:
        return f"{ratio:.2g} times as much"
    return f"{abs(ratio - 1):.0%} {'more' if ratio > 1 else 'less'}".replace("%", " %")


def about_seeds(seeds: Sequence[int]) -> str:
    """Seeds in a few words: "seeds 1 to 3"."""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if [*seeds] == [*range(seeds[0], seeds[0] + len(seeds))]:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


def _number(value: float | None) -> float | None:
    """A number as JSON has it: null for what is none."""
    return value if value is not None and math.isfinite(value) else None


def _gate_json(gate: Gate) -> dict[str, Any]:
    return {
        "name": gate.rule.name,
        "meaning": gate.rule.meaning,
        "passed": gate.passed,
        "worst": _number(gate.worst),
        "bound": gate.rule.bound,
        "cell": gate.test,
        "seed": gate.seed,
        "reason": gate.reason,
    }


def _area_json(area: Area) -> dict[str, Any]:
    score = area.score
    return {
        "name": area.name,
        "grade": area.grade,
        "score": None if score is None else _number(score.mean),
        "low": None if score is None else _number(score.low),
        "high": None if score is None else _number(score.high),
        "tests": area.tests,
        "settings": area.settings,
    }


def _test_json(test: Test) -> dict[str, Any]:
    return {
        "id": test.id,
        "area": test.area,
        "score": _number(test.score),
        "by_seed": list(test.by_seed),
        "measures": [_measure_json(one) for one in test.measures],
    }


def _measure_json(one: MeasureScore) -> dict[str, Any]:
    return {
        **{key: value for key, value in asdict(one.measure).items() if key != "test"},
        "settings": one.settings,
        "candidate": _number(one.candidate),
        "droptail": _number(one.droptail),
        "median": _number(one.reference),
        "best": one.best,
        "best_value": _number(one.best_value),
        "difference": _number(one.difference.mean),
        "low": _number(one.difference.low),
        "high": _number(one.difference.high),
        "relative": one.is_relative,
        "better": one.better,
        "score": _number(one.score),
        "lost": one.lost,
        "why": one.why,
    }
