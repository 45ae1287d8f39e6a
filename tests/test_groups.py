"""Runs with different seeds taken together: what is printed, compared and drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aqmlab import AqmlabError, Run, Scenario
from aqmlab.results.compare import differences
from aqmlab.results.distributions import Distribution
from aqmlab.results.groups import Group, band, group
from aqmlab.results.statistics import estimate, independent_difference
from conftest import SMALL, Cli
from figure_runs import draw
from made_runs import made_run

DROPTAIL = '{kind = "droptail", limit = "20 packets"}'
RED = '{kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "60 packets"}'
TWO_QUEUES = f"topology.bottleneck.discipline={DROPTAIL}, {RED}"


def drawn(folder: Path, seed: int, mean_s: float = 0.5) -> Run:
    """A made-up run whose response times are exponential."""
    times = np.random.default_rng(seed).exponential(mean_s, 3000)
    run = made_run(folder, times=times)
    return replace(run, scenario={**run.scenario, "seed": seed})


def test_compare_takes_seeds_together(aqmlab: Cli, small: Path) -> None:
    words = ("--vary", TWO_QUEUES, "--seeds", "1..3")
    answer = aqmlab("compare", small, *words, "--all", "-o", "figure.html")
    assert (answer.status, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "response times, 3 seeds each"
    assert lines[1].split()[:2] == ["run", "responses"]
    assert lines[2].startswith("droptail 20  ")
    assert lines[3].startswith("red (5,15)   ")
    assert all(line.count("±") == 7 for line in lines[2:4])
    assert lines[5] == "loaded links, 3 seeds each"
    assert "against droptail 20, with 95 % intervals" in answer.out
    assert answer.out.count("run directory: ") == 6
    assert "seeds 1 to 3" in Path("figure.html").read_text()

    directories = [path for path in sorted(Path("runs").iterdir()) if path.is_dir()]
    content = json.loads(aqmlab("compare", *directories, "--json").out)
    found = {entry["metric"]: entry for entry in content["differences"]}
    runs = [Run.open(path) for path in directories]
    by_queue = {
        name: {
            run.seed: run.summary["responses"]["all"]["p50_s"]
            for run in runs
            if run.label.startswith(name)
        }
        for name in ("droptail", "red")
    }
    sign = 1 if found["p50_s"]["baseline"].startswith("droptail") else -1
    gaps = [sign * (by_queue["red"][seed] - by_queue["droptail"][seed]) for seed in (1, 2, 3)]
    expected = estimate(gaps)
    assert found["p50_s"]["difference"] == pytest.approx(expected.mean)
    assert found["p50_s"]["low"] == pytest.approx(expected.low)
    assert found["p50_s"]["paired"] is True


def test_seed_or_seeds(aqmlab: Cli, small: Path) -> None:
    answer = aqmlab("compare", small, "--vary", TWO_QUEUES, "--seeds", "1..2", "--seed", "3")
    assert answer.status == 2
    assert "--seed and --seeds: found both" in answer.err


def test_groups_without_common_seeds_are_strangers(aqmlab: Cli, small: Path) -> None:
    first, second = [], []
    for seed in (1, 2):
        aqmlab("run", small, "--seed", seed, "--out", f"a{seed}")
        limit = "topology.bottleneck.discipline.limit=9 packets"
        aqmlab("run", small, "--set", limit, "--seed", seed + 2, "--out", f"b{seed}")
        first.append(Run.open(f"a{seed}"))
        second.append(Run.open(f"b{seed}"))
    groups = group([*second, *first])
    assert [(group.label, len(group.runs)) for group in groups] == [
        ("droptail 9", 2),
        ("droptail 20", 2),
    ]
    assert [run.seed for run in groups[0].runs] == [3, 4]
    found = {one.metric: one for one in differences(groups)}
    values = [list(group.values("p50").values()) for group in groups]
    assert found["p50_s"].estimate == independent_difference(values[0], values[1])
    assert {one.basis for one in found.values()} == {"2 and 2 runs, other users"}
    assert not any(one.paired for one in found.values())


def test_one_common_seed_of_several_is_no_pair() -> None:
    """One pair without recorded responses has no interval; all runs together have one."""
    scenario = Scenario.from_toml(SMALL).data
    medians = {1: 0.1, 2: 0.2, 3: 0.4}
    runs = [
        Run.in_memory(
            {**scenario, "seed": seed}, {"responses": {"all": {"p50_s": median, "count": 9}}}
        )
        for seed, median in medians.items()
    ]
    first, second = Group("a", tuple(runs[:2])), Group("b", tuple(runs[1:]))
    [found] = differences([first, second])
    assert found.estimate == independent_difference([0.1, 0.2], [0.2, 0.4])
    assert (found.paired, found.basis) == (False, "2 and 2 runs, other users")
    [alone] = differences([Group("a", (runs[0],)), Group("b", (runs[0],))])
    assert (alone.paired, alone.basis, alone.interval) == (True, "one pair of runs", None)
    assert alone.to_json()["low"] is None


def test_a_group_has_one_scenario_one_engine_and_one_world(tmp_path: Path) -> None:
    base = drawn(tmp_path / "base", 1)

    def like(name: str, seed: int, engine: str = "0.0.0", **summary: Any) -> Run:
        return replace(
            base,
            path=tmp_path / name,
            scenario={**base.scenario, "seed": seed},
            summary={**base.summary, "seed": seed, **summary},
            metadata={"versions": {"engine": engine}},
        )

    live: dict[str, Any] = {"live": {"valid": True, "reasons": []}}
    simulated = [like("a", 1), like("b", 2), like("c", 3)]
    played = [like("d", 1, **live), like("e", 2, **live)]
    newer = [like("f", 1, "0.1.0"), like("g", 2, "0.1.0")]
    groups = group([*played, *simulated, *newer])
    assert [[run.path.name for run in group.runs] for group in groups] == [
        ["d", "e"],
        ["a", "b", "c"],
        ["f", "g"],
    ]
    assert len({group.label for group in groups}) == 3
    titled = replace(simulated[0], path=tmp_path / "h", scenario={**base.scenario, "title": "T"})
    with pytest.raises(AqmlabError, match=r"h: is the same run as .*a .*name one of them"):
        group([*simulated, titled])


def test_the_same_run_twice_is_an_error(aqmlab: Cli, small: Path) -> None:
    for name in ("a", "b"):
        aqmlab("run", small, "--out", name)
    aqmlab("run", small, "--seed", "2", "--out", "c")
    answer = aqmlab("compare", "a", "c", "b")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        "aqmlab: b: is the same run as a (scenario, seed, engine and world); name one of them\n"
    )
    alone = aqmlab("compare", "a", "c", "--json")
    [first, *_] = json.loads(alone.out)["differences"]
    assert (first["paired"], first["basis"]) == (False, "blocks of time of two runs, other users")


@pytest.mark.long
def test_the_band_holds_the_true_distribution(tmp_path: Path) -> None:
    """Pointwise, in about 95 % of the cases: over seeds, and over the blocks of one run."""
    grid = np.array([0.1, 0.35, 1.0, 2.0])
    true = 1 - np.exp(-grid / 0.5)
    several: list[bool] = []
    single: list[bool] = []
    for trial in range(40):
        runs = [drawn(tmp_path / f"{trial}-{k}", 10 * trial + k) for k in range(5)]
        for count, inside in ((5, several), (1, single)):
            times = [Distribution.known_of(run, "response") for run in runs[:count]]
            mean, low, high = band(times, grid, runs[0] if count == 1 else None)
            inside += list((low <= true) & (true <= high))
            assert np.all((low <= mean) & (mean <= high))
    # 160 answers each, which depend on each other within a trial.
    assert np.mean(several) > 0.85
    assert np.mean(single) > 0.85
    assert not all(several)


def test_a_band_ends_where_most_runs_have_nothing_left() -> None:
    """One value among zeros says little of how far others would lie."""
    ends = ((0.1, 0.3), (0.1, 0.3), (0.1, 0.3), (0.16, 9.0))
    times = [Distribution.exact(np.array([first, 0.2, last])) for first, last in ends]
    _, low, high = band(times, np.array([0.15, 1.0]))
    assert np.isfinite([low[0], high[0]]).all()
    assert np.isnan([low[1], high[1]]).all()


def test_runs_keep_nothing_of_what_a_figure_read(tmp_path: Path) -> None:
    """Else the memory of a paper's figures would grow with its runs."""
    runs = [drawn(tmp_path / str(seed), seed) for seed in (1, 2)]
    assert draw.cdf(runs) is not None
    assert not any("responses" in vars(run) for run in runs)
    assert runs[0].responses is not None
    assert "responses" in vars(runs[0])


def test_show_says_how_sure_a_run_is(aqmlab: Cli, small: Path) -> None:
    aqmlab("run", small, "--set", "measure.duration=10 min", "--out", "here")
    answer = aqmlab("show", "here", "--batches", "10")
    assert answer.status == 0
    [line] = [line for line in answer.out.splitlines() if line.startswith("fetches       10")]
    assert line.count("±") == 4
    assert "warm-up: queue p = " in answer.out
    aqmlab("run", small, "--set", "measure.record=[]", "--out", "bare")
    answer = aqmlab("show", "bare", "--batches", "10")
    assert answer.status == 2
    assert "no responses: add them to measure.record" in answer.err
    assert aqmlab("show", "here", "--batches", "1").status == 2
