"""What the tests of the card take of a run: one number for each measure, and what gates ask.

Formulas of ``suites/measures.csv`` are a word and its arguments:

========================  ======================================================================
``link KEY``              of the queue under test, over Wi-Fi of all stations' queues at the
                          access point; ``back KEY`` of the reverse direction of the bottleneck
``path KEY``              the sum over the links of the network
``wait CLASS KEY``        of a class of traffic in the queue under test
``class SECTION CLASS KEY``  of a class; ``rest SECTION CLASS KEY``: one less the share
``goodput CLASS...``      bits per second of some classes together
``share CLASS FAIR``      goodput over this share of the link, at most 1
``ratio ONE OTHER``       the smaller goodput over the larger one
``jain``                  Jain's index over the goodput of all classes
``induced CLASS KEY``     a one-way delay above that of the path
``resent CLASS``          retransmitted segments over all that its goodput takes
``rpm``                   round trips per minute, responsiveness draft, without TLS
``peak A B C``            the largest backlog in the C seconds after A, A + B, A + 2 B, ...; mean
``backlog A B C``         the 95th percentile of the backlog there; mean
``windows W``             Jain's index over senders in windows of W seconds; median window
``convergence``           from the start of the last sender until the rates of all stay within 20 %
                          of their mean for five windows of ten round trips; at most to the end
``back-below A B C``      the time there until the backlog stays below 50 ms for 1 s, at most C
========================  ======================================================================

The *backlog* is the time that the waiting bytes take at the present rate of the link. The rate of a
sender is its bytes in flight over its round trip, every 100 ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aqmlab.cards.generator import SuiteCell
from aqmlab.cards.suites import Measure, measures
from aqmlab.errors import AqmlabError
from aqmlab.results.metrics import look_up
from aqmlab.results.run import Run
from aqmlab.results.statistics import Floats
from aqmlab.scenario.quantities import parsed_rate, parsed_time

__all__ = ["BACK_BELOW_S", "backlog", "gate_values", "overview", "senders", "values"]


BACK_BELOW_S = 0.05
"""A queue is back where its backlog stays below this."""
_STAYS_S = 1.0
"""For so long."""
_WINDOW_RTTS = 10
"""Round trips in a window of the test of convergence."""
_NEAR_WINDOWS = 5
"""So many windows in a row must be near."""
_NEAR = 0.2
"""How far a rate may lie off the mean of all."""
_BEST = 0.95
"""The share of probes that RPM counts: the draft discards the worst 5 %."""
_SEGMENT = 1448
"""Bytes of data in a full segment."""
_AIR = "wifi"
"""The link over a Wi-Fi, and its table in a scenario."""
_Numbers = Callable[[Run, list[str]], float | None]


def values(run: Run, cell: SuiteCell) -> dict[str, float]:
    """The measures of a card's test in a run; what was not measured is left out."""
    found = {}
    for measure in measures():
        if measure.test == cell.row.id:
            value = _taken(run, measure)
            if value is not None and math.isfinite(value):
                found[measure.measure] = value
    return found


def _taken(run: Run, measure: Measure) -> float | None:
    word, *arguments = measure.formula.split()
    return _FORMULAS[word](run, arguments)


def overview(run: Run, cell: SuiteCell) -> dict[str, float | None]:
    """A few numbers of any test: waits in s, goodput in bit/s, loss, Jain's index."""
    link = max(_tested(run, cell), key=lambda one: one["sojourn_p95_s"] or 0.0)
    flows = [one.get("goodput_bps") for one in _flows(run).values()]
    bulk = [
        one["name"]
        for one in run.scenario["traffic"]
        if one["kind"] == "bulk" and one.get("size") is None and one["flows"] > 1
    ]
    jains = [_flows(run)[name]["fairness_jain"] for name in bulk]
    return {
        "wait_p50_s": link["sojourn_p50_s"],
        "wait_p95_s": link["sojourn_p95_s"],
        "wait_p99_s": link["sojourn_p99_s"],
        "goodput_bps": math.fsum(rate for rate in flows if rate is not None),
        "loss_rate": link["loss_rate"],
        "jain": min((one for one in jains if one is not None), default=None),
        "rpm": _rpm(run, []) if "probes" in _flows(run) else None,
    }


def _tested(run: Run, cell: SuiteCell) -> list[Mapping[str, Any]]:
    """What the directions with the queue under test showed; of a network every link's forward."""
    if cell.row.links:
        return [link["forward"] for link in run.summary["links"].values()]
    link, direction = _place(run)
    ways = {"": [direction], "both": ["forward", "reverse"]}.get(cell.row.aqm, [cell.row.aqm])
    return [run.summary["links"][link][way] for way in ways]


def gate_values(run: Run, cell: SuiteCell) -> dict[str, float]:
    """What the gates ask of a run; docs/evaluate.md says what each is compared with."""
    oldest, fullest, marks = 0.0, 0.0, 0
    for name, link in run.summary["links"].items():
        for way, numbers in link.items():
            oldest = max(oldest, numbers.get("sojourn_max_s") or 0.0)
            marks += numbers["marked_packets"]
            if name != _AIR:  # the samples are of the queues of all stations together
                fullest = max(fullest, _fullest(run, name, way))
    found = {"age": oldest, "memory": fullest}
    if not cell.row.ecn:
        found["marks"] = float(marks)
    name, asked = _GATES.get(cell.row.id, ("", None))
    value = asked(run, cell) if asked is not None else None
    return found if value is None else {**found, name: value}


def _fullest(run: Run, link: str, way: str) -> float:
    """The largest sampled queue over its limit in bytes; 0 where that has none."""
    table = run.queue
    topology = run.scenario["topology"]
    about = topology["links"][link] if "links" in topology else topology["bottleneck"]
    discipline = about[way]["discipline"]
    texts = [str(discipline.get(key) or "") for key in ("limit", "memory")]
    limits = [float(text.split()[0]) for text in texts if text.endswith(" bytes")]
    if table is None or not limits:
        return 0.0
    fullest = pc.max(_at(table, link, way)["bytes"]).as_py()
    return float(fullest or 0) / min(limits)


def _at(table: pa.Table, link: str, way: str) -> pa.Table:
    """The rows of one direction of a link."""
    return table.filter(pc.and_(pc.equal(table["link"], link), pc.equal(table["direction"], way)))


def _overload(run: Run, _: SuiteCell) -> float:
    """How far the loss of unresponsive datagrams lies off what the link cannot carry."""
    numbers = run.summary["flows"]["cbr"]
    return abs(float(numbers["datagram_loss_rate"]) - 0.5)


def _smallest_share(run: Run, _: SuiteCell) -> float:
    """The smallest goodput over the mean."""
    rates = [float(one["goodput_bps"]) for one in _flows(run).values()]
    return min(rates) / (math.fsum(rates) / len(rates)) if sum(rates) else 0.0


def _used(run: Run, _: SuiteCell) -> float:
    """Goodput over the last rate of the link."""
    link = _forward(run)
    changes = link.get("rate_changes") or []
    rate = changes[-1]["rate"] if changes else link["rate"]
    return _goodput(run, [*_flows(run)]) / parsed_rate(rate)


def _sent_per_round_trip(run: Run, cell: SuiteCell) -> float | None:
    """Packets that reach the queue in a round trip; only where nothing comes through."""
    if "outages" not in cell.row.link:
        return None
    arrived: float = _forward_numbers(run)["arrived_packets"]
    span = float(run.summary["measured_s"])
    return arrived * float(parsed_time(cell.row.rtt)) / span


def _loss(run: Run, cell: SuiteCell) -> float | None:
    """The share of packets that the queue drops, with half a BDP of buffer or more."""
    if float(cell.row.buffer.split()[0]) < _HALF_BDP:
        return None
    loss: float = _forward_numbers(run)["loss_rate"]
    return loss


def _share_of_others(run: Run, _: SuiteCell) -> float:
    """Goodput of those beside the control over their fair share."""
    flows = {one["name"]: float(one["flows"]) for one in run.scenario["traffic"]}
    fair = parsed_rate(_forward(run)["rate"]) * flows["other"] / sum(flows.values())
    return _goodput(run, ["other"]) / fair


def _calls(run: Run, _: SuiteCell) -> float | None:
    """The mean opinion score of calls."""
    return _class(run, ["quality", "calls", "mos_mean"])


def _mark_rate(run: Run, _: SuiteCell) -> float | None:
    """The share of packets that are marked."""
    return _link(run, ["mark_rate"])


_HALF_BDP = 0.5
_GATES: Mapping[str, tuple[str, Callable[[Run, SuiteCell], float | None]]] = {
    "a-udp-only": ("overload", _overload),
    "a-flows-fair": ("starvation", _smallest_share),
    "a-outage": ("outage", _used),
    "c-collapse": ("backoff", _sent_per_round_trip),
    "c-many": ("collapse", _used),
    "c-loss": ("loss", _loss),
    "c-self": ("starvation", _smallest_share),
    "c-harm": ("harm", _share_of_others),
    "c-tunnel": ("harm", _share_of_others),
    "c-aqm-cubic": ("harm", _share_of_others),
    "c-media": ("calls", _calls),
    "c-aqm": ("ecn", _mark_rate),
    "c-steps": ("return", _used),
}
"""Tests that gates ask of something of their own."""


def _forward(run: Run) -> Mapping[str, Any]:
    """The forward direction of the bottleneck, as the scenario has it."""
    found: Mapping[str, Any] = run.scenario["topology"]["bottleneck"]["forward"]
    return found


def _forward_numbers(run: Run) -> Mapping[str, Any]:
    """What it showed."""
    found: Mapping[str, Any] = run.summary["links"]["bottleneck"]["forward"]
    return found


def _flows(run: Run) -> dict[str, Mapping[str, Any]]:
    """Numbers of each class."""
    return {name: one for name, one in run.summary["flows"].items() if name != "all"}


def _place(run: Run) -> tuple[str, str]:
    """The link and the direction of the queue under test."""
    return (_AIR, "down") if _AIR in run.scenario["topology"] else ("bottleneck", "forward")


def _link(run: Run, arguments: list[str]) -> float | None:
    found: float | None = look_up(run.summary, ["links", *_place(run), *arguments])
    return found


def _back(run: Run, arguments: list[str]) -> float | None:
    found: float | None = look_up(run.summary, ["links", "bottleneck", "reverse", *arguments])
    return found


def _path(run: Run, arguments: list[str]) -> float | None:
    found = [link["forward"].get(arguments[0]) for link in run.summary["links"].values()]
    return math.fsum(value for value in found if value is not None)


def _wait(run: Run, arguments: list[str]) -> float | None:
    return _link(run, ["classes", *arguments])


def _class(run: Run, arguments: list[str]) -> float | None:
    found: float | None = look_up(run.summary, arguments)
    return found


def _rest(run: Run, arguments: list[str]) -> float | None:
    found = _class(run, arguments)
    return None if found is None else 1 - found


def _goodput(run: Run, arguments: list[str]) -> float:
    return math.fsum(run.summary["flows"][name]["goodput_bps"] for name in arguments)


def _share(run: Run, arguments: list[str]) -> float | None:
    name, fair = arguments
    topology = run.scenario["topology"]
    # Of a network the last link is the one that all paths cross.
    links = topology.get("links")
    rate = [*links.values()][-1]["forward"]["rate"] if links else _forward(run)["rate"]
    return min(1.0, _goodput(run, [name]) / (float(fair) * parsed_rate(rate)))


def _ratio(run: Run, arguments: list[str]) -> float | None:
    low, high = sorted(_goodput(run, [name]) for name in arguments)
    return low / high if high else None


def _resent(run: Run, arguments: list[str]) -> float | None:
    """Segments that were sent again, as a share of all."""
    flows = run.summary["flows"][arguments[0]]
    again = float(flows["span_retransmitted_data"] or 0)
    bits = float(flows["goodput_bps"] or 0) * float(run.summary["measured_s"])
    total = again + bits / (8 * _SEGMENT)
    return again / total if total else None


def _jain(run: Run, _: list[str]) -> float | None:
    rates = np.array([one["goodput_bps"] for one in _flows(run).values()])
    squares = float(np.sum(rates**2))
    return float(np.sum(rates)) ** 2 / (len(rates) * squares) if squares else None


def _induced(run: Run, arguments: list[str]) -> float | None:
    name, key = arguments
    found: float | None = look_up(run.summary, ["flows", name, key])
    [rtt] = [one["rtt"]["rtt"] for one in run.scenario["traffic"] if one["name"] == name]
    return None if found is None else max(0.0, found - parsed_time(rtt) / 2)


def _rpm(run: Run, _: list[str]) -> float | None:
    """RPM without TLS: F of probes on connections of their own, L of the load's round trips."""
    probes = _trimmed(run.distribution, "response", ["probes"])
    loads = [name for name in run.classes if name != "probes"]
    inside = _trimmed(run.delay, "rtt", loads)
    if probes is None or inside is None:
        return None
    # A probe is a handshake and an exchange: the draft takes the mean of these two.
    return (60 / (probes / 2) + 60 / inside) / 2


def _trimmed(table: pa.Table | None, what: str, classes: list[str]) -> float | None:
    """The mean of the best part of some times that are counted in bins, in seconds."""
    if table is None:
        return None
    names = table["class"].cast(pa.string())
    mine = pc.is_in(names, value_set=pa.array(classes))
    own = table.filter(pc.and_(pc.equal(table["of"], what), mine)).sort_by("below_s")
    ends, counts = own["below_s"].to_numpy(), own["count"].to_numpy().astype(float)
    kept = _BEST * counts.sum()
    if kept <= 0:
        return None
    before = np.cumsum(counts) - counts
    weights = np.clip(kept - before, 0.0, counts)
    return float(np.sum(weights * ends) / kept)


def backlog(run: Run) -> tuple[Floats, Floats]:
    """Times and backlogs of the samples of the queue under test, in seconds."""
    table = run.queue
    if table is None:
        return np.empty(0), np.empty(0)
    own = _at(table, "bottleneck", "forward")
    times = own["time_s"].to_numpy()
    waiting = own["bytes"].to_numpy().astype(float)
    link = _forward(run)
    rates = np.full(len(times), parsed_rate(link["rate"]))
    for change in link.get("rate_changes") or []:
        if "at" not in change:
            raise AqmlabError(f"{run.path}: its rate changes at a phase: no backlog in ms")
        rates[times >= parsed_time(change["at"])] = parsed_rate(change["rate"])
    return times, 8 * waiting / rates


def _phases(run: Run, arguments: list[str]) -> Iterator[tuple[Floats, Floats]]:
    """Times since a change, and the backlogs there, of each phase."""
    first, every, length = map(float, arguments)
    times, waits = backlog(run)
    end = times[-1] if len(times) else 0.0
    while first + length <= end + 1e-3 + 0.1:
        chosen = (times >= first) & (times < first + length)
        yield times[chosen] - first, waits[chosen]
        first += every


def _peak(run: Run, arguments: list[str]) -> float | None:
    return _mean([float(waits.max()) for _, waits in _phases(run, arguments)])


def _percentile(run: Run, arguments: list[str]) -> float | None:
    return _mean([float(np.quantile(waits, 0.95)) for _, waits in _phases(run, arguments)])


def _back_below(run: Run, arguments: list[str]) -> float | None:
    return _mean([_time_back(*phase, float(arguments[2])) for phase in _phases(run, arguments)])


def _time_back(times: Floats, waits: Floats, length: float) -> float:
    """From a phase's start until the backlog stays low; its length if it never does."""
    start = None
    for time, wait in zip(times, waits, strict=True):
        if wait >= BACK_BELOW_S:
            start = None
        elif start is None:
            start = float(time)
        elif time - start >= _STAYS_S:
            return start
    return length


def _senders(run: Run, window: float, since: float) -> Floats:
    """The mean rates of the sampled senders in windows, a row for each window."""
    rates: list[Floats] = []
    end = float(run.summary["simulated_s"])
    edges = np.arange(since, end + 1e-9, window)
    for times, values in senders(run):
        counts, _ = np.histogram(times, edges)
        sums, _ = np.histogram(times, edges, weights=values)
        rates.append(np.where(counts > 0, sums / np.maximum(counts, 1), 0.0))
    found: Floats = np.array(rates).T
    return found


def senders(run: Run) -> list[tuple[Floats, Floats]]:
    """Times and rates of each sampled sender, in bytes per second."""
    table = run.flow_trace
    if table is None:
        return []
    flows = table["flow"].to_numpy()
    times, sent = table["time_s"].to_numpy(), table["in_flight_bytes"].to_numpy().astype(float)
    rtts = table["rtt_s"].to_numpy().astype(float)
    rates = np.where(rtts > 0, sent / np.where(rtts > 0, rtts, 1.0), 0.0)
    return [(times[flows == one], rates[flows == one]) for one in np.unique(flows)]


def _windows(run: Run, arguments: list[str]) -> float | None:
    """Jain's index in windows."""
    rates = _senders(run, float(arguments[0]), parsed_time(run.scenario["measure"]["warm_up"]))
    if not rates.size:
        return None
    squares = np.maximum((rates**2).sum(axis=1), 1e-9)
    return float(np.median(rates.sum(axis=1) ** 2 / (rates.shape[1] * squares)))


def _convergence(run: Run, _: list[str]) -> float | None:
    """From the start of the last sender until all stay near their mean."""
    found = senders(run)
    if not found:
        return None
    start = max(float(times[0]) for times, _ in found)
    window = _WINDOW_RTTS * parsed_time(run.scenario["traffic"][0]["rtt"]["rtt"])
    rates = _senders(run, window, start)
    means = np.maximum(rates.mean(axis=1, keepdims=True), 1e-9)
    near = (np.abs(rates / means - 1) <= _NEAR).all(axis=1)
    for place in range(len(near) - _NEAR_WINDOWS + 1):
        if near[place : place + _NEAR_WINDOWS].all():
            return place * window
    return len(near) * window


def _mean(found: list[float]) -> float | None:
    return math.fsum(found) / len(found) if found else None


_FORMULAS: Mapping[str, _Numbers] = {
    "link": _link,
    "back": _back,
    "path": _path,
    "wait": _wait,
    "class": _class,
    "rest": _rest,
    "goodput": _goodput,
    "share": _share,
    "ratio": _ratio,
    "jain": _jain,
    "resent": _resent,
    "induced": _induced,
    "rpm": _rpm,
    "peak": _peak,
    "backlog": _percentile,
    "back-below": _back_below,
    "windows": _windows,
    "convergence": _convergence,
}
"""By the first word of a formula."""
