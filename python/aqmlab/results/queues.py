"""Queues as people call them: the names of disciplines, and of the places that have them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from aqmlab import _native
from aqmlab._util.plugin_declarations import defaults_of
from aqmlab.results.directions import way
from aqmlab.results.links import LinkDirection

__all__ = [
    "control_name",
    "discipline_at",
    "discipline_name",
    "first_link",
    "label_of",
    "link_at",
    "listed",
    "names_at",
    "short_value",
]


_MOST_PLACES = 3
"""Links with disciplines of their own that a label names."""
_MOST_DEPARTURES = 2
"""Parameters in which a discipline departs from a preset whose name it still has."""
_MOST_OF_A_PLUGIN = 3
"""Parameters of a plug-in that its name has."""
_LONGEST_VALUE = 40
"""Longest text of a value in a label."""


def discipline_name(discipline: Mapping[str, Any]) -> str:
    """What people call a discipline: its preset, or its kind and what tells it from others.

    Args:
        discipline: as an effective scenario has it, with all defaults.
    """
    kind = str(discipline["kind"])
    if kind == "plugin":
        return _plugin_name(discipline)
    ecn = " ECN" if discipline.get("ecn") else ""
    departures = {
        name: [key for key in discipline if discipline[key] != of.get(key)]
        for name, of in _presets(kind).items()
    }
    for name, keys in departures.items():
        if not keys or (keys == ["ecn"] and ecn):
            return name + (ecn if keys else "")
    if kind == "droptail":
        return f"{kind} {_short(discipline['limit'])}"
    if discipline.get("min_th") is not None:
        return f"{kind} ({_short(discipline['min_th'])},{_short(discipline['max_th'])}){ecn}"
    near = min(departures, key=lambda name: len(departures[name]), default=None)
    keys = [key for key in departures.get(near or "", ()) if key != "ecn"]
    if near is not None and 0 < len(keys) <= _MOST_DEPARTURES:
        own = ", ".join(f"{key} {short_value(discipline[key])}" for key in keys)
        return f"{near if near == kind else kind}{ecn} ({own})"
    limit = discipline.get("limit")
    return f"{kind}{ecn}" + (f" (limit {_short(limit)})" if limit is not None else "")


def control_name(control: Mapping[str, Any]) -> str:
    """What people call a congestion control.

    Args:
        control: as an effective scenario has it.
    """
    return _plugin_name(control) if control["kind"] == "plugin" else str(control["kind"])


_EVERY_PLUGIN = {"limit": "1000 packets", "ecn": False}
"""Parameters that every discipline of one's own has beside those that it declares."""
_MARKED = frozenset(["kind", "name", "sha256", "ecn"])
"""Keys of a plug-in that its name says, or that are no parameters."""


def _plugin_name(table: Mapping[str, Any]) -> str:
    """A plug-in by its name, and the parameters that are not at their defaults.

    Args:
        table: a discipline or a congestion control, as an effective scenario has it.
    """
    name = str(table["name"]) + (" ECN" if table.get("ecn") else "")
    own = defaults_of(table)
    known = {**(own if own is not None else table), **_EVERY_PLUGIN}
    keys = [key for key in table if key not in _MARKED and table[key] != known.get(key)]
    shown = [f"{key} {short_value(table[key])}" for key in keys[:_MOST_OF_A_PLUGIN]]
    if len(keys) > len(shown):
        shown.append("...")
    return f"{name} ({', '.join(shown)})" if shown else name


@cache
def _presets(kind: str) -> dict[str, Mapping[str, Any]]:
    """The disciplines of the presets of a kind with all their defaults."""
    frame = (
        'title = "a preset"\n[topology]\nkind = "dumbbell"\n[topology.bottleneck]\n'
        'rate = "100 Mbit/s"\ndiscipline = "{}"\n[[traffic]]\nkind = "bulk"\nflows = 1\n'
        'rtt = {{ kind = "constant", rtt = "10 ms" }}\n'
    )
    found = {}
    for name, entry in json.loads(_native.catalog("presets"))["presets"].items():
        if any(one["name"] == "kind" and one["value"] == kind for one in entry["parameters"]):
            data = json.loads(_native.to_json(_native.parse(frame.format(name), ".", ())))
            found[name] = data["topology"]["bottleneck"]["forward"]["discipline"]
    return found


def discipline_at(scenario: Mapping[str, Any], at: LinkDirection) -> Mapping[str, Any] | None:
    """The discipline of one direction of a link; None if the scenario has no such link."""
    link = link_at(scenario, at)
    return None if link is None else link["discipline"]


def link_at(scenario: Mapping[str, Any], at: LinkDirection) -> Mapping[str, Any] | None:
    """What a scenario says of one direction of a link; None if it has no such link."""
    topology = scenario.get("topology", {})
    if at.link == "wifi" and "wifi" in topology:
        return _on_air(topology["wifi"], at)
    if "links" in topology:
        link = topology["links"].get(at.link)
    elif at.link == "bottleneck" or at.link.startswith("core-"):
        number = at.link.removeprefix("core-")
        congested = not number.isdigit() or int(number) <= topology.get("bottlenecks", 1)
        link = topology.get("bottleneck" if congested else "aggregation")
    else:
        link = topology.get("aggregation")
    return None if link is None else link[at.direction]


def _on_air(wifi: Mapping[str, Any], at: LinkDirection) -> Mapping[str, Any]:
    """The queues of the access point, or of the stations."""
    if at.direction == "up":
        return {"discipline": wifi["station_queue"]}
    if wifi["queue"] == "fifo":
        return {"discipline": {"kind": "droptail", "limit": wifi["fifo"]}}
    return {"discipline": wifi["discipline"]}


def label_of(scenario: Mapping[str, Any], places: Sequence[LinkDirection] = ()) -> str:
    """A scenario by its queues.

    Args:
        scenario: the effective scenario.
        places: the directions of links whose queues speak for it; default: the first link's.
    """
    named = names_at(scenario, places) or names_at(scenario, first_link(scenario))
    if len(set(named.values())) <= 1:
        return next(iter(named.values()), "run")
    return listed(named, scenario)


def names_at(
    scenario: Mapping[str, Any], places: Sequence[LinkDirection]
) -> dict[LinkDirection, str]:
    """The names of the disciplines at some places, as far as the scenario has them."""
    found = {at: discipline_at(scenario, at) for at in places}
    return {at: discipline_name(one) for at, one in found.items() if one is not None}


def first_link(scenario: Mapping[str, Any]) -> list[LinkDirection]:
    """The forward direction of the bottleneck, or of the first of some links."""
    links = scenario.get("topology", {}).get("links", ["bottleneck"])
    return [LinkDirection(link, "forward") for link in links][:1]


def listed(named: Mapping[LinkDirection, str], scenario: Mapping[str, Any]) -> str:
    """Places and the names of their disciplines; a place is called as briefly as it can be."""
    links = list(dict.fromkeys(at.link for at in named))
    parts: dict[str, None] = {}
    for link in links:
        own = {at.direction: name for at, name in named.items() if at.link == link}
        prefix = [link] if len(links) > 1 else []
        if len(links) > 1 and len(set(own.values())) == 1:
            parts[" ".join([*prefix, *set(own.values())])] = None
            continue
        for direction, name in own.items():
            parts[" ".join([*prefix, way(direction, scenario), name])] = None
    shown = list(parts)[:_MOST_PLACES]
    return ", ".join(shown) + (", ..." if len(parts) > len(shown) else "")


def short_value(value: object) -> str:
    """A value as a label has it."""
    text = _short("none" if value in (None, "null") else value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def _short(quantity: object) -> str:
    """A quantity as people say it: packets go without their unit."""
    return str(quantity).removesuffix(" packets")
