"""Captures as people have them: each says what the clean file says, or why it cannot."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from aqmlab.scenario.quantities import parsed_rate
from aqmlab.scenario.scenario import Scenario
from aqmlab.traffic.captures import from_capture
from aqmlab.traffic.inferred import Inferred
from aqmlab.traffic.rates import Arrivals, rates
from aqmlab.traffic.segments import read_segments
from aqmlab.traffic.tapped import read_exchanges
from conftest import SMALL, Cli

pytestmark = pytest.mark.usefixtures("elsewhere")

FIN, SYN, ACK = 1, 2, 16
HOME, FAR = bytes([192, 0, 2, 10]), bytes([198, 51, 100, 20])
CARDS = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
EPOCH = 1_700_000_000


class Seg(NamedTuple):
    """A segment of a connection at a tap beside the client."""

    at: float
    out: bool
    seq: int
    ack: int
    flags: int
    size: int
    port: int


def talk(
    start: float, port: int, *, request: int = 200, response: int = 60_000, gap: float = 0.0024
) -> list[Seg]:
    """A connection: the server is 40 ms away, the client 1 ms."""
    found: list[Seg] = []

    def add(at: float, out: bool, seq: int, ack: int, flags: int, size: int = 0) -> None:
        found.append(Seg(start + at, out, seq, ack, flags, size, port))

    add(0, True, 1000, 0, SYN)
    add(0.040, False, 5000, 1001, SYN | ACK)
    add(0.041, True, 1001, 5001, ACK)
    now, sent, got = 0.041, 0, 0
    while sent < request:
        size = min(1460, request - sent)
        add(now, True, 1001 + sent, 5001, ACK, size)
        sent += size
        if request > 1460:
            add(now + 0.040, False, 5001, 1001 + sent, ACK)
            now += gap
    now += 0.090
    while got < response:
        size = min(1460, response - got)
        add(now, False, 5001 + got, 1001 + sent, ACK, size)
        got += size
        add(now + 0.001, True, 1001 + sent, 5001 + got, ACK)
        now += gap
    add(now, False, 5001 + got, 1001 + sent, FIN | ACK)
    add(now + 0.001, True, 1001 + sent, 5002 + got, FIN | ACK)
    add(now + 0.041, False, 5002 + got, 1002 + sent, ACK)
    return found


def talks(number: int, every: float = 0.1, **how: Any) -> list[Seg]:
    """Connections, one after the other."""
    found = [seg for one in range(number) for seg in talk(one * every, 40_000 + one, **how)]
    return sorted(found)


def packet(seg: Seg, client: bytes = HOME, server: bytes = FAR) -> bytes:
    """IP and TCP headers; what they carry is not captured."""
    ends, ports = (client, server), (seg.port, 80)
    if not seg.out:
        ends, ports = ends[::-1], ports[::-1]
    tcp = struct.pack(">HHIIBBHHH", *ports, seg.seq, seg.ack, 0x50, seg.flags, 65_535, 0, 0)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + seg.size, 0, 0x4000, 64, 6, 0, *ends)
    return head + tcp


def ether(content: bytes, out: bool, kind: int = 0x800) -> bytes:
    """An Ethernet frame."""
    return b"".join(CARDS[::-1] if out else CARDS) + struct.pack(">H", kind) + content


def cooked(content: bytes, kind: int) -> bytes:
    """What `tcpdump -i any` writes: 0 comes in, 4 goes out."""
    return struct.pack(">HHH8sH", kind, 1, 6, CARDS[0] + b"\0\0", 0x800) + content


def pcap(frames: list[tuple[float, bytes, int]], link: int = 1) -> bytes:
    """A file of frames: time, captured bytes, bytes that were not captured."""
    found = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 120, link)]
    for at, data, more in frames:
        micros = round(at * 1e6)
        stamp = (EPOCH + micros // 10**6, micros % 10**6)
        found.append(struct.pack("<IIII", *stamp, len(data), len(data) + more) + data)
    return b"".join(found)


def plain(segs: list[Seg]) -> bytes:
    """Segments as Ethernet frames, in the order given."""
    return pcap([(seg.at, ether(packet(seg), seg.out), seg.size) for seg in segs])


def twice(segs: list[Seg], first: Any, second: Any, link: int) -> bytes:
    """Each segment twice, 30 microseconds apart."""
    frames = [(seg.at, first(seg), seg.size) for seg in segs]
    frames += [(seg.at + 30e-6, second(seg), seg.size) for seg in segs]
    return pcap(sorted(frames, key=lambda frame: frame[0]), link)


def file(content: bytes, name: str = "link.pcap") -> Path:
    """A file with that content."""
    Path(name).write_bytes(content)
    return Path(name)


def said(capture: Path) -> dict[str, Any]:
    """What a capture says: vectors, rates and parts of responses."""
    report = from_capture(capture, Path("said.cvec"))
    tapped = read_exchanges(capture)
    for exchange in tapped.exchanges:
        assert min(exchange.parts.values()) >= 0
        timers = exchange.parts.get("syn_timeout", 0) + exchange.parts["timeout"]
        assert (exchange.timeouts + exchange.syn_timeouts > 0) == (timers > 0)
    return {
        "vectors": Path("said.cvec").read_text(),
        "counts": report["vectors"],
        "rates": [rate.bps for rate in rates(capture)],
        "parts": [exchange.parts for exchange in tapped.exchanges],
    }


NAT = bytes([203, 0, 113, 5])
TWICE: dict[str, Any] = {
    "any": (lambda one: cooked(packet(one), 0), lambda one: cooked(packet(one), 4), 113),
    "mirror": (
        lambda one: ether(packet(one), one.out),
        lambda one: ether(packet(one), one.out),
        1,
    ),
    "nat": (
        lambda one: cooked(packet(one, HOME if one.out else NAT), 0),
        lambda one: cooked(packet(one, NAT if one.out else HOME), 4),
        113,
    ),
}


@pytest.mark.parametrize("how", TWICE)
def test_second_sights_count_once(how: str) -> None:
    segs = talks(6)
    assert said(file(twice(segs, *TWICE[how]))) == said(file(plain(segs), "once.pcap"))


def test_a_planted_second_sight_with_other_numbers_stays() -> None:
    """The test above can fail: another packet is no second sight."""
    segs = talks(6)
    other = [seg._replace(seq=seg.seq + 7, ack=seg.ack + 7 if seg.ack else 0) for seg in segs]
    frames = [(seg.at, ether(packet(seg), seg.out), seg.size) for seg in [*segs, *other]]
    capture = file(pcap(sorted(frames)))
    report = from_capture(capture, Path("planted.cvec"))
    assert report["packets"]["second_sights"] == 0
    assert report["packets"]["tcp"] == 2 * len(segs)


def test_the_order_of_the_file_does_not_matter(aqmlab: Cli) -> None:
    segs = talks(6)
    mixed = [seg for at in range(0, len(segs), 8) for seg in segs[at : at + 8][::-1]]
    assert said(file(plain(mixed))) == said(file(plain(segs), "sorted.pcap"))
    answer = aqmlab("traffic", "from-capture", "link.pcap", "-o", "x.cvec")
    assert "packets stood behind later ones; they are put in order of time" in answer.err


def test_rates_are_those_of_each_direction() -> None:
    down, up = talks(6), talks(6, request=60_000, response=200)
    up = [seg._replace(port=seg.port + 1000) for seg in up]
    one, other = (rate.bps for rate in rates(file(plain(sorted(down + up)))))
    assert 3.0e6 < one < 3.5e6
    assert 3.0e6 < other < 3.5e6


def test_a_link_that_was_never_full_has_no_rate(aqmlab: Cli) -> None:
    file(plain(talks(8, every=1.5, gap=0.00012)))
    answer = aqmlab("replay", "link.pcap")
    assert (answer.status, answer.out) == (2, "")
    assert "its link was never full" in answer.err
    assert "--rate" in answer.err
    assert aqmlab("replay", "link.pcap", "--rate", "100/20").status == 0


def test_who_opens_a_connection_does_not_say_where_home_is(aqmlab: Cli) -> None:
    frames = [
        (seg.at, ether(packet(seg), seg.out), seg.size)
        for number in range(3)
        for seg in talk(number * 0.1, 40_000 + number)
    ]
    for number in range(3):
        client = bytes([198, 51, 100, 30 + number])
        frames += [
            (seg.at, ether(packet(seg, client, HOME), not seg.out), seg.size)
            for seg in talk(number * 0.1, 50_000 + number)
        ]
    file(pcap(sorted(frames)))
    answer = aqmlab("replay", "link.pcap", "--json")
    assert answer.status == 0, answer.err
    assert "3 of 6 connections are opened from beyond the link" in answer.err
    traffic = Scenario.load("runs/replay/link.toml").data["traffic"]
    assert [one["direction"] for one in traffic] == ["forward", "reverse"]


@pytest.mark.parametrize("name", ["link.cap", "link.dmp", "link.pcap0", "LINK.PCAP", "link"])
def test_the_name_of_a_file_says_nothing(aqmlab: Cli, name: str) -> None:
    file(plain(talks(1)), name)
    for words in (["why"], ["traffic", "describe"]):
        assert aqmlab(*words, name).status == 0, words
    assert aqmlab("replay", name).status == 0


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_captures_are_read(aqmlab: Cli, pack: Any) -> None:
    segs = talks(2)
    file(pack(plain(segs)), "link.packed")
    file(plain(segs))
    answers = [aqmlab("why", name, "--json") for name in ("link.packed", "link.pcap")]
    first, second = (json.loads(answer.out)["responses"] for answer in answers)
    assert first == second
    assert aqmlab("traffic", "describe", "link.packed").status == 0
    file(pack(plain(segs))[:9], "broken")
    broken = aqmlab("traffic", "from-capture", "broken", "-o", "x.cvec")
    assert broken.status == 2
    assert "cannot be unpacked" in broken.err


def test_a_compressed_file_that_is_cut_is_read_to_the_cut(aqmlab: Cli) -> None:
    """`tcpdump -w - | gzip` that was killed."""
    segs = talks(6)
    whole = gzip.compress(plain(segs))
    file(whole[: len(whole) * 3 // 4], "link.pcap.gz")
    answer = aqmlab("traffic", "from-capture", "link.pcap.gz", "-o", "x.cvec", "--json")
    assert answer.status == 0, answer.err
    assert len(segs) / 2 < json.loads(answer.out)["packets"]["tcp"] < len(segs)
    assert "the file is read to its cut: packet" in answer.err


def test_describe_says_what_passed_each_way(aqmlab: Cli) -> None:
    segs = talks(6)
    answer = aqmlab("traffic", "describe", file(twice(segs, *TWICE["any"])))
    assert answer.status == 0, answer.err
    assert f"{len(segs)} packets are second sights" in answer.err
    counts = [sum(1 for seg in segs if seg.out == out) for out in (False, True)]
    for way, packets in zip(("towards home", "away from home"), counts, strict=True):
        assert re.search(rf"{way} +{packets} ", answer.out), answer.out
    # One packet has no rate, and no packet nothing to describe.
    one = aqmlab("traffic", "describe", file(plain(segs[:1])))
    assert one.status == 0
    assert re.search(r"0 +0\.0 +1 *\n", one.out), one.out
    none = aqmlab("traffic", "describe", file(plain([])))
    assert none.status == 2
    assert "holds no packet" in none.err


def test_times_count_from_the_first_packet_of_any_kind() -> None:
    """Bins of packets, segments and vectors have one origin, also behind ARP."""
    segs = [seg._replace(at=seg.at + 1.5) for seg in talks(6)]
    frames = [(seg.at, ether(packet(seg), seg.out), seg.size) for seg in segs]
    capture = file(pcap([(0.0, ether(bytes(28), True, 0x806), 0), *frames]))
    segments = read_segments(capture)
    assert segments.time_s[0] == pytest.approx(1.5)
    assert read_exchanges(capture).exchanges[0].start_s == pytest.approx(1.5)
    step, packets, _ = Arrivals.read(capture, segments).over(0.01, 1)
    assert np.flatnonzero(packets)[0] * step == pytest.approx(1.5)
    assert Inferred.read(capture, (1e7, 1e7)).seconds == pytest.approx(segs[-1].at)


def test_one_direction_has_no_response_times(aqmlab: Cli) -> None:
    segs = [seg for seg in talks(12) if seg.out]
    answer = aqmlab("replay", file(plain(segs)), "--rate", "10")
    assert answer.status == 0, answer.err
    assert "responses take" not in answer.err.partition("captured: ")[2].partition("\n")[0]
    assert "one direction not seen" in answer.err


def test_a_file_that_is_cut_is_read_to_the_cut(aqmlab: Cli) -> None:
    segs = talks(6)
    file(plain(segs)[:-7])
    answer = aqmlab("traffic", "from-capture", "link.pcap", "-o", "x.cvec", "--json")
    assert answer.status == 0
    assert json.loads(answer.out)["packets"]["tcp"] == len(segs) - 1
    assert "the file is read to its cut: packet" in answer.err


@pytest.mark.long
def test_two_weeks_can_be_replayed(aqmlab: Cli) -> None:
    file(plain(talks(2, every=14 * 86_400)))
    answer = aqmlab("replay", "link.pcap")
    assert answer.status == 0, answer.err
    assert "captured: 0.826 bit/s down" in answer.err
    assert "no user's response, transfer or call ended in the measured span" in answer.out


def test_uploads_have_times(aqmlab: Cli) -> None:
    segs = talks(3, every=0.4, request=400_000, response=0, gap=0.0012)
    answer = aqmlab("why", file(plain(segs)), "--json")
    assert answer.status == 0, answer.err
    responses = json.loads(answer.out)["responses"]
    assert [one["request_bytes"] for one in responses] == [400_000] * 3
    assert [one["response_bytes"] for one in responses] == [0] * 3
    # 41 ms until it is open, 273 gaps, and 40 ms for the last ACK.
    for one in responses:
        assert one["response_s"] == pytest.approx(0.041 + 273 * 0.0012 + 0.040, abs=1e-5)
    shown = aqmlab("why", "link.pcap")
    assert "3 of them are uploads" in " ".join(shown.out.split())


def test_replay_compares_how_long_uploads_take(aqmlab: Cli) -> None:
    file(plain(talks(3, every=0.4, request=400_000, response=0, gap=0.0012)))
    answer = aqmlab("replay", "link.pcap")
    assert answer.status == 0, answer.err
    assert "3 uploads that only ACKs answer are replayed" in answer.err
    assert "captured: half of 3 uploads take up to 409 ms" in answer.err
    assert "median (s)" in answer.out
    assert "\nanswer\n" in answer.out
    [traffic] = Scenario.load("runs/replay/link.toml").data["traffic"]
    assert (traffic["name"], traffic["direction"]) == ("uploads", "reverse")


def test_replay_takes_a_baseline(aqmlab: Cli) -> None:
    file(plain(talks(4)))
    words = ("--discipline", "pie,fq-codel", "--baseline", "fq-codel")
    answer = aqmlab("replay", "link.pcap", *words)
    assert answer.status == 0, answer.err
    assert "against fq-codel" in answer.out


def test_what_is_not_tcp_is_a_load_in_the_background(aqmlab: Cli) -> None:
    """QUIC is UDP: half of these bytes."""
    segs = talks(6)
    udp = struct.pack(">HHHH", 443, 50_000, 1208, 0) + bytes(20)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 1228, 0, 0x4000, 64, 17, 0, FAR, HOME)
    frames = [(seg.at, ether(packet(seg), seg.out), seg.size) for seg in segs]
    frames += [(0.1 + 0.003 * one, ether(head + udp, False), 1180) for one in range(250)]
    answer = aqmlab("replay", file(pcap(sorted(frames))))
    assert answer.status == 0, answer.err
    share = int(answer.err.partition(" % of the bytes are TCP")[0].rpartition(" ")[2])
    assert 50 <= share <= 62
    assert "what is not TCP is replayed at its mean rate" in answer.err
    kinds = [one["kind"] for one in Scenario.load("runs/replay/link.toml").data["traffic"]]
    assert kinds[0] == "vectors"
    assert "cbr" in kinds
    clean = aqmlab("replay", file(plain(segs)))
    assert "100 % of the bytes are TCP" in clean.err


def test_what_is_not_read_is_named(aqmlab: Cli) -> None:
    frames = [(seg.at, ether(packet(seg), seg.out, 0x88E5), seg.size) for seg in talks(1)]
    answer = aqmlab("replay", file(pcap(frames)), "--rate", "10")
    assert answer.status == 2
    assert "EtherType 0x88e5 (MACsec)" in answer.err
    why = aqmlab("why", "link.pcap")
    assert why.status == 2
    assert "found no TCP packet" in why.err


@pytest.mark.long_cases("reverse")
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_run_says_which_side_is_home(aqmlab: Cli, small: Path, direction: str) -> None:
    """Its downloads stay downloads, and its uploads uploads."""
    text = SMALL.replace("[measure]", '[measure]\ncapture = "bottleneck"')
    small.write_text(text.replace("[[traffic]]", f'[[traffic]]\ndirection = "{direction}"'))
    assert aqmlab("run", small, "--out", "original").status == 0
    answer = aqmlab("replay", "original/capture.pcapng", "--rate", "2")
    assert answer.status == 0, answer.err
    assert "forward is the way home, as the file says" in answer.err
    captured = re.search(r"captured: (.+ .?bit/s) down and (.+ .?bit/s) up", answer.err)
    assert captured is not None
    down, up = map(parsed_rate, captured.groups())
    assert (down > 5 * up) is (direction == "forward")
    links = [json.loads(path.read_text()) for path in Path("runs").glob("*/summary.json")]
    assert len(links) == 2
    for one in links:
        ways = one["links"]["bottleneck"]
        busier = ways["forward"]["throughput_bps"] > ways["reverse"]["throughput_bps"]
        assert busier is (direction == "forward")
