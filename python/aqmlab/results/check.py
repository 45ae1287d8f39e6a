"""Whether a run directory's files are what aqmlab writes there, as far as all else relies on it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError

__all__ = ["check_summary"]


_NUMBERS = ("seed", "measured_s", "simulated_s")
_ALL = "all"
"""All classes of traffic together."""


def check_summary(file: Path, summary: Mapping[str, Any]) -> None:
    """An error that names the file and the key if a summary is none that aqmlab wrote."""
    try:
        _check(summary)
    except AqmlabError as error:
        raise AqmlabError(f"{file}: {error}; this is no summary of aqmlab") from None


def _check(summary: Mapping[str, Any]) -> None:
    """An error that names the key that is missing or wrong."""
    for name in _NUMBERS:
        _number(name, _inner("", summary, name))
    links = _inner("", summary, "links")
    if not any(_table("links", links).values()):
        raise AqmlabError("links: there is no link")
    for link, directions in links.items():
        for direction, values in _table(f"links.{link}", directions).items():
            path = f"links.{link}.{direction}"
            _inner(path, values, "utilization")
            _numbers(path, values)
    for name in ("responses", "flows"):
        rows = _inner("", summary, name)
        _inner(name, rows, _ALL)
        for row, values in rows.items():
            _numbers(f"{name}.{row}", values)
    if "live" in summary:
        _inner("live", summary["live"], "valid")


def _inner(path: str, value: object, key: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """What lies under a key that a table must have."""
    table = _table(path, value)
    if key not in table:
        raise AqmlabError(f"{path}: there is no {key}" if path else f"there is no {key}")
    return table[key]


def _table(path: str, value: object) -> Mapping[str, Any]:
    """A value that must be a table."""
    if not isinstance(value, Mapping):
        raise AqmlabError(f"{path}: found {_shown(value)}; expected a table")
    return value


def _numbers(path: str, value: object) -> None:
    """An error if a table holds anything but numbers, nulls and tables of these."""
    for key, inner in _table(path, value).items():
        if inner is None or _is_number(inner):
            continue
        if not isinstance(inner, Mapping):
            _number(f"{path}.{key}", inner)
        _numbers(f"{path}.{key}", inner)


def _number(path: str, value: object) -> None:
    """An error if a value is no finite number."""
    if not _is_number(value):
        raise AqmlabError(f"{path}: found {_shown(value)}; expected a number")


def _is_number(value: object) -> bool:
    """Whether it is a finite number, as JSON is read."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _shown(value: object) -> str:
    """A value as JSON has it, or its beginning."""
    return json.dumps(value, ensure_ascii=False)[:80]
