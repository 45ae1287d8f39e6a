"""What a figure compares: configurations, each with its runs and what tells it from the others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from aqmlab.errors import AqmlabError
from aqmlab.reports.sources import gather, sweep_folder
from aqmlab.results.groups import Group, group
from aqmlab.results.links import LinkDirection, links_of, loaded_links, main_link
from aqmlab.results.queues import control_name, label_of
from aqmlab.results.run import Run

__all__ = ["Case", "Source", "Sources", "cases", "chosen_links", "seeds_in_words"]


Source: TypeAlias = Run | str | os.PathLike[str]
"""A run, or a place that :func:`aqmlab.reports.sources.gather` knows."""
Sources: TypeAlias = Source | Sequence[Source]
_TABLE = "results.parquet"


@dataclass(frozen=True)
class Case:
    """Runs of one configuration."""

    group: Group
    parameters: Mapping[str, Any]
    """What tells it from the others: the variables of its sweep, or fields of its scenario."""

    @property
    def label(self) -> str:
        """Its name."""
        return self.group.label

    @property
    def runs(self) -> tuple[Run, ...]:
        """Its runs, one per seed."""
        return self.group.runs


def cases(sources: Sources) -> list[Case]:
    """The configurations of some runs, in the order in which they first appear.

    Raises:
        AqmlabError: there is no run, or something else is at one of the places.
    """
    listed = [sources] if isinstance(sources, Run | str | os.PathLike) else list(sources)
    runs: list[Run] = []
    variables: dict[str, Mapping[str, Any]] = {}
    for source in listed:
        if isinstance(source, Run):
            runs.append(source)
            continue
        runs += [run for run in gather([source]) if run.path not in {one.path for one in runs}]
        variables |= _variables(sweep_folder(Path(source)) or Path(source))
    if not runs:
        raise AqmlabError("a figure needs at least one run")
    groups = group(runs)
    known = [variables.get(one.first.path.name) for one in groups]
    swept = all(found is not None for found in known)
    parameters: Sequence[Mapping[str, Any]] = (
        [found or {} for found in known] if swept else _differing(groups)
    )
    return [Case(one, own) for one, own in zip(groups, parameters, strict=True)]


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
    """Paths and values of everything inside nested tables, but for title, seed and records."""
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
    found: Sequence[Case], link: str | None = None, direction: str | None = None
) -> list[LinkDirection]:
    """Directions of links that matter, the main one first: loaded ones, or those asked for.

    Args:
        found: Whose links.
        link: Of this link only; of its directions the loaded ones.
        direction: Of this direction only, loaded or not.

    Raises:
        AqmlabError: there is no such link or direction.
    """
    runs = [run for case in found for run in case.runs]
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


def seeds_in_words(found: Sequence[Case]) -> str:
    """The seeds behind a figure."""
    seeds = sorted({run.seed for case in found for run in case.runs})
    counts = {len(case.runs) for case in found}
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        text = f"seeds {seeds[0]} to {seeds[-1]}"
    else:
        text = f"seeds {', '.join(map(str, seeds[:8]))}{', ...' if len(seeds) > 8 else ''}"
    return text if len(counts) == 1 else f"{text}; not all of them everywhere"
