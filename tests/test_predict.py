"""`aqmlab replay --predict`: held against links whose answer is known."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from aqmlab import Run, Scenario, run
from aqmlab.traffic.foreseen import Ratio, foresee
from aqmlab.traffic.inferred import Inferred, write_vectors
from aqmlab.traffic.played import Present, played_scenario, replayed
from aqmlab.traffic.turns import response_times
from conftest import Cli
from test_field import FAR, HOME, ether, file, packet, pcap, plain, talks

from lab.known_worlds import WORLDS, taken

pytestmark = pytest.mark.usefixtures("elsewhere")

SECONDS = 110


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many short exchanges behind drop-tail, and the folder of the same users behind FQ-CoDel."""
    folder = tmp_path_factory.mktemp("worlds")
    for queue in (None, "fq-codel"):
        taken("many-short", folder, seconds=SECONDS, queue=queue)
    return folder


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The capture of a link that is hardly used."""
    folder = tmp_path_factory.mktemp("worlds")
    return taken("light", folder, seconds=SECONDS).path / "capture.pcapng"


def times(folder: Path, queue: str) -> np.ndarray:
    """Response times in a capture."""
    return Inferred.read(folder / f"many-short-{queue}" / "capture.pcapng").responses(30)


@pytest.mark.long
def test_the_band_holds_the_truth(aqmlab: Cli, short: Path) -> None:
    capture = short / "many-short-present" / "capture.pcapng"
    answer = aqmlab("replay", capture, "--predict", "fq-codel", "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert found["rate"]["down"] == pytest.approx(10, rel=0.003)
    assert found["rate"]["up"] is None
    assert found["tap"] == {"down": "behind", "up": "before"}
    assert found["present"] == "droptail"
    old, new = times(short, "present"), times(short, "fq-codel")
    for key, share in (("t50", 0.5), ("t90", 0.9)):
        one = found["queues"]["fq-codel"][key]
        right = np.quantile(new, share) / np.quantile(old, share)
        low, high = one["band"]
        assert low < right < high, (key, right, one)
        assert one["ratio"] < 1
        assert one["verdict"] != "worse"
    assert "delay_up" not in found["queues"]["fq-codel"]
    assert any("the rate is not in the capture" in text for text in found["left_out"])


def test_what_is_printed(aqmlab: Cli, short: Path) -> None:
    capture = short / "many-short-present" / "capture.pcapng"
    words = ("--present", "droptail", "--buffer", "100")
    answer = aqmlab("replay", capture, "--predict", "codel", *words)
    assert answer.status == 0, answer.err
    assert "the tap is behind the queue down, before the queue up" in answer.out
    assert "10 Mbit/s down: gaps of 100 % of full packets" in answer.out
    assert "up: never full, so its queue is not predicted" in answer.out
    assert "self-test behind droptail" in answer.out
    assert "predicted: new over old" in answer.out
    assert "widest part of the band: " in answer.out


def test_a_light_link_has_nothing_to_gain(aqmlab: Cli, light: Path) -> None:
    answer = aqmlab("replay", light, "--predict", "fq-codel", "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert found["verdict"] == "nothing to gain"
    assert found["rate"]["down"] == pytest.approx(50, rel=0.003)
    assert found["rate"]["up"] is None
    assert found["queues"] == {}
    shown = aqmlab("replay", light, "--predict", "fq-codel")
    assert "nothing to gain: the link is above half of its rate for" in shown.out


@pytest.mark.long
def test_a_wrong_assumption_is_refused(aqmlab: Cli, short: Path) -> None:
    """With 7 Mbit/s the replay is far from the capture, and no ratio is printed."""
    capture = short / "many-short-present" / "capture.pcapng"
    answer = aqmlab("replay", capture, "--predict", "fq-codel", "--rate", "7/7")
    assert (answer.status, answer.out) == (2, "")
    assert "no prediction: behind " in answer.err
    assert "an assumption is wrong, state it: --present QUEUE, --buffer DOWN/UP" in answer.err


def test_response_times_are_those_of_the_clients(light: Path) -> None:
    """The capture is taken 6 ms and more from the clients; nothing of it is in the times."""
    import aqmlab

    run = aqmlab.Run.open(light.parent)
    assert run.responses is not None
    right = run.responses["response_s"].to_numpy()
    found = Inferred.read(light).responses(30)
    assert abs(len(found) - len(right)) <= 1
    assert np.median(found) == pytest.approx(np.median(right), rel=0.02)


@pytest.mark.long
def test_pauses_hold_no_queue(short: Path) -> None:
    """Servers answer at once; up to 100 ms of queue stood in front of each answer."""
    found = Inferred.read(short / "many-short-present" / "capture.pcapng")
    folder = Path("vectors")
    folder.mkdir()
    files = [one.name for one in write_vectors(found, folder)]
    files = [name for name in files if name.startswith("tcp-short-forward")]
    assert len(files) == 8
    pauses, is_request = [], False
    lines = (line for name in files for line in (folder / f"{name}.cvec").read_text().splitlines())
    for line in lines:
        if is_request and line.startswith("t "):
            pauses.append(int(line[2:]) / 1e6)
        is_request = line.startswith(">")
    assert len(pauses) > 1000
    assert np.median(pauses) < 0.003
    assert np.quantile(pauses, 0.9) < 0.02


def test_round_trips_are_those_of_pairs(short: Path) -> None:
    found = Inferred.read(short / "many-short-present" / "capture.pcapng")
    known = found.round_trips[~np.isnan(found.round_trips)]
    right = [rtt + more for rtt in (12, 18, 25, 30, 36, 45, 60, 80, 110, 150) for more in range(3)]
    for one in known:
        assert min(abs(1e3 * one - rtt) for rtt in right) < 1.5


@pytest.fixture(scope="module")
def quic(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Pages over QUIC beside downloads over TCP, of six hosts."""
    return taken("quic", tmp_path_factory.mktemp("worlds"), seconds=SECONDS)


def test_response_times_of_quic_are_those_of_the_clients(quic: Run) -> None:
    found = Inferred.read(quic.path / "capture.pcapng")
    responses = quic.responses
    assert responses is not None
    is_page = np.array(responses["class"].to_pylist()) == "pages"
    right = responses["response_s"].to_numpy()[is_page]
    home, far = found.ways
    times = response_times(found.quic.talks, (far, home), 30)[1]
    # Connections from before the capture's warm-up, and cut ones, are left out.
    assert 0.85 * len(right) < len(times) <= len(right)
    assert np.median(times) == pytest.approx(np.median(right), rel=0.05)
    assert np.quantile(times, 0.9) == pytest.approx(np.quantile(right, 0.9), rel=0.05)
    assert found.passed.quic_share > 0.3
    assert found.passed.judged > 0.98


@pytest.mark.long
def test_handshakes_of_quic_show_the_queue(quic: Run) -> None:
    """TCP alone is seen in a tenth of the time, and shows two thirds of this delay."""
    found = Inferred.read(quic.path / "capture.pcapng")
    assert quic.queue is not None
    queue = quic.queue.filter(pc.field("direction") == "forward")
    right = np.quantile(8 * queue["bytes"].to_numpy() / 20e6, 0.95)
    assert found.delay(30) == pytest.approx(right, rel=0.1)
    assert len(found.quic.loops.loop_s) > 100


@pytest.mark.long
def test_quic_is_replayed_as_quic_and_hosts_stay_apart(quic: Run, tmp_path: Path) -> None:
    found = Inferred.read(quic.path / "capture.pcapng")
    files = write_vectors(found, tmp_path)
    assert {file.host for file in files} == set(range(6))
    text = played_scenario(
        found, files, Present("droptail", (0.15, 0.15)), warm_up_s=10, controls=("cubic", "cubic")
    )
    played = run(Scenario.from_toml(text, folder=tmp_path), out_dir=tmp_path / "run")
    measured = replayed(played, found.rates, 10)
    times = found.responses(10)
    for key, share in (("t50", 0.5), ("t90", 0.9)):
        assert abs(math.log(measured[key] / np.quantile(times, share))) < math.log(1.5)
    down, up = found.passed.loads_bps
    assert measured["load_down"] == pytest.approx(down, rel=0.2)
    assert measured["load_up"] == pytest.approx(up, rel=0.5)


@pytest.mark.parametrize(
    ("first", "is_quic"), [("c300000001", True), ("0000000000", True), ("0400000009", False)]
)
def test_a_tunnel_is_no_quic_connection(first: str, is_quic: bool) -> None:
    """A padded datagram and its answer: QUIC version 1, without payload, WireGuard."""
    frames = [(seg.at, ether(packet(seg), seg.out), seg.size) for seg in talks(1)]
    for at, is_out in ((0.001, True), (0.041, False), (0.042, True), (0.082, False)):
        ends, ports = ((HOME, FAR), (50_000, 443)) if is_out else ((FAR, HOME), (443, 50_000))
        udp = struct.pack(">HHHH", *ports, 1208, 0) + bytes.fromhex(first)
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 1228, 0, 0x4000, 64, 17, 0, *ends)
        frames.append((at, ether(head + udp, is_out), 1195))
    found = Inferred.read(file(pcap(sorted(frames))), (1e7, 1e7))
    assert bool(found.quic.talks) is is_quic
    assert found.passed.quic_share == pytest.approx(4 * 1228 / sum(found.passed.octets) * is_quic)


@pytest.mark.long
def test_a_host_with_many_flows_is_kept_apart(aqmlab: Cli, tmp_path: Path) -> None:
    """CAKE shares the link between hosts, FQ-CoDel between flows; the truth is a run of each."""
    old, *new = (
        taken("two-homes", tmp_path, seconds=SECONDS, queue=queue)
        for queue in (None, "fq-codel", "cake")
    )
    captures = [one.path / "capture.pcapng" for one in (old, *new)]
    before, *after = (np.median(Inferred.read(one).responses(10)) for one in captures)
    words = ("--predict", "fq-codel,cake", "--present", "droptail")
    answer = aqmlab("replay", captures[0], *words, "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)["queues"]
    for queue, median in zip(("fq-codel", "cake"), after, strict=True):
        low, high = found[queue]["t50"]["band"]
        assert low < median / before < high, (queue, median / before, found[queue]["t50"])
    assert after[1] < 0.7 * after[0]
    assert found["cake"]["t50"]["ratio"] < 0.7 * found["fq-codel"]["t50"]["ratio"]


@pytest.fixture(scope="module")
def radio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A link whose rate changes each second, and the same users behind FQ-CoDel."""
    folder = tmp_path_factory.mktemp("worlds")
    for queue in (None, "fq-codel"):
        taken("radio", folder, seconds=SECONDS, queue=queue)
    return folder


@pytest.mark.long
def test_a_rate_that_varies_is_read_while_a_queue_stands(radio: Path) -> None:
    found = Inferred.read(radio / "radio-present" / "capture.pcapng")
    down, up = found.rates
    assert down.is_proven
    assert not up.is_proven
    assert down.series
    begins, values = down.series
    # The capture begins at 10 s.
    known = np.array([WORLDS["radio"].rates[0], *WORLDS["radio"].changes])
    right = 1e6 * known[(begins + 10.25).astype(int)]
    off = np.abs(np.log(values / right))
    assert np.median(off) < 0.01
    assert np.quantile(off, 0.9) < 0.1
    # 300 packets at the mean rate.
    assert found.buffer_s(0) == pytest.approx(300 * 1538 * 8 / down.bps, rel=0.05)


@pytest.mark.long
def test_a_rate_that_varies_is_replayed(aqmlab: Cli, radio: Path) -> None:
    capture = radio / "radio-present" / "capture.pcapng"
    words = ("--predict", "fq-codel", "--present", "droptail")
    answer = aqmlab("replay", capture, *words, "--json")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert "varies between" in found["rate_known_by"]["down"]
    old, new = (
        Inferred.read(radio / f"radio-{queue}" / "capture.pcapng").responses(10)
        for queue in ("present", "fq-codel")
    )
    one = found["queues"]["fq-codel"]["t50"]
    low, high = one["band"]
    assert low < np.median(new) / np.median(old) < high
    assert one["verdict"] != "worse"


def test_few_responses_are_not_enough(aqmlab: Cli) -> None:
    """420 kbit/s are full, with three responses behind the warm-up."""
    file(plain(talks(4, every=4.0, gap=0.03, response=150_000)))
    answer = aqmlab("replay", "link.pcap", "--predict", "pie", "--rate", "0.42/1")
    assert answer.status == 2
    assert "found 3 whole responses" in answer.err
    assert "a prediction needs 30" in answer.err


def test_one_direction_is_not_enough(aqmlab: Cli) -> None:
    segs = [seg for seg in talks(4) if not seg.out]
    frames = [(seg.at, ether(packet(seg), seg.out), seg.size) for seg in segs]
    answer = aqmlab("replay", file(pcap(frames)), "--predict", "pie", "--rate", "10")
    assert answer.status == 2
    assert "capture both directions" in answer.err


def test_without_a_rate_there_is_no_prediction(aqmlab: Cli) -> None:
    answer = aqmlab("replay", file(plain(talks(6))), "--predict", "pie")
    assert answer.status == 2
    assert "the rate of neither direction is in the capture; state it: --rate" in answer.err


@pytest.mark.parametrize(
    ("ratio", "factor", "verdict"),
    [(0.7, 1.2, "better"), (0.7, 1.5, "cannot tell"), (1.4, 1.2, "worse")],
)
def test_the_band_decides_the_word(ratio: float, factor: float, verdict: str) -> None:
    one = Ratio(ratio, 1.0, ratio, factor)
    assert one.verdict == verdict
    assert math.isclose(one.low * one.high, ratio * ratio)


def test_a_long_capture_is_refused() -> None:
    from aqmlab.errors import AqmlabError

    capture = file(plain(talks(2, every=3 * 3600)))
    with pytest.raises(AqmlabError, match=r"span 3\.0 hours; at most 2 can be predicted"):
        foresee(capture, ["pie"])
