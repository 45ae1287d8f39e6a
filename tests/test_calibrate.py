"""Calibration: a line, its answer, its cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from aqmlab import RunError, Scenario, calibrate
from aqmlab.calibrate import Bench, Line
from conftest import SMALL

OPEN = SMALL.replace('rate = "30 /s"\n', "").replace("\n[measure]", "load = 0.6\n\n[measure]", 1)
"""The small scenario with its arrivals left to the load."""


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short measurements: these tests check the arithmetic, not the physics."""
    times = (("measure.warm_up", "5 s"), ("measure.duration", "60 s"), ("measure.record", "[]"))
    monkeypatch.setattr(calibrate, "TIMES", times)
    monkeypatch.setattr(calibrate, "PILOT_TIMES", times)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The populations that are measured from now on."""
    populations: list[float] = []
    original: Callable[..., tuple[float, float]] = Bench.measure

    def counted(self: Bench, population: float, *rest: object) -> tuple[float, float]:
        populations.append(population)
        return original(self, population, *rest)

    monkeypatch.setattr(Bench, "measure", counted)
    return populations


def test_the_line_is_the_least_squares_line() -> None:
    populations, throughputs = [100.0, 200.0, 300.0, 400.0], [1.1e6, 1.9e6, 3.1e6, 3.9e6]
    line = Line(10e6, populations, throughputs, [1, 2, 1, 2])
    # By hand: sum(dx dy) = 480e6, sum(dx dx) = 50000, sum(dy dy) = 4.64e12, means 250 and 2.5e6.
    assert line.slope_bps == pytest.approx(9600)
    assert line.intercept_bps == pytest.approx(0.1e6)
    assert line.r2 == pytest.approx(480e6**2 / (50000 * 4.64e12))
    assert line.population(0.5) == pytest.approx(4.9e6 / 9600)
    # Seed 1 says 4.2e6 / 400 per user, seed 2 5.8e6 / 600.
    rates = np.array([4.2e6 / 400, 5.8e6 / 600])
    expected = rates.std(ddof=1) / np.sqrt(2) / rates.mean()
    assert line.standard_error == pytest.approx(expected)


def test_the_load_comes_out() -> None:
    scenario = Scenario.from_toml(OPEN)
    ready, [answer] = calibrate.calibrate(scenario)
    # 400 bytes go the other way; a response of 11,283 bytes on average (bounded Pareto) comes in
    # segments, each with a header, so the rate lies a little below load x rate / mean.
    mean = 1.2 * 2000 * (1 - (2000 / 1e5) ** 0.2) / (0.2 * (1 - (2000 / 1e5) ** 1.2))
    without_headers = 0.6 * 2e6 / (8 * mean)
    assert 0.85 * without_headers < answer.population < 1.02 * without_headers
    assert answer.unit == "connections/s"
    assert answer.line.r2 > 0.95
    assert ready.uncalibrated == []
    assert ready.data["traffic"][0]["rate"].endswith("/s")
    assert scenario.offered_load == ready.offered_load == 0.6


def test_the_cache_answers_the_second_time(own_cache: Path, measured: list[float]) -> None:
    scenario = Scenario.from_toml(OPEN)
    first, _ = calibrate.calibrate(scenario)
    runs = len(measured)
    assert runs >= len(calibrate.LOADS) * len(calibrate.SEEDS)
    second, _ = calibrate.calibrate(scenario)
    red = '{kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "60 packets"}'
    unimportant = [("load", "0.9"), ("seed", "5"), ("topology.bottleneck.discipline", red)]
    calibrate.calibrate(scenario.with_overrides(unimportant))
    assert len(measured) == runs
    assert second.effective == first.effective
    calibrate.calibrate(scenario.with_overrides({"topology.bottleneck.rate": "3 Mbit/s"}))
    assert len(measured) > runs
    assert len(list(own_cache.iterdir())) == 2


@pytest.mark.parametrize("content", ["", "[]", '{"rate_bps": 1}', "{"])
def test_a_damaged_cache_is_measured_again(own_cache: Path, content: str) -> None:
    scenario = Scenario.from_toml(OPEN)
    first, _ = calibrate.calibrate(scenario)
    [file] = own_cache.iterdir()
    file.write_text(content)
    again, _ = calibrate.calibrate(scenario)
    assert again.effective == first.effective
    assert json.loads(file.read_text())["rate_bps"] == 2e6


def test_classes_share_the_load() -> None:
    second = OPEN[OPEN.index("[[traffic]]") :].replace('"fetches"', '"others"') + "share = 2\n"
    own = second.replace('"others"', '"fixed"').replace("share = 2", 'rate = "1 /s"')
    scenario = Scenario.from_toml(OPEN + second + own)
    ready, answers = calibrate.calibrate(scenario)
    assert [(answer.traffic, round(answer.load, 6)) for answer in answers] == [
        ("fetches", 0.2),
        ("others", 0.4),
    ]
    assert answers[1].population > 1.7 * answers[0].population
    assert ready.data["traffic"][2]["rate"] == "1 /s"


def test_the_loaded_direction_counts() -> None:
    changes = {"topology.bottleneck.reverse.rate": "4 Mbit/s", "traffic.fetches.direction": ""}
    for direction, rate in (("forward", 2e6), ("reverse", 4e6), ("both", 3e6)):
        changes["traffic.fetches.direction"] = direction
        assert Bench(Scenario.from_toml(OPEN).with_overrides(changes), 0).rate_bps == rate


def test_a_load_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    monkeypatch.setattr(Bench, "measure", lambda _self, population, *_: (population, 0.0))
    with pytest.raises(RunError, match=r"traffic\.fetches"):
        calibrate.calibrate(Scenario.from_toml(OPEN))
    assert not own_cache.exists()
