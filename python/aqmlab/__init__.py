"""aqmlab: what will this queue do to the people whose traffic crosses it?

A :class:`Scenario` says what to simulate, :func:`run` simulates it, a :class:`Run` holds the
results, :func:`compare` puts runs beside each other and :func:`report` writes about them. A
:class:`Sweep` is a scenario with many values, :func:`sweep` runs it, a :class:`SweepSummary` holds
what came out::

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

from aqmlab import _native
from aqmlab._api import compare, report, run
from aqmlab.engine.calibrate import calibrate
from aqmlab.errors import AqmlabError, RunError, ScenarioError
from aqmlab.results.compare import Difference
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario
from aqmlab.sweeps.campaign import sweep
from aqmlab.sweeps.file import Sweep
from aqmlab.sweeps.summary import SweepSummary

__all__ = [
    "AqmlabError",
    "Difference",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepSummary",
    "calibrate",
    "compare",
    "report",
    "run",
    "sweep",
]

__version__ = _native.version().partition("+")[0]
