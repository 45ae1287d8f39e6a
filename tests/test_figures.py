"""Figures: what is drawn is what was measured, in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from aqmlab.errors import AqmlabError
from aqmlab.figures import base as figures
from aqmlab.results.distributions import Distribution
from made_runs import made_run

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab.results.run import Run

RANDOM = np.random.default_rng(1)
TIMES = {
    "one": np.array([0.3]),
    "equal": np.full(50, 0.3),
    "few": np.sort(RANDOM.exponential(1.0, 20)),
    "many": np.sort(RANDOM.exponential(1.0, 50_000)),
    "ties": np.sort(np.round(0.01 + RANDOM.exponential(1.0, 50_000), 2)),
    "slow": np.sort(5 + RANDOM.exponential(1.0, 100)),
}


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    queue = RANDOM.integers(0, 121, 2400)
    return [
        made_run(tmp_path / "a", label="droptail 120", times=TIMES["many"], queue=queue),
        made_run(tmp_path / "b", label="red (30,90)", times=2 * TIMES["few"], queue=queue // 2),
    ]


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_every_point_of_a_cdf_is_exact(times: np.ndarray) -> None:
    at, share = figures.cdf_points(Distribution.exact(np.sort(times)), 2.0)
    assert len(at) <= figures.CURVE_POINTS
    assert (at[0], share[0], at[-1]) == (0, 0, 2)
    np.testing.assert_allclose(share, [np.mean(times <= t) for t in at], atol=1e-12)
    distinct = np.unique(times[times <= 2.0])
    if len(distinct) < figures.CURVE_POINTS // 2 and len(times) < figures.CURVE_POINTS:
        np.testing.assert_array_equal(at[1:-1], distinct)


def test_thinning_a_cdf_hides_no_large_step() -> None:
    _, share = figures.cdf_points(Distribution.exact(TIMES["many"]), 2.0)
    assert np.max(np.diff(share)) < 1.2 / figures.CURVE_POINTS


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_every_point_of_a_ccdf_is_exact(times: np.ndarray) -> None:
    at, share = figures.ccdf_points(Distribution.exact(times))
    assert len(at) <= figures.CURVE_POINTS
    np.testing.assert_allclose(share, [np.mean(times >= t) for t in at], atol=1e-12)
    assert (at[0], share[0]) == (times[0], 1)
    np.testing.assert_array_equal(at[-10:], np.unique(times)[-10:])


@pytest.mark.parametrize("count", [1, 7, 300, 301, 2401])
def test_queue_bins_hold_every_sample(count: int) -> None:
    time = 60 + 0.1 * np.arange(count)
    packets = RANDOM.integers(0, 121, count)
    bins = figures.queue_bins(time, packets)
    assert len(bins) <= figures.QUEUE_BINS
    assert min(bin_["min"] for bin_ in bins) == packets.min()
    assert max(bin_["max"] for bin_ in bins) == packets.max()
    assert all(bin_["min"] <= bin_["mean"] <= bin_["max"] for bin_ in bins)
    assert [bin_["time"] for bin_ in bins] == sorted(bin_["time"] for bin_ in bins)


def test_a_bin_is_min_mean_and_max() -> None:
    time = np.arange(600.0)
    packets = np.tile([2, 6], 300)
    bins = figures.queue_bins(time, packets)
    assert len(bins) == 300
    assert {(bin_["min"], bin_["mean"], bin_["max"]) for bin_ in bins} == {(2, 4, 6)}


STARTS = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".html": b"<!DOCTYPE html>"}


@pytest.mark.parametrize("suffix", STARTS)
def test_every_format_is_written(suffix: str, runs: list[Run], tmp_path: Path) -> None:
    path = figures.save(figures.comparison(runs), tmp_path / "new" / f"figure{suffix}")
    assert path.read_bytes().startswith(STARTS[suffix])
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_html_loads_nothing(runs: list[Run], tmp_path: Path) -> None:
    page = figures.save(figures.response_cdf(runs), tmp_path / "f.html").read_text()
    assert "<script src" not in page
    assert "<link" not in page


def test_an_unknown_format_is_refused(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(AqmlabError, match=r"written as \.svg, \.png, \.pdf, \.html, not as \.gif"):
        figures.save(figures.response_cdf(runs), tmp_path / "figure.gif")
    assert not list(tmp_path.glob("*figure*"))


def test_a_place_that_cannot_be_written_is_one_sentence(runs: list[Run], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AqmlabError, match="cannot be written"):
        figures.save(figures.response_cdf(runs), tmp_path / "file" / "figure.svg")


def test_axes_name_their_units_and_curves_their_runs(runs: list[Run], tmp_path: Path) -> None:
    text = figures.save(figures.comparison(runs), tmp_path / "f.svg").read_text()
    for words in ("response time (s)", "share of responses (%)", "simulated time (s)", "packets"):
        assert f">{words}<" in text
    for run in runs:
        assert f">{run.label}<" in text
    assert figures.COLOURS[0] in text
    assert figures.COLOURS[1] in text


def test_runs_of_one_label_are_told_apart(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / name, times=TIMES["few"]) for name in ("a", "b")]
    text = figures.save(figures.response_cdf(runs), tmp_path / "f.svg").read_text()
    assert ">droptail 120, limit a<" in text
    assert ">droptail 120, limit b<" in text


def test_more_than_eight_runs_get_other_patterns(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path / str(k), label=f"run {k}", times=TIMES["few"])
        for k in range(len(figures.COLOURS) + 1)
    ]
    text = figures.save(figures.response_cdf(runs), tmp_path / "f.svg").read_text()
    assert 'stroke-dasharray="6,3"' in text


def test_too_many_runs_are_refused(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / str(k), label=str(k), times=TIMES["one"]) for k in range(33)]
    with pytest.raises(AqmlabError, match="at most 32 runs, not 33"):
        figures.response_cdf(runs)


def test_what_was_not_recorded_is_named(tmp_path: Path) -> None:
    bare = made_run(tmp_path / "bare")
    with pytest.raises(
        AqmlabError, match=r"no run recorded responses: add them to measure\.record"
    ):
        figures.response_cdf([bare])
    with pytest.raises(AqmlabError, match="no run recorded responses or queue samples"):
        figures.comparison([bare])


def test_a_comparison_draws_what_there_is(tmp_path: Path) -> None:
    only = made_run(tmp_path / "only", queue=np.full(100, 5))
    text = figures.save(figures.comparison([only]), tmp_path / "f.svg").read_text()
    assert "Queue length" in text
    assert "response time" not in text


def test_a_direction_without_samples_is_named(tmp_path: Path) -> None:
    run = made_run(tmp_path / "a", queue=np.full(100, 5))
    with pytest.raises(AqmlabError, match="no queue samples of bottleneck sideways"):
        figures.queue_length([run], direction="sideways")
