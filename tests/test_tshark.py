"""What tshark finds in a capture that a run has written, against what the run counted.

Three counts are made: the run's own, tshark's analysis, and one of this file, which goes by the
definitions of the standards and by the numbers in the headers that tshark prints.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

EXCHANGES = """
title = "Exchanges over a link that loses packets"

[measure]
warm_up = "0 s"
duration = "65 s"
capture = "bottleneck"

[topology]
kind = "dumbbell"

[topology.bottleneck]
rate = "100 Mbit/s"
loss = 0.03
discipline = { kind = "droptail", limit = "1000 packets" }

[[traffic]]
name = "fetches"
kind = "poisson"
rate = "20 /s"
stop = "50 s"
request = { kind = "constant", size = "400 bytes" }
response = { kind = "bounded-pareto", shape = 1.2, minimum = "1 kB", maximum = "200 kB" }
rtt = { kind = "uniform", min = "20 ms", max = "100 ms" }
"""

SYN, FIN, RST, ACK = 2, 1, 4, 16
HEADERS = ("tcp.stream", "ip.src", "tcp.seq", "tcp.ack", "tcp.len", "tcp.flags", "tcp.window_size")
VERDICTS = ("retransmission", "spurious_retransmission", "out_of_order", "duplicate_ack")


@dataclass(frozen=True)
class Segment:
    """A line of tshark: a segment's header, and what its analysis says of it."""

    stream: int
    source: str
    seq: int
    ack: int
    payload: int
    flags: int
    window: int
    verdicts: frozenset[str]

    @property
    def length(self) -> int:
        """Sequence numbers that it takes."""
        return self.payload + bool(self.flags & SYN) + bool(self.flags & FIN)


@pytest.fixture(scope="module")
def tshark() -> str:
    """The program, without which these tests say that they were skipped."""
    found = shutil.which("tshark")
    if found is None:
        pytest.skip("tshark is not installed (Debian: apt-get install tshark)")
    return found


@dataclass(frozen=True)
class Captured:
    """A run, all of whose connections have ended, and its capture."""

    tshark: str
    file: Path
    flows: dict[str, Any]

    def lines(self, *options: str) -> list[str]:
        """What tshark prints about the capture."""
        checks = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]
        command = [self.tshark, "-r", str(self.file), *checks, *options]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(
            "\n"
        )[:-1]

    def segments(self) -> list[Segment]:
        """Every segment."""
        fields = [*HEADERS, *(f"tcp.analysis.{verdict}" for verdict in VERDICTS)]
        options = [option for field in fields for option in ("-e", field)]
        return [
            Segment(
                int(stream),
                source,
                int(seq),
                int(ack or 0),
                int(payload),
                int(flags, 16),
                int(window),
                frozenset(name for name, value in zip(VERDICTS, verdicts, strict=True) if value),
            )
            for stream, source, seq, ack, payload, flags, window, *verdicts in (
                line.split("\t") for line in self.lines("-T", "fields", *options)
            )
        ]


@pytest.fixture
def captured(aqmlab: Cli, elsewhere: Path, tshark: str) -> Captured:
    (elsewhere / "exchanges.toml").write_text(EXCHANGES)
    answer = aqmlab("run", "exchanges.toml", "--out", "run", "--json")
    assert answer.status == 0, answer.err
    flows = json.loads(answer.out)["flows"]["all"]
    return Captured(tshark, elsewhere / "run" / "capture.pcapng", flows)


def sent_again(segments: list[Segment]) -> set[int]:
    """Segments with sequence numbers that their sender has used before."""
    found, next_seq = set[int](), dict[tuple[int, str], int]()
    for number, segment in enumerate(segments):
        if segment.length > 0:
            side = (segment.stream, segment.source)
            expected = next_seq.get(side, 0)
            if segment.seq < expected:
                found.add(number)
            next_seq[side] = max(expected, segment.seq + segment.length)
    return found


def repeated_acks(segments: list[Segment]) -> tuple[set[int], set[int]]:
    """Bare ACKs that say what the one before said: with data outstanding (duplicate ACKs by RFC
    5681, section 2), and without."""
    duplicates, idle = set[int](), set[int]()
    next_seq, said = dict[tuple[int, str], int](), dict[tuple[int, str], tuple[int, int]]()
    others = {(it.stream, it.source) for it in segments}
    other_side = {
        (stream, source): (stream, other)
        for stream, source in others
        for also, other in others
        if also == stream and other != source
    }
    for number, segment in enumerate(segments):
        side = (segment.stream, segment.source)
        says = (segment.ack, segment.window)
        is_bare = segment.payload == 0 and segment.flags & (ACK | SYN | FIN | RST) == ACK
        if is_bare and said.get(side) == says:
            outstanding = next_seq.get(other_side[side], 0) > segment.ack
            (duplicates if outstanding else idle).add(number)
        if segment.flags & ACK:
            said[side] = says
        next_seq[side] = max(next_seq.get(side, 0), segment.seq + segment.length)
    return duplicates, idle


def test_nothing_is_malformed(captured: Captured) -> None:
    assert len(captured.lines("-Y", "tcp")) > 10_000
    wrong = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0"
    assert captured.lines("-Y", f"{wrong} || _ws.expert.severity == error") == []


def test_retransmissions_are_those_of_the_run(captured: Captured) -> None:
    segments = captured.segments()
    ours = sent_again(segments)
    recorded = sum(captured.flows[f"retransmitted_{kind}"] for kind in ("syn", "fin", "data"))
    assert len(ours) == recorded > 100
    # tshark calls a hole that is filled within a round trip "out of order": it cannot know that
    # the network keeps the order.
    repeated = {"retransmission", "spurious_retransmission", "out_of_order"}
    found = {number for number, it in enumerate(segments) if it.verdicts & repeated}
    assert found == ours


def test_duplicate_acks_and_windows_are_those_of_the_standard(captured: Captured) -> None:
    segments = captured.segments()
    found = {number for number, it in enumerate(segments) if "duplicate_ack" in it.verdicts}
    duplicates, idle = repeated_acks(segments)
    # tshark does not ask for outstanding data: it also counts the ACKs that answer a SYN-ACK, a
    # FIN or data that came a second time.
    assert len(duplicates) > 50
    assert duplicates <= found <= duplicates | idle
    assert len(found - duplicates) <= len(sent_again(segments))
    # Applications read at once, so no window closes.
    assert captured.lines("-Y", "tcp.analysis.zero_window || tcp.analysis.window_full") == []
    assert all(segment.window > 0 for segment in segments)
