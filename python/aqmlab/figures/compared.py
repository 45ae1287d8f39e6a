"""The curves of a figure: a configuration each, as many as can be told apart."""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.errors import AqmlabError
from aqmlab.figures.theme import MOST_SERIES, Look
from aqmlab.results.configurations import (
    Configuration,
    Sources,
    configurations,
    example,
    in_words,
    values_of,
)

__all__ = ["check_curves", "compared"]


def compared(sources: Sources, look: Look) -> list[Configuration]:
    """The configurations of some runs, each a curve of its own; an error if they are too many."""
    found = configurations(sources, look.names)
    check_curves(found, len(found))
    return found


def check_curves(found: Sequence[Configuration], curves: int) -> None:
    """An error if a figure has more curves than it can tell apart; it names what to keep."""
    if curves <= MOST_SERIES:
        return
    names = dict.fromkeys(name for entry in found for name in entry.parameters)
    varied = [name for name in names if len(values_of(found, name)) > 1]
    text = f"a figure shows at most {MOST_SERIES} curves, not {curves}; "
    if not varied:
        raise AqmlabError(f"{text}name fewer runs")
    widest = max(varied, key=lambda name: len(values_of(found, name)))
    raise AqmlabError(
        f"{text}the runs differ in {in_words(found, varied)}; keep some of them, such as with "
        f"{example(found, widest)}"
    )
