"""What is compared: configurations, each with its runs and what tells it from the others."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from aqmlab._util.words import listing, nearest, ranged
from aqmlab.errors import AqmlabError
from aqmlab.results.conditions import conditions, holds
from aqmlab.results.groups import Group, group
from aqmlab.results.links import LinkDirection, links_of, loaded_links, main_link
from aqmlab.results.own_metrics import measured
from aqmlab.results.queues import control_name, label_of
from aqmlab.results.run import Run
from aqmlab.results.sources import gather, sweep_folder
from aqmlab.results.values import described, listed, matches, number_of, text_of

__all__ = [
    "Configuration",
    "Source",
    "Sources",
    "chosen_links",
    "configurations",
    "example",
    "in_words",
    "seeds_in_words",
    "select",
    "values_of",
]


_TABLE = "results.parquet"


@dataclass(frozen=True)
class Configuration:
    """Runs of one configuration."""

    group: Group
    parameters: Mapping[str, Any]
    """What tells it from the others: the variables of its sweep, or fields of its scenario."""
    shared: Mapping[str, Any] = field(default_factory=dict)
    """The variables of its sweep in which the configurations beside it do not differ."""
    is_swept: bool = False
    """Whether the parameters are those of a sweep."""

    @property
    def label(self) -> str:
        """Its name."""
        return self.group.label

    @property
    def runs(self) -> tuple[Run, ...]:
        """Its runs, one per seed."""
        return self.group.runs


Source: TypeAlias = Run | Configuration | str | os.PathLike[str]
"""A run, a place that :func:`aqmlab.results.sources.gather` knows, or what :func:`select` gave."""
Sources: TypeAlias = Source | Sequence[Source]


def configurations(sources: Sources, names: Mapping[str, str] | None = None) -> list[Configuration]:
    """The configurations of some runs, in the order in which they first appear.

    Args:
        sources: Where the runs are.
        names: Other names for labels and for values of parameters.

    Raises:
        AqmlabError: there is no run, or something else is at one of the places.
    """
    given = (
        [sources] if isinstance(sources, Run | Configuration | str | os.PathLike) else [*sources]
    )
    known = [source for source in given if isinstance(source, Configuration)]
    places = [source for source in given if not isinstance(source, Configuration)]
    if known and places:
        raise AqmlabError("selected runs and places of runs cannot be drawn together")
    return _renamed(known or _of_places(places), names or {})


def in_words(found: Sequence[Configuration], names: Sequence[str]) -> str:
    """Parameters with their values: "rate (4, 12, 40) and load (0.8, 0.9)"."""
    parts = [f"{name} ({listed(values_of(found, name))})" for name in names]
    return listing(parts, "and")


def example(found: Sequence[Configuration], name: str) -> str:
    """An option that keeps one value of a parameter."""
    value = text_of(values_of(found, name)[0])
    return f"--where {shlex.quote(f'{name}={value}')}"


def values_of(found: Sequence[Configuration], name: str) -> list[Any]:
    """The values of a parameter, in their order: numbers rise."""
    values = list(
        {
            text_of(entry.parameters.get(name)): entry.parameters.get(name) for entry in found
        }.values()
    )
    numbers = [number_of(value) for value in values]
    if all(one is not None for one in numbers):
        return [
            value for _, value in sorted(zip(numbers, values, strict=True), key=lambda p: p[0] or 0)
        ]
    return values


def select(sources: Sources, where: Sequence[str]) -> list[Configuration]:
    """The configurations whose parameters have some values.

    Args:
        sources: Where the runs are.
        where: Conditions such as ``rate_mbit=12`` or ``queue=red,seed=1``: the name of a parameter
            (or ``seed``) and its value. Several values of one parameter are alternatives.

    Raises:
        AqmlabError: no parameter has the name, or no run has the value.

    Example:
        >>> from aqmlab import figures
        >>> chosen = figures.select("runs/thresholds", ["load=0.9"])  # doctest: +SKIP
        >>> chart = figures.cdf(chosen)  # doctest: +SKIP
    """
    found = configurations(sources)
    names = dict.fromkeys(name for entry in found for name in entry.parameters)
    known = {name: _values(found, name) for name in (*names, "seed")}
    wanted = conditions(where, known)
    seeds = wanted.pop("seed", None)
    kept = [
        replace(entry, group=replace(entry.group, runs=_with_seeds(entry.runs, seeds)))
        for entry in found
        if holds(wanted, entry.parameters)
    ]
    kept = [entry for entry in kept if entry.runs]
    if not kept:
        raise AqmlabError(f"where: no run has {' and '.join(where)}")
    if all(entry.is_swept for entry in kept):
        return _labelled(kept)
    return configurations([run for entry in kept for run in entry.runs])


def _with_seeds(runs: Sequence[Run], seeds: Sequence[str] | None) -> tuple[Run, ...]:
    """The runs of some seeds; all if none is named."""
    return tuple(
        run for run in runs if seeds is None or any(matches(run.seed, seed) for seed in seeds)
    )


def _values(found: Sequence[Configuration], name: str) -> list[Any]:
    """The values of a parameter, or the seeds."""
    if name == "seed":
        return sorted({run.seed for entry in found for run in entry.runs})
    return [entry.parameters.get(name) for entry in found]


def _labelled(found: Sequence[Configuration]) -> list[Configuration]:
    """Points of a sweep by what tells them from the others, which is less than all variables."""
    names = list(dict.fromkeys(name for entry in found for name in entry.parameters))
    varied = [
        name for name in names if len({text_of(entry.parameters.get(name)) for entry in found}) > 1
    ]
    shared = {name: found[0].parameters.get(name) for name in names if name not in varied}
    labels = [described(entry.parameters, varied or names) for entry in found]
    if len(set(labels)) < len(labels) or not all(labels):
        return list(found)
    return [
        replace(entry, group=replace(entry.group, label=label), shared=shared if varied else {})
        for entry, label in zip(found, labels, strict=True)
    ]


def _renamed(found: Sequence[Configuration], names: Mapping[str, str]) -> list[Configuration]:
    """Configurations whose labels, and values of parameters, have other names."""
    if not names:
        return list(found)
    texts = {entry.label for entry in found} | {
        text_of(value) for entry in found for value in entry.parameters.values()
    }
    texts |= {name for entry in found for run in entry.runs for name in run.classes}
    for name in names:
        if name not in texts:
            raise AqmlabError(
                f"name: found {name}{nearest(name, texts)}; the figure has "
                f"{', '.join(dict.fromkeys(entry.label for entry in found))}"
            )
    renamed = [
        replace(
            entry,
            parameters={
                key: names.get(text_of(value), value) for key, value in entry.parameters.items()
            },
        )
        for entry in found
    ]
    if all(entry.is_swept for entry in found):
        renamed = _labelled(renamed)
    return [
        replace(new, group=replace(new.group, label=names.get(old.label, new.label)))
        for old, new in zip(found, renamed, strict=True)
    ]


def _of_places(sources: Sequence[Run | str | os.PathLike[str]]) -> list[Configuration]:
    """The configurations of runs at some places."""
    runs: list[Run] = []
    variables: dict[str, Mapping[str, Any]] = {}
    for source in sources:
        if isinstance(source, Run):
            runs.append(measured(source))
            continue
        runs += [run for run in gather([source]) if run.path not in {one.path for one in runs}]
        variables |= _variables(sweep_folder(Path(source)) or Path(source))
    if not runs:
        raise AqmlabError("a figure needs at least one run")
    groups = group(runs)
    known = [variables.get(one.first.path.name) for one in groups]
    if all(known):
        return _labelled(
            [
                Configuration(one, own or {}, is_swept=True)
                for one, own in zip(groups, known, strict=True)
            ]
        )
    return [Configuration(one, own) for one, own in zip(groups, _differing(groups), strict=True)]


def _variables(folder: Path) -> dict[str, Mapping[str, Any]]:
    """The variables of a sweep's points by the key of their runs; nothing if it is no sweep."""
    if not (folder / _TABLE).is_file():
        return {}
    table = pq.read_table(folder / _TABLE)
    about = json.loads((table.schema.metadata or {}).get(b"aqmlab", b"{}"))
    names = list(about.get("variables", []))
    rows = table.select([*names, "key"]).to_pylist()
    return {str(row["key"]): {name: row[name] for name in names} for row in rows}


def _differing(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The scenario's fields in which groups differ, by their shortest names.

    Fields of queue disciplines of several kinds are one parameter, the queues' names, and so are
    those of congestion controls; fields that change together are one, too.
    """
    flat = [dict(_leaves(one.first.scenario)) for one in groups]
    paths = [
        path
        for path in dict.fromkeys(path for leaves in flat for path in leaves)
        if len({json.dumps(leaves.get(path)) for leaves in flat}) > 1
    ]
    found: dict[str, list[Any]] = {}
    if any("discipline" in path and path[-1] in _NAMES for path in paths):
        paths = [path for path in paths if "discipline" not in path]
        loaded = loaded_links([run for one in groups for run in one.runs])
        found["discipline"] = [label_of(one.first.scenario, loaded) for one in groups]
    for control in dict.fromkeys(path[:-1] for path in paths if _names_a_control(path)):
        paths = [path for path in paths if path[: len(control)] != control]
        tables = [_table(leaves, control) for leaves in flat]
        values = [control_name(table) if table else None for table in tables]
        if values not in found.values():
            found[_short_name(control, [control, *paths])] = values
    for path in paths:
        values = [leaves.get(path) for leaves in flat]
        name = _short_name(path, paths)
        if path[-1] == "sha256":  # of two versions of one algorithm
            name, values = "source", [str(value)[:8] for value in values]
        if values not in found.values():
            found[name] = values
    return [{name: values[k] for name, values in found.items()} for k in range(len(groups))]


_NAMES = ("kind", "name")
"""Fields that say which algorithm it is; those of one's own have a name."""


def _names_a_control(path: tuple[str, ...]) -> bool:
    """Whether a field says which congestion control it is."""
    return path[-2:-1] == ("congestion_control",) and path[-1] in _NAMES


def _table(leaves: Mapping[tuple[str, ...], Any], at: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a table, as the scenario has them."""
    return {path[-1]: value for path, value in leaves.items() if path[:-1] == at}


def _short_name(path: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> str:
    """As much of a path's end as tells it from the others."""
    for length in range(1, len(path)):
        if sum(other[-length:] == path[-length:] for other in others) == 1:
            return ".".join(path[-length:])
    return (
        path[-1]
        if path[-1] not in {other[-1] for other in others if other != path}
        else ".".join(path)
    )


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    """Paths and values of everything inside nested tables, except title, seed and records."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if (*path, key) not in {("title",), ("seed",), ("measure",)}:
                yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for number, inner in enumerate(value):
            name = inner.get("name", number) if isinstance(inner, Mapping) else number
            yield from _leaves(inner, (*path, str(name)))
    else:
        yield path, value


def chosen_links(
    found: Sequence[Configuration], link: str | None = None, direction: str | None = None
) -> list[LinkDirection]:
    """Directions of links that matter, the main one first: loaded ones, or those asked for.

    Args:
        found: Whose links.
        link: Of this link only; of its directions the loaded ones.
        direction: Of this direction only, loaded or not.

    Raises:
        AqmlabError: there is no such link or direction.
    """
    runs = [run for entry in found for run in entry.runs]
    known = list(dict.fromkeys(at for run in runs for at in links_of(run)))
    for what, wanted, place in (("link", link, 0), ("direction", direction, 1)):
        names = list(dict.fromkeys(at[place] for at in known))
        if wanted is not None and wanted not in names:
            raise AqmlabError(f"{what}: found {wanted}; the runs have {', '.join(names)}")
    loaded = loaded_links(runs)
    asked = [at for at in known if link in (None, at.link) and direction in (None, at.direction)]
    if not asked:
        raise AqmlabError(f"link: found {link}, which has no direction {direction}")
    both = [at for at in asked if at in loaded]
    chosen = asked if direction is not None else both or asked
    main = main_link(runs)
    return sorted(chosen, key=lambda at: at != main)


def seeds_in_words(found: Sequence[Configuration]) -> str:
    """The seeds behind a figure, and the variables that all of its points share."""
    shared = found[0].shared if found else {}
    fixed = ", ".join(f"{name} {text_of(value)}" for name, value in shared.items())
    return "; ".join(filter(None, [_seeds(found), fixed]))


def _seeds(found: Sequence[Configuration]) -> str:
    """The seeds in words."""
    seeds = sorted({run.seed for entry in found for run in entry.runs})
    counts = {len(entry.runs) for entry in found}
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    text = f"seeds {ranged(seeds, 8)}"
    return text if len(counts) == 1 else f"{text}; not all of them everywhere"
