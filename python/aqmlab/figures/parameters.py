"""Parameters: what tells configurations from each other, and its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.results import subscribers
from aqmlab.results.configurations import Configuration, values_of
from aqmlab.results.values import number_of, text_of, unit_of

__all__ = [
    "SUBSCRIBERS",
    "chosen",
    "default_axis",
    "is_number",
    "named",
    "needed",
    "with_subscribers",
]

SUBSCRIBERS = "subscribers"
"""A parameter that follows from others: how many subscribers an access network has."""


def named(found: Sequence[Configuration]) -> list[str]:
    """The parameters that take several values.

    Raises:
        AqmlabError: there is none: the runs differ in nothing but their seed.
    """
    names = dict.fromkeys(name for entry in found for name in entry.parameters)
    varied = [name for name in names if len(values_of(found, name)) > 1]
    if not varied:
        raise AqmlabError("the runs differ in no parameter; name runs of several, or a sweep")
    return varied


def with_subscribers(found: Sequence[Configuration]) -> list[Configuration]:
    """The configurations with one more parameter, unless they have it: their subscribers.

    Raises:
        AqmlabError: one of them has no tree of rates.
    """
    if any(SUBSCRIBERS in entry.parameters for entry in found):
        return list(found)
    more = []
    for entry in found:
        count = subscribers.count(entry.runs[0].scenario)
        if count is None:
            raise AqmlabError(f"x: found {SUBSCRIBERS}, but {entry.label} has no tree of rates")
        parameters = {**entry.parameters, SUBSCRIBERS: count}
        more.append(replace(entry, parameters=parameters))
    return more


def chosen(found: Sequence[Configuration], name: str) -> str:
    """A parameter by its name, or by the last part of it; an error if there is none."""
    names = named(found)
    matching = [one for one in names if one == name] or [
        one for one in names if one.split(".")[-1] == name.rsplit(".", maxsplit=1)[-1]
    ]
    if len(matching) != 1:
        raise AqmlabError(
            f"the runs have no parameter {name}{nearest(name, names)}; they differ in "
            f"{', '.join(names)}"
        )
    return matching[0]


def default_axis(found: Sequence[Configuration], *, but: Sequence[str] = ()) -> str:
    """The numeric parameter with the most values; if none is numeric, the first parameter."""
    names = [name for name in named(found) if name not in but]
    if not names:
        raise AqmlabError(
            f"the runs differ in {', '.join(but)} alone; a second parameter is needed"
        )
    numeric = [name for name in names if is_number(found, name)]
    return max(numeric or names[:1], key=lambda name: len(values_of(found, name)))


def is_number(found: Sequence[Configuration], name: str) -> bool:
    """Whether a parameter's values are numbers of one unit."""
    values = values_of(found, name)
    return (
        all(number_of(value) is not None for value in values)
        and len({unit_of(value) for value in values}) == 1
    )


def needed(found: Sequence[Configuration], along: str, beside: Sequence[str]) -> list[str]:
    """The parameters that tell configurations apart which an axis and others leave together.

    Parameters that change together, such as the variables of a ``zip`` or ``table`` axis, count
    once: the first of them is named. Names are never taken for a part of a numeric axis, since a
    curve through its values would join different things.
    """
    names = [name for name in named(found) if name not in (along, *beside)]
    for name in reversed(names):
        fewer = [one for one in names if one != name]
        apart = is_number(found, along) and not is_number(found, name)
        known = [*beside, *([] if apart else [along])]
        if _tell_apart(found, [*known, *fewer]) == _tell_apart(found, [*known, *names]):
            names = fewer
    return names


def _tell_apart(found: Sequence[Configuration], names: Sequence[str]) -> int:
    """How many configurations some parameters tell apart."""
    return len({tuple(text_of(entry.parameters.get(name)) for name in names) for entry in found})
