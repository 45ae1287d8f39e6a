"""aqmlab: what will this queue do to the people whose traffic crosses it?

A :class:`Scenario` says what to simulate, :func:`run` simulates it, a :class:`Run` holds the
results and :func:`compare` puts runs beside each other::

    import aqmlab

    scenario = aqmlab.Scenario.load("scenarios/quickstart.toml")
    red = {"topology.bottleneck.discipline": {"kind": "red", "min_th": "30 packets",
           "max_th": "90 packets", "limit": "480 packets"}}
    first, second = aqmlab.run(scenario), aqmlab.run(scenario.with_overrides(red))
    print(first.summary["responses"]["all"]["p50_s"], second.label)
    for difference in aqmlab.compare([first, second]):
        print(difference)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from aqmlab.engine.execute import execute
from aqmlab.errors import AqmlabError, RunError, ScenarioError
from aqmlab.results.compare import Difference, compared_groups, differences
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario
from aqmlab.sweeps.campaign import sweep
from aqmlab.sweeps.file import Sweep

__all__ = [
    "AqmlabError",
    "Difference",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "compare",
    "run",
    "sweep",
]


def run(
    scenario: Scenario | str | os.PathLike[str],
    seed: int | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    progress: Callable[[float], None] | None = None,
) -> Run:
    """Runs a scenario, or finds its finished run.

    Args:
        scenario: the scenario, or the path of its file.
        seed: seed of every random stream; default: the scenario's.
        out_dir: the run directory; default: a name under ``runs``.
        progress: called now and then with the share of the simulated time that is done.
    """
    chosen = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    if seed is not None and seed != chosen.seed:
        populations = dict(chosen.populations)
        chosen = chosen.with_overrides({"seed": seed}).with_populations(populations)
    return execute(chosen, out_dir, progress=progress, reuse=True)


def compare(runs: Sequence[Run | str | os.PathLike[str]]) -> list[Difference]:
    """Differences of every run to the first, with their intervals.

    See :mod:`aqmlab.results.compare`.

    Args:
        runs: runs, or paths of run directories.
    """
    opened = [entry if isinstance(entry, Run) else Run.open(entry) for entry in runs]
    return differences(compared_groups(opened))
