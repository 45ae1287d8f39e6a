"""Configurations of a report: runs that differ in nothing but their seed, taken together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run, distinguish, read_json
from aqmlab.results.statistics import Estimate, estimate

if TYPE_CHECKING:
    import os


@dataclass(frozen=True)
class Group:
    """The runs of one configuration, one per seed."""

    label: str
    """Short name that no other configuration of the report has."""
    runs: tuple[Run, ...]
    """In the order of their seeds."""

    @property
    def first(self) -> Run:
        """The run of the smallest seed: it shows what all runs share."""
        return self.runs[0]

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs."""
        return [run.seed for run in self.runs]

    def estimate(self, *path: str) -> Estimate | None:
        """A number of the summaries over the runs; None if no run has it."""
        found = (look_up(run.summary, path) for run in self.runs)
        values = [float(value) for value in found if value is not None]
        return estimate(values) if values else None


def look_up(node: Any, path: Iterable[str]) -> Any:  # noqa: ANN401 - whatever JSON holds
    """What lies at a path of nested tables, or None."""
    for part in path:
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def gather(paths: Iterable[str | os.PathLike[str]]) -> list[Run]:
    """The runs at some places.

    A place is a run directory, a folder of them (such as a paper's ``runs``, or the folder that
    holds it), or the folder of a sweep, whose runs keep the labels that the sweep gave them. A run
    that is reached twice counts once. Anything else is an error, and so is a run directory that
    lacks a table which its scenario records.
    """
    found: dict[Path, Run] = {}
    for path in map(Path, paths):
        for folder, label in places(path):
            if folder.resolve() not in found:
                run = Run.open(folder)
                check_records(run)
                found[folder.resolve()] = replace(run, label=label or run.label)
    return list(found.values())


def places(path: Path) -> list[tuple[Path, str]]:
    """The run directories at a place, with the label of each if the place gives it one."""
    if (path / "summary.json").exists() or not path.is_dir():
        return [(path, "")]
    if (path / SWEEP).is_file():
        return sweep_places(path)
    shelf = path / "runs" if (path / "runs").is_dir() else path
    inside = sorted(file.parent for file in shelf.glob("[!.]*/summary.json"))
    return [(folder, "") for folder in inside] or [(path, "")]


SWEEP = "sweep.json"
"""The file in which a sweep names the runs behind it; see docs/sweeps.md."""


def sweep_places(folder: Path) -> list[tuple[Path, str]]:
    """The run directories of a sweep, with the labels of their points."""
    about = read_json(folder, SWEEP)
    try:
        store = folder / about["store"]
        named = [(str(entry["key"]), str(entry["label"])) for entry in about["runs"]]
    except (KeyError, TypeError):
        raise AqmlabError(f"{folder / SWEEP}: does not name the runs of a sweep") from None
    if not named:
        raise AqmlabError(f"{folder}: is a sweep without finished runs")
    return [(store / key[:2] / key, re.sub(r", seed \d+$", "", label)) for key, label in named]


def check_records(run: Run) -> None:
    """An error if a table is missing that the run's scenario records."""
    for name in look_up(run.scenario, ("measure", "record")) or ():
        file = run.path / f"{name}.parquet"
        if not file.exists():
            raise AqmlabError(
                f"{file}: is missing, but measure.record of its scenario names it; "
                "run the scenario again"
            )


def group(runs: Sequence[Run]) -> list[Group]:
    """Runs by configuration, in the order in which configurations first appear."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(configuration(run), []).append(run)
    for same in found.values():
        same.sort(key=lambda run: run.seed)
        for first, second in pairwise(same):
            if first.seed == second.seed:
                raise AqmlabError(
                    f"{second.path}: is the same run as {first.path} (scenario, seed, engine and "
                    "world); name one of them"
                )
    labelled = distinguish([same[0] for same in found.values()])
    return [
        Group(run.label, tuple(same)) for run, same in zip(labelled, found.values(), strict=True)
    ]


def configuration(run: Run) -> str:
    """What the runs of a configuration share: scenario without seed and title, engine, world."""
    scenario = {key: run.scenario[key] for key in run.scenario if key not in ("seed", "title")}
    engine = look_up(run.metadata, ("versions", "engine")) or run.summary.get("version")
    return json.dumps([scenario, engine, "live" in run.summary], sort_keys=True)
