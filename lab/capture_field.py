"""Captures by tcpdump and dumpcap of a path whose truth is known: ``make capture-field``, as root.

A client at home, a router, a provider and a server stand in network namespaces. The access link has
a rate each way and a queue; the way beyond it takes 10 ms. The router routes, translates, bridges,
or speaks through a tunnel. The same transfers are captured at many places with many options. Each
capture must say what the client and the kernel counted: connections, bytes each way, how long the
transfers took, the sides, the loads and the rate.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from aqmlab._util.console import say
from aqmlab.traffic.captures import from_capture
from aqmlab.traffic.rates import Arrivals, Rate, loads, rates
from aqmlab.traffic.segments import read_segments
from aqmlab.traffic.tapped import read_exchanges

__all__ = ["SETTINGS", "Truth", "captured", "fault", "missing"]

HOME, ROUTER, PROVIDER, CORE, SERVER = NAMES = tuple(f"aqmf{one}" for one in "hrpcs")
TOOLS = ("ip", "tc", "tcpdump", "dumpcap", "ethtool", "iptables")
RATES = (10, 4)
"""Mbit/s of the access link: down and up."""
SHORT, BULK = 60_000, {"down": 11_000_000, "up": 4_500_000}
"""Bytes of each short transfer, and of the long one."""
SHORTS = 8
SECONDS = 60
"""The longest time that the transfers of one setting may take."""

SERVER_CODE = """
import socket, threading
listener = socket.create_server(("::", 8080), family=socket.AF_INET6, dualstack_ipv6=True)
def serve(peer):
    with peer:
        words = b""
        while not words.endswith(b"\\n") and (part := peer.recv(1 << 16)):
            words += part
        peer.sendall(b"d" * int(words.split(b" ", 1)[0]))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
CLIENT_CODE = """
import json, socket, sys, threading, time
address, sizes, number, pause = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), 1.0
found = []
def fetch(request, response):
    begin = time.time()
    with socket.create_connection((address, 8080), timeout=60) as peer:
        port = peer.getsockname()[1]
        head = b"%d " % response
        peer.sendall(head + b"u" * (request - len(head) - 1) + b"\\n")
        got = 0
        while got < response and (part := peer.recv(1 << 16)):
            got += len(part)
        if response == 0:
            while peer.recv(1 << 16):
                pass
        found.append([port, request, response, time.time() - begin])
threads = [threading.Thread(target=fetch, args=one) for one in sizes["long"]]
for one in threads:
    one.start()
for _ in range(number):
    time.sleep(pause)
    for one in sizes["short"]:
        fetch(*one)
for one in threads:
    one.join()
print(json.dumps(found))
"""
WIRE_CODE = """
import collections, select, socket, sys, time
def tap(name):
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    one.bind((name, 0))
    return one
ends = [tap("c0"), tap("c1")]
held = collections.deque()
print("ready", flush=True)
while True:
    wait = max(0.0, held[0][0] - time.monotonic()) if held else None
    for one in select.select(ends, [], [], wait)[0]:
        frame, where = one.recvfrom(1 << 16)
        if where[2] != 4:
            held.append((time.monotonic() + 0.010, ends[one is ends[0]], frame))
    while held and held[0][0] <= time.monotonic():
        _, out, frame = held.popleft()
        try:
            out.send(frame)
        except OSError:
            pass
"""
TUNNEL_CODE = """
import fcntl, os, select, socket, struct, sys
kind, device, name, here, there, mac, peer = sys.argv[1:]
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH", name.encode(), 0x1001))
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind((device, 0))
mine, other = (bytes.fromhex(one.replace(":", "")) for one in (mac, peer))
four = lambda text: socket.inet_aton(text)
def outer(protocol, inside):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(inside), 0, 0x4000, 64, protocol, 0,
                       four(here), four(there))
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack(">H", ~total & 0xFFFF) + head[12:] + inside
def pppoe(packet):
    kind = 0x57 if packet[0] >> 4 == 6 else 0x21
    return struct.pack(">BBHHH", 0x11, 0, 7, len(packet) + 2, kind) + packet
def ether(packet):
    return 0x86DD if packet[0] >> 4 == 6 else 0x800
WRAP = {
    "pppoe": (0x8864, pppoe, 8),
    "vlan-pppoe": (0x8100, lambda one: struct.pack(">HH", 7, 0x8864) + pppoe(one), 12),
    "vlan": (0x8100, lambda one: struct.pack(">HH", 7, ether(one)) + one, 4),
    "mpls": (0x8847, lambda one: struct.pack(">I", 16 << 12 | 0x100 | 64) + one, 4),
    "gre": (0x800, lambda one: outer(47, struct.pack(">HH", 0, ether(one)) + one), 24),
    "ipip": (0x800, lambda one: outer(4, one), 20),
    "6in4": (0x800, lambda one: outer(41, one), 20),
}
number, wrap, skip = WRAP[kind]
begin = mine + other + struct.pack(">H", number)
print("ready", flush=True)
while True:
    for one in select.select([tun, link], [], [])[0]:
        if one is tun:
            packet = os.read(tun, 1 << 16)
            try:
                link.send(other + mine + struct.pack(">H", number) + wrap(packet))
            except OSError:
                pass
        else:
            frame, where = link.recvfrom(1 << 16)
            found = struct.unpack(">H", frame[12:14])[0]
            # The kernel takes a tag off before it hands out the frame.
            untagged = number == 0x8100 and found in (0x800, 0x86DD, 0x8864)
            if where[2] == 0 and (found == number or untagged):
                inside = frame[14 + skip - 4 * untagged:]
                size = struct.unpack(">H", inside[2:4])[0] if inside[0] >> 4 == 4 else (
                    40 + struct.unpack(">H", inside[4:6])[0])
                try:
                    os.write(tun, inside[:size])
                except OSError:
                    pass
"""


@dataclass(frozen=True)
class Setting:
    """How the router stands in the path, what is transferred, and what is captured where."""

    files: Mapping[str, tuple[str, ...]]
    """Names of files: the namespace and the words of tcpdump or dumpcap."""
    way: str = "nat"
    """`nat`, `routed`, `bridged`, or the kind of a tunnel."""
    kind: str = "down"
    family: int = 4
    late: bool = False
    """Whether the captures begin in the middle of the long transfer."""


@dataclass(frozen=True)
class Truth:
    """What the client and the kernel counted."""

    transfers: list[tuple[int, int, int, float]]
    """Port, bytes of the request and of the response, seconds."""
    octets: tuple[int, int]
    """Bytes of frames that the access link carried: down and up."""
    late: bool
    kind: str


ANY2 = (ROUTER, "tcpdump", "-i", "any")
ANY = (ROUTER, "tcpdump", "-i", "any", "-y", "LINUX_SLL")
LAN, WAN = (ROUTER, "tcpdump", "-i", "lan"), (ROUTER, "tcpdump", "-i", "wan")
BOTH = (ROUTER, "dumpcap", "-q", "-i", "lan", "-i", "wan")
SHORT_NANO = (*WAN, "-s", "96", "--time-stamp-precision=nano")
NEAR, FAR = (HOME, "tcpdump", "-i", "near"), (SERVER, "tcpdump", "-i", "far", "-s", "128")
TUNNELLED = {"any": ANY2, "wan": WAN, "tunnel": (ROUTER, "tcpdump", "-i", "tun0")}

SETTINGS = {
    "nat-down": Setting(
        {"any": ANY2, "any-sll": ANY, "lan": LAN, "wan": WAN, "two": BOTH, "near": NEAR, "far": FAR}
    ),
    "nat-up": Setting({"any": ANY2, "wan": WAN, "two": BOTH, "nano96": SHORT_NANO}, kind="up"),
    "nat-both": Setting({"any": ANY2, "wan": WAN, "two": BOTH}, kind="both"),
    "nat-late": Setting({"any": ANY2, "wan": WAN, "two": BOTH}, late=True),
    "routed-6": Setting({"any": ANY2, "two": BOTH, "wan": WAN}, "routed", family=6),
    "bridge": Setting(
        {"any": ANY2, "bridge": (ROUTER, "tcpdump", "-i", "br0"), "two": BOTH}, "bridged"
    ),
    "pppoe": Setting(TUNNELLED, "pppoe", "both"),
    "vlan-pppoe": Setting(TUNNELLED, "vlan-pppoe"),
    "vlan": Setting({"any": ANY, "wan": WAN}, "vlan", "up"),
    "gre": Setting(TUNNELLED, "gre"),
    "ipip": Setting({"any": ANY2, "wan": WAN}, "ipip"),
    "6in4": Setting({"any": ANY2, "wan": WAN}, "6in4", family=6),
    "mpls": Setting({"any": ANY2, "wan": WAN}, "mpls"),
}


def missing() -> str:
    """Why captures cannot be made here; nothing if they can."""
    if os.geteuid():
        return "network namespaces need root"
    if lacking := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"{', '.join(lacking)} is not installed"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    return ""


def run(*words: str) -> str:
    """A command of the system; what it prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=30).stdout


def inside(space: str, *words: str) -> str:
    """A command in a namespace."""
    return run("ip", "netns", "exec", space, *words)


def veth(one: tuple[str, str], other: tuple[str, str]) -> None:
    """A cable between two namespaces."""
    run("ip", "link", "add", one[1], "netns", one[0], "type", "veth",
        "peer", "name", other[1], "netns", other[0])  # fmt: skip
    for space, device in (one, other):
        run("ip", "-n", space, "link", "set", device, "up")


def address(space: str, device: str, *texts: str) -> None:
    """Gives a device addresses."""
    for text in texts:
        run("ip", "-n", space, "addr", "add", text, "dev", device, *(["nodad"] * (":" in text)))


def route(space: str, *words: str) -> None:
    """Default route of each family, if its gateway is given."""
    for gateway in words:
        family = ("-6",) if ":" in gateway else ()
        run("ip", *family, "-n", space, "route", "add", "default", "via", gateway)


def build(setting: Setting, stack: ExitStack) -> str:
    """Makes the path; returns the server's address."""
    for name in NAMES:
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            inside(name, "sysctl", "-q", "-w", f"{key}=1")
    veth((HOME, "near"), (ROUTER, "lan"))
    veth((ROUTER, "wan"), (PROVIDER, "acc"))
    veth((PROVIDER, "p1"), (CORE, "c0"))
    veth((CORE, "c1"), (SERVER, "far"))
    for space, device in ((PROVIDER, "p1"), (CORE, "c0"), (CORE, "c1"), (SERVER, "far")):
        inside(
            space, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off", "tx", "off"
        )
    for (space, device), rate in zip(((PROVIDER, "acc"), (ROUTER, "wan")), RATES, strict=True):
        run("tc", "-n", space, "qdisc", "add", "dev", device, "root", "tbf", "rate",
            f"{rate}mbit", "burst", "3000", "latency", "100ms")  # fmt: skip
    address(PROVIDER, "p1", "203.0.113.1/24", "2001:db8:9::1/64")
    address(SERVER, "far", "203.0.113.9/24", "2001:db8:9::9/64")
    route(SERVER, "203.0.113.1", "2001:db8:9::1")
    bridged, tunnelled = setting.way == "bridged", setting.way not in ("nat", "routed", "bridged")
    if bridged:
        run("ip", "-n", ROUTER, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", ROUTER, "link", "set", "br0", "up")
        for port in ("lan", "wan"):
            run("ip", "-n", ROUTER, "link", "set", port, "master", "br0")
        address(HOME, "near", "198.51.100.10/24")
        address(PROVIDER, "acc", "198.51.100.1/24")
        route(HOME, "198.51.100.1")
        start(stack, CORE, WIRE_CODE)
        return "203.0.113.9"
    address(HOME, "near", "192.168.7.10/24", "2001:db8:7::10/64")
    address(ROUTER, "lan", "192.168.7.1/24", "2001:db8:7::1/64")
    route(HOME, "192.168.7.1", "2001:db8:7::1")
    out, back = "wan", "acc"
    if tunnelled:
        out, back = "tun0", "tun1"
        address(ROUTER, "wan", "100.64.0.2/24")
        address(PROVIDER, "acc", "100.64.0.1/24")
        ends = ((ROUTER, "wan", out, "100.64.0.2"), (PROVIDER, "acc", back, "100.64.0.1"))
        macs = [inside(space, "cat", f"/sys/class/net/{device}/address").strip()
                for space, device, *_ in ends]  # fmt: skip
        for at, (space, device, name, here) in enumerate(ends):
            there = ends[1 - at][3]
            start(stack, space, TUNNEL_CODE, setting.way, device, name, here, there,
                  macs[at], macs[1 - at])  # fmt: skip
            run("ip", "-n", space, "link", "set", name, "up", "mtu", "1460")
    address(ROUTER, out, "198.51.100.2/24", "2001:db8:8::2/64")
    address(PROVIDER, back, "198.51.100.1/24", "2001:db8:8::1/64")
    route(ROUTER, "198.51.100.1", "2001:db8:8::1")
    run("ip", "-6", "-n", PROVIDER, "route", "add", "2001:db8:7::/64", "via", "2001:db8:8::2")
    run("ip", "-n", PROVIDER, "route", "add", "192.168.7.0/24", "via", "198.51.100.2")
    if setting.way != "routed":
        inside(ROUTER, "iptables", "-t", "nat", "-A", "POSTROUTING", "-o", out, "-j", "MASQUERADE")
        if tunnelled:
            inside(ROUTER, "iptables", "-t", "mangle", "-A", "FORWARD", "-p", "tcp", "--tcp-flags",
                   "SYN,RST", "SYN", "-j", "TCPMSS", "--set-mss", "1380")  # fmt: skip
    start(stack, CORE, WIRE_CODE)
    return "2001:db8:9::9" if setting.family == 6 else "203.0.113.9"


def start(stack: ExitStack, space: str, code: str, *words: str) -> None:
    """A Python program in a namespace, until the stack ends; waits until it is ready."""
    command = ("ip", "netns", "exec", space, sys.executable, "-c", code, *words)
    process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    stack.callback(process.kill)
    if "ready" in code:
        assert process.stdout is not None
        process.stdout.readline()


def clear() -> None:
    """Takes the namespaces away, with what is in them."""
    for name in NAMES:
        subprocess.run(("ip", "netns", "del", name), check=False, capture_output=True)


def sent(space: str, device: str) -> int:
    """Bytes that a device's queue has sent."""
    [queue] = json.loads(run("tc", "-n", space, "-s", "-j", "qdisc", "show", "dev", device))
    return int(queue["bytes"])


def captured(name: str, folder: Path) -> Iterator[tuple[Path, Truth]]:
    """The captures of a setting, and what is true of all of them."""
    setting = SETTINGS[name]
    clear()
    with ExitStack() as stack:
        stack.callback(clear)
        server = build(setting, stack)
        start(stack, SERVER, SERVER_CODE)
        time.sleep(1.0)
        down, up = (200, BULK["down"]), (BULK["up"], 0)
        long = {"down": [down], "up": [up], "both": [down, up]}[setting.kind]
        short = [(SHORT, 0)] if setting.kind == "up" else [(200, SHORT)]
        words = (server, json.dumps({"long": long, "short": short}), str(SHORTS))
        command = ("ip", "netns", "exec", HOME, sys.executable, "-c", CLIENT_CODE, *words)

        places = {file: folder / f"{name}-{file}.pcap" for file in setting.files}

        def taps() -> list[subprocess.Popen[str]]:
            made = [
                subprocess.Popen(
                    ("ip", "netns", "exec", space, *tool, "-w", str(places[file])),
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
                )
                for file, (space, *tool) in setting.files.items()
            ]  # fmt: skip
            time.sleep(1.5)
            return made

        recorders = [] if setting.late else taps()
        before = sent(PROVIDER, "acc"), sent(ROUTER, "wan")
        client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if setting.late:
            time.sleep(2.2)
            before = sent(PROVIDER, "acc"), sent(ROUTER, "wan")
            recorders = taps()
        output, _ = client.communicate(timeout=SECONDS)
        time.sleep(1.5)  # what the tools have not written yet
        after = sent(PROVIDER, "acc"), sent(ROUTER, "wan")
        for one in recorders:
            one.terminate()
        for one in recorders:
            one.wait(10)
    octets = after[0] - before[0], after[1] - before[1]
    transfers = [(one[0], one[1], one[2], one[3]) for one in json.loads(output)]
    truth = Truth(transfers, octets, setting.late, setting.kind)
    for file in places.values():
        yield file, truth


def fault(file: Path, truth: Truth) -> list[str]:
    """What a capture says wrongly."""
    wrong: list[str] = []

    def hold(what: str, found: float, low: float, high: float) -> None:
        if not low <= found <= high:
            wrong.append(f"{what}: found {found:,.6g}, right is {low:,.6g} to {high:,.6g}")

    report = from_capture(file, file.with_suffix(".cvec"))
    connections, packets = report["connections"], report["packets"]
    number = len(truth.transfers)
    hold("connections", connections["made"], number - 2 * truth.late, number)
    asked, got = (sum(one[at] for one in truth.transfers) for at in (1, 2))
    if not truth.late:
        hold("bytes from clients", report["vectors"]["initiator_bytes"], asked, asked)
        hold("bytes from servers", report["vectors"]["acceptor_bytes"], got, got)
        hold("whole", sum(connections["partial"].values()), 0, 0)
    hold("opened from beyond the link", connections["opened_outside"], 0, 0)
    if packets["sides_by"] is None:
        wrong.append("the sides are not found")
    times = [one[3] for one in truth.transfers if max(one[1:3]) == SHORT]
    exchanges = [one for one in read_exchanges(file).exchanges
                 if SHORT in (one.request_bytes, one.response_bytes)]  # fmt: skip
    hold("short transfers", len(exchanges), len(times) - 2 * truth.late, len(times))
    for one in exchanges:
        hold("least part of a response", min(one.parts.values()), 0, 60)
    if exchanges:
        # At the server the way there is missing; an upload ends with its last acknowledgement.
        median = statistics.median(one.response_s for one in exchanges)
        true = statistics.median(times)
        hold("median of short transfers", median, true - 0.16, true + 0.03)
    segments = read_segments(file)
    arrivals = Arrivals.read(file, segments)
    both = loads(arrivals)
    for way, load, octets in zip(("down", "up"), both, truth.octets, strict=True):
        if octets > 1_000_000:  # not ACKs, of which headers are the most
            # In front of the queue passes what it will drop, too.
            most = 1.04 + 0.16 * ("wan" not in file.stem)
            hold(
                f"bytes {way}", load.octets, (0.75 if truth.late else 0.95) * octets, most * octets
            )
    try:
        found = rates(file, segments, arrivals)
    except Exception as error:  # noqa: BLE001
        wrong.append(f"rates: {error}")
        found = (Rate(0, ""), Rate(0, ""))
    for way, rate, right in zip(("down", "up"), found, RATES, strict=True):
        if rate.is_proven:
            hold(f"rate {way} ({rate.why})", rate.bps / 1e6, 0.88 * right, 1.07 * right)
    if not any(rate.is_proven for rate in found):
        say(f"{file.stem}: no rate is proven")
    return wrong


def main(names: list[str]) -> int:
    """Captures, checks, and prints what is wrong; 1 if anything is."""
    if reason := missing():
        say(f"capture-field: skipped: {reason}")
        return 2
    total = failed = 0
    keep = os.environ.get("KEEP")
    with tempfile.TemporaryDirectory(prefix="field-") as folder:
        for name in names or SETTINGS:
            place = Path(keep or folder)
            for file, truth in captured(name, place):
                total += 1
                if wrong := fault(file, truth):
                    failed += 1
                    say(f"{file.stem}: " + "; ".join(wrong))
                if keep:
                    file.with_suffix(".json").write_text(json.dumps(truth.__dict__))
    say(f"{total - failed} of {total} captures say what passed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
