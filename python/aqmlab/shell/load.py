"""The load and the probes of the built-in tests: a program of its own behind the link.

It is run as a file, by its path, with nothing but Python's standard library: it starts in an
instant. It talks to the built-in services, and writes what it saw as JSON.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ECHO", "FILES", "HOST", "main"]

HOST = "100.64.0.3"
FILES, ECHO = 8000, 7
WAYS = ("down", "up")
_STEP_S = 0.1
_CHUNK = 1 << 18
_ROUND_TRIP, _BYTES_ACKED = 68, 120
"""Places in the kernel's ``struct tcp_info``; the order of its fields never changes."""
_ROUND_TRIPS = "/round-trips"
"""A file of the far end: the round trips of its downloads in microseconds, since the last time."""
_PATIENCE_S = 10.0
"""How long the far end may take to say what it has seen."""
_LOST_S = 3.0
"""A probe that has no answer after so long is lost."""


@dataclass
class TestLog:
    """What a test saw; times in seconds since its start."""

    began: float = field(default_factory=time.monotonic)
    bulk: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """Bytes that a sender or receiver has moved, by its name."""
    probes: dict[str, list[tuple[float, float | None]]] = field(default_factory=dict)
    """When each probe was sent, and how long its answer took, by kind."""
    round_trips: list[float] = field(default_factory=list)
    """Round trips that the senders of both directions measured, after the warm-up."""
    failed: list[str] = field(default_factory=list)
    """Connections that ended, and why."""

    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began


@dataclass(frozen=True)
class Bulk:
    """A transfer without end."""

    name: str
    is_up: bool
    tos: int = 0


async def transfer(seen: TestLog, bulk: Bulk, warm_up_s: float, end_s: float) -> None:
    """Sends or receives until the end, and notes bytes and round trips."""
    loop = asyncio.get_running_loop()
    stream = socket.socket()
    stream.setblocking(False)
    stream.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, bulk.tos)
    moved = 0
    samples = seen.bulk.setdefault(bulk.name, [])

    async def note() -> None:
        while True:
            total = moved
            if bulk.is_up:
                info = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                [total] = struct.unpack_from("=Q", info, _BYTES_ACKED)
                [round_trip_us] = struct.unpack_from("=I", info, _ROUND_TRIP)
                if seen.now() >= warm_up_s:
                    seen.round_trips.append(round_trip_us / 1e6)
            samples.append((seen.now(), total))
            await asyncio.sleep(_STEP_S)

    async def move() -> None:
        nonlocal moved
        await loop.sock_connect(stream, (HOST, FILES))
        notes.append(asyncio.create_task(note()))
        if bulk.is_up:
            head = f"PUT / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {1 << 50}\r\n\r\n"
            await loop.sock_sendall(stream, head.encode())
            chunk = bytes(_CHUNK)
            while True:
                await loop.sock_sendall(stream, chunk)
        await loop.sock_sendall(stream, b"GET /1000000GB HTTP/1.0\r\n\r\n")
        # It is woken for some packets at a time.
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 14)
        buffer = bytearray(_CHUNK)
        while size := await loop.sock_recv_into(stream, buffer):
            moved += size
        seen.failed.append(f"{bulk.name}: it was closed")

    notes: list[asyncio.Task[None]] = []
    try:
        await asyncio.wait_for(move(), end_s - seen.now())
    except asyncio.TimeoutError:
        pass
    except OSError as error:
        seen.failed.append(f"{bulk.name}: {error.strerror or error}")
    finally:
        for task in notes:
            task.cancel()
        # What waits is thrown away.
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.close()


async def fetch(path: str) -> bytes:
    """A file over a connection of its own."""
    loop = asyncio.get_running_loop()
    with socket.socket() as stream:
        stream.setblocking(False)
        await loop.sock_connect(stream, (HOST, FILES))
        await loop.sock_sendall(stream, f"GET {path} HTTP/1.0\r\n\r\n".encode())
        received = b""
        while part := await loop.sock_recv(stream, 1 << 16):
            received += part
    return received.partition(b"\r\n\r\n")[2]


Probe = Callable[[], Awaitable[float]]
"""Sends something; how long the answer took."""


async def page_probe() -> float:
    """A handshake, then one byte asked for and one byte answered."""
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    with socket.socket() as stream:
        stream.setblocking(False)
        await loop.sock_connect(stream, (HOST, FILES))
        await loop.sock_sendall(stream, b"GET /1 HTTP/1.0\r\n\r\n")
        received = b""
        while not received.partition(b"\r\n\r\n")[2]:
            if not (part := await loop.sock_recv(stream, 1 << 12)):
                raise ConnectionResetError
            received += part
    return time.monotonic() - began


class Echo:
    """Datagrams to the echo and back, or pings."""

    def __init__(self, tos: int, *, ping: bool) -> None:
        """Opens the socket; ping sockets are there where the kernel lets this user ping."""
        protocol = socket.IPPROTO_ICMP if ping else 0
        self._ping = ping
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, protocol)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        self._socket.connect((HOST, 0 if ping else ECHO))
        self._answers: dict[int, asyncio.Future[float]] = {}
        self._number = 0
        self._receiving = asyncio.create_task(self._receive())

    async def _receive(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            answer = await loop.sock_recv(self._socket, 2048)
            [number] = struct.unpack_from("!H", answer, 6)
            waiting = self._answers.pop(number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(time.monotonic())

    async def __call__(self) -> float:
        """Sends one; how long it took."""
        self._number = number = (self._number + 1) % 65536
        # As an echo request has it; the kernel fills in what only it knows.
        packet = struct.pack("!BBHHH", 8, 0, 0, 0, number) + bytes(32)
        waiting = asyncio.get_running_loop().create_future()
        self._answers[number] = waiting
        began = time.monotonic()
        self._socket.send(packet)
        ended: float = await waiting
        return ended - began

    def close(self) -> None:
        """Nothing more is received."""
        self._receiving.cancel()
        self._socket.close()


async def probing(seen: TestLog, name: str, probe: Probe, per_s: float, end_s: float) -> None:
    """Sends probes at a fixed rate, whatever becomes of them."""
    samples = seen.probes.setdefault(name, [])

    async def one() -> None:
        at = seen.now()
        try:
            took: float | None = await asyncio.wait_for(probe(), _LOST_S)
        except (asyncio.TimeoutError, OSError):
            took = None
        samples.append((at, took))

    running = []
    count = 0
    while (at := count / per_s) < end_s:
        await asyncio.sleep(max(0.0, at - seen.now()))
        running.append(asyncio.create_task(one()))
        count += 1
    await asyncio.gather(*running)
    samples.sort(key=lambda sample: sample[0])


async def rpm(seen: TestLog, warm_up_s: float, end_s: float) -> None:
    """Eight transfers each way; a probe 25 times a second on a connection of its own."""
    bulks = [Bulk(f"{way} {n}", way == "up") for way in WAYS for n in range(1, 9)]
    work = [transfer(seen, bulk, warm_up_s, end_s) for bulk in bulks]

    async def forget() -> None:
        await asyncio.sleep(warm_up_s)
        await fetch(_ROUND_TRIPS)

    await asyncio.gather(*work, probing(seen, "page", page_probe, 25.0, end_s), forget())
    lines = (await asyncio.wait_for(fetch(_ROUND_TRIPS), _PATIENCE_S)).split()
    seen.round_trips += [int(line) / 1e6 for line in lines]


async def rrul(seen: TestLog, warm_up_s: float, end_s: float) -> None:
    """A transfer each way for each of four code points; datagrams and pings beside them."""
    points = {"BE": 0, "BK": 8 << 2, "CS5": 40 << 2, "EF": 46 << 2}
    bulks = [Bulk(f"{way} {name}", way == "up", points[name]) for way in WAYS for name in points]
    work = [transfer(seen, bulk, warm_up_s, end_s) for bulk in bulks]
    echoes = {f"UDP {name}": Echo(points[name], ping=False) for name in ("BE", "BK", "EF")}
    try:
        echoes["ICMP"] = Echo(0, ping=True)
    except OSError as error:
        seen.failed.append(f"ICMP: {error.strerror}")
    work += [probing(seen, name, echo, 20.0, end_s) for name, echo in echoes.items()]
    await asyncio.gather(*work)
    for echo in echoes.values():
        echo.close()


def main() -> None:
    """Runs a test: its name, warm-up and end in seconds, and the file of the results."""
    kind, warm_up_s, end_s, path = sys.argv[1:]
    seen = TestLog()
    asyncio.run({"rpm": rpm, "rrul": rrul}[kind](seen, float(warm_up_s), float(end_s)))
    content = {
        "bulk": seen.bulk,
        "probes": seen.probes,
        "round_trips_s": seen.round_trips,
        "failed": seen.failed,
    }
    Path(path).write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    main()
