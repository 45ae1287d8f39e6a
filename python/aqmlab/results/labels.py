"""Labels of runs: what really differs between them, named as people name it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aqmlab import _native
from aqmlab.errors import AqmlabError
from aqmlab.results.directions import way
from aqmlab.results.families import families
from aqmlab.results.links import loaded_links
from aqmlab.results.queues import (
    control_name,
    discipline_name,
    listed,
    names_at,
    short_value,
)

if TYPE_CHECKING:
    from aqmlab.results.run import Run

__all__ = ["distinguish"]


_DIRECTIONS = ("forward", "reverse")


def distinguish(runs: Sequence[Run]) -> list[Run]:
    """The runs with labels that tell them apart.

    A run that has no label of its own is called by the disciplines of the loaded links (see
    :func:`~aqmlab.results.links.loaded_links`) in which the runs of its scenario differ. Runs that
    share a label get what differs between their scenarios added, field by field, until they
    differ; runs of the same scenario get the names of their directories.
    """
    labels = [run.label for run in runs]
    for family in families(runs):
        for index, label in zip(family, _by_queue([runs[i] for i in family]), strict=True):
            labels[index] = label
    for label in {label for label in labels if labels.count(label) > 1}:
        twins = [index for index, other in enumerate(labels) if other == label]
        parts = _differing([runs[index] for index in twins])
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


def _by_queue(runs: Sequence[Run]) -> list[str]:
    """Labels of runs of one scenario: their own, or the queues in which they differ."""
    loaded = loaded_links(runs)
    named = [names_at(run.scenario, loaded) for run in runs]
    differing = [at for at in loaded if len({names.get(at) for names in named}) > 1]
    found = []
    for run, names in zip(runs, named, strict=True):
        chosen = {at: names[at] for at in differing or loaded if at in names}
        if not run.has_own_label and chosen and not run.asked_queue:
            one = len(set(chosen.values())) == 1 and len(chosen) == len(loaded)
            label = next(iter(chosen.values())) if one else listed(chosen, run.scenario)
            found.append(label + run.world_mark)
        else:
            found.append(run.label)
    return found


def _differing(runs: Sequence[Run]) -> list[str]:
    """The first fields that tell runs apart, as "field value", for each of them."""
    flat = [dict(_leaves(_described(run))) for run in runs]
    paths = list(dict.fromkeys(path for leaf in flat for path in leaf))
    paths.sort(key=lambda path: path == ("seed",))
    columns = {path: [leaf.get(path) for leaf in flat] for path in paths}
    chosen: list[_Path] = []
    kinds = 1
    for path, values in columns.items():
        rows = zip(*(columns[one] for one in chosen), values, strict=True)
        # A field that differs only where others do already separates nothing more.
        if not _repeats(path, columns) and (found := len(set(rows))) > kinds:
            chosen.append(path)
            kinds = found
    names = {path: _field_name(path, columns, runs) for path in chosen}
    return [
        ", ".join(
            f"{names[path]} {short_value(value)}".strip()
            for path in chosen
            if (value := leaf.get(path)) is not None
        )
        for leaf in flat
    ]


def _described(run: Run) -> Mapping[str, Any]:
    """A run's scenario as labels speak of it: with its load, and algorithms by their names too."""
    load = run.metadata.get("load")
    stated = {} if load is None else {"load": f"{100 * load:g} %"}
    classes = [_with_transport(one) for one in run.scenario.get("traffic", [])]
    return {**stated, **_with_names({**run.scenario, "traffic": classes})}


def _with_transport(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """A class with its transport, TCP unless stated, first: it says more than its keys do.

    A scenario leaves a transport's table out where no key of it is stated: it has the defaults.
    """
    transport = one.get("transport", "tcp")
    found = {"transport": transport, **one}
    if isinstance(transport, str) and transport not in found:
        named = json.loads(_native.catalog("transports"))["transports"]
        parameters = named[f"transport.{transport}"]["parameters"]
        found[transport] = {of["name"]: of["default"] for of in parameters if "default" in of}
    return found


def _with_names(value: Any) -> Any:  # noqa: ANN401 - whatever a scenario holds
    """Nested tables in which the name of an algorithm stands before its parameters."""
    if isinstance(value, list):
        return [_with_names(inner) for inner in value]
    if not isinstance(value, Mapping):
        return value
    found = {}
    for key, inner in value.items():
        if key in _NAMED and isinstance(inner, Mapping) and "kind" in inner:
            found[key] = {"": _NAMED[key](inner), **dict(_beside_the_name(inner))}
        else:
            found[key] = _with_names(inner)
    return found


def _beside_the_name(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What an algorithm's name leaves open; two versions of a plug-in differ in their source."""
    for key, value in table.items():
        if key == "sha256":
            yield "source", str(value)[:8]
        elif key != "kind" and not (key == "name" and table["kind"] == "plugin"):
            yield key, value


_NAMED = {"discipline": discipline_name, "congestion_control": control_name}
"""Tables that are called by a name, by their keys."""


_Path = tuple[str, ...]


def _repeats(path: _Path, columns: Mapping[_Path, Sequence[object]]) -> bool:
    """Whether a field of the reverse direction differs just as that of the forward one."""
    if "reverse" not in path:
        return False
    twin = tuple("forward" if key == "reverse" else key for key in path)
    return columns.get(twin) == columns[path]


def _field_name(path: _Path, columns: Mapping[_Path, Sequence[object]], runs: Sequence[Run]) -> str:
    """A field as a label calls it: its key, after the link, direction or class it belongs to."""
    before = []
    if path[:2] == ("topology", "links"):
        before.append(path[2])
    elif path[:1] == ("topology",) and len(path) > 3 and path[1] != "bottleneck":
        before.append(path[1])
    twin = tuple(_DIRECTIONS[1 - _DIRECTIONS.index(k)] if k in _DIRECTIONS else k for k in path)
    if twin != path and columns.get(twin) != columns[path]:
        before += [way(key, runs[0].scenario) for key in path if key in _DIRECTIONS]
    if path[:1] == ("traffic",) and len(runs[0].classes) > 1:
        before.append(runs[0].classes[int(path[1])])
        if path[-2:] == ("congestion_control", ""):
            return f"{' '.join(before)}:"  # "new cubic" would be a control of that name
    last = path[-2] if path[-1] == "kind" and not path[-2].isdigit() else path[-1]
    return " ".join([*before, last]).strip()


def _leaves(value: object, path: _Path = ()) -> Iterator[tuple[_Path, str]]:
    """Paths and texts of everything inside nested tables and lists; the title is left out."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if (*path, key) != ("title",):
                yield from _leaves(inner, (*path, key))
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*path, str(number)))
    else:
        yield path, json.dumps(value) if not isinstance(value, str) else value
