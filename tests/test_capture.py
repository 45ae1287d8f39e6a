"""From captures to connection vectors, through the command line."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from conftest import ROOT, Cli

SYN, ACK, FIN = 2, 16, 1

Packet = tuple[float, int, int, int, int, int]
"""Time in seconds, side (0: the client), flags, relative seq and ack, payload."""

CONNECTION: list[Packet] = [
    (0.000, 0, SYN, -1, 0, 0),
    (0.020, 1, SYN | ACK, -1, 0, 0),
    (0.030, 0, ACK, 0, 0, 0),
    (0.031, 0, ACK, 0, 0, 400),
    (0.061, 1, ACK, 0, 400, 1460),
    (0.062, 1, ACK, 1460, 400, 540),
    (0.072, 0, ACK, 400, 2000, 0),
    (1.062, 1, ACK | FIN, 2000, 400, 0),
    (1.072, 0, ACK | FIN, 400, 2001, 0),
    (1.092, 1, ACK, 2001, 401, 0),
]

VECTOR = """\
SEQ 0 1 0 1
w 65535 65535
m 1460 1460
r 30000
> 400
t 10000
< 2000
t 1000000

"""


def frame(packet: Packet, port: int = 40000) -> bytes:
    """An Ethernet frame's headers: the payload is not captured."""
    _, side, flags, seq, ack, payload = packet
    addresses = [bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])]
    ports = [port, 80]
    options = bytes([2, 4, 5, 180]) if flags & SYN else b""
    tcp = struct.pack(
        "!HHIIBBHHH",
        ports[side],
        ports[1 - side],
        (seq + 1000) % 2**32,
        ack + 1000 if flags & ACK else 0,
        (20 + len(options)) // 4 << 4,
        flags,
        65535,
        0,
        0,
    )
    total = 20 + len(tcp) + len(options) + payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, total, 0, 0x4000, 64, 6, 0)
    ip += addresses[side] + addresses[1 - side]
    return bytes(12) + b"\x08\x00" + ip + tcp + options


def pcap(packets: Iterable[Packet], port: int = 40000) -> bytes:
    """A capture of headers, in microseconds."""
    content = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 1)
    for packet in packets:
        data = frame(packet, port)
        micros = round(packet[0] * 1e6)
        length = len(data) + packet[5]
        content += struct.pack(
            "<IIII", 1_700_000_000 + micros // 10**6, micros % 10**6, len(data), length
        )
        content += data
    return content


@pytest.fixture
def capture(elsewhere: Path) -> Path:
    """A capture of one connection."""
    file = elsewhere / "link.pcap"
    file.write_bytes(pcap(CONNECTION))
    return file


def test_a_capture_becomes_vectors_and_a_report(aqmlab: Cli, capture: Path) -> None:
    answer = aqmlab("traffic", "from-capture", capture, "-o", "new/link.cvec")
    assert (answer.status, answer.err) == (0, "")
    assert Path("new/link.cvec").read_text() == VECTOR
    assert answer.out.endswith("connection vectors: new/link.cvec\n")
    for words in ("packets", "initiator known by: SYN", "bytes from acceptors"):
        assert words in answer.out
    assert [path.name for path in Path("new").iterdir()] == ["link.cvec"]


def test_json_is_the_report_and_nothing_else(aqmlab: Cli, capture: Path) -> None:
    answer = aqmlab(
        "traffic", "from-capture", capture, "-o", "a", "--json", "--layout", "alternate"
    )
    report = json.loads(answer.out)
    assert report["packets"]["read"] == report["packets"]["tcp"] == len(CONNECTION)
    assert report["connections"]["made"] == report["connections"]["seen"] == 1
    assert report["vectors"]["initiator_bytes"] == 400
    assert Path("a").read_text().splitlines()[-3:] == ["A 0 10000 2000", "A 1000000 0 0", ""]


def test_options_reach_the_engine(aqmlab: Cli, elsewhere: Path) -> None:
    (elsewhere / "part.pcap").write_bytes(pcap(CONNECTION[3:7]))
    kept = aqmlab("traffic", "from-capture", "part.pcap", "-o", "kept")
    assert kept.status == 0
    assert "not captured whole: beginning not seen" in kept.out
    dropped = aqmlab("traffic", "from-capture", "part.pcap", "-o", "dropped", "--partial", "drop")
    assert dropped.status == 2
    assert "1 connections: partial" in dropped.err
    idle = aqmlab("traffic", "from-capture", "part.pcap", "-o", "idle", "--idle", "500 apples")
    assert idle.status == 2
    assert idle.err.startswith("aqmlab: --idle: ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "link.pcap: packet 1: the file is empty"),
        (b"GIF89a is a picture", "neither a pcap nor a pcapng file"),
        (pcap(CONNECTION)[:30], "packet 1: the file ends inside the header of this packet"),
        (pcap([]), "no connection vector can be made of its 0 packets"),
    ],
)
def test_what_is_no_capture_leaves_nothing(
    aqmlab: Cli, elsewhere: Path, content: bytes, words: str
) -> None:
    (elsewhere / "link.pcap").write_bytes(content)
    before = Path("old.cvec")
    before.write_text("old")
    answer = aqmlab("traffic", "from-capture", "link.pcap", "-o", "old.cvec")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert words in answer.err
    assert before.read_text() == "old"
    assert sorted(path.name for path in elsewhere.iterdir()) == ["link.pcap", "old.cvec"]


def test_files_that_are_not_there(aqmlab: Cli, capture: Path) -> None:
    missing = aqmlab("traffic", "from-capture", "lnk.pcap", "-o", "x")
    assert missing.status == 2
    assert "there is no such capture; did you mean link.pcap?" in missing.err
    folder = aqmlab("traffic", "from-capture", capture.parent, "-o", "x")
    assert "is a folder, not a capture" in folder.err
    Path("file").write_text("")
    unwritable = aqmlab("traffic", "from-capture", capture, "-o", "file/x")
    assert unwritable.status == 2
    assert unwritable.err.count("\n") == 1


def test_other_tools_captures_give_the_same(aqmlab: Cli, capture: Path) -> None:
    """Wireshark's converter writes pcapng and nanoseconds."""
    editcap = shutil.which("editcap")
    if editcap is None:
        pytest.skip("editcap is not installed (Debian: apt-get install wireshark-common)")
    for form in ("pcap", "nsecpcap", "pcapng"):
        converted = Path(f"converted.{form}")
        subprocess.run([editcap, "-F", form, capture, converted], check=True)
        assert aqmlab("traffic", "from-capture", converted, "-o", "out.cvec").status == 0
        assert Path("out.cvec").read_text() == VECTOR


def captured_run(aqmlab: Cli, folder: Path, scenario: str, loss: float) -> Path:
    """Runs a scenario with that loss and returns its directory."""
    (folder / "round.toml").write_text(scenario.replace("loss = 0.0", f"loss = {loss}"))
    answer = aqmlab("run", "round.toml", "--out", "run")
    assert answer.status == 0, answer.err
    return folder / "run"


VECTORS = """
title = "Connection vectors over a link that is hardly used"

[measure]
warm_up = "0 s"
duration = "2000 s"
record = []
capture = "bottleneck"

[topology]
kind = "dumbbell"

[topology.bottleneck]
rate = "1 Gbit/s"
loss = 0.0
discipline = { kind = "droptail", limit = "10000 packets" }

[[traffic]]
name = "recorded"
kind = "vectors"
file = "synthetic.cvec"
copies = 1
tcp = "linux-classic"
rtt = { kind = "vector" }
"""

IDLE = 500_000
"""Silence within an ADU, in microseconds."""

Adu = tuple[str, int, int]
"""Who sends, bytes, the pause behind it in microseconds."""


def vectors(file: Path) -> tuple[list[list[Adu]], list[tuple[int, int]]]:
    """Sequential connections of a file of vectors; bytes of both sides of concurrent ones."""
    sequential: list[list[Adu]] = []
    concurrent: list[list[Adu]] = []
    for line in file.read_text().splitlines():
        words = line.split()
        if line.startswith(("SEQ", "CONC")):
            (sequential if words[0] == "SEQ" else concurrent).append([])
            current = sequential[-1] if words[0] == "SEQ" else concurrent[-1]
        elif line.lstrip("c").startswith((">", "<")):
            current.append((words[0].lstrip("c"), int(words[1]), 0))
        elif line.startswith("t"):
            who, size, _ = current[-1]
            current[-1] = (who, size, int(words[1]))
    return sequential, [
        (sum(size for who, size, _ in adus if who == ">"), sum(a[1] for a in adus if a[0] == "<"))
        for adus in concurrent
    ]


def at_the_tap(adus: list[Adu]) -> list[Adu]:
    """What can be told apart from outside: units of one side need a silence between them."""
    units: list[Adu] = []
    for who, size, pause in adus:
        if units and units[-1][0] == who and units[-1][2] <= IDLE:
            units[-1] = (who, units[-1][1] + size, pause)
        else:
            units.append((who, size, pause))
    return units


def sizes(adus: list[Adu]) -> tuple[tuple[str, int], ...]:
    return tuple((who, size) for who, size, _ in adus)


@pytest.mark.parametrize("loss", [0.0, 0.03])
def test_vectors_come_back_from_the_capture_of_a_run(
    aqmlab: Cli, elsewhere: Path, loss: float
) -> None:
    """Connections, sizes and order exactly; pauses too, where no loss adds to them."""
    shutil.copy(ROOT / "crates/traffic/data/tmix/synthetic-orig.cvec", "synthetic.cvec")
    run = captured_run(aqmlab, elsewhere, VECTORS, loss)
    answer = aqmlab("traffic", "from-capture", run / "capture.pcapng", "-o", "again.cvec", "--json")
    report = json.loads(answer.out)
    assert report["packets"]["tcp"] == report["packets"]["read"]
    assert report["connections"]["initiator_by"] == {"SYN": 160}
    assert report["connections"]["skipped"] == report["connections"]["partial"] == {}
    assert (report["packets"]["repeated"] > 0) == (loss > 0)

    given, given_at_once = vectors(Path("synthetic.cvec"))
    found, found_at_once = vectors(Path("again.cvec"))
    assert Counter(given_at_once) == Counter(found_at_once)
    expected = {sizes(units): units for units in map(at_the_tap, given)}
    assert len(expected) == len(given), "sizes tell connections apart"
    assert Counter(map(sizes, found)) == Counter(list(expected))
    if loss == 0:
        for adus in found:
            seen = expected[sizes(adus)]
            for one, other, following in zip(adus, seen, adus[1:], strict=False):
                if one[0] != following[0]:
                    assert abs(one[2] - other[2]) < 1000, (adus, seen)


USERS = "[[traffic]]\nusers = 3330"
"""Nothing is left to calibrate."""


def test_the_capture_of_a_run_has_its_connections(aqmlab: Cli, elsewhere: Path) -> None:
    """The scenario of docs/how-to/capture.md, only shorter, replays them."""
    text = (ROOT / "docs/how-to/capture.md").read_text()
    [scenario] = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    shutil.copytree(ROOT / "scenarios", "scenarios", ignore=shutil.ignore_patterns("sweeps"))
    quickstart = Path("scenarios/quickstart.toml")
    stated = quickstart.read_text().replace("load = 0.98", "").replace("[[traffic]]", USERS)
    quickstart.write_text(stated)
    shorter = ("measure.warm_up=5 s", "measure.duration=20 s", 'measure.capture="bottleneck"')
    options = [word for pair in shorter for word in ("--set", pair)]
    answer = aqmlab("run", str(quickstart), "--out", "run", *options, "--json")
    assert answer.status == 0, answer.err
    started = json.loads(answer.out)["responses"]["all"]["started"]
    capture = ("run/capture.pcapng", "-o", "link.cvec")
    answer = aqmlab("traffic", "from-capture", *capture, "--json")
    assert json.loads(answer.out)["connections"]["made"] > started
    replayed = scenario.replace('"10 s"', '"5 s"').replace('"50 s"', '"15 s"')
    assert replayed != scenario
    (elsewhere / "mine.toml").write_text(replayed)
    queues = "topology.bottleneck.discipline=droptail-240,fq-codel"
    answer = aqmlab("compare", "mine.toml", "--vary", queues, "-o", "mine.svg")
    assert answer.status == 0, answer.err
    assert "fq-codel" in answer.out
    assert (elsewhere / "mine.svg").read_text().startswith("<svg")
