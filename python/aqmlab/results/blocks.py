"""The block bootstrap: how sure a number is that comes from one stretch of time.

Traffic draws never depend on what a queue did, so two runs with the same traffic and seed face the
very same users (common random numbers), and what they do to them is compared pairwise. The
measured time is cut into :data:`_BLOCKS` blocks of equal length; a response belongs to the block
in which it began. The interval of a difference comes from a block bootstrap (H. R. Kuensch, "The
Jackknife and the Bootstrap for General Stationary Observations", Annals of Statistics 17(3), 1989):
blocks are drawn with replacement, *the same blocks for both runs*, and both statistics are computed
from what lies in them. Blocks keep the responses of a congested moment together, which are anything
but independent; drawing the same blocks for both keeps the pairs. Runs with other traffic or other
seeds are not pairs: then each draws its own blocks, and intervals are wider.

The interval shows how the difference would vary with another stretch of time of the same users. It
does not show how it varies from seed to seed: for that, repeat the comparison with other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from typing import TYPE_CHECKING, NamedTuple

from aqmlab._util.lazy import np
from aqmlab.errors import AqmlabError
from aqmlab.results.distributions import rows_with
from aqmlab.results.families import users_of
from aqmlab.results.run import Run
from aqmlab.results.statistics import CONFIDENCE, Estimate, Floats

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["FEW", "STATISTICS", "are_paired", "block_band", "block_differences", "block_samples"]


_BLOCKS = 30
"""Blocks of the measured time."""
_RESAMPLES = 1000
"""Draws of the bootstrap."""
_GRID = 1000
"""Points, twice, at which the resampled distributions are computed; see :func:`_common_grid`."""
FEW = 100
"""With fewer responses in either run, a class gets no interval."""


@dataclass(frozen=True)
class _Resamples:
    """Distribution functions of a run's resamples, computed only where they are asked for."""

    grid: Floats
    """Ascending times."""
    counts: Floats
    """Responses of each block (row) that took at most each time; the last column counts all."""
    weights: Floats
    """How often each block (column) is in each resample (row)."""

    @cached_property
    def totals(self) -> Floats:
        """Responses of each resample."""
        totals: Floats = self.weights @ self.counts[:, -1]
        return totals

    def shares(self, columns: npt.NDArray[np.int64]) -> Floats:
        """The share of each resample's responses up to the time of its column."""
        within: Floats = np.einsum("rb,br->r", self.weights, self.counts[:, columns])
        return within / np.maximum(self.totals, 1.0)


_Statistic = Callable[[_Resamples], Floats]
"""Values of a statistic, one for each resample."""


def _quantile(share: float) -> _Statistic:
    """The first time that the share of responses reaches."""

    def statistic(of: _Resamples) -> Floats:
        low = np.zeros(len(of.weights), dtype=np.int64)
        high = np.full_like(low, len(of.grid) - 1)
        while np.any(low < high):
            middle = (low + high) // 2
            reached = of.shares(middle) >= share - 1e-12
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
        found: Floats = of.grid[np.where(of.totals > 0, low, 0)]
        return found

    return statistic


def _share_within(limit_s: float) -> _Statistic:
    """The share of responses that took at most `limit_s` seconds."""

    def statistic(of: _Resamples) -> Floats:
        index = int(np.searchsorted(of.grid, limit_s, side="right")) - 1
        if index < 0:
            return np.zeros(len(of.weights))
        return of.shares(np.full(len(of.weights), index))

    return statistic


STATISTICS: Mapping[str, _Statistic] = {
    "p50_s": _quantile(0.5),
    "p90_s": _quantile(0.9),
    "p99_s": _quantile(0.99),
    "le_1s": _share_within(1.0),
}
"""What is compared, by its key in ``summary.json``."""


def are_paired(first: Run, second: Run) -> bool:
    """Whether two runs have the same users at the same times."""
    return first.seed == second.seed and users_of(first.scenario) == users_of(second.scenario)


def block_differences(first: Run, second: Run, traffic: str) -> dict[str, Estimate]:
    """Statistics of the second run minus those of the first in one class, with their intervals.

    Nothing if either run has fewer than :data:`FEW` responses. Both must have recorded theirs.
    """
    samples = [block_samples(run, traffic) for run in (first, second)]
    if min(len(sample.block) for sample in samples) < FEW:
        return {}
    times = [np.sort(sample.response_s) for sample in samples]
    grid = _common_grid(np.sort(np.concatenate(times)))
    counts = [_block_counts(sample, grid) for sample in samples]

    paired = are_paired(first, second)
    weights_of = [_draw(1), _draw(1 if paired else 2)]
    everything = np.ones((1, _BLOCKS))
    resampled = [
        _Resamples(grid, count, drawn) for count, drawn in zip(counts, weights_of, strict=True)
    ]
    on_grid = [_Resamples(grid, count, everything) for count in counts]
    exact = [
        _Resamples(time, np.arange(1.0, len(time) + 1)[np.newaxis], np.ones((1, 1)))
        for time in times
    ]

    def gap(metric: _Statistic, pair: Sequence[_Resamples]) -> Floats:
        return metric(pair[1]) - metric(pair[0])

    found = {}
    tail = 100 * (1 - CONFIDENCE) / 2
    for name, metric in STATISTICS.items():
        # The grid is used for how far the resamples stray, not for the difference itself.
        difference = gap(metric, exact)
        strays = gap(metric, resampled) - gap(metric, on_grid)
        offsets = [np.percentile(strays, tail), 0.0, np.percentile(strays, 100 - tail)]
        low, middle, high = (float(difference[0] + offset) for offset in offsets)
        most = 1.0 if name == "le_1s" else math.inf
        found[name] = Estimate(middle, max(low, -most), min(high, most), _BLOCKS, "blocks")
        if not np.ptp(strays) > 0:
            found[name] = Estimate(middle, math.nan, math.nan, _BLOCKS, "equal")
    return found


def _common_grid(times: Floats) -> Floats:
    """Times at even ranks of all responses, with more of them in the tail, and 1 s.

    In the tail ranks lie at equal ratios of the number of slower responses, so that a high
    percentile is resolved as well as the median.
    """
    count = len(times)
    even = np.linspace(0, count - 1, min(_GRID, count))
    tail = count - np.geomspace(1, count, min(_GRID, count))
    ranks = np.unique(np.concatenate([even, tail]).astype(int))
    return np.unique(np.append(times[ranks], 1.0))


class Samples(NamedTuple):
    """Responses: a value of each."""

    response_s: Floats
    block: npt.NDArray[np.int64]
    """The number of its block."""


def block_samples(run: Run, traffic: str) -> Samples:
    """The responses of a class."""
    times, blocks = zip(*_samples(run, traffic), strict=True)
    return Samples(np.concatenate(times), np.concatenate(blocks))


def _samples(run: Run, traffic: str) -> Iterator[Samples]:
    """The responses of a class in parts: one part is in memory at a time."""
    if not run.has("responses"):
        raise AqmlabError(f"{run.path}: recorded no responses")
    measured = float(run.summary["measured_s"])
    begin = float(run.summary["simulated_s"]) - measured
    # A response counts if it ended in the measured time; those that began before lie in block 0.
    yield Samples(np.empty(0), np.empty(0, np.int64))
    for table in run.batches("responses", ["class", "start_s", "response_s"]):
        start_s, response_s = (table[key].to_numpy() for key in ("start_s", "response_s"))
        if traffic != "all":
            own = rows_with(table["class"], traffic)
            start_s, response_s = start_s[own], response_s[own]
        block = np.floor((start_s - begin) / measured * _BLOCKS)
        yield Samples(response_s, np.clip(block, 0, _BLOCKS - 1).astype(np.int64))


def _block_counts(sample: Samples, grid: Floats) -> Floats:
    """Responses of each block (row) that took at most each grid point (column).

    The last column counts all of the block: the grid ends at or above the slowest response.
    """
    column = np.searchsorted(grid, sample.response_s, side="left")
    cell = sample.block * len(grid) + column
    counts = np.bincount(cell, minlength=_BLOCKS * len(grid)).reshape(_BLOCKS, len(grid))
    cumulative: Floats = np.cumsum(counts, axis=1).astype(np.float64)
    return cumulative


@cache
def _draw(number: int) -> Floats:
    """How often each block is in each resample: the first or second draw of a comparison."""
    random, shares = np.random.default_rng(1), [1 / _BLOCKS] * _BLOCKS
    drawn = [random.multinomial(_BLOCKS, shares, _RESAMPLES) for _ in range(number)]
    return drawn[-1].astype(float)


def _distribution(counts: Floats, weights: Floats) -> Floats:
    """Distribution function on the grid for each row of block weights."""
    cdf: Floats = weights @ counts
    cdf /= np.maximum(cdf[:, -1:], 1.0)  # in place: it is the largest array of a comparison
    return cdf


def block_band(run: Run, grid: Floats, traffic: str = "all") -> tuple[Floats, Floats]:
    """Interval of a class's distribution at each time, from blocks of a run's measured time."""
    nothing = np.full(len(grid), np.nan)
    # The last column counts all: it has to lie beyond the slowest response.
    beyond = np.append(grid, np.inf)
    counts = reduce(np.add, (_block_counts(part, beyond) for part in _samples(run, traffic)))
    if counts[:, -1].sum() < FEW:
        return nothing, nothing
    cdf = _distribution(counts, _draw(1))[:, :-1]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(cdf, [tail, 100 - tail], axis=0)
    return low, high
