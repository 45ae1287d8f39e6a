"""Packets in packetdrill's words, and a segment of ours in the same words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aqmlab.validation.script import Segment

__all__ = ["Options", "Packet", "parse_packet", "worded"]

HEAD = re.compile(
    r"(?P<way>[<>])\s*(?:[\[(](?P<ip>[^\])]*)[\])]\s*)?"
    r"(?P<flags>-|[A-Z]*\.?[0-7]?)\s+"
    r"(?P<seq>\d+):(?P<end>\d+)\((?P<length>\d+)\)"
)
PORTS = re.compile(r"[<>]\s*(?:[\[(][^\])]*[\])]\s*)?\d+\s*>\s*\d+")
FLAGS = {"S": "S", "F": "F", "R": "R", "P": "", "E": "E", "W": "W", "A": "N", "C": "W"}
"""Control bits by their letters, in the letters of packet scripts. PSH has none there."""
ACE = ((4, "N"), (2, "W"), (1, "E"))
ORDER = "SFRAEWN"
ECN = {"noecn": 0, "ect1": 1, "ect0": 2, "ce": 3}
LATER = ("FO", "FOEXP", "md5", "exp-FO", "mp_capable", "dss", "add_address", "mp_join")
"""Options of others, which no end point here has."""
BLOCK = re.compile(r"(\d+):(\d+)")
COUNTER = re.compile(r"(e0b|ceb|e1b)\s+(\d+)")


@dataclass(frozen=True)
class Options:
    """TCP options. Padding and their order say nothing here."""

    mss: int | None = None
    wscale: int | None = None
    sack_permitted: bool = False
    sack: tuple[tuple[int, int], ...] = ()
    stamps: tuple[int, int] | None = None
    accecn: tuple[int, ...] = ()
    ect1_first: bool = False


@dataclass(frozen=True)
class Packet:
    """A TCP packet of a script."""

    outbound: bool
    flags: str
    """In the letters and the order of packet scripts."""
    seq: int
    length: int
    ack: int
    window: int | None
    options: Options | None
    """Nothing: whatever they are."""
    ecn: int | None
    """The field of the IP header; nothing: none is stated. 4: ECT(0) or ECT(1)."""


def whole(text: str, bits: int, name: str) -> int:
    """A number of so many bits."""
    if len(text) > 12 or int(text) >= 1 << bits:
        raise ValueError(f"found {name} {text[:40]}; expected a number below {1 << bits}")
    return int(text)


def flags_of(text: str) -> str:
    """Control bits: letters, a point for ACK, a digit for the three bits of accurate ECN."""
    letters, point, digit = re.fullmatch(r"([A-Z]*)(\.?)([0-7]?)", text).groups()  # type: ignore[union-attr]
    if "U" in letters:
        raise NotImplementedError("urgent data is not modelled")
    if unknown := set(letters) - set(FLAGS):
        raise ValueError(
            f"found flag {min(unknown)}; expected letters of FSRPEWA, a point, a digit"
        )
    if digit and not point:
        raise ValueError(f"found flags {text}; expected a point before the digit")
    found = {FLAGS[letter] for letter in letters} | ({"A"} if point else set())
    if digit:
        found |= {flag for bit, flag in ACE if int(digit) & bit}
    return "".join(flag for flag in ORDER if flag in found)


def ecn_of(text: str | None) -> int | None:
    """The ECN field by its word."""
    if text is None:
        return None
    word = text.strip()
    if word == "ect01":
        return 4
    if word not in ECN:
        if re.match(r"(tos|flowlabel|ttl)\b", word) or "," in word:
            raise NotImplementedError(f"[{word}]: of the IP header only the ECN field is modelled")
        known = ", ".join([*ECN, "ect01"])
        raise ValueError(f"found [{word}]; expected one of {known}")
    return ECN[word]


def sack_of(text: str) -> tuple[tuple[int, int], ...]:
    """SACK blocks: ``FROM:TO FROM:TO``."""
    blocks = BLOCK.findall(text)
    if not blocks or BLOCK.sub("", text).strip() or len(blocks) > 4:
        raise ValueError(f"found sack {text}; expected one to four blocks FROM:TO")
    return tuple((whole(a, 32, "block"), whole(b, 32, "block")) for a, b in blocks)


def counters_of(text: str) -> tuple[tuple[int, ...], bool]:
    """Counters of the option of Accurate ECN, and whether those of ECT(1) come first."""
    found = COUNTER.findall(text)
    names = tuple(name for name, _ in found)
    orders = (("e0b", "ceb", "e1b"), ("e1b", "ceb", "e0b"))
    fitting = [order for order in orders if order[: len(names)] == names]
    if not names or not fitting or COUNTER.sub("", text).strip():
        raise ValueError(f"found ECN {text}; expected e0b N ceb N e1b N, or the other way round")
    return tuple(whole(count, 24, "counter") for _, count in found), fitting[0] is orders[1]


def options_of(text: str) -> Options:
    """The options between the angle brackets."""
    found: dict[str, object] = {}
    for part in text.split(","):
        name, _, rest = part.strip().partition(" ")
        rest = rest.strip()
        if name in ("nop", "eol") and not rest:
            continue
        if name in LATER:
            raise NotImplementedError(f"option {name} is not modelled")
        if name == "sackOK" and not rest:
            found["sack_permitted"] = True
        elif name in ("mss", "wscale") and rest.isascii() and rest.isdigit():
            found[name] = whole(rest, 16 if name == "mss" else 8, name)
        elif name == "sack":
            found["sack"] = sack_of(rest)
        elif name == "ECN":
            found["accecn"], found["ect1_first"] = counters_of(rest)
        elif name == "TS" and (stamps := re.fullmatch(r"val (\d+)\s+ecr (\d+)", rest)):
            found["stamps"] = (whole(stamps[1], 32, "val"), whole(stamps[2], 32, "ecr"))
        else:
            known = "mss, sackOK, sack, TS val ecr, wscale, ECN, nop or eol"
            raise ValueError(f"found option {part.strip()[:40]!r}; expected {known}")
    return Options(**found)  # type: ignore[arg-type]


def parse_packet(text: str) -> Packet:
    """A packet.

    Raises:
        ValueError: It is none.
        NotImplementedError: It has what is not modelled.
    """
    if PORTS.match(text):
        raise NotImplementedError("ports are not modelled: a script has one connection")
    head = HEAD.match(text)
    if head is None or not head["flags"]:
        raise ValueError(f"found {text[:60]!r}; expected FLAGS FROM:TO(LENGTH)")
    flags = "" if head["flags"] == "-" else flags_of(head["flags"])
    outbound = head["way"] == ">"
    seq, end = whole(head["seq"], 32, "sequence"), whole(head["end"], 32, "sequence")
    length = whole(head["length"], 16, "length")
    if (seq + length) % 2**32 != end:
        raise ValueError(f"found {seq}:{end}({length}); expected {seq}:{seq + length}({length})")
    rest = text[head.end() :].strip()
    numbers: dict[str, int] = {}
    for name, bits in (("ack", 32), ("win", 16), ("urg", 16)):
        if word := re.match(rf"{name}\s+(\d+)\s*", rest):
            numbers[name] = whole(word[1], bits, name)
            rest = rest[word.end() :]
    if "urg" in numbers:
        raise NotImplementedError("urgent data is not modelled")
    options: Options | None = Options()
    if rest.startswith("<"):
        content, closed, rest = rest[1:].partition(">")
        rest = rest.strip()
        if not closed:
            raise ValueError("found options without an end; expected >")
        options = None if content.strip() == "..." else options_of(content)
    if rest.startswith("{"):
        raise NotImplementedError("packets that are changed at random are not modelled")
    if rest:
        raise ValueError(f"found {rest[:40]!r}; expected ack N, win N, <options>, in this order")
    ecn = ecn_of(head["ip"])
    if not outbound and (options is None or ecn == 4):
        raise ValueError("found a packet that arrives with <...> or [ect01]; expected its values")
    ack = numbers.get("ack", 0)
    return Packet(outbound, flags, seq, length, ack, numbers.get("win"), options, ecn)


def worded(segment: Segment) -> str:
    """A segment of ours in packetdrill's words."""
    letters = "".join("A" if flag == "N" else flag for flag in segment.flags if flag != "A")
    flags = letters + ("." if "A" in segment.flags else "") or "-"
    ecn = {0: "", 1: "[ect1] ", 2: "[ect0] ", 3: "[ce] "}[segment.ecn]
    end = segment.seq + segment.length
    words = f"> {ecn}{flags} {segment.seq}:{end}({segment.length})"
    if "A" in segment.flags:
        words += f" ack {segment.ack}"
    options = []
    if segment.sack_permitted:
        options.append("sackOK")
    if segment.stamps:
        options.append(f"TS val {segment.stamps[0]} ecr {segment.stamps[1]}")
    if segment.accecn:
        names = ("e1b", "ceb", "e0b") if segment.ect1_first else ("e0b", "ceb", "e1b")
        counts = zip(names, segment.accecn, strict=False)
        options.append("ECN " + " ".join(f"{name} {count}" for name, count in counts))
    if segment.sack:
        options.append("sack " + " ".join(f"{start}:{end}" for start, end in segment.sack))
    return words + (f" <{','.join(options)}>" if options else "")
