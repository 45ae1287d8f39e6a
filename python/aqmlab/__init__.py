"""aqmlab: what will this queue do to the people whose traffic crosses it?

A :class:`Scenario` says what to simulate, :func:`run` simulates it, a :class:`Run` holds the
results, :func:`compare` puts runs beside each other and :func:`report` writes about them. A
:class:`Sweep` is a scenario with many values, :func:`sweep` runs it, a :class:`SweepSummary` holds
what came out. :func:`evaluate` makes the report :class:`Card` of a queue discipline::

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

import importlib

TYPE_CHECKING = (
    False  # that of typing takes longest of all that an interrupt would have to wait for
)

if TYPE_CHECKING:
    from aqmlab._api import answer, compare, report, run
    from aqmlab.cards.card import Card
    from aqmlab.cards.evaluation import evaluate
    from aqmlab.engine.calibrate import calibrate
    from aqmlab.engine.in_memory import simulate
    from aqmlab.engine.simulation import Simulation
    from aqmlab.errors import AqmlabError, RunError, ScenarioError
    from aqmlab.results.compare import Difference
    from aqmlab.results.run import Run
    from aqmlab.results.settings import Answers
    from aqmlab.scenario.scenario import Scenario
    from aqmlab.sweeps.campaign import sweep
    from aqmlab.sweeps.file import Sweep
    from aqmlab.sweeps.summary import SweepSummary
    from aqmlab.tuning.campaign import tune
    from aqmlab.tuning.outcome import Tuning

    __version__: str

__all__ = [
    "Answers",
    "AqmlabError",
    "Card",
    "Difference",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Simulation",
    "Sweep",
    "SweepSummary",
    "Tuning",
    "answer",
    "calibrate",
    "compare",
    "evaluate",
    "report",
    "run",
    "simulate",
    "sweep",
    "tune",
]

# Tables and statistics cost a third of a second: what is used is imported when it is first used.
# Nothing is imported here, so that the command can report an interrupt from the first moment on.
_PLACES = {
    "Answers": "results.settings",
    "AqmlabError": "errors",
    "Card": "cards.card",
    "Difference": "results.compare",
    "Run": "results.run",
    "RunError": "errors",
    "Scenario": "scenario.scenario",
    "ScenarioError": "errors",
    "Simulation": "engine.simulation",
    "Sweep": "sweeps.file",
    "SweepSummary": "sweeps.summary",
    "Tuning": "tuning.outcome",
    "answer": "_api",
    "calibrate": "engine.calibrate",
    "compare": "_api",
    "evaluate": "cards.evaluation",
    "report": "_api",
    "run": "_api",
    "simulate": "engine.in_memory",
    "sweep": "sweeps.campaign",
    "tune": "tuning.campaign",
}
"""The module of each public name."""
_PACKAGES = (
    *(
        "cards",
        "engine",
        "figures",
        "papers",
        "plugins",
        "reports",
        "results",
        "scenario",
        "sweeps",
    ),
    *("traffic", "tuning"),
)


def __getattr__(name: str) -> object:
    """A public name, whose module is imported; see PEP 562."""
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__version__":
        return importlib.import_module(f"{__name__}._native").version()
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names, those included that have not been used."""
    return sorted({*globals(), *__all__, *_PACKAGES})
