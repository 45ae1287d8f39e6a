"""The language of packet scripts, as ``crates/tcp/tests/scripts/README.md`` explains it.

A script becomes a list of steps. ``open`` and ``accept`` become the steps that they stand for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from aqmlab.errors import AqmlabError

__all__ = ["ACTIONS", "SHOWN", "Script", "ScriptError", "Segment", "Step", "parse"]

FLAGS = "SFRAEWN"
"""Letters of the control bits, in the order in which they are written."""
ACTIONS = ("connect", "listen", "write", "write-last", "close", "abort")
"""What an application does."""
SHOWN = (
    "cwnd",
    "ssthresh",
    "inflight",
    "srtt",
    "rto",
    "timeouts",
    "resent",
    "received",
    "established",
    "eof",
    "failed",
    "finished",
    "recovering",
)
"""What an end point shows of itself."""
ECN = {"ect": 2, "ect1": 1, "ce": 3}
"""The ECN field of the IP header, by its word."""


class ScriptError(AqmlabError):
    """A line of a script that cannot be read."""


@dataclass(frozen=True)
class Segment:
    """A segment; sequence numbers begin at 0, the SYN."""

    flags: str
    seq: int
    length: int = 0
    ack: int = 0
    sack: tuple[tuple[int, int], ...] = ()
    sack_permitted: bool = False
    stamps: tuple[int, int] | None = None
    """Time stamp and echo; nothing if there are none, or none is stated."""
    accecn: tuple[int, ...] = ()
    """Counters of the option of Accurate ECN, in the order of the option."""
    ect1_first: bool = False
    ecn: int = 0

    def __str__(self) -> str:
        words = [self.flags, f"{self.seq}+{self.length}" if self.length else str(self.seq)]
        if "A" in self.flags:
            words.append(f"ack {self.ack}")
        if self.sack_permitted:
            words.append("sackok")
        if self.sack:
            words.append("sack " + ",".join(f"{start}-{end}" for start, end in self.sack))
        if self.accecn:
            word = "accecn1" if self.ect1_first else "accecn"
            words.append(f"{word} {'/'.join(map(str, self.accecn))}")
        if self.stamps:
            words.append(f"ts {self.stamps[0]}/{self.stamps[1]}")
        words.extend(word for word, field in ECN.items() if field == self.ecn)
        return " ".join(words)


@dataclass(frozen=True)
class Step:
    """What a line says: at this time something is done, arrives, must be sent or must be shown."""

    line: int
    time: float
    word: str
    """``<``, ``>``, ``any`` (sent, and not looked at), ``quiet``, an action, or what is shown."""
    value: float = 0.0
    """Bytes of a write, or what must be shown."""
    segment: Segment | None = None


@dataclass(frozen=True)
class Script:
    """A packet script."""

    profile: str
    settings: dict[str, str]
    """Values as they are written in TOML, by key."""
    steps: tuple[Step, ...]


def number(word: str) -> int:
    """A whole number."""
    if not re.fullmatch(r"\d+", word):
        raise ValueError(f"{word!r} is no number")
    return int(word)


def flags_of(letters: str) -> str:
    """The letters of control bits, in the order in which they are written."""
    if unknown := set(letters) - set(FLAGS):
        raise ValueError(f"unknown flag {min(unknown)}; flags are {FLAGS}")
    return "".join(letter for letter in FLAGS if letter in letters)


def segments(text: str) -> list[Segment]:
    """The segments of what follows ``<`` or ``>``: several with ``x3``."""
    words = iter(text.split())
    flags = flags_of(next(words, ""))
    seq, _, length = next(words, "").partition("+")
    first = Segment(flags, number(seq), number(length or "0"))
    times = 1
    for word in words:
        if word == "sackok":
            first = replace(first, sack_permitted=True)
        elif word in ECN:
            first = replace(first, ecn=ECN[word])
        elif re.fullmatch(r"x\d+", word):
            times = int(word[1:])
        else:
            if word not in ("ack", "sack", "ts", "accecn", "accecn1"):
                raise ValueError(f"unknown word {word}")
            value = next(words, None)
            if value is None:
                raise ValueError(f"{word} lacks its value")
            first = with_option(first, word, value)
    return [replace(first, seq=first.seq + step * first.length) for step in range(times)]


def with_option(segment: Segment, word: str, value: str) -> Segment:
    """The segment with what a word and its value say."""
    if word == "ack":
        return replace(segment, ack=number(value))
    if word == "sack":
        blocks = [block.partition("-") for block in value.split(",")]
        pairs = tuple((number(start), number(end)) for start, _, end in blocks)
        return replace(segment, sack=pairs)
    if word == "ts":
        stamp, _, echo = value.partition("/")
        return replace(segment, stamps=(number(stamp), number(echo)))
    counters = tuple(map(number, value.split("/")))
    if len(counters) > 3:
        raise ValueError(f"{word} has {len(counters)} counters, not 1 to 3")
    return replace(segment, accecn=counters, ect1_first=word == "accecn1")


class Reader:
    """Reads a script line by line."""

    def __init__(self) -> None:
        self.profile = ""
        self.settings: dict[str, str] = {}
        self.peer = ""
        self.steps: list[Step] = []
        self.time = 0.0

    def line(self, text: str, line: int) -> None:
        """Reads a line without its comment."""
        word, _, rest = text.partition(" ")
        rest = rest.strip()
        if word == "profile":
            self.profile = rest
        elif word == "set":
            key, equals, value = rest.partition("=")
            if not equals:
                raise ValueError("a setting is KEY = VALUE")
            self.settings[key.strip()] = value.strip()
        elif word == "peer":
            self.peer = rest
        elif word == "open":
            self.open(rest, line)
        elif word == "accept":
            self.accept(rest, line)
        else:
            self.at(word, rest, line)

    def says(self, flags: str) -> tuple[str, str]:
        """Flags and options of the peer's SYN."""
        more, _, options = self.peer.partition(" ")
        if re.fullmatch("[A-Z]*", more):
            return flags + more, options
        return flags, self.peer

    def open(self, time: str, line: int) -> None:
        """A client whose SYN-ACK comes after a round trip."""
        flags, options = self.says("SA")
        self.at("0", "connect", line)
        self.steps.append(Step(line, 0.0, "any"))
        self.at(time, f"< {flags} 0 ack 1 {options}", line)
        self.steps.append(Step(line, self.time, "any"))

    def accept(self, time: str, line: int) -> None:
        """A server: a SYN, and the ACK of its SYN-ACK after a round trip."""
        flags, options = self.says("S")
        self.at("0", "listen", line)
        self.at("0", f"< {flags} 0 {options}", line)
        self.steps.append(Step(line, 0.0, "any"))
        self.at(time, "< A 1 ack 1", line)

    def at(self, time: str, rest: str, line: int) -> None:
        """A line that begins with a time."""
        if time != ".":
            try:
                moment = float(time)
            except ValueError:
                raise ValueError(f"unknown word {time}, or no time") from None
            if moment < self.time:
                raise ValueError(f"time goes back to {time}")
            self.time = moment
        word, _, rest = rest.partition(" ")
        rest = rest.strip()
        if word in ("<", ">"):
            found = segments(rest)
            self.steps.extend(Step(line, self.time, word, segment=each) for each in found)
        elif word in ("write", "write-last"):
            self.steps.append(Step(line, self.time, word, number(rest)))
        elif word == "quiet" or word in ACTIONS:
            self.steps.append(Step(line, self.time, word))
        elif word in SHOWN:
            self.steps.append(Step(line, self.time, word, float(rest)))
        else:
            raise ValueError(f"unknown word {word!r}")


def parse(text: str, name: str = "script") -> Script:
    """Reads a packet script.

    Raises:
        ScriptError: A line cannot be read; the message names it.
    """
    reader = Reader()
    for line, raw in enumerate(text.splitlines(), start=1):
        content = raw.partition("#")[0].strip()
        if content:
            try:
                reader.line(content, line)
            except ValueError as error:
                raise ScriptError(f"{name}: line {line} ({content}): {error}") from error
    return Script(reader.profile, reader.settings, tuple(reader.steps))
