"""``aqmlab list``: what there is."""

from __future__ import annotations

from enum import Enum

from aqmlab._util.console import print_json, show
from aqmlab.cli import catalog_tables as tables
from aqmlab.cli.options import Json
from aqmlab.scenario.catalog import Catalog, scenario_files
from aqmlab.scenario.link_files import link_names

__all__ = ["command"]


_SHOWN = 3
"""Names that stand for the others of their kind."""


class _ListedKind(str, Enum):
    """What `aqmlab list` lists."""

    disciplines = "disciplines"
    presets = "presets"
    transports = "transports"
    traffic = "traffic"
    profiles = "profiles"
    links = "links"
    scenarios = "scenarios"
    papers = "papers"


def command(
    kind: _ListedKind | None = None,
    as_json: Json = False,
) -> None:
    """List disciplines, presets, traffic, links and other names.

    Options:
        kind (KIND): What to list; default: the names of the kinds, with a few examples.
    """
    catalog = Catalog.load()
    if kind is None:
        kinds = {each.value: _overview(_names(each, catalog)) for each in _ListedKind}
        if as_json:
            print_json(kinds)
        else:
            show(tables.list_table("kind", kinds))
        return
    entries = _listed(kind, catalog)
    if as_json:
        print_json(entries)
        return
    show(tables.list_table(kind.value, entries))


def _listed(kind: _ListedKind, catalog: Catalog) -> dict[str, str]:
    """Names and what they mean."""
    if kind is _ListedKind.scenarios:
        from aqmlab.scenario.scenario import Scenario

        return {str(file): Scenario.load(file).title for file in scenario_files()}
    if kind is _ListedKind.papers:
        from aqmlab.papers.names import titles

        return titles()
    return catalog.summaries(kind.value)


def _names(kind: _ListedKind, catalog: Catalog) -> list[str]:
    """Names alone: no scenario and no paper is read for them."""
    if kind is _ListedKind.scenarios:
        return [str(file) for file in scenario_files()]
    if kind is _ListedKind.papers:
        from aqmlab.papers.names import names

        return names()
    if kind is _ListedKind.links:
        return link_names()
    return list(catalog.summaries(kind.value))


def _overview(names: list[str]) -> str:
    """How many there are, and the first of them."""
    return f"{len(names)}: {', '.join(names[:_SHOWN])}, ..."
