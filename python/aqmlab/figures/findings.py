"""Titles of figures: what the data say, and no more than their seeds bear out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aqmlab._util.words import capital
from aqmlab.results.statistics import Estimate, independent_difference, paired_difference

__all__ = ["Finding", "Values", "change", "finding", "is_single", "shown"]


Values = Mapping[int, float]
"""A number by seed, in the unit in which it is shown."""


@dataclass(frozen=True)
class Finding:
    """A named number, by seed."""

    label: str
    values: Values

    @property
    def mean(self) -> float:
        """Its mean over the seeds."""
        return float(np.mean(list(self.values.values())))


def finding(found: Sequence[Finding], what: str, unit: str, *, is_change: bool = True) -> str:
    """What some configurations' numbers say, in a sentence.

    A difference that the seeds do not bear out is not stated as one: where the 95 % interval of the
    difference holds zero, the sentence says so; of one seed it says that it is one seed.

    Args:
        found: the numbers.
        what: what they are.
        unit: their unit.
        is_change: whether the second of two is what became of the first.
    """
    known = [one for one in found if one.values]
    if not known:
        return f"{capital(what)}: nothing was measured"
    one_seed = " (one seed)" if is_single(known) else ""
    if len(known) == 1:
        return f"{capital(what)} is {_with_unit(known[0].mean, unit)}{one_seed}"
    ranked = sorted(known, key=lambda one: one.mean)
    is_change = is_change and len(known) == 2
    least, most = (known[0], known[1]) if is_change else (ranked[0], ranked[-1])
    first, last = shown(least.mean), shown(most.mean)
    if first == last:
        return f"{capital(what)} is {first}{_space(unit)} throughout{one_seed}"
    if not one_seed and not change(least, most).clear:
        low, high = shown(ranked[0].mean), shown(ranked[-1].mean)
        return f"{capital(what)} does not clearly differ: {low} to {high}{_space(unit)}"
    if is_change:
        verb = "cuts" if most.mean < least.mean else "raises"
        return f"{most.label} {verb} the {what} from {first} to {last}{_space(unit)}{one_seed}"
    return (
        f"{capital(what)}: from {first}{_space(unit)} ({least.label}) to {last}{_space(unit)} "
        f"({most.label}){', one seed' if one_seed else ''}"
    )


def is_single(found: Sequence[Finding]) -> bool:
    """Whether one seed is all that there is of one of them."""
    return any(len(one.values) < 2 for one in found)


def change(first: Finding, second: Finding) -> Estimate:
    """How much larger the second number is: seed by seed where both have the same seeds."""
    both = [seed for seed in first.values if seed in second.values]
    if len(both) > 1:
        return paired_difference(
            [first.values[seed] for seed in both], [second.values[seed] for seed in both]
        )
    return independent_difference(list(first.values.values()), list(second.values.values()))


def _space(unit: str) -> str:
    return f" {unit}" if unit else ""


def _with_unit(value: float, unit: str) -> str:
    return shown(value) + _space(unit)


def shown(value: float) -> str:
    """A number in a sentence: three significant digits, no exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{float(f'{value:.3g}'):.12f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"
