"""Packet scripts from traces of ns-2's two-way TCP: the same losses and marks, the same segments.

    python3 -m lab.peers.traces.full_tcp

writes ns-*.script of crates/tcp/tests/scripts, which that crate's tests play against the profile
ns-full-tcp. Needs ns2 (docs/other-tools.md).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parents[2] / "crates" / "tcp" / "tests" / "scripts"
MOST_BLOCKS = 3


@dataclass(frozen=True)
class Case:
    """A response of a server whose packets of these numbers are lost, or marked."""

    kind: str
    bytes: int
    numbers: Sequence[int]

    @property
    def name(self) -> str:
        """Of the script."""
        what = "-".join(map(str, self.numbers[:3]))
        return f"ns-{self.kind.lower()}-{self.bytes // 1000}k-{what}"

    @property
    def marks(self) -> bool:
        """Whether packets are marked, not dropped."""
        return self.kind == "Ecn"


CASES = (
    Case("Reno", 20_000, (2,)),
    Case("Reno", 20_000, (4,)),
    Case("Reno", 20_000, (3, 9, 13, 14, 15, 17, 20)),
    Case("Reno", 40_000, (5, 6, 11, 12, 21, 30)),
    Case("Reno", 100_000, (8, 9, 23, 41, 42, 60, 61, 66)),
    Case("Sack", 20_000, (3,)),
    Case("Sack", 40_000, (3, 5, 24, 29, 30, 52)),
    Case("Sack", 100_000, (10, 14, 15, 33, 50, 51)),
    Case("Ecn", 5_000, (3,)),
    Case("Ecn", 20_000, (2, 3, 4, 7, 8, 9, 10, 15)),
    Case("Ecn", 40_000, tuple(range(4, 60, 3))),
)


@dataclass(frozen=True)
class Line:
    """A line of ns-2's trace."""

    event: str
    time: float
    origin: str
    target: str
    ect: bool
    seq: int
    packet: str
    ack: int
    flags: int
    bytes: int

    @classmethod
    def parse(cls, text: str) -> Line:
        """The line of a trace with `show_tcphdr_`."""
        word = text.split()
        return cls(
            event=word[0],
            time=float(word[1]),
            origin=word[2],
            target=word[3],
            ect="N" in word[6],
            seq=int(word[10]),
            packet=word[11],
            ack=int(word[12]),
            flags=int(word[13], 16),
            bytes=int(word[5]) - int(word[14]),
        )


class Receiver:
    """What a receiver has: the blocks of its ACKs (RFC 2018), which ns-2's trace does not show."""

    def __init__(self) -> None:
        self.next = 1
        self.arrivals = 0
        self.islands: list[tuple[int, int, int]] = []

    def take(self, start: int, end: int) -> None:
        """Data `[start, end)` arrives."""
        self.arrivals += 1
        if end <= self.next:
            return
        low, high, apart = start, end, []
        for island in self.islands:
            if island[0] <= high and low <= island[1]:
                low, high = min(low, island[0]), max(high, island[1])
            else:
                apart.append(island)
        if low <= self.next:
            self.next = high
            self.islands = apart
        else:
            self.islands = [*apart, (low, high, self.arrivals)]

    def blocks(self) -> str:
        """Those of the next ACK, newest first."""
        newest = sorted(self.islands, key=lambda island: -island[2])[:MOST_BLOCKS]
        return ",".join(f"{low}-{high}" for low, high, _ in newest)


def segments(lines: Sequence[Line], sack: bool) -> Iterator[tuple[float, str, Line, str]]:
    """What reaches the server ("<", with SACK blocks) and what it sends (">"), except SYNs."""
    begin = next(line.time for line in lines if line.event == "r" and line.target == "1")
    receiver, blocks_of = Receiver(), {}
    for line in lines:
        if line.flags & 2:
            continue
        if line.event == "r" and line.target == "0" and line.bytes > 0:
            receiver.take(line.seq, line.seq + line.bytes)
        elif line.event == "+" and line.origin == "0":
            blocks_of[line.packet] = receiver.blocks() if sack else ""
        elif line.event == "r" and line.target == "1":
            yield line.time - begin, "<", line, blocks_of[line.packet]
        elif line.event in "+d" and line.origin == "1":
            yield line.time - begin, ">", line, ""


def script(case: Case, lines: Sequence[Line]) -> str:
    """The packet script of a trace, up to the last segment that has data."""
    what = "marks" if case.marks else "drops"
    numbers = " ".join(map(str, case.numbers))
    text = [
        f"# ns-2.35: a response of {case.bytes} bytes; {what}, of the server's packets: {numbers}.",
        "# Written by lab/peers/traces/full_tcp.py.",
        "profile ns-full-tcp",
    ]
    if case.kind == "Sack":
        text += ['set recovery = "sack-pipe"', "peer sackok"]
    if case.marks:
        text += ["set ecn = true", "peer EW"]
    text.append("accept 0.100003")
    sent = [*segments(lines, case.kind == "Sack")]
    last = max(i for i, (_, way, line, _) in enumerate(sent) if way == ">" and line.bytes > 0)
    # Without ECN, too, ns-2 notes in its trace that a window has been reduced.
    letters = [("F", 0x01), ("A", 0x10), *([("E", 0x40), ("W", 0x80)] if case.marks else [])]
    asked = False
    for time, way, line, blocks in sent[: last + 1]:
        if not asked and line.bytes == 0:
            continue  # The ACK that ends the handshake.
        flags = "".join(letter for letter, bit in letters if line.flags & bit)
        size = f"+{line.bytes}" if line.bytes else ""
        more = (f" sack {blocks}" if blocks else "") + (" ect" if line.ect else "")
        text.append(f"{time:.6f} {way} {flags} {line.seq}{size} ack {line.ack}{more}")
        if not asked:
            text.append(f". write-last {case.bytes}")
            asked = True
    return "\n".join(text) + "\n"


def main() -> int:
    """The command."""
    for case in CASES:
        kind = "Reno" if case.marks else case.kind
        numbers = " ".join(map(str, case.numbers))
        with tempfile.NamedTemporaryFile("r", suffix=".tr") as trace:
            subprocess.run(
                [
                    *("ns", HERE / "full_tcp_ns2.tcl", kind, str(case.bytes)),
                    *(str(int(case.marks)), numbers, trace.name),
                ],
                check=True,
            )
            lines = [Line.parse(line) for line in trace if line[0] in "+rd"]
        path = SCRIPTS / f"{case.name}.script"
        path.write_text(script(case, lines))
        sys.stdout.write(f"{path.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
