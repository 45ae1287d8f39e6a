"""Long memory of packets and bytes, as captures show it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from aqmlab.traffic.arrivals import InterfaceArrivals, arrivals
from aqmlab.traffic.describe import Memory, memory
from conftest import Cli


def fractional_gaussian_noise(hurst: float, number: int, seed: int) -> np.ndarray:
    """R. Davies, D. Harte, "Tests for Hurst Effect", Biometrika, 1987: exact, by an embedding of
    the autocovariance in a circle."""
    lag = np.arange(number + 1.0)
    power = 2 * hurst
    covariance = (np.abs(lag - 1) ** power - 2 * lag**power + (lag + 1) ** power) / 2
    circle = np.concatenate((covariance, covariance[-2:0:-1]))
    eigenvalues = np.fft.fft(circle).real
    assert eigenvalues.min() > -1e-9
    random = np.random.default_rng(seed)
    draws = random.normal(size=len(circle)) + 1j * random.normal(size=len(circle))
    spectrum = np.sqrt(np.maximum(eigenvalues, 0) / len(circle)) * draws
    noise: np.ndarray = np.fft.fft(spectrum).real[:number]
    return noise


def slope(found: Memory) -> tuple[float, float]:
    """Hurst parameter and standard error, which must be there."""
    assert found.hurst is not None
    assert found.standard_error is not None
    return found.hurst, found.standard_error


@pytest.mark.parametrize("hurst", [0.5, 0.7, 0.8, 0.9])
def test_fractional_gaussian_noise_has_its_hurst_parameter(hurst: float) -> None:
    """From ten bins up: sums of few values of fractional noise have not yet its power law."""
    errors = []
    for seed in range(4):
        noise = fractional_gaussian_noise(hurst, 1 << 17, seed)
        value, error = slope(memory("noise", noise, 0.01, 0.1))
        assert abs(value - hurst) < 4 * error + 0.01
        errors.append(value - hurst)
    assert abs(np.mean(errors)) < 0.015


def scenario(sizes: str, kind: str, duration: str) -> str:
    """An uncongested link of 100 Mbit/s with about 5 Mbit/s each way on it, captured."""
    return f"""
title = "Arrivals at a link that is hardly used"

[measure]
warm_up = "30 s"
duration = "{duration}"
record = []
capture = {{ link = "bottleneck", after = "30 s", snap_length = "40 bytes", checksums = "zero" }}

[topology]
kind = "dumbbell"
bottleneck = {{ rate = "100 Mbit/s", discipline = "droptail-2400" }}

[[traffic]]
name = "fetches"
direction = "both"
kind = "{kind}"
{sizes}
rtt = {{ kind = "uniform", min = "10 ms", max = "150 ms" }}
"""


def captured(aqmlab: Cli, text: str) -> list[InterfaceArrivals]:
    """What arrived in each direction during a run."""
    Path("arrivals.toml").write_text(text)
    answer = aqmlab("run", "arrivals.toml", "--out", "run", "--json")
    assert answer.status == 0, answer.err
    found = arrivals(Path("run/capture.pcapng"))
    summary = json.loads(answer.out)
    for one, direction in zip(found, ("forward", "reverse"), strict=True):
        link = summary["links"]["bottleneck"][direction]
        assert one.packets.sum() == link["arrived_packets"]
        bits = link["throughput_bps"] * summary["measured_s"]
        assert 8 * one.bytes.sum() == pytest.approx(bits, rel=0.01)
    return found


@pytest.mark.long
def test_packets_and_bytes_of_web_users_are_self_similar(aqmlab: Cli) -> None:
    """Le 2005, chapter 4: 0.8 to 0.9. The full measurement stands in docs/traffic/describe.md; here
    five minutes of a tenth of the users, so within four standard errors."""
    found = captured(aqmlab, scenario("users = 952", "unc-web", "300 s"))
    for one in found:
        for series in one.memories:
            value, error = slope(series)
            assert error < 0.05
            assert 0.8 - 4 * error < value < 0.9 + 4 * error, (one.interface, series.name)


@pytest.mark.long
def test_small_transfers_that_arrive_at_random_are_not(aqmlab: Cli) -> None:
    sizes = """
rate = "300 /s"
request = { kind = "constant", size = "400 bytes" }
response = { kind = "constant", size = "2 kB" }
"""
    for one in captured(aqmlab, scenario(sizes, "poisson", "200 s")):
        for series in one.memories:
            value, error = slope(series)
            assert abs(value - 0.5) < 4 * error


def test_a_capture_is_described(aqmlab: Cli) -> None:
    captured(aqmlab, scenario("users = 50", "unc-web", "120 s"))
    answer = aqmlab("traffic", "describe", "run/capture.pcapng", "-o", "arrivals.svg")
    assert (answer.status, answer.err) == (0, "")
    assert "Hurst: bytes" in answer.out
    assert Path("arrivals.svg").read_text().startswith("<svg")
    answer = aqmlab("traffic", "describe", "run/capture.pcapng", "--json")
    forward, reverse = json.loads(answer.out)
    assert (forward["interface"], reverse["interface"]) == (0, 1)
    assert forward["captured_s"] == pytest.approx(120, abs=5)
    assert forward["memory"]["packets"]["from_s"] >= 1.0


def test_mistakes_are_refused(aqmlab: Cli, elsewhere: Path) -> None:
    (elsewhere / "link.pcap").write_bytes(b"GIF89a is a picture")
    answer = aqmlab("traffic", "describe", "link.pcap")
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert "neither a pcap nor a pcapng file" in answer.err
    assert aqmlab("traffic", "describe", "lnk.pcap").status == 2
    answer = aqmlab("traffic", "describe", "link.pcap", "--seed", "2")
    assert answer.status == 2
    assert "SOURCE: link.pcap is a capture, which has no seed and no fields to set" in answer.err
