"""How far a program behind a queue may trust its numbers: the bounds of records/shell.md.

The long ones run with ``AQMLAB_LIVE=full``. Each prints what it measured (``pytest -s``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import aqmlab
import pytest
from aqmlab import Run, _native
from aqmlab.shell.link import Link, Span
from test_live import FULL, full, live
from test_shell import SHELL

PATIENCE_S = 90.0
BUSY = 0.9
"""Where other programs take more of the processors, waking up takes its time."""

IDLE = """
import json, socket, struct, time
connects, pings = [], []
for _ in range(COUNT):
    with socket.create_connection(("100.64.0.1", 7)) as stream:
        info = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        connects.append(struct.unpack_from("=I", info, 68)[0] / 1e3)
# The kernel's clock says when an answer came, however late this process wakes up.
STAMP = getattr(socket, "SO_TIMESTAMPNS", 35)
ping = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
ping.setsockopt(socket.SOL_SOCKET, STAMP, 1)
ping.settimeout(5)
for number in range(COUNT):
    packet = struct.pack("!BBHHH", 8, 0, 0, 0, number) + bytes(32)
    began = time.time_ns()
    ping.sendto(packet, ("100.64.0.1", 0))
    _, [(_, _, stamp)], _, _ = ping.recvmsg(100, 100)
    seconds, rest = struct.unpack("=qq", stamp)
    pings.append((seconds * 10**9 + rest - began) / 1e6)
print(json.dumps([connects, pings]))
"""


def report(text: str) -> None:
    """Says what was measured."""
    sys.stdout.write(f"{text}\n")


def program(code: str, *options: str) -> tuple[str, Run]:
    """What Python's code prints behind a queue, and the run."""
    answer = subprocess.run(
        [*SHELL, "--out", "run", *options, "--", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout, Run.open("run")


@live
def test_an_idle_link_is_never_early_and_adds_half_a_millisecond_at_most() -> None:
    """How late the machine wakes up is a time of the machine: only the long tests judge it."""
    said, run = program(IDLE.replace("COUNT", "200"), "--rate", "100/100", "--rtt", "20 ms")
    worst = {}
    for kind, times in zip(("connect", "ping"), json.loads(said), strict=True):
        times.sort()
        worst[kind] = times[round(0.99 * len(times))]
        report(f"{kind}: p50 {times[len(times) // 2]:.2f}, p99 {worst[kind]:.2f} ms")
        assert times[0] >= 20.0
    health = run.summary["live"]
    late_s = sum(it["late_p99_s"] for it in health["router"].values())
    busy = health["machine_busy_share"]
    report(f"both directions together are late by {1e3 * late_s:.2f} ms (p99), busy {busy:.0%}")
    if FULL and not run.invalid and busy < BUSY:
        assert max(worst.values()) <= 20.5


FLOOD = """
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect(("100.64.0.1", 9))
began = time.monotonic()
number = 0
while (now := time.monotonic() - began) < 10.0:
    while number * GAP <= now:
        try:
            out.send(bytes(972))
        except ConnectionRefusedError:
            continue
        number += 1
    time.sleep(GAP)
"""
FLOOD_BPS = 6e6


def queues() -> list[str]:
    """A preset of each kind of queue."""
    found: dict[str, str] = {}
    for name, preset in json.loads(_native.catalog())["presets"].items():
        [kind] = [it["value"] for it in preset["parameters"] if it["name"] == "kind"]
        found.setdefault(kind, name)
    return list(found.values())


@live
@full
@pytest.mark.parametrize("queue", queues())
def test_a_flood_loses_what_the_simulators_does(queue: str) -> None:
    code = FLOOD.replace("GAP", str(8000 / FLOOD_BPS))
    _, run = program(code, "--rate", "4/4", "--rtt", "20 ms", "--queue", queue)
    up = run.summary["links"]["bottleneck"]["reverse"]
    flood = {
        "name": "flood",
        "kind": "cbr",
        "flows": 1,
        "rate": f"{round(FLOOD_BPS)} bit/s",
        "packet": "1000 bytes",
        "direction": "reverse",
        "start_within": "0 s",
        "rtt": {"kind": "constant", "rtt": "20 ms"},
    }
    link = Link(down_bps=4e6, up_bps=4e6, rtt_s=0.02, queue_down=queue, queue_up=queue)
    content = link.scenario("flood", 1, Span(10.0), [flood])
    quiet = json.loads(json.dumps(content.data))
    quiet["traffic"] = [it for it in quiet["traffic"] if it["name"] == "flood"]
    simulated = aqmlab.simulate(aqmlab.Scenario.from_dict(quiet)).summary
    expected = simulated["links"]["bottleneck"]["reverse"]
    rate_error = run.summary["live"]["router"]["reverse"]["rate_error"]
    report(
        f"{queue}: loss {up['loss_rate']:.4f}, simulated {expected['loss_rate']:.4f}, "
        f"rate {rate_error:+.4f}, {run.invalid or 'valid'}"
    )
    if not run.invalid:
        assert abs(rate_error) <= 0.005
        assert up["loss_rate"] == pytest.approx(expected["loss_rate"], abs=0.01)


DOWNLOADS = """
import socket, threading, time
def fetch():
    with socket.create_connection(("100.64.0.1", 8000)) as stream:
        stream.sendall(b"GET /1GB HTTP/1.0\\r\\n\\r\\n")
        buffer = bytearray(1 << 20)
        while stream.recv_into(buffer):
            pass
for _ in range(COUNT):
    threading.Thread(target=fetch).start()
"""
SIMULATED = {"cubic": "cubic", "bbr": "bbr1"}
"""The simulator's names of the kernel's controls."""
MISSED = pytest.mark.xfail(
    raises=AssertionError,
    reason="records/shell.md: the median wait or the loss is outside its bound",
)
CASES = [
    pytest.param(count, control, ecn, queue, marks=MISSED if missed else ())
    for control, ecn, queue, missed in (
        ("cubic", False, "droptail:100 ms", False),
        ("cubic", True, "fq-codel", True),
        ("cubic", False, "fq-codel", True),
        ("bbr", False, "droptail:100 ms", True),
    )
    for count in (1, 4)
]


@live
@full
@pytest.mark.parametrize(("count", "control", "ecn", "queue"), CASES)
def test_downloads_are_those_of_the_simulator(
    count: int, control: str, ecn: bool, queue: str
) -> None:
    options = ["--rate", "20/20", "--rtt", "40 ms", "--queue", queue, "--for", "40 s"]
    tcp = ["--far-control", control, "--ecn" if ecn else "--no-ecn"]
    _, run = program(DOWNLOADS.replace("COUNT", str(count)), *options, *tcp)
    content = json.loads(json.dumps(run.scenario))
    content["traffic"][0] |= {
        "flows": count,
        "start_within": "0 s",
        "tcp": {"profile": "linux", "congestion_control": SIMULATED[control], "ecn": ecn},
    }
    simulated = aqmlab.simulate(aqmlab.Scenario.from_dict(content)).summary
    found = [numbers(one) for one in (run.summary, simulated)]
    shown = ", ".join(f"{key} {found[0][key]:.4g} ({found[1][key]:.4g})" for key in found[0])
    report(f"{count} {control} ecn={ecn} {queue}: {shown}, {run.invalid or 'valid'}")
    own, expected = found
    if not run.invalid and own["goodput Mbit/s"] != pytest.approx(
        expected["goodput Mbit/s"], rel=0.03
    ):
        raise RuntimeError("the goodput differs, which it does in no case")
    if not run.invalid:
        assert own["wait p50 ms"] == pytest.approx(expected["wait p50 ms"], rel=0.15)
        assert own["loss %"] == pytest.approx(expected["loss %"], rel=0.25)


def numbers(summary: Mapping[str, Any]) -> dict[str, float]:
    """What is compared."""
    link = summary["links"]["bottleneck"]["forward"]
    return {
        "goodput Mbit/s": summary["flows"]["program"]["goodput_bps"] / 1e6,
        "wait p50 ms": 1e3 * link["sojourn_p50_s"],
        "loss %": 100 * link["loss_rate"],
    }
