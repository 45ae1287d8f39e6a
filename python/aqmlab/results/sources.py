"""The runs at some places: what every command that takes runs opens them with."""

from __future__ import annotations

import glob
import hashlib
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from aqmlab._util.console import say
from aqmlab._util.fields import Field
from aqmlab._util.filekinds import file_kind, run_with
from aqmlab._util.files import read_bytes, similar
from aqmlab._util.lazy import pa, pq
from aqmlab._util.places import SWEEPS_ROOT
from aqmlab._util.shipped import found as shipped
from aqmlab._util.words import listing, natural
from aqmlab.errors import AqmlabError
from aqmlab.results.metrics import look_up
from aqmlab.results.order import noted
from aqmlab.results.own_metrics import Definition, define, measured, table_of
from aqmlab.results.remade import remade, remade_words
from aqmlab.results.run import Run, read_json

__all__ = ["gather", "matching", "stated_baselines", "stated_words", "sweep_folder"]


def gather(
    paths: Iterable[str | os.PathLike[str]],
    on_broken: Callable[[AqmlabError], None] | None = None,
    *,
    needs_tables: bool = True,
) -> list[Run]:
    """The runs at some places.

    A place is a run directory, a folder of them (such as a paper's ``runs``, the folder that holds
    it, or a store), a sweep, or a pattern such as ``runs/bulk-*`` that such places fit. A sweep is
    the folder of its results, or its file if the results are in the usual folder; its runs keep
    the labels that it gave them. A run that is reached twice counts once. The runs of a folder,
    whose names say nothing, come in the order in which a command made them; runs of which no
    command noted that, in the order of their labels, those behind drop-tail first.
    A run of a folder that a newer engine has made again, there or at another place, is left out,
    which a line on standard error says.
    Anything else is an error.

    Args:
        paths: the places; one that does not exist is an error.
        on_broken: is given the error of each place that holds no whole run, and the others are
            returned; None: the first of these errors is raised. It is also raised if no run is
            whole.
        needs_tables: whether a run that lacks a table which its scenario records is broken.
    """
    found: dict[Path, Run] = {}
    inside: set[Path] = set()
    order: dict[Path, tuple[object, ...]] = {}
    orders: dict[Path, Mapping[str, int]] = {}
    broken: list[AqmlabError] = []
    places = list(paths)
    computed = _sweep_metrics(places)
    for number, folder, label, is_inside in _all_places(places, broken):
        place = folder.resolve()
        if place in found:
            continue
        try:
            run = Run.open(folder)
            if needs_tables:
                _check_records(run)
            run = measured(run, computed.get(folder.name))
        except AqmlabError as error:
            broken.append(error)
            continue
        found[place] = replace(run, label=label or run.label)
        if is_inside and not label:
            inside.add(place)
        plain = run.label.startswith("droptail")
        rank = orders.setdefault(folder.parent, noted(folder.parent)).get(folder.name, math.inf)
        by_label = (rank, not plain, natural(run.label), run.seed)
        order[place] = (number,) if label else (number, *by_label)
    if broken and (on_broken is None or not found):
        raise broken[0]
    for reason in broken:
        if on_broken is not None:
            on_broken(reason)
    if left := {place: run for place, run in remade(found).items() if place in inside}:
        say(remade_words(left))
    kept = [place for place in found if place not in left]
    return [found[place] for place in sorted(kept, key=order.__getitem__)]


def _all_places(
    paths: Iterable[str | os.PathLike[str]], broken: list[AqmlabError]
) -> Iterator[tuple[int, Path, str, bool]]:
    """The number of each place, or pattern, and its run directories; what is wrong is noted.

    At the end: whether the place is a folder of it, not the run directory itself.
    """
    every = [(number, place) for number, path in enumerate(paths) for place in matching(path)]
    for number, path in every:
        for folder, label in _noting(path, broken):
            yield number, folder, label, folder != path


def _noting(path: Path, broken: list[AqmlabError]) -> list[tuple[Path, str]]:
    """The run directories at a place; none if something is wrong with it, which is noted."""
    try:
        return _places(path)
    except AqmlabError as error:
        broken.append(error)
        return []


def matching(path: str | os.PathLike[str]) -> list[Path]:
    """A place, or all places with runs that a pattern fits; an error if there is none."""
    place = shipped(Path(path))
    if place.exists():
        return [place]
    if not glob.has_magic(str(path)):
        raise AqmlabError(f"{path}: there is no such run directory{similar(place)}")
    fitting = map(Path, sorted(glob.glob(str(path))))  # noqa: PTH207 - any pattern
    # Other files and folders may lie beside the runs.
    found = [one for one in fitting if _is_run(one) or (one.is_dir() and _places(one)[0][0] != one)]
    if not found:
        raise AqmlabError(f"{path}: no run directory fits this pattern")
    return found


def _is_run(folder: Path) -> bool:
    """Whether a folder is a run directory, or was one."""
    return (folder / "summary.json").exists()


def _places(path: Path) -> list[tuple[Path, str]]:
    """The run directories at a place, with the label of each if the place gives it one."""
    if path.is_file():
        return _places_of_file(path)
    if _is_run(path) or not path.is_dir():
        return [(path, "")]
    if (path / _SWEEP).is_file():
        return _sweep_places(path)
    folder = path / "runs" if (path / "runs").is_dir() else path
    # In a store a run lies in a folder that is called by the first two letters of its key.
    patterns = ("[!.]*/summary.json", "[0-9a-f][0-9a-f]/[!.]*/summary.json")
    inside = sorted(file.parent for pattern in patterns for file in folder.glob(pattern))
    return [(folder, "") for folder in inside] or [(path, "")]


def _places_of_file(file: Path) -> list[tuple[Path, str]]:
    """The run directories of a sweep that is named by its file; an error for other files."""
    kind = file_kind(file)
    if kind != "sweep":
        raise AqmlabError(
            f"{file}: {run_with(file, kind) if kind else 'is a file, not a run directory'}"
        )
    folder = SWEEPS_ROOT / file.stem
    if not (folder / _SWEEP).is_file():
        raise AqmlabError(
            f"{file}: {run_with(file, kind)}, or name the folder of its results: {folder} has none"
        )
    return _sweep_places(folder)


def sweep_folder(place: Path) -> Path | None:
    """The folder of a sweep's results, where the place is one or the file of one."""
    folder = SWEEPS_ROOT / place.stem if place.is_file() else place
    return folder if (folder / _SWEEP).is_file() else None


_SWEEP = "sweep.json"
"""The file in which a sweep names the runs behind it; see docs/sweeps.md."""
_RESULTS = "results.parquet"
"""Its table."""
_MAX_BYTES = 2**30


def _sweep_places(folder: Path) -> list[tuple[Path, str]]:
    """The run directories of a sweep, with the labels of their points."""
    about = read_json(folder, _SWEEP)
    try:
        store = _plain(folder / about["store"])
        named = [(str(entry["key"]), str(entry["label"])) for entry in about["runs"]]
    except (KeyError, TypeError):
        raise AqmlabError(f"{folder / _SWEEP}: does not name the runs of a sweep") from None
    if not named:
        raise AqmlabError(f"{folder}: is a sweep without finished runs")
    return [(store / key[:2] / key, re.sub(r", seed \d+$", "", label)) for key, label in named]


def _sweep_metrics(
    paths: Iterable[str | os.PathLike[str]],
) -> dict[str, dict[str, float | None]]:
    """Defines the metrics of the sweeps among some places; their numbers by the key of a run."""
    found: dict[str, dict[str, float | None]] = {}
    for path in paths:
        for place in matching(path):
            if (folder := sweep_folder(place)) is not None:
                for key, own in _metrics_of(folder).items():
                    found.setdefault(key, {}).update(own)
    return found


def _metrics_of(folder: Path) -> dict[str, dict[str, float | None]]:
    """Those of one sweep; no numbers if its table is not the one that it wrote."""
    about = read_json(folder, _SWEEP)
    stated = about.get("metrics")
    if not stated:
        return {}
    definitions: tuple[Definition, ...] = table_of(
        Field("metrics", stated), f"sweep {about.get('name', folder.name)}", stored=True
    )
    define(definitions)
    content = read_bytes(folder / _RESULTS, "sweep", _MAX_BYTES)
    if hashlib.sha256(content).hexdigest() != about.get("results_sha256"):
        return {}
    names = {one.name: f"metrics.{one.name}" for one in definitions}
    table = pq.read_table(pa.BufferReader(content), columns=["key", *names.values()])
    return {
        str(row["key"]): {name: row[column] for name, column in names.items()}
        for row in table.to_pylist()
    }


def _plain(folder: Path) -> Path:
    """The same folder without ``..`` in its name, unless a link on the way leads elsewhere."""
    plain = Path(os.path.normpath(folder))
    return plain if plain.resolve() == folder.resolve() else folder


def stated_baselines(paths: Iterable[str | os.PathLike[str]]) -> dict[str, str]:
    """What the sweeps among some places compare each of their points with, by label."""
    found: dict[str, str] = {}
    for path in paths:
        for place in matching(path):
            if (folder := sweep_folder(place)) is not None:
                found |= read_json(folder, _SWEEP).get("baselines", {})
    return found


def stated_words(
    paths: Iterable[str | os.PathLike[str]],
) -> tuple[str | None, str | None]:
    """Title and question of a sweep; None where the places are something else than one sweep."""
    folders = [Path(path) for path in paths]
    if len(folders) != 1 or not (folders[0] / _SWEEP).is_file():
        return None, None
    about = read_json(folders[0], _SWEEP)
    first = next((str(run["label"]) for run in about.get("runs", ())), "")
    names = re.findall(r"(?:^|, )([^,=]+) = ", first)
    varied = listing(names, "and")
    title = str(about["title"]) if about.get("title") else None
    return title, f"What depends on {varied}?" if varied else None


def _check_records(run: Run) -> None:
    """An error if a table is missing or damaged that the run's scenario records."""
    for name in look_up(run.scenario, ("measure", "record")) or ():
        file = run.path / f"{name}.parquet"
        if run.read(name, []) is None:
            raise AqmlabError(
                f"{file}: is missing, but measure.record of its scenario names it; "
                "run the scenario again"
            )
