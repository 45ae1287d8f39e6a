"""A line of ``tc qdisc`` as a discipline."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from aqmlab.errors import AqmlabError

__all__ = ["Reading", "discipline", "is_line"]


@dataclass
class Reading:
    """What a line says."""

    name: str
    """The queue, by ``tc``'s name."""
    device: str = ""
    table: dict[str, object] = field(default_factory=dict)
    """The discipline; empty: it has no counterpart."""
    rate: str = ""
    """Of a shaper that stands for the link."""
    without: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


_KINDS = {
    "pfifo": "droptail", "bfifo": "droptail", "pfifo_fast": "droptail", "codel": "codel",
    "fq_codel": "fq-codel", "pie": "pie", "fq_pie": "fq-pie", "cake": "cake", "cake_mq": "cake",
    "red": "red", "sfq": "sfq", "tbf": "",
}  # fmt: skip
"""Queues that have a counterpart; a shaper has a rate alone."""
_SKIPPED = {
    "mq": "one queue for each ring of the card: look at the lines below it",
    "noqueue": "a device without a queue",
    "htb": "its classes are lines of `tc class`; the queue is a line below it",
    "hfsc": "its classes are lines of `tc class`; the queue is a line below it",
    "ingress": "a hook for filters, no queue",
    "clsact": "a hook for filters, no queue",
    "fq": 'a host\'s pacing queue: `pacing = "linux"` of its stack has that',
    "netem": "an emulator: `delay`, `loss` and `limit` are keys of a link",
    "prio": "bands of queues",
    "mqprio": "bands of queues",
}
_TIMES = {"us": "us", "ms": "ms", "s": "s", "sec": "s", "secs": "s", "usec": "us", "msec": "ms",
          "usecs": "us", "msecs": "ms", "": "us"}  # fmt: skip
_RATES = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "bps": 8, "kbps": 8e3, "mbps": 8e6}
_SIZES = {"b": 1, "": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "kbit": 125}


def is_line(line: str) -> bool:
    """Whether a line of ``tc`` is about a queue; statistics below it are not."""
    return re.match(r"\s*(tc\s+)?qdisc\s", line) is not None


def discipline(line: str) -> Reading:
    """The discipline of a line of ``tc qdisc show``, or of the arguments of ``tc qdisc add``.

    Raises:
        AqmlabError: it names no queue, or a value is no number.
    """
    words = line.split()
    words = words[words.index("qdisc") + 1 :] if "qdisc" in words else words
    device, known = "", {*_KINDS, *_SKIPPED}
    head: list[str] = []
    while words and words[0] not in known:
        head.append(words.pop(0))
    if not words:
        found = next((word for word in head if word not in _VERBS), "nothing")
        raise AqmlabError(
            f'tc: found "{found[:40]}"; expected a queue: {", ".join(sorted(_KINDS))}'
        )
    name = words.pop(0)
    for before, word in zip([*head, *words], [*head, *words][1:], strict=False):
        if before == "dev":
            device = word
    reading = Reading(name, device)
    if name in _SKIPPED:
        reading.without.append(f"{name} ({_SKIPPED[name]})")
        return reading
    if kind := _KINDS[name]:
        reading.table["kind"] = kind
    _Words(reading, _own(words)).read()
    _finish(reading)
    return reading


_VERBS = {"add", "change", "replace", "del", "show", "dev", "root", "parent", "handle"}


def _own(words: list[str]) -> list[str]:
    """The words behind where the queue hangs: handle, device, parent, reference count."""
    found = list(words)
    while found:
        word = found[0]
        if re.fullmatch(r"[0-9a-fA-F]+:[0-9a-fA-F]*", word) or word in ("root", "offloaded"):
            del found[0]
        elif word in ("dev", "parent", "refcnt", "handle", "bands"):
            del found[:2]
        elif word == "priomap":
            found = [one for one in found[1:] if not one.isdigit()]
        else:
            break
    return found


class _Words:
    """The parameters of a line, one after the other."""

    def __init__(self, reading: Reading, words: list[str]) -> None:
        self.reading = reading
        self.table = reading.table
        self.words = iter(words)
        self.kind = str(reading.table.get("kind", "tbf"))

    def read(self) -> None:
        """Reads them all."""
        for word in self.words:
            if self.kind == "cake" and self._cake(word):
                continue
            if word in ("ecn", "noecn"):
                if self.kind in ("codel", "fq-codel", "pie", "fq-pie", "red"):
                    self.table["ecn"] = word == "ecn"
                    continue
            elif word in _SILENT.get(self.kind, ()):
                next(self.words, None)
                continue
            elif found := _PARAMETERS.get((self.kind, word)):
                key, unit = found
                self.table[key] = self._value(word, unit)
                continue
            elif self.kind == "tbf" and word == "rate":
                self.reading.rate = str(self._value(word, "rate"))
                continue
            elif word in _PAIRS:
                word = f"{word} {next(self.words, '')}".strip()  # noqa: PLW2901
            self.reading.without.append(f"{self.reading.name} {word}")

    def _value(self, word: str, unit: str) -> object:  # noqa: PLR0911 - one for each unit
        """The value behind a word."""
        text = next(self.words, "")
        found = re.fullmatch(r"(-?\d+(?:\.\d+)?)([a-zA-Z]*)(?:/\d+)?", text)
        if found is None:
            raise AqmlabError(f'tc: {word}: found "{text[:40]}"; expected {_WANTED[unit]}')
        number, suffix = float(found[1]), found[2].lower()
        wrong = AqmlabError(f'tc: {word}: found "{text[:40]}"; expected {_WANTED[unit]}')
        if unit == "time":
            if suffix not in _TIMES:
                raise wrong
            return f"{found[1]} {_TIMES[suffix]}"
        if unit == "rate":
            if suffix not in _RATES:
                raise wrong
            return f"{number * _RATES[suffix]:.0f} bit/s"
        if unit == "bytes":
            if suffix not in _SIZES:
                raise wrong
            return f"{number * _SIZES[suffix]:.0f} bytes"
        if unit == "packets":
            if suffix not in ("p", "") and suffix not in _SIZES:
                raise wrong
            if suffix in ("p", ""):
                return f"{number:.0f} packets"
            return f"{number * _SIZES[suffix]:.0f} bytes"
        if suffix:
            raise wrong
        if unit == "sixteenth":  # Linux counts both gains in sixteenths
            return number / 16
        return int(number) if number.is_integer() else number

    def _cake(self, word: str) -> bool:
        """Whether it is one of CAKE's words."""
        table = self.table
        if word in _CAKE:
            table.update(_CAKE[word])
        elif word in _LAYERS:
            table["link_layer"] = word
        elif word not in _CAKE_NOTHING:
            return False
        return True


def _finish(reading: Reading) -> None:
    """What the defaults of the kernel are where ours differ."""
    table, kind = reading.table, str(reading.table.get("kind", ""))
    if kind == "droptail":
        if "limit" not in table:
            table["limit"] = "1000 packets"
            reading.notes.append("no limit is stated: 1000 packets, the usual length of a queue")
        elif reading.name == "bfifo":
            table["limit"] = str(table["limit"]).replace("packets", "bytes")
    elif kind in ("codel", "fq-codel", "cake"):
        table["root"] = "linux"
    elif kind in ("pie", "fq-pie"):
        table["rules"] = "linux"
    elif kind == "red":
        table["unit"] = "bytes"
    if kind == "codel" or (kind == "fq-codel" and "ecn" not in table):
        table.setdefault("ecn", False)


_SILENT = {"cake": ("fwmark",), "sfq": ("flows",), "tbf": ("burst", "buffer", "mtu")}
"""Words whose values change nothing here."""
_PAIRS = {"ewma", "latency", "lat", "limit", "burst", "peakrate", "priomap", "flows",
          "avpkt", "bandwidth", "ecn_prob", "ce_threshold_selector", "Scell_log"}  # fmt: skip
"""Words that a value follows."""
_PARAMETERS = {
    ("droptail", "limit"): ("limit", "packets"),
    **{(kind, "limit"): ("limit", "packets") for kind in ("codel", "fq-codel", "pie", "fq-pie")},
    **{(kind, "target"): ("target", "time") for kind in ("codel", "fq-codel")},
    **{(kind, "interval"): ("interval", "time") for kind in ("codel", "fq-codel")},
    **{(kind, "ce_threshold"): ("ce_threshold", "time") for kind in ("codel", "fq-codel")},
    **{(kind, "flows"): ("flows", "count") for kind in ("fq-codel", "fq-pie")},
    **{(kind, "quantum"): ("quantum", "bytes") for kind in ("fq-codel", "fq-pie", "sfq")},
    **{(kind, "memory_limit"): ("memory", "bytes") for kind in ("fq-codel", "fq-pie", "cake")},
    ("cake", "memlimit"): ("memory", "bytes"),
    ("fq-codel", "drop_batch"): ("batch", "count"),
    **{(kind, "target"): ("qdelay_ref", "time") for kind in ("pie", "fq-pie")},
    **{(kind, "tupdate"): ("t_update", "time") for kind in ("pie", "fq-pie")},
    **{(kind, "alpha"): ("alpha", "sixteenth") for kind in ("pie", "fq-pie")},
    **{(kind, "beta"): ("beta", "sixteenth") for kind in ("pie", "fq-pie")},
    ("cake", "bandwidth"): ("bandwidth", "rate"),
    ("cake", "rtt"): ("rtt", "time"),
    ("cake", "target"): ("target", "time"),
    ("cake", "overhead"): ("overhead", "count"),
    ("cake", "mpu"): ("mpu", "count"),
    ("red", "limit"): ("limit", "bytes"),
    ("red", "min"): ("min_th", "bytes"),
    ("red", "max"): ("max_th", "bytes"),
    ("red", "avpkt"): ("mean_packet", "bytes"),
    ("red", "probability"): ("max_p", "count"),
    ("sfq", "limit"): ("limit", "packets"),
    ("sfq", "depth"): ("depth", "count"),
    ("sfq", "divisor"): ("buckets", "count"),
    ("sfq", "perturb"): ("perturb", "time"),
}
"""Our key and the unit, by our kind and ``tc``'s word."""
_WANTED = {
    "time": "a time such as 5ms",
    "rate": "a rate such as 20Mbit",
    "bytes": "a size such as 32Mb",
    "packets": "a number of packets such as 1000p",
    "count": "a number",
    "sixteenth": "a number",
}
_CAKE: dict[str, dict[str, object]] = {
    **{word: {"tins": word}
       for word in ("besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence")},
    **{word: {"isolation": word}
       for word in ("flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost",
                    "dual-dsthost")},
    "triple-isolate": {"isolation": "triple"},
    "ack-filter": {"ack_filter": "on"},
    "ack-filter-aggressive": {"ack_filter": "aggressive"},
    "no-ack-filter": {"ack_filter": "off"},
    "ingress": {"ingress": True},
    "egress": {"ingress": False},
    "atm": {"cells": "atm"},
    "ptm": {"cells": "ptm"},
    "noatm": {"cells": "none"},
    **{word: {"rtt": f"{text}"}
       for word, text in (("datacentre", "100 us"), ("lan", "1 ms"), ("metro", "10 ms"),
                          ("regional", "30 ms"), ("internet", "100 ms"), ("oceanic", "300 ms"),
                          ("satellite", "1 s"), ("interplanetary", "3600 s"))},
}  # fmt: skip
"""CAKE's words without a value."""
_LAYERS = {"raw", "conservative", "ethernet", "docsis", "ipoa-vcmux", "ipoa-llcsnap",
           "bridged-vcmux", "bridged-llcsnap", "pppoa-vcmux", "pppoa-llc", "pppoe-vcmux",
           "pppoe-llcsnap", "pppoe-ptm", "bridged-ptm"}  # fmt: skip
_CAKE_NOTHING = {"nonat", "nowash", "no-split-gso", "unlimited"}
"""Words that switch off what is not modelled."""
