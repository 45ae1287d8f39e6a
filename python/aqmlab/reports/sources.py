"""The runs that a report is about, wherever they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab._util.words import natural
from aqmlab.errors import AqmlabError
from aqmlab.results.metrics import look_up
from aqmlab.results.run import Run, read_json

if TYPE_CHECKING:
    import os

__all__ = ["gather", "stated_baselines"]


def gather(
    paths: Iterable[str | os.PathLike[str]],
    on_broken: Callable[[AqmlabError], None] | None = None,
) -> list[Run]:
    """The runs at some places.

    A place is a run directory, a folder of them (such as a paper's ``runs``, or the folder that
    holds it), or the folder of a sweep, whose runs keep the labels that the sweep gave them. A run
    that is reached twice counts once. The runs of a folder, whose names say nothing, come in the
    order of their labels, those behind drop-tail first. Anything else is an error, and so is a run
    directory that lacks a table which its scenario records.

    Args:
        paths: the places; one that does not exist is an error.
        on_broken: is given the error of each place that holds no whole run, and the others are
            returned; None: the first of these errors is raised. It is also raised if no run is
            whole.
    """
    found: dict[Path, Run] = {}
    order: dict[Path, tuple[object, ...]] = {}
    broken: list[AqmlabError] = []
    for number, folder, label in _all_places(paths, broken):
        place = folder.resolve()
        if place in found:
            continue
        try:
            run = Run.open(folder)
            _check_records(run)
        except AqmlabError as error:
            broken.append(error)
            continue
        found[place] = replace(run, label=label or run.label)
        plain = run.label.startswith("droptail")
        order[place] = (number,) if label else (number, not plain, natural(run.label), run.seed)
    if broken and (on_broken is None or not found):
        raise broken[0]
    for reason in broken:
        if on_broken is not None:
            on_broken(reason)
    return [found[place] for place in sorted(found, key=order.__getitem__)]


def _all_places(
    paths: Iterable[str | os.PathLike[str]], broken: list[AqmlabError]
) -> Iterator[tuple[int, Path, str]]:
    """The number of each place and its run directories; what is wrong with it is noted."""
    for number, path in enumerate(map(Path, paths)):
        if not path.exists():
            raise AqmlabError(f"{path}: there is no such run directory")
        try:
            yield from ((number, folder, label) for folder, label in _places(path))
        except AqmlabError as error:
            broken.append(error)


def _places(path: Path) -> list[tuple[Path, str]]:
    """The run directories at a place, with the label of each if the place gives it one."""
    if (path / "summary.json").exists() or not path.is_dir():
        return [(path, "")]
    if (path / _SWEEP).is_file():
        return _sweep_places(path)
    folder = path / "runs" if (path / "runs").is_dir() else path
    inside = sorted(file.parent for file in folder.glob("[!.]*/summary.json"))
    return [(folder, "") for folder in inside] or [(path, "")]


_SWEEP = "sweep.json"
"""The file in which a sweep names the runs behind it; see docs/sweeps.md."""


def _sweep_places(folder: Path) -> list[tuple[Path, str]]:
    """The run directories of a sweep, with the labels of their points."""
    about = read_json(folder, _SWEEP)
    try:
        store = folder / about["store"]
        named = [(str(entry["key"]), str(entry["label"])) for entry in about["runs"]]
    except (KeyError, TypeError):
        raise AqmlabError(f"{folder / _SWEEP}: does not name the runs of a sweep") from None
    if not named:
        raise AqmlabError(f"{folder}: is a sweep without finished runs")
    return [(store / key[:2] / key, re.sub(r", seed \d+$", "", label)) for key, label in named]


def stated_baselines(paths: Iterable[str | os.PathLike[str]]) -> dict[str, str]:
    """What the sweeps among some places compare each of their points with, by label."""
    folders = (Path(path) for path in paths)
    found: dict[str, str] = {}
    for folder in folders:
        if (folder / _SWEEP).is_file():
            found |= read_json(folder, _SWEEP).get("baselines", {})
    return found


def _check_records(run: Run) -> None:
    """An error if a table is missing or damaged that the run's scenario records."""
    for name in look_up(run.scenario, ("measure", "record")) or ():
        file = run.path / f"{name}.parquet"
        if run.read(name, []) is None:
            raise AqmlabError(
                f"{file}: is missing, but measure.record of its scenario names it; "
                "run the scenario again"
            )
