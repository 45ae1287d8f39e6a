"""The columns of a run's tables that a metric of one's own may read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab import _native

__all__ = [
    "TABLES",
    "Column",
    "column_of",
    "lacking",
    "stored_name",
]


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: str
    """``text``, ``bool``, or a kind of number."""
    unit: str
    """Empty: none."""


_NAMES = ("packets", "responses", "flows", "queue", "flow_trace", "breakdown", "distribution")
_NS = "_ns"


def _declared() -> dict[str, tuple[Column, ...]]:
    """What the engine says of its tables; a time in nanoseconds has a name in seconds, too."""
    by_file = {one["file"]: one["columns"] for one in json.loads(_native.result_schema())["tables"]}
    found = {}
    for name in _NAMES:
        columns: list[Column] = []
        for one in by_file[f"{name}.parquet"]:
            if one["name"].endswith(_NS):
                columns.append(Column(f"{one['name'][: -len(_NS)]}_s", one["kind"], "s"))
            columns.append(Column(one["name"], one["kind"], one["unit"] or ""))
        found[name] = tuple(columns)
    return found


TABLES: Mapping[str, Sequence[Column]] = _declared()
"""The columns of each table."""
_OF_LINKS = {
    table: [
        (re.compile(re.sub(r"<\w+>", r"\\w+", column.name)), column)
        for column in columns
        if "<" in column.name
    ]
    for table, columns in TABLES.items()
}
"""Columns whose names hold those of links."""


def column_of(table: str, name: str) -> Column | None:
    """A column of a table; None: it has none of this name."""
    for column in TABLES[table]:
        if column.name == name and "<" not in name:
            return column
    for pattern, column in _OF_LINKS[table]:
        if pattern.fullmatch(name):
            return Column(name, column.kind, column.unit)
    return None


def stored_name(table: str, name: str) -> str:
    """What the file calls a column."""
    found = column_of(table, name)
    if found is not None and name.endswith("_s") and found.unit == "s":
        nanoseconds = f"{name[:-2]}{_NS}"
        if column_of(table, nanoseconds) is not None:
            return nanoseconds
    return name


def lacking(table: str, scenario: Mapping[str, Any], *, always: bool = False) -> str:
    """Why the runs of a scenario have no such table; nothing if they have it.

    Args:
        table: its name.
        scenario: the effective scenario.
        always: whether a run has none, whatever its scenario says.
    """
    needed = recording(table, scenario)
    if needed is None:
        return f"this metric reads {table}.parquet, which these runs lack" if always else ""
    field, value = needed
    return (
        f"this metric reads {table}.parquet, which these runs did not record; run them again with "
        f"--set '{field}={value}'"
    )


def recording(table: str, scenario: Mapping[str, Any]) -> tuple[str, str] | None:
    """The field of a scenario, and its value in TOML, with which runs have a table.

    None: they have it.
    """
    measure = scenario.get("measure") or {}
    recorded = list(measure.get("record") or ())
    if table in ("breakdown", "flow_trace"):
        is_there = bool(measure.get(table))
        value = "true" if table == "breakdown" else "{ flows = 1 }"
        return None if is_there else (f"measure.{table}", value)
    if table in recorded or table == "distribution":
        return None
    return "measure.record", json.dumps([*recorded, table])
