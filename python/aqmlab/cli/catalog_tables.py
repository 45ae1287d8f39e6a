"""Tables of what there is, for a terminal; they load nothing that reads results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aqmlab._util.table import TableModel, strong
from aqmlab.scenario.catalog import Entry

__all__ = ["explanation", "list_table"]


def list_table(kind: str, entries: Mapping[str, str]) -> TableModel:
    """Names and what they mean."""
    table = TableModel()
    table.add_key(kind)
    table.add_text("what it is")
    for name, summary in entries.items():
        table.add_row(name, summary)
    return table


def explanation(entry: Entry) -> list[str | TableModel]:
    """What something is, and its parameters."""
    text = f" ({entry.kind})\n{entry.summary}"
    if entry.about:
        text += _origin(entry.about)
    head = strong(entry.name, text)
    if not entry.parameters:
        return [head]
    table = TableModel()
    has_values = any("value" in parameter for parameter in entry.parameters)
    table.add_key("parameter")
    table.add_key("value" if has_values else "default")
    table.add_text("meaning")
    for parameter in entry.parameters:
        table.add_row(parameter["name"], _given(parameter), _meaning(parameter))
    departures = [f"- {text}" for text in (entry.about or {}).get("departures", [])]
    if departures:
        return [head, "", table, "", strong("departures from the source"), *departures]
    return [head, "", table]


def _origin(about: Mapping[str, Any]) -> str:
    """What a discipline is for and where it comes from."""
    lines = {"": about["purpose"], "source: ": about["paper"], "memory: ": about["memory"]}
    return "\n" + "\n".join(f"{key}{text}" for key, text in lines.items())


def _given(parameter: Mapping[str, Any]) -> str:
    """The value of a profile's parameter, the default of a kind's."""
    if parameter.get("required"):
        return "required"
    value = parameter.get("value", parameter.get("default"))
    return "-" if value is None else _plain(value)


def _meaning(parameter: Mapping[str, Any]) -> str:
    """What a parameter is, then a profile's note or the words that may stand there."""
    words = [f"{word['name']}: {word['description']}" for word in parameter.get("words", [])]
    lines = [parameter["description"], parameter.get("note", ""), *words]
    return "\n".join(filter(None, lines))


def _plain(value: object) -> str:
    """A value as a scenario would write it, more or less."""
    return value if isinstance(value, str) else json.dumps(value)
