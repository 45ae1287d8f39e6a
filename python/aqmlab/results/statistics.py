"""How sure a number is: intervals over seeds, pairs, batches inside a run, and the warm-up.

docs/statistics.md says when which method is used and how it was tested.

- Over seeds: runs with different seeds are independent, and the question (a mean, a percentile, a
  loss rate) is one number of each run. Their interval is Student's t with the skewness taken out by
  P. Hall's transformation ("On the Removal of Skewness by Transformation", Journal of the Royal
  Statistical Society B 54(1), 1992). The skewness of so few values is itself uncertain: it counts
  (n - 2) / n. Symmetric values get Student's t. The interval exists wherever values vary, and ends
  within the bounds of its metric. No end lies farther from the mean than twice Student's reach: a
  skewness of few values supports no more.
- Bands round a distribution: Student's t at each time, within 0 and 1, and both ends sorted (V.
  Chernozhukov, I. Fernández-Val, A. Galichon, "Improving Point and Interval Estimators of Monotone
  Functions by Rearrangement", Biometrika 96(3), 2009). A share that few seeds pull down has a
  skewness that says nothing of the time beside it.
- Pairs: two runs with the same seed have the same users (common random numbers), so their
  differences, seed by seed, vary less than the runs do; the interval is that of the differences.
- Runs without common users: Welch's interval of the difference of two means, transformed likewise.
- Equal values have no interval: they hold nothing about how far another seed would lie off. They
  bound how many seeds lie off at all: with none of n, at most 1 - 0.05^(1/n) of them.
- Inside a run: batch means (A. M. Law, "Simulation Modeling and Analysis", 5th edition, 2015,
  section 9.5.3).
- The warm-up: the test of L. Schruben, H. Singh, L. Tierney, "Optimal Tests for Initialization
  Bias in Simulation Output", Operations Research 31(6), 1983.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from aqmlab import _native
from aqmlab._util.lazy import np
from aqmlab.results.bounds import UNBOUNDED, Bounds

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "CONFIDENCE",
    "Estimate",
    "Floats",
    "batch_means",
    "combined",
    "equal_words",
    "estimate",
    "estimates",
    "independent_difference",
    "initialization_bias",
    "paired_difference",
    "share_band",
    "sorted_band",
    "two_sided",
]


Floats: TypeAlias = "npt.NDArray[np.float64]"

CONFIDENCE = 0.95
"""Coverage of the intervals."""
_ENOUGH_EQUAL = 6
"""So many values of one sign are no chance: the sign test gives 2 / 2^6 = 3 %."""
_NOISE = 1e-11
"""Values whose spread is at most this share of the largest are equal: the rest is rounding."""
_FARTHEST = 2.0
"""Farthest end of an interval from the mean, in reaches of Student's t."""
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
    """``hall`` (Student's t without its skewness), ``batch means``, ``blocks``; ``equal`` if all
    values are equal, ``none`` if there are too few: then there is no interval."""

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return (self.high - self.low) / 2

    @property
    def clear(self) -> bool:
        """Whether the mean is not zero by chance: the interval leaves out zero.

        Equal values have no interval; from :data:`_ENOUGH_EQUAL` of one sign on they are clear.
        """
        if self.method == "equal":
            return self.mean != 0 and self.count >= _ENOUGH_EQUAL
        return self.low > 0 or self.high < 0

    @property
    def note(self) -> str:
        """What stands in place of the interval of equal values; empty: nothing."""
        return f"all {self.count} equal" if self.method == "equal" else ""

    @property
    def unseen(self) -> float:
        """Largest share of other seeds that may have another value, if these are all equal.

        With a probability of 95 %: a larger share would have shown itself among ``count`` seeds.
        Not a number if the values are not equal.
        """
        return 1 - (1 - CONFIDENCE) ** (1 / self.count) if self.method == "equal" else math.nan

    @property
    def is_lopsided(self) -> bool:
        """Whether one side of the interval is more than twice as long as the other."""
        sides = self.mean - self.low, self.high - self.mean
        return max(sides) > 2 * min(sides)


def estimate(
    values: Sequence[float] | Floats,
    confidence: float = CONFIDENCE,
    bounds: Bounds = UNBOUNDED,
) -> Estimate:
    """The mean of independent values, one for each seed, and its interval.

    A single value has no interval, nor have equal values: its ends are not numbers. Nor have values
    among which one is not a number (nothing was measured in one of the runs): then the mean is none
    either.

    Args:
        values: one for each seed.
        confidence: coverage of the interval.
        bounds: between which the metric lies; the interval ends there at the latest.
    """
    return _estimate(np.asarray(values, dtype=float).tobytes(), confidence, bounds)


@lru_cache(maxsize=4096)
def _estimate(values: bytes, confidence: float, bounds: Bounds) -> Estimate:
    """The estimate of some numbers: tables, sentences and comparisons share it."""
    column = np.frombuffer(values)[:, np.newaxis]
    mean, low, high, method = estimates(column, confidence, bounds)
    if len(column) > 1 and math.isnan(low[0]):
        method = "none" if math.isnan(mean[0]) else "equal"
    return Estimate(float(mean[0]), float(low[0]), float(high[0]), len(column), method)


def estimates(
    values: Floats, confidence: float = CONFIDENCE, bounds: Bounds = UNBOUNDED
) -> tuple[Floats, Floats, Floats, str]:
    """:func:`estimate` for each column: means, lower and upper ends, and the method."""
    count = len(values)
    mean: Floats = values.mean(axis=0) if count else np.full(values.shape[1], np.nan)
    if count < 2:
        nothing = np.full_like(mean, np.nan)
        return mean, nothing, nothing, "none"
    variance, third = _moments(values)
    reach = _native.student_t_quantile(count - 1, (1 + confidence) / 2)
    return mean, *_ends(mean, variance, third, reach, bounds), "hall"


def share_band(shares: Floats, confidence: float = CONFIDENCE) -> tuple[Floats, Floats, Floats]:
    """Means of the shares up to each time, and a band at each time that never falls.

    Args:
        shares: a row for each seed, a column for each time, in their order.
        confidence: coverage at each time; a whole curve lies inside less often.
    """
    count = len(shares)
    mean: Floats = shares.mean(axis=0)
    if count < 2:
        nothing = np.full_like(mean, np.nan)
        return mean, nothing, nothing
    variance, _ = _moments(shares)
    reach = _native.student_t_quantile(count - 1, (1 + confidence) / 2)
    low, high = _ends(mean, variance, np.zeros_like(variance), reach, (0.0, 1.0))
    return mean, *sorted_band(low, high)


def sorted_band(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Both ends of a band in ascending order where they are numbers: it never falls.

    A band that holds an ascending curve still holds it.
    """
    found = low.copy(), high.copy()
    for ends in found:
        there = np.isfinite(ends)
        ends[there] = np.sort(ends[there])
    return found


def equal_words(found: Iterable[Estimate | None]) -> str:
    """What equal values among some numbers say of other seeds; empty: none are equal."""
    bounds = {one.count: one.unseen for one in found if one is not None and one.method == "equal"}
    words = (f"all {count} equal: at most {bounds[count]:.0%} of seeds differ" for count in bounds)
    return "; ".join(words).replace("%", " %")


def _moments(values: Floats) -> tuple[Floats, Floats]:
    """Variance and third central moment of the mean of each column; of equal values, zeros."""
    count = len(values)
    centred = values - values.mean(axis=0)
    spread = np.max(centred, axis=0) - np.min(centred, axis=0)
    equal = spread <= _NOISE * np.max(np.abs(values), axis=0)
    variance = np.where(equal, 0.0, np.sum(centred**2, axis=0) / (count - 1) / count)
    # Third moments are of the biased kind, divided by count: the ratio is shrunk by (n - 2) / n.
    ratio = (count / (count - 1)) ** 1.5 * (count - 2) / count
    third = np.where(equal, 0.0, ratio * np.mean(centred**3, axis=0) / count**2)
    return variance, third


def _ends(
    mean: Floats, variance: Floats, third: Floats, reach: float | Floats, bounds: Bounds
) -> tuple[Floats, Floats]:
    """Ends of the intervals of means by Hall's transformation; not numbers where nothing varies.

    Of a studentized mean T with skewness a, T + a T^2 / 3 + a^2 T^3 / 27 + a / 6 is symmetric, and
    has Student's quantiles. It grows with T, so that it can always be solved for T.
    """
    error = np.where(variance > 0, np.sqrt(variance), np.nan)
    cubed = error**3
    skewness = np.divide(third, cubed, out=np.zeros_like(mean), where=cubed > 0)
    small = np.abs(skewness) < 1e-6  # where the formula divides by zero
    skew = np.where(small, 1.0, skewness)

    def studentized(quantile: float | Floats) -> Floats:
        solved = 3 / skew * (np.cbrt(1 + skew * (quantile - skew / 6)) - 1)
        return np.where(small, quantile, solved)

    most = _FARTHEST * reach
    low = mean - error * np.minimum(studentized(reach), most)
    high = mean - error * np.maximum(studentized(-reach), -most)
    # A mean outside of the bounds shows that they are not the metric's.
    return (
        np.maximum(low, np.minimum(bounds[0], mean)),
        np.minimum(high, np.maximum(bounds[1], mean)),
    )


def _of_differences(bounds: Bounds) -> Bounds:
    """Bounds of the difference of two values within bounds."""
    return bounds[0] - bounds[1], bounds[1] - bounds[0]


def paired_difference(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    confidence: float = CONFIDENCE,
    bounds: Bounds = UNBOUNDED,
) -> Estimate:
    """How much larger the second values are than the first, seed by seed.

    Args:
        first: one for each seed.
        second: in the same order of seeds.
        confidence: coverage of the interval.
        bounds: of the values, not of their difference.
    """
    sides = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    pairs = sides[1] - sides[0]
    # Rounding of equal values is no difference.
    pairs[np.abs(pairs) <= _NOISE * np.maximum(*np.abs(sides))] = 0.0
    return estimate(pairs, confidence, _of_differences(bounds))


def independent_difference(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    confidence: float = CONFIDENCE,
    bounds: Bounds = UNBOUNDED,
) -> Estimate:
    """How much larger the mean of the second values is, which have nothing to do with the first.

    The degrees of freedom are those of B. L. Welch, "The Generalization of Student's Problem when
    Several Different Population Variances are Involved", Biometrika 34, 1947.
    """
    samples = [np.asarray(values, dtype=float) for values in (first, second)]
    difference = float(samples[1].mean() - samples[0].mean())
    sizes = np.array([len(values) for values in samples])
    if sizes.min() < 2:
        return Estimate(difference, math.nan, math.nan, int(sizes.sum()), "none")
    parts, thirds = np.array([_moments(values) for values in samples]).T
    if not parts.any():
        # The permutation test: two constant samples are apart by chance in 2 of so many cases.
        known = 2 / math.comb(int(sizes.sum()), int(sizes[0])) <= 1 - CONFIDENCE
        method = "equal" if known or not difference else "none"
        return Estimate(difference, math.nan, math.nan, int(sizes.sum()), method)
    freedom = parts.sum() ** 2 / np.sum(parts**2 / (sizes - 1))
    reach = _native.student_t_quantile(float(freedom), (1 + confidence) / 2)
    low, high = _ends(
        np.float64(difference), parts.sum(), thirds[1] - thirds[0], reach, _of_differences(bounds)
    )
    return Estimate(difference, float(low), float(high), int(sizes.sum()), "hall")


def batch_means(
    values: Sequence[float] | Floats,
    batches: int = _BATCHES,
    *,
    statistic: Callable[[Floats], float] = lambda batch: float(np.mean(batch)),
    confidence: float = CONFIDENCE,
    bounds: Bounds = UNBOUNDED,
) -> Estimate:
    """The mean of one run's values in their order, and its interval from batches of them.

    Neighbouring values depend on each other, the means of long batches hardly do. Values that fill
    no whole batch are left out at the beginning.

    Args:
        values: in their order of time.
        batches: how many; there must be two values for each at least, or there is no interval.
        statistic: what is computed of each batch.
        confidence: coverage of the interval.
        bounds: between which the statistic lies.
    """
    series = np.asarray(values, dtype=float)
    size = len(series) // batches
    if size < 2:
        mean = statistic(series) if len(series) else math.nan
        return Estimate(mean, math.nan, math.nan, 0, "none")
    rows = series[len(series) - size * batches :].reshape(batches, size)
    of_batches = np.array([statistic(row) for row in rows])
    found = estimate(of_batches, confidence, bounds)
    return found if found.note else replace(found, method="batch means")


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
    tail = _native.student_t_cdf(_SUPER_BATCHES - 1, -abs(statistic))
    from statistics import NormalDist  # fractions and decimals come with it

    return math.copysign(NormalDist().inv_cdf(tail), statistic)


def combined(numbers: Sequence[float]) -> float:
    """Independent standard normal numbers as one (Stouffer's method): shared bias adds up."""
    return sum(numbers) / math.sqrt(len(numbers)) if numbers else 0.0


def two_sided(number: float) -> float:
    """Probability that a standard normal number lies as far from zero."""
    return math.erfc(abs(number) / math.sqrt(2))
