"""What people call the directions of links: download and upload where the topology says which is.

Files, keys and metrics keep ``forward`` and ``reverse``, which every topology has. Between clients
and servers the forward direction is the download: clients ask, servers answer. A row of routers has
no such side, nor has a network of one's own: there a link keeps its own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aqmlab.results.links import LinkDirection

__all__ = ["along", "brief", "in_queue", "in_words", "placed", "way"]


_WAYS = {"forward": "download", "reverse": "upload"}
_BOTTLENECK = "bottleneck"


def in_words(at: LinkDirection, scenario: Mapping[str, Any]) -> str:
    """One direction of a link, as tables and sentences call it.

    Args:
        at: the direction.
        scenario: the effective scenario of the run.
    """
    if at.link == "wifi":
        return f"Wi-Fi {at.direction}"
    found = way(at.direction, scenario)
    alone = at.link == _BOTTLENECK and found != at.direction
    return found if alone else f"{at.link} {found}"


def brief(at: LinkDirection, scenario: Mapping[str, Any]) -> str:
    """The same beside classes: the bottleneck, mostly the only loaded link, has no name.

    Where a class of traffic is called as the direction is, such as ``upload``, this is the link.
    """
    if at.link != _BOTTLENECK:
        return in_words(at, scenario)
    found = way(at.direction, scenario)
    classes = {one.get("name") for one in scenario.get("traffic", ())}
    return f"{found} link" if found in classes else found


def placed(at: LinkDirection, scenario: Mapping[str, Any]) -> str:
    """Whose a number is, after it: "of the download", "at core-1 forward"."""
    named = in_words(at, scenario)
    return f"of the {named}" if named in _WAYS.values() else f"at {named}"


def in_queue(at: LinkDirection, scenario: Mapping[str, Any]) -> str:
    """Where a packet is dropped: "in the download queue", "at core-1 forward"."""
    named = in_words(at, scenario)
    return f"in the {named} queue" if named in _WAYS.values() else f"at {named}"


def along(direction: str, scenario: Mapping[str, Any]) -> str:
    """Where a stream runs: "in the download", "in the forward direction"."""
    found = way(direction, scenario)
    return f"in the {found}" if found in _WAYS.values() else f"in the {found} direction"


def way(direction: str, scenario: Mapping[str, Any]) -> str:
    """``download`` or ``upload`` in place of ``forward`` and ``reverse``, where they are that.

    They are in a dumbbell in which some class has its servers at the servers' side.
    """
    sides = [one.get("direction", "forward") for one in scenario.get("traffic", ())]
    known = scenario.get("topology", {}).get("kind") == "dumbbell" and {*sides} != {"reverse"}
    return _WAYS.get(direction, direction) if known else direction
