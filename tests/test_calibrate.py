"""Calibration: a line, its answer, its cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from aqmlab import RunError, Scenario
from aqmlab.engine import calibrate
from aqmlab.engine.calibrate import Line, UncongestedClass
from aqmlab.traffic.describe import describe
from conftest import SMALL

OPEN = SMALL.replace('rate = "30 /s"\n', "").replace("\n[measure]", "load = 0.6\n\n[measure]", 1)
"""The small scenario with its arrivals left to the load."""


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short measurements: these tests check the arithmetic, not the physics."""
    times = (("measure.warm_up", "5 s"), ("measure.duration", "60 s"), ("measure.record", "[]"))
    long = (("measure.warm_up", "5 s"), ("measure.duration", "10 min"))
    monkeypatch.setattr(calibrate, "TIMES", times)
    monkeypatch.setattr(calibrate, "LONG_TIMES", long)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The populations that are measured from now on."""
    populations: list[float] = []
    original: Callable[..., tuple[float, float]] = UncongestedClass.measure

    def counted(self: UncongestedClass, population: float, *rest: object) -> tuple[float, float]:
        populations.append(population)
        return original(self, population, *rest)

    monkeypatch.setattr(UncongestedClass, "measure", counted)
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
    assert 0.9 * without_headers < answer.population < 0.97 * without_headers
    assert answer.unit == "connections/s"
    assert answer.line.r2 > 0.95
    assert ready.uncalibrated == []
    assert ready.data["traffic"][0]["rate"].endswith("/s")
    assert scenario.offered_load == ready.offered_load == 0.6


def test_what_is_asked_for_takes_the_luck_out_of_short_runs() -> None:
    """Sizes have heavy tails, so throughput varies from seed to seed: what TCP adds does not."""
    alone = UncongestedClass(Scenario.from_toml(OPEN.replace("100 kB", "10 MB")), 0)
    seeds = range(1, 9)
    asked = np.array([alone.asked_bps(20.0, seed, calibrate.TIMES) for seed in seeds])
    long = np.array([alone.asked_bps(20.0, seed, calibrate.LONG_TIMES) for seed in seeds])
    estimates = np.array([alone.measure(20.0, seed)[1] for seed in seeds])
    throughputs, ratios = estimates / long * asked, estimates / long
    assert np.std(throughputs) > 0.05 * np.mean(throughputs)
    assert np.std(ratios) < 0.02 * np.mean(ratios)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.02)


def test_copies_of_recorded_connections(elsewhere: Path) -> None:
    """2000 connections in 60 s, each answered with 10,000 bytes, 7 segments, at 1.2 Mbit/s."""
    starts = (30_000 * number for number in range(2000))
    vectors = (f"SEQ {at} 1 0 1\n> 400\nt 1000\n< 10000\nt 1\n" for at in starts)
    (elsewhere / "same.cvec").write_text("\n".join(vectors) + "\n")
    traffic = OPEN.index('kind = "poisson"')
    recorded = (
        OPEN[:traffic]
        .replace('warm_up = "2 s"', 'warm_up = "0 s"')
        .replace('duration = "20 s"', 'duration = "61 s"')
        + """
        kind = "vectors"
        file = "same.cvec"
        rtt = { kind = "constant", rtt = "50 ms" }
        """
    )
    scenario = Scenario.from_toml(recorded, folder=elsewhere)
    ready, [answer] = calibrate.calibrate(scenario)
    # On the wire towards the clients: 7 segments, SYN-ACK, FIN and two acknowledgements.
    each = 10_000 + 11 * 40
    assert answer.population == pytest.approx(1.2e6 / 8 * 61 / (2000 * each), rel=0.02)
    assert (answer.unit, answer.line.standard_error < 0.02) == ("copies", True)
    assert ready.data["traffic"][0]["copies"] == answer.population
    # What fewer copies replay is a part of what more do, and thinning is all that is random.
    assert answer.line.r2 > 0.998


GENERAL = (
    OPEN[: OPEN.index('kind = "poisson"')].replace("2 Mbit/s", "10 Mbit/s")
    + """
kind = "general-tcp"
largest = "2 MB"
direction = "both"
rtt = { kind = "vector" }
"""
)


@pytest.mark.long
def test_the_rate_of_general_tcp_traffic() -> None:
    scenario = Scenario.from_toml(GENERAL)
    _, [answer] = calibrate.calibrate(scenario)
    assert answer.unit == "connections/s"
    # Another seed's connections, counted by other code: the bytes that they hand to TCP. Headers
    # and acknowledgements come to 5 % more; the rest is for heavy tails in ten minutes.
    [found] = describe(scenario.with_overrides({"seed": 9}), 3000)
    sent = found.columns["request_bytes"].sum() + found.columns["response_bytes"].sum()
    each = sent / found.count("opened_s")
    without_headers = 0.6 * 10e6 * 2 / (8 * each)
    assert answer.population == pytest.approx(0.95 * without_headers, rel=0.05)
    assert answer.line.standard_error < 0.03


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


@pytest.mark.long_cases("{*")
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
        assert (
            UncongestedClass(Scenario.from_toml(OPEN).with_overrides(changes), 0).rate_bps == rate
        )


def test_a_load_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    monkeypatch.setattr(UncongestedClass, "asked_bps", lambda *_: 0.0)
    with pytest.raises(RunError, match=r"traffic\.fetches"):
        calibrate.calibrate(Scenario.from_toml(OPEN))
    assert not own_cache.exists()
