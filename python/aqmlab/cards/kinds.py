"""What a card can be about: a queue discipline or a congestion control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aqmlab.cards.gates import CONTROL_GATES, GATES, GateRule

__all__ = ["CONTROL", "KINDS", "QUEUE", "Kind"]


@dataclass(frozen=True)
class Kind:
    """What a card is about."""

    name: str
    suite: str
    """The table of its tests."""
    areas: Sequence[str]
    """Areas that are graded, in the order of the page."""
    gates: Sequence[GateRule]
    anchor: str
    """What every candidate is compared with: it scores 0 (queues) or 1 (controls)."""
    called: str
    """The anchor as people call it."""


QUEUE = Kind(
    name="queue",
    suite="card",
    areas=(
        "delay",
        "users",
        "bursts",
        "stability",
        "fairness",
        "ecn",
        "two-way",
        "series",
        "wi-fi",
    ),
    gates=GATES,
    anchor="droptail",
    called="drop-tail",
)
CONTROL = Kind(
    name="control",
    suite="card-controls",
    areas=(
        "delay",
        "loss",
        "speed",
        "fairness",
        "coexistence",
        "queues",
        "change",
        "users",
    ),
    gates=CONTROL_GATES,
    anchor="cubic",
    called="CUBIC",
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (QUEUE, CONTROL)}
"""By name."""
