"""Differences between groups of runs: the same users under different queues.

Runs of two groups with the same seed and the same traffic have the same users and are compared pair
by pair. With several pairs the interval is that of :mod:`aqmlab.results.statistics` over the pairs;
with one pair it is the block bootstrap of :mod:`aqmlab.results.blocks` inside that pair. Without
common users the intervals of both groups are combined (Welch's interval).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab._util.lazy import np
from aqmlab.results.baseline import Baseline, comparisons
from aqmlab.results.blocks import FEW, STATISTICS, are_paired, block_differences, block_samples
from aqmlab.results.groups import Group, group, transfer_classes
from aqmlab.results.labels import distinguish
from aqmlab.results.links import loaded_links
from aqmlab.results.metrics import (
    ALL,
    LINK,
    OWN,
    PROGRAM,
    QUALITY,
    RESPONSES,
    TRANSFERS,
    Metric,
    chosen,
    direction,
    look_up,
)
from aqmlab.results.run import Run
from aqmlab.results.statistics import (
    Estimate,
    Floats,
    independent_difference,
    paired_difference,
)

__all__ = [
    "ALL",
    "Difference",
    "Distance",
    "compared_groups",
    "differences",
    "distances",
    "kolmogorov_distance",
    "link_differences",
    "own_differences",
    "pairs_of",
]


_QUALITY = [metric for metric in QUALITY if metric.short]
"""Figures of applications that are compared."""


@dataclass(frozen=True)
class Difference:
    """A number of some runs minus the same number of the baseline.

    Numbers are means over the seeds, in the metric's own unit; shares are fractions.

    Example:
        >>> import aqmlab
        >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
        >>> scenario = aqmlab.Scenario.load("scenarios/vectors.toml").with_overrides(short)
        >>> slow = scenario.with_overrides({"topology.bottleneck.rate": "5 Mbit/s"})
        >>> found = aqmlab.compare([aqmlab.run(one) for one in (scenario, slow)])
        >>> [median] = [one for one in found if one.metric == "p50_s" and one.traffic == "all"]
        >>> median.difference > 0, median.paired
        (True, True)
    """

    run: str
    """Label of the runs."""
    baseline: str
    """Label of those that they are compared with."""
    traffic: str
    """Name of the class, or "all"; of a link its place, such as ``bottleneck.forward``."""
    metric: str
    """Key of the number in ``summary.json``, such as ``p50_s`` or ``le_1s``."""
    estimate: Estimate
    """The difference with its 95 % interval; in the metric's unit, of shares as a fraction."""
    paired: bool
    """Whether the runs that are compared had the same users."""
    basis: str
    """What the interval comes from, in words."""

    @property
    def difference(self) -> float:
        """The difference, in the metric's unit; shares as fractions."""
        return self.estimate.mean

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval; not a number without an interval."""
        return self.estimate.low

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval; not a number without an interval."""
        return self.estimate.high

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the 95 % interval; None without an interval."""
        return None if math.isnan(self.low) else (self.low, self.high)

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.estimate.clear

    @property
    def tone(self) -> str:
        """``better`` or ``worse`` for users if the difference is clear, else nothing."""
        return self.direction if self.clear else ""

    @property
    def direction(self) -> str:
        """``better`` or ``worse`` for users, clear or not; nothing where nobody said which."""
        return direction(self.metric, self.difference)

    def __str__(self) -> str:
        """One line for people."""
        what = " ".join(filter(None, (self.traffic, self.metric)))
        text = f"{self.run} against {self.baseline}: {what} {self.difference:+.4g}"
        if self.interval is None:
            return f"{text} ({self.estimate.note})" if self.estimate.note else text
        return f"{text} ({self.low:+.4g} to {self.high:+.4g}, {self.basis})"

    def to_json(self) -> dict[str, Any]:
        """For ``--json``; ``traffic`` is called class there, and ends that are none are null."""
        low, high = self.interval or (None, None)
        return {
            "run": self.run,
            "baseline": self.baseline,
            "class": self.traffic,
            "metric": self.metric,
            "difference": None if math.isnan(self.difference) else self.difference,
            "low": low,
            "high": high,
            "method": self.estimate.method,
            "paired": self.paired,
            "basis": self.basis,
        }


@dataclass(frozen=True)
class Distance:
    """How far the distribution of response times lies from that of the baseline."""

    run: str
    """Label of the runs."""
    baseline: str
    """Label of those that they are compared with."""
    traffic: str
    """Name of the class, or "all"."""
    kolmogorov: float
    """The largest difference between the shares of responses that took at most some time."""

    def to_json(self) -> dict[str, Any]:
        """For ``--json``; ``traffic`` is called class there."""
        return {
            "run": self.run,
            "baseline": self.baseline,
            "class": self.traffic,
            "kolmogorov": self.kolmogorov,
        }


def compared_groups(runs: Sequence[Run]) -> list[Group]:
    """What of some runs is compared: their groups, or the runs one by one if they are one group."""
    groups = group(runs)
    if len(groups) > 1:
        return groups
    return [Group(run.label, (run,)) for run in distinguish(runs)]


def differences(
    groups: Sequence[Group], baseline: Baseline = None, *, ordered: bool = True
) -> list[Difference]:
    """Differences of groups to the baseline of their scenario, by class of traffic and statistic.

    Args:
        groups: of one or several scenarios; see :func:`~aqmlab.results.baseline.comparisons`.
        baseline: what was asked for; default: the drop-tail queue.
        ordered: whether somebody chose the order of the groups.
    """
    found: list[Difference] = []
    for first, others in comparisons(groups, baseline, ordered=ordered):
        # A run keeps its table once it was asked for it: only the baseline's may stay in memory.
        kept = first.without_tables()
        for other in others:
            for traffic in _common_classes(first, other):
                found += _class_differences(kept, other, traffic)
            if all(one.runs_a_program for one in (first, other)):
                found += _summary_differences(first, other, ("live", "program"), PROGRAM)
            for traffic in transfer_classes([first, other]):
                found += _summary_differences(first, other, ("flows", traffic), TRANSFERS)
            for traffic in first.first.summary.get("quality", {}):
                found += _summary_differences(first, other, ("quality", traffic), _QUALITY)
    return found


def link_differences(
    groups: Sequence[Group], baseline: Baseline = None, *, ordered: bool = True
) -> list[Difference]:
    """Differences of groups to the baseline of their scenario at the links that are loaded.

    No user notices them by themselves, so :func:`differences` leaves them out. Their place, such as
    ``bottleneck.forward``, stands for the class.
    """
    found: list[Difference] = []
    for first, others in comparisons(groups, baseline, ordered=ordered):
        for other in others:
            for at in loaded_links([*first.runs, *other.runs]):
                found += _summary_differences(first, other, at.path, LINK)
    return found


def own_differences(
    groups: Sequence[Group], baseline: Baseline = None, *, ordered: bool = True
) -> list[Difference]:
    """Differences of groups to the baseline of their scenario in metrics of one's own."""
    if not OWN:
        return []
    return [
        replace(one, traffic=ALL)
        for first, others in comparisons(groups, baseline, ordered=ordered)
        for other in others
        for one in _summary_differences(first, other, ("metrics",), list(OWN.values()))
    ]


def _common_classes(first: Group, second: Group) -> list[str]:
    """All classes of traffic together, then those with responses in both if there are several."""
    return [name for name in first.classes if name in second.classes]


def _summary_differences(
    baseline: Group, other: Group, path: tuple[str, ...], metrics: Sequence[Metric]
) -> list[Difference]:
    """The differences of one group in numbers of one class, which have no blocks of time."""
    pairs = pairs_of(baseline, other)
    if len(pairs) == 1 < max(len(baseline.runs), len(other.runs)):
        pairs = []  # one pair has no interval, all runs together have one
    found, basis = _over_runs(baseline, other, path, metrics, pairs)
    return [
        Difference(
            other.label, baseline.label, ".".join(path[1:]), metric, value, bool(pairs), basis
        )
        for metric, value in found.items()
    ]


def pairs_of(baseline: Group, other: Group) -> list[tuple[Run, Run]]:
    """The runs that had the same users."""
    by_seed = {run.seed: run for run in baseline.runs}
    return [
        (by_seed[run.seed], run)
        for run in other.runs
        if run.seed in by_seed and are_paired(by_seed[run.seed], run)
    ]


def _class_differences(baseline: Group, other: Group, traffic: str) -> list[Difference]:
    """The differences of one group in one class."""
    pairs = pairs_of(baseline, other)
    if not pairs and len(baseline.runs) == len(other.runs) == 1:
        found = _blocks_of(baseline.first, other.first, traffic)
    else:
        found = _blocks_of(*pairs[0], traffic) if len(pairs) == 1 else {}
    if found:
        one = "one pair of runs" if pairs else "two runs, other users"
        basis = f"blocks of time of {one}"
    else:
        if len(pairs) == 1 < max(len(baseline.runs), len(other.runs)):
            pairs = []  # one pair has no interval, all runs together have one
        metrics = chosen(RESPONSES, *STATISTICS)
        found, basis = _over_runs(baseline, other, ("responses", traffic), metrics, pairs)
    return [
        Difference(other.label, baseline.label, traffic, metric, value, bool(pairs), basis)
        for metric, value in found.items()
    ]


def _blocks_of(first: Run, second: Run, traffic: str) -> dict[str, Estimate]:
    """The differences of two runs by blocks of time; nothing if their responses do not tell."""
    if not (first.has("responses") and second.has("responses")):
        return {}
    return block_differences(first, second, traffic)


def _over_runs(
    baseline: Group,
    other: Group,
    path: Sequence[str],
    metrics: Sequence[Metric],
    pairs: Sequence[tuple[Run, Run]],
) -> tuple[dict[str, Estimate], str]:
    """The differences of the summaries' numbers, and what their intervals come from."""
    if pairs:
        compute, basis = paired_difference, f"{len(pairs)} pairs of runs"
        sides = list(zip(*pairs, strict=True))
    else:
        compute = independent_difference
        sides = [baseline.runs, other.runs]
        basis = f"{len(baseline.runs)} and {len(other.runs)} runs, other users"
    found = {}
    for metric in metrics:
        values = [[metric.of(look_up(run.summary, path) or {}) for run in side] for side in sides]
        first, second = ([v for v in side if v is not None] for side in values)
        if len(first) == len(sides[0]) > 0 and len(second) == len(sides[1]) > 0:
            found[metric.key] = compute(first, second, bounds=metric.bounds)
    return found, "one pair of runs" if len(pairs) == 1 else basis


def kolmogorov_distance(first: Floats, second: Floats) -> float:
    """The largest distance between the distribution functions of two samples (A. N. Kolmogorov)."""
    everywhere = np.concatenate([first, second])
    shares = [
        np.searchsorted(np.sort(sample), everywhere, side="right") / len(sample)
        for sample in (first, second)
    ]
    return float(np.max(np.abs(shares[0] - shares[1])))


def distances(
    groups: Sequence[Group], baseline: Baseline = None, *, ordered: bool = True
) -> list[Distance]:
    """Distances to the baselines of :func:`differences`, by class; all seeds together."""
    found = []
    for first, others in comparisons(groups, baseline, ordered=ordered):
        for other in others:
            for traffic in _common_classes(first, other):
                times = [_pooled(group, traffic) for group in (first, other)]
                if min(map(len, times)) >= FEW:
                    distance = kolmogorov_distance(times[0], times[1])
                    found.append(Distance(other.label, first.label, traffic, distance))
    return found


def _pooled(group: Group, traffic: str) -> Floats:
    """The response times of a class in all runs of a group that recorded some, in seconds."""
    recorded = [run for run in group.runs if run.has("responses")]
    columns = [block_samples(run, traffic).response_s for run in recorded]
    return np.concatenate([np.empty(0), *columns])
