"""A run that is stepped, looked at and changed while it is under way."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from aqmlab import _native
from aqmlab._util.places import RUNS_ROOT
from aqmlab.engine import memory
from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.execute import World, default_path
from aqmlab.engine.finished import write_run
from aqmlab.engine.workspace import workspace
from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run
from aqmlab.scenario.quantities import parsed_time
from aqmlab.scenario.scenario import Scenario

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FlowState", "LinkState", "Simulation"]


@dataclass(frozen=True)
class LinkState:
    """What one direction of a link does now, and what it did in the last step."""

    backlog_packets: int
    """Packets that wait in the discipline."""
    backlog_bytes: int
    """Their IP bytes."""
    delay_s: float
    """How long it takes to send all that waits, with what is on the wire and in the device ring."""
    rate_bps: int
    """Bits per second on the wire."""
    arrived_packets: int
    """Packets that arrived in the step."""
    departed_packets: int
    """Packets that left the discipline for the wire in the step."""
    departed_bytes: int
    """Their IP bytes."""
    dropped_packets: int
    """Packets that the discipline dropped in the step."""
    marked_packets: int
    """Packets that it marked in the step (ECN)."""
    step_s: float
    """How long the step took; 0 before the first."""
    variables: Mapping[str, float]
    """The discipline's inner variables, by the names that its page has."""

    @property
    def throughput_bps(self) -> float:
        """IP bits per second in the step; 0 before the first."""
        return 8 * self.departed_bytes / self.step_s if self.step_s > 0 else 0.0

    @property
    def loss(self) -> float:
        """Share of the arrivals of the step that were dropped; 0 if there were none."""
        return self.dropped_packets / self.arrived_packets if self.arrived_packets else 0.0


@dataclass(frozen=True)
class FlowState:
    """An open connection, as the sender of its responses knows it."""

    flow: int
    """Its serial number."""
    class_name: str
    """Its class of traffic."""
    cwnd_bytes: int
    """The congestion window."""
    ssthresh_bytes: int
    """The slow-start threshold."""
    in_flight_bytes: int
    """Bytes on their way."""
    rtt_s: float | None
    """The smoothed round trip; none before the first sample."""
    rto_s: float
    """The retransmission time-out in force."""
    state: str
    """``open``, ``fast-recovery`` or ``go-back``."""
    received_bytes: int
    """Bytes that its client received in the step."""
    retransmitted: int
    """Data segments that both ends sent again in the step."""


_COUNTERS = (
    "arrived_packets",
    "departed_packets",
    "departed_bytes",
    "dropped_packets",
    "marked_packets",
)
"""What the engine counts of a link since the start of the run."""


class Simulation:
    """A scenario under way, from time 0 to the end of its measured span.

    However it is stepped, its files are those of the run in one go; what is changed on the way
    becomes part of its scenario (``changes``), which gives the same run again.

    Args:
        scenario: what to run, or the path of its file. A population that is left to ``load`` is
            calibrated first.
        seed: another seed than the scenario's.
        record: whether the run is kept; without it nothing is written, and :meth:`finish` is an
            error.
        runs_root: folder for the run directory.

    Raises:
        ScenarioError: the scenario is wrong.

    Example:
        >>> import aqmlab
        >>> sim = aqmlab.Simulation("scenarios/bulk.toml", record=False)
        >>> sim.run_until("5 s")
        >>> full = sim.links["bottleneck.forward"].delay_s
        >>> sim.set("bottleneck.forward.discipline.limit", "20 packets")
        >>> sim.run_until(10)
        >>> sim.links["bottleneck.forward"].delay_s < full
        True
        >>> len(sim.flows), sim.flows[0].class_name
        (8, 'transfers')
        >>> sim.close()
    """

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        seed: int | None = None,
        *,
        record: bool = True,
        runs_root: str | os.PathLike[str] = RUNS_ROOT,
    ) -> None:
        chosen = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
        self._load = chosen.offered_load
        if chosen.uncalibrated:
            chosen, _ = calibrate(chosen)
        self._scenario = chosen if seed is None else chosen.with_seed(seed)
        self._runs_root = Path(runs_root)
        # Its name follows from what is changed on the way: until then it is a workspace.
        self._workspace = None
        self._folder: Path | None = None
        if record:
            self._workspace = workspace(default_path(self._scenario, self._runs_root))
            self._folder = self._workspace.__enter__()
        self._started = datetime.now(timezone.utc)
        self._wall, self._cpu = time.perf_counter(), 0.0
        folder = None if self._folder is None else os.fspath(self._folder)
        try:
            self._stepper = _native.Stepper(self._scenario.effective, folder, memory.bound())
        except BaseException:
            self.close()
            raise
        self._before: _Totals = _Totals(*self._stepper.observe(), 0.0)
        self._now = self._before

    @property
    def time(self) -> float:
        """Seconds up to which the run is simulated; events at this time are still to come."""
        return self._stepper.now()

    @property
    def end(self) -> float:
        """The end of the measured span, in seconds."""
        return self._stepper.end_time()

    @property
    def scenario(self) -> Scenario:
        """The scenario with all that was changed."""
        text = self._stepper.scenario()
        return Scenario(text, self._scenario.folder, (), self._scenario.name)

    @property
    def changeable(self) -> list[str]:
        """The keys that :meth:`set` takes."""
        return self._stepper.changeable()

    def run_until(self, time: float | str) -> None:
        """Simulates up to a time of the run, and at most to its end.

        Args:
            time: seconds, or a text with a unit (``"250 ms"``), from the start of the run.
        """
        until = _seconds(time)
        started = World.SIM.cpu_time()
        self._stepper.run_until(until)
        self._cpu += World.SIM.cpu_time() - started
        if self.time > self._now.time:
            self._before, self._now = self._now, _Totals(*self._stepper.observe(), self.time)

    def step(self, duration: float | str) -> None:
        """Simulates for a duration, and at most to the end of the run.

        Args:
            duration: seconds, or a text with a unit (``"10 ms"``).
        """
        self.run_until(self.time + _seconds(duration))

    def set(self, key: str, value: object) -> None:
        """Gives a key another value from now on; nothing happens if it has this value already.

        Args:
            key: ``LINK.DIRECTION.rate``, ``LINK.DIRECTION.delay``,
                ``LINK.DIRECTION.discipline.PARAMETER``, or ``traffic.CLASS.`` and its ``users``,
                ``sessions``, ``flows``, ``rate`` or ``congestion_control.PARAMETER``; see
                :attr:`changeable`.
            value: as it would stand in a scenario.

        Raises:
            ScenarioError: there is no such key, or it cannot have such a value.
        """
        text = str(value).lower() if isinstance(value, bool) else str(value)
        self._stepper.set(key, text)

    @property
    def links(self) -> dict[str, LinkState]:
        """The links' directions, by names such as ``bottleneck.forward``."""
        step = self._now.time - self._before.time
        states = {}
        for name, link in self._now.links.items():
            before = self._before.links[name]
            counted = {key: link[key] - before[key] for key in _COUNTERS}
            states[name] = LinkState(**{**link, **counted}, step_s=step)
        return states

    @property
    def flows(self) -> list[FlowState]:
        """The open connections."""
        return [FlowState(*row) for row in self._flow_rows()]

    def flow_table(self) -> pa.Table:
        """The open connections as an Arrow table; its columns are the fields of `FlowState`."""
        import pyarrow as pa  # it takes long to load

        names = list(FlowState.__dataclass_fields__)
        columns = list(zip(*self._flow_rows(), strict=True)) or [()] * len(names)
        return pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})

    def _flow_rows(self) -> Iterator[tuple[Any, ...]]:
        before, now = self._before.flows, self._now.flows
        counted = zip(
            before["flow"], before["received_bytes"], before["retransmitted"], strict=True
        )
        known = {flow: (received, again) for flow, received, again in counted}
        for flow, *state, received, again in zip(*now.values(), strict=True):
            had, sent = known.get(flow, (0, 0))
            yield (flow, *state, received - had, again - sent)

    def finish(self, out_dir: str | os.PathLike[str] | None = None) -> Run:
        """Simulates what is left, and keeps the run.

        Args:
            out_dir: the run directory; default: a name made of the scenario's name, its key and
                its seed.
        """
        if self._folder is None:
            raise AqmlabError(
                "finish(): there is no run to keep; the simulation is finished or closed, or was "
                "made with record=False"
            )
        scenario = self.scenario
        target = default_path(scenario, self._runs_root) if out_dir is None else Path(out_dir)
        if os.path.lexists(target):
            raise AqmlabError(f"{target}: already exists; choose another place")
        try:
            started = World.SIM.cpu_time()
            summary = self._stepper.finish()
            self._cpu += World.SIM.cpu_time() - started
            with workspace(target) as folder:
                for path in self._folder.iterdir():
                    path.rename(folder / path.name)
                return write_run(
                    folder,
                    scenario,
                    summary,
                    target=target,
                    key=scenario.key,
                    load=self._load,
                    started=self._started,
                    wall_s=time.perf_counter() - self._wall,
                    cpu_s=self._cpu,
                )
        finally:
            self.close()

    def close(self) -> None:
        """Ends the simulation and deletes its records, unless :meth:`finish` was called."""
        kept, self._workspace, self._folder = self._workspace, None, None
        if kept is not None:
            with suppress(_DiscardedError):
                kept.__exit__(_DiscardedError, _DiscardedError(), None)

    def __enter__(self) -> Simulation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _DiscardedError(Exception):
    """The workspace is given up."""


@dataclass(frozen=True)
class _Totals:
    """What the engine saw at some time, counted since the start of the run."""

    links: dict[str, dict[str, Any]]
    flows: dict[str, list[Any]]
    time: float


def _seconds(quantity: float | str) -> float:
    """A time in seconds; an error if it is none."""
    try:
        found = parsed_time(quantity) if isinstance(quantity, str) else float(quantity)
    except OverflowError:
        raise AqmlabError("time: found more seconds than a float can hold") from None
    except TypeError:
        raise AqmlabError(
            f"time: found {quantity!r}; expected seconds, or a text such as '10 ms'"
        ) from None
    if not 0 <= found < math.inf:
        raise AqmlabError(f"time: found {quantity}; expected at least 0 s")
    return found
