"""Parameters: what tells configurations from each other, and its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.figures.cases import Case

__all__ = [
    "chosen",
    "default_axis",
    "is_number",
    "named",
    "number_of",
    "text_of",
    "unit_of",
    "values_of",
]


def named(found: Sequence[Case]) -> list[str]:
    """The parameters that take several values.

    Raises:
        AqmlabError: there is none: the runs differ in nothing but their seed.
    """
    names = dict.fromkeys(name for case in found for name in case.parameters)
    varied = [name for name in names if len(values_of(found, name)) > 1]
    if not varied:
        raise AqmlabError("the runs differ in no parameter; name runs of several, or a sweep")
    return varied


def chosen(found: Sequence[Case], name: str) -> str:
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


def default_axis(found: Sequence[Case], *, but: Sequence[str] = ()) -> str:
    """The parameter with the most numeric values; without one the first of them."""
    names = [name for name in named(found) if name not in but]
    if not names:
        raise AqmlabError(
            f"the runs differ in {', '.join(but)} alone; a second parameter is needed"
        )
    numeric = [name for name in names if is_number(found, name)]
    return max(numeric or names[:1], key=lambda name: len(values_of(found, name)))


def values_of(found: Sequence[Case], name: str) -> list[Any]:
    """The values of a parameter, in their order: numbers rise."""
    values = list(
        {text_of(case.parameters.get(name)): case.parameters.get(name) for case in found}.values()
    )
    numbers = [number_of(value) for value in values]
    if all(one is not None for one in numbers):
        return [
            value for _, value in sorted(zip(numbers, values, strict=True), key=lambda p: p[0] or 0)
        ]
    return values


def is_number(found: Sequence[Case], name: str) -> bool:
    """Whether a parameter's values are numbers of one unit."""
    values = values_of(found, name)
    return (
        all(number_of(value) is not None for value in values)
        and len({unit_of(value) for value in values}) == 1
    )


def number_of(value: Any) -> float | None:  # noqa: ANN401 - whatever a scenario holds
    """The number of a value such as 0.9 or "120 packets"; None if it is none."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(str(value).split(" ")[0])
    except ValueError:
        return None


def unit_of(value: Any) -> str:  # noqa: ANN401 - whatever a scenario holds
    """The unit of a value such as "120 packets"."""
    return str(value).partition(" ")[2] if isinstance(value, str) else ""


def text_of(value: Any) -> str:  # noqa: ANN401 - whatever a scenario holds
    """A value in words."""
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
