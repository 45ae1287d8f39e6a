"""Checks of a discipline's headline behaviour: its file ``NAME.toml``, its runs, its verdicts.

A file reads like this::

    title = "PI holds its queue whatever the number of flows"
    scenario = "../../scenarios/disciplines/many-flows.toml"
    page = "how-to/wifi.md"                  # optional: its page, below docs
    seeds = [1]                              # a variant's value is the mean over them
    set = { "traffic.0.flows" = "$flows" }   # overrides of every run
    each = { flows = [50, 100, 200, 400] }   # optional: all variants, once for each value
    [variants]                               # name = overrides of its runs
    PI = { "topology.bottleneck.forward.discipline" = "pi-240" }
    RED = { "topology.bottleneck.forward.discipline" = "red-120-360" }
    [scenarios]                              # optional: variants that have a scenario of their own
    "PI, steps" = "../../scenarios/disciplines/load-steps.toml"

    [quantities.queue]                       # from the summary: a sum of terms, over another sum
    title = "mean queue over q_ref"
    terms = [{ key = "links.bottleneck.forward.queue_mean_packets" }]
    over = [{ constant = 240 }]
    [quantities.settled]                     # from the samples of the forward queue
    title = "queue after 60 s (packets)"
    samples = { column = "packets", take = "mean", window_s = [60, 160] }   # see TAKES

    [[checks]]
    claim = "PI holds q_ref within 15 %"
    quantity = "queue"
    of = "PI"                                # a variant; every value of `each`, or those in `at`
    at_least = 0.85
    at_most = 1.15
    # windows_s = [[60, 120], [180, 240]]    # judge the samples of each of these times instead
    # across = "spread"                      # judge largest / smallest of all these instead
    # relative_to = "RED"                    # judge the ratio to that variant instead
    # miss = "why"                           # the check is known to fail, for this reason

    [[figures]]                              # drawn below each other; see lab.disciplines.figures
    kind = "lines"
    quantity = "queue"
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from aqmlab._util.fields import toml_table
from aqmlab.engine import parallel
from aqmlab.errors import AqmlabError
from aqmlab.results.term_names import numbers, read
from aqmlab.results.terms import SLACK
from aqmlab.results.verdict import Verdict
from aqmlab.scenario.scenario import Scenario, toml_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aqmlab.results.run import Run

__all__ = [
    "Check",
    "Measure",
    "Point",
    "Results",
    "Validation",
    "expected",
    "judge",
    "label",
    "mean_value",
    "samples",
    "share_between",
    "validate",
    "values_of",
]


_TAKES: dict[str, Callable[[np.ndarray, np.ndarray, Mapping[str, Any]], float]] = {
    "mean": lambda _, values, __: float(values.mean()),
    "min": lambda _, values, __: float(values.min()),
    "max": lambda _, values, __: float(values.max()),
    "deviation": lambda _, values, __: float(values.std()),
    "quantile": lambda _, values, spec: float(np.quantile(values, spec["quantile"])),
    "share-between": lambda _, values, spec: share_between(values, *spec["between"]),
    "time-above": lambda times, values, spec: _time_above(times, values, spec["above"]),
}
"""What becomes of a column of samples: a number from times (s), values and the specification."""


@dataclass(frozen=True)
class Measure:
    """A number that a run gives."""

    title: str
    """What it is, with its unit."""
    terms: tuple[Mapping[str, Any], ...] = ()
    """Summands: a :class:`~aqmlab.results.terms.Term` each, or a ``constant``."""
    over: tuple[Mapping[str, Any], ...] = ()
    """Summands of a divisor."""
    samples: Mapping[str, Any] | None = None
    """Instead of terms: ``column`` of ``queue.parquet`` (forward), ``take``, ``window_s``."""

    def value(self, run: Run, window_s: Sequence[float] | None = None) -> float:
        """The number of one run; of samples in the window if one is given."""
        if self.samples is not None:
            window_s = window_s or self.samples.get("window_s")
            times, values = samples(run, self.samples["column"], window_s)
            number = _TAKES[self.samples["take"]](times, values, self.samples)
        else:
            number = sum(_term(spec, numbers(run)) for spec in self.terms)
        return (
            number / sum(_term(spec, numbers(run)) for spec in self.over) if self.over else number
        )


@dataclass(frozen=True)
class Check:
    """A statement about a quantity of one variant."""

    claim: str
    quantity: str
    of: str
    """The variant."""
    at: tuple[float, ...] | None = None
    """Which values of ``each`` count; None: all."""
    at_least: float | None = None
    at_most: float | None = None
    windows_s: tuple[Sequence[float], ...] = ()
    """Of which times the quantity's samples count, a value for each; none: what it says itself."""
    across: str | None = None
    """``spread``: largest over smallest of the values, instead of every value."""
    relative_to: str | None = None
    """A variant whose value at the same point divides."""
    miss: str | None = None
    """Why the check is known to fail; None: it has to hold."""

    @property
    def wanted(self) -> str:
        """The range in words."""
        if self.at_least is None:
            return f"at most {self.at_most:g}"
        if self.at_most is None:
            return f"at least {self.at_least:g}"
        return f"{self.at_least:g} to {self.at_most:g}"

    def admits(self, value: float) -> bool:
        """Whether a value lies in the range; what is no number does not."""
        low = -np.inf if self.at_least is None else self.at_least - SLACK
        high = np.inf if self.at_most is None else self.at_most + SLACK
        return bool(low <= value <= high)


@dataclass(frozen=True)
class Validation:
    """One discipline's file."""

    name: str
    title: str
    scenario: Path
    variants: Mapping[str, Mapping[str, Any]]
    """Overrides of each variant, by its name."""
    quantities: Mapping[str, Measure]
    checks: tuple[Check, ...]
    figures: tuple[Mapping[str, Any], ...] = ()
    set: Mapping[str, Any] = field(default_factory=dict)
    """Overrides of every run."""
    each: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """At most one name with its values: ``$name`` in overrides stands for each of them in turn."""
    seeds: tuple[int, ...] = (1,)
    scenarios: Mapping[str, Path] = field(default_factory=dict)
    """Scenarios of variants that have one of their own, by the variant's name."""
    page: str = ""
    """The page about it, below ``docs``; empty: that of the discipline of this name."""

    @property
    def page_of(self) -> str:
        """Where its page is, below ``docs``."""
        return self.page or f"disciplines/{self.name}.md"

    @classmethod
    def load(cls, path: Path) -> Validation:
        """Reads a validation file."""
        source = toml_table(path, "validation")
        try:
            quantities = {key: Measure(**spec) for key, spec in source.pop("quantities").items()}
            checks = tuple(Check(**spec) for spec in source.pop("checks"))
            scenario = path.parent / source.pop("scenario")
            own = {name: path.parent / file for name, file in source.pop("scenarios", {}).items()}
            found = cls(
                name=path.stem,
                scenario=scenario,
                scenarios=own,
                quantities=quantities,
                checks=checks,
                **source,
            )
        except (KeyError, TypeError) as error:
            raise AqmlabError(f"{path}: {error!r}") from error
        found.refuse_the_impossible(path)
        return found

    def refuse_the_impossible(self, path: Path) -> None:
        """Raises an error for a name that the file does not define, or a range without ends."""
        for check in self.checks:
            self.refuse_unknown(path, f'the check "{check.claim}"', "variant", check.of)
            self.refuse_unknown(path, f'the check "{check.claim}"', "quantity", check.quantity)
            if check.relative_to is not None:
                self.refuse_unknown(
                    path, f'the check "{check.claim}"', "variant", check.relative_to
                )
            if check.windows_s and self.quantities[check.quantity].samples is None:
                raise AqmlabError(
                    f'{path}: the check "{check.claim}" has windows_s, '
                    f"but {check.quantity} is not made of samples"
                )
            if check.at_least is None and check.at_most is None:
                raise AqmlabError(f'{path}: the check "{check.claim}" has no at_least or at_most')
        for name in self.scenarios:
            self.refuse_unknown(path, "scenarios", "variant", name)
        if len(self.each) > 1:
            raise AqmlabError(f"{path}: each has {len(self.each)} names; at most one is possible")

    def refuse_unknown(self, path: Path, where: str, kind: str, name: str) -> None:
        """Raises an error if there is no such variant or quantity."""
        known = self.variants if kind == "variant" else self.quantities
        if name not in known:
            raise AqmlabError(f"{path}: {where} names the {kind} {name}; known: {', '.join(known)}")

    @property
    def points(self) -> list[float | None]:
        """The values of ``each``; a single None without it."""
        return [value for values in self.each.values() for value in values] or [None]

    def plan(self) -> dict[Point, list[Scenario]]:
        """The scenarios of every point, one for each seed."""
        return {
            (variant, at): [self.scenario_of(variant, at, seed) for seed in self.seeds]
            for variant in self.variants
            for at in self.points
        }

    def scenario_of(self, variant: str, at: float | None, seed: int) -> Scenario:
        """The scenario of one run."""
        names = dict.fromkeys(self.each, f"{at:g}" if at is not None else "")
        settings = {**self.set, **self.variants[variant], "seed": seed}
        overrides = [
            (Template(path).substitute(names), Template(toml_value(value)).substitute(names))
            for path, value in settings.items()
        ]
        return Scenario.load(self.scenarios.get(variant, self.scenario), overrides)


Point = tuple[str, float | None]
"""A variant and the value of ``each``."""
Results = dict[Point, list["Run"]]
"""The runs of every point, one for each seed."""


def _term(spec: Mapping[str, Any], summary: Mapping[str, Any]) -> float:
    """A summand of a quantity."""
    return float(spec["constant"]) if "constant" in spec else read(spec).value(summary)


def samples(
    run: Run, column: str, window_s: Sequence[float] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Times (s) and values of a column of the forward queue's samples, where it has values."""
    queue = run.queue
    if queue is None:
        raise AqmlabError(f"{run.path}: no queue samples: add queue to measure.record")
    if column not in queue.column_names:
        raise AqmlabError(f"{run.path}: queue samples have no column {column}")
    forward = queue.filter(pc.equal(queue.column("direction").cast(pa.string()), "forward"))
    times = forward.column("time_s").to_numpy()
    values = forward.column(column).to_numpy().astype(float)
    low, high = window_s or (-np.inf, np.inf)
    chosen = (times >= low) & (times <= high) & ~np.isnan(values)
    if not chosen.any():
        raise AqmlabError(f"{run.path}: {column} has no samples from {low} s to {high} s")
    return times[chosen], values[chosen]


def share_between(values: np.ndarray, low: float, high: float) -> float:
    """Share of the values from `low` to `high`."""
    return float(((values >= low) & (values <= high)).mean())


def _time_above(times: np.ndarray, values: np.ndarray, above: float) -> float:
    """Seconds from the first sample to the first that exceeds `above`; infinite if none does."""
    found = np.flatnonzero(values > above)
    return float(times[found[0]] - times[0]) if len(found) else float("inf")


def mean_value(
    quantity: Measure, results: Results, point: Point, window_s: Sequence[float] | None = None
) -> float:
    """A quantity's mean over the seeds of a point; of samples in the window if one is given."""
    return fmean(quantity.value(run, window_s) for run in results[point])


def _ratio(value: float, reference: float) -> float:
    """A quotient; no number where the reference is 0, so that no range admits it."""
    return value / reference if reference else float("nan")


def values_of(validation: Validation, check: Check, results: Results) -> tuple[float, ...]:
    """The values that a check judges."""
    quantity = validation.quantities[check.quantity]
    values = []
    points = validation.points if check.at is None else check.at
    for at, window in product(points, check.windows_s or (None,)):
        value = mean_value(quantity, results, (check.of, at), window)
        if check.relative_to is not None:
            other = mean_value(quantity, results, (check.relative_to, at), window)
            value = _ratio(value, other)
        values.append(value)
    if check.across == "spread":
        values = [_ratio(max(values), min(values))]
    return tuple(values)


def judge(check: Check, values: Sequence[float]) -> Verdict:
    """What becomes of a check: it holds if every value lies in the range."""
    holds = bool(values) and all(map(check.admits, values))
    return Verdict.of(check.quantity, check.claim, holds, _in_words(values), check.miss or "")


def expected(verdict: Verdict) -> bool:
    """Whether a check came as its file says: it holds, or it is a known miss."""
    return verdict.holds is not bool(verdict.caveat)


def _in_words(values: Sequence[float]) -> str:
    """A value, or the range of several."""
    if any(np.isnan(value) for value in values):
        return "no ratio: the other is 0"
    ends = list(dict.fromkeys(f"{end:.3g}" for end in (min(values), max(values))))
    return " to ".join(ends)


def validate(
    validation: Validation,
    runs_root: Path,
    jobs: int | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[list[Verdict], Results]:
    """Runs what is missing of a discipline's runs and judges its checks, in their order.

    Args:
        validation: the discipline's file.
        runs_root: folder of the run directories; finished runs there are used again.
        jobs: runs at a time; None: as many as there are processors.
        progress: called with a run's name and the share of it that is done, from several threads.
    """
    plan = validation.plan()
    named = {
        f"{validation.name}-{scenario.key[:16]}-s{scenario.seed}": scenario
        for scenarios in plan.values()
        for scenario in scenarios
    }
    by_key = {scenario.key: name for name, scenario in named.items()}
    done = parallel.execute_all(list(named.items()), runs_root, jobs, progress)
    results: Results = {}
    for point, scenarios in plan.items():
        results[point] = []
        for scenario in scenarios:
            run = done[by_key[scenario.key]]
            if isinstance(run, AqmlabError):
                raise run
            results[point].append(replace(run, label=label(validation, point)))
    verdicts = [judge(check, values_of(validation, check, results)) for check in validation.checks]
    return verdicts, results


def label(validation: Validation, point: Point) -> str:
    """A point in words, such as "PI, 50 flows"."""
    variant, at = point
    return ", ".join([variant, *(f"{at:g} {name}" for name in validation.each if at is not None)])
