"""A search on the terminal: its front, what matters, and whether what was chosen holds."""

from __future__ import annotations

import math
from collections.abc import Iterator

from aqmlab._util.table import Cell, TableModel
from aqmlab.results.formats import format_change
from aqmlab.tuning.goals import Goal
from aqmlab.tuning.outcome import Check, Choice, Numbers, Tuning
from aqmlab.tuning.study import Trial

__all__ = ["checks_table", "front_table", "importance_table", "sentences"]


_MOST = 20
"""Most settings of a front that are shown; front.tsv has all."""


def front_table(found: Tuning) -> TableModel:
    """The untuned scenario, and the settings that no other setting beats."""
    several = len(found.plan.scenarios) > 1
    what = "goals: ratios to untuned, mean over scenarios" if several else "goals: means over seeds"
    title = "Pareto front" if len(found.plan.goals) > 1 else "best setting"
    table = TableModel(
        f"{title} of {len(found.trials)} settings ({what}; worst: scenario and seed)"
    )
    table.add_key("setting")
    for variable in found.plan.variables:
        table.add_number(f"{variable.name} {variable.unit}".strip())
    for name in found.plan.derived:
        table.add_number(name)
    for goal in found.plan.goals:
        table.add_number(_head(goal, several))
        table.add_number("worst")
    blanks = ["-"] * (len(found.plan.variables) + len(found.plan.derived))
    table.add_row("untuned", *blanks, *_goals(found, found.untuned))
    shown = list(found.front[:_MOST])
    for choice in (found.best, found.robust):
        if choice is not None and choice.trial not in shown:
            shown.append(choice.trial)
    for trial in shown:
        values = found.plan.values(trial.values)
        texts = [
            f"{value:.4g}" if isinstance(value, float) else str(value) for value in values.values()
        ]
        table.add_row(_name(found, trial), *texts, *_goals(found, trial.measured))
    return table


def _name(found: Tuning, trial: Trial) -> str:
    """A setting by its number and by what it was chosen as."""
    names = [
        name
        for name, choice in (("best", found.best), ("robust", found.robust))
        if choice is not None and choice.trial.number == trial.number
    ]
    return f"{trial.number} ({', '.join(names)})" if names else f"{trial.number}"


def _head(goal: Goal, several: bool) -> str:
    """The head of a goal's column."""
    return (
        goal.metric if several or not goal.quantity.unit else f"{goal.metric} {goal.quantity.unit}"
    )


def _goals(found: Tuning, numbers: Numbers) -> list[str]:
    """For each goal the mean and the worst."""
    several = len(found.plan.scenarios) > 1
    means, worst = found.scales.mean(numbers), found.scales.worst(numbers)
    cells = []
    for goal, mean, least in zip(found.plan.goals, means, worst, strict=True):
        scale = 1.0 if several else goal.quantity.scale
        cells += [f"{scale * mean:.4g}", f"{scale * least:.4g}"]
    return cells


def importance_table(found: Tuning) -> TableModel | None:
    """Each variable's share for each goal; None where nothing tells."""
    if not any(found.importance.values()):
        return None
    title = "importance: what decides whether a setting is among the good ones (%)"
    table = TableModel(title, ["variable"], (goal.metric for goal in found.plan.goals))
    for variable in found.plan.variables:
        shares = [found.importance[goal.metric] for goal in found.plan.goals]
        cells = [
            "-" if one is None else f"{100 * one.get(variable.name, 0.0):.0f}" for one in shares
        ]
        table.add_row(variable.name, *cells)
    return table


def checks_table(found: Tuning) -> TableModel:
    """The chosen settings against the untuned scenario, on fresh seeds; clear changes are bold."""
    count = len(found.plan.fresh_seeds)
    table = TableModel(
        f"on {count} fresh seeds: difference to untuned, seed by seed, with 95 % intervals",
        ["choice", "scenario", "goal"],
        ["untuned", "tuned", "difference", "promised"],
    )
    for name, choice in _choices(found):
        for check in choice.checks:
            table.add_row(name, check.scenario, check.metric, *_cells(found, check))
    return table


def _choices(found: Tuning) -> Iterator[tuple[str, Choice]]:
    """The choices by name; one that is both is shown once."""
    assert found.best is not None
    assert found.robust is not None
    if found.best.trial == found.robust.trial:
        yield "best, robust", found.best
        return
    yield "best", found.best
    yield "robust", found.robust


def _cells(found: Tuning, check: Check) -> list[str | Cell]:
    """The numbers of a check in the unit of its metric."""
    [goal] = [goal for goal in found.plan.goals if goal.metric == check.metric]
    scale, change = goal.quantity.scale, check.change
    digits = 4
    if change.half_width > 0:
        digits = max(0, 1 - math.floor(math.log10(scale * change.half_width)))
    text = format_change(change, lambda value: f"{scale * value:+.{digits}f}")
    return [
        f"{scale * check.untuned:.{digits}f}",
        f"{scale * check.tuned:.{digits}f}",
        Cell(text, "clear" if change.clear else ""),
        f"{scale * check.promised:+.{digits}f}",
    ]


def sentences(found: Tuning) -> Iterator[str]:
    """Whether the gains are real, or were luck."""
    for name, choice in _choices(found):
        for check in choice.checks:
            where = f"{check.metric} in {check.scenario}"
            if check.was_luck:
                yield (
                    f"{name}: the gain of {where} is not borne out by fresh seeds: it may have "
                    "been luck."
                    if check.verdict == "unclear"
                    else f"{name}: the gain of {where} was luck: it is worse on fresh seeds."
                )
            elif check.verdict == "better":
                yield f"{name}: the gain of {where} holds on fresh seeds."
            elif check.verdict == "worse":
                yield f"{name}: {where} is worse than untuned, as the search had it."
            else:
                yield f"{name}: {where} does not clearly differ from untuned."
        for constraint in choice.missed:
            yield f"{name}: on fresh seeds {constraint} does not hold."
    if found.defaults_as_good:
        yield (
            "The defaults are as good: on fresh seeds no setting is clearly better than untuned in "
            "any goal."
        )
