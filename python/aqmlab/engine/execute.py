"""Running a scenario: calibration, the engine, the run directory."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path

from aqmlab import _native
from aqmlab._util.places import RUNS_ROOT
from aqmlab.engine import memory, packet_table
from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.finished import write_run
from aqmlab.engine.workspace import workspace
from aqmlab.errors import AqmlabError, RunError
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

__all__ = ["World", "default_path", "execute", "existing_run", "make", "placed"]


class World(str, Enum):
    """Where a scenario runs."""

    SIM = "sim"
    """Simulated: the same scenario and seed give the same bytes."""
    LIVE = "live"
    """On this machine's kernel, in real time; see docs/live.md."""

    def cpu_time(self) -> float:
        """CPU time that this thread's runs have taken, and whatever else it has done, in s."""
        if self is World.SIM:
            return time.thread_time()
        return time.process_time()

    def key(self, scenario: Scenario) -> str:
        """What tells a run from runs of other scenarios, and of other worlds."""
        return scenario.key if self is World.SIM else f"{scenario.key}-{self.value}"


@contextmanager
def _terminable(world: World) -> Iterator[None]:
    """Within it the signals that end a process raise an exception: the block cleans up behind it.

    An interrupt does so anyway. Live runs are long, and end with their terminal. What is ignored,
    as ``nohup`` ignores a terminal's end, or handled by somebody else stays so, and in other
    threads than the main one nothing changes.
    """

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    handled = []
    if world is World.LIVE and threading.current_thread() is threading.main_thread():
        ending = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        handled = [number for number in ending if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def execute(
    scenario: Scenario,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    world: World = World.SIM,
    runs_root: Path = RUNS_ROOT,
    progress: Callable[[float], None] | None = None,
    reuse: bool = False,
    say: Callable[[str], None] | None = None,
) -> Run:
    """Runs a scenario and writes its run directory. Nothing is ever overwritten.

    Classes whose population is left to ``load`` are calibrated first (see
    :func:`aqmlab.engine.calibrate.calibrate`).

    Args:
        scenario: what to run.
        out_dir: the run directory; default: a name in `runs_root` that is made of the scenario's
            name, its key and its seed.
        world: where it runs.
        runs_root: folder for run directories without a name of their own.
        progress: called now and then with the share of the simulated time that is done; an
            exception that it raises ends the run and is passed on.
        reuse: whether a finished run of the same key that is already there is returned instead.
        say: called with a line about how large the table of packets becomes, if there is one.
    """
    load = scenario.offered_load
    if scenario.uncalibrated:
        scenario, _ = calibrate(scenario)
    target = Path(out_dir) if out_dir is not None else default_path(scenario, runs_root, world)
    key = world.key(scenario)
    if os.path.lexists(target):
        return _reusable_run(target, key, reuse=reuse)
    size = packet_table.check([scenario], target)
    if size is not None and say is not None:
        say(f"packets.parquet: {size}")
    try:
        return _make(scenario, target, load, world, progress)
    except AqmlabError:
        if reuse and os.path.lexists(target):  # another process has made it meanwhile
            return _reusable_run(target, key, reuse=reuse)
        raise


def make(scenario: Scenario, target: Path, progress: Callable[[float], None] | None) -> Run:
    """Runs a scenario into a directory that its caller syncs with others; see :mod:`group`."""
    load = scenario.offered_load
    if scenario.uncalibrated:
        scenario, _ = calibrate(scenario)
    packet_table.check([scenario], target)
    return _make(scenario, target, load, World.SIM, progress, durable=False)


def _make(
    scenario: Scenario,
    target: Path,
    load: float | None,
    world: World,
    progress: Callable[[float], None] | None,
    *,
    durable: bool = True,
) -> Run:
    """Runs a scenario that has all its users, and writes its directory."""
    with _terminable(world), workspace(target, durable=durable) as folder:
        started, wall, cpu = datetime.now(timezone.utc), time.perf_counter(), world.cpu_time()
        try:
            run = _native.run if world is World.SIM else _native.run_live
            summary = run(scenario.effective, os.fspath(folder), progress, memory.bound())
        except RunError as error:
            raise placed(error, target) from None
        return write_run(
            folder,
            scenario,
            summary,
            target=target,
            key=world.key(scenario),
            load=load,
            started=started,
            wall_s=time.perf_counter() - wall,
            cpu_s=world.cpu_time() - cpu,
        )


def placed(error: RunError, target: Path) -> RunError:
    """The error of a run; one of writing names the run directory and the file."""
    reason = str(error)
    if not reason.startswith(_UNWRITTEN):
        return error
    return RunError(f"{target}: cannot be written: {reason.removeprefix(_UNWRITTEN)}")


_UNWRITTEN = "cannot write "
"""How the engine's errors of writing begin."""


def default_path(scenario: Scenario, runs_root: Path = RUNS_ROOT, world: World = World.SIM) -> Path:
    """The run directory of a scenario that is given none."""
    suffix = "-live" if world is World.LIVE else ""
    return runs_root / f"{scenario.name}-{scenario.key[:8]}-s{scenario.seed}{suffix}"


def _reusable_run(target: Path, key: str, *, reuse: bool) -> Run:
    """The finished run of that key at a place that is taken; an error if it is another."""
    run = existing_run(target)
    if run.metadata.get("key") != key:
        raise AqmlabError(
            f"{target}: holds a run of another scenario, seed or version; choose another place"
        )
    if not reuse:
        raise AqmlabError(f"{target}: holds this very run already")
    return run


def existing_run(target: Path) -> Run:
    """The run at a place that is taken; an error if it is anything else."""
    try:
        return Run.open(target)
    except AqmlabError:
        raise AqmlabError(
            f"{target}: already exists and is not a run directory; choose another place"
        ) from None
