"""A clock that was set forward in the middle of a capture, and what comes of it."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from aqmlab.traffic.segments import read_segments
from aqmlab.traffic.tapped import Tapped, read_exchanges
from conftest import Cli

from lab import capture_field
from lab.known_worlds import taken

pytestmark = pytest.mark.usefixtures("elsewhere")

STEPS_S = (1, 60, 3600)
REASON = capture_field.missing()


def stamps(content: bytes) -> list[tuple[int, int, int]]:
    """Each packet of a pcap or pcapng file: where its time stands, words of it, units a second."""
    found, at = [], 0
    if content[:4] == b"\xd4\xc3\xb2\xa1":
        at = 24
        while at < len(content):
            found.append((at, 0, 10**6))
            at += 16 + struct.unpack_from("<I", content, at + 8)[0]
        return found
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:  # enhanced packet block; the simulator counts nanoseconds
            found.append((at + 12, 1, 10**9))
        at += length
    return found


def set_forward(capture: Path, by_s: int) -> Path:
    """The same capture with a clock that is set in its middle."""
    content = bytearray(capture.read_bytes())
    places = stamps(bytes(content))
    for at, is_block, unit in places[len(places) // 2 :]:
        high, low = struct.unpack_from("<II", content, at)
        if is_block:
            time = (high << 32 | low) + by_s * unit
            struct.pack_into("<II", content, at, time >> 32, time & 0xFFFFFFFF)
        else:
            struct.pack_into("<I", content, at, high + by_s)
    edited = Path(f"set-{by_s}{capture.suffix}")
    edited.write_bytes(content)
    return edited


def times(found: Tapped) -> np.ndarray:
    """Response times in the order of the connections."""
    rows = sorted((one.connection, one.start_s, one.response_s) for one in found.exchanges)
    return np.array([row[2] for row in rows])


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture by the simulator."""
    folder = tmp_path_factory.mktemp("clock")
    return taken("many-short", folder, seconds=60).path / "capture.pcapng"


@pytest.mark.long
@pytest.mark.parametrize("by_s", STEPS_S[1:])
def test_no_response_waits_for_a_clock(aqmlab: Cli, simulated: Path, by_s: int) -> None:
    edited = set_forward(simulated, by_s)
    found, right = read_exchanges(edited), read_exchanges(simulated)
    forward = found.notes["set_forward_s"]
    assert forward == [pytest.approx(by_s, abs=0.1)]
    assert not found.notes["unclear_silences_s"]
    assert not right.notes["set_forward_s"]
    # A run's clock is mended up to what a queue adds to a time stamp.
    assert np.abs(times(found) - times(right)).max() < 0.1
    last_s = read_segments(simulated).time_s[-1]
    assert read_segments(edited).time_s[-1] == pytest.approx(last_s, abs=0.1)
    answer = aqmlab("why", edited)
    assert answer.status == 0, answer.err
    assert "the clock was set forward by" in answer.out + answer.err


def test_a_second_without_time_stamps_may_be_a_clock(aqmlab: Cli, simulated: Path) -> None:
    """Timers may be as long as that."""
    edited = set_forward(simulated, 1)
    notes = read_exchanges(edited).notes
    assert not notes["set_forward_s"]
    [[at, long]] = notes["unclear_silences_s"]
    assert (at, long) == (pytest.approx(25, abs=5), pytest.approx(1, abs=0.1))
    answer = aqmlab("why", edited)
    assert "the clock may have been set forward, or nothing was sent" in answer.out + answer.err


@pytest.mark.long
@pytest.mark.skipif(bool(REASON), reason=f"makes captures in namespaces: {REASON}")
def test_the_clock_of_a_real_capture(tmp_path: Path) -> None:
    captures = [file for file, _ in capture_field.captured("nat-both", tmp_path)]
    plain = [file for file in captures if file.read_bytes()[:4] == b"\xd4\xc3\xb2\xa1"]
    assert plain
    for file in plain:
        right = read_segments(file)
        assert right.notes["set_forward_s"] == []
        for by_s in STEPS_S:
            found = read_segments(set_forward(file, by_s))
            assert found.notes["set_forward_s"] == [pytest.approx(by_s, abs=0.1)]
            assert found.time_s[-1] == pytest.approx(right.time_s[-1], abs=0.1)
