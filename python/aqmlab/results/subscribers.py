"""Subscribers of an access network: their plans, their nodes, and what these measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from aqmlab._util.lazy import np
from aqmlab._util.table import TableModel
from aqmlab.results.directions import in_words
from aqmlab.results.links import links_of
from aqmlab.results.metrics import Metric, described_in
from aqmlab.results.run import Run
from aqmlab.results.tables import one_run

__all__ = ["PARTS", "count", "plans", "response_times", "tables"]

PARTS = ("plan", "node")
"""What results of a tree of rates are by."""

_COLUMNS = {
    "subscribers": ("subscribers", 0),
    "throughput_bps": ("Mbit/s", 1),
    "at_ceiling": ("at ceil %", 1),
    "borrowing": ("borrowing %", 1),
    "sojourn_p50_s": ("delay p50 ms", 1),
    "sojourn_p99_s": ("delay p99 ms", 1),
    "dropped_packets": ("dropped", 0),
    "marked_packets": ("marked", 0),
    "subscribers_jain": ("Jain", 3),
}
"""Heads and digits of the columns, by key."""


def _metrics() -> Iterator[Metric]:
    """The columns of a table by plan or by node."""
    for key, (head, decimals) in _COLUMNS.items():
        metric = described_in("links", key)
        if metric is not None:
            yield replace(metric, short=head, decimals=decimals)


def tables(run: Run, by: str) -> list[str | TableModel]:
    """What a run measured by plan or by node; empty: no link has a tree of rates."""
    found: list[str | TableModel] = []
    for at, values in links_of(run).items():
        parts = values.get(f"{by}s")
        if parts:
            head = f"{by}, {in_words(at, run.scenario)}"
            found += [*([""] if found else []), one_run(head, [*_metrics()], parts)]
    if found and by == "plan":
        times = _times_table(run)
        found += ["", times] if times else []
    return found


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


def _times_table(run: Run) -> TableModel | None:
    """Response times by plan and class; None without any."""
    found = response_times(run)
    if not found:
        return None
    table = TableModel()
    table.add_key("plan")
    table.add_key("class")
    for head in ("responses", "p50 s", "p95 s", "p99 s"):
        table.add_number(head)
    for (plan, traffic), times in found.items():
        shown = [f"{value:,.3f}" for value in np.quantile(times, [0.5, 0.95, 0.99])]
        table.add_row(plan, traffic, f"{len(times):,}", *shown)
    return table
