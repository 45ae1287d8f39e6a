"""Bands round distributions: they never fall, and they hold their curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from aqmlab import _native
from aqmlab.results.distributions import Distribution
from aqmlab.results.groups import band
from aqmlab.results.statistics import Floats, estimate, share_band
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

TOLERANCE = 1e-12


@st.composite
def distributions(draw: st.DrawFn) -> Floats:
    """Shares of some seeds up to some times; no row falls."""
    shape = draw(st.tuples(st.integers(2, 10), st.integers(1, 40)))
    drawn = draw(arrays.arrays(np.float64, shape, elements=st.floats(0, 1)))
    found: Floats = np.sort(drawn, axis=1)
    return found


@given(distributions())
def test_a_band_never_falls_and_holds_its_curve(shares: Floats) -> None:
    mean, low, high = share_band(shares)
    for ends in (low, high):
        found = ends[np.isfinite(ends)]
        assert np.all(np.diff(found) >= 0)
        assert np.all((found >= 0) & (found <= 1))
    there = np.isfinite(low)
    assert np.all(low[there] <= mean[there] + TOLERANCE)
    assert np.all(high[there] >= mean[there] - TOLERANCE)


@given(distributions(), st.integers(0, 1000))
def test_the_order_of_seeds_does_not_matter(shares: Floats, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(shares, axis=0)
    for one, other in zip(share_band(shares), share_band(shuffled), strict=True):
        assert one == pytest.approx(other, nan_ok=True, abs=1e-9)


def test_a_slow_seed_makes_no_spike() -> None:
    """The office of the README: five seeds, one of which is slow at one time alone."""
    times = np.linspace(0, 1, 60)
    rows = [np.clip(times * (1 + 0.02 * seed), 0, 1) for seed in range(4)]
    slow = np.where((times > 0.5) & (times < 0.6), 0.38, times)
    _, low, high = share_band(np.stack([*rows, np.maximum.accumulate(slow)]))
    for ends in (low, high):
        assert np.all(np.diff(ends[np.isfinite(ends)]) >= 0)


def test_the_band_of_a_figure_is_that_band() -> None:
    random = np.random.default_rng(3)
    times = [Distribution.exact(np.sort(random.lognormal(0, 0.5, 40))) for _ in range(4)]
    mean, low, high = band(times, np.linspace(0.1, 4, 50))
    for ends in (mean, low, high):
        assert np.all(np.diff(ends[np.isfinite(ends)]) >= 0)


@pytest.mark.parametrize("count", [3, 4, 5, 7, 10])
def test_no_end_lies_farther_than_twice_the_reach_of_t(count: int) -> None:
    values = np.r_[np.linspace(0.5, 0.6, count - 1), 0.1]
    found = estimate(values)
    reach = _native.student_t_quantile(count - 1, 0.975) * values.std(ddof=1) / math.sqrt(count)
    assert found.mean - found.low <= 2 * reach * (1 + 1e-12)
    assert found.high - found.mean <= 2 * reach * (1 + 1e-12)


def test_the_bound_binds_where_the_skewness_is_one_value() -> None:
    values = [0.571, 0.557, 0.585, 0.38, 0.544]
    found = estimate(values)
    reach = _native.student_t_quantile(4, 0.975) * np.std(values, ddof=1) / math.sqrt(5)
    assert found.mean - found.low == pytest.approx(2 * reach)
    assert found.low > 0.3


@pytest.mark.parametrize(("count", "share"), [(3, 0.6316), (5, 0.4507), (10, 0.2589)])
def test_equal_values_bound_the_share_of_others(count: int, share: float) -> None:
    found = estimate([0.0] * count)
    assert found.unseen == pytest.approx(share, abs=1e-4)
    # With more seeds that differ than this, equal samples are rarer than one in twenty.
    assert (1 - found.unseen) ** count == pytest.approx(0.05)
    assert math.isnan(estimate([0.0, 1.0]).unseen)
