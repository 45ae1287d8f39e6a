"""What a search found: its settings weighed against each other, and what was chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqmlab._util.fields import Scalar
from aqmlab._util.lazy import np
from aqmlab.errors import AqmlabError
from aqmlab.results.statistics import Estimate, Floats, paired_difference
from aqmlab.tuning.plan import Plan
from aqmlab.tuning.study import MEASURED, Trial

__all__ = ["Check", "Choice", "Numbers", "Scales", "Tuning", "balanced", "checks", "front"]


Numbers = Mapping[str, list[list[float]]]
"""By metric: for each scenario a number for each seed."""


@dataclass(frozen=True)
class Scales:
    """What makes one number per goal of several scenarios and seeds.

    Of one scenario that is its metric. Several scenarios are weighed alike: each by the ratio to
    what it gives without tuning.
    """

    plan: Plan
    units: Mapping[str, list[float]]
    """By metric of a goal: for each scenario what its numbers are divided by."""

    @classmethod
    def of(cls, plan: Plan, untuned: Numbers) -> Scales:
        """The scales; an error if a scenario's number without tuning is zero."""
        units = {}
        for goal in plan.goals:
            means = [float(np.mean(row)) for row in untuned[goal.metric]]
            if len(means) == 1:
                means = [1.0]
            for scenario, mean in zip(plan.scenarios, means, strict=True):
                if not mean > 0:
                    raise AqmlabError(
                        f"--goal: {goal.metric} is {mean:g} in {scenario.name} without tuning, so "
                        "that scenarios cannot be weighed against each other by it; make it a "
                        "--constraint, or tune the scenarios one by one"
                    )
            units[goal.metric] = means
        return cls(plan, units)

    def mean(self, numbers: Numbers) -> tuple[float, ...]:
        """For each goal the mean over scenarios and seeds."""
        return tuple(float(self._scaled(numbers, one.metric).mean()) for one in self.plan.goals)

    def worst(self, numbers: Numbers) -> tuple[float, ...]:
        """For each goal the worst scenario and seed."""
        return tuple(
            goal.sign * float((goal.sign * self._scaled(numbers, goal.metric)).max())
            for goal in self.plan.goals
        )

    def _scaled(self, numbers: Numbers, metric: str) -> Floats:
        """The numbers of a metric, scenarios by seeds."""
        found: Floats = np.array(numbers[metric]) / np.array(self.units[metric])[:, np.newaxis]
        return found

    def violations(self, numbers: Numbers) -> tuple[float, ...]:
        """For each constraint the largest violation over the scenarios, of the mean over seeds."""
        return tuple(
            max(one.violation(float(np.mean(row))) for row in numbers[one.metric])
            for one in self.plan.constraints
        )


def front(vectors: Sequence[Sequence[float]]) -> list[int]:
    """Which of some vectors no other vector beats: is at least as small everywhere, and differs."""
    rows = np.array(vectors, dtype=float)
    return [
        index
        for index, row in enumerate(rows)
        if not np.any(np.all(rows <= row, axis=1) & np.any(rows < row, axis=1))
        and not np.any(np.all(rows[:index] == row, axis=1))  # equal ones count once
    ]


def balanced(vectors: Sequence[Sequence[float]]) -> int:
    """The vector of the front whose largest shortfall is least.

    Each number counts from the best on the front, 0, to the worst on it, 1. Of one number it is the
    smallest.
    """
    best = front(vectors)
    rows = np.array([vectors[index] for index in best], dtype=float)
    span = rows.max(axis=0) - rows.min(axis=0)
    scaled = (rows - rows.min(axis=0)) / np.where(span > 0, span, 1.0)
    order = sorted(range(len(best)), key=lambda k: (scaled[k].max(), scaled[k].sum(), best[k]))
    return best[order[0]]


@dataclass(frozen=True)
class Check:
    """A goal of a scenario on fresh seeds: the chosen setting against the untuned scenario."""

    scenario: str
    metric: str
    is_minimized: bool
    untuned: float
    """Mean over the fresh seeds."""
    tuned: float
    change: Estimate
    """Tuned minus untuned, seed by seed."""
    promised: float
    """Tuned minus untuned on the seeds of the search."""

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` where the interval says so, else ``unclear``."""
        sign = 1.0 if self.is_minimized else -1.0
        if not self.change.clear:
            return "unclear"
        return "better" if sign * self.change.mean < 0 else "worse"

    @property
    def was_luck(self) -> bool:
        """Whether the search promised a gain that fresh seeds do not bear out."""
        sign = 1.0 if self.is_minimized else -1.0
        return sign * self.promised < 0 and self.verdict != "better"


@dataclass(frozen=True)
class Choice:
    """A setting that was chosen, and how it does on fresh seeds."""

    trial: Trial
    checks: tuple[Check, ...]
    missed: tuple[str, ...] = ()
    """Constraints that do not hold there."""

    @property
    def gains(self) -> bool:
        """Whether some goal is clearly better than untuned on fresh seeds."""
        return any(check.verdict == "better" for check in self.checks)


def checks(plan: Plan, trial: Trial, before: Numbers, untuned: Numbers, tuned: Numbers) -> Choice:
    """How a setting does on fresh seeds.

    Args:
        plan: what was searched for.
        trial: the setting, with the numbers of the search.
        before: the untuned numbers on the seeds of the search.
        untuned: those on fresh seeds.
        tuned: the setting's on fresh seeds.
    """
    found = []
    for index, scenario in enumerate(plan.scenarios):
        for goal in plan.goals:
            first, second = untuned[goal.metric][index], tuned[goal.metric][index]
            promised = np.subtract(trial.measured[goal.metric][index], before[goal.metric][index])
            found.append(
                Check(
                    scenario.name,
                    goal.metric,
                    goal.is_minimized,
                    float(np.mean(first)),
                    float(np.mean(second)),
                    paired_difference(first, second, bounds=goal.quantity.bounds),
                    float(promised.mean()),
                )
            )
    missed = [
        str(one)
        for one in plan.constraints
        if max(one.violation(float(np.mean(row))) for row in tuned[one.metric]) > 0
    ]
    return Choice(trial, tuple(found), tuple(missed))


@dataclass(frozen=True)
class Tuning:
    """The result of a search: settings that were tried, the front, the choices.

    Numbers of goals are means over scenarios and seeds: of one scenario in the unit of
    ``summary.json``, of several the ratio to what the scenario gives without tuning.

    Example:
        >>> import aqmlab
        >>> short = {"measure.warm_up": "1 s", "measure.duration": "2 s"}
        >>> scenario = aqmlab.Scenario.load("scenarios/bulk.toml").with_overrides(short)
        >>> found = aqmlab.tune(
        ...     scenario,
        ...     vary="discipline.limit=10..200 packets:log:whole",
        ...     goal="minimize delay",
        ...     trials=4, seeds=[1], confirm=2,
        ... )
        >>> [trial.number for trial in found.front] == [found.best.trial.number]
        True
        >>> found.best.trial.values["limit"] == min(one.values["limit"] for one in found.trials)
        True
        >>> found.scales.mean(found.best.trial.measured) < found.scales.mean(found.untuned)
        True
    """

    plan: Plan
    folder: Path
    """Where it is written."""
    untuned: Numbers
    """The untuned scenarios, on the seeds of the search."""
    trials: Sequence[Trial]
    importance: Mapping[str, Mapping[str, float] | None]
    """By goal: each variable's share; None: not known."""
    scales: Scales
    best: Choice | None = None
    """The setting with the best mean, of several goals the balanced one; None: none is possible."""
    robust: Choice | None = None
    """The setting whose worst scenario and seed is best."""
    front: Sequence[Trial] = field(default_factory=tuple)
    """The settings that no other setting beats in all goals; the first goal's best comes first."""

    @property
    def feasible(self) -> list[Trial]:
        """The settings that were measured and for which all constraints hold."""
        return [one for one in self.trials if self.is_feasible(one)]

    def is_feasible(self, trial: Trial) -> bool:
        """Whether a setting was measured and all constraints hold."""
        return trial.state == MEASURED and all(
            violation <= 0 for violation in self.scales.violations(trial.measured)
        )

    def row(self, trial: Trial) -> dict[str, Any]:
        """A setting for a table: values, what became of it, goals, constraints, by their names."""
        found: dict[str, Any] = {"trial": trial.number, **self.plan.values(trial.values)}
        found["state"] = trial.state
        if trial.state == MEASURED and not self.is_feasible(trial):
            found["state"] = "constrained"
        known = trial.state == MEASURED
        means = self.scales.mean(trial.measured) if known else ()
        worst = self.scales.worst(trial.measured) if known else ()
        for index, goal in enumerate(self.plan.goals):
            found[goal.metric] = means[index] if known else None
            found[f"{goal.metric}.worst"] = worst[index] if known else None
        for one in self.plan.constraints:
            rows = trial.measured[one.metric] if known else []
            found[str(one)] = (
                [float(np.mean(row)) for row in rows]
                if len(rows) > 1
                else (float(np.mean(rows[0])) if known else None)
            )
        found["error"] = trial.error or None
        return found

    @property
    def defaults_as_good(self) -> bool | None:
        """Whether no choice is clearly better than untuned on fresh seeds; None: not known.

        One fresh seed has no interval, and says nothing.
        """
        choices = [choice for choice in (self.best, self.robust) if choice is not None]
        if not choices or len(self.plan.fresh_seeds) < 2:
            return None
        return not any(choice.gains for choice in choices)

    def to_json(self) -> dict[str, Any]:
        """For ``tune.json``."""
        return {
            "plan": {
                **self.plan.identity,
                "trials": self.plan.trials,
                "fresh_seeds": list(self.plan.fresh_seeds),
            },
            "untuned": self.untuned,
            "defaults_as_good": self.defaults_as_good,
            "trials": [self.row(trial) for trial in self.trials],
            "front": [trial.number for trial in self.front],
            "importance": self.importance,
            **{
                name: None if choice is None else _json(choice, self.plan)
                for name, choice in (("best", self.best), ("robust", self.robust))
            },
        }


def _json(choice: Choice, plan: Plan) -> dict[str, Any]:
    """A choice for ``tune.json``."""
    values: dict[str, Scalar] = plan.values(choice.trial.values)
    return {
        "trial": choice.trial.number,
        "values": values,
        "missed_constraints": list(choice.missed),
        "fresh": [
            {
                "scenario": one.scenario,
                "metric": one.metric,
                "untuned": one.untuned,
                "tuned": one.tuned,
                "difference": one.change.mean,
                "low": None if math.isnan(one.change.low) else one.change.low,
                "high": None if math.isnan(one.change.high) else one.change.high,
                "method": one.change.method,
                "pairs": one.change.count,
                "promised": one.promised,
                "verdict": one.verdict,
                "was_luck": one.was_luck,
            }
            for one in choice.checks
        ],
    }
