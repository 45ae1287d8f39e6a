"""What plug-ins declare, by the hash of their source: known wherever one of their runs is read.

Loading a plug-in notes what it declares, a run directory keeps it, and opening that directory notes
it again: labels and tables need no code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["declared_by", "defaults_of", "note"]

Entry = Mapping[str, Any]
"""Kind, name, summary, parameters and hash of a plug-in."""

_KNOWN: dict[str, dict[str, Entry]] = {}
"""By hash of the source and by name."""


def note(entries: Sequence[Entry]) -> None:
    """Remembers what plug-ins declare, as a run directory keeps it."""
    for entry in entries:
        _KNOWN.setdefault(str(entry["sha256"]), {})[str(entry["name"])] = entry


def declared_by(sha256: str) -> list[Entry]:
    """What the plug-ins of a source declare."""
    return list(_KNOWN.get(sha256, {}).values())


def defaults_of(table: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The defaults of a plug-in's own parameters; None if nobody knows them.

    Args:
        table: the plug-in in an effective scenario.
    """
    entry = _KNOWN.get(str(table.get("sha256")), {}).get(str(table.get("name")))
    if entry is None:
        return None
    return {one["name"]: one.get("default") for one in entry["parameters"]}
