"""The story of a response: its events against the packets of a capture, and in words."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest
from aqmlab.engine.execute import execute
from aqmlab.engine.rerun import events_of
from aqmlab.figures.files import save
from aqmlab.figures.sequence import sequence
from aqmlab.figures.theme import Look
from aqmlab.results.events import Events
from aqmlab.results.story import story
from aqmlab.scenario.scenario import Scenario
from conftest import SMALL
from report_runs import RED, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from aqmlab.results.run import Run
    from conftest import Cli

FLAGS = {"FIN": 1, "SYN": 2, "RST": 4, "ACK": 16, "ECE": 64, "CWR": 128}
CLIENT_PORTS = 65_536 - 1024
HOSTS = '\n[topology.hosts]\nclients = 3\nservers = 2\nrate = "10 Mbit/s"\n'


@pytest.fixture(scope="module", params=["plain", "hosts"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with a breakdown and a capture; hosts have links of their own or none."""
    text = SMALL + SECOND + (HOSTS if request.param == "hosts" else "")
    settings = [
        ("topology.bottleneck.forward.discipline", RED),
        ("measure.breakdown", "true"),
        ("measure.capture", '"bottleneck"'),
    ]
    folder = tmp_path_factory.mktemp(request.param)
    return execute(Scenario.from_toml(text).with_overrides(settings), folder / "run")


def _packets(path: Path) -> Iterator[tuple[int, bytes]]:
    """The packets of a capture: time in nanoseconds, bytes."""
    data, place = path.read_bytes(), 0
    while place < len(data):
        kind, length = struct.unpack_from("<II", data, place)
        if kind == 6:
            high, low, captured = struct.unpack_from("<III", data, place + 12)
            yield high << 32 | low, data[place + 28 : place + 28 + captured]
        place += length


def _captured(run: Run, flow: int) -> list[tuple[int, str, int, int, int]]:
    """A connection's packets: nanoseconds, sender, sequence number, payload, control bits."""
    found = []
    port = 1024 + flow % CLIENT_PORTS
    for time, data in _packets(run.path / "capture.pcapng"):
        source, target = struct.unpack_from("!HH", data, 20)
        if port not in {source, target}:
            continue
        (seq,) = struct.unpack_from("!I", data, 24)
        headers = 20 + 4 * (data[32] >> 4)
        payload = struct.unpack_from("!H", data, 2)[0] - headers
        sender = "client" if source == port else "server"
        found.append((time, sender, seq, payload, data[33]))
    return found


def _told(events: Events) -> list[tuple[int, str, int, int, int]]:
    """The same by the story."""
    return [
        (
            time,
            sent.sender,
            sent.seq,
            sent.payload_bytes,
            sum(FLAGS.get(name, 0) for name in sent.flags.split()),
        )
        for time, sent in events.at_ports()
        if time <= events.end_ns
    ]


def test_ten_stories_have_the_packets_of_the_capture(run: Run) -> None:
    repeated = 0
    for rank in range(1, 11):
        narrative = story(run, slowest=rank)
        events = events_of(narrative)
        captured = _captured(run, narrative.row["flow"])
        shown = _told(events)
        assert len(shown) > 5
        known = [one for one in captured if one[0] <= events.end_ns]
        assert [one[1:] for one in shown] == [one[1:] for one in known], rank
        times = zip(shown, known, strict=True)
        assert all(abs(one[0] - other[0]) <= 1000 for one, other in times)
        repeated += sum(trip.sent.again for trip in events.trips())
        assert events.parts == narrative.parts
        moments = events.moments()
        assert moments[-1].time_ns == narrative.response_ns
        assert sum(sum(one.parts.values()) for one in moments) == narrative.response_ns
        assert [one.time_ns for one in moments] == sorted(one.time_ns for one in moments)
    assert repeated > 10


def test_a_story_is_in_words(aqmlab: Cli, run: Run) -> None:
    answer = aqmlab("why", str(run.path), "--slowest", "1")
    assert answer.status == 0, answer.err
    lines = answer.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "client sends SYN" in answer.out
    assert "the response is complete" in answer.out
    assert " dropped in the download queue (early)" in answer.out
    assert " again" in answer.out
    content: dict[str, Any] = json.loads(
        aqmlab("why", str(run.path), "--slowest", "1", "--json").out
    )
    narrative = content["events"]
    assert narrative[0] == {"time_ns": 0, "text": "client sends SYN", "parts": {}}
    assert sum(sum(one["parts"].values()) for one in narrative) == content["response_ns"]


def _texts(picture: str) -> Sequence[str]:
    return [part.partition("<")[0] for part in picture.split(">") if part.partition("<")[0]]


def test_a_sequence_diagram_shows_the_path(run: Run, tmp_path: Path) -> None:
    narrative = story(run, slowest=1)
    events = events_of(narrative)
    for theme in ("light", "dark"):
        chart = sequence(narrative, events, Look(theme=theme))
        picture = save(chart, tmp_path / f"{theme}.svg").read_text()
        texts = _texts(picture)
        assert {"client", "server", "on the path", "lost"} <= set(texts)
        assert any("lost" in text and "bytes" in text for text in texts)


def test_what_a_story_needs_is_said(aqmlab: Cli, run: Run, tmp_path: Path) -> None:
    answer = aqmlab("why", str(run.path), "-o", str(tmp_path / "a.svg"))
    assert answer.status == 2
    assert "--output: draws one response" in answer.err
    answer = aqmlab("why", str(run.path), "--slowest", "1", "-o", str(tmp_path / "a.txt"))
    assert answer.status == 2
    assert "a figure is written as" in answer.err
    count = len(run.read("breakdown") or [])
    answer = aqmlab("why", str(run.path), "--response", str(count + 1))
    assert answer.status == 2
    assert f"--response: found {count + 1}" in answer.err
    answer = aqmlab("run", str(run.path / "scenario.toml"), "--set", "measure.breakdown=false",
                    "--set", "measure.story=3", "--out", str(tmp_path / "other"))  # fmt: skip
    assert answer.status == 2
    assert "measure.story: found 3, but measure.breakdown is false" in answer.err


def test_a_story_of_quic_has_its_words() -> None:
    """A lost tail: the probe time-out ends, and the bytes go again in another datagram."""
    rows: list[dict[str, Any]] = []

    def say(cause: int, ms: int, event: str, **more: Any) -> int:
        row = {"number": len(rows) + 1, "cause": cause, "time_ns": ms * 10**6, "event": event}
        empty = {"sender": "", "seq": 0, "ack": 0, "payload_bytes": 0, "flags": "", "again": False}
        place = {"link": "", "direction": "", "reason": "", "part": "", "duration_ns": 0}
        rows.append({**row, **empty, **place, **more})
        return len(rows)

    def spend(cause: int, ms: int, part: str, duration: int) -> int:
        return say(cause, ms, "part", part=f"{part}_ns", duration_ns=duration * 10**6)

    def trip(cause: int, ms: int, part: str, sender: str, flags: str, **more: Any) -> int:
        sent = say(cause, ms, "sent", sender=sender, flags=flags, **more)
        return say(spend(sent, ms + 50, part, 50), ms + 50, "arrived")

    hello = {"payload_bytes": 278}
    at = trip(say(0, 0, "asked"), 0, "propagation_handshake", "client", "Initial CRYPTO", **hello)
    flight = {"payload_bytes": 1099}
    flags = "Initial Handshake CRYPTO ACK"
    at = trip(at, 50, "propagation_handshake", "server", flags, **flight)
    request = {"payload_bytes": 360}
    flags = "Handshake 1-RTT CRYPTO STREAM ACK"
    at = trip(at, 100, "propagation_exchange", "client", flags, **request)
    answer = {"sender": "server", "flags": "1-RTT STREAM FIN ACK", "payload_bytes": 960}
    first = say(at, 150, "sent", **answer)
    dropped = {"link": "bottleneck", "direction": "forward", "reason": "early"}
    say(first, 150, "dropped", **dropped)
    at = spend(first, 365, "probe_timeout", 215)
    flags = "1-RTT STREAM FIN"
    again = {"payload_bytes": 960, "again": True}
    at = trip(at, 365, "propagation_exchange", "server", flags, **again)
    say(at, 415, "answered")
    found = Events(rows, 415 * 10**6, 0, {})
    stated = [(moment.time_ns // 10**6, moment.text) for moment in found.moments()]
    assert stated == [
        (0, "client sends Initial"),
        (50, "server gets Initial, sends Initial and Handshake"),
        (100, "client gets Initial and Handshake, sends Handshake with bytes 1-360"),
        (150, "server gets Handshake with bytes 1-360, sends bytes 1-960+FIN"),
        (150, "bytes 1-960+FIN are dropped at bottleneck forward (early)"),
        (365, "the probe time-out (PTO) ends (215.0 ms)"),
        (365, "server sends bytes 1-960+FIN again"),
        (415, "client gets bytes 1-960+FIN"),
        (415, "the response is complete"),
    ]
