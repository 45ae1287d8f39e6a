"""``aqmlab explain``: what something is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from aqmlab._util.console import out, print_json, say, show
from aqmlab.cli import catalog_tables as tables
from aqmlab.cli.build import Arg
from aqmlab.cli.completion import catalog_names
from aqmlab.cli.options import Json, Plugins
from aqmlab.scenario.catalog import Catalog

if TYPE_CHECKING:
    from aqmlab.scenario.foreign import Foreign

__all__ = ["command"]


def command(
    name: Annotated[
        str,
        Arg(
            "NAME",
            "Name of a discipline, preset, profile, traffic model, link or metric, or a word of "
            "the results. `needs` prints which values are good or poor. For settings of Linux or "
            "OpenWrt ('tc: ...', 'sqm: ...', 'sysctl: ...', or a file with such lines), the "
            "command prints the same settings as TOML for a scenario.",
            complete=catalog_names,
        ),
    ],
    as_json: Json = False,
    plugin: Plugins = None,  # noqa: ARG001 - its callback has loaded them
) -> None:
    """Explain a name or word, such as a discipline or a metric."""
    if name == "needs":
        _explain_needs(as_json=as_json)
        return
    if ":" in name or os.path.isfile(name):  # noqa: PTH113 - pathlib takes longer to load
        from aqmlab.scenario.foreign import foreign

        if (said := foreign(name)) is not None:
            _explain_foreign(said, as_json=as_json)
            return
    found = Catalog.load().find(name)
    if as_json:
        print_json([entry.to_json() for entry in found])
        return
    for entry in found:
        show(*tables.explanation(entry))


def _explain_foreign(said: Foreign, *, as_json: bool) -> None:
    """What another program's text is in TOML, and what of it has no counterpart."""
    if as_json:
        print_json(said.to_json())
        return
    out(said.toml)
    for text in said.notes:
        say(f"note: {text}")
    for text in said.without:
        say(f"no counterpart: {text}")


def _explain_needs(*, as_json: bool) -> None:
    """The limits from which a number is good or poor."""
    from dataclasses import asdict

    from aqmlab.results.needs import NEEDS, VERSION

    if as_json:
        print_json({"version": VERSION, "needs": [asdict(one) for one in NEEDS]})
        return
    show(*tables.needs(NEEDS, VERSION))
