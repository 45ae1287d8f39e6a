"""Reading a TOML file value by value, with errors that name the field by its path."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from aqmlab._util.files import read_text
from aqmlab._util.lazy import tomllib
from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError

MAX_SHOWN = 80
"""Most characters of a wrong value that a message quotes."""

MOST_WHOLE = 2**63 - 1
"""The largest whole number, up or down: what TOML and a column of a table can hold."""

_MAX_BYTES = 16 * 2**20
"""Largest file that :func:`toml_table` reads."""

Scalar = str | int | float | bool
"""A value that stands for itself."""


def read_toml(path: Path, what: str, limit: int) -> Field:
    """A TOML file of at most `limit` bytes; `what` names it in messages."""
    try:
        return Field("", tomllib.loads(read_text(path, what, limit)))
    except tomllib.TOMLDecodeError as error:
        raise AqmlabError(f"{path}: is not TOML: {error}") from None


def toml_table(path: Path, what: str) -> dict[str, Any]:
    """What a TOML file of at most 16 MiB says; `what` names it in messages."""
    return dict(read_toml(path, what, _MAX_BYTES).value)


@dataclass(frozen=True)
class Field:
    """A value of the file and where it stands."""

    path: str
    """Keys joined by dots; empty for the file as a whole."""
    value: Any

    def wrong(self, message: str) -> NoReturn:
        """Raises an error about this field."""
        raise AqmlabError(f"{self.path}: {message}" if self.path else message)

    def expected(self, what: str) -> NoReturn:
        """Raises an error that says what was found and what would be right."""
        self.wrong(f"found {shown(self.value)}; expected {what}")

    def inner(self, key: object) -> Field:
        """What stands under a key, or None."""
        value = self.value.get(key) if isinstance(self.value, Mapping) else self.value[key]
        return Field(f"{self.path}.{key}" if self.path else str(key), value)

    def table(self, known: Iterable[str] | None = None, what: str = "a table") -> dict[str, Field]:
        """The fields of a table by key; an error for keys that are not `known` (None: any)."""
        if not isinstance(self.value, Mapping):
            self.expected(what)
        for key in self.value if known is not None else ():
            if key not in (allowed := list(known or ())):
                self.inner(key).wrong(
                    f"unknown key{nearest(key, allowed)} (allowed: {', '.join(allowed)})"
                )
        return {key: self.inner(key) for key in self.value}

    def items(self, what: str) -> list[Field]:
        """The elements of a list that is not empty."""
        if not isinstance(self.value, list) or not self.value:
            self.expected(what)
        return [self.inner(index) for index in range(len(self.value))]

    def text(self, what: str) -> str:
        """A text that is not empty."""
        if not isinstance(self.value, str) or not self.value.strip():
            self.expected(what)
        return self.value

    def whole(self, what: str, least: int = 0) -> int:
        """A whole number from `least` up."""
        self._refuse_the_huge()
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < least:
            self.expected(what)
        return self.value

    def number(self, what: str = "a number") -> int | float:
        """A finite number."""
        self._refuse_the_huge()
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not is_number or not math.isfinite(self.value):
            self.expected(what)
        number: int | float = self.value
        return number

    def scalar(self) -> Scalar:
        """A text, a number, or true or false."""
        self._refuse_the_huge()
        if isinstance(self.value, float):
            return self.number()
        if not isinstance(self.value, str | int | bool):
            self.expected("a text, a number, true or false")
        return self.value

    def _refuse_the_huge(self) -> None:
        """Raises an error for a whole number that only Python can hold."""
        if isinstance(self.value, int) and abs(self.value) > MOST_WHOLE:
            self.expected(f"a whole number up to {MOST_WHOLE}")


def shown(value: object) -> str:
    """A value as a message quotes it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
