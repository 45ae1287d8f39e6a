"""The numbers of a run in little room: thousands of them are held at a time."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from aqmlab.results.metrics import flattened
from aqmlab.results.run import Run
from aqmlab.results.warm_up import warm_up_columns

__all__ = ["Layout", "Numbers", "layout_of", "link_tables"]


@dataclass(frozen=True)
class Layout:
    """What the numbers of some runs are called, and which are whole."""

    names: tuple[str, ...]
    """Paths in ``summary.json``, and the columns of the test of the warm-up."""
    whole: bytes
    """1 for each whole number, else 0."""

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each number is."""
        return {name: place for place, name in enumerate(self.names)}

    def __reduce__(self) -> tuple[Any, ...]:
        """Runs that other processes made share it, too."""
        return layout_of, (self.names, self.whole)


@lru_cache(maxsize=256)
def layout_of(names: tuple[str, ...], whole: bytes) -> Layout:
    """The one layout of these names: runs share it."""
    return Layout(names, whole)


@dataclass(frozen=True)
class Numbers:
    """Every number of a run."""

    layout: Layout
    values: array[float]
    """In the order of the layout; not a number where nothing was measured."""

    @classmethod
    def of(cls, run: Run, more: Mapping[str, float | None] | None = None) -> Numbers:
        """Those of a run, with the test of its warm-up.

        Args:
            run: the run.
            more: further numbers of it, by name.
        """
        found = {**flattened(run.summary), **warm_up_columns(run), **(more or {})}
        whole = bytes(isinstance(value, int) for value in found.values())
        values = (math.nan if value is None else value for value in found.values())
        return cls(layout_of(tuple(found), whole), array("d", values))

    def get(self, name: str) -> float | None:
        """One of them; None if it was not measured."""
        place = self.layout.places.get(name)
        if place is None or math.isnan(value := self.values[place]):
            return None
        return int(value) if self.layout.whole[place] else value

    @property
    def summary(self) -> Mapping[str, Any]:
        """What they say of links, as ``summary.json`` does."""
        return link_tables({name: self.get(name) for name in self.layout.names})


def link_tables(numbers: Mapping[str, float | None]) -> dict[str, Any]:
    """What numbers say of links, nested as in ``summary.json``."""
    links: dict[str, dict[str, dict[str, float]]] = {}
    for name, value in numbers.items():
        if value is not None and (place := _link_place(name)) is not None:
            link, direction, key = place
            links.setdefault(link, {}).setdefault(direction, {})[key] = value
    return {"links": links}


@lru_cache(4096)
def _link_place(name: str) -> tuple[str, str, str] | None:
    """Link, direction and key of a number of a link; None of any other."""
    section, *place = name.split(".")
    return (place[0], place[1], place[2]) if section == "links" and len(place) == 3 else None
