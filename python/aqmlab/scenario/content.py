"""What the text of a scenario says before the engine checks it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from aqmlab import _native
from aqmlab._util.files import special
from aqmlab.errors import ScenarioError

__all__ = ["check_named_files", "content", "value_of"]


_KEY = "file"
"""The key under which a scenario names a file."""


@lru_cache(maxsize=4)
def content(source: str) -> Mapping[str, Any]:
    """The tables of a scenario, given as TOML; none if it is no TOML, which the engine says.

    Variations of a scenario have the same text. Nobody changes what this returns.
    """
    return _tables(source)


def value_of(text: str) -> Any:  # noqa: ANN401 - whatever TOML can say
    """What the text of a field's value says; text that is no TOML is text."""
    return _tables(f"value = {text}").get("value", text)


def _tables(source: str) -> Mapping[str, Any]:
    text = _native.content(source)
    return json.loads(text) if text is not None else {}


def check_named_files(source: str, folder: Path, overrides: Iterable[tuple[str, str]]) -> None:
    """An error with the field if a scenario, or what replaces a part of it, names no file.

    The engine would open it: a pipe would let it wait without end, a device may never end. What is
    wrong with the text, or with a file that is none of these, the engine says.
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
