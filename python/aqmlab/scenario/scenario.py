"""Scenarios: one experiment each, as a TOML file describes it."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from aqmlab import _native
from aqmlab._util.effective import key_of, split_at_seed
from aqmlab._util.filekinds import file_kind, run_with
from aqmlab._util.files import read_text, special
from aqmlab._util.plugin_sources import sources_of
from aqmlab._util.shipped import found
from aqmlab.errors import ScenarioError
from aqmlab.scenario.content import content, value_of
from aqmlab.scenario.effect import Outvoted, outvoted, refuse_without_effect
from aqmlab.scenario.notes import notes
from aqmlab.scenario.short import full_path
from aqmlab.scenario.traces import from_traces

__all__ = ["Override", "Scenario", "inline", "toml_value"]


Override = tuple[str, str]
"""Path of a field, such as ``traffic.browsers.users`` or short as ``discipline``, and its new value
as TOML (or a string)."""

_MAX_BYTES = 16 * 2**20
"""Largest scenario file that is read."""
_KEY = "file"
"""The key under which a scenario names a file."""
_LAST_SEED = 2**63 - 1
"""The largest whole number that TOML can say."""


@dataclass(frozen=True, repr=False)
class Scenario:
    """One experiment: network, queue disciplines, traffic, what is measured, seed.

    Made by :meth:`load`, :meth:`from_toml` or :meth:`from_dict`, which check everything: a scenario
    that exists is right.

    Example:
        >>> import aqmlab
        >>> scenario = aqmlab.Scenario.load("scenarios/bulk.toml")
        >>> scenario.title
        'Eight endless transfers behind a drop-tail queue'
        >>> scenario.data["topology"]["bottleneck"]["forward"]["rate"]
        '10 Mbit/s'
        >>> scenario.with_overrides({"topology.bottleneck.rate": "ten"})
        Traceback (most recent call last):
        aqmlab.errors.ScenarioError: topology.bottleneck.rate: ...
    """

    source: str
    """TOML as the user wrote it."""
    folder: Path
    """Where the files are that it names."""
    overrides: tuple[Override, ...]
    """What replaces or adds to the source; short paths are spelled out."""
    name: str
    """Short name: the stem of its file."""
    populations: tuple[tuple[int, float], ...] = ()
    """Calibrated users (or connections per second) by index of the class."""
    effective: str = field(init=False, compare=False)
    """The scenario with every default spelled out and every file it names inlined, as TOML."""

    def __post_init__(self) -> None:
        full = tuple((full_path(self.source, path), text) for path, text in self.overrides)
        object.__setattr__(self, "overrides", full)
        _check_named_files(self.source, self.folder, self.overrides)
        text = self._parsed()
        for index, population in self.populations:
            text = _native.set_population(text, index, population)
        object.__setattr__(self, "effective", text)
        if found := self.outvoted:
            refuse_without_effect(found, _carrying(text))

    def _parsed(self) -> str:
        """The effective scenario without calibrated populations."""
        added = from_traces(self.source, self.folder, self.overrides)
        return _native.parse(self.source, os.fspath(self.folder), (*self.overrides, *added))

    def __getstate__(self) -> dict[str, Any]:
        """With the plug-ins that it needs: a worker has none."""
        return {**vars(self), "plugins": sources_of(self.effective)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Its plug-ins have been loaded as they were unpickled."""
        del state["plugins"]
        vars(self).update(state)

    def __repr__(self) -> str:
        """One line."""
        return f"<Scenario {self.name}: {self.title}, seed {self.seed}>"

    @classmethod
    def load(cls, path: str | os.PathLike[str], overrides: Iterable[Override] = ()) -> Scenario:
        """Reads a scenario file.

        Args:
            path: the file; those that come with aqmlab, such as ``scenarios/quickstart.toml``, are
                found from everywhere. Files that it names are sought beside it.
            overrides: pairs of a field's path and its value.
        """
        file = found(Path(path))
        source = read_text(file, "scenario", _MAX_BYTES)
        try:
            return cls(source, file.parent, tuple(overrides), file.stem)
        except ScenarioError as error:
            if file_kind(file) == "sweep":
                raise ScenarioError(f"{file}: {run_with(file, 'sweep')}") from None
            if str(error).startswith("line "):  # of the file as a whole, not of a field
                raise ScenarioError(f"{file}: {error}") from None
            raise

    @classmethod
    def from_toml(
        cls, text: str, overrides: Iterable[Override] = (), *, folder: Path | None = None
    ) -> Scenario:
        """A scenario from TOML text; files that it names are in `folder` (default: here)."""
        return cls(
            source=text, folder=folder or Path(), overrides=tuple(overrides), name="scenario"
        )

    @classmethod
    def from_dict(
        cls,
        content: Mapping[str, object],
        overrides: Iterable[Override] = (),
        *,
        folder: Path | None = None,
    ) -> Scenario:
        """A scenario from nested dictionaries, as a scenario file has them.

        Args:
            content: what the file would say; keys whose value is None are left out.
            overrides: pairs of a field's path and its value.
            folder: folder of the files that the content names; default: the current folder.

        Example:
            >>> import aqmlab
            >>> link = {"rate": "20 Mbit/s", "discipline": "fq-codel"}
            >>> rtt = {"kind": "constant", "rtt": "30 ms"}
            >>> scenario = aqmlab.Scenario.from_dict({
            ...     "title": "Two transfers",
            ...     "topology": {"kind": "dumbbell", "bottleneck": link},
            ...     "traffic": [{"kind": "bulk", "flows": 2, "tcp": "linux", "rtt": rtt}],
            ... })
            >>> scenario
            <Scenario scenario: Two transfers, seed 1>
        """
        lines = (
            f"{json.dumps(str(key))} = {inline(value)}\n"
            for key, value in content.items()
            if value is not None
        )
        return cls.from_toml("".join(lines), overrides, folder=folder)

    def with_overrides(self, overrides: Iterable[Override] | Mapping[str, object]) -> Scenario:
        """The scenario with some fields replaced; calibrated populations are forgotten.

        Args:
            overrides: pairs of a field's path and its value, or a mapping of them. Values are
                TOML; text that is not is taken as a string.

        Example:
            >>> import aqmlab
            >>> scenario = aqmlab.Scenario.load("scenarios/bulk.toml")
            >>> scenario.with_overrides({"traffic.transfers.flows": 4}).data["traffic"][0]["flows"]
            4
        """
        pairs = overrides.items() if isinstance(overrides, Mapping) else overrides
        added = tuple((path, toml_value(value)) for path, value in pairs)
        return replace(self, overrides=(*self.overrides, *added), populations=())

    def with_seed(self, seed: int) -> Scenario:
        """The scenario with another seed and the same users: calibration does not depend on it."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise ScenarioError(f"seed: found {seed!r}; expected a whole number, at least 0")
        seed = operator.index(seed)
        if seed == self.seed:
            return self
        # Nothing else of the effective scenario depends on it: a sweep has thousands of seeds.
        parts = split_at_seed(self.effective)
        if parts is None or not 0 <= seed <= _LAST_SEED:
            populations = dict(self.populations)
            return self.with_overrides({"seed": seed}).with_populations(populations)
        text = f"{parts[0]}{seed}{parts[2]}"
        found = copy(self)
        for name in ("key", "notes"):
            vars(found).pop(name, None)
        vars(found)["data"] = {**self.data, "seed": seed}
        object.__setattr__(found, "overrides", (*self.overrides, ("seed", str(seed))))
        object.__setattr__(found, "effective", text)
        return found

    def keys_by_seed(self) -> Callable[[int], str]:
        """What gives the key of the scenario with another seed; sweeps ask for thousands."""
        parts = split_at_seed(self.effective)

        def key(seed: int) -> str:
            if parts is None or not 0 <= seed <= _LAST_SEED:
                return self.with_seed(seed).key
            return key_of(f"{parts[0]}{seed}{parts[2]}")

        return key

    def with_populations(self, populations: Mapping[int, float]) -> Scenario:
        """The scenario with users (or connections per second) for some classes, by index."""
        merged = dict(self.populations) | dict(populations)
        if merged == dict(self.populations):
            return self
        return replace(self, populations=tuple(sorted(merged.items())))

    @cached_property
    def data(self) -> dict[str, Any]:
        """The effective scenario as nested dictionaries; quantities are strings with units."""
        parsed: dict[str, Any] = json.loads(_native.to_json(self.effective))
        return parsed

    @cached_property
    def notes(self) -> list[str]:
        """What it says and hardly anybody wants, a line each: ``aqmlab run`` warns with them."""
        return notes(self.data)

    @property
    def title(self) -> str:
        """What it is about, in a line."""
        return str(self.data["title"])

    @property
    def seed(self) -> int:
        """Seed of every random stream."""
        return int(self.data["seed"])

    @property
    def outvoted(self) -> list[Outvoted]:
        """Overrides that one direction of a link does not follow, because it has its own key.

        That direction carries no responses: an override without effect on them is an error.
        """
        return outvoted(self.source, self.overrides)

    @cached_property
    def offered_load(self) -> float | None:
        """Offered load, as a fraction of the link's rate, to which its classes are calibrated.

        The effective scenario states it until every class has its population.
        """
        data = self.data
        if self.populations:
            data = json.loads(_native.to_json(self._parsed()))
        load = data.get("load")
        return None if load is None else float(load)

    @cached_property
    def key(self) -> str:
        """Hash of the effective scenario and the engine's name: equal keys, equal results."""
        return key_of(self.effective)

    @cached_property
    def uncalibrated(self) -> list[int]:
        """Indices of the traffic classes whose population is left to calibration."""
        if self.data.get("load") is None:
            return []
        classes = range(len(self.data["traffic"]))
        return [index for index in classes if _native.population(self.effective, index) is None]


def _check_named_files(source: str, folder: Path, overrides: Iterable[tuple[str, str]]) -> None:
    """An error with the field if a scenario, or what replaces a part of it, names no file.

    The engine would open it: a pipe would let it wait without end, a device may never end. What is
    wrong with the text, or with a file that is none of these, the engine says.
    """
    values = [(place, value_of(text)) for place, text in overrides]
    for place, value in [("", content(source)), *values]:
        for path, name in _named(place, value):
            if (found := special(folder / name)) is not None:
                raise ScenarioError(f"{path}: found {json.dumps(name)}, which is {found}")


def _named(place: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - whatever TOML can say
    """The fields within a value that name files, and what they name."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named(f"{place}.{key}" if place else key, inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            name = inner.get("name", number) if isinstance(inner, Mapping) else number
            yield from _named(f"{place}.{name}", inner)
    elif isinstance(value, str) and place.rpartition(".")[2] == _KEY:
        yield place, value


def _carrying(effective: str) -> dict[str, set[str]]:
    """The directions of a dumbbell's bottleneck that responses cross; nothing of other networks."""
    data = json.loads(_native.to_json(effective))
    if data["topology"]["kind"] != "dumbbell":
        return {}
    hops = [
        hop
        for index in range(len(data["traffic"]))
        for hop in _native.loaded_links(effective, index)
    ]
    return {link: {way for other, way, _ in hops if other == link} for link, _, _ in hops}


def toml_value(value: object) -> str:
    """A Python value as the text of an override; strings are such texts already."""
    return value if isinstance(value, str) else inline(value)


def inline(value: object) -> str:
    """A Python value as TOML in one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, Mapping):
        pairs = (
            f"{json.dumps(str(key))} = {inline(item)}"
            for key, item in value.items()
            if item is not None
        )
        return f"{{ {', '.join(pairs)} }}"
    raise ScenarioError(f"a value of a scenario cannot be a {type(value).__name__}")
