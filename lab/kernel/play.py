"""Plays packet scripts to this machine's kernel, in real time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import multiprocessing
import os
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from aqmlab.validation.script import Script, Segment, Step

from lab.kernel.compare import Seen, is_answer, tolerance
from lab.kernel.host import HOST, PEER, RefusedError, Setup, Tun, setup_of
from lab.kernel.packets import Packet, build, read

__all__ = ["Played", "play", "play_all"]

PORTS = (8080, 40_000)
"""Of the socket if it listens, and of the peer if it connects."""
PEER_ISN = 1_000_000
"""The peer's initial sequence number on the wire; that of scripts is 0."""
SIOCOUTQ, SIOCOUTQNSD = 0x5411, 0x894B
# Places in the kernel's struct tcp_info; the order of its fields never changes.
INFO = {
    "state": (0, "B"),
    "ca_state": (1, "B"),
    "rto": (8, "I"),
    "rtt": (68, "I"),
    "ssthresh": (76, "I"),
    "cwnd": (80, "I"),
    "total_retrans": (100, "I"),
    "bytes_received": (128, "Q"),
    "total_rto": (240, "H"),
}
ESTABLISHED, CLOSED, RECOVERY = 1, 7, 3
NOT_YET = (2, 3, 10, 12)
"""States before a connection is established."""
TAIL = 0.005
"""How long what nobody asked for is waited for behind the end, in seconds."""


@dataclass(frozen=True)
class Played:
    """What the kernel made of a script."""

    seen: Seen | None = None
    refusal: str | None = None
    """Why the script was not played."""


class Player:
    """Plays one script."""

    def __init__(self, steps: Sequence[Step], setup: Setup) -> None:
        self.steps = steps
        self.setup = setup
        self.tun = Tun(setup)
        self.listener: socket.socket | None = None
        self.socket: socket.socket | None = None
        self.sent: list[tuple[float, Segment]] = []
        self.times: dict[int, float] = {}
        self.shown: dict[int, float] = {}
        # All that must be sent, and how much is due: an answer comes before its line is read.
        self.expected = [
            (index, step) for index, step in enumerate(steps) if step.word in (">", "any")
        ]
        self.due = 0
        self.isn: int | None = None
        self.port = PORTS[0]
        self.peer_port = PORTS[1]
        self.stamps: dict[int, int] = {}
        self.established = self.eof = self.failed = False
        self.received = 0
        self.start = 0.0
        self.slip = 0.0

    def now(self) -> float:
        """The time of the script."""
        return time.monotonic() - self.start

    def run(self) -> Seen:
        """Plays all steps.

        A timer of the kernel may be late. What the script does behind it is as late: otherwise the
        answer to a late segment would come sooner than a round trip after it.
        """
        self.start = time.monotonic() + 0.01
        for index, step in enumerate(self.steps):
            if step.word in (">", "any"):
                self.due += 1
                continue
            # What the kernel sends late, within the tolerance, still comes before what follows,
            # and puts it off.
            self.wait_for_expected()
            self.wait_for_line(step)
            self.times[index] = self.now()
            self.step(index, step)
        self.wait_for_line(self.steps[-1])
        self.wait_for_expected()
        self.wait(self.now() + TAIL)
        return Seen(tuple(self.sent), self.times, self.shown)

    # ---- what the kernel sends ----

    def wait(self, until: float) -> None:
        """Reads what the kernel sends until a time of the script."""
        while (left := until - self.now()) > 0:
            readable, _, _ = select.select([self.tun.fd], [], [], left)
            if readable:
                self.take()
        self.take()

    def wait_for_line(self, step: Step) -> None:
        """Waits for the time of a line; what is sent meanwhile may put it off."""
        while self.now() < step.time + self.slip:
            self.wait(step.time + self.slip)
        self.take()

    def wait_for_expected(self) -> None:
        """Waits for what must have been sent, as long as it may come late."""
        while len(self.sent) < self.due:
            place, waited = self.expected[len(self.sent)]
            left = waited.time + self.slip + tolerance(self.steps, place) - self.now()
            if left <= 0:
                return
            if select.select([self.tun.fd], [], [], left)[0]:
                self.take()

    def take(self) -> None:
        """Takes what the kernel has sent."""
        while True:
            try:
                data = os.read(self.tun.fd, 65_536)
            except BlockingIOError:
                return
            packet = read(data)
            if packet is not None:
                self.note(packet)

    def note(self, packet: Packet) -> None:
        """Keeps a packet in the numbers of scripts."""
        segment = packet.segment
        if self.isn is None and "S" in segment.flags:
            self.isn = segment.seq
            self.port = packet.source_port
        ack = (segment.ack - PEER_ISN) % 2**32 if "A" in segment.flags else 0
        sack = tuple(
            ((first - PEER_ISN) % 2**32, (end - PEER_ISN) % 2**32) for first, end in segment.sack
        )
        shown = replace(segment, seq=(segment.seq - (self.isn or 0)) % 2**32, ack=ack, sack=sack)
        place = len(self.sent)
        now = self.now()
        if place < len(self.expected):
            index, wanted = self.expected[place]
            if segment.stamps and wanted.segment and wanted.segment.stamps:
                self.stamps[wanted.segment.stamps[0]] = segment.stamps[0]
            late = now - wanted.time - self.slip
            if not is_answer(self.steps, index) and 0 < late <= tolerance(self.steps, index):
                self.slip += late
        self.sent.append((now, shown))

    # ---- what the script does ----

    def step(self, index: int, step: Step) -> None:
        """What a line does."""
        if step.segment is not None:
            self.inject(step.segment)
        elif step.word == "connect":
            self.socket = self.tun.socket()
            with contextlib.suppress(BlockingIOError):
                self.socket.connect((PEER, PORTS[1]))
        elif step.word == "listen":
            self.listener = self.tun.socket()
            self.listener.bind((HOST, PORTS[0]))
            self.listener.listen(1)
        elif step.word in ("write", "write-last", "close", "abort"):
            self.act(step)
        elif step.word != "quiet":
            self.shown[index] = self.show(step.word)
        self.drain()
        self.take()

    def act(self, step: Step) -> None:
        """What the application does."""
        if self.socket is None:
            return
        try:
            if step.word == "abort":
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.socket.close()
                self.socket = None
                return
            if step.value:
                more = socket.MSG_MORE if step.word == "write-last" else 0
                self.socket.send(bytes(int(step.value)), more)
            if step.word in ("close", "write-last"):
                self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.failed = True

    def inject(self, segment: Segment) -> None:
        """Lets a segment arrive."""
        syn = "S" in segment.flags
        isn = self.isn or 0
        stamps = None
        if segment.stamps:
            value, echo = segment.stamps
            stamps = (value, self.echoed(echo) if "A" in segment.flags else 0)
        scale = max(0, (self.setup.receive_buffer // 65_536).bit_length())
        window = self.setup.receive_buffer >> (0 if syn else scale)
        arriving = replace(
            segment,
            seq=segment.seq + PEER_ISN,
            ack=segment.ack + isn if "A" in segment.flags else 0,
            sack=tuple((first + isn, end + isn) for first, end in segment.sack),
            stamps=stamps,
        )
        packet = Packet(
            arriving,
            socket.inet_aton(PEER),
            socket.inet_aton(HOST),
            self.peer_port,
            self.port,
            min(window, 65_535),
            self.setup.mss + (12 if self.setup.stamps and segment.stamps else 0) if syn else None,
            scale if syn else None,
        )
        os.write(self.tun.fd, build(packet))

    def echoed(self, echo: int) -> int:
        """The kernel's time stamp that a script's echo stands for."""
        if echo in self.stamps or not self.stamps:
            return self.stamps.get(echo, 0)
        near = min(self.stamps, key=lambda known: abs(known - echo))
        return self.stamps[near] + echo - near

    def drain(self) -> None:
        """The application accepts and reads at once."""
        if self.socket is None and self.listener is not None:
            with contextlib.suppress(BlockingIOError):
                self.socket, _ = self.listener.accept()
                self.socket.setblocking(False)
        if self.socket is None:
            return
        try:
            while True:
                data = self.socket.recv(2**20)
                self.received += len(data)
                if not data:
                    self.eof = True
                    break
        except BlockingIOError:
            pass
        except OSError as error:
            self.failed |= error.errno not in (errno.ENOTCONN, errno.EAGAIN)
        self.established |= self.info("state") not in (*NOT_YET, CLOSED)

    def info(self, name: str) -> int:
        """A field of the kernel's struct tcp_info."""
        if self.socket is None:
            return CLOSED if name == "state" else 0
        place, kind = INFO[name]
        found = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return int(struct.unpack_from("=" + kind, found, place)[0])

    def queued(self, request: int) -> int:
        """Bytes of the socket's queue that are unacknowledged, or unsent."""
        if self.socket is None:
            return 0
        answer = fcntl.ioctl(self.socket.fileno(), request, bytes(4))
        return int(struct.unpack("i", answer)[0])

    def show(self, word: str) -> float:
        """What the socket shows of itself."""
        if word == "inflight":
            return self.queued(SIOCOUTQ) - self.queued(SIOCOUTQNSD)
        if word in ("srtt", "rto"):
            return self.info("rtt" if word == "srtt" else "rto") / 1e6
        fields = {"timeouts": "total_rto", "resent": "total_retrans"}
        if word in ("cwnd", "ssthresh") or word in fields:
            return self.info(fields.get(word, word))
        found = {
            "received": self.received,
            "established": self.established,
            "eof": self.eof,
            "failed": self.failed,
        }
        if word in found:
            return float(found[word])
        if word == "finished":
            return float(self.info("state") == CLOSED)
        return float(self.info("ca_state") == RECOVERY)


def play(script: Script) -> Played:
    """Plays a script to the kernel. The calling process stays in a network namespace of its own."""
    # A busy machine must not make the kernel look late.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    gc.disable()
    try:
        return Played(Player(script.steps, setup_of(script)).run())
    except RefusedError as refusal:
        return Played(refusal=str(refusal))


def play_all(scripts: Sequence[Script], at_once: int = 4) -> Iterator[Played]:
    """Plays scripts, each in a process of its own; some at the same time, since most only wait."""
    context = multiprocessing.get_context("fork")
    with context.Pool(at_once, maxtasksperchild=1) as pool:
        yield from pool.imap(play, scripts, chunksize=1)
