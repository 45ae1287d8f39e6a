"""Runs that differ in their seed alone, taken together: means and differences over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from aqmlab.results.compare import (
    CONFIDENCE,
    FEW,
    METRICS,
    Difference,
    Distance,
    are_paired,
    block_counts,
    block_samples,
    common_classes,
    distribution,
    draw_blocks,
    kolmogorov_distance,
)
from aqmlab.results.distributions import Distribution, Of
from aqmlab.results.groups import group
from aqmlab.results.metrics import metric_key
from aqmlab.results.run import Run
from aqmlab.results.statistics import Estimate, Floats, estimate, estimates, paired_difference
from aqmlab.sweeps.results import flattened

COMPARED = ("loss", "utilization", "queue", "responses", "p50", "p90", "p99", "le_1s", "gt_3s")
"""What `aqmlab compare` prints of them."""


@dataclass(frozen=True)
class Replicas:
    """The runs of one scenario with different seeds."""

    label: str
    runs: tuple[Run, ...]
    """In the order of their seeds."""
    of: Of = "response"
    """Whose times are looked at."""

    @property
    def title(self) -> str:
        """The label and the number of runs."""
        return f"{self.label} ({len(self.runs)} run{'s' if len(self.runs) > 1 else ''})"

    def afresh(self) -> Replicas:
        """The same runs with no table read yet: what they read goes when they go."""
        return replace(self, runs=tuple(run.afresh() for run in self.runs))

    def values(self, metric: str) -> dict[int, float]:
        """A metric by seed, where it was measured."""
        key = metric_key(metric)
        found = {run.seed: flattened(run.summary).get(key) for run in self.runs}
        return {seed: value for seed, value in found.items() if value is not None}

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Means over the seeds of what is printed."""
        return {name: estimate(list(self.values(name).values())) for name in COMPARED}

    @cached_property
    def times(self) -> list[Distribution]:
        """The distribution of each run that has one."""
        known = [Distribution.known_of(run, self.of) for run in self.runs]
        return [distribution for distribution in known if distribution.total]

    def distribution(self, grid: Floats) -> tuple[Floats, Floats, Floats]:
        """Share of what took up to each time of `grid`, and the ends of its interval.

        Of several runs: the mean over the seeds, with its interval at each time. Of one run: the
        distribution itself; its interval says how it would vary with another stretch of time of
        the same users (see :mod:`aqmlab.results.compare`) and takes recorded responses. Without an
        interval, its ends are no numbers.
        """
        shares = np.stack([distribution.shares(grid) for distribution in self.times])
        mean, low, high, _ = estimates(shares)
        recorded = [run for run in self.runs if run.responses is not None]
        if len(self.times) == 1 and self.of == "response" and recorded:
            low, high = block_band(recorded[0], grid)
        return mean, np.clip(low, 0, mean), np.clip(high, mean, 1)


def grouped(runs: Sequence[Run]) -> list[Replicas]:
    """The runs by configuration; labels tell the groups apart."""
    return [Replicas(found.label, found.runs) for found in group(runs)]


def differences(groups: Sequence[Replicas]) -> list[Difference]:
    """Differences of every group to the first, by class and seed by seed.

    Groups that share fewer than two seeds with the first one are left out.
    """
    first, *others = groups
    found = []
    for other in others:
        paired = are_paired(first.runs[0], other.runs[0])
        for traffic in common_classes(first.runs[0], other.runs[0]):
            for metric in METRICS:
                one, two = (
                    group.values(f"responses.{traffic}.{metric}") for group in (first, other)
                )
                seeds = sorted(one.keys() & two.keys())
                if len(seeds) < 2:
                    continue
                gap = paired_difference(
                    [one[seed] for seed in seeds], [two[seed] for seed in seeds]
                )
                found.append(
                    Difference(
                        other.label,
                        first.label,
                        traffic,
                        metric,
                        gap.mean,
                        gap.low,
                        gap.high,
                        paired,
                    )
                )
    return found


def distances(groups: Sequence[Replicas]) -> list[Distance]:
    """Distances of every group to the first, by class; the responses of all seeds together."""
    first, *others = groups
    found = []
    for other in others:
        for traffic in common_classes(first.runs[0], other.runs[0]):
            times = [pooled(group, traffic) for group in (first, other)]
            if min(map(len, times)) >= FEW:
                distance = kolmogorov_distance(times[0], times[1])
                found.append(Distance(other.label, first.label, traffic, distance))
    return found


def pooled(group: Replicas, traffic: str) -> Floats:
    """The response times of a class in all runs of a group that recorded some, in seconds."""
    recorded = [run for run in group.runs if run.responses is not None]
    columns = [block_samples(run, traffic)["response_s"].to_numpy() for run in recorded]
    return np.concatenate([np.empty(0), *columns])


def block_band(run: Run, grid: Floats) -> tuple[Floats, Floats]:
    """Interval of a run's distribution at each time, from blocks of its measured time."""
    nothing = np.full(len(grid), np.nan)
    sample = block_samples(run, "all")
    if len(sample) < FEW:
        return nothing, nothing
    # The last column counts all: it has to lie beyond the slowest response.
    counts = block_counts(sample, np.append(grid, np.inf))
    weights = draw_blocks(np.random.default_rng(1))
    cdf = distribution(counts, weights)[:, :-1]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(cdf, [tail, 100 - tail], axis=0)
    return low, high
