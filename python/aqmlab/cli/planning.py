"""From the command line to runs: scenarios are loaded, varied, calibrated and run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aqmlab._util.console import Progress, say
from aqmlab._util.files import check_output_folder
from aqmlab.engine import parallel
from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.execute import default_path
from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run
from aqmlab.scenario import vary
from aqmlab.scenario.scenario import Override, Scenario

__all__ = ["calibrated", "load", "made", "opened_or_varied"]


def load(file: Path, overrides: Sequence[str] | None, seed: int | None) -> Scenario:
    """The scenario that a command is about."""
    pairs: list[Override] = [vary.assignment(text, "--set") for text in overrides or []]
    if seed is not None:
        pairs.append(("seed", str(seed)))
    scenario = Scenario.load(file, pairs)
    _tell_outvoted([scenario])
    return scenario


def _tell_outvoted(scenarios: Sequence[Scenario]) -> None:
    """Says which overrides one direction of a link does not follow."""
    for entry in dict.fromkeys(entry for scenario in scenarios for entry in scenario.outvoted):
        say(str(entry))


def calibrated(scenarios: Sequence[Scenario], jobs: int | None) -> list[Scenario]:
    """The scenarios with all their users; says how many they are."""
    ready: list[Scenario] = []
    announced: list[str] = []
    with Progress("calibrating") as progress:
        for scenario in scenarios:
            found, answers = calibrate(scenario, jobs=jobs, progress=progress.task(scenario.name))
            ready.append(found)
            announced += map(str, answers)
    for answer in dict.fromkeys(announced):
        say(answer)
    return ready


def opened_or_varied(
    source: Path,
    varied: Sequence[str],
    overrides: Sequence[str] | None,
    seeds: Sequence[int] | None,
) -> list[Run | Scenario]:
    """A run directory as it is; a scenario file in all its variations, with every seed."""
    if source.is_dir():
        return [Run.open(source)]
    wanted: Sequence[int | None] = seeds or [None]
    bases = [load(source, overrides, seed) for seed in wanted]
    if not varied:
        return list(bases)
    made = [vary.variations(base, varied) for base in bases]
    _tell_outvoted(made[0])
    return [scenario for scenarios in zip(*made, strict=True) for scenario in scenarios]


def made(planned: Sequence[Run | Scenario], root: Path, jobs: int | None) -> list[Run]:
    """Runs as they are; scenarios calibrated and run. The order stays."""
    scenarios = calibrated([entry for entry in planned if isinstance(entry, Scenario)], jobs)
    named = {default_path(entry, root).name: entry for entry in scenarios}
    if any(not (root / name).exists() for name in named):
        check_output_folder(root)
    with Progress("running") as progress:
        results = parallel.execute_all(list(named.items()), root, jobs, progress.update)
    # A scenario that is named twice is run once.
    fresh = iter([results[default_path(entry, root).name] for entry in scenarios])
    found = []
    for entry in planned:
        result = entry if isinstance(entry, Run) else next(fresh)
        if isinstance(result, AqmlabError):
            raise result
        found.append(result)
    return found
