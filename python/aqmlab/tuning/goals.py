"""What a search is for: goals, constraints, and the numbers of a summary that they are about."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from aqmlab import _native
from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.results.metrics import ALL, known_keys
from aqmlab.results.own_metrics import definition
from aqmlab.results.quantity import Quantity
from aqmlab.scenario.scenario import Scenario

__all__ = [
    "Constraint",
    "Goal",
    "check_metric",
    "read_constraints",
    "read_goals",
]


_GOAL = "minimize METRIC or maximize METRIC, several between commas"
_CONSTRAINT = 'a bound such as "loss.forward <= 0.02" or "p90 <= 1.5 s"'
_BOUND = re.compile(r"\s*(?P<metric>\S+)\s*(?P<sign><=|>=)\s*(?P<bound>\S+)\s*(?P<unit>\S+)?\s*")


@dataclass(frozen=True)
class Goal:
    """A number that is to be small or large."""

    metric: str
    """As it was asked for."""
    is_minimized: bool

    def __str__(self) -> str:
        """As ``--goal`` has it."""
        return f"{'minimize' if self.is_minimized else 'maximize'} {self.metric}"

    @property
    def sign(self) -> float:
        """What turns the number into one that is to be small."""
        return 1.0 if self.is_minimized else -1.0

    @property
    def quantity(self) -> Quantity:
        """The number."""
        return Quantity.read(self.metric)


@dataclass(frozen=True)
class Constraint:
    """A number that must not exceed, or fall below, a bound."""

    metric: str
    is_upper: bool
    bound: float
    """In the unit of ``summary.json``."""

    def __str__(self) -> str:
        """As ``--constraint`` has it."""
        return f"{self.metric} {'<=' if self.is_upper else '>='} {self.bound:g}"

    def violation(self, value: float) -> float:
        """By how much a number is on the wrong side: above zero if it is."""
        return value - self.bound if self.is_upper else self.bound - value


def read_goals(texts: Sequence[str]) -> list[Goal]:
    """The goals of some ``--goal`` options."""
    found: dict[str, Goal] = {}
    for part in (part for text in texts for part in text.split(",")):
        verb, _, metric = part.strip().partition(" ")
        if verb not in {"minimize", "maximize"} or not metric.strip():
            hint = nearest(verb, ("minimize", "maximize")) if verb else ""
            raise AqmlabError(f'--goal: found "{part.strip()[:80]}"; expected {_GOAL}{hint}')
        name = metric.strip()
        if name in found:
            raise AqmlabError(f"--goal: found {name} twice; name each metric once")
        found[name] = Goal(name, verb == "minimize")
    if not found:
        raise AqmlabError(f"--goal: is missing; expected {_GOAL}")
    return list(found.values())


def read_constraints(texts: Sequence[str]) -> list[Constraint]:
    """The constraints of some ``--constraint`` options.

    A bound is in the unit of ``summary.json``, or has the unit in which the metric is shown.
    """
    found = []
    for text in texts:
        match = _BOUND.fullmatch(text)
        number = _number(match["bound"]) if match else None
        if match is None or number is None:
            raise AqmlabError(f'--constraint: found "{text[:80]}"; expected {_CONSTRAINT}')
        if unit := match["unit"]:
            number /= _scale(match["metric"], unit)
        found.append(Constraint(match["metric"], match["sign"] == "<=", number))
    return found


def _number(text: str) -> float | None:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _scale(metric: str, unit: str) -> float:
    """What turns the summary's number into a unit, which has to be that of the metric."""
    try:
        found = Quantity.read(metric)
    except AqmlabError as error:
        raise AqmlabError(f"--constraint: {error}") from None
    if found.unit != unit:
        known = found.unit or "no unit"
        raise AqmlabError(f'--constraint: found the unit "{unit}" of {metric}; expected {known}')
    return found.scale


def check_metric(option: str, name: str, scenario: Scenario) -> None:
    """Raises an error, before any run, if the results of a scenario will have no such number."""
    try:
        found = Quantity.read(name)
        _ = found.column
    except AqmlabError as error:
        raise AqmlabError(f"{option}: {error}") from None
    if found.is_of_every_link:
        return
    if found.own is not None:
        definition(found.last).check(scenario.data)
        return
    section, places, last = found.section, found.place.split("."), found.last
    owners = _links(scenario) if section == "links" else _classes(scenario)
    what = "link" if section == "links" else "class of traffic"
    if places[0] not in owners:
        raise AqmlabError(
            f"{option}: {name}: {scenario.name} has no {what} {places[0]}"
            f"{nearest(places[0], owners)} (there is {', '.join(owners)})"
        )
    if last not in known_keys(section):
        raise AqmlabError(
            f"{option}: {name}: there is no {last}{nearest(last, known_keys(section))}"
        )
    ways = ("down", "up") if places[0] == "wifi" else ("forward", "reverse")
    if section == "links" and places[1:] and places[1:] not in [[way] for way in ways]:
        raise AqmlabError(f"{option}: {name}: a link has the directions {' and '.join(ways)}")


def _links(scenario: Scenario) -> list[str]:
    """Names of the links that traffic crosses."""
    hops = [
        link
        for index in range(len(scenario.data["traffic"]))
        for link, _, _ in _native.loaded_links(scenario.effective, index)
    ]
    air = ["wifi"] if scenario.data["topology"].get("wifi") else []
    return [*dict.fromkeys(hops), *air]


def _classes(scenario: Scenario) -> list[str]:
    """Names of the classes of traffic, and of all together."""
    return [ALL, *(str(entry["name"]) for entry in scenario.data["traffic"])]
