"""Traced connections as qlog: what qvis and the scripts of QUIC stacks read.

A file is one connection in qlog 0.3, as JSON text sequences: draft-ietf-quic-qlog-main-schema and
draft-ietf-quic-qlog-quic-events as of 2023. Later drafts have other names of events; qvis and most
stacks have 0.3. Times are ms of simulated time since the run began.

An event holds what changed since the one before it. So the last value of a key, up to a time, is
the value in ``flow_trace.parquet`` at that time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from aqmlab._util.lazy import np, pa
from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run

__all__ = ["SUFFIX", "QlogConnection", "check_link", "connections", "lines"]

SUFFIX = ".sqlog"
"""What qvis knows JSON text sequences by."""

Event = tuple[int, str, Mapping[str, Any], Mapping[str, Any]]
"""Nanoseconds, name, data, and fields of our own beside the data."""

_RECORD_SEPARATOR = "\x1e"
_NONE = 1 << 53
"""From here on numbers of JSON are no longer exact. An ssthresh as large as that is none."""

_MS = 1e3
_METRICS: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "min_rtt_s": ("min_rtt", lambda value: round(value * _MS, 6)),
    "rtt_s": ("smoothed_rtt", lambda value: round(value * _MS, 6)),
    "cwnd_bytes": ("congestion_window", int),
    "in_flight_bytes": ("bytes_in_flight", int),
    "ssthresh_bytes": ("ssthresh", int),
    "pacing_bps": ("pacing_rate", round),
}
"""Columns of the trace that ``recovery:metrics_updated`` has, and how it has them."""
_PLACE = ("flow", "class", "time_s")
_STATES = {"slow-start": "slow_start", "avoidance": "congestion_avoidance", "": None}
"""What the draft calls phases of a control without phases of its own."""
_REPAIRS = {"fast-recovery": "recovery", "go-back": "timeout_recovery"}
_ARRIVED = ("left", "marked")
_UNDECIDED = "waiting"
_PACKET_COLUMNS = (
    *("link", "flow", "sender", "number", "arrive_ns", "wait_ns", "ring_ns"),
    *("size_bytes", "kind", "again", "ecn", "outcome"),
)


@dataclass(frozen=True)
class QlogConnection:
    """A traced connection of a run."""

    run: Run
    flow: int
    class_: str
    trace: pa.Table
    """Its rows of ``flow_trace.parquet``."""

    @property
    def protocols(self) -> list[str]:
        """Its transport, or those that connections of its class draw."""
        [traffic] = [it for it in self.run.scenario["traffic"] if it["name"] == self.class_]
        transport = traffic.get("transport", "tcp")
        shares = transport if isinstance(transport, Mapping) else {transport: 1.0}
        return sorted(
            {"TCP" if name == "tcp" else "QUIC" for name, share in shares.items() if share}
        )


def connections(run: Run, flows: Sequence[int] | None = None) -> list[QlogConnection]:
    """The traced connections of a run, in the order of their numbers.

    Args:
        run: a run with ``measure.flow_trace``.
        flows: numbers of the connections to take; None: all.
    """
    trace = run.flow_trace
    if trace is None:
        raise AqmlabError(
            f"{run.path}: no connection was traced; "
            "run it with --set measure.flow_trace='{ flows = 1 }'"
        )
    numbers = trace["flow"].to_numpy()
    known = [int(number) for number in np.unique(numbers)]
    if not known:
        raise AqmlabError(f"{run.path}: measure.flow_trace matched no connection")
    for number in flows or ():
        if number not in known:
            shown = ", ".join(map(str, known[:10])) + (", ..." if len(known) > 10 else "")
            raise AqmlabError(f"--flow {number}: not traced in {run.path}; traced: {shown}")
    found = []
    for number in known if flows is None else sorted(set(flows)):
        rows = trace.filter(pa.array(numbers == number))
        found.append(QlogConnection(run, number, str(rows["class"][0].as_py()), rows))
    return found


def lines(connection: QlogConnection, link: str | None = None) -> Iterator[str]:
    """The records of a connection's file.

    Args:
        connection: the connection.
        link: also the packets that reach the queues of this link; None: no packets.
    """
    events = _state_events(connection.trace)
    if link is not None:
        # Both are in order, and a queue's packet goes before the state that follows it.
        packets = sorted(_packet_events(connection, link), key=lambda event: event[0])
        events = iter(sorted(chain(packets, events), key=lambda event: event[0]))
    yield _record(_header(connection, link))
    for time, name, data, own in events:
        yield _record({"time": time / 1e6, "name": name, "data": data, **own})


def _record(value: Mapping[str, Any]) -> str:
    """A text of a sequence (RFC 7464, section 2.2)."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return f"{_RECORD_SEPARATOR}{text}\n"


def _header(connection: QlogConnection, link: str | None) -> dict[str, Any]:
    run = connection.run
    # Only an observer on the path sees packets at a queue.
    point: dict[str, str] = {"name": "sender of the responses", "type": "server"}
    if link is not None:
        point = {"name": f"queues of link {link}", "type": "network", "flow": "server"}
    return {
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": f"{run.path.name}, connection {connection.flow}",
        "trace": {
            "title": f"{connection.class_} {connection.flow}",
            "description": str(run.scenario.get("title", "")),
            "common_fields": {
                "time_format": "relative",
                "reference_time": 0.0,
                "protocol_type": connection.protocols,
                "group_id": str(connection.flow),
            },
            "vantage_point": point,
            "configuration": {
                "time_offset": 0.0,
                "original_uris": [],
                "aqmlab": {
                    "key": run.metadata.get("key"),
                    "seed": run.seed,
                    "class": connection.class_,
                    "flow": connection.flow,
                },
            },
        },
    }


def _state_events(trace: pa.Table) -> Iterator[Event]:
    """What changes from row to row of a connection's trace."""
    columns = {name: trace[name].to_pylist() for name in trace.column_names if name not in _PLACE}
    times = [round(time * 1e9) for time in trace["time_s"].to_pylist()]
    metrics: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    state: str | None = None
    for row, time in enumerate(times):
        values = {name: column[row] for name, column in columns.items()}
        now = {
            key: written(values[name])
            for name, (key, written) in _METRICS.items()
            if values.get(name) is not None and values[name] < _NONE
        }
        if changed := _changes(metrics, now):
            yield time, "recovery:metrics_updated", changed, {}
        name = _congestion_state(values)
        if name is not None and name != state:
            old = {} if state is None else {"old": state}
            yield time, "recovery:congestion_state_updated", {**old, "new": name}, {}
            state = name
        own = {key: _finite(value) for key, value in values.items() if key not in _METRICS}
        if changed := _changes(inner, own):
            yield time, "aqmlab:control_state", changed, {}


def _finite(value: Any) -> Any:  # noqa: ANN401 - what a column holds
    """The value, if JSON has it."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _changes(before: dict[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are new, which are then those before. A first value of none is no news."""
    changed = {key: value for key, value in now.items() if before.get(key) != value}
    before.update(changed)
    return changed


def _congestion_state(values: Mapping[str, Any]) -> str | None:
    """The state of the congestion control in the draft's words, or in its own."""
    phase = values.get("phase") or ""
    if phase in _STATES:
        return _REPAIRS.get(values["state"]) or _STATES[phase]
    return str(phase).replace("-", "_")


def _packet_events(connection: QlogConnection, link: str) -> Iterator[Event]:
    """The packets of a connection at the queues of a link."""
    run = connection.run
    for batch in run.batches("packets", _PACKET_COLUMNS):
        mine = np.asarray(batch["flow"].to_numpy() == connection.flow)
        if not mine.any():
            continue
        for row in batch.filter(pa.array(mine)).to_pylist():
            if row["link"] == link:
                yield from _at_queue(row)


def _at_queue(row: Mapping[str, Any]) -> Iterator[Event]:
    """A packet in the words of the end that sends responses."""
    header = {"packet_type": "unknown", "packet_number": row["number"]}
    own = {"kind": row["kind"], "again": row["again"], "ecn": row["ecn"]}
    packet = {"header": header, "raw": {"length": row["size_bytes"]}}
    left = row["arrive_ns"] + (row["wait_ns"] or 0) + (row["ring_ns"] or 0)
    outcome = row["outcome"]
    if row["sender"] == "server":
        yield row["arrive_ns"], "transport:packet_sent", packet, {"aqmlab": own}
        if outcome not in (*_ARRIVED, _UNDECIDED):
            lost = {"aqmlab": {**own, "reason": outcome}}
            yield left, "recovery:packet_lost", {"header": header}, lost
    elif outcome in _ARRIVED:
        yield left, "transport:packet_received", packet, {"aqmlab": own}


def check_link(run: Run, link: str) -> None:
    """An error if a run has no packets of a link."""
    if not run.has("packets"):
        raise AqmlabError(
            f"--packets {link}: {run.path} has no packets.parquet; "
            "run it with --set 'measure.record=[\"packets\"]'"
        )
    known = list(run.summary["links"])
    if link not in known:
        raise AqmlabError(
            f"--packets {link}: {run.path} has no such link; it has {', '.join(known)}"
        )
