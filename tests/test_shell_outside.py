"""Programs behind a queue that reach something outside: the gateway.

"Outside" is a network namespace of the test's own, with servers on its loopback. No packet leaves
this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from aqmlab import Run
from test_live import IN_NAMESPACE, being_nobody, live, own_folder

__all__ = ["own_folder"]

PATIENCE_S = 60.0

LOOPBACK = """
ip link set lo up
ip address add 8.8.8.8/32 dev lo
ip address add 192.168.7.7/32 dev lo
ip address add 169.254.1.1/32 dev lo
"""
NETWORK = f"""{LOOPBACK}
echo 0 0 > /proc/sys/net/ipv4/ping_group_range
echo nameserver 127.0.0.53 > resolv.conf
mount --bind resolv.conf /etc/resolv.conf
exec "$@"
"""

# Servers outside, then a program behind a queue: the words of its command follow.
OUTSIDE = """
import socket, subprocess, sys, threading

def tcp(address, serve):
    listener = socket.create_server((address, 9001), backlog=2000)
    def accept():
        while True:
            stream, _ = listener.accept()
            threading.Thread(target=serve, args=(stream,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()

def serve(stream):
    # "get N": N bytes. Otherwise what came, after the client's end.
    received = b""
    try:
        while part := stream.recv(65536):
            received += part
            if received.startswith(b"get ") and received.endswith(b"\\n"):
                stream.sendall(bytes(int(received[4:])))
                return stream.close()
            if received == b"reset\\n":
                linger = (1).to_bytes(4, sys.byteorder) + bytes(4)
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return stream.close()
        stream.sendall(b"%d bytes" % len(received))
    except ConnectionError:
        print("outside: reset", flush=True)
    stream.close()

def udp(address, port):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    server.bind((address, port))
    def answer():
        while True:
            data, control, _, peer = server.recvmsg(65536, 64)
            tos = control[0][2][0]
            # Back with CE, and what was seen.
            server.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos | 3)
            server.sendto(b"%d:" % tos + data, peer)
    threading.Thread(target=answer, daemon=True).start()

def dns():
    # One name, one address: a header, the question again, an answer.
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.53", 53))
    def answer():
        while True:
            query, peer = server.recvfrom(512)
            question = query[12:query.index(0, 12) + 5]
            is_a = question[-3] == 1 and b"example" in question
            head = query[:2] + bytes([0x81, 0x80 if is_a else 0x83, 0, 1, 0, is_a, 0, 0, 0, 0])
            record = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4\\x08\\x08\\x08\\x08"
            server.sendto(head + question + record * is_a, peer)
    threading.Thread(target=answer, daemon=True).start()

for address in ("127.0.0.1", "8.8.8.8", "192.168.7.7", "169.254.1.1"):
    tcp(address, serve)
    udp(address, 9002)
dns()
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""

# What programs do, for the code below.
TOOLS = """
import errno, socket, struct, time

def connect(address, port=9001):
    began = time.monotonic()
    try:
        stream = socket.create_connection((address, port), timeout=20)
    except OSError as error:
        print(address, errno.errorcode.get(error.errno, error))
        return None
    print(address, "connected", time.monotonic() - began >= 0.03)
    return stream

def answer(stream):
    received = b""
    while part := stream.recv(65536):
        received += part
    return received

def exchange(address, tos, data, port=9002):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(10)
        datagrams.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        datagrams.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        datagrams.connect((address, port))
        datagrams.send(data)
        try:
            data, control, *_ = datagrams.recvmsg(65536, 64)
        except OSError as error:
            return errno.errorcode.get(error.errno, str(error))
        return data, control[0][2][0]

def ping(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as pings:
        pings.settimeout(10)
        pings.connect((address, 0))
        began = time.monotonic()
        try:
            pings.send(struct.pack("!BBHHH", 8, 0, 0, 0, 77) + b"hello")
            received = pings.recv(1000)
        except OSError as error:
            return errno.errorcode.get(error.errno, str(error))
        return received[0], received[6:], time.monotonic() - began >= 0.03
"""


def outside(*words: str, program: str) -> subprocess.CompletedProcess[str]:
    """Runs Python's code behind a link of 30 ms, with servers outside it."""
    shell = [sys.executable, "-m", "aqmlab", "shell", "--out", "run", "--rtt", "30 ms", *words]
    return subprocess.run(
        [
            *(*IN_NAMESPACE, "--mount", "sh", "-ec", NETWORK, "sh"),
            *(sys.executable, "-c", OUTSIDE),
            *(*shell, sys.executable, "-c", TOOLS + program),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


CONNECTIONS = """
for address in ("host.aqmlab", "8.8.8.8", "192.168.7.7", "169.254.1.1", "100.64.0.3"):
    if stream := connect(address):
        stream.close()
for address in ("host.aqmlab", "8.8.8.8", "192.168.7.7"):
    print(exchange(address, 0, b"x"))
print(ping("8.8.8.8"))
"""
PROHIBITED = "EHOSTUNREACH"
DATAGRAM = "(b'0:x', 3)"


@live
@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (
            "host",
            [
                "host.aqmlab connected True",
                f"8.8.8.8 {PROHIBITED}",
                "192.168.7.7 connected True",
                f"169.254.1.1 {PROHIBITED}",
                "100.64.0.3 ECONNREFUSED",
                *(DATAGRAM, PROHIBITED, DATAGRAM, PROHIBITED),
            ],
        ),
        (
            "all",
            [
                "host.aqmlab ECONNREFUSED",
                "8.8.8.8 connected True",
                f"192.168.7.7 {PROHIBITED}",
                f"169.254.1.1 {PROHIBITED}",
                "100.64.0.3 ECONNREFUSED",
                *("ECONNREFUSED", DATAGRAM, PROHIBITED, "(0, b'\\x00Mhello', True)"),
            ],
        ),
        (
            "host,all",
            [
                "host.aqmlab connected True",
                "8.8.8.8 connected True",
                "192.168.7.7 connected True",
                f"169.254.1.1 {PROHIBITED}",
                "100.64.0.3 ECONNREFUSED",
                *(DATAGRAM, DATAGRAM, DATAGRAM, "(0, b'\\x00Mhello', True)"),
            ],
        ),
    ],
)
def test_each_net_reaches_its_own(net: str, expected: list[str]) -> None:
    answer = outside("--net", net, program=CONNECTIONS)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == expected
    met = Run.open("run").summary["live"]["outside"]
    assert met["connections"] == sum("connected" in line for line in expected)
    assert met["datagram_flows"] == expected.count(DATAGRAM)
    assert f"outside  {met['connections']} connections made in" in answer.stderr


CONTENT = """
stream = connect("8.8.8.8")
stream.sendall(b"get 2000000\\n")
print(len(answer(stream)))
stream = connect("8.8.8.8")
stream.sendall(bytes(300000))
stream.shutdown(socket.SHUT_WR)
print(answer(stream))
stream = connect("8.8.8.8")
stream.sendall(b"reset\\n")
try:
    print(answer(stream))
except ConnectionResetError:
    print("reset")
stream = connect("8.8.8.8")
stream.sendall(b"x")
time.sleep(0.1)
stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
stream.close()
time.sleep(0.2)
connect("8.8.8.8", 9999)
print(exchange("8.8.8.8", 0, b"x", 9999))
print(socket.gethostbyname("example.org"))
print(exchange("8.8.8.8", 0, bytes(20000))[0][:3])
for tos in (0, 1, 2, 46 << 2 | 1):
    print(exchange("8.8.8.8", tos, b""))
"""


@live
def test_connections_and_datagrams_are_as_outside() -> None:
    answer = outside("--net", "all", "--rate", "20/10", program=CONTENT)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == [
        *("8.8.8.8 connected True", "2000000"),
        *("8.8.8.8 connected True", "b'300000 bytes'"),
        *("8.8.8.8 connected True", "reset"),
        *("8.8.8.8 connected True", "outside: reset"),
        "8.8.8.8 ECONNREFUSED",
        "ECONNREFUSED",
        "8.8.8.8",
        "b'0:\\x00'",
        # The ECN field and the code point, there; the field and CE, back.
        *("(b'0:', 3)", "(b'1:', 3)", "(b'2:', 3)", f"(b'185:', {46 << 2 | 3})"),
    ]
    run = Run.open("run")
    down = run.summary["links"]["bottleneck"]["forward"]
    assert 2_000_000 * 8 < down["throughput_bps"] * run.summary["measured_s"] < 2_400_000 * 8
    assert run.summary["live"]["outside"]["refused"] == 1
    assert run.summary["live"]["load"]["local_failures"] == 0


SERVICES = """
import urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(len(opener.open("http://host.aqmlab:8000/5kB").read()))
stream = connect("host.aqmlab", 7)
stream.sendall(b"hello")
print(stream.recv(10))
print([exchange("host.aqmlab", 46 << 2, data, 7) for data in (b"one", b"two")])
connect("host.aqmlab", 9999)
connect("8.8.8.8")
"""


@live
@pytest.mark.parametrize("net", ["host", "local,host"])
def test_the_services_stay_where_the_host_has_no_server(net: str) -> None:
    answer = outside("--net", net, program=SERVICES)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == [
        *("5000", "host.aqmlab connected True", "b'hello'"),
        f"[(b'one', {46 << 2}), (b'two', {46 << 2})]",
        *("host.aqmlab ECONNREFUSED", f"8.8.8.8 {PROHIBITED}"),
    ]
    assert "refused  8.8.8.8:9001: --net all reaches public addresses" in answer.stderr
    assert " host.aqmlab:9999: nothing listens there" in answer.stderr
    assert Run.open("run").summary["live"]["outside"]["connections"] == 0


MARKED = """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
    datagrams.settimeout(10)
    datagrams.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)
    for number in range(40):
        datagrams.sendto(bytes(1000), ("8.8.8.8", 9002))
    # The server answers with what it has received: ECT(0), or CE of the queue.
    print(sorted({datagrams.recv(2000).split(b":")[0] for _ in range(40)}))
"""


@live
def test_the_queue_marks_datagrams() -> None:
    queue = '{ kind = "step", threshold = "5 packets", limit = "100 packets" }'
    answer = outside("--net", "all", "--rate", "20/2", "--queue", queue, program=MARKED)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "[b'2', b'3']\n"
    up = Run.open("run").summary["links"]["bottleneck"]["reverse"]
    assert 30 <= up["marked_packets"] <= 35


MANY = """
import selectors
began, streams = time.monotonic(), []
for _ in range(1000):
    stream = socket.socket()
    stream.setblocking(False)
    stream.connect_ex(("8.8.8.8", 9001))
    streams.append(stream)
for stream in streams:
    stream.setblocking(True)
    stream.settimeout(30)
    while True:
        try:
            stream.sendall(b"get 10\\n")
            break
        except (BlockingIOError, OSError) as error:
            if error.errno not in (errno.ENOTCONN, errno.EAGAIN, errno.EPIPE):
                raise
            time.sleep(0.01)
print(sum(len(answer(stream)) for stream in streams))
"""


@live
def test_a_thousand_connections() -> None:
    answer = outside("--net", "all", "--rate", "50/50", "--buffer", "1 s", program=MANY)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "10000\n"
    assert Run.open("run").summary["live"]["outside"]["connections"] == 1000


@live
def test_nobody_reaches_the_host(own_folder: Path, tmp_path: Path) -> None:
    code = TOOLS + 'connect("host.aqmlab").sendall(b"x")\nprint(exchange("host.aqmlab", 2, b"y"))'
    nobody = being_nobody(tmp_path / "held", "666")
    shell = [sys.executable, "-m", "aqmlab", "shell", "--out", "run", "--rtt", "30 ms"]
    command = [
        *("unshare", "--net", "sh", "-ec", f'{LOOPBACK}\nexec "$@"', "sh"),
        *(sys.executable, "-c", OUTSIDE, *nobody, *shell, "--net", "host"),
        *(sys.executable, "-c", code),
    ]
    answer = subprocess.run(
        command,
        cwd=own_folder,
        env={**os.environ, "HOME": str(own_folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[:2] == ["host.aqmlab connected True", "(b'2:y', 3)"]
