"""Values of parameters: their numbers, units and words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["described", "listed", "matches", "number_of", "text_of", "unit_of"]


_NUMBER = re.compile(r"([-+]?[\d.]+(?:e[-+]?\d+)?)\s*(.*)", re.IGNORECASE | re.DOTALL)


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


def matches(value: Any, wanted: str) -> bool:  # noqa: ANN401 - whatever a scenario holds
    """Whether a value is the one that somebody wrote: 12 for 12.0, "12 Mbit/s" or "12"."""
    if text_of(value).casefold() == wanted.casefold():
        return True
    written = _NUMBER.fullmatch(wanted.strip())
    number = number_of(value)
    if written is None or number is None:
        return False
    try:
        return float(written[1]) == number and written[2] in ("", unit_of(value))
    except ValueError:
        return False


def described(values: Mapping[str, Any], names: Sequence[str]) -> str:
    """Some parameters in words: names such as those of queues speak for themselves."""
    return ", ".join(
        text_of(value)
        if isinstance(value, str) and number_of(value) is None
        else f"{name} {text_of(value)}"
        for name in names
        for value in [values.get(name)]
    )


def listed(values: Sequence[Any], most: int = 6) -> str:
    """The first of some values in words."""
    shown = [text_of(value) for value in values[:most]]
    return ", ".join([*shown, *(["..."] if len(values) > most else [])])
