"""What a search varies: ``FIELD=LOW..HIGH``, with a unit and the words of a sweep's ranges."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NoReturn

from aqmlab._util.fields import Field, Scalar
from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario import vary
from aqmlab.scenario.scenario import inline
from aqmlab.scenario.short import TOP, full_path, is_short
from aqmlab.sweeps.axes import plain, variable_name

__all__ = ["Variable", "read_variables"]


_WHAT = 'a range such as "1 ms..50 ms", "5..50:log" or "5..60:whole", or values such as 1,2,3'
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(
    rf"\s*(?P<low>{_NUMBER})\s*(?P<low_unit>[^\s.:\d][^.:]*?)?\s*\.\.\s*"
    rf"(?P<high>{_NUMBER})\s*(?P<unit>[^\s.:\d][^.:]*?)?\s*(?P<words>(?::\s*\w+\s*)*)"
)
"""``LOW..HIGH``, the unit behind both or behind the second, then words."""
_WORDS = ("log", "linear", "whole")
"""How a range is searched, in the words of a sweep."""


@dataclass(frozen=True)
class Variable:
    """A number or a choice that a search varies."""

    name: str
    """What ``$name`` and expressions call it."""
    path: str
    """The field that it sets; empty if it sets none by itself."""
    low: float = 0.0
    high: float = 0.0
    unit: str = ""
    is_log: bool = False
    """Whether equal ratios are searched alike, not equal differences."""
    is_whole: bool = False
    choices: tuple[str, ...] = ()
    """Values instead of a range, as TOML or text."""

    def value(self, found: float | str) -> Scalar:
        """A value that the search proposes, in the digits that are set: six of a number."""
        if isinstance(found, str):
            return found
        return round(found) if self.is_whole else float(f"{found:.6g}")

    def text(self, value: Scalar) -> str:
        """A value as the field's override has it."""
        if isinstance(value, str):
            return value
        return inline(f"{plain(value)} {self.unit}") if self.unit else plain(value)

    def shown(self, value: Scalar) -> str:
        """A value as people read it."""
        return f"{plain(value)} {self.unit}".strip()

    @property
    def some(self) -> tuple[Scalar, ...]:
        """Values that stand for all, in their order: five of a range, or the choices."""
        if self.choices:
            return self.choices
        ratio, width = self.high / self.low if self.is_log else 1.0, self.high - self.low
        return tuple(
            self.value(self.low * ratio**share if self.is_log else self.low + share * width)
            for share in (0.0, 0.25, 0.5, 0.75, 1.0)
        )

    def __str__(self) -> str:
        """The range or the choices as ``--vary`` has them."""
        if self.choices:
            return f"{self.path or self.name}={','.join(self.choices)}"
        ends = "..".join(self.shown(self.value(end)) for end in (self.low, self.high))
        words = ":log" * self.is_log + ":whole" * self.is_whole
        return f"{self.path or self.name}={ends}{words}"


def read_variables(texts: Sequence[str], source: str, used: Collection[str]) -> list[Variable]:
    """The variables of some ``--vary`` options.

    Args:
        texts: ``FIELD=RANGE`` or ``FIELD=A,B,C``; a name without a dot that is no field of the
            scenario is a variable that ``$name`` in other fields uses.
        source: the scenario as TOML, in which short paths are sought.
        used: names that are used so; a short path of a single key may be one of them.
    """
    found: dict[str, Variable] = {}
    for text in texts:
        path, content = vary.assignment(text, "--vary")
        name = variable_name(Field(f"--vary {path}", path.rpartition(".")[2]))
        is_field = "." in path or path in TOP or (is_short(path) and path not in used)
        if is_field:
            path = _full_path(source, path)
        if name in found:
            raise AqmlabError(
                f"--vary {path}: {found[name].path or name} has the name {name} already; name each "
                "field once"
            )
        made = _read(Field(f"--vary {path}", content), name, path if is_field else "")
        found[name] = made
    if not found:
        raise AqmlabError(f"--vary: is missing; expected FIELD=RANGE with {_WHAT}")
    return list(found.values())


def _full_path(source: str, path: str) -> str:
    """The path that a short one stands for; an error names the option."""
    try:
        return full_path(source, path)
    except ScenarioError as error:
        raise AqmlabError(f"--vary {error}") from None


def _read(field: Field, name: str, path: str) -> Variable:
    """A range, or choices."""
    text = field.value
    match = _RANGE.fullmatch(text)
    if match is None:
        if ".." in text:
            field.expected(_WHAT)
        return Variable(name, path, choices=_choices(field))
    words = [word.strip() for word in match["words"].split(":")[1:]]
    for word in words:
        if word not in _WORDS:
            field.wrong(
                f'found "{word}"; expected words of {", ".join(_WORDS)}{nearest(word, _WORDS)}'
            )
    low_unit, unit = match["low_unit"] or match["unit"] or "", match["unit"] or ""
    if low_unit != unit:
        _refuse_units(field, low_unit, unit)
    low, high = float(match["low"]), float(match["high"])
    if not low < high:
        field.wrong(f"found {low:g} to {high:g}; expected a range whose end is above its beginning")
    if "log" in words and low <= 0:
        field.wrong(f"found {low:g}; expected a number above 0 where a range with log begins")
    whole = "whole" in words
    if whole and not (low.is_integer() and high.is_integer()):
        field.wrong(f"found {low:g} to {high:g}; expected whole numbers for whole")
    return Variable(name, path, low, high, unit, "log" in words, whole)


def _refuse_units(field: Field, low: str, high: str) -> NoReturn:
    """Raises the error about ends in different units."""
    field.wrong(f'found the units "{low}" and "{high}"; expected the same unit at both ends')


def _choices(field: Field) -> tuple[str, ...]:
    """At least two different values between commas."""
    try:
        found = vary.split(field.value)
    except AqmlabError:
        field.expected(_WHAT)
    if len(set(found)) < max(2, len(found)):
        field.expected(f"{_WHAT}; at least two values, each once")
    return tuple(found)
