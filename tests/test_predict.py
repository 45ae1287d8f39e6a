"""`aqmlab replay --predict`: held against links whose answer is known."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from aqmlab.traffic.foreseen import Ratio, foresee
from aqmlab.traffic.inferred import Inferred, write_vectors
from conftest import Cli
from known_worlds import taken
from test_field import ether, file, packet, pcap, plain, talks

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


def test_pauses_hold_no_queue(short: Path) -> None:
    """Servers answer at once; up to 100 ms of queue stood in front of each answer."""
    found = Inferred.read(short / "many-short-present" / "capture.pcapng")
    folder = Path("vectors")
    folder.mkdir()
    names = [one.name for one in write_vectors(found, folder)]
    assert "short-forward" in names
    pauses, is_request = [], False
    for line in (folder / "short-forward.cvec").read_text().splitlines():
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
