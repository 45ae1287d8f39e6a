"""Running a scenario in memory: nothing is written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime, timezone

from aqmlab import _native
from aqmlab.engine import memory
from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.finished import described
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

__all__ = ["simulate"]


def simulate(
    scenario: Scenario | str | os.PathLike[str],
    seed: int | None = None,
    *,
    progress: Callable[[float], object] | None = None,
) -> Run:
    """Runs a scenario in memory: nothing is written, and no finished run is used.

    The summary is that of :func:`aqmlab.run`, value for value. The run has no tables and no
    capture, whatever ``measure.record`` says: for programs that make thousands of tiny runs.

    Args:
        scenario: the scenario, or the path of its file. A population that is left to ``load`` is
            calibrated first.
        seed: seed of every random stream; default: the scenario's.
        progress: called now and then with the share of the simulated time that is done, from 0 to
            1; an exception that it raises ends the run and is passed on.

    Returns:
        The run, without a directory and without tables.

    Raises:
        ScenarioError: the scenario is wrong.
        RunError: the run failed.

    Example:
        >>> import aqmlab
        >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
        >>> scenario = aqmlab.Scenario.load("scenarios/bulk.toml").with_overrides(short)
        >>> delays = {}
        >>> for limit in ("25 packets", "100 packets"):
        ...     queue = {"topology.bottleneck.discipline.limit": limit}
        ...     run = aqmlab.simulate(scenario.with_overrides(queue))
        ...     link = run.summary["links"]["bottleneck"]["forward"]
        ...     delays[limit] = link["sojourn_mean_s"]
        >>> delays["25 packets"] < delays["100 packets"]
        True
        >>> run.seed, run.label
        (1, 'droptail 100')
    """
    chosen = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    load = chosen.offered_load
    if chosen.uncalibrated:
        chosen, _ = calibrate(chosen)
    if seed is not None:
        chosen = chosen.with_seed(seed)
    started, wall, cpu = datetime.now(timezone.utc), time.perf_counter(), time.thread_time()
    summary = _native.run(chosen.effective, None, progress, memory.bound())
    metadata = described(
        chosen,
        key=chosen.key,
        load=load,
        started=started,
        wall_s=time.perf_counter() - wall,
        cpu_s=time.thread_time() - cpu,
    )
    return Run.just_made(chosen.data, summary, metadata, tables={})
