"""`aqmlab replay`: from a capture to a comparison, and what it says of itself."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario
from aqmlab.traffic.replay import replay
from conftest import SMALL, Cli
from test_capture import CONNECTION, pcap


@pytest.fixture
def capture(aqmlab: Cli, small: Path) -> Path:
    """What a run captured of its bottleneck."""
    small.write_text(SMALL.replace("[measure]", '[measure]\ncapture = "bottleneck"'))
    assert aqmlab("run", small, "--out", "original").status == 0
    return Path("original/capture.pcapng")


def forward(run: Run) -> float:
    """Bits per second over the bottleneck's forward direction."""
    return float(run.summary["links"]["bottleneck"]["forward"]["throughput_bps"])


def test_a_capture_becomes_a_comparison(aqmlab: Cli, capture: Path) -> None:
    answer = aqmlab("replay", capture, "--discipline", "red,fq-codel")
    assert answer.status == 0
    assert "assumed: the buffer of red is " in answer.err
    for word in ("red (5,15)", "fq-codel", "figure: runs/compare.svg"):
        assert word in answer.out
    assert "assumed: forward is the way home, as the file says; 0 of " in answer.err
    assert "that much passed in the busiest second (not proven)" in answer.err
    assert "round-trip times are those of the capture" in answer.err
    assert "scenario: runs/replay/capture.toml" in answer.err
    assert "left out:" in answer.err
    # What is left can be run by hand.
    assert aqmlab("run", "runs/replay/capture.toml").status == 0


def test_the_load_comes_again(aqmlab: Cli, capture: Path) -> None:
    """The same link and queue carry what they carried, under the TCP of another system."""
    answer = aqmlab("replay", capture, "--discipline", "droptail", "--rate", "2", "--json")
    assert answer.status == 2  # one run is no comparison
    both = ("--discipline", '{kind="droptail",limit="20 packets"},fq-codel')
    answer = aqmlab("replay", capture, *both, "--rate", "2", "--json")
    assert answer.status == 0
    again, _ = (Run.open(entry["path"]) for entry in json.loads(answer.out)["runs"])
    original = Run.open("original")
    assert forward(again) == pytest.approx(forward(original), rel=0.1)
    sizes = [run.responses["response_bytes"].to_pylist() for run in (again, original)]  # type: ignore[index]
    assert sum(sizes[0]) == pytest.approx(sum(sizes[1]), rel=0.1)
    assert len(sizes[0]) == pytest.approx(len(sizes[1]), rel=0.1)


@pytest.mark.long
def test_rates_and_round_trips_may_be_given(aqmlab: Cli, capture: Path) -> None:
    words = ("--discipline", "pie", "--rate", "3/1", "--rtt", "40")
    answer = aqmlab("replay", capture, *words, "--what-if")
    assert answer.status == 0
    assert "droptail 25" in answer.out  # a single discipline has a baseline
    assert "busiest second" not in answer.err
    assert "round-trip times are" not in answer.err
    data = Scenario.load("runs/replay/capture.toml").data
    link = data["topology"]["bottleneck"]
    assert (link["forward"]["rate"], link["reverse"]["rate"]) == ("3 Mbit/s", "1 Mbit/s")
    assert data["traffic"][0]["rtt"] == {"kind": "constant", "rtt": "40 ms"}


@pytest.mark.long
def test_a_replay_far_from_the_capture_is_an_error(aqmlab: Cli, capture: Path) -> None:
    """The link has 2 Mbit/s; with 1 Mbit/s nothing is as the capture shows it."""
    answer = aqmlab("replay", capture, "--rate", "1")
    assert (answer.status, answer.out) == (2, "")
    assert "is far from the capture: half of the responses take up to " in answer.err
    assert "state it: --rate DOWN/UP, --rtt MS or --present QUEUE" in answer.err
    assert "captured: half of " in answer.err
    assert "replayed behind droptail 20, the present queue: half of " in answer.err
    assert aqmlab("replay", capture, "--rate", "1", "--what-if").status == 0


def test_the_busiest_second_is_about_the_rate(capture: Path) -> None:
    """The link was full now and then; arrivals exceed it by what the queue holds and drops."""
    found = replay(capture, Path("here"), ["droptail"])
    link = Scenario.load(found.file).data["topology"]["bottleneck"]
    number, unit = link["forward"]["rate"].split()
    assert unit == "Mbit/s"
    assert 1.9 <= float(number) <= 2.6


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere.pcap"], "there is no such capture"),
        (["small.toml"], "small.toml: "),
        (["original/capture.pcapng", "--discipline", "pi"], '--discipline: found "pi"'),
        (["original/capture.pcapng", "--discipline", "red,"], "a value between commas is empty"),
        (["original/capture.pcapng", "--rate", "x"], "--rate: found"),
        (["original/capture.pcapng", "--rtt", "x"], "--rtt: found"),
        (["original/capture.pcapng", "--output", "x.txt"], "not as .txt"),
        (["original/capture.pcapng", "--present", "pi"], '--present: found "pi"'),
        (["original/capture.pcapng", "--predict", "pi"], '--predict: found "pi"'),
        (["original/capture.pcapng", "--predict", "pie", "--buffer", "x"], "--buffer: found"),
    ],
)
def test_what_cannot_be_replayed_leaves_nothing(
    aqmlab: Cli, capture: Path, arguments: list[str], expected: str
) -> None:
    assert capture.exists()
    answer = aqmlab("replay", *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert expected in answer.err
    assert not list(Path().glob("runs/replay/*"))


def test_a_capture_without_connections(aqmlab: Cli, small: Path) -> None:
    datagrams = SMALL.partition("[[traffic]]")[0].replace(
        "[measure]", '[measure]\ncapture = "bottleneck"'
    )
    small.write_text(
        f'{datagrams}[[traffic]]\nkind = "cbr"\nflows = 1\nrate = "80 kbit/s"\n'
        'rtt = { kind = "constant", rtt = "20 ms" }\n'
    )
    aqmlab("run", small, "--out", "original")
    answer = aqmlab("replay", "original/capture.pcapng")
    assert (answer.status, answer.out) == (2, "")
    assert "435 packets: IP protocol 17 (UDP)" in answer.err
    assert not list(Path().glob("runs/replay/*"))


def test_a_capture_of_decades_is_refused(aqmlab: Cli, tmp_path: Path) -> None:
    file = tmp_path / "decades.pcap"
    content = bytearray(pcap(CONNECTION))
    last = at = 24
    while at < len(content):
        last = at
        at += 16 + struct.unpack_from("<I", content, at + 8)[0]
    (seconds,) = struct.unpack_from("<I", content, last)
    struct.pack_into("<I", content, last, seconds + 1_200_000_000)
    file.write_bytes(content)
    answer = aqmlab("replay", file, "--out", "replayed")
    assert answer.status == 2
    assert "its packets span 13,889 days; at most 30 can be replayed" in answer.err
    assert [path for path in Path("replayed").rglob("*") if path.is_file()] == []
