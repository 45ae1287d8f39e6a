"""Paired differences: their size, their intervals, what counts as a pair."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import aqmlab
import numpy as np
import pyarrow as pa
import pytest
from aqmlab import Run, Scenario
from aqmlab.results.blocks import STATISTICS
from aqmlab.results.compare import Difference, kolmogorov_distance
from aqmlab.results.compare import differences as differences_of
from aqmlab.results.groups import Group
from conftest import SMALL
from scipy.stats import ks_2samp

SCENARIO = Scenario.from_toml(SMALL).data
BEGIN, MEASURED, COUNT = 60.0, 240.0, 6000


def run_of(label: str, times: Any, *, seed: int = 1, **changes: Any) -> Run:
    """A run with some response times, begun at even distances in the measured time."""
    start = BEGIN + np.linspace(0, MEASURED, len(times), endpoint=False)
    table = pa.table(
        {
            "class": pa.array(["fetches"] * len(times)).dictionary_encode(),
            "start_s": start,
            "response_s": np.asarray(times, dtype=float),
        }
    )
    summary = {"measured_s": MEASURED, "simulated_s": BEGIN + MEASURED}
    scenario = {**SCENARIO, "seed": seed, **changes}
    return Run.in_memory(scenario, summary, {"responses": table}, label=label, path=label)


def noisy(seed: int, blocks: int = 30) -> Any:
    """Response times whose level wanders from block to block, as congestion does."""
    random = np.random.default_rng(seed)
    level = np.repeat(random.lognormal(0, 0.5, blocks), COUNT // blocks)
    return level * random.exponential(0.4, COUNT)


def differences(runs: list[Run]) -> list[Difference]:
    """Of runs to the first of them."""
    return differences_of([Group(run.label, (run,)) for run in runs])


def by_metric(found: list[Difference]) -> dict[str, Difference]:
    return {difference.metric: difference for difference in found}


def test_a_difference_is_that_of_the_statistics() -> None:
    first, second = noisy(1), 1.5 * noisy(1)
    found = by_metric(differences([run_of("a", first), run_of("b", second)]))
    assert list(found) == list(STATISTICS)
    for share in (50, 90, 99):
        exact = np.quantile(second, share / 100) - np.quantile(first, share / 100)
        assert found[f"p{share}_s"].difference == pytest.approx(exact, rel=0.002)
    exact = np.mean(second <= 1) - np.mean(first <= 1)
    assert found["le_1s"].difference == pytest.approx(exact, abs=1e-9)
    for entry in found.values():
        assert entry.low <= entry.difference <= entry.high
        assert entry.paired
        assert entry.clear


def test_pairs_tell_more_than_strangers() -> None:
    first, second = noisy(1), 1.05 * noisy(1)
    paired = by_metric(differences([run_of("a", first), run_of("b", second)]))["p50_s"]
    apart = by_metric(differences([run_of("a", first), run_of("b", second, seed=2)]))["p50_s"]
    assert paired.difference == apart.difference
    assert paired.paired
    assert not apart.paired
    assert paired.high - paired.low < 0.5 * (apart.high - apart.low)
    assert paired.clear
    assert not apart.clear


@pytest.mark.long
def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    # Two strangers of the same kind: the true difference is zero.
    covered = 0
    for seed in range(100):
        runs = [run_of("a", noisy(2 * seed)), run_of("b", noisy(2 * seed + 1), seed=2)]
        entry = by_metric(differences(runs))["p50_s"]
        covered += not entry.clear
    # Binomial(100, 0.95) lies in 88..100 with probability 0.998; the bootstrap is known to be a
    # little too sure of itself with 30 blocks.
    assert covered >= 86


def test_what_makes_a_pair() -> None:
    times = noisy(1)
    traffic = SCENARIO["traffic"][0]
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, True),
        ({"title": "another"}, True),
        ({"traffic": [{**traffic, "tcp": {"profile": "other"}}]}, True),
        ({"traffic": [{**traffic, "rate": "31 /s"}]}, False),
        ({"seed": 2}, False),
        ({"measure": {**SCENARIO["measure"], "warm_up": "3 s"}}, False),
    ]
    for change, expected in cases:
        entry = differences([run_of("a", times), run_of("b", times, **change)])[0]
        assert entry.paired is expected, change


def test_kolmogorovs_distance_is_the_largest_gap() -> None:
    first, second = np.array([4.0, 1.0, 3.0, 2.0]), np.array([1.8, 4.0, 1.0, 1.5])
    # Up to 1.8 s: one of the four, three of the four.
    assert kolmogorov_distance(first, second) == 0.5
    assert kolmogorov_distance(first, first) == 0.0
    assert kolmogorov_distance(first, first + 9) == 1.0
    # With ties, and of samples of different sizes.
    first, second = np.round(noisy(1), 2), np.round(noisy(2)[:2000], 2)
    assert kolmogorov_distance(first, second) == pytest.approx(ks_2samp(first, second).statistic)


def test_few_responses_give_no_interval() -> None:
    assert differences([run_of("a", noisy(1)[:90]), run_of("b", noisy(2))]) == []


def test_classes_are_compared_one_by_one_and_together() -> None:
    traffic = [SCENARIO["traffic"][0], {**SCENARIO["traffic"][0], "name": "others"}]
    runs = [run_of(label, noisy(1), traffic=traffic) for label in "ab"]
    names = pa.array(["fetches", "others"] * (COUNT // 2)).dictionary_encode()
    counts = {name: {"count": COUNT // 2} for name in ("fetches", "others")}
    runs = [
        dataclasses.replace(
            run,
            summary={**run.summary, "responses": counts},
            tables={"responses": run.responses.set_column(0, "class", names)},
        )
        for run in runs
        if run.responses is not None
    ]
    found = differences(runs)
    assert list(dict.fromkeys(entry.traffic for entry in found)) == ["all", "fetches", "others"]


def test_the_same_queue_makes_no_difference(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SMALL)
    first = aqmlab.run(scenario, out_dir=tmp_path / "a")
    fewer = {"measure.record": ["responses"]}
    second = aqmlab.run(scenario.with_overrides(fewer), out_dir=tmp_path / "b")
    found = aqmlab.compare([first, second.path])
    assert [entry.metric for entry in found] == list(STATISTICS)
    for entry in found:
        assert (entry.difference, entry.interval, entry.clear) == (0, None, False)
        assert entry.to_json()["method"] == "equal"
        assert dataclasses.asdict(entry)["paired"]
        assert str(entry).endswith("+0 (all 30 equal)")
