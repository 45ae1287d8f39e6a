"""Differences between the configurations of a report and the first of them.

Runs of two configurations with the same seed and the same traffic have the same users, and are
compared pair by pair. With several pairs the interval is that of :mod:`aqmlab.results.statistics`
over the pairs; with one pair it is the block bootstrap of :mod:`aqmlab.results.compare` inside that
run. Without common users the intervals of both configurations are combined (Welch's interval).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from aqmlab.reports.data import classes
from aqmlab.results.compare import METRICS, are_paired, class_differences
from aqmlab.results.groups import Group, look_up
from aqmlab.results.statistics import estimate, independent_difference

RunMetrics = Mapping[tuple[str, str], list[dict[str, float]]]
"""By configuration and class: the compared statistics of each run."""

BETTER_WHEN_MORE = frozenset({"le_1s"})
"""Statistics whose growth users like."""


@dataclass(frozen=True)
class Shift:
    """A statistic of a configuration minus that of the first."""

    group: str
    baseline: str
    traffic: str
    metric: str
    """Key of the statistic in ``summary.json``."""
    difference: float
    """In seconds; of shares as a fraction."""
    interval: tuple[float, float] | None
    """95 % interval; None where nothing tells it."""
    basis: str
    """What the interval comes from."""

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)

    @property
    def tone(self) -> str:
        """``better`` or ``worse`` for users if the difference is clear, else nothing."""
        if not self.clear:
            return ""
        more = self.difference > 0
        return "better" if more == (self.metric in BETTER_WHEN_MORE) else "worse"


def shifts(groups: Sequence[Group], metrics: RunMetrics) -> list[Shift]:
    """Differences of every configuration to the first, by class of traffic and statistic."""
    if not groups:
        return []
    baseline, *others = groups
    # A run keeps its table once it was asked for it: only the baseline's may stay in memory.
    kept = replace(baseline, runs=tuple(replace(run) for run in baseline.runs))
    return [
        shift
        for group in others
        for traffic in common_classes(baseline, group)
        for shift in class_shifts(kept, group, traffic, metrics)
    ]


def common_classes(first: Group, second: Group) -> list[str]:
    """The classes of traffic with responses in both, and all together."""
    return [name for name in classes(first) if name in classes(second)]


def class_shifts(baseline: Group, group: Group, traffic: str, metrics: RunMetrics) -> list[Shift]:
    """The differences of one configuration in one class."""
    values = [metrics_of(entry, traffic, metrics) for entry in (baseline, group)]
    if not all(values):
        return []
    by_seed = {run.seed: number for number, run in enumerate(baseline.runs)}
    pairs = [
        (by_seed[run.seed], number)
        for number, run in enumerate(group.runs)
        if run.seed in by_seed and are_paired(baseline.runs[by_seed[run.seed]], run)
    ]
    single = len(baseline.runs) == len(group.runs) == 1
    if single or len(pairs) == 1:
        first, second = pairs[0] if pairs else (0, 0)
        found = bootstrapped(baseline, group, traffic, (first, second))
        if found:
            return found
    shifts = []
    for metric in METRICS:
        if any(row.get(metric) is None for rows in values for row in rows):
            continue
        before, after = ([row[metric] for row in rows] for rows in values)
        changes = [after[k] - before[j] for j, k in pairs]
        shifts.append(shift_of(baseline, group, traffic, metric, changes, (before, after)))
    return shifts


def metrics_of(group: Group, traffic: str, metrics: RunMetrics) -> list[dict[str, float]]:
    """The compared statistics of each run: from its responses, or else from its summary."""
    exact = metrics.get((group.label, traffic))
    if exact is not None and len(exact) == len(group.runs):
        return exact
    summaries = [look_up(run.summary, ("responses", traffic)) or {} for run in group.runs]
    rows = [{key: row[key] for key in METRICS if row.get(key) is not None} for row in summaries]
    return rows if all(rows) else []


def bootstrapped(baseline: Group, group: Group, traffic: str, pair: tuple[int, int]) -> list[Shift]:
    """The differences of one pair of runs with intervals from within the runs."""
    first, second = baseline.runs[pair[0]], replace(group.runs[pair[1]])
    if first.responses is None or second.responses is None:
        return []
    found = class_differences(first, second, traffic)
    if second.responses.num_rows == 0:
        return []
    return [
        Shift(
            group.label,
            baseline.label,
            traffic,
            entry.metric,
            entry.difference,
            (entry.low, entry.high),
            f"blocks of time of {'one pair of runs' if entry.paired else 'two runs, other users'}",
        )
        for entry in found
    ]


def shift_of(
    baseline: Group,
    group: Group,
    traffic: str,
    metric: str,
    changes: Sequence[float],
    values: tuple[Sequence[float], Sequence[float]],
) -> Shift:
    """The difference from one value per run."""
    if len(changes) > 1 or (changes and len(values[0]) == len(values[1]) == 1):
        change = estimate(changes)
        basis = f"{len(changes)} pairs of runs" if len(changes) > 1 else "one pair of runs"
    else:
        change = independent_difference(*values)
        basis = f"{len(values[0])} and {len(values[1])} runs, other users"
    interval = None if math.isnan(change.low) else (change.low, change.high)
    return Shift(group.label, baseline.label, traffic, metric, change.mean, interval, basis)
