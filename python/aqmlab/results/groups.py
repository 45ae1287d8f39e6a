"""Groups of runs: runs that differ in nothing but their seed, taken together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from aqmlab.errors import AqmlabError
from aqmlab.results.blocks import block_band
from aqmlab.results.distributions import Distribution
from aqmlab.results.labels import distinguish
from aqmlab.results.metrics import Metric, flattened, look_up, metric_key
from aqmlab.results.run import Run
from aqmlab.results.statistics import Estimate, Floats, estimate, estimates

__all__ = ["Group", "band", "group", "transfer_classes"]


@dataclass(frozen=True)
class Group:
    """Runs of one scenario by one engine in one world, one per seed."""

    label: str
    """Short name that no other group beside it has."""
    runs: tuple[Run, ...]
    """In the order of their seeds."""

    @property
    def first(self) -> Run:
        """The run of the smallest seed: it shows what all runs share."""
        return self.runs[0]

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return [run.seed for run in self.runs]

    @property
    def classes(self) -> list[str]:
        """All classes of traffic together, then each that has responses if there are several."""
        responses = self.first.summary.get("responses", {})
        names = [name for name, row in responses.items() if name != "all" and row.get("count")]
        return ["all", *names] if len(names) > 1 else ["all"]

    def number(self, path: Sequence[str], metric: Metric) -> Estimate | None:
        """A number of a class or of a link over the runs; None if no run has it."""
        found = (metric.of(look_up(run.summary, path) or {}) for run in self.runs)
        values = [float(value) for value in found if value is not None]
        return estimate(values) if values else None

    def afresh(self) -> Group:
        """The same runs with no table read yet: what they read goes when they go."""
        return replace(self, runs=tuple(run.afresh() for run in self.runs))

    def values(self, metric: str) -> dict[int, float]:
        """A metric by seed, where it was measured; its name as in :mod:`aqmlab.results.metrics`."""
        key = metric_key(metric)
        found = {run.seed: flattened(run.summary).get(key) for run in self.runs}
        return {seed: value for seed, value in found.items() if value is not None}

    def estimate(self, *path: str) -> Estimate | None:
        """A number of the summaries over the runs; None if no run has it."""
        found = (look_up(run.summary, path) for run in self.runs)
        values = [float(value) for value in found if value is not None]
        return estimate(values) if values else None


def band(
    times: Sequence[Distribution], grid: Floats, recorded: Run | None = None
) -> tuple[Floats, Floats, Floats]:
    """Share of what took up to each time of `grid`, and the ends of its interval.

    Of several runs: the mean over the seeds, with its interval at each time. Of one run: the
    distribution itself; its interval says how it would vary with another stretch of time of the
    same users (see :mod:`aqmlab.results.blocks`). Without an interval, its ends are no numbers.

    Args:
        times: The distribution of each run.
        grid: Times in seconds.
        recorded: The run, if it is the only one and recorded its responses.
    """
    shares = np.stack([distribution.shares(grid) for distribution in times])
    mean, low, high, _ = estimates(shares)
    # Where most runs have nothing, or everything, the rest say nothing about the spread.
    vague = np.mean((shares > 0) & (shares < 1), axis=0) < 0.5
    low[vague] = high[vague] = np.nan
    if recorded is not None:
        low, high = block_band(recorded, grid)
    return mean, np.clip(low, 0, mean), np.clip(high, mean, 1)


def group(runs: Sequence[Run]) -> list[Group]:
    """Runs by configuration, in the order in which configurations first appear."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(_configuration(run), []).append(run)
    for same in found.values():
        same.sort(key=lambda run: run.seed)
        for first, second in pairwise(same):
            if first.seed == second.seed:
                raise AqmlabError(
                    f"{second.path}: is the same run as {first.path} (scenario, seed, engine and "
                    "world); name one of them"
                )
    labelled = distinguish([same[0] for same in found.values()])
    return [
        Group(run.label, tuple(same)) for run, same in zip(labelled, found.values(), strict=True)
    ]


def transfer_classes(groups: Sequence[Group]) -> list[str]:
    """Classes that get no responses in any run and move data in some: bulk transfers, datagrams."""
    summaries = [run.summary for group in groups for run in group.runs]
    names = dict.fromkeys(name for one in summaries for name in one.get("flows", {}))
    moves = ("goodput_bps", "datagrams_sent")
    return [
        name
        for name in names
        if name != "all"
        and not any(look_up(one, ("responses", name, "count")) for one in summaries)
        and any(look_up(one, ("flows", name, key)) for one in summaries for key in moves)
    ]


def _configuration(run: Run) -> str:
    """What the runs of a configuration share: scenario without seed and title, engine, world."""
    scenario = {key: run.scenario[key] for key in run.scenario if key not in ("seed", "title")}
    engine = look_up(run.metadata, ("versions", "engine")) or run.summary.get("version")
    return json.dumps([scenario, engine, run.world], sort_keys=True)
