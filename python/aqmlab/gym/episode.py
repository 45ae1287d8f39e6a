"""Runs that environments step: changes in, the state of a link and of connections out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aqmlab import _native
from aqmlab._util.pool import available_cpus
from aqmlab.engine import memory
from aqmlab.engine.simulation import LinkState
from aqmlab.scenario.scenario import Scenario

__all__ = ["Changes", "Episode", "FlowsState", "step_all"]

Changes = Sequence[tuple[str, str]]
"""Keys and values, as :meth:`aqmlab.Simulation.set` takes them."""


@dataclass(frozen=True)
class FlowsState:
    """What the connections of a class do now, and what they did in the last step."""

    flows: int
    """How many are open."""
    throughput_bps: float
    """Payload bits per second that their clients received in the step, all together."""
    rtt_s: float
    """The mean of their smoothed round trips; 0 before the first sample."""
    loss: float
    """Share of the segments of the step that were sent again."""
    cwnd_packets: float
    """The mean of their windows, in segments."""


class Episode:
    """A run from its beginning to its end; nothing of it is kept.

    Args:
        scenario: what is run.
        seed: another seed than the scenario's.
        mss: payload bytes of a segment, by class whose flows are looked at.
    """

    def __init__(self, scenario: Scenario, seed: int, mss: dict[str, int] | None = None) -> None:
        effective = scenario.with_seed(seed).effective
        self.stepper = _native.Stepper(effective, None, memory.bound())
        self.end: float = self.stepper.end_time()
        self.threads = available_cpus()  # it takes longer to find out than a step
        self._mss = mss or {}
        self._counted: dict[str, tuple[int, ...]] = {}
        self._flows: dict[str, dict[int, tuple[int, int]]] = {}
        self._seen: dict[str, float] = {}

    @property
    def time(self) -> float:
        """Up to when it has been simulated, in seconds."""
        return self.stepper.now()

    def link(self, name: str) -> LinkState:
        """A direction of a link now, and since the last look at it."""
        found = self.stepper.link(name)
        assert found is not None, "the environment has checked that there is such a link"
        (packets, waiting, delay, rate), counted, variables = found
        before = self._counted.get(name, counted)
        self._counted[name] = counted
        return LinkState(
            backlog_packets=packets,
            backlog_bytes=waiting,
            delay_s=delay,
            rate_bps=rate,
            arrived_packets=counted[0] - before[0],
            departed_packets=counted[1] - before[1],
            departed_bytes=counted[2] - before[2],
            dropped_packets=counted[3] - before[3],
            marked_packets=counted[4] - before[4],
            step_s=self._since(name),
            variables=variables,
        )

    def flows(self, name: str) -> FlowsState:
        """The connections of a class now, and since the last look at them."""
        rows = self.stepper.flows(name)
        before = self._flows.get(name, {})
        self._flows[name] = {flow: (received, again) for flow, received, again, *_ in rows}
        step, mss = self._since(name), self._mss[name]
        received = again = 0
        for flow, got, resent, *_ in rows:
            had = before.get(flow, (0, 0))
            received, again = received + got - had[0], again + resent - had[1]
        trips = [rtt for *_, rtt in rows if rtt is not None]
        return FlowsState(
            flows=len(rows),
            throughput_bps=8 * received / step if step > 0 else 0.0,
            rtt_s=sum(trips) / len(trips) if trips else 0.0,
            loss=again / (again + received / mss) if again else 0.0,
            cwnd_packets=sum(row[3] for row in rows) / (mss * len(rows)) if rows else 0.0,
        )

    def _since(self, name: str) -> float:
        """Seconds since something was looked at last."""
        now = self.time
        before, self._seen[name] = self._seen.get(name, now), now
        return now - before


def step_all(episodes: Sequence[Episode], changes: Sequence[Changes], seconds: float) -> None:
    """Makes each episode's changes, and simulates so long of all of them.

    On threads that do not hold the interpreter's lock, where that is worth it.
    """
    steppers = [episode.stepper for episode in episodes]
    _native.step_all(steppers, [list(own) for own in changes], seconds, episodes[0].threads)
