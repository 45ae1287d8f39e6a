"""From the command line to runs: scenarios are loaded, varied, calibrated and run."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aqmlab._util.console import Progress, say
from aqmlab._util.filekinds import file_kind
from aqmlab._util.files import check_output_folder
from aqmlab._util.shipped import found as shipped
from aqmlab.cli.options import named_as_options
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.results import order
from aqmlab.results.metrics import OWN
from aqmlab.results.run import Run
from aqmlab.scenario import vary
from aqmlab.scenario.scenario import Override, Scenario

__all__ = ["baselines", "calibrated", "kept", "load", "made", "planned_runs", "say_packets"]


def load(
    file: Path, overrides: Sequence[str] | None, seed: int | None, link: str | None = None
) -> Scenario:
    """The scenario that a command is about, over a link that has a name if one is given."""
    scenario = _read(file, overrides, seed, link)
    _warn([scenario])
    return scenario


def _read(
    file: Path, overrides: Sequence[str] | None, seed: int | None, link: str | None = None
) -> Scenario:
    """Reads a scenario without warnings."""
    pairs: list[Override] = [vary.assignment(text, "--set") for text in overrides or []]
    if link is not None:
        from aqmlab.scenario.named_links import named_link

        pairs = [*named_link(link).overrides(Scenario.load(file)), *pairs]
    if seed is not None:
        pairs.append(("seed", str(seed)))
    return Scenario.load(file, pairs)


def _warn(scenarios: Sequence[Scenario]) -> None:
    """Says which overrides a direction does not follow, and what hardly anybody wants."""
    for entry in dict.fromkeys(entry for scenario in scenarios for entry in scenario.outvoted):
        say(str(entry))
    for note in dict.fromkeys(note for scenario in scenarios for note in scenario.notes):
        say(f"warning: {note}")


def calibrated(scenarios: Sequence[Scenario], jobs: int | None) -> list[Scenario]:
    """The scenarios with all their users; says how many they are."""
    from aqmlab.engine.calibrate import calibrate

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


def planned_runs(
    sources: Sequence[Path],
    varied: Sequence[str],
    overrides: Sequence[str] | None,
    seeds: Sequence[int] | None,
    where: Sequence[str] | None = None,
) -> list[Run | Scenario]:
    """Runs unchanged; scenario files in all their variations, with every seed."""
    if where:
        for source in filter(_is_scenario, sources):
            raise AqmlabError(f"--where: needs finished runs; {source} is a scenario")
        return [*kept(sources, where)]
    from aqmlab.results.sources import gather

    found: list[Run | Scenario] = []
    for source in sources:
        if not _is_scenario(source):
            found += gather([source], needs_tables=False)
            continue
        try:
            found += _varied(source, varied, overrides, seeds)
        except ScenarioError as error:
            if len(sources) == 1 or str(error).startswith(f"{source}: "):
                raise
            raise ScenarioError(f"{source}: {error}") from None
    if not any(map(_is_scenario, sources)):
        given = {"--vary": varied, "--set": overrides, "--seeds": seeds}
        for option in (name for name, value in given.items() if value):
            raise AqmlabError(f"{option}: needs a scenario; {sources[0]} is finished runs")
    return found


def kept(sources: Sequence[Path], where: Sequence[str]) -> list[Run]:
    """The finished runs at some places whose parameters have some values.

    What all of them share, such as a single value that was asked for, is not in their labels.
    """
    return [replace(run, label=label) for run, label in _kept(sources, where)]


def _kept(sources: Sequence[Path], where: Sequence[str]) -> list[tuple[Run, str]]:
    """The same runs with the labels of their places, and their labels beside each other."""
    from aqmlab.results.configurations import select

    with named_as_options(["where"]):
        found = select(list(map(str, sources)), where)
    return [(run, one.label) for one in found for run in one.runs]


def baselines(sources: Sequence[Path], where: Sequence[str] | None) -> dict[str, str]:
    """What sweeps among some places compare each of their points with, by the labels of a table."""
    from aqmlab.results.sources import stated_baselines

    stated = stated_baselines(sources)
    if not stated or not where:
        return stated
    named = {run.label: label for run, label in _kept(sources, where)}
    return {named[a]: named[b] for a, b in stated.items() if a in named and b in named}


def _is_scenario(source: Path) -> bool:
    """Whether something is to be run; what is no file at all is an error about a scenario."""
    if source.is_dir() or (glob.has_magic(str(source)) and not source.exists()):
        return False
    return file_kind(shipped(source)) != "sweep"


def _varied(
    source: Path,
    varied: Sequence[str],
    overrides: Sequence[str] | None,
    seeds: Sequence[int] | None,
) -> list[Scenario]:
    """A scenario file in all its variations, with every seed."""
    wanted: Sequence[int | None] = seeds or [None]
    bases = [_read(source, overrides, seed) for seed in wanted]
    if not varied:
        _warn(bases[:1])
        return bases
    made = [vary.variations(base, varied) for base in bases]
    _warn(made[0])
    return [scenario for scenarios in zip(*made, strict=True) for scenario in scenarios]


def made(
    planned: Sequence[Run | Scenario], root: Path, jobs: int | None, command: str = ""
) -> list[Run]:
    """Runs unchanged; scenarios calibrated and run. The order stays.

    Args:
        planned: what is wanted.
        root: the folder of new run directories.
        jobs: runs at a time.
        command: what a shell runs to make them again; the folder notes it.
    """
    finished = [entry for entry in planned if isinstance(entry, Run)]
    if len(finished) == len(planned):
        return finished
    from aqmlab.engine import parallel  # processes and pipes
    from aqmlab.engine.execute import default_path

    wanted = [entry for entry in planned if isinstance(entry, Scenario)]
    if OWN:
        from aqmlab.results.own_metrics import defined

        for metric in defined():
            for scenario in wanted:
                metric.check(scenario.data)
    scenarios = calibrated(wanted, jobs)
    named = {default_path(entry, root).name: entry for entry in scenarios}
    say_packets([(entry, root / name) for name, entry in named.items()])
    if any(not (root / name).exists() for name in named):
        check_output_folder(root)
    names = dict(zip(named, _names(list(named.values())), strict=True))
    with Progress("running") as progress:
        results = parallel.execute_all(
            list(named.items()),
            root,
            jobs,
            lambda run, done: progress.update(names[run], done),
            apart=True,
        )
    order.note(root, [name for name in named if isinstance(results[name], Run)], command)
    # A scenario that is named twice is run once.
    fresh = iter([results[default_path(entry, root).name] for entry in scenarios])
    found = []
    for entry in planned:
        result = entry if isinstance(entry, Run) else next(fresh)
        if isinstance(result, AqmlabError):
            raise result
        found.append(result)
    if not OWN:
        return found
    from aqmlab.results.own_metrics import measured

    return [
        run if isinstance(entry, Run) else measured(run)
        for entry, run in zip(planned, found, strict=True)
    ]


def say_packets(planned: Sequence[tuple[Scenario, Path]]) -> None:
    """Says how large the tables of packets become; an error if that is too large.

    Args:
        planned: scenarios and the places of their runs; what is there is not made again.
    """
    from aqmlab.engine import packet_table  # few record packets

    fresh = [(scenario, place) for scenario, place in planned if not place.exists()]
    if fresh and (size := packet_table.check([one for one, _ in fresh], fresh[0][1])) is not None:
        say(f"packets.parquet: {size}")


def _names(scenarios: Sequence[Scenario]) -> list[str]:
    """What tells scenarios apart, for people: file, replaced fields, seed."""
    own = [[pair for pair in one.overrides if pair[0] != "seed"] for one in scenarios]
    common = set.intersection(*map(set, own)) if own else set()
    several_files = len({one.name for one in scenarios}) > 1
    several_seeds = len({one.seed for one in scenarios}) > 1
    found = []
    for scenario, pairs in zip(scenarios, own, strict=True):
        parts = [
            f"{path.rpartition('.')[2]} = {text}"
            for path, text in pairs
            if (path, text) not in common
        ]
        if several_files or not parts:
            parts.insert(0, scenario.name)
        found.append(", ".join([*parts, *([f"seed {scenario.seed}"] * several_seeds)]))
    return found
