"""What a search for the worst is about: its bounds, its scenarios, what it found.

Numbers are compared in points, the steps of a control's card: one point is twice the time, half the
rate, an opinion score less by one, or Jain's index less by a quarter.
"""

from __future__ import annotations

import csv
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from aqmlab import _native
from aqmlab._util.fields import Scalar
from aqmlab.cards.generator import SuiteCell
from aqmlab.cards.kinds import QUEUE
from aqmlab.cards.measures import values
from aqmlab.cards.scoring import LOGS, points, step
from aqmlab.cards.suites import Measure, Row, measures
from aqmlab.results.run import Run
from aqmlab.results.statistics import Estimate
from aqmlab.tuning.space import Variable, read_variables

__all__ = [
    "BOUNDS",
    "FILE",
    "TESTS",
    "Bound",
    "Numbers",
    "Values",
    "Worst",
    "WorstChange",
    "bounds",
    "cell_of",
    "lost",
    "numbers_of",
    "whole",
]


BOUNDS = Path(__file__).parent / "suites" / "worst.csv"
"""Within which scenarios are searched, and where each bound comes from."""
FILE = "worst.toml"
"""The scenario in the folder of its search."""
_MOST = 4.0
"""Points of a number beyond which more does not count."""
_WARM_UP, _DURATION = 20.0, 40.0
"""Seconds."""
_PERIOD = 10
"""Seconds between changes of the rate."""
TESTS = {"queue": "a-worst", "control": "c-worst"}
"""By kind of candidate: the row of ``measures.csv``."""
Values = Mapping[str, Scalar]
Numbers = Mapping[str, float]
"""By measure."""


@dataclass(frozen=True)
class Bound:
    """Between what a part of a scenario is searched."""

    variable: Variable
    plain: Scalar
    """Its value in a simple scenario."""
    meaning: str
    source: str

    @property
    def searched(self) -> str:
        """What is searched, in words."""
        one = self.variable
        return ", ".join(one.choices) or f"{one.low:g} to {one.high:g} {one.unit}".strip()


@dataclass(frozen=True)
class WorstChange:
    """A number behind the candidate and behind a baseline, on fresh seeds."""

    measure: Measure
    mine: float
    theirs: float
    """Means over the seeds."""
    points: Estimate
    """By how many points the candidate is worse, seed by seed."""

    @property
    def is_ratio(self) -> bool:
        """Whether the difference is a factor."""
        return self.measure.letter in LOGS

    @property
    def difference(self) -> Estimate:
        """The candidate's number over the other's, or where points are no ratios, less it."""
        size = step(self.measure) * (1 if self.measure.less_is_better else -1)
        mean, *ends = (
            math.exp(size * one) if self.is_ratio else size * one
            for one in (self.points.mean, self.points.low, self.points.high)
        )
        return replace(self.points, mean=mean, low=min(ends), high=max(ends))

    def sentence(self, other: str) -> str:
        """The change in words.

        Args:
            other: the name of the baseline.
        """
        change = self.difference
        ends = "" if math.isnan(change.low) else f" (95 %: {change.low:.2g} to {change.high:.2g})"
        if self.is_ratio:
            return f"{self.measure.measure} is {change.mean:.2g} times that of {other}{ends}"
        way = "less" if change.mean < 0 else "more"
        return f"{self.measure.measure} is {abs(change.mean):.2g} {way} than that of {other}{ends}"


@dataclass(frozen=True)
class Worst:
    """What a search found."""

    kind: str
    """``queue`` or ``control``."""
    name: str
    other: str
    """The one that does best in its place."""
    values: Values
    """The parts of the scenario."""
    regret: float
    """In the search, before the scenario was made simpler."""
    tried: int
    """Scenarios that were tried, the simpler ones included."""
    failed: int
    """Those of which a run ended in an error."""
    seeds: Sequence[int]
    """Those of the changes."""
    changes: Sequence[WorstChange]
    """The worst one first."""
    text: str
    """The scenario as TOML."""
    instead: str
    """The override that puts the baseline in the place of the candidate."""

    @property
    def file(self) -> str:
        """The scenario with a head that says what it shows."""
        seeds = f"Seeds {self.seeds[0]} to {self.seeds[-1]}, engine {_native.engine()}."
        again = f"The same with {self.other}: aqmlab run {FILE} --set '{self.instead}'"
        head = [*textwrap.wrap(self.sentence, 96), seeds, again]
        return "".join(f"# {line}\n" for line in head) + self.text.partition("\n")[2]

    @property
    def sentence(self) -> str:
        """What was found, and whether it lasts."""
        if not self.clear:
            return (
                f"No scenario was found in which {self.name} is clearly worse than the best of the "
                "others."
            )
        return f"{self.name}: {self.changes[0].sentence(self.other)}."

    @property
    def clear(self) -> bool:
        """Whether the candidate is worse on fresh seeds too: the interval leaves out zero."""
        return self.changes[0].points.mean > 0 and self.changes[0].points.clear


@cache
def bounds(kind: str) -> tuple[Bound, ...]:
    """The bounds for a kind of candidate.

    Args:
        kind: ``queue`` or ``control``.
    """
    with BOUNDS.open(encoding="utf-8", newline="") as file:
        own = [row for row in csv.DictReader(file) if row["kind"] in ("both", kind)]
    texts = [f"{row['name']}={row['range']}" for row in own]
    variables = read_variables(texts, "", [row["name"] for row in own])
    return tuple(
        Bound(one, _plain(one, row["plain"]), row["meaning"], row["source"])
        for one, row in zip(variables, own, strict=True)
    )


def _plain(variable: Variable, text: str) -> Scalar:
    return text if variable.choices else variable.value(float(text))


def cell_of(kind: str, found: Values) -> SuiteCell:
    """The scenario of some values, for any candidate."""
    rate, fall = float(found["rate"]), float(found["fall"])
    under_test = (
        f"{found['long']} {found['control']}, name=long, start_within=2 s"
        if kind == QUEUE.name
        else f"{found['long']} subject, name=subject, start_within=2 s; "
        f"{found['other']} cubic, name=other, tcp.timestamps=true, start_within=2 s"
    )
    classes = [
        under_test,
        f"{found['pages']} pages, name=web, think=2 s",
        "2 calls, name=calls, direction=both",
    ]
    if float(found["cbr"]) > 0:
        classes.append(f"1 cbr, name=cbr, rate={found['cbr']:g}C")
    link = [f"loss = {found['loss']:g}"] if float(found["loss"]) > 0 else []
    if fall > 1:
        link.append(_falls(rate, fall))
    row = Row(
        id=TESTS[kind],
        section="laboratory",
        scenario="the worst that a search found",
        rate=f"{rate:g} Mbit/s",
        rtt=f"{found['rtt']:g} ms",
        buffer=f"{found['buffer']:g} ms",
        traffic="; ".join(classes),
        link=", ".join(link),
        queue="" if found.get("queue", "droptail") == "droptail" else str(found["queue"]),
        warm_up=f"{_WARM_UP:g} s",
        duration=f"{_DURATION:g} s",
    )
    return SuiteCell(row, 0, "")


def _falls(rate: float, fall: float) -> str:
    """A rate that falls and comes back, as a key of a link."""
    ends = range(1, math.ceil((_WARM_UP + _DURATION) / _PERIOD))
    steps = [
        f'{{ at = "{k * _PERIOD} s", rate = "{rate / (fall if k % 2 else 1):g} Mbit/s" }}'
        for k in ends
    ]
    return f"rate_changes = [{', '.join(steps)}]"


def numbers_of(run: Run, kind: str) -> dict[str, float]:
    """What is compared of a run, by measure; pages of which none ended took the whole time."""
    cell = SuiteCell(Row(TESTS[kind], "", ""), 0, "")
    return whole(values(run, cell), kind)


def whole(found: Numbers, kind: str) -> dict[str, float]:
    """Some numbers, with those of what never came to an end."""
    late = {
        one.measure: _DURATION for one in _measures(kind) if one.letter == "D" and one.unit == "ms"
    }
    return {**late, **found}


@cache
def _measures(kind: str) -> tuple[Measure, ...]:
    return tuple(one for one in measures() if one.test == TESTS[kind])


def lost(
    kind: str, mine: Sequence[Numbers], theirs: Sequence[Numbers]
) -> Iterator[tuple[Measure, list[float]]]:
    """By how many points the candidate is worse in each number, seed by seed.

    Args:
        kind: ``queue`` or ``control``.
        mine: the candidate's numbers, of each seed.
        theirs: those of a baseline.
    """
    for measure in _measures(kind):
        name = measure.measure
        if all(name in one for one in (*mine, *theirs)):
            pairs = [(one[name], other[name]) for one, other in zip(mine, theirs, strict=True)]
            found = (points(measure, *pair) for pair in pairs)
            yield measure, [min(_MOST, max(-_MOST, one)) for one in found]
