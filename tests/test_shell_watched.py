"""Programs behind a queue that are watched: the view, and the capture."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

from aqmlab import Run
from aqmlab.shell.program import LinkState
from aqmlab.shell.view import View
from rich.cells import cell_len
from rich.console import Console
from test_live import live

COMMAND = [sys.executable, "-m", "aqmlab", "shell"]
SHELL = [sys.executable, "-m", "aqmlab", "shell", "--out", "run"]
PATIENCE_S = 60.0


def seconds(count: int) -> Iterator[tuple[float, tuple[LinkState, LinkState]]]:
    """A link of 10 Mbit/s down that is half full, and of 1 Mbit/s up with a long queue."""
    for step in range(10 * count + 1):
        at = step / 10
        down = LinkState(at, int(at * 625_000), 0, 0, 1, 0.0012, 10e6)
        yield at, (down, LinkState(at, int(at * 125_000), 12 * step, step, 250, 0.9, 1e6))


def test_a_view_fits_into_80_columns() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, height=24, color_system=None)
    with View("10 Mbit/s down, 1 Mbit/s up, 20 ms, droptail", console) as view:
        for passed_s, links in seconds(90):
            view.update(passed_s, links)
    drawn = [line for line in re.split(r"\r|\n|\x1b\[[0-9;?]*[A-Za-z]", screen.getvalue()) if line]
    assert max(map(cell_len, drawn)) <= 80
    title, *lines = drawn[-5:]
    assert title == "10 Mbit/s down, 1 Mbit/s up, 20 ms, droptail, 90 s"
    # Half of the rate is the middle block, a full link the highest; a minute is 30 columns.
    assert lines[0] == f"down rate {'▄' * 30}    5.00 of 10 Mbit/s"
    assert lines[1] == f"     wait {' ' * 30}    1.2 ms 1 pkt, 0 dr, 0 mk"
    assert lines[2] == f"up   rate {'█' * 30}    1.00 of 1 Mbit/s"
    assert lines[3] == f"     wait {'█' * 30}  900.0 ms 250 pkt, 10800 dr, 900 mk"


def test_without_a_terminal_there_is_a_line_every_ten_seconds() -> None:
    lines = io.StringIO()
    with View("a link", Console(file=lines)) as view:
        for passed_s, links in seconds(25):
            view.update(passed_s, links)
    assert lines.getvalue().splitlines() == [
        f"aqmlab: {at} s: down 5 Mbit/s, wait 1.2 ms, 1 packets, 0 dropped, 0 marked; "
        f"up 1 Mbit/s, wait 900.0 ms, 250 packets, {120 * at} dropped, {10 * at} marked"
        for at in (10, 20)
    ]


def packets(path: Path) -> Iterator[tuple[float, int, bytes, str]]:
    """The packets of a capture: time in seconds, interface, bytes, comment."""
    data, place = path.read_bytes(), 0
    while place < len(data):
        kind, length = struct.unpack_from("<II", data, place)
        if kind == 6:
            interface, high, low, captured, _ = struct.unpack_from("<IIIII", data, place + 8)
            options = place + 28 + (captured + 3) // 4 * 4
            code, size = struct.unpack_from("<HH", data, options)
            assert code == 1
            comment = data[options + 4 : options + 4 + size].decode()
            stamp = (high << 32 | low) / 1e9
            yield stamp, interface, data[place + 28 : place + 28 + captured], comment
        place += length


def screen(*words: str) -> list[str]:
    """The lines of a command on a terminal of 80 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [*COMMAND, *words]
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave)
    os.close(slave)
    with running, os.fdopen(master, "rb", 0) as drawn:
        text = b""
        try:
            while part := drawn.read(4096):
                text += part
        except OSError:  # nobody writes to it any longer
            pass
        assert running.wait(PATIENCE_S) in (0, 125)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())
    return [line for line in re.split(r"[\r\n]+", plain) if line]


BOTH_WAYS = """
import threading, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
address = "http://test.aqmlab:8000/1MB"
fetched = threading.Thread(target=lambda: opener.open(address).read())
fetched.start()
opener.open(urllib.request.Request(address, bytes(250_000), method="PUT")).read()
fetched.join()
"""


@live
def test_every_screen_fits_into_80_columns() -> None:
    """Of long queues in both directions; a path of a run directory is short here."""
    code = ["--", sys.executable, "-c", BOTH_WAYS]
    own = ["--rate", "8/2", "--queue", "droptail:60 ms"]
    own += ["--control", "reno", "--far-control", "reno"]  # every kernel has it; it fills queues
    alone = screen(*own, "--view", "--beside", "telnet:2", "--warm-up", "1s", "--out", "one", *code)
    queues = [*own, "--queue", "fq-codel,cake", "--repeat", "2"]
    series = screen(*queues, "--out", "many", *code)
    for lines in (screen("--help"), screen("--doctor"), alone, series):
        assert max(map(cell_len, lines)) <= 80, lines
    summary = "\n".join(alone)
    # The table of both directions has a line for each of its rows.
    [queueing] = [line for line in alone if line.startswith("aqmlab:   queueing ")]
    assert queueing.count(" ms") == 2, summary
    longest = re.findall(r"max ([0-9.]+)", queueing)
    assert all(20 < float(found) < 100 for found in longest), summary  # the widest of numbers
    assert any(line.startswith("down p95 ms") for line in series), series


FLOOD = """
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)
began = time.monotonic()
for number in range(500):
    out.sendto(bytes(972), ("100.64.0.1", 9))
    time.sleep(max(0.0, began + 0.002 * number - time.monotonic()))
time.sleep(0.5)
"""


@live
def test_a_capture_says_what_became_of_packets() -> None:
    queue = '{ kind = "step", threshold = "5 packets", limit = "20 packets" }'
    command = [*SHELL, "--rate", "2/2", "--queue", queue, "--pcap", sys.executable, "-c", FLOOD]
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert answer.returncode == 0, answer.stderr
    up = Run.open("run").summary["links"]["bottleneck"]["reverse"]
    found = [it for it in packets(Path("run/capture.pcapng")) if it[1] == 1]
    assert len(found) == up["arrived_packets"] == 500
    assert [it[0] for it in found] == sorted(it[0] for it in found)
    kinds = [re.sub(r"\d+\.\d{3} ms", "T", comment) for *_, comment in found]
    assert set(kinds) == {"waited T", "marked (early), waited T", "dropped (overflow) after T"}
    assert kinds.count("dropped (overflow) after T") == up["dropped_packets"] > 100
    assert kinds.count("marked (early), waited T") == up["marked_packets"] > 100
    waits = [float(match[1]) for *_, text in found if (match := re.search(r"ted ([\d.]+)", text))]
    # Twenty packets of 1000 bytes take 80 ms.
    assert 70 < max(waits) < 85
    assert {len(it[2]) for it in found} == {120}


DOWNLOAD = """
import urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(len(opener.open("http://100.64.0.1:8000/300kB").read()))
"""


CONTROLS = """
import socket
with socket.create_connection(("100.64.0.1", 8000)) as stream:
    print(stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(bytes(1))[0])
    stream.sendall(b"GET /500kB HTTP/1.0\\r\\n\\r\\n")
    size = 0
    while part := stream.recv(65536):
        size += len(part)
print(size > 500_000)
"""


@live
def test_ecn_and_controls_are_set() -> None:
    queue = '{ kind = "fq-codel", ecn = true }'
    options = ["--rate", "5/5", "--queue", queue, "--ecn", "--pcap"]
    controls = ["--control", "reno", "--far-control", "reno"]
    command = [*SHELL, *options, *controls, sys.executable, "-c", CONTROLS]
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "b'reno'\nTrue\n"
    assert Run.open("run").summary["links"]["bottleneck"]["forward"]["marked_packets"] > 0
    found = list(packets(Path("run/capture.pcapng")))
    # Data down is ECT(0).
    assert sum(it[2][1] & 3 == 2 for it in found if it[1] == 0) > 300


@live
def test_a_capture_can_be_replayed_and_a_program_viewed() -> None:
    options = ["--rate", "8/2", "--rtt", "40 ms", "--pcap", "--view"]
    command = [*SHELL, *options, sys.executable, "-c", DOWNLOAD]
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert answer.returncode == 0, answer.stderr
    # Without a terminal the program's output stays where it is.
    assert answer.stdout == "300000\n"
    replay = ["replay", "run/capture.pcapng", "--discipline", "droptail,fq-codel", "--rate", "8/2"]
    again = subprocess.run(
        [sys.executable, "-m", "aqmlab", *replay],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert "fq-codel" in again.stdout
