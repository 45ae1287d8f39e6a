"""Groups of runs: runs that differ in nothing but their seed, taken together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from aqmlab._util.lazy import np
from aqmlab.errors import AqmlabError
from aqmlab.results.distributions import Distribution
from aqmlab.results.labels import distinguish
from aqmlab.results.metrics import ALL, Metric, bounds_of, look_up
from aqmlab.results.quantity import Quantity
from aqmlab.results.run import Run
from aqmlab.results.statistics import Estimate, Floats, estimate, share_band, sorted_band

__all__ = ["Group", "band", "group", "headline_class", "stated_classes", "transfer_classes"]


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
        """Whose responses are stated; see :func:`stated_classes`."""
        return stated_classes(self.first.summary)

    def number(self, path: Sequence[str], metric: Metric) -> Estimate | None:
        """A number of a class or of a link over the runs; None if no run has it."""
        found = (metric.of(look_up(run.summary, path) or {}) for run in self.runs)
        values = [float(value) for value in found if value is not None]
        return estimate(values, bounds=metric.bounds) if values else None

    @property
    def runs_a_program(self) -> bool:
        """Whether its runs lasted as long as a program did; a built-in test has a stated time."""
        return all(
            look_up(run.summary, ("live", "program")) is not None and "test" not in run.summary
            for run in self.runs
        )

    def without_tables(self) -> Group:
        """The same runs with no table read yet: what they read goes when they go."""
        return replace(self, runs=tuple(run.without_tables() for run in self.runs))

    def values(self, metric: str) -> dict[int, float]:
        """A number by seed, where it was measured; its name as :class:`Quantity` reads it."""
        quantity = Quantity.read(metric)
        found = {run.seed: quantity.of(run) for run in self.runs}
        return {seed: value for seed, value in found.items() if value is not None}

    def estimate(self, *path: str) -> Estimate | None:
        """A number of the summaries over the runs; None if no run has it."""
        found = (look_up(run.summary, path) for run in self.runs)
        values = [float(value) for value in found if value is not None]
        return estimate(values, bounds=bounds_of(".".join(path))) if values else None


def stated_classes(summary: Mapping[str, Any]) -> list[str]:
    """Whose responses are stated: the first is the class that headlines speak of.

    Classes of one kind of application are stated together ("all"), then each if there are several.
    Classes of different kinds, such as pages and the segments of a film, have no number in common:
    each stands alone, and pages come first, because people wait for them.
    """
    rows = {name: row for name, row in summary.get("responses", {}).items() if name != ALL}
    quality = summary.get("quality", {})
    begun = [name for name, row in rows.items() if row.get("started") or row.get("count")]
    ended = [name for name in begun if rows[name].get("count")]
    if len({tuple(quality.get(name, ())) for name in begun}) > 1:
        return sorted(ended, key=lambda name: "page_load_p50_s" not in quality.get(name, ()))
    return [ALL, *ended] if len(ended) > 1 else [ALL]


def headline_class(groups: Sequence[Group]) -> str:
    """The class whose responses stand for all groups in a title; "all" if they are alike."""
    shared = [name for name in groups[0].classes if all(name in one.classes for one in groups)]
    return shared[0] if shared else next((name for one in groups for name in one.classes), ALL)


def band(
    times: Sequence[Distribution],
    grid: Floats,
    recorded: Run | None = None,
    traffic: str = ALL,
) -> tuple[Floats, Floats, Floats]:
    """Share of what took up to each time of `grid`, and the ends of its interval.

    Of several runs: the mean over the seeds, with its interval at each time. Of one run: the
    distribution itself; its interval says how it would vary with another stretch of time of the
    same users (see :mod:`aqmlab.results.blocks`). Without an interval, its ends are no numbers.

    Args:
        times: The distribution of each run.
        grid: Times in seconds.
        recorded: The run, if it is the only one and recorded its responses.
        traffic: The class whose times they are.
    """
    shares = np.stack([distribution.shares(grid) for distribution in times])
    mean, low, high = share_band(shares)
    # Where most runs have nothing, or everything, the rest say nothing about the spread.
    vague = np.mean((shares > 0) & (shares < 1), axis=0) < 0.5
    low[vague] = high[vague] = np.nan
    if recorded is not None:
        from aqmlab.results.blocks import block_band  # only bands of figures need it

        low, high = sorted_band(*block_band(recorded, grid, traffic))
    return mean, np.minimum(low, mean), np.maximum(high, mean)


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
    moves = ("goodput_bps", "upload_goodput_bps", "datagrams_sent")
    return [
        name
        for name in names
        if name != "all"
        and not any(look_up(one, ("responses", name, "count")) for one in summaries)
        and any(look_up(one, ("flows", name, key)) for one in summaries for key in moves)
    ]


def _configuration(run: Run) -> str:
    """What the runs of a configuration share: scenario without seed and title, engine, world.

    A program takes as long as it takes: the measured time of its runs is a result.
    """
    scenario = {key: run.scenario[key] for key in run.scenario if key not in ("seed", "title")}
    if run.metadata.get("program"):
        measure = {key: it for key, it in scenario["measure"].items() if key != "duration"}
        scenario["measure"] = measure
    engine = look_up(run.metadata, ("versions", "engine")) or run.summary.get("version")
    return json.dumps([scenario, engine, run.world, run.metadata.get("program")], sort_keys=True)
