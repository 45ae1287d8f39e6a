"""Tables of what there is, for a terminal; they load nothing that reads results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab._util.table import TableModel, strong
from aqmlab.scenario.catalog import CatalogEntry

if TYPE_CHECKING:
    from aqmlab.results.needs import Need

__all__ = ["explanation", "list_table", "needs"]


def list_table(kind: str, entries: Mapping[str, str]) -> TableModel:
    """Names and what they mean."""
    table = TableModel("", [kind], texts=["what it is"])
    for name, summary in entries.items():
        table.add_row(name, summary)
    return table


def explanation(entry: CatalogEntry) -> list[str | TableModel]:
    """What something is, and its parameters."""
    text = f" ({entry.kind})\n{entry.summary}"
    if entry.about:
        text += _origin(entry.about)
    head = strong(entry.name, text)
    if not entry.parameters:
        return [head]
    has_values = any("value" in parameter for parameter in entry.parameters)
    keys = ("parameter", "value" if has_values else "default")
    table = TableModel("", keys, texts=["meaning"])
    for parameter in entry.parameters:
        table.add_row(parameter["name"], _given(parameter), _meaning(parameter))
    departures = [f"- {text}" for text in (entry.about or {}).get("departures", [])]
    if departures:
        return [head, "", table, "", strong("differences from the source"), *departures]
    return [head, "", table]


def needs(found: Sequence[Need], version: int) -> list[str | TableModel]:
    """What people need, and from where on a number is good or poor."""
    table = TableModel("", ["who", "number"], ["good", "poor", "noticed from"], ["source"])
    for one in found:
        signs = ("up to ", "from ") if one.less_is_better else ("from ", "below ")
        limits = (
            "-" if limit is None else f"{sign}{_plain_number(one, limit)}"
            for sign, limit in zip(signs, (one.good, one.poor), strict=True)
        )
        room = [f"{100 * one.room_share:g} %"] if one.room_share else []
        if one.room:
            room.append(_plain_number(one, one.room).replace("%", "points"))
        table.add_row(one.group, one.key, *limits, ", ".join(room), one.source)
    return [
        strong("needs", f" (version {version}): what a number must be for the people of a class"),
        "Of two limits of what is noticed the larger counts.",
        "",
        table,
    ]


def _plain_number(need: Need, value: float) -> str:
    """A value with its unit, in as few digits as it has."""
    return f"{value * need.scale:g} {need.unit}".strip()


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
