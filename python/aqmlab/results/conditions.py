"""Conditions such as ``rate_mbit=12``: which runs, or points of a sweep, are meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.results.values import listed, matches

__all__ = ["conditions", "holds"]


_NEXT_PAIR = re.compile(r",(?=\s*[\w.-]+\s*=)")
"""A comma that ends a condition; others belong to its value."""


def conditions(where: Sequence[str], known: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
    """The values that some conditions allow, by parameter; several are alternatives.

    Args:
        where: conditions such as ``rate_mbit=12`` or ``queue=red,seed=1``.
        known: the values that each parameter has. The last part of a name is enough.

    Raises:
        AqmlabError: no parameter has the name, or it never has the value.
    """
    wanted: dict[str, list[str]] = {}
    for text in (part for one in where for part in _NEXT_PAIR.split(one)):
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise AqmlabError(f"where: found {text!r}; expected NAME=VALUE, such as seed=1")
        wanted.setdefault(_parameter(list(known), name), []).append(value)
    for name, values in wanted.items():
        for value in values:
            if not any(matches(one, value) for one in known[name]):
                have = listed(list(dict.fromkeys(known[name])), most=12)
                raise AqmlabError(
                    f"where: found {name}={value}, which no run has; {name} is one of {have}"
                )
    return wanted


def _parameter(known: Sequence[str], name: str) -> str:
    """A parameter by its name, or by the last part of it; an error if there is none."""
    ends = [one for one in known if one.rpartition(".")[2] == name.rpartition(".")[2]]
    if name in known:
        return name
    if len(ends) != 1:
        raise AqmlabError(
            f"where: found {name}{nearest(name, known)}; the runs have {', '.join(known)}"
        )
    return ends[0]


def holds(wanted: Mapping[str, Sequence[str]], parameters: Mapping[str, Any]) -> bool:
    """Whether parameters have values that the conditions allow."""
    return all(
        any(matches(parameters.get(name), value) for value in values)
        for name, values in wanted.items()
    )
