"""Tables of an access network by plan and by node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from aqmlab._util.lazy import np
from aqmlab._util.table import TableModel
from aqmlab.results.directions import in_words
from aqmlab.results.links import links_of
from aqmlab.results.metrics import Metric, described_in
from aqmlab.results.run import Run
from aqmlab.results.subscribers import response_times
from aqmlab.results.tables import one_run

__all__ = ["PARTS", "tables"]

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


def _times_table(run: Run) -> TableModel | None:
    """Response times by plan and class; None without any."""
    found = response_times(run)
    if not found:
        return None
    table = TableModel("", ["plan", "class"], ["responses", "p50 s", "p95 s", "p99 s"])
    for (plan, traffic), times in found.items():
        shown = [f"{value:,.3f}" for value in np.quantile(times, [0.5, 0.95, 0.99])]
        table.add_row(plan, traffic, f"{len(times):,}", *shown)
    return table
