"""What the text of a scenario says before the engine checks it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from aqmlab import _native

__all__ = ["content", "value_of"]


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
