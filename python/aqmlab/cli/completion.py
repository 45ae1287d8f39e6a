"""What a shell offers for the values of arguments and options."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aqmlab.scenario.catalog import Catalog

__all__ = ["assigned", "catalog_names", "disciplines", "link_names"]


_FIELDS = (
    "discipline",
    "load",
    "measure.duration",
    "measure.warm_up",
    "rate",
    "seed",
    "topology.bottleneck.discipline",
    "topology.bottleneck.forward.discipline",
    "topology.bottleneck.reverse.discipline",
)
"""The fields that are varied and set most, of the many that can be."""


def _catalog() -> Catalog:
    """What there is. Every command has options whose values are completed; few are."""
    from aqmlab.scenario.catalog import Catalog

    return Catalog.load()


def catalog_names(incomplete: str) -> list[tuple[str, str]]:
    """What ``aqmlab explain`` explains: names and what they are; metrics by their last part."""
    catalog = _catalog()
    found = {
        entry.name.rpartition(".")[2] if entry.kind == "metrics" else entry.name: entry.summary
        for entry in catalog.entries
    } | catalog.summaries("links")
    return [(name, text) for name, text in found.items() if name.startswith(incomplete.lower())]


def link_names(incomplete: str) -> list[tuple[str, str]]:
    """Links that have names, and what they are."""
    found = _catalog().summaries("links")
    return [(name, text) for name, text in found.items() if name.startswith(incomplete.lower())]


def disciplines(incomplete: str) -> list[str]:
    """A list of presets of queue disciplines, as far as it goes: its last one is completed."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [
        f"{before}{comma}{name}"
        for name in _catalog().summaries("presets")
        if name.startswith(last) and name not in given
    ]


def assigned(incomplete: str) -> list[str]:
    """FIELD=A,B,...: a field, or values of a field that holds a discipline.

    bash takes the equals sign for the end of a word, unless quotation marks surround it.
    """
    field, equals, value = incomplete.partition("=")
    if not equals:
        return [f"{name}=" for name in _FIELDS if name.startswith(incomplete)]
    found = disciplines(value) if field.endswith("discipline") else []
    return [f"{field}={one}" for one in found]
