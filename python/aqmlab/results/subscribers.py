"""Subscribers of an access network: their plans, and how long their users wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aqmlab.results.run import Run

__all__ = ["count", "plans", "response_times"]


def _trees(scenario: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The trees of rates of a scenario: those of the download first."""
    topology = scenario.get("topology", {})
    links = topology.get("links") or {"bottleneck": topology.get("bottleneck", {})}
    for direction in ("forward", "reverse"):
        for link in links.values():
            discipline = link.get(direction, {}).get("discipline", {})
            if isinstance(discipline, Mapping) and discipline.get("kind") == "htb":
                yield discipline


def plans(scenario: Mapping[str, Any]) -> dict[str, range]:
    """The client hosts of each plan of a scenario's first tree; empty: it has none."""
    found: dict[str, range] = {}
    first = 0
    for name, plan in next(_trees(scenario), {}).get("plans", {}).items():
        hosts = plan.get("count", 1) * plan.get("hosts", 1)
        found[name] = range(first, first + hosts)
        first += hosts
    return found


def count(scenario: Mapping[str, Any]) -> int | None:
    """The subscribers of a scenario's first tree; None: it has no tree."""
    known = next(_trees(scenario), {}).get("plans", {})
    return sum(plan.get("count", 1) for plan in known.values()) if known else None


def response_times(run: Run) -> dict[tuple[str, str], Any]:
    """Response times in seconds by plan and class, of a run that recorded its responses."""
    table = run.responses
    if table is None:
        return {}
    found: dict[tuple[str, str], Any] = {}
    names = table["class"].to_numpy(zero_copy_only=False)
    times = table["response_s"].to_numpy()
    for traffic in run.scenario["traffic"]:
        # The clients' side has the servers of a class whose responses go up.
        side = "server" if traffic.get("direction") == "reverse" else "client"
        hosts = table[side].to_numpy()
        for plan, members in plans(run.scenario).items():
            within = (names == traffic["name"]) & (hosts >= members.start) & (hosts < members.stop)
            if within.any():
                found[plan, traffic["name"]] = times[within]
    return found
