"""What is to be tuned: scenarios, what varies in them, goals, seeds, and how long to search."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from string import Template
from typing import Any

from aqmlab import _native
from aqmlab._util.expressions import Expression
from aqmlab._util.fields import Field, Scalar
from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.results.own_metrics import definition
from aqmlab.results.quantity import Quantity
from aqmlab.scenario.scenario import Override, Scenario
from aqmlab.sweeps.axes import names_in, plain, variable_name
from aqmlab.tuning.goals import Constraint, Goal, check_metric, read_constraints, read_goals
from aqmlab.tuning.space import Variable, read_variables

__all__ = ["Plan"]


_BATCH = 4
"""Settings that are proposed before any of them is known: the same on every machine, so that the
search does not depend on how many runs are made at a time."""

_PROBES = 40
"""Settings that are tried before the first run, to find what is wrong with all of them."""


@dataclass(frozen=True)
class Plan:
    """A search that has not begun."""

    scenarios: tuple[Scenario, ...]
    """As they are without the search: what tuned ones are compared with."""
    variables: tuple[Variable, ...]
    derived: Mapping[str, Expression]
    settings: tuple[Override, ...]
    """Fields of every tuned scenario whose values use ``$name``."""
    goals: tuple[Goal, ...]
    constraints: tuple[Constraint, ...]
    seeds: tuple[int, ...]
    trials: int
    confirm: int
    """Number of fresh seeds that test the chosen settings."""
    batch: int = _BATCH

    @classmethod
    def make(
        cls,
        scenarios: Sequence[Scenario | str | os.PathLike[str]],
        *,
        vary: Sequence[str],
        goal: Sequence[str],
        constraints: Sequence[str],
        settings: Sequence[Override],
        derive: Mapping[str, str],
        seeds: Sequence[int],
        trials: int,
        confirm: int,
        batch: int,
    ) -> Plan:
        """A plan, whose every part is checked; nothing is run."""
        for name, number, least in (
            ("trials", trials, 1),
            ("confirm", confirm, 2),
            ("batch", batch, 1),
        ):
            if number < least:
                raise AqmlabError(f"--{name}: found {number}; expected a whole number from {least}")
        if not scenarios or not seeds:
            raise AqmlabError("a search needs at least one scenario and one seed")
        plain_ones = [pair for pair in settings if not names_in(pair[1])]
        loaded = [_loaded(entry, plain_ones) for entry in scenarios]
        names = [scenario.name for scenario in loaded]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise AqmlabError(
                f"two of the scenarios are called {twice}; give each a name of its own"
            )
        derived = {name: _expression(name, text) for name, text in derive.items()}
        filled = [pair for pair in settings if names_in(pair[1])]
        used = set().union(
            *(names_in(text) for _, text in filled),
            *(expression.names for expression in derived.values()),
        )
        found = cls(
            scenarios=tuple(loaded),
            variables=tuple(read_variables(vary, loaded[0].source, used)),
            derived=derived,
            settings=tuple(filled),
            goals=tuple(read_goals(goal)),
            constraints=tuple(read_constraints(constraints)),
            seeds=tuple(dict.fromkeys(seeds)),
            trials=trials,
            confirm=confirm,
            batch=batch,
        )
        found._check()
        return found

    def _check(self) -> None:
        """Raises an error for names that nothing has, for metrics, and if nothing can be run."""
        names = [variable.name for variable in self.variables]
        for name in self.derived:
            if name in names:
                raise AqmlabError(f"--derive {name}: --vary has a variable of this name already")
        known = [*names, *self.derived]
        used = set().union(*(expression.names for expression in self.derived.values()))
        for path, text in self.settings:
            for name in sorted(names_in(text) - set(known)):
                raise AqmlabError(
                    f"--set {path}: uses ${name}, which is no variable{nearest(name, known)}; "
                    "$$ is a dollar sign"
                )
            used |= names_in(text)
        for variable in self.variables:
            if not variable.path and variable.name not in used:
                raise AqmlabError(
                    f"--vary {variable.name}: changes nothing; give the path of a field, such as "
                    f"topology.bottleneck.{variable.name}, or use ${variable.name} in --set"
                )
        for scenario in self.scenarios:
            for goal in self.goals:
                check_metric("--goal", goal.metric, scenario)
            for constraint in self.constraints:
                check_metric("--constraint", constraint.metric, scenario)
        self._try_some()

    def _try_some(self) -> None:
        """Raises an error if none of some settings of all ranges gives scenarios."""
        errors = [error for error in map(self.refusal, self._probes()) if error is not None]
        if len(errors) == _PROBES:
            raise errors[0]

    def _probes(self) -> Iterator[dict[str, Scalar]]:
        """The middle of all ranges, their ends, and settings here and there."""
        draws = Random(0)
        for number in range(_PROBES):
            yield {
                one.name: one.some[(len(one.some) // 2, 0, -1)[number]]
                if number < 3
                else draws.choice(one.some)
                for one in self.variables
            }

    def refusal(self, proposed: Mapping[str, Scalar]) -> AqmlabError | None:
        """Why a setting is no scenario; None: it is one."""
        try:
            for index in range(len(self.scenarios)):
                self.scenario_of(proposed, index)
        except AqmlabError as error:
            return error
        return None

    def values(self, proposed: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """All variables of a setting, the derived ones included."""
        found = dict(proposed)
        for name, expression in self.derived.items():
            found[name] = _computed(name, expression, found)
        return found

    def scenario_of(self, proposed: Mapping[str, Scalar], index: int) -> Scenario:
        """One of the scenarios with the values of a setting."""
        values = self.values(proposed)
        texts = {name: plain(value) for name, value in values.items()}
        pairs = [(path, Template(text).substitute(texts)) for path, text in self.settings]
        pairs += [(one.path, one.text(values[one.name])) for one in self.variables if one.path]
        base = self.scenarios[index]
        try:
            return base.with_overrides(pairs)
        except ScenarioError as error:
            raise ScenarioError(f"{error} (at {self.label(proposed)}, {base.name})") from None

    def label(self, proposed: Mapping[str, Scalar]) -> str:
        """A setting in words."""
        return ", ".join(f"{one.name} = {one.shown(proposed[one.name])}" for one in self.variables)

    @property
    def fresh_seeds(self) -> tuple[int, ...]:
        """Seeds that the search has not seen."""
        return tuple(max(self.seeds) + number for number in range(1, self.confirm + 1))

    @property
    def metrics(self) -> list[str]:
        """Every number that is looked at, each once."""
        names = [goal.metric for goal in self.goals]
        return list(dict.fromkeys([*names, *(bound.metric for bound in self.constraints)]))

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What identifies a search, as JSON; how long it lasts does not."""
        return {
            "scenarios": {one.name: _hash(one.effective) for one in self.scenarios},
            "vary": list(map(str, self.variables)),
            "derive": {name: expression.text for name, expression in self.derived.items()},
            "set": [list(pair) for pair in self.settings],
            "goal": list(map(str, self.goals)),
            "constraint": list(map(str, self.constraints)),
            "seeds": list(self.seeds),
            "batch": self.batch,
            "engine": _native.engine(),
            **({"metric": own} if (own := self._own_metrics()) else {}),
        }

    def _own_metrics(self) -> dict[str, str]:
        """The texts of metrics of one's own by name."""
        found = (Quantity.read(name) for name in self.metrics)
        return {one.last: definition(one.last).text for one in found if one.own is not None}


def _hash(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _loaded(entry: Scenario | str | os.PathLike[str], settings: Sequence[Override]) -> Scenario:
    """A scenario with some fields replaced."""
    if isinstance(entry, Scenario):
        return entry.with_overrides(settings) if settings else entry
    return Scenario.load(Path(entry), settings)


def _computed(name: str, expression: Expression, values: Mapping[str, Scalar]) -> Scalar:
    """The value of a derived variable."""
    try:
        found: Scalar = expression.value(values)
    except AqmlabError as error:
        raise AqmlabError(f"--derive {name}: {error}") from None
    return found


def _expression(name: str, text: str) -> Expression:
    """What a derived variable is computed by."""
    variable_name(Field(f"--derive {name}", name))
    try:
        return Expression.parse(text)
    except AqmlabError as error:
        raise AqmlabError(f"--derive {name}: {error}") from None
