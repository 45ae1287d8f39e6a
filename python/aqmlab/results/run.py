"""Run directories: making them, opening them, naming them.

A run directory holds ``scenario.toml`` (the effective one), ``summary.json``, ``metadata.json`` and
the Parquet files that ``measure.record`` asks for. The same scenario and seed give the same bytes,
but for ``metadata.json`` and for live runs. A run directory is written under a temporary name and
renamed when it is complete: one that exists is whole.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from aqmlab import _native
from aqmlab._util.files import read_text
from aqmlab.engine.calibrate import calibrate
from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Scenario

RUNS_ROOT = Path("runs")
"""Where run directories go unless told otherwise."""
MAX_BYTES = 64 * 2**20
"""Largest text file of a run directory that is read."""


class World(str, Enum):
    """Where a scenario runs."""

    SIM = "sim"
    """Simulated: the same scenario and seed give the same bytes."""
    LIVE = "live"
    """On this machine's kernel, in real time; see docs/live.md."""

    def run(self, effective: str, out_dir: str, progress: Callable[[float], object] | None) -> str:
        """Runs an effective scenario there; its summary as JSON."""
        if self is World.SIM:
            return _native.run(effective, out_dir, progress)
        with terminable():
            return _native.run_live(effective, out_dir, progress)

    def key(self, scenario: Scenario) -> str:
        """What tells a run from runs of other scenarios, and of other worlds."""
        return scenario.key if self is World.SIM else f"{scenario.key}-{self.value}"


@contextmanager
def terminable() -> Iterator[None]:
    """Within it SIGTERM raises an exception, so that what the block made is taken down."""

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals, and it may handle them as it likes
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class Run:
    """A finished run. Tables are read when they are first asked for."""

    path: Path
    """The run directory."""
    label: str
    """Short name such as "red (30,90)"; see :func:`distinguish`."""
    summary: Mapping[str, Any]
    """``summary.json``; keys end in their unit."""
    scenario: Mapping[str, Any]
    """The effective scenario; quantities are strings with units."""
    metadata: Mapping[str, Any]
    """``metadata.json``: key, versions, machine, when it ran and what it cost."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Run:
        """Opens a run directory; an error if it is not a whole one."""
        folder = Path(path)
        if not folder.is_dir():
            raise AqmlabError(f"{folder}: there is no such run directory")
        summary, metadata = (read_json(folder, name) for name in ("summary.json", "metadata.json"))
        effective = read_text(folder / "scenario.toml", "run", MAX_BYTES)
        scenario = json.loads(_native.to_json(effective))
        return cls(folder, label_of(scenario) + mark_of(summary), summary, scenario, metadata)

    def afresh(self) -> Run:
        """The same run with no table read yet: what it reads goes when it goes."""
        return replace(self)

    @property
    def seed(self) -> int:
        """Seed of every random stream."""
        return int(self.scenario["seed"])

    @property
    def invalid(self) -> list[str]:
        """Why a live run tells nothing: the bounds that the machine did not keep."""
        return list(self.summary.get("live", {}).get("reasons", []))

    @property
    def classes(self) -> list[str]:
        """Names of the traffic classes."""
        return [str(entry["name"]) for entry in self.scenario["traffic"]]

    @cached_property
    def responses(self) -> pa.Table | None:
        """One row per finished response (``responses.parquet``), if recorded."""
        return self._table("responses")

    @cached_property
    def flows(self) -> pa.Table | None:
        """One row per closed connection (``flows.parquet``), if recorded."""
        return self._table("flows")

    @cached_property
    def queue(self) -> pa.Table | None:
        """Samples of the links' queues (``queue.parquet``), if recorded."""
        return self._table("queue")

    @cached_property
    def flow_trace(self) -> pa.Table | None:
        """Inner state of chosen connections (``flow_trace.parquet``), if recorded."""
        return self._table("flow_trace")

    @cached_property
    def distribution(self) -> pa.Table | None:
        """Response times and durations of connections, counted in bins (``distribution.parquet``).

        See :class:`aqmlab.results.distributions.Distribution`.
        """
        return self._table("distribution")

    def _table(self, name: str) -> pa.Table | None:
        file = self.path / f"{name}.parquet"
        try:
            return pq.read_table(file) if file.exists() else None
        except (OSError, pa.ArrowInvalid) as error:
            raise AqmlabError(f"{file}: cannot be read: {error}") from None


def execute(
    scenario: Scenario,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    world: World = World.SIM,
    runs_root: Path = RUNS_ROOT,
    progress: Callable[[float], None] | None = None,
    reuse: bool = False,
) -> Run:
    """Runs a scenario and writes its run directory. Nothing is ever overwritten.

    Classes whose population is left to ``load`` are calibrated first (see
    :func:`aqmlab.engine.calibrate.calibrate`).

    Args:
        scenario: what to run.
        out_dir: the run directory; default: a name in `runs_root` that is made of the scenario's
            name, its key and its seed.
        world: where it runs.
        runs_root: folder for run directories without a name of their own.
        progress: called now and then with the share of the simulated time that is done; an
            exception that it raises ends the run and is passed on.
        reuse: whether a finished run of the same key that is already there is returned instead.
    """
    load = scenario.offered_load
    if scenario.uncalibrated:
        scenario, _ = calibrate(scenario)
    target = Path(out_dir) if out_dir is not None else default_path(scenario, runs_root, world)
    key = world.key(scenario)
    if os.path.lexists(target):
        return existing(target, key, reuse=reuse)
    with workspace(target) as folder:
        # A simulated run is the work of this thread alone.
        cpu_time = time.thread_time if world is World.SIM else time.process_time
        started, wall, cpu = datetime.now(timezone.utc), time.perf_counter(), cpu_time()
        summary = json.loads(world.run(scenario.effective, os.fspath(folder), progress))
        metadata = {
            "key": key,
            "versions": {"engine": _native.version(), "python": platform.python_version()},
            "seed": scenario.seed,
            "load": load,
            "machine": {"system": platform.platform(), "cpus": os.cpu_count()},
            "started": started.isoformat(timespec="seconds"),
            "wall_s": round(time.perf_counter() - wall, 3),
            "cpu_s": round(cpu_time() - cpu, 3),
        }
        (folder / "scenario.toml").write_text(scenario.effective, encoding="utf-8")
        for name, content in (("summary.json", summary), ("metadata.json", metadata)):
            text = json.dumps(content, indent=2, ensure_ascii=False)
            (folder / name).write_text(text + "\n", encoding="utf-8")
    return Run.open(target)


def default_path(scenario: Scenario, runs_root: Path = RUNS_ROOT, world: World = World.SIM) -> Path:
    """The run directory of a scenario that is given none."""
    suffix = "-live" if world is World.LIVE else ""
    return runs_root / f"{scenario.name}-{scenario.key[:8]}-s{scenario.seed}{suffix}"


def existing(target: Path, key: str, *, reuse: bool) -> Run:
    """The finished run of that key at a place that is taken; an error if it is another."""
    run = occupant(target)
    if run.metadata.get("key") != key:
        raise AqmlabError(
            f"{target}: holds a run of another scenario, seed or version; choose another place"
        )
    if not reuse:
        raise AqmlabError(f"{target}: holds this very run already")
    return run


def occupant(target: Path) -> Run:
    """The run at a place that is taken; an error if it is anything else."""
    try:
        return Run.open(target)
    except AqmlabError:
        raise AqmlabError(
            f"{target}: already exists and is not a run directory; choose another place"
        ) from None


@contextmanager
def workspace(target: Path) -> Iterator[Path]:
    """A temporary sibling of a folder that takes its name when the block ends well.

    It is locked while it is in use. Workspaces in the same folder that nobody holds (their process
    was killed) are removed on the way.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Nobody may clear away a workspace between its making and its locking.
        with locked(target.parent):
            remove_abandoned(target.parent)
            folder = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PARTIAL}")
            folder.mkdir()
            lock = lock_folder(folder)
    except OSError as error:
        raise AqmlabError(f"{target}: cannot be made: {error.strerror}") from None
    try:
        yield folder
        folder.rename(target)
    except OSError as error:
        raise AqmlabError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


PARTIAL = ".partial"
"""Suffix of workspaces."""


def lock_folder(folder: Path, flags: int = 0) -> int:
    """Locks a folder against other holders until the returned descriptor is closed."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | flags)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a folder's lock."""
    descriptor = lock_folder(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(parent: Path) -> None:
    """Removes the workspaces in a folder that nobody holds."""
    for folder in parent.glob(f".*{PARTIAL}"):
        with suppress(OSError):
            descriptor = lock_folder(folder, fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """One of the JSON files of a run directory."""
    try:
        content = json.loads(read_text(folder / name, "run", MAX_BYTES))
    except (AqmlabError, ValueError):
        raise AqmlabError(f"{folder}: is not a run directory: no readable {name}") from None
    if not isinstance(content, dict):
        raise AqmlabError(f"{folder / name}: is not a JSON object")
    return content


def label_of(scenario: Mapping[str, Any]) -> str:
    """Short name of a scenario: its bottleneck's forward queue, such as "red (30,90)"."""
    topology = scenario["topology"]
    # In a network of links the first one with a queue worth naming speaks for it.
    links = [topology["bottleneck"]] if "bottleneck" in topology else topology["links"].values()
    disciplines = [link["forward"]["discipline"] for link in links]
    active = (found for found in disciplines if found["kind"] != "droptail")
    discipline = next(active, disciplines[0])
    kind, limit = discipline["kind"], short(discipline.get("limit", ""))
    if "min_th" in discipline:
        limit = f"({short(discipline['min_th'])},{short(discipline['max_th'])})"
    return " ".join(filter(None, (kind, limit, "ECN" if discipline.get("ecn") else "")))


def mark_of(summary: Mapping[str, Any]) -> str:
    """What a label adds for a live run: that it is one, and whether it tells anything."""
    if "live" not in summary:
        return ""
    return " live" if summary["live"]["valid"] else " live (invalid)"


def main_link(runs: Sequence[Run]) -> tuple[str, str]:
    """The link and direction that figures show: the bottleneck forward, or else the busiest."""
    busy: dict[tuple[str, str], float] = {}
    for run in runs:
        for link, directions in run.summary["links"].items():
            for direction, values in directions.items():
                at = (link, direction)
                busy[at] = busy.get(at, 0.0) + values["utilization"]
    named = ("bottleneck", "forward")
    return named if named in busy else max(busy, key=lambda at: busy[at])


def short(quantity: object) -> str:
    """A quantity as people say it: packets go without their unit."""
    return str(quantity).removesuffix(" packets")


def distinguish(runs: Sequence[Run]) -> list[Run]:
    """The runs with labels that tell them apart.

    Runs that share a label get what differs between their scenarios added, field by field, until
    they differ; runs of the same scenario get the names of their directories.
    """
    labels = [run.label for run in runs]
    for label in {label for label in labels if labels.count(label) > 1}:
        twins = [index for index, other in enumerate(labels) if other == label]
        parts = differing([runs[index].scenario for index in twins])
        for index, part in zip(twins, parts, strict=True):
            labels[index] = f"{label}, {part}" if part else label
    labels = [
        f"{label} [{run.path.name}]" if labels.count(label) > 1 else label
        for run, label in zip(runs, labels, strict=True)
    ]
    if len(set(labels)) < len(labels):
        twice = next(run for run in runs if sum(run.path == other.path for other in runs) > 1)
        raise AqmlabError(f"{twice.path}: is named twice")
    return [replace(run, label=label) for run, label in zip(runs, labels, strict=True)]


def differing(scenarios: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first fields that tell scenarios apart, as "field value", for each of them."""
    flat = [dict(leaves(scenario)) for scenario in scenarios]
    parts: list[list[str]] = [[] for _ in flat]
    for path in dict.fromkeys(path for leaf in flat for path in leaf):
        values = [leaf.get(path) for leaf in flat]
        if len(set(values)) > 1:
            for part, value in zip(parts, values, strict=True):
                part.append(f"{path[-1]} {short('none' if value is None else value)}")
            if len({tuple(part) for part in parts}) == len(parts):
                break
    return [", ".join(part) for part in parts]


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Paths and texts of everything inside nested tables and lists; the title is left out."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if (*path, key) != ("title",):
                yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, str(number)))
    else:
        yield path, json.dumps(value) if not isinstance(value, str) else value
