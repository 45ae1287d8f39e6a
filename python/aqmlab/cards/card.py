"""The card: what an evaluation comes to, and its JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab._util.extras import needed
from aqmlab._util.files import read_text
from aqmlab.cards import scoring
from aqmlab.cards.findings import FAIL, CardFinding, findings
from aqmlab.cards.gates import Gate, gates
from aqmlab.cards.kinds import KINDS, QUEUE, Kind
from aqmlab.cards.numbers import numbers_of
from aqmlab.cards.regression import Comparison, compared
from aqmlab.cards.scoring import Area, MeasureScore, Test
from aqmlab.cards.sealed import Sealed
from aqmlab.cards.suites import Measure, Row, measures, rows
from aqmlab.errors import AqmlabError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["TIERS", "Card", "about_seeds", "card_rows"]


TIERS = ("quick", "standard", "full")
"""Each has the tests of those before it."""
_NAMED = 2
"""How many of the worst tests the sentence names."""
_PLAIN = {
    "probe p99": "the slowest new connections with a short answer (probe p99)",
    "RPM": "round trips per minute under load (RPM)",
    "MOS": "the opinion score of calls (MOS)",
    "Jain": "Jain's index of equal flows",
    "harm to rate": "what others lose of their rate",
    "harm to RTT": "what others lose by longer round trips",
    "harm to loss": "what others lose by losses",
    "100 kB": "the time of 100 kB",
    "1 MB": "the time of 1 MB",
    "4 MB": "the time of 4 MB",
}
"""Numbers in the sentence whose names need a word more."""
_MEASURE = ("test", "measure", "letter", "unit", "formula")
_MAX_BYTES = 64 * 2**20


def card_rows(tier: str, kind: Kind = QUEUE) -> list[Row]:
    """The tests of a card in a tier, those without a scenario included."""
    upto = TIERS[: TIERS.index(tier) + 1]
    return [row for row in rows(kind.suite) if row.tier in upto]


@dataclass(frozen=True)
class Card:
    """The report card of a queue discipline or a congestion control.

    :func:`aqmlab.evaluate` returns it. It compares the candidate with baselines.

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
    """Its parameters as the scenario of the first test has them, with all defaults."""
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
    kind: str = "queue"
    """What is evaluated: ``queue`` or ``control``."""
    ecn: str = "none"
    """ECN of a control's flows: ``none``, ``classic`` or ``l4s``."""
    sealed: Sealed | None = None
    """Settings that were drawn for this queue; None: there are none."""
    without_place: Mapping[str, str] = field(default_factory=dict)
    """Tests that were left out because a queue cannot stand there, and why."""
    own: Sequence[Measure] = ()
    """Numbers of one's own: those with a letter score tests, in an area of their own."""

    @property
    def about(self) -> Kind:
        """What is graded, a queue or a control, with its areas, gates and tests."""
        return KINDS[self.kind]

    @property
    def rows(self) -> list[Row]:
        """The tests of the card's tier, also those that were not run."""
        return card_rows(self.tier, self.about)

    def frame(self) -> pl.DataFrame:
        """A row for each number of each run.

        Columns: ``test``, ``cell``, ``queue``, ``seed``, ``measure``, ``value``. Values are in s,
        bit/s and shares. What gates look at has measures such as ``gate:age``. On cards of
        controls the queue ``solo`` is a run without the candidate.

        Raises:
            AqmlabError: polars is not installed.
        """
        frame: pl.DataFrame = needed("polars", "frames", "polars>=1.30").DataFrame(
            dict(self.columns)
        )
        return frame

    @property
    def measures(self) -> list[Measure]:
        """What the tests measure and the card scores or shows, numbers of one's own last."""
        return [*measures(), *(one for one in self.own if one.letter != scoring.UNSCORED)]

    @property
    def own_means(self) -> list[tuple[Measure, dict[str, float]]]:
        """The numbers of one's own by queue: means over settings and seeds of each test.

        Not a number: some run did not measure it.
        """
        others = [name for name in self.baselines if name != self.about.anchor]
        queues = ["candidate", self.about.anchor, *others]
        runs: dict[tuple[str, str], set[tuple[str, int]]] = {}
        found: dict[tuple[str, str, str], list[float]] = {}
        for row in numbers_of(self.columns):
            runs.setdefault((row.test, row.queue), set()).add((row.cell, row.seed))
            found.setdefault((row.test, row.measure, row.queue), []).append(row.value)

        def mean(measure: Measure, queue: str) -> float:
            known = found.get((measure.test, measure.measure, queue), [])
            whole = len(known) == len(runs.get((measure.test, queue), ()))
            return math.fsum(known) / len(known) if known and whole else math.nan

        return [(one, {queue: mean(one, queue) for queue in queues}) for one in self.own]

    @property
    def _areas(self) -> Sequence[str]:
        scored = any(one.letter != scoring.UNSCORED for one in self.own)
        return (*self.about.areas, scoring.OWN) if scored else self.about.areas

    def _tests_of(self, queue: str) -> list[Test]:
        area_of = {row.id: row.area for row in self.rows}
        if self.about is not QUEUE:
            return scoring.scored_controls(
                self.columns,
                self.measures,
                area_of,
                candidate=queue,
                cubic=self.about.anchor,
                baselines=self.baselines,
            )
        return scoring.scored_tests(
            self.columns,
            self.measures,
            area_of,
            candidate=queue,
            droptail=self.about.anchor,
            baselines=self.baselines,
        )

    @cached_property
    def tests(self) -> list[Test]:
        """The tests with their scores, in the order of the table."""
        return self._tests_of("candidate")

    @cached_property
    def areas(self) -> list[Area]:
        """The areas with their grades."""
        return scoring.areas(self.tests, self._areas)

    def areas_of(self, baseline: str) -> list[Area]:
        """The areas of a baseline, scored as the candidate is."""
        return scoring.areas(self._tests_of(baseline), self._areas)

    @cached_property
    def gates(self) -> list[Gate]:
        """The gates, in the order of the page."""
        lacking = [
            (test.id, one.measure.measure)
            for test in self.tests
            for one in test.measures
            if one.is_missing and test.area != scoring.OWN
        ]
        return gates(self.columns, "candidate", self.failures, self.about.gates, lacking)

    @cached_property
    def findings(self) -> list[CardFinding]:
        """What the queue does to kinds of packets, those that fail first; none of controls."""
        if self.about is not QUEUE:
            return []
        known = [
            area.score.mean if area.score else None
            for area in self.areas
            if area.name in ("delay", "stability")
        ]
        queues = ("candidate", self.about.anchor, self.baselines)
        return findings(self.columns, *queues, self._waits(), self.sealed, known)

    def _waits(self) -> list[tuple[float, float]]:
        """The candidate's waits and drop-tail's, in the areas delay and stability."""
        return [
            (one.candidate, one.droptail)
            for test in self.tests
            if test.area in ("delay", "stability")
            for one in test.measures
            if one.measure.letter == "D" and one.measure.unit == "ms" and not one.is_missing
        ]

    def failing(self, allowed: Sequence[str] = ()) -> list[str]:
        """Gates and findings that fail, by name, without those that are allowed to."""
        names = [gate.rule.name for gate in self.gates if gate.passed is False]
        names += [one.name for one in self.findings if one.outcome == FAIL]
        return [name for name in dict.fromkeys(names) if name not in allowed]

    def grade(self, area: str) -> str:
        """The grade of an area: ``A`` to ``D``, two of them, or ``?``.

        Raises:
            AqmlabError: there is no such area.
        """
        for one in self.areas:
            if one.name == area:
                return one.grade
        expected = ", ".join(self._areas)
        raise AqmlabError(f'found "{area}", which is no area; expected one of {expected}')

    def overall(self, weights: Mapping[str, float]) -> Area:
        """One score of all areas, by weights of your choice.

        Args:
            weights: by area, such as ``{"users": 2, "delay": 1}``; others do not count.

        Raises:
            AqmlabError: there is no such area, or a weight is not above 0.
        """
        for area, weight in weights.items():
            self.grade(area)
            if not (weight > 0 and math.isfinite(weight)):
                raise AqmlabError(f"found {area}={weight:g}; expected a weight above 0")
        return scoring.overall(self.tests, weights)

    def compare(self, other: Card) -> Comparison:
        """What changed from another card to this one: the regressions, and everything else.

        Raises:
            AqmlabError: the cards have fewer than two seeds in common, or no test.
        """
        return compared(self, other)

    @cached_property
    def sentence(self) -> str:
        """What is clearly better and clearly worse than the median of the baselines."""
        known = (test for test in self.tests if test.area != scoring.OWN and not test.why)
        scored = [(test, one) for test in known for one in test.measures]
        telling = [(test, one) for test, one in scored if one.measure.letter != scoring.UNSCORED]
        better = [pair for pair in telling if pair[1].better is True]
        worse = [pair for pair in telling if pair[1].better is False]
        if len(self.seeds) < 2:
            return "One seed cannot tell a difference from chance: nothing is compared."
        rest = len(telling) - len(better) - len(worse)
        parts = [
            f"{word} in {len(found)}, {self._most(found, named)}"
            for word, found, named in (("better", better, 1), ("worse", worse, _NAMED))
            if found
        ]
        if rest or not parts:
            parts.append(f"no clear difference that matters in {rest}")
        whom = "the median of the baselines" if self.about is QUEUE else self.about.called
        return f"Beside {whom}, of {len(telling)} numbers: {'; '.join(parts)}."

    def _most(self, found: Sequence[tuple[Test, MeasureScore]], named: int) -> str:
        """The largest differences among some, each of another test, in words.

        Those in which the candidate is worse than every baseline come first.
        """
        about = {row.id: row.scenario for row in self.rows}
        largest: dict[str, str] = {}
        alone: set[str] = set()
        ranked = sorted(
            found, key=lambda pair: (not pair[1].worse_than_all, -scoring.size(pair[1]))
        )
        for test, one in ranked:
            name = one.measure.measure
            words = f"{_PLAIN.get(name, name)} in {test.id} ({about[test.id]}; {change(one)})"
            if largest.setdefault(test.id, words) == words and one.worse_than_all:
                alone.add(words)
        shown = [*largest.values()][:named]
        # With one baseline the sentence has said so.
        says = len(self.baselines) > 1 and alone.issuperset(shown)
        whom = ", worse than every baseline" if says else ""
        return f"above all {' and '.join(shown)}{whom}"

    @property
    def not_tested(self) -> list[tuple[str, str]]:
        """What the card leaves out: tests of this and of further tiers, and why."""
        found = [
            (f"{row.id} ({row.scenario})", row.not_realised or f"in the {row.tier} tier")
            for row in card_rows(TIERS[-1], self.about)
            if row.not_realised or row not in self.rows
        ]
        left = [
            row.id
            for row in self.rows
            if self.only
            and row.id not in {*self._ran, *self.without_place}
            and not row.not_realised
        ]
        return [
            *found,
            *self.without_place.items(),
            *((name, "not asked for") for name in left),
        ]

    @cached_property
    def _ran(self) -> set[str]:
        return set(self.columns["test"])

    def to_json(self) -> dict[str, Any]:
        """The card as JSON; docs/card.schema.json explains its keys."""
        return {
            "card": scoring.VERSION,
            "kind": self.kind,
            "name": self.name,
            "parameters": dict(self.parameters),
            "given": dict(self.given),
            "sha256": self.sha256,
            "engine": self.engine,
            "tier": self.tier,
            "only": list(self.only),
            "seeds": list(self.seeds),
            "ecn": self.ecn,
            "anchor": self.about.anchor,
            "baselines": list(self.baselines),
            "sentence": self.sentence,
            "findings": [one.to_json() for one in self.findings],
            "sealed": None if self.sealed is None else self.sealed.to_json(),
            "gates": [_gate_json(gate) for gate in self.gates],
            "areas": [_area_json(area) for area in self.areas],
            "tests": [_test_json(test) for test in self.tests],
            "not_tested": [{"test": name, "why": why} for name, why in self.not_tested],
            "constants": dict(scoring.CONSTANTS),
            "failures": [list(one) for one in self.failures],
            **({"without_place": dict(self.without_place)} if self.without_place else {}),
            **({"own": [_own_json(*one) for one in self.own_means]} if self.own else {}),
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
                kind=content["kind"],
                ecn=content["ecn"],
                seeds=content["seeds"],
                baselines=content["baselines"],
                columns=content["values"],
                failures=[(cell, seed, why) for cell, seed, why in content["failures"]],
                sealed=Sealed.from_json(content["sealed"]) if content["sealed"] else None,
                without_place=content.get("without_place", {}),
                own=[
                    Measure(**{key: one[key] for key in _MEASURE}, area=scoring.OWN)
                    for one in content.get("own", [])
                ],
            )
        except (KeyError, TypeError, ValueError):
            raise AqmlabError(f"{path}: is damaged; make the card again") from None


def change(one: MeasureScore) -> str:
    """A difference in words: "40 % less", "3.1 times as much"."""
    if one.is_missing:
        return "none ended"
    if not one.is_relative:
        return f"{one.difference.mean:+.2f}"
    ratio = math.exp(one.difference.mean)
    if ratio >= 2:
        return f"{ratio:.0f} times as much" if ratio >= 10 else f"{ratio:.2g} times as much"
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
        "worst": area.worst,
        "settings": area.settings,
    }


def _test_json(test: Test) -> dict[str, Any]:
    return {
        "id": test.id,
        "area": test.area,
        "score": _number(test.score),
        "by_seed": list(test.by_seed),
        "why": test.why,
        "measures": [_measure_json(one) for one in test.measures],
    }


def _own_json(measure: Measure, means: Mapping[str, float]) -> dict[str, Any]:
    return {
        **{key: getattr(measure, key) for key in _MEASURE},
        "means": {queue: _number(value) for queue, value in means.items()},
    }


def _measure_json(one: MeasureScore) -> dict[str, Any]:
    return {
        **{key: value for key, value in asdict(one.measure).items() if key != "test"},
        "settings": one.settings,
        "candidate": _number(one.candidate),
        "droptail": _number(one.droptail),
        "reference": _number(one.reference),
        "baselines": {name: _number(value) for name, value in one.others.items()},
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
