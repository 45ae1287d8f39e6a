"""The numbers behind the findings: counts of packets by kind, waits under one load."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aqmlab.cards.verdicts import PREFIX
from aqmlab.results.metrics import look_up
from aqmlab.results.run import Run
from aqmlab.scenario.quantities import parsed_rate

__all__ = ["counts"]


_STREAMS = ("small-fast", "large-slow", "large-fast", "small-slow", "ect", "not-ect")
_OTHERS = ("objects", "probes")


def counts(run: Run, test: str) -> dict[str, float]:
    """The numbers behind the findings, of a run of a test ``q-*``; nothing of others."""
    if not test.startswith("q-"):
        return {}
    found = dict(_counts(run))
    if test == "q-steady":
        found |= _seconds(run)
    return {f"{PREFIX}{name}": value for name, value in found.items()}


def _counts(run: Run) -> Iterator[tuple[str, float]]:
    flows = run.summary["flows"]
    for name in _STREAMS:
        if name in flows:
            yield f"{name} sent", float(flows[name]["datagrams_sent"])
            yield f"{name} lost", float(flows[name]["datagrams_lost"])
    for name in _OTHERS:
        if name in flows:
            yield f"{name} begun", float(look_up(run.summary, ("responses", name, "started")) or 0)
            yield f"{name} SYNs", float(flows[name]["span_retransmitted_syn"])
    yield "lost", float(flows["all"]["lost_segments"] or 0)
    yield "resent", float(flows["all"]["span_retransmitted_data"] or 0)
    for name in ("with", "without"):
        if name in flows:
            yield f"{name} rate", float(flows[name]["goodput_bps"] or 0)
    slow = look_up(run.summary, ("responses", "objects", "p95_s"))
    if slow is not None:
        yield "object p95", float(slow)
    link = run.summary["links"]["bottleneck"]["forward"]
    yield "arrived", float(link["arrived_packets"])
    yield "dropped", float(link["dropped_packets"])
    yield "marked", float(link["marked_packets"])
    discipline = run.scenario["topology"]["bottleneck"]["forward"]["discipline"]
    yield "can mark", float("ecn" in discipline or link["marked_packets"] > 0)


def _seconds(run: Run) -> dict[str, float]:
    """The mean wait of the first and of the last third, and how the means of seconds spread."""
    table = run.queue
    if table is None:
        return {}
    rows = table.to_pydict()
    rate = parsed_rate(run.scenario["topology"]["bottleneck"]["forward"]["rate"])
    chosen = [
        (time, 8 * size / rate)
        for time, size, link, way in zip(
            rows["time_s"], rows["bytes"], rows["link"], rows["direction"], strict=True
        )
        if (link, way) == ("bottleneck", "forward")
    ]
    times = np.array([time for time, _ in chosen])
    waits = np.array([wait for _, wait in chosen])
    begin, third = times[0], (times[-1] - times[0]) / 3
    each = [waits[np.floor(times) == second] for second in np.unique(np.floor(times))]
    means = np.array([one.mean() for one in each])
    return {
        "first wait": float(waits[times < begin + third].mean()),
        "last wait": float(waits[times >= begin + 2 * third].mean()),
        "mean wait": float(waits.mean()),
        "swing": float(means.std()),
    }
