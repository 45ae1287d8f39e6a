"""`aqmlab why FILE.pcap`: what one place can know, by hand and against the simulator's truth."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from aqmlab.errors import AqmlabError
from aqmlab.traffic.tapped import PARTS, UNKNOWN, TappedExchange, read_exchanges
from conftest import SMALL, Cli
from test_capture import ACK, CONNECTION, FIN, SYN, Packet, pcap

pytestmark = pytest.mark.usefixtures("elsewhere")

OPENED: list[Packet] = CONNECTION[:4]
"""A handshake of 30 ms, 20 of them to the server and back, and a request at 31 ms."""


def parts_of(exchange: TappedExchange) -> dict[str, float]:
    """The parts that took time, in whole microseconds; they add up to the response time."""
    assert sum(exchange.parts.values()) == pytest.approx(exchange.response_s, abs=1e-9)
    found = {key: round(1e6 * exchange.parts.get(key, 0.0)) for key in PARTS}
    return {key: time for key, time in found.items() if time}


def read(folder: Path, packets: list[Packet]) -> list[TappedExchange]:
    """The exchanges of a hand-made capture."""
    file = folder / "made.pcap"
    file.write_bytes(pcap(packets))
    return read_exchanges(file).exchanges


def test_a_response_without_loss_has_handshake_server_and_transfer(tmp_path: Path) -> None:
    [found] = read(tmp_path, CONNECTION)
    # The answer passes 30 ms after the request, and the server is 20 ms away.
    assert parts_of(found) == {"handshake": 30_000, "server": 10_000, "transfer": 22_000}
    assert (found.response_bytes, found.round_trips) == (2000, 1)
    assert (found.syn_timeouts, found.timeouts) == (0, 0)


@pytest.mark.parametrize("side", [0, 1])
def test_a_copy_of_the_syn_or_its_answer_is_a_syn_timeout(tmp_path: Path, side: int) -> None:
    lost = CONNECTION[: 1 + side]
    late: list[Packet] = [(at + 1.0, *rest) for at, *rest in CONNECTION[side:]]  # type: ignore[misc]
    [found] = read(tmp_path, [*lost, *late])
    assert parts_of(found) == {
        "handshake": 30_000,
        "syn_timeout": 1_000_000,
        "server": 10_000,
        "transfer": 22_000,
    }
    assert (found.syn_timeouts, found.timeouts) == (1, 0)


def test_a_copy_after_silence_is_a_timeout(tmp_path: Path) -> None:
    packets: list[Packet] = [
        *OPENED,
        (0.061, 1, ACK, 0, 400, 1000),  # lost behind this place
        (1.061, 1, ACK, 0, 400, 1000),  # and again
        (3.061, 1, ACK, 0, 400, 1000),
        (3.071, 0, ACK, 400, 1000, 0),
    ]
    [found] = read(tmp_path, packets)
    assert parts_of(found) == {
        "handshake": 30_000,
        "server": 10_000,
        "timeout": 3_000_000,
        "transfer": 21_000,
    }
    assert found.timeouts == 2


def test_a_timer_runs_from_the_first_data_that_wait_for_an_ack(tmp_path: Path) -> None:
    packets: list[Packet] = [
        *OPENED,
        (0.061, 1, ACK, 0, 400, 1000),
        (0.161, 1, ACK, 1000, 400, 1000),
        (1.061, 1, ACK, 0, 400, 1000),
        (1.062, 1, ACK, 1000, 400, 1000),
        (1.072, 0, ACK, 400, 2000, 0),
    ]
    [found] = read(tmp_path, packets)
    assert parts_of(found)["timeout"] == 1_000_000
    assert parts_of(found)["recovery"] == 1_000
    assert found.timeouts == 1


def test_a_copy_of_what_has_arrived_delays_no_response(tmp_path: Path) -> None:
    late: list[Packet] = [(1.061, 1, ACK, 0, 400, 1460), (1.071, 0, ACK, 400, 2000, 0)]
    [found] = read(tmp_path, [*CONNECTION[:7], *late])
    assert [found] == read(tmp_path, CONNECTION)
    assert found.timeouts == 0


def test_a_lost_request_is_a_timeout_and_not_server_time(tmp_path: Path) -> None:
    packets: list[Packet] = [
        *OPENED,
        (1.031, 0, ACK, 0, 0, 400),
        (1.061, 1, ACK, 0, 400, 1000),
        (1.071, 0, ACK, 400, 1000, 0),
    ]
    [found] = read(tmp_path, packets)
    assert parts_of(found) == {
        "handshake": 30_000,
        "server": 10_000,
        "timeout": 1_000_000,
        "transfer": 21_000,
    }


def test_a_copy_without_silence_is_recovery(tmp_path: Path) -> None:
    times = [0.061, 0.062, 0.063, 0.064]
    packets: list[Packet] = [
        *OPENED,
        *((at, 1, ACK, 1000 * n, 400, 1000) for n, at in enumerate(times)),
        *((at + 0.01, 0, ACK, 400, 0, 0) for at in times[1:]),  # the first one was lost
        (0.094, 1, ACK, 0, 400, 1000),
        (0.104, 0, ACK, 400, 4000, 0),
    ]
    [found] = read(tmp_path, packets)
    assert parts_of(found)["recovery"] == 33_000
    assert "timeout" not in parts_of(found)
    assert found.response_s == pytest.approx(0.094)


def test_what_was_lost_in_front_of_this_place_is_a_hole(tmp_path: Path) -> None:
    packets: list[Packet] = [
        *OPENED,
        (0.061, 1, ACK, 0, 400, 1000),
        (0.063, 1, ACK, 2000, 400, 1000),  # 1000 to 1999 are missing
        (0.071, 0, ACK, 400, 1000, 0),
        (0.073, 0, ACK, 400, 1000, 0),
        (0.093, 1, ACK, 1000, 400, 1000),
        (0.103, 0, ACK, 400, 3000, 0),
    ]
    [found] = read(tmp_path, packets)
    assert parts_of(found)["recovery"] == 30_000
    assert found.response_bytes == 3000


def test_the_next_request_may_acknowledge_the_response(tmp_path: Path) -> None:
    packets: list[Packet] = [
        *OPENED,
        (0.061, 1, ACK, 0, 400, 1000),
        (5.000, 0, ACK, 400, 1000, 300),
        (5.050, 1, ACK, 1000, 700, 500),
        (5.060, 0, ACK, 700, 1500, 0),
    ]
    first, second = read(tmp_path, packets)
    assert first.response_s == pytest.approx(0.061)
    assert parts_of(second) == {"server": 30_000, "transfer": 20_000}
    assert second.start_s == pytest.approx(5.0)


def test_numbers_may_begin_anew(tmp_path: Path) -> None:
    turn, base = 2**32, 2**32 - 1500 - 1000

    def moved(packet: Packet) -> Packet:
        time, side, flags, seq, ack, payload = packet
        return time, side, flags, seq + base, (ack + base + 1000) % turn - 1000, payload

    plain = read(tmp_path, CONNECTION)
    assert read(tmp_path, [moved(packet) for packet in CONNECTION]) == plain


def test_a_response_may_have_more_bytes_than_numbers(tmp_path: Path) -> None:
    step = 1_500_000_000
    packets: list[Packet] = [
        *OPENED,
        *((0.061 + n / 1000, 1, ACK, n * step, 400, 1000) for n in range(4)),
        (0.09, 0, ACK, 400, (3 * step + 2000) % 2**32 - 1000, 0),
    ]
    [found] = read(tmp_path, packets)
    assert found.response_bytes == 3 * step + 1000


def test_a_connection_without_its_syn_or_the_end_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "made.pcap"
    file.write_bytes(pcap(CONNECTION) + pcap(CONNECTION[3:], 40001)[24:])
    found = read_exchanges(file)
    assert (found.connections, found.left_out) == (1, 1)
    with pytest.raises(AqmlabError, match="no whole exchange over TCP"):
        read(tmp_path, CONNECTION[:6])
    with pytest.raises(AqmlabError, match="no whole exchange over TCP"):
        read(tmp_path, [])


# --- Against the simulator ------------------------------------------------------------------------

WEB = """
[[traffic]]
name = "pages"
kind = "packmime"
http = "1.1"
rate = "10 /s"
rtt = { kind = "uniform", min = "20 ms", max = "100 ms" }
"""
"""Connections with several exchanges, whose servers think."""

Row = dict[str, Any]


def captured(aqmlab: Cli, text: str) -> tuple[list[TappedExchange], list[Row]]:
    """A run's exchanges as its capture shows them, and its breakdown."""
    recorded = text.replace("[measure]", '[measure]\nbreakdown = true\ncapture = "bottleneck"')
    Path("recorded.toml").write_text(recorded.replace('warm_up = "2 s"', 'warm_up = "0 s"'))
    answer = aqmlab("run", "recorded.toml", "--out", "run")
    assert answer.status == 0, answer.err
    rows = pq.read_table("run/breakdown.parquet").to_pylist()
    return read_exchanges(Path("run/capture.pcapng")).exchanges, rows


def matched(found: list[TappedExchange], rows: list[Row]) -> list[tuple[TappedExchange, Row]]:
    """Exchanges and rows of the same size that begin within a way to the bottleneck."""
    by_size: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_size[row["response_bytes"]].append(row)
    shift = min(row["start_s"] for row in rows) - min(one.start_s for one in found)
    pairs = []
    for one in sorted(found, key=lambda one: one.start_s):
        same = by_size[one.response_bytes]
        near = [row for row in same if abs(row["start_s"] - shift - one.start_s) < 0.15]
        if len(near) == 1:
            same.remove(near[0])
            pairs.append((one, near[0]))
    return pairs


@pytest.mark.parametrize("rate", [25, 40])
def test_timeouts_are_those_of_the_simulator(aqmlab: Cli, rate: int) -> None:
    text = SMALL.replace("30 /s", f"{rate} /s").replace('"20 s"', '"60 s"')
    found, rows = captured(aqmlab, text)
    pairs = matched(found, rows)
    assert len(pairs) >= 0.99 * len(rows)
    assert sum(row["timeouts"] for _, row in pairs) > 20
    assert sum(row["syn_timeouts"] for _, row in pairs) > 0
    for one, row in pairs:
        assert one.syn_timeouts == row["syn_timeouts"]
        assert one.parts.get("syn_timeout", 0.0) == pytest.approx(
            row["syn_timeout_ns"] / 1e9, abs=0.01
        )
        # For the simulator such a response ends with the FIN, for a capture with its last byte.
        if row["loss_segment"] != "fin":
            assert one.timeouts == row["timeouts"], (one, row)
    plain = [pair for pair in pairs if pair[1]["loss_segment"] != "fin"]
    measured = sum(one.parts["timeout"] for one, _ in plain)
    true = sum(row["timeout_ns"] for _, row in plain) / 1e9
    assert measured == pytest.approx(true, rel=0.02)


def test_handshakes_are_those_of_the_simulator(aqmlab: Cli) -> None:
    found, rows = captured(aqmlab, SMALL)
    for one, row in matched(found, rows):
        distance = row["propagation_handshake_ns"] / 1e9
        waits = row["wait_bottleneck_forward_ns"] + row["wait_bottleneck_reverse_ns"]
        # Of the handshake the place sees the wait of the SYN-ACK, and three small packets.
        assert -1e-6 <= one.parts["handshake"] - distance <= waits / 1e9 + 0.003, (one, row)
        assert one.response_s < row["response_ns"] / 1e9


def test_servers_are_those_of_the_simulator(aqmlab: Cli) -> None:
    text = SMALL[: SMALL.index("[[traffic]]")] + WEB
    found, rows = captured(aqmlab, text.replace("2 Mbit/s", "20 Mbit/s"))
    pairs = matched(found, rows)
    assert len(pairs) >= 0.95 * len(rows)
    assert len({one.connection for one, _ in pairs}) < len(pairs)
    for one, row in pairs:
        assert one.parts["server"] == pytest.approx(row["application_ns"] / 1e9, abs=0.002)


# --- The command ----------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_what_it_cannot_know(aqmlab: Cli) -> None:
    packets = [*OPENED, (0.061, 1, ACK, 0, 400, 1000), (1.061, 1, ACK | FIN, 0, 400, 1000)]
    Path("link.pcap").write_bytes(pcap([*packets, (1.071, 0, ACK, 400, 1001, 0)]))
    answer = aqmlab("why", "link.pcap")
    assert answer.status == 0, answer.err
    rows = [re.split(r"\s{2,}", line)[:2] for line in answer.out.splitlines()]
    assert ["time-out", "1,000 (94 %)"] in rows
    assert ["server", "10.0 (1 %)"] in rows
    assert "94 % of their time waiting for the timer of lost data" in " ".join(answer.out.split())
    for one in UNKNOWN:
        assert one in " ".join(answer.out.split())
    assert max(map(len, answer.out.splitlines())) <= 80
    content = json.loads(aqmlab("why", "link.pcap", "--json").out)
    assert content["bands"]["slowest_1"]["timeout_s"] == pytest.approx(1.0)
    assert content["responses"][0]["timeouts"] == 1
    assert content["unknown"] == list(UNKNOWN)
    lines = aqmlab("why", "link.pcap", "--tsv").out.splitlines()
    assert len(lines) == 2
    assert "timeout_s" in lines[0].split("\t")
    assert "| time-out | 1,000 (94 %) |" in aqmlab("why", "link.pcap", "--format", "markdown").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.pcap"], "none.pcap: there is no such capture"),
        (["text.pcap"], "text.pcap: "),
        (["syn.pcap"], "syn.pcap: has no whole exchange over TCP"),
        (["syn.pcap", "text.pcap"], "RUNS: found 2 places; give one capture, or runs only"),
        (["syn.pcap", "--class", "web"], "--class: is for runs"),
        (["syn.pcap", "--slowest", "1"], "--slowest: is for runs"),
    ],
)
def test_what_cannot_be_answered_is_refused(aqmlab: Cli, words: list[str], message: str) -> None:
    Path("text.pcap").write_text("This is a letter and no capture.\n")
    Path("syn.pcap").write_bytes(pcap([(0.0, 0, SYN, -1, 0, 0)]))
    answer = aqmlab("why", *words)
    assert answer.status == 2
    assert message in answer.err
