"""Where the time of responses went: the parts of a run's breakdown, their names and their means.

The engine divides each response time into parts that add up to it (``measure.breakdown``). Parts
are read generically: each number of a band that ends in ``_s`` is one, except ``response_s``, and
so is each number of a direction of a link. A part without a name here is called by its key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.results.directions import in_words, way
from aqmlab.results.groups import Group
from aqmlab.results.links import LinkDirection
from aqmlab.results.metrics import ALL, look_up
from aqmlab.results.run import Run
from aqmlab.results.statistics import Estimate, estimate

__all__ = [
    "BANDS",
    "CAUSES",
    "Band",
    "Cause",
    "Part",
    "broken_down_classes",
    "by_cause",
    "check_breakdown",
    "has_breakdown",
    "mean_times",
    "part",
]


BANDS: Mapping[str, str] = {
    "all": "all",
    "slowest_50": "slowest 50 %",
    "slowest_10": "slowest 10 %",
    "slowest_1": "slowest 1 %",
}
"""The bands of a breakdown and what they are called."""


@dataclass(frozen=True)
class Cause:
    """What people wait for: several parts together."""

    name: str
    """As a legend has it."""
    doing: str
    """What a response does in this time, as a sentence has it."""
    gloss: str = ""
    """What it means, for a reader who does not know TCP."""


_WAY = Cause(
    "propagation",
    "travelling between client and server",
    "Data travel back and forth several times, because a sender begins with little and sends more "
    "with each answer.",
)
_QUEUE = Cause("queues", "in queues", "A queue holds packets that arrive faster than they leave.")
_SYN = Cause(
    "SYN time-outs",
    "waiting for a timer before a lost packet is sent again",
    "A sender that gets no answer waits for this timer, mostly a second or longer.",
)
_TIMEOUT = Cause("time-outs", _SYN.doing, _SYN.gloss)
_PROBE = Cause(
    "probe and reordering timers",
    "waiting for a short timer that asks whether a packet is lost",
    "Senders of today ask after about two round trips.",
)
_RECOVERY = Cause(
    "recovery",
    "between a loss and its repair, apart from such timers",
    "The answers to later packets show the sender what is missing.",
)
_TRANSMISSION = Cause("transmission", "entering links, bit by bit")
_AIR = Cause(
    "waits for the air",
    "waiting until nobody else sends, and for packets to be sent again",
    "One station sends at a time; a slow one takes long.",
)
_HOSTS = Cause("waits at hosts", "at the hosts, behind other packets")
_ACK = Cause("delayed ACKs", "waiting for a receiver that delays its answer")
_RULES = Cause("pacing", "held back by the pace of the sender")
_APPLICATION = Cause("application", "waiting for the application at either end")
_OTHER = Cause("other parts", "for other reasons")
CAUSES = (
    *(_WAY, _TRANSMISSION, _HOSTS, _QUEUE, _SYN, _TIMEOUT, _PROBE, _RECOVERY, _ACK, _RULES),
    *(_APPLICATION, _OTHER, _AIR),
)
"""In the order of legends."""


@dataclass(frozen=True)
class Part:
    """A part of response times."""

    key: str
    """Its column in ``breakdown.parquet``, without ``_ns``."""
    label: str
    """As a table has it."""
    cause: Cause
    story: str = ""
    """What happened in this time, in the story of a response."""
    at: LinkDirection | None = None
    """Of a part of a link: which."""

    def named(self, scenario: Mapping[str, Any], *, only_link: bool = False) -> str:
        """Its label in a run of a scenario; where there is one link the direction says enough."""
        if self.at is None:
            return self.label
        at = way(self.at.direction, scenario) if only_link else in_words(self.at, scenario)
        return f"{self.label} {at}"


FIXED_PARTS = (
    Part("propagation_handshake", "propagation, handshake", _WAY,
         "SYN and SYN-ACK, or QUIC's first packets, open the connection"),
    Part("propagation_exchange", "propagation, exchange", _WAY,
         "the request and the first answer to it"),
    Part("propagation_slow_start", "propagation, slow start", _WAY,
         "round trips while the window of the sender doubles"),
    Part("propagation_congestion_avoidance", "propagation, avoidance", _WAY,
         "round trips while the window of the sender grows slowly"),
    Part("propagation_receive_window", "propagation, rwnd", _WAY,
         "round trips because a buffer of an end point is full"),
    Part("propagation_recovery", "propagation, recovery", _WAY,
         "round trips while the sender repairs losses"),
    Part("transmission_hosts", "transmission, hosts", _TRANSMISSION,
         "bits enter the hosts' own links"),
    Part("wait_hosts", "wait, hosts", _HOSTS,
         "behind other packets at the hosts' own links"),
    Part("syn_timeout", "SYN time-out", _SYN,
         "until the timer sent the SYN or SYN-ACK again"),
    Part("timeout", "time-out", _TIMEOUT,
         "until the retransmission timer sent data or FIN again"),
    Part("tail_loss_probe", "tail loss probe", _PROBE,
         "until the probe timer sent the last segment again"),
    Part("handshake_probe_timeout", "PTO, handshake", _SYN,
         "until the probe time-out of QUIC sent the handshake again"),
    Part("probe_timeout", "PTO", _PROBE,
         "until the probe time-out of QUIC sent data again"),
    Part("reordering_timer", "reordering timer", _PROBE,
         "until the sender took a late packet for lost"),
    Part("recovery_before_timer", "recovery, before timer", _RECOVERY,
         "from the first transmission until the timer was set"),
    Part("recovery_behind_timer", "recovery, behind timer", _RECOVERY,
         "from the timer's end until it was this segment's turn"),
    Part("recovery_fast", "recovery, no timer", _RECOVERY,
         "until duplicate or selective ACKs showed the loss"),
    Part("delayed_ack", "delayed ACK", _ACK,
         "until the receiver acknowledged a single segment"),
    Part("pacing", "pacing", _RULES,
         "segments left at the sender's rate"),
    Part("application", "application", _APPLICATION,
         "the server or the client paused"),
    Part("hold_up", "hold-up on the wire", _OTHER,
         "reordering on a wire"),
    Part("other_timer", "other timer", _OTHER,
         "until a timer of another kind ended"),
    Part("carried_over", "carried over", _OTHER,
         "something that an earlier exchange had sent"),
)  # fmt: skip
_BY_KEY = {one.key: one for one in FIXED_PARTS}
_AT_LINK = re.compile(r"(wait|ring|transmission)_(.+)_(forward|reverse|down|up)")
LINK_PARTS = {
    "wait": ("queue,", _QUEUE, "in the queue"),
    "ring": ("device ring,", _QUEUE, "in the device ring behind the queue"),
    "transmission": ("transmission,", _TRANSMISSION, "bits enter the link"),
}
AIR_PARTS = {
    "wait": LINK_PARTS["wait"],
    "ring": ("waiting for the air,", _AIR, "handed over, until it is sent and understood"),
    "transmission": ("on the air,", _TRANSMISSION, "sent with the others of its aggregate"),
}
"""Labels, colors and meanings of these parts where stations share a medium."""


@cache
def part(key: str) -> Part:
    """A part by its key, such as ``timeout`` or ``wait_bottleneck_forward``."""
    if key in _BY_KEY:
        return _BY_KEY[key]
    if found := _AT_LINK.fullmatch(key):
        parts = AIR_PARTS if found[3] in ("down", "up") else LINK_PARTS
        label, cause, story = parts[found[1]]
        return Part(key, label, cause, story, LinkDirection(found[2], found[3]))
    return Part(key, key.replace("_", " "), _OTHER)


@dataclass(frozen=True)
class Band:
    """Some of a class's responses in a run: their mean time and its parts, in seconds."""

    count: int
    response_s: float
    parts: Mapping[str, float]
    """By the key of the part."""
    trips: float
    """One-way trips on the path after the handshake."""
    lost_share: float
    """Share of the responses with a loss on their path."""
    reasons: Mapping[tuple[LinkDirection, str], float]
    """Share of the responses by the place and the reason of the drop."""

    @classmethod
    def of(cls, summary: Mapping[str, Any], traffic: str, band: str) -> Band | None:
        """From a summary; None if the class had no responses."""
        values = look_up(summary, ("breakdown", traffic, band))
        if not values:
            return None
        parts = {
            key[:-2]: float(value)
            for key, value in values.items()
            if key.endswith("_s") and key != "response_s"
        }
        reasons = {}
        for link, directions in values.get("links", {}).items():
            for direction, found in directions.items():
                at = LinkDirection(link, direction)
                for key, value in found.items():
                    if key.endswith("_s"):
                        parts[f"{key[:-2]}_{link}_{direction}"] = float(value)
                for reason, share in found.get("lost_share", {}).items():
                    reasons[at, reason] = float(share)
        return cls(
            int(values["count"]),
            float(values["response_s"]),
            parts,
            float(values["trips"]),
            float(values["lost_share"]),
            reasons,
        )


def has_breakdown(run: Run) -> bool:
    """Whether a run says where the time of its responses went."""
    return bool(run.summary.get("breakdown"))


def check_breakdown(runs: Iterable[Run]) -> None:
    """An error if a run does not say where the time of its responses went."""
    for run in runs:
        if not has_breakdown(run):
            raise AqmlabError(
                f"{run.path}: has no breakdown of its response times; run it again with "
                "measure.breakdown = true (--set measure.breakdown=true)"
            )


def mean_times(group: Group, traffic: str, band: str) -> dict[str, Estimate]:
    """The mean of each part over a group's runs, in seconds, and of the whole (``response``).

    A part that a run does not have took no time there. Empty if a run had no such responses.
    """
    found = [Band.of(run.summary, traffic, band) for run in group.runs]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return {}
    keys = dict.fromkeys(key for one in known for key in one.parts)
    means = {
        key: estimate([one.parts.get(key, 0.0) for one in known], bounds=(0.0, math.inf))
        for key in keys
    }
    whole = estimate([one.response_s for one in known], bounds=(0.0, math.inf))
    return {**means, "response": whole}


def by_cause(parts: Mapping[str, float]) -> dict[Cause, float]:
    """Times of parts added up by what people wait for, in the order of :data:`CAUSES`."""
    found: dict[Cause, float] = {}
    for cause in CAUSES:
        times = [time for key, time in parts.items() if part(key).cause is cause]
        if any(times):
            found[cause] = math.fsum(times)
    return found


def broken_down_classes(groups: Sequence[Group], wanted: str | None = None) -> list[str]:
    """The stated classes that have a breakdown in every run, or the one that is wanted.

    Raises:
        AqmlabError: not every run has a breakdown of the wanted class.
    """
    stated = [name for group in groups for name in group.classes]
    known = [name for group in groups for name in group.first.summary["breakdown"]]
    found = [
        name
        for name in dict.fromkeys([*stated, *known])
        if all(mean_times(group, name, ALL) for group in groups)
    ]
    if wanted is None:
        return [name for name in found if name in stated]
    if wanted not in found:
        raise AqmlabError(
            f"class: found {wanted}{nearest(wanted, found)}; the runs have responses of "
            f"{', '.join(found)}"
        )
    return [wanted]
