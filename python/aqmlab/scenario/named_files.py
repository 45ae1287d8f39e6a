"""The files that a scenario names: refused before they are opened if they are none.

The engine reads them. A pipe would let it wait without end, a device may never end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aqmlab._util.files import special
from aqmlab.errors import ScenarioError
from aqmlab.scenario.content import content, value_of

__all__ = ["check_named_files"]


_KEY = "file"
"""The key under which a scenario names a file."""


def check_named_files(source: str, folder: Path, overrides: Iterable[tuple[str, str]]) -> None:
    """An error with the field if a scenario, or what replaces a part of it, names no file.

    What is wrong with its text, or with a file that is none of these, the engine says.
    """
    values = [(place, value_of(text)) for place, text in overrides]
    for place, value in [("", content(source)), *values]:
        for field, name in _named(place, value):
            if (found := special(folder / name)) is not None:
                raise ScenarioError(f"{field}: found {json.dumps(name)}, which is {found}")


def _named(place: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - whatever TOML can say
    """The fields within a value that name files, and what they name."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named(f"{place}.{key}" if place else key, inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            name = inner.get("name", number) if isinstance(inner, Mapping) else number
            yield from _named(f"{place}.{name}", inner)
    elif isinstance(value, str) and place.rpartition(".")[2] == _KEY:
        yield place, value
