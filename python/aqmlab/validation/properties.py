"""The properties that native algorithms have, asked of a plug-in in small runs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aqmlab import _native
from aqmlab.engine.execute import execute
from aqmlab.engine.simulation import Simulation
from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario, inline
from aqmlab.validation.worked import follow

__all__ = ["Property", "check", "check_trace"]


@dataclass(frozen=True)
class Property:
    """Something that has been asked, and what came out."""

    name: str
    """What should hold."""
    holds: bool
    """Whether it does."""
    found: str
    """What was seen."""


_SHOWN = 5
"""Differences from a trace that are shown."""
_LINK = "topology.bottleneck.forward.discipline"
_SCENARIO = """
title = "A check of a plug-in"
[measure]
warm_up = "0 s"
duration = "8 s"
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
discipline = { kind = "droptail", limit = "60 packets" }
[[traffic]]
name = "transfers"
kind = "bulk"
flows = 6
tcp = "linux"
rtt = { kind = "constant", rtt = "40 ms" }
"""


def check(kind: str, name: str, settings: Mapping[str, object]) -> list[Property]:
    """Asks a plug-in that is loaded.

    Args:
        kind: ``discipline`` or ``control``.
        name: what it is called.
        settings: values of its parameters; those without a default are needed.

    Returns:
        What was asked: it ends (no exception), it gives the same bytes twice, also after a run
        with another seed, packets are conserved, ticks go on, the limit holds, and where ECN is on
        capable packets are marked, where it is off none.
    """
    table = {"kind": "plugin", "name": name, **settings}
    if kind == "control":
        control = inline({"profile": "linux", "congestion_control": table})
        base = Scenario.from_toml(_SCENARIO, [("traffic.transfers.tcp", control)])
        return [*_determinism(base), _conserved(base)]
    base = Scenario.from_toml(_SCENARIO, [(_LINK, inline({"limit": "60 packets", **table}))])
    ticks = [_ticking(base)] if "tick" in _native.plugin_callbacks(kind, name) else []
    return [*_determinism(base), _conserved(base), *ticks, _limited(base), *_ecn(base)]


def check_trace(
    kind: str, name: str, settings: Mapping[str, object], trace: Path, rate: str
) -> Property:
    """Plays a worked trace on a plug-in that is loaded.

    Args:
        kind: as of :func:`check`, like `name` and `settings`.
        name: what it is called.
        settings: values of its parameters.
        trace: the file, as of :func:`aqmlab.validation.worked.follow`.
        rate: of the link, which has no framing.
    """
    if kind == "control":
        raise AqmlabError(f"{name}: found a congestion control; a trace is for a discipline")
    table = {"kind": "plugin", "name": name, "limit": "60 packets", **settings}
    link = {"topology.bottleneck.rate": rate, "topology.bottleneck.framing": "none"}
    found = list(
        follow(trace, Scenario.from_toml(_SCENARIO, [(_LINK, inline(table)), *link.items()]))
    )
    shown = "; ".join(found[:_SHOWN]) + (
        f"; and {more} more" if (more := len(found) - _SHOWN) > 0 else ""
    )
    return Property(f"follows {trace.name}", not found, shown or "every row")


def _run(scenario: Scenario, folder: Path) -> Run:
    return execute(scenario, folder / "run")


def _bytes(scenario: Scenario) -> dict[str, bytes]:
    """Everything that the engine writes."""
    with tempfile.TemporaryDirectory(prefix="aqmlab-") as folder:
        run = _run(scenario, Path(folder))
        return {file.name: file.read_bytes() for file in run.path.glob("*.parquet")}


def _determinism(base: Scenario) -> list[Property]:
    first, again = _bytes(base), _bytes(base)
    _bytes(base.with_seed(base.seed + 1))
    after = _bytes(base)
    found = "the same" if first == again == after else "other bytes: something outlives a run"
    return [
        Property(
            "the same seed gives the same bytes, also after another run",
            first == again == after,
            found,
        )
    ]


def _summary(scenario: Scenario) -> dict[str, float]:
    """Counters of the link, at the end of a stepped run."""
    with Simulation(scenario, record=False) as simulation:
        before = simulation.links["bottleneck.forward"]
        totals = {
            "arrived": before.arrived_packets,
            "departed": 0,
            "dropped": 0,
            "marked": 0,
            "most": 0,
        }
        while simulation.time < simulation.end:
            simulation.step(0.05)
            link = simulation.links["bottleneck.forward"]
            totals["arrived"] += link.arrived_packets
            totals["departed"] += link.departed_packets
            totals["dropped"] += link.dropped_packets
            totals["marked"] += link.marked_packets
            totals["most"] = max(totals["most"], link.backlog_packets)
            totals["waiting"] = link.backlog_packets
    return {key: float(value) for key, value in totals.items()}


def _conserved(base: Scenario) -> Property:
    seen = _summary(base)
    rest = seen["arrived"] - seen["departed"] - seen["dropped"] - seen["waiting"]
    return Property(
        "every packet departs, is dropped or waits",
        rest == 0 and seen["departed"] > 0,
        f"{seen['arrived']:.0f} arrived, {seen['departed']:.0f} departed, "
        f"{seen['dropped']:.0f} dropped, {seen['waiting']:.0f} wait",
    )


def _ticking(base: Scenario) -> Property:
    """Ticks that end never begin again."""
    stepper = _native.Stepper(base.effective, None)
    stepper.run_until(stepper.end_time())
    due = stepper.next_tick("bottleneck.forward")
    found = "none is due at the end" if due is None else "one is due at the end"
    return Property("ticks go on to the end of the run", due is not None, found)


def _limited(base: Scenario) -> Property:
    small = base.with_overrides({f"{_LINK}.limit": "7 packets"})
    most = _summary(small)["most"]
    return Property("the limit holds", most <= 7, f"at most {most:.0f} packets of 7")


def _ecn(base: Scenario) -> Sequence[Property]:
    capable = base.with_overrides({"traffic.transfers.tcp": '{ profile = "linux", ecn = true }'})
    on = _summary(capable.with_overrides({f"{_LINK}.ecn": "true"}))
    off = _summary(capable.with_overrides({f"{_LINK}.ecn": "false"}))
    incapable = _summary(base.with_overrides({f"{_LINK}.ecn": "true"}))
    wrong = off["marked"] + incapable["marked"]
    return [
        Property(
            "marks only where ECN is on and the packet capable",
            wrong == 0,
            f"{on['marked']:.0f} marks with ECN, {wrong:.0f} without",
        )
    ]
