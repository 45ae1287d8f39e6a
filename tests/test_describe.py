"""What sources ask for, against what they are made of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from aqmlab.scenario.catalog import Catalog
from aqmlab.traffic.describe import (
    EXAMPLES,
    FOLLOWERS,
    Described,
    Description,
    Memory,
    describe,
    example,
    memory,
)
from aqmlab.traffic.views import describe_figure, describe_tables
from conftest import ROOT, Cli


def quantity(description: Description, name: str) -> Described:
    """The quantity of that name."""
    [found] = [it for it in description.quantities if it.name == name]
    return found


def hurst(found: Memory) -> tuple[float, float]:
    """Hurst parameter and standard error, which must be there."""
    assert found.hurst is not None
    assert found.standard_error is not None
    return found.hurst, found.standard_error


def tail(found: Described) -> tuple[float, float]:
    """Tail index and standard error, which must be there."""
    assert found.tail is not None
    return found.tail


def test_packmime_has_its_published_quantiles_and_remembers() -> None:
    [found] = describe(example("packmime"), 2000)
    assert found.count("opened_s") == pytest.approx(200_000, rel=0.1)
    responses = quantity(found, "response")
    # 895 bytes at 100 connections/s; tail index 1.231.
    assert np.median(responses.values) == pytest.approx(895, rel=0.03)
    index, error = tail(responses)
    assert abs(index - 1.231) < 4 * error < 0.2
    assert np.median(quantity(found, "round-trip time").values) == pytest.approx(0.0673, rel=0.1)
    [connections] = [it for it in found.memories if it.name == "connections"]
    # d = 0.33: 0.83 at long scales; a tenth of the variance remembers, the rest is white.
    assert 0.55 < hurst(connections)[0] < 0.9
    assert found.packets[1] > found.count("request_bytes")


def test_poisson_arrivals_have_no_memory() -> None:
    [found] = describe(example("poisson"), 1000)
    [connections] = [it for it in found.memories if it.name == "connections"]
    value, error = hurst(connections)
    assert abs(value - 0.5) < 4 * error < 0.1
    gaps = quantity(found, "time between connections")
    assert float(np.mean(gaps.values)) == pytest.approx(0.01, rel=0.02)
    index, error = tail(quantity(found, "response"))
    assert abs(index - 1.2) < 4 * error


@pytest.mark.parametrize("kind", ["packmime", "unc-web"])
def test_bytes_of_the_web_are_self_similar(kind: str) -> None:
    # Le 2005, chapter 4: Hurst parameters from 0.8 to 0.9.
    [found] = describe(example(kind), 1500)
    [carried] = [it for it in found.memories if it.name == "bytes of responses"]
    value, error = hurst(carried)
    assert 0.8 - 4 * error < value < 0.9 + 4 * error
    assert error < 0.03


def test_the_hurst_parameter_of_known_series() -> None:
    random = np.random.default_rng(1)
    value, error = hurst(memory("white", random.normal(size=1 << 18), 0.01, 0.1))
    assert abs(value - 0.5) < 4 * error
    # Fractional noise, through its spectrum |2 sin(w / 2)|^(-2 d).
    number, d = 1 << 18, 0.35
    frequency = 2 * np.pi * np.fft.rfftfreq(number)[1:]
    amplitude = (2 * np.sin(frequency / 2)) ** -d
    noise = np.fft.rfft(random.normal(size=number))
    noise[0], noise[1:] = 0, noise[1:] * amplitude
    value, error = hurst(memory("fractional", np.fft.irfft(noise), 1.0, 32.0))
    assert abs(value - 0.85) < 4 * error + 0.01


def test_the_tail_index_of_a_pareto_sample() -> None:
    random = np.random.default_rng(2)
    pareto = Described("size", "bytes", random.pareto(1.5, 100_000) + 1)
    index, error = tail(pareto)
    assert abs(index - 1.5) < 4 * error
    assert Described("size", "bytes", np.ones(100_000)).tail is None
    assert Described("size", "bytes", np.arange(100.0)).tail is None


def test_bytes_are_kept_when_they_are_spread() -> None:
    [found] = describe(example("web-sessions"), 300)
    edges = np.arange(0, 400.0, 0.01)
    assert found.byte_series(edges).sum() == pytest.approx(found.columns["response_bytes"].sum())
    # The first exchange of a connection is asked for after the handshake.
    first = found.asked_s - found.columns["opened_s"]
    assert np.allclose(first, found.columns["rtt_s"])


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_kind_is_described(kind: str) -> None:
    [found] = describe(example(kind), 60)
    assert describe_tables(found)
    assert describe_figure([found]).to_dict()["vconcat"]
    content = json.loads(json.dumps(found.to_json()))
    assert content["connections"] + content["datagrams"] > 0


def test_kinds_with_an_example_exist() -> None:
    assert set(EXAMPLES) <= set(Catalog.load().summaries("traffic"))


def test_every_other_kind_says_why_it_is_not(aqmlab: Cli) -> None:
    """Recorded connections are named by their file; the others ask for what they are given."""
    others = set(Catalog.load().summaries("traffic")) - set(EXAMPLES)
    assert others == FOLLOWERS | {"vectors"}
    for kind in FOLLOWERS:
        answer = aqmlab("traffic", "describe", kind)
        assert (answer.status, answer.out) == (2, "")
        assert "asks for what the network allows" in answer.err


def test_the_command(aqmlab: Cli) -> None:
    arguments = ("traffic", "describe", "telnet", "--seconds", "100", "-o", "telnet.svg")
    answer = aqmlab(*arguments)
    assert (answer.status, answer.err) == (0, "")
    assert "pause or server time" in answer.out
    assert Path("telnet.svg").read_text().startswith("<svg")
    scenario = ROOT / "scenarios" / "quickstart.toml"
    answer = aqmlab("traffic", "describe", scenario, "--seconds", "100", "--json")
    [browsers] = json.loads(answer.out)
    assert (browsers["class"], browsers["kind"]) == ("browsers", "mah-web")
    assert browsers["population"] == "users = 100"


def test_recorded_connections_are_described(aqmlab: Cli) -> None:
    vectors = ROOT / "scenarios" / "synthetic.cvec"
    answer = aqmlab("traffic", "describe", vectors, "--json")
    assert (answer.status, answer.err) == (0, "")
    [found] = json.loads(answer.out)
    assert (found["kind"], found["connections"]) == ("vectors", 160)
    assert found["population"] == "copies = 1"


def test_what_comes_after_the_last_recorded_connection_is_no_silence(
    aqmlab: Cli, tmp_path: Path
) -> None:
    """A Poisson process of 100 s, played for 1000 s: no memory, though it ends."""
    starts = np.sort(np.random.default_rng(1).uniform(0, 100e6, 5000)).astype(int)
    vectors = tmp_path / "poisson.cvec"
    vectors.write_text("".join(f"SEQ {start} 1 1 1\n> 400\nt 0\n< 2000\n" for start in starts))
    answer = aqmlab("traffic", "describe", vectors, "--json")
    assert (answer.status, answer.err) == (0, "")
    [found] = json.loads(answer.out)
    assert found["played_s"] == pytest.approx(starts[-1] / 1e6)
    memory = found["memory"]["connections"]
    assert abs(memory["hurst"] - 0.5) < 4 * memory["standard_error"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["packmim"], 'ftp; did you mean "packmime"?'),
        (["nonsense"], "SOURCE: found 'nonsense'; expected a scenario (.toml), connection vectors"),
        (["missing.toml"], "missing.toml"),
        (["packmime", "--set", "traffic.0.rate=0 /s"], "traffic.packmime.rate"),
    ],
)
def test_mistakes_are_refused(aqmlab: Cli, arguments: list[str], words: str) -> None:
    answer = aqmlab("traffic", "describe", *arguments)
    assert answer.status == 2
    assert words in answer.err
