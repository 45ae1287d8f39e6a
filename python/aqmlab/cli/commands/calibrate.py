"""``aqmlab calibrate``: users for a load."""

from __future__ import annotations

from aqmlab._util.console import Progress, out, print_json
from aqmlab.cli.options import Jobs, Json, Memory, Plugins, ScenarioFile, Sets
from aqmlab.cli.planning import load
from aqmlab.engine.calibrate import calibrate
from aqmlab.errors import AqmlabError

__all__ = ["command"]


def command(
    scenario: ScenarioFile,
    overrides: Sets = None,
    as_json: Json = False,
    jobs: Jobs = None,
    memory: Memory = None,  # noqa: ARG001 - its callback has set it
    plugin: Plugins = None,  # noqa: ARG001 - its callback has loaded them
) -> None:
    """Find how many users or connections/s cause a scenario's load."""
    chosen = load(scenario, overrides, None)
    if not chosen.uncalibrated:
        raise AqmlabError(
            f"{scenario}: nothing to calibrate, because every class has its own users, "
            "connections or flows; remove them and state a load"
        )
    with Progress("calibrating") as progress:
        _, answers = calibrate(chosen, jobs=jobs, progress=progress.task(chosen.name))
    if as_json:
        print_json([answer.to_json() for answer in answers])
        return
    for answer in answers:
        out(str(answer))
