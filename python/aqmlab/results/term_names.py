"""Terms whose keys are names of the house: short names, keys, and metrics of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aqmlab.results import own_metrics, recorded
from aqmlab.results.own_metrics import Definition
from aqmlab.results.quantity import Quantity
from aqmlab.results.run import Run
from aqmlab.results.terms import Term

__all__ = ["numbers", "own", "read"]


_OWN = re.compile(r"metrics\.(\w+)@\w+")
"""The path of a metric of one's own, with the hash of its definition."""


def read(spec: Mapping[str, Any]) -> Term:
    """A term as files write it.

    The key of a metric of one's own holds the hash of its definition, so that no number stands
    for another text.
    """
    term = Term(**spec)
    return replace(term, key=_path(term.key), per=None if term.per is None else _path(term.per))


def own(term: Term) -> Iterator[Definition]:
    """The metrics of one's own that a term is made of."""
    for path in (term.key, term.per or ""):
        found = _OWN.fullmatch(path)
        if found is not None:
            yield own_metrics.definition(found[1])


def numbers(run: Run) -> Mapping[str, Any]:
    """What terms are numbers of: the summary, what was recorded, and metrics of one's own."""
    return {**recorded.numbers(run), "metrics": _Own(run)}


def _path(name: str) -> str:
    """The path of a name in :func:`numbers`."""
    if name == "measured_s" or name.startswith("recorded."):
        return name
    found = Quantity.read(name)
    if found.own is None:
        return found.key
    return own_metrics.kept_name(own_metrics.definition(found.last))


@dataclass(frozen=True)
class _Own(Mapping[str, float | None]):
    """The metrics of one's own by name and hash; computed when they are asked for."""

    run: Run

    def __getitem__(self, name: str) -> float | None:
        """The number of a metric; None: it was not measured."""
        one = self._defined()[name]
        return own_metrics.values(self.run, [one])[one.name]

    def __iter__(self) -> Iterator[str]:
        """What is defined."""
        return iter(self._defined())

    def __len__(self) -> int:
        """How many these are."""
        return len(self._defined())

    def _defined(self) -> dict[str, Definition]:
        found = own_metrics.defined()
        return {own_metrics.kept_name(one).partition(".")[2]: one for one in found}
