"""How sure a number is: intervals over seeds, pairs, batches inside a run, and the warm-up.

docs/statistics.md says when which method is used and how it was tested.

- Over seeds: runs with different seeds are independent, and what is asked for (a mean, a
  percentile, a loss rate) is one number of each run. Up to :data:`FEW` of them get Student's t;
  more get the bootstrap-t (B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", 1993,
  section 12.5), which follows a skewed distribution where t does not. The plain percentile
  bootstrap is not used: of ten normal values it covers 90 % where it says 95 %, of five 85 %.
- Pairs: two runs with the same seed have the same users (common random numbers), so their
  differences, seed by seed, vary less than the runs do; the interval is that of the differences.
- Runs without common users: Welch's interval of the difference of two means.
- Inside a run: batch means (A. M. Law, "Simulation Modeling and Analysis", 5th edition, 2015,
  section 9.5.3).
- The warm-up: the test of L. Schruben, H. Singh, L. Tierney, "Optimal Tests for Initialization
  Bias in Simulation Output", Operations Research 31(6), 1983.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

__all__ = [
    "CONFIDENCE",
    "FEW",
    "Estimate",
    "Floats",
    "batch_means",
    "combined",
    "estimate",
    "estimates",
    "independent_difference",
    "initialization_bias",
    "paired_difference",
    "two_sided",
]


Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
"""Coverage of the intervals."""
FEW = 7
"""Up to so many values an interval is Student's t; resampling so few says too little."""
_RESAMPLES = 2000
"""Draws of the bootstrap."""
_BATCHES = 20
"""Batches of a run: the t distribution of 19 degrees of freedom is near its limit already, while
each batch is as long as can be."""
_BIAS_BATCHES = 64
"""Batches of the test of the warm-up."""
_SUPER_BATCHES = 8
"""Longer batches of the second half, from whose means that test takes its variance."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its interval."""

    mean: float
    low: float
    """Lower end of the interval; not a number if there is none."""
    high: float
    """Upper end."""
    count: int
    """Values behind it: seeds, pairs or batches."""
    method: str
    """``t``, ``bootstrap-t``, ``batch means`` or ``none``."""

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return (self.high - self.low) / 2

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def estimate(values: Sequence[float] | Floats, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of independent values, one for each seed, and its interval.

    A single value has no interval: its ends are not numbers. Nor have values among which one is
    not a number (nothing was measured in one of the runs): then the mean is none either.
    """
    return _estimate(np.asarray(values, dtype=float).tobytes(), confidence)


@lru_cache(maxsize=4096)
def _estimate(values: bytes, confidence: float) -> Estimate:
    """The estimate of some numbers: tables, sentences and comparisons ask for the same ones."""
    column = np.frombuffer(values)[:, np.newaxis]
    mean, low, high, method = estimates(column, confidence)
    return Estimate(float(mean[0]), float(low[0]), float(high[0]), len(column), method)


def estimates(values: Floats, confidence: float = CONFIDENCE) -> tuple[Floats, Floats, Floats, str]:
    """:func:`estimate` for each column: means, lower and upper ends, and the method."""
    count = len(values)
    mean: Floats = values.mean(axis=0) if count else np.full(values.shape[1], np.nan)
    if count < 2:
        nothing = np.full_like(mean, np.nan)
        return mean, nothing, nothing, "none"
    error: Floats = values.std(axis=0, ddof=1) / math.sqrt(count)
    tail = (1 - confidence) / 2
    if count <= FEW:
        reach = _t_quantile(1 - tail, count - 1)
        return mean, mean - reach * error, mean + reach * error, "t"
    low, high = _studentized_tails(values - mean, tail)
    return mean, mean - high * error, mean - low * error, "bootstrap-t"


def _t_quantile(share: float, freedom: float) -> float:
    """The value that Student's t does not exceed in this share of cases."""
    from scipy import special  # a command that needs no interval starts without it

    return float(special.stdtrit(freedom, share))


def _studentized_tails(centred: Floats, tail: float) -> tuple[Floats, Floats]:
    """Percentiles of (mean of a resample - mean) / (its standard error), for each column."""
    count = len(centred)
    weights = _resamples(count)
    means = weights @ centred / count
    squares = weights @ centred**2 / count
    errors = np.sqrt(np.maximum(squares - means**2, 0.0) / (count - 1))
    # A resample of one value only (once in count^(count-1)) says nothing about the spread.
    safe = np.where(errors > 0, errors, 1.0)
    ratios = np.where(errors > 0, means / safe, 0.0)
    low, high = np.quantile(ratios, [tail, 1 - tail], axis=0)
    return low, high


@lru_cache(maxsize=8)
def _resamples(count: int) -> Floats:
    """How often each of so many values is in each resample.

    The same draws whatever the values are: equal inputs give equal intervals.
    """
    draws = np.random.default_rng(1).multinomial(count, [1 / count] * count, _RESAMPLES)
    return draws.astype(float)


def paired_difference(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """How much larger the second values are than the first, seed by seed."""
    pairs = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    return estimate(pairs, confidence)


def independent_difference(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """How much larger the mean of the second values is, which have nothing to do with the first.

    The interval is that of B. L. Welch, "The Generalization of Student's Problem when Several
    Different Population Variances are Involved", Biometrika 34, 1947.
    """
    samples = [np.asarray(values, dtype=float) for values in (first, second)]
    difference = float(samples[1].mean() - samples[0].mean())
    sizes = np.array([len(values) for values in samples])
    if sizes.min() < 2:
        return Estimate(difference, math.nan, math.nan, int(sizes.sum()), "none")
    parts = np.array([values.var(ddof=1) for values in samples]) / sizes
    reach = 0.0
    if parts.any():
        freedom = parts.sum() ** 2 / np.sum(parts**2 / (sizes - 1))
        reach = _t_quantile((1 + confidence) / 2, freedom) * math.sqrt(parts.sum())
    return Estimate(difference, difference - reach, difference + reach, int(sizes.sum()), "t")


def batch_means(
    values: Sequence[float] | Floats,
    batches: int = _BATCHES,
    *,
    statistic: Callable[[Floats], float] = lambda batch: float(np.mean(batch)),
    confidence: float = CONFIDENCE,
) -> Estimate:
    """The mean of one run's values in their order, and its interval from batches of them.

    Neighbouring values depend on each other, the means of long batches hardly do. Values that fill
    no whole batch are left out at the beginning.

    Args:
        values: in their order of time.
        batches: how many; there must be two values for each at least, or there is no interval.
        statistic: what is computed of each batch.
        confidence: coverage of the interval.
    """
    series = np.asarray(values, dtype=float)
    size = len(series) // batches
    if size < 2:
        mean = statistic(series) if len(series) else math.nan
        return Estimate(mean, math.nan, math.nan, 0, "none")
    rows = series[len(series) - size * batches :].reshape(batches, size)
    of_batches = np.array([statistic(row) for row in rows])
    mean = float(of_batches.mean())
    error = float(of_batches.std(ddof=1)) / math.sqrt(batches)
    reach = _t_quantile((1 + confidence) / 2, batches - 1) * error
    return Estimate(mean, mean - reach, mean + reach, batches, "batch means")


def initialization_bias(values: Sequence[float] | Floats) -> float | None:
    """How far the beginning of a series lies off the rest: a standard normal number if it does not.

    Schruben, Singh and Tierney's statistic over the means of :data:`_BIAS_BATCHES` batches. It is
    positive if the series begins too low. Its variance comes from :data:`_SUPER_BATCHES` longer
    batches of the second half, where a bias has died out if it ever does. Student's t of the
    statistic is turned into a normal number, so that those of several seeds can be added
    (:func:`combined`).

    Returns:
        The number; None for a series that is too short, or that never changes in its second half.
    """
    series = np.asarray(values, dtype=float)
    size = len(series) // _BIAS_BATCHES
    if size < 1:
        return None
    means = series[len(series) - size * _BIAS_BATCHES :].reshape(_BIAS_BATCHES, size).mean(axis=1)
    half = means[_BIAS_BATCHES // 2 :].reshape(_SUPER_BATCHES, -1)
    deviation = math.sqrt(half.shape[1] * half.mean(axis=1).var(ddof=1))
    if not deviation > 1e-12 * abs(float(means.mean())):
        return None
    k = np.arange(1, _BIAS_BATCHES + 1)
    running = np.cumsum(means) / k
    weighted = np.sum(k * (1 - k / _BIAS_BATCHES) * (running[-1] - running))
    statistic = math.sqrt(45) * float(weighted) / (_BIAS_BATCHES**1.5 * deviation)
    from scipy import special

    tail = float(special.stdtr(_SUPER_BATCHES - 1, -abs(statistic)))
    return math.copysign(float(special.ndtri(tail)), statistic)


def combined(numbers: Sequence[float]) -> float:
    """Independent standard normal numbers as one (Stouffer's method): shared bias adds up."""
    return sum(numbers) / math.sqrt(len(numbers)) if numbers else 0.0


def two_sided(number: float) -> float:
    """Probability that a standard normal number lies as far from zero."""
    from scipy import special

    return float(2 * special.ndtr(-abs(number)))
