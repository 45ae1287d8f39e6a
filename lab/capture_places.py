"""Captures from many places of one path: ``make capture-places``, as root.

A client, a router or bridge and a server stand in network namespaces of this machine. The same
transfers are captured beside the client, beside the server, on both interfaces, on all of them
(as `tcpdump -i any` does), on a bridge, on its ports, and inside VXLAN. Each capture must say the
same: so many connections, so many bytes each way.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aqmlab._util.console import say
from aqmlab.traffic.captures import from_capture
from aqmlab.traffic.tapped import read_exchanges

from lab.capture_field import SERVER_CODE, address, route, run, veth

CONNECTIONS = 5
OCTETS = 60_000
KINDS = {"down": (20, OCTETS), "up": (OCTETS, 2), "both": (OCTETS, OCTETS)}
"""Bytes of each request and of each response."""
SECONDS = 20
"""The longest time that the transfers of one setting may take."""
NAMES = ("aqmcapc", "aqmcapr", "aqmcaps")
CLIENT = """
import socket, sys
address, number, request, response = sys.argv[1], *map(int, sys.argv[2:])
for _ in range(number):
    with socket.create_connection((address, 8080), timeout=10) as peer:
        head = b"%d " % response
        peer.sendall(head + b"u" * (request - len(head) - 1) + b"\\n")
        got = 0
        while got < response and (part := peer.recv(1 << 16)):
            got += len(part)
"""
RECORDER = (
    "import sys; sys.path.insert(0, sys.argv[1]); from lab import capture_places as c; c.record()"
)


def ip(space: str, *words: str) -> None:
    """`ip` in a namespace."""
    run("ip", "-n", space, *words)


def build(setting: str) -> dict[str, str]:
    """Makes the path; returns the server's address of each family."""
    client, middle, server = NAMES
    for name in NAMES:
        run("ip", "netns", "add", name)
        ip(name, "link", "set", "lo", "up")
    veth((client, "near"), (middle, "lan"))
    veth((middle, "wan"), (server, "far"))
    ends = {(client, "near"): 1, (server, "far"): 2}
    if setting == "bridged":
        ip(middle, "link", "add", "br0", "type", "bridge")
        ip(middle, "link", "set", "br0", "up")
        for port in ("lan", "wan"):
            ip(middle, "link", "set", port, "master", "br0")
        nets = {1: "1", 2: "1"}
    else:
        nets = {1: "1", 2: "2"}
    for (space, device), host in ends.items():
        net = nets[host]
        address(space, device, f"10.77.{net}.{host}/24", f"fd77:{net}::{host}/64")
    if setting != "bridged":
        for device, net in (("lan", "1"), ("wan", "2")):
            address(middle, device, f"10.77.{net}.254/24", f"fd77:{net}::254/64")
        for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            run("ip", "netns", "exec", middle, "sysctl", "-w", f"{key}=1")
        for space, net in ((client, "1"), (server, "2")):
            route(space, f"10.77.{net}.254", f"fd77:{net}::254")
    if setting == "vxlan":
        for space, here, there in ((client, "1.1", "2.2"), (server, "2.2", "1.1")):
            ip(space, "link", "add", "over", "type", "vxlan", "id", "7", "dstport", "4789",
               "local", f"10.77.{here}", "remote", f"10.77.{there}")  # fmt: skip
            address(space, "over", f"10.88.0.{here[0]}/24", f"fd88::{here[0]}/64")
            ip(space, "link", "set", "over", "up")
        return {"4": "10.88.0.2", "6": "fd88::2"}
    return {"4": f"10.77.{nets[2]}.2", "6": f"fd77:{nets[2]}::2"}


def clear() -> None:
    """Takes the namespaces away, with what is in them."""
    for name in NAMES:
        subprocess.run(("ip", "netns", "del", name), check=False, capture_output=True)


PLACES = {
    "routed": {"lan": {"lan"}, "wan": {"wan"}, "two": {"lan", "wan"}, "any": set()},
    "bridged": {"bridge-ports": {"lan", "wan"}, "bridge-any": set(), "one-port": {"lan"}},
    "vxlan": {"vxlan-wan": {"wan"}, "vxlan-any": set()},
}
"""Files of each setting, and the interfaces that each holds; none: all, as cooked packets."""


def record() -> None:
    """Writes what passes in this namespace, until standard input closes."""
    setting, folder = sys.argv[2], Path(sys.argv[3])
    taps = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    taps.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 26)
    files = {}
    for place, devices in PLACES[setting].items():
        files[place] = (folder / f"{place}.pcap").open("wb")
        link = 1 if devices else 113
        files[place].write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, link))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select([taps, sys.stdin], [], [])
        if taps not in ready:
            break
        frame, (device, kind, way, *_) = taps.recvfrom(1 << 17)
        stamp = divmod(time.time_ns(), 10**9)
        for place, devices in PLACES[setting].items():
            if devices and device not in devices:
                continue
            data = frame
            if not devices:
                data = struct.pack(">HHH8sH", way, 1, 6, frame[6:12] + b"\0\0", kind) + frame[14:]
            head = struct.pack("<IIII", *stamp, min(128, len(data)), len(data))
            files[place].write(head + data[:128])
    for file in files.values():
        file.close()


def inside(space: str, code: str, *words: str, **how: Any) -> subprocess.Popen[str]:  # noqa: ANN401
    """A Python program in a namespace."""
    return subprocess.Popen(
        ("ip", "netns", "exec", space, sys.executable, "-c", code, *words), text=True, **how
    )


def captured(setting: str, folder: Path) -> Iterator[tuple[str, str, Path]]:
    """The captures of a setting: family, kind of transfer, file."""
    try:
        addresses = build(setting)
        server = inside(NAMES[2], SERVER_CODE)
        try:
            time.sleep(1.0)
            for family, target in addresses.items():
                for kind, (request, response) in KINDS.items():
                    place = folder / f"{setting}-{family}-{kind}"
                    place.mkdir()
                    recorder = inside(
                        NAMES[1],
                        RECORDER,
                        str(Path(__file__).parents[1]),
                        setting,
                        str(place),
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                    )
                    assert recorder.stdout is not None
                    recorder.stdout.readline()
                    numbers = map(str, (CONNECTIONS, request, response))
                    inside(NAMES[0], CLIENT, target, *numbers).wait(SECONDS)
                    time.sleep(0.3)
                    recorder.communicate(timeout=SECONDS)
                    for file in sorted(place.glob("*.pcap")):
                        yield family, kind, file
        finally:
            server.kill()
            server.wait()
    finally:
        clear()


def fault(kind: str, file: Path) -> str:
    """What a capture says wrongly; nothing if all is right."""
    report = from_capture(file, file.with_suffix(".cvec"))
    request, response = (CONNECTIONS * one for one in KINDS[kind])
    found = {
        "connections": report["connections"]["made"],
        "bytes up": report["vectors"]["initiator_bytes"],
        "bytes down": report["vectors"]["acceptor_bytes"],
        "exchanges": len(read_exchanges(file).exchanges),
    }
    right = dict(zip(found, (CONNECTIONS, request, response, CONNECTIONS), strict=True))
    return ", ".join(
        f"{found[key]:,} {key} for {right[key]:,}" for key in right if found[key] != right[key]
    )


def main() -> int:
    """Captures, checks, and prints what is wrong; 1 if anything is."""
    if os.geteuid():
        say("capture-places: makes network namespaces, which needs root")
        return 2
    clear()
    total, wrong = 0, 0
    with tempfile.TemporaryDirectory(prefix="places-") as folder:
        for setting in PLACES:
            for family, kind, file in captured(setting, Path(folder)):
                total += 1
                if text := fault(kind, file):
                    wrong += 1
                    say(f"{file.stem}, IPv{family}, {kind}: {text}")
    say(f"{total - wrong} of {total} captures say what passed")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
