"""Intervals cover what they say, and the test of the warm-up warns as often as it says.

Every coverage is counted over many samples with a known answer; the tolerance is three standard
errors of that count, and where a method is known to fall short, what it reaches is what is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from aqmlab import _native
from aqmlab.results.formats import format_change, format_estimate
from aqmlab.results.metrics import bounds_of
from aqmlab.results.statistics import (
    batch_means,
    combined,
    estimate,
    estimates,
    independent_difference,
    initialization_bias,
    paired_difference,
    two_sided,
)
from scipy import stats
from scipy.signal import lfilter

from lab import intervals

TRIALS = 2000


def noise(seed: int) -> np.random.Generator:
    """Random numbers of a test."""
    return np.random.default_rng(seed)


def slack(share: float, trials: int = TRIALS) -> float:
    """Three standard errors of a counted share."""
    return 3 * math.sqrt(share * (1 - share) / trials)


def coverage(samples: np.ndarray, truth: float, confidence: float = 0.95) -> float:
    """Share of the samples (rows) whose interval holds the truth."""
    _, low, high, _ = estimates(samples.T, confidence)
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("freedom", [1, 1.4, 2, 3.7, 19, 250.5, 1e6])
@pytest.mark.parametrize("share", [0.001, 0.3, 0.6, 0.95, 0.975, 0.9995])
def test_student_t_is_that_of_scipy(freedom: float, share: float) -> None:
    value = stats.t.ppf(share, freedom)
    assert _native.student_t_quantile(freedom, share) == pytest.approx(value, rel=1e-8)
    assert _native.student_t_cdf(freedom, value) == pytest.approx(share, rel=1e-8)


def test_student_t_refuses_what_it_is_not_defined_for() -> None:
    with pytest.raises(ValueError, match="freedom = 0: a number above 0 is expected"):
        _native.student_t_quantile(0, 0.5)
    with pytest.raises(ValueError, match="share = 1: a share between 0 and 1 is expected"):
        _native.student_t_quantile(3, 1)


@pytest.mark.parametrize("count", [2, 3, 5, 7, 8, 12, 30])
def test_intervals_of_normal_values_cover_what_they_say(count: int) -> None:
    samples = noise(count).normal(10, 3, (TRIALS, count))
    for confidence in (0.95, 0.8):
        found = coverage(samples, 10, confidence)
        assert abs(found - confidence) <= slack(confidence) + 0.005, confidence


@pytest.mark.parametrize(
    ("draw", "truth"),
    [
        (lambda random, shape: random.exponential(2, shape), 2.0),
        (lambda random, shape: random.lognormal(0, 0.5, shape), math.exp(0.125)),
    ],
    ids=["exponential", "lognormal"],
)
@pytest.mark.parametrize("count", [8, 15, 30])
def test_skewed_values_are_covered_nearly_as_well(
    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray], truth: float, count: int
) -> None:
    samples = draw(noise(count), (TRIALS, count))
    found = coverage(samples, truth)
    assert 0.95 - 0.025 - slack(0.95) <= found <= 0.95 + slack(0.95)
    if count == 8:  # what the transformation is for
        half = stats.t.ppf(0.975, count - 1) * samples.std(axis=1, ddof=1) / math.sqrt(count)
        of_t = np.mean(np.abs(samples.mean(axis=1) - truth) <= half)
        assert found > of_t + 0.01


@pytest.mark.parametrize(("count", "share"), [(10, 0.5), (15, 0.9)])
def test_percentiles_of_runs(count: int, share: float) -> None:
    """A percentile is a number of each run like any other: its mean over the seeds is covered."""
    random = noise(7)
    true = float(np.mean(np.quantile(random.exponential(1, (20_000, 200)), share, axis=1)))
    runs = random.exponential(1, (1000, count, 200))
    found = coverage(np.quantile(runs, share, axis=2), true)
    assert abs(found - 0.95) <= slack(0.95, 1000) + 0.01


def test_common_random_numbers_narrow_the_difference() -> None:
    random = noise(3)
    inside, widths = [], []
    for _ in range(TRIALS):
        users = random.normal(100, 20, 5)  # how hard the seed is, for both queues
        first = users + random.normal(0, 1, 5)
        second = users + 2 + random.normal(0, 1, 5)
        found = paired_difference(first, second)
        inside.append(found.low <= 2 <= found.high)
        widths.append((found.half_width, estimate(first).half_width))
    assert abs(np.mean(inside) - 0.95) <= slack(0.95)
    paired, single = np.mean(widths, axis=0)
    assert paired < single / 5
    assert paired_difference([1.0, 2.0], [3.0, 5.0]).mean == 2.5


def test_a_difference_of_independent_values() -> None:
    # By hand: means 2 and 5, variances 1 and 4, n = 3: half = t(2.94) sqrt(5/3)
    found = independent_difference([1, 2, 3], [3, 5, 7])
    assert found.mean == pytest.approx(3)
    assert found.count == 6
    assert found.half_width == pytest.approx(3.2226 * (5 / 3) ** 0.5, rel=2e-3)
    assert (found.low + found.high) / 2 == pytest.approx(3)  # nothing is skewed
    assert math.isnan(independent_difference([1], [3, 5]).low)
    same = independent_difference([1] * 4, [4] * 4)
    assert (same.mean, same.note, same.clear) == (3.0, "all 8 equal", True)
    assert math.isnan(same.low)
    few = independent_difference([1, 1], [4, 4])
    assert (few.mean, few.method, few.clear) == (3.0, "none", False)
    shares = independent_difference([0.0, 0.9, 1.0], [0.0, 0.1, 0.9], bounds=(0.0, 1.0))
    assert (shares.low, shares.high) == (-1.0, 1.0)


def test_the_same_values_give_the_same_interval() -> None:
    values = noise(1).exponential(1, 12)
    assert estimate(values) == estimate(list(values))
    assert estimate(values) == estimate(values)
    shifted = estimate(10 + 3 * values)
    found = estimate(values)
    assert shifted.low == pytest.approx(10 + 3 * found.low)
    assert shifted.high == pytest.approx(10 + 3 * found.high)
    columns = np.stack([values, values**2], axis=1)
    mean, low, high, method = estimates(columns)
    second = estimate(values**2)
    assert (mean[1], low[1], high[1], method) == pytest.approx(
        (second.mean, second.low, second.high, "hall")
    )


def test_too_few_values_have_no_interval() -> None:
    one = estimate([3.0])
    assert (one.mean, one.count, one.method, one.clear) == (3.0, 1, "none", False)
    assert math.isnan(one.low)
    assert math.isnan(one.half_width)
    assert math.isnan(estimate([]).mean)


def test_hall_by_hand() -> None:
    """Three values, mean 1, deviation sqrt(3), third moment 2: solved with exact numbers."""
    found = estimate([0.0, 0.0, 3.0])
    skewness = (2 / 2**1.5) / 3 / math.sqrt(3)  # sample skewness, times (n - 2) / n, over root n
    for end, quantile in ((found.low, 4.302653), (found.high, -4.302653)):
        t = 1 - end  # the standard error is 1
        left = t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6
        assert left == pytest.approx(quantile, abs=1e-5)


SHARE = (0.0, 1.0)


@pytest.mark.parametrize("values", [[0.0] * 9 + [0.001], [0.02] * 29 + [0.0], [1.0] * 9 + [0.99]])
def test_ties_neither_widen_nor_flatten_an_interval(values: list[float]) -> None:
    """One value among equal ones: both ends lie off the mean, and near it."""
    found = estimate(values, bounds=SHARE)
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert found.low < found.mean < found.high
    assert found.low >= 0
    assert found.high <= 1
    assert found.high - found.low < 2.5 * 2 * 2.3 * error
    free = estimate(values)
    assert min(free.mean - free.low, free.high - free.mean) > 0.5 * error
    mirrored = estimate([1 - value for value in values], bounds=SHARE)
    assert mirrored.low == pytest.approx(1 - found.high)
    assert mirrored.high == pytest.approx(1 - found.low)


@pytest.mark.parametrize("count", [2, 3, 10, 30])
def test_an_interval_is_at_most_twice_as_long_on_either_side_as_that_of_t(count: int) -> None:
    random = noise(count)
    samples = np.concatenate(
        [random.pareto(0.5, (count, 500)), (random.random((count, 500)) < 0.05) * 1.0], axis=1
    )
    samples = samples[:, np.ptp(samples, axis=0) > 0]
    mean, low, high, _ = estimates(samples)
    reach = stats.t.ppf(0.975, count - 1) * samples.std(axis=0, ddof=1) / math.sqrt(count)
    assert np.all(np.maximum(high - mean, mean - low) <= 2 * reach * (1 + 1e-9))
    assert np.all((low < mean) & (mean < high))


def test_equal_values_have_no_interval() -> None:
    rounding = 1 + 1e-12 * noise(1).normal(size=10)
    for values in ([2.0] * 10, [0.0] * 10, rounding):
        found = estimate(values)
        assert (found.method, found.note) == ("equal", "all 10 equal")
        assert math.isnan(found.low)
        assert math.isnan(found.high)
    assert estimate([-4.0] * 6).clear
    assert not estimate([-4.0] * 5).clear
    assert not estimate([0.0] * 10).clear
    twins = paired_difference(rounding, np.ones(10))
    assert (twins.mean, twins.method) == (0.0, "equal")
    assert estimate(1 + 1e-6 * noise(1).normal(size=10)).method == "hall"
    assert batch_means(np.ones(100), 10).note == "all 10 equal"


def test_intervals_end_at_the_bounds_of_their_metric() -> None:
    assert bounds_of("links.bottleneck.forward.utilization") == SHARE
    assert bounds_of("responses.web.gt_3s") == SHARE
    assert bounds_of("flows.all.fairness_jain") == SHARE
    assert bounds_of("quality.calls.mos_mean") == (1.0, 4.5)
    assert bounds_of("responses.web.p99_s") == (0.0, math.inf)
    assert bounds_of("of.a.plug-in") == (-math.inf, math.inf)
    assert estimate([0.0, 0.0, 0.9], bounds=SHARE).low == 0.0
    assert estimate([1.0, 1.0, 0.2], bounds=SHARE).high == 1.0
    change = paired_difference([0.0, 0.9, 0.0], [1.0, 0.0, 1.0], bounds=SHARE)
    assert (change.low, change.high) == (-1.0, 1.0)
    assert paired_difference([1.0, 2.0], [1.0, 9.0], bounds=(0.0, math.inf)).low < 0


def test_estimates_in_words() -> None:
    def write(value: float) -> str:
        return f"{value:.2f}"

    assert format_estimate(estimate([1.0]), write) == "1.00"
    assert format_estimate(estimate([1.0] * 10), write) == "1.00 (all 10 equal)"
    assert format_estimate(estimate([1.0, 2.0, 3.0]), write) == "2.00 ± 2.48"
    assert (
        format_estimate(estimate([1.0, 2.0, 3.0], bounds=(0.0, 2.1)), write)
        == "2.00 (0.00 to 2.10)"
    )
    assert format_estimate(estimate([1.0, 1.0001, 1.0002]), write) == "1.00 ± <0.01"
    assert format_change(estimate([0.0] * 3), write) == "0.00 (all 3 equal)"
    assert format_change(estimate([1.0, 2.0, 3.0]), write) == "2.00 (-0.48 to 4.48)"


def test_the_page_states_the_coverage_that_the_script_finds() -> None:
    page = intervals.PAGE.read_text()
    cheap = ["aqmlab", "Hall alone", "t", "Johnson", "t of logs"]
    rows = list(intervals.rows(intervals.KINDS, intervals.SEEDS, cheap))
    assert len(rows) == len(intervals.KINDS) * len(intervals.SEEDS)
    for row in rows:
        assert f"\n{row[: row.rindex('|', 0, -1)].rstrip()} |" in page
    for row in intervals.worst(intervals.KINDS, intervals.SEEDS, cheap):
        assert f"\n{row}\n" in page
    found = [intervals.measured(kind, 10, ["aqmlab"])[1]["aqmlab"] for kind in intervals.KINDS]
    assert all(one.degenerate == 0 and one.widest <= 2.5 for one in found)


def autoregressive(random: np.random.Generator, phi: float, shape: tuple[int, int]) -> np.ndarray:
    """Series (rows) with mean 0 and deviation 1 that begin in their steady state."""
    length = shape[1] + 2000
    steps = random.normal(0, math.sqrt(1 - phi**2), (shape[0], length))
    series: np.ndarray = lfilter([1], [1, -phi], steps, axis=1)[:, 2000:]
    return series


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_batch_means_cover_the_mean_of_dependent_values(phi: float) -> None:
    trials = 1000
    series = autoregressive(noise(11), phi, (trials, 4000))
    found = [batch_means(row) for row in series]
    inside = np.mean([entry.low <= 0 <= entry.high for entry in found])
    assert abs(inside - 0.95) <= slack(0.95, trials) + 0.01
    if phi == 0.9:  # what neighbours taken for independent would give
        half = 1.96 * series.std(axis=1) / math.sqrt(series.shape[1])
        assert np.mean(np.abs(series.mean(axis=1)) <= half) < 0.5


def test_batch_means_of_another_statistic() -> None:
    values = np.arange(100.0)
    found = batch_means(values, 10, statistic=lambda batch: float(np.max(batch)))
    assert found.mean == np.mean(np.arange(9, 100, 10))
    assert (found.count, found.method) == (10, "batch means")
    assert math.isnan(batch_means(values[:19], 10).low)
    # What fills no batch goes at the beginning: a warm-up that is a little short does least harm.
    assert batch_means(np.r_[1e9, values], 10).mean == pytest.approx(49.5)


@pytest.mark.long_cases("0.98")
@pytest.mark.parametrize("phi", [0.0, 0.9, 0.98])
def test_a_steady_series_fails_as_often_as_it_says(phi: float) -> None:
    series = autoregressive(noise(5), phi, (TRIALS, 6000))
    chances = [two_sided(number) for row in series if (number := initialization_bias(row))]
    assert len(chances) == TRIALS
    for level in (0.01, 0.05):
        assert np.mean(np.array(chances) < level) <= level + slack(level) + 0.005


def test_a_cold_start_is_found() -> None:
    series = autoregressive(noise(5), 0.9, (300, 6000))
    decay = np.exp(-np.arange(6000) / 600)
    numbers = np.array([initialization_bias(row - 3 * decay) for row in series], dtype=float)
    assert np.mean(2 * stats.norm.sf(np.abs(numbers)) < 0.01) > 0.95
    assert np.mean(numbers > 0) > 0.99  # it began too low
    high = np.array([initialization_bias(row + 3 * decay) for row in series[:50]], dtype=float)
    assert np.mean(high) < -2


def test_seeds_together_find_what_one_of_them_does_not() -> None:
    series = autoregressive(noise(5), 0.9, (400, 6000)) - np.exp(-np.arange(6000) / 600)
    numbers = [float(initialization_bias(row) or 0) for row in series]
    alone = np.mean([two_sided(number) < 0.01 for number in numbers])
    groups = [combined(numbers[start : start + 8]) for start in range(0, 400, 8)]
    together = np.mean([two_sided(number) < 0.01 for number in groups])
    assert alone < 0.5
    assert together > 0.9


def test_what_cannot_be_tested_is_not_tested() -> None:
    assert initialization_bias(np.arange(63.0)) is None
    assert initialization_bias(np.ones(1000)) is None
    assert initialization_bias(np.r_[np.arange(500.0), np.ones(500)]) is None
    assert combined([]) == 0.0
    assert two_sided(0.0) == 1.0
    assert two_sided(1.959964) == pytest.approx(0.05, abs=1e-6)
