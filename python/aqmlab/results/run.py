"""Runs: what a run directory holds, and how runs are named.

A run directory holds ``scenario.toml`` (the effective one), ``summary.json``, ``metadata.json`` and
the Parquet files that ``measure.record`` asks for. The same scenario and seed give the same bytes,
except ``metadata.json`` and live runs. A run directory is written under a temporary name and
renamed when it is complete: one that exists is whole. :mod:`aqmlab.results.manifest` checks
whether its files are still what they were.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from sys import intern
from typing import Any

from aqmlab import _native
from aqmlab._util.effective import key_of, split_at_seed
from aqmlab._util.files import decoded, read_text
from aqmlab._util.lazy import pa, pq
from aqmlab._util.plugin_declarations import note
from aqmlab.errors import AqmlabError, DamagedRunError, LaterRunError, ScenarioError
from aqmlab.results.check import check_summary
from aqmlab.results.links import loaded_links
from aqmlab.results.manifest import Manifest
from aqmlab.results.metrics import ALL, SHORT_NAMES, look_up, of_version
from aqmlab.results.queues import label_of

__all__ = ["Run", "read_json"]


_MAX_BYTES = 64 * 2**20
"""Largest text file of a run directory that is read."""
_BATCH_ROWS = 2**18
"""Rows of a table that are read at a time where it may be long."""


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run. Tables are read when they are first asked for.

    Example:
        >>> import aqmlab
        >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
        >>> run = aqmlab.run(aqmlab.Scenario.load("scenarios/bulk.toml").with_overrides(short))
        >>> run == aqmlab.Run.open(run.path)
        True
        >>> run.summary["measured_s"]
        10.0
        >>> run.queue.column_names[:3]
        ['link', 'direction', 'time_s']
    """

    path: Path
    """The run directory."""
    label: str
    """Short name such as "red (30,90)"; see :func:`aqmlab.results.labels.distinguish`."""
    summary: Mapping[str, Any]
    """``summary.json``; keys end in their unit."""
    scenario: Mapping[str, Any]
    """The effective scenario; quantities are strings with units."""
    metadata: Mapping[str, Any]
    """``metadata.json``: key, versions, machine, when it ran and what it cost."""
    tables: Mapping[str, pa.Table] | None = field(default=None, compare=False)
    """Tables by name of a run that is in memory; None: they are files of its directory."""
    manifest: Manifest | None = field(default=None, compare=False)
    """What its files were; None of a run in memory, and of one made without a manifest."""

    def __post_init__(self) -> None:
        """A run without a label is called by the queues of its loaded links."""
        if not self.label:
            object.__setattr__(self, "label", self.queue_label)

    @classmethod
    def in_memory(
        cls,
        scenario: Mapping[str, Any],
        summary: Mapping[str, Any],
        tables: Mapping[str, pa.Table] | None = None,
        *,
        label: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        path: str | os.PathLike[str] = "in memory",
    ) -> Run:
        """A run without a directory, such as a test makes.

        Args:
            scenario: the effective scenario, such as ``Scenario.data``.
            summary: what ``summary.json`` would hold.
            tables: ``responses``, ``flows``, ``queue``, ``flow_trace``, ``distribution``, as far as
                there are any.
            label: its name; default: made of its queue.
            metadata: what ``metadata.json`` would hold.
            path: what messages call it.
        """
        return cls(Path(path), label or "", summary, scenario, metadata or {}, tables or {})

    @classmethod
    def just_made(
        cls,
        scenario: Mapping[str, Any],
        summary: str,
        metadata: Mapping[str, Any],
        *,
        manifest: Manifest | None = None,
        tables: Mapping[str, pa.Table] | None = None,
    ) -> Run:
        """A run that this process has made; nothing is read.

        Args:
            scenario: the effective scenario.
            summary: the text of ``summary.json``.
            metadata: what ``metadata.json`` holds.
            manifest: what the files of its directory are; without one it is in memory.
            tables: its tables by name, if it is in memory.
        """
        path = Path("in memory") if manifest is None else manifest.folder
        return cls(path, "", _loads(summary), scenario, metadata, tables, manifest)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Run:
        """Opens a run directory.

        Raises:
            AqmlabError: it is not a run directory.
            LaterRunError: it was written by a later version.
            DamagedRunError: its files are not what they were.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise AqmlabError(f"{folder}: there is no such run directory")
        metadata = read_json(folder, "metadata.json")
        version = metadata.get("results_version", 1)
        if version not in range(1, _native.results_version() + 1):
            raise LaterRunError(
                f"{folder}: holds results of version {version}; this aqmlab reads up to version "
                f"{_native.results_version()}; a newer one is needed"
            )
        manifest = Manifest.of(folder, metadata)
        checked = {} if manifest is None else manifest.check(metadata)
        summary = of_version(read_json(folder, "summary.json", checked), version)
        check_summary(folder / "summary.json", summary)
        file = folder / "scenario.toml"
        text = _text(file, checked)
        if manifest is not None:
            _check_key(folder, text, metadata)
        try:
            scenario = _scenario_of(text)
        except ScenarioError as error:
            raise AqmlabError(f"{file}: {error}") from None
        plugins = metadata.get("plugins")
        if isinstance(plugins, list):  # earlier versions kept the hashes of their files alone
            note(plugins)
        return cls(folder, "", summary, scenario, metadata, manifest=manifest)

    def at(self, path: Path) -> Run:
        """A copy of the run for a directory that gets another name."""
        manifest = None if self.manifest is None else replace(self.manifest, folder=path)
        return replace(self, path=path, manifest=manifest)

    def without_tables(self) -> Run:
        """A copy that has not loaded any table; its tables are freed with it."""
        return replace(self)

    @property
    def seed(self) -> int:
        """Seed of every random stream."""
        return int(self.scenario["seed"])

    @property
    def invalid(self) -> list[str]:
        """Reasons why a live run is invalid: the bounds that the machine did not keep."""
        return list(self.summary.get("live", {}).get("reasons", []))

    @property
    def classes(self) -> list[str]:
        """Names of the traffic classes."""
        return [str(entry["name"]) for entry in self.scenario["traffic"]]

    @property
    def world(self) -> str:
        """``sim`` or ``live``."""
        return "live" if "live" in self.summary else "sim"

    @property
    def queue_label(self) -> str:
        """The label made of the queues of its loaded links, with ``live`` for a live run."""
        found = self.asked_queue or label_of(self.scenario, loaded_links([self]))
        return found + self.world_mark

    @property
    def asked_queue(self) -> str | None:
        """What the command of a program's run called the queue, such as ``droptail:250 ms``."""
        found = self.metadata.get("queue")
        return None if found is None else str(found)

    @property
    def has_own_label(self) -> bool:
        """Whether the run has a label of its own, other than :attr:`queue_label`."""
        return self.label != self.queue_label

    @property
    def world_mark(self) -> str:
        """What the label adds for a live run: ``live``, and whether it is invalid."""
        if "live" not in self.summary:
            return ""
        return ", live" if self.summary["live"]["valid"] else ", live (invalid)"

    def __repr__(self) -> str:
        """One line."""
        seed = self.scenario.get("seed", "-")
        return f"<Run {self.label}, seed {seed}, {self.world}: {self.path}>"

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        from html import escape

        rows = [("run directory", str(self.path)), ("seed", str(self.scenario.get("seed", "-")))]
        places: dict[str, list[tuple[str, Sequence[str]]]] = {
            "links": [(at.name, at) for at in loaded_links([self])],
            "quality": [(name, (name,)) for name in self.summary.get("quality", {})],
        }
        for short, key in SHORT_NAMES.items():
            section, *_, last = key.split(".")
            for name, place in places.get(section, [("", (ALL,))]):
                value = look_up(self.summary, (section, *place, last))
                if value is not None:
                    rows.append((f"{short}.{name}".rstrip("."), f"{value:.4g}"))
        cells = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows
        )
        return f"<table><caption>{escape(self.label)}</caption>{cells}</table>"

    @cached_property
    def responses(self) -> pa.Table | None:
        """One row per finished response (``responses.parquet``), if recorded."""
        return self.read("responses")

    @cached_property
    def flows(self) -> pa.Table | None:
        """One row per closed connection (``flows.parquet``), if recorded."""
        return self.read("flows")

    @cached_property
    def queue(self) -> pa.Table | None:
        """Samples of the links' queues (``queue.parquet``), if recorded."""
        return self.read("queue")

    @cached_property
    def packets(self) -> pa.Table | None:
        """One row per packet that reached a queue (``packets.parquet``), if recorded.

        It may be large: :meth:`batches` reads some columns in parts.
        """
        return self.read("packets")

    @cached_property
    def subscribers(self) -> pa.Table | None:
        """One row per subscriber of a tree of rates (``subscribers.parquet``), if recorded."""
        return self.read("subscribers")

    @cached_property
    def flow_trace(self) -> pa.Table | None:
        """Inner state of chosen connections (``flow_trace.parquet``), if recorded."""
        return self.read("flow_trace")

    @cached_property
    def distribution(self) -> pa.Table | None:
        """Response times and durations of connections, counted in bins (``distribution.parquet``).

        See :class:`aqmlab.results.distributions.Distribution`.
        """
        return self.read("distribution")

    @cached_property
    def delay(self) -> pa.Table | None:
        """Delays of datagrams and round trips, counted in bins (``delay.parquet``)."""
        return self.read("delay")

    @cached_property
    def sojourn(self) -> pa.Table | None:
        """Queueing delays at each direction of each link, counted in bins (``sojourn.parquet``)."""
        return self.read("sojourn")

    @cached_property
    def class_sojourn(self) -> pa.Table | None:
        """Queueing delays by class of traffic, counted in bins (``class_sojourn.parquet``)."""
        return self.read("class_sojourn")

    def has(self, table: str) -> bool:
        """Whether the run has a table."""
        return table in self.tables if self.tables is not None else self._file(table).is_file()

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table | None:
        """A table, or some of its columns; None if the run has none. Each call reads the file."""
        if not self.has(table):
            return None
        if self.tables is not None:
            found = self.tables[table]
            return found if columns is None else found.select(columns)
        file = self._file(table)
        source = file if self.manifest is None else self.manifest.source(file.name)
        whole = pa.BufferReader(source) if isinstance(source, bytes) else source
        try:
            with pq.ParquetFile(whole) as table_file:
                many = table_file.metadata.num_rows > _BATCH_ROWS
                return table_file.read(columns, use_threads=many)  # starting them costs more
        except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
            raise self._unreadable(table, error) from None

    def column_names(self, table: str) -> list[str]:
        """What the columns of a table are called; none if the run has no such table."""
        if not self.has(table):
            return []
        if self.tables is not None:
            return list(self.tables[table].column_names)
        try:
            return list(pq.read_schema(self._file(table)).names)
        except (OSError, ValueError) as error:
            raise self._unreadable(table, error) from None

    def metric(self, text: str) -> float | None:
        """The number that a text computes from the run; None: it was not measured.

        See docs/how-to/metrics-of-your-own.md for what the text may say.

        Args:
            text: such as ``quantile(responses.response_s, 0.99) in ms``.

        Example:
            >>> import aqmlab
            >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
            >>> run = aqmlab.run(aqmlab.Scenario.load("scenarios/bulk.toml").with_overrides(short))
            >>> run.metric("max(queue.packets, where=queue.direction == 'forward')")
            100.0
        """
        # By its name: runs do not depend on what is computed from them.
        found: float | None = import_module("aqmlab.results.own_metrics").formula(text).of(self)
        return found

    def rows(self, table: str) -> int:
        """Number of rows of a table; 0 if the run has no such table."""
        if not self.has(table):
            return 0
        if self.tables is not None:
            return int(self.tables[table].num_rows)
        try:
            return int(pq.read_metadata(self._file(table)).num_rows)
        except (OSError, ValueError) as error:
            raise self._unreadable(table, error) from None

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yields some columns of a table in parts; nothing if the run has no such table.

        Tables may be larger than memory; no more than a part is held at a time.
        """
        if not self.has(table):
            return
        if self.tables is not None:
            yield self.tables[table].select(columns)
            return
        file = self._file(table)
        if self.manifest is not None:
            self.manifest.check_hash(file.name)
        try:
            with pq.ParquetFile(file) as table_file:
                for batch in table_file.iter_batches(_BATCH_ROWS, columns=list(columns)):
                    yield pa.Table.from_batches([batch])
        except (OSError, ValueError) as error:
            raise self._unreadable(table, error) from None

    def _unreadable(self, table: str, error: Exception) -> AqmlabError:
        """That a table cannot be read."""
        reason = str(error).partition("\n")[0]
        return AqmlabError(f"{self._file(table)}: cannot be read: {reason}")

    def _file(self, table: str) -> Path:
        return self.path / f"{table}.parquet"


def _check_key(folder: Path, text: str, metadata: Mapping[str, Any]) -> None:
    """Raises an error if a scenario is not the one that the run's key was made of.

    Nobody who writes files and hashes anew finds a scenario that gives the same key.
    """
    key, _, _ = str(metadata.get("key")).partition("-")  # that of a live run says so
    engine = metadata.get("versions", {}).get("engine")
    if key_of(text, str(engine)) != key:
        raise DamagedRunError(f"{folder}: is damaged: scenario.toml does not give the run's key")


def _scenario_of(text: str) -> Mapping[str, Any]:
    """An effective scenario. Runs that differ in their seed alone share the rest of it."""
    parts = split_at_seed(text)
    if parts is None:
        return _parsed(text)
    before, seed, after = parts
    return {**_parsed(f"{before}0{after}"), "seed": seed}


@lru_cache(maxsize=64)
def _parsed(text: str) -> Mapping[str, Any]:
    """The values of a TOML text; nobody changes them."""
    found: dict[str, Any] = json.loads(_native.to_json(text))
    return found


def _text(file: Path, checked: Mapping[str, bytes]) -> str:
    """A text file of a run directory, which may have been read already when it was checked."""
    content = checked.get(file.name)
    if content is None:
        return read_text(file, "run", _MAX_BYTES)
    return decoded(content, file, "run")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; thousands of runs share its keys, nearly half of what they take."""
    return {intern(key): value for key, value in pairs}


def _loads(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """What a text of JSON says."""
    return json.loads(text, object_pairs_hook=_object)


def read_json(
    folder: Path, name: str, checked: Mapping[str, bytes] | None = None
) -> dict[str, Any]:
    """One of the JSON files of a run directory; `checked` holds what has been read of it."""
    try:
        content = _loads(_text(folder / name, checked or {}))
    except (AqmlabError, ValueError, RecursionError):
        raise AqmlabError(f"{folder}: is not a run directory: no readable {name}") from None
    if not isinstance(content, dict):
        raise AqmlabError(f"{folder / name}: is not a JSON object")
    return content
