"""What a TOML file describes, for messages about a file that was given to another command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aqmlab._util.files import read_text
from aqmlab._util.lazy import tomllib
from aqmlab.errors import AqmlabError

__all__ = ["file_kind", "run_with", "table_kind"]


_MAX_BYTES = 16 * 2**20
"""Largest file that is read: that of scenarios and sweeps."""


def table_kind(content: Mapping[str, Any]) -> str:
    """``scenario``, ``sweep``, or nothing if it is neither."""
    if isinstance(content.get("scenario"), str) and "topology" not in content:
        return "sweep"
    return "scenario" if "topology" in content or "traffic" in content else ""


def file_kind(path: Path) -> str:
    """The kind of a file: ``scenario``, ``sweep``, or nothing if it is neither or unreadable."""
    try:
        return table_kind(tomllib.loads(read_text(path, "TOML", _MAX_BYTES)))
    except (AqmlabError, tomllib.TOMLDecodeError, RecursionError):
        return ""


def run_with(path: Path, kind: str) -> str:
    """What to do with a file of some kind: "is a scenario; run it with `aqmlab run FILE`"."""
    import shlex

    command = {"scenario": "run", "sweep": "sweep"}[kind]
    return f"is a {kind}; run it with `aqmlab {command} {shlex.quote(str(path))}`"
