"""The axes of a sweep: what is varied, and how the values are written.

An axis is a list of *steps*. A step gives values to variables and says which fields of the scenario
it sets. Lists, ranges, values side by side, rows of a table and named variants are ways to write
steps; the sweep takes the product of its axes.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from string import Template
from typing import Any

from aqmlab._util.fields import Field, Scalar
from aqmlab._util.files import read_text
from aqmlab._util.words import nearest

__all__ = [
    "SweepAxis",
    "filled",
    "filled_key",
    "names_in",
    "plain",
    "ranged",
    "read_axis",
    "same_kind",
    "variable_name",
]


_MOST_STEPS = 100_000
"""More steps of one axis are a slip of the pen."""
_MAX_TABLE_BYTES = 16 * 2**20
"""Largest table that an axis reads."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Names of variables."""
_RESERVED = ("seed", "key", "status", "error", "simulated_s", "measured_s", "events", "runs")
"""Columns of the results that have a meaning of their own."""
_KINDS = ("values", "range", "zip", "table", "variants")
"""The ways to write an axis; each has exactly one of them."""


@dataclass(frozen=True)
class _Step:
    """One step of an axis."""

    variables: Mapping[str, Scalar]
    """Values by the name of the variable: a column of the results each."""
    settings: Mapping[str, Any]
    """Fields of the scenario by path, and their values, in which ``$name`` may stand."""


@dataclass(frozen=True)
class SweepAxis:
    """One axis of a sweep."""

    path: str
    """Where it stands in the file."""
    steps: tuple[_Step, ...]

    @property
    def variables(self) -> list[str]:
        """Names of its variables."""
        return list(self.steps[0].variables)


def read_axis(field: Field, folder: Path) -> SweepAxis:
    """An axis as the file writes it; `folder` is where the tables are that it names."""
    if isinstance(field.value, Mapping) and isinstance(field.value.get("name"), str):
        # An axis is called by its name, as a class of traffic is.
        parent, _, _ = field.path.rpartition(".")
        field = Field(f"{parent}.{field.value['name']}", field.value)
    spec = field.table(("name", "field", "set", *_KINDS))
    kinds = [kind for kind in _KINDS if kind in spec]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        field.wrong(f"found {found}; an axis has exactly one of {', '.join(_KINDS)}")
    [kind] = kinds
    if kind in {"values", "range", "variants"}:
        name = _axis_name(field, spec)
        column = {"values": _listed, "range": ranged, "variants": _labels}[kind](spec[kind])
        rows: list[dict[str, Scalar]] = [{name: value} for value in column]
    else:
        if "name" in spec or "field" in spec:
            spec["name" if "name" in spec else "field"].wrong(
                f"is not possible with {kind}, whose variables have their own names; use set"
            )
        rows = {"zip": _zipped, "table": _tabled}[kind](spec[kind], folder)
    _refuse_doubles(spec[kind], rows)
    common = _common_settings(spec)
    own = _variant_settings(spec["variants"]) if kind == "variants" else [{}] * len(rows)
    steps = [_Step(row, {**settings, **common}) for row, settings in zip(rows, own, strict=True)]
    return SweepAxis(field.path, tuple(steps))


def _axis_name(field: Field, spec: Mapping[str, Field]) -> str:
    """Name of an axis of one variable: its own, or the last key of its field."""
    if "name" in spec:
        return variable_name(spec["name"])
    if "field" not in spec:
        field.wrong("has no name, and no field whose last key could be one; add a name")
    return variable_name(Field(spec["field"].path, spec["field"].text("a path").rpartition(".")[2]))


def variable_name(field: Field) -> str:
    """The name of a variable, which is checked."""
    name = field.text("the name of a variable")
    if not _NAME.fullmatch(name):
        field.expected("a name of letters, digits and _, such as max_p")
    if name in _RESERVED:
        field.wrong(f'"{name}" is a column that all results have; choose another name')
    return name


def _listed(field: Field) -> list[Scalar]:
    """``[1, 2, 3]``: the values one by one."""
    return same_kind(field, [item.scalar() for item in field.items("a list of values")])


def same_kind(field: Field, values: list[Scalar]) -> list[Scalar]:
    """Values of one column: all text, all numbers or all true or false."""
    kinds = {
        "text" if isinstance(value, str) else "truth" if isinstance(value, bool) else "number"
        for value in values
    }
    if len(kinds) > 1:
        field.wrong("holds values of several kinds; all are text, or numbers, or true or false")
    if any(isinstance(value, float) for value in values):
        return [float(value) for value in values]
    return values


def _labels(field: Field) -> list[Scalar]:
    """Names of the variants."""
    variants = field.table(what="a table of variants, each a table of fields and their values")
    if not variants:
        field.wrong("is empty; name at least one variant")
    return list(variants)


def _variant_settings(field: Field) -> list[dict[str, Any]]:
    """What each variant sets."""
    what = "a table of fields and their values"
    return [
        {path: entry.value for path, entry in variant.table(what=what).items()}
        for variant in field.table().values()
    ]


def _common_settings(spec: Mapping[str, Field]) -> dict[str, Any]:
    """What every step sets: ``field`` takes the value of the only variable, ``set`` anything."""
    settings: dict[str, Any] = {}
    if "field" in spec:
        if "variants" in spec:
            spec["field"].wrong("is not possible with variants, which set their own fields")
        path = spec["field"].text("the path of a field of the scenario")
        name = spec["name"].value if "name" in spec else path.rpartition(".")[2]
        settings[path] = f"${{{name}}}"
    if "set" in spec:
        fields = spec["set"].table(what="a table of fields and their values")
        settings |= {path: field.value for path, field in fields.items()}
    return settings


def ranged(field: Field) -> list[Scalar]:
    """``{ from = 0.5, to = 1.1, step = 0.1 }``, or ``count`` values, also at equal ratios."""
    spec = field.table(("from", "to", "step", "count", "spacing", "whole"))
    for key in ("from", "to"):
        if key not in spec:
            field.wrong(f"has no {key}; a range has from, to and either step or count")
    if ("step" in spec) == ("count" in spec):
        field.wrong("a range has either step or count")
    low, high = spec["from"].number(), spec["to"].number()
    if high < low:
        spec["to"].expected(f"a number not below from, {low:g}")
    if "step" in spec:
        for key in {"spacing", "whole"} & set(spec):
            spec[key].wrong("is for a range with count, not with step")
        return _stepped(spec["step"], low, high)
    count = spec["count"].whole("a whole number from 2", 2)
    if count > _MOST_STEPS:
        spec["count"].expected(f"at most {_MOST_STEPS:,} values")
    spacing = spec["spacing"].value if "spacing" in spec else "linear"
    if spacing not in {"linear", "log"}:
        spec["spacing"].expected('"linear" or "log"')
    if spacing == "log" and low <= 0:
        spec["from"].expected('a number above 0 for spacing = "log"')
    whole = spec["whole"].value if "whole" in spec else False
    if not isinstance(whole, bool):
        spec["whole"].expected("true or false")
    shares = [index / (count - 1) for index in range(count)]
    exact = [
        low * (high / low) ** share if spacing == "log" else low + (high - low) * share
        for share in shares
    ]
    if whole:
        return list(dict.fromkeys(round(value) for value in exact))
    # Six digits say what is meant; more would only show that 1/3 is no decimal number.
    return [float(f"{value:.6g}") for value in exact]


def _stepped(field: Field, low: float, high: float) -> list[Scalar]:
    """Values from `low` up to `high`, computed in decimal: 0.8, not 0.7999999999999999."""
    if (step := field.number()) <= 0:
        field.expected("a number above 0")
    first, last, width = (Decimal(repr(number)) for number in (low, high, step))
    count = math.floor((last - first) / width) + 1
    if count > _MOST_STEPS:
        field.wrong(f"gives {count:,} values; at most {_MOST_STEPS:,} are possible")
    whole = all(isinstance(number, int) for number in (low, step))
    return [
        int(value) if whole else float(value)
        for value in (first + index * width for index in range(count))
    ]


def _zipped(field: Field, _: Path) -> list[dict[str, Scalar]]:
    """``{ min_th = [5, 30], max_th = [15, 90] }``: variables that change together."""
    columns: dict[str, list[Scalar]] = {}
    for name, values in field.table(what="a table of lists of the same length").items():
        columns[variable_name(Field(values.path, name))] = _listed(values)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        field.wrong(f"found lists of different lengths ({found}); side by side needs equal ones")
    if not columns:
        field.wrong("is empty; name at least one variable")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _tabled(field: Field, folder: Path) -> list[dict[str, Scalar]]:
    """Rows of a CSV file: ``{ file, columns, where }``; equal rows count once."""
    spec = field.table(("file", "columns", "where"))
    for key in ("file", "columns"):
        if key not in spec:
            field.wrong(f"has no {key}; a table has file, columns and, if wanted, where")
    path = folder / spec["file"].text("the name of a CSV file")
    table = csv.DictReader(io.StringIO(read_text(path, "table", _MAX_TABLE_BYTES)))
    rows, heads = list(table), list(table.fieldnames or ())
    names = [variable_name(item) for item in spec["columns"].items("a list of columns")]
    where = spec["where"].table() if "where" in spec else {}
    for entry in (*spec["columns"].items("a list of columns"), *where.values()):
        head = (
            entry.path.rpartition(".")[2]
            if entry.path.startswith(f"{field.path}.where")
            else (entry.value)
        )
        if head not in heads:
            entry.wrong(f"{path} has no column {head}{nearest(str(head), heads)}")
    wanted = {head: plain(entry.scalar()) for head, entry in where.items()}
    chosen = [row for row in rows if all(row[head] == text for head, text in wanted.items())]
    distinct = list(dict.fromkeys(tuple(row[name] or "" for name in names) for row in chosen))
    if not distinct:
        field.wrong(f"no row of {path} is as where says")
    columns = [_parsed(column) for column in zip(*distinct, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _parsed(column: Sequence[str]) -> list[Scalar]:
    """A column as numbers if all of its values are, else as text."""
    for kind in (int, float):
        try:
            values = [kind(text) for text in column]
        except ValueError:
            continue
        if all(math.isfinite(value) for value in values):
            return list(values)
    return list(column)


def _refuse_doubles(field: Field, rows: Sequence[Mapping[str, Scalar]]) -> None:
    """Raises an error if two steps are the same."""
    seen = set()
    for row in rows:
        if (values := tuple(row.values())) in seen:
            listed = ", ".join(f"{name} = {plain(value)}" for name, value in row.items())
            field.wrong(f"{listed} stands there twice")
        seen.add(values)


def plain(value: Scalar) -> str:
    """A value as text: as a scenario would write it, without quotation marks."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def filled(template: Any, variables: Mapping[str, Scalar]) -> Any:  # noqa: ANN401 - any TOML value
    """A value of the scenario in which every ``$name`` is replaced.

    A text that is nothing but ``$name`` becomes the variable's value, a number if it is one;
    inside other text it is written out. An unknown name raises a KeyError.
    """
    if isinstance(template, str):
        alone = re.fullmatch(r"\$(?:\{(\w+)\}|(\w+))", template)
        if alone:
            return variables[alone[1] or alone[2]]
        texts = {name: plain(value) for name, value in variables.items()}
        return Template(template).substitute(texts)
    if isinstance(template, Mapping):
        return {filled_key(key, variables): filled(v, variables) for key, v in template.items()}
    if isinstance(template, list):
        return [filled(item, variables) for item in template]
    return template


def filled_key(template: str, variables: Mapping[str, Scalar]) -> str:
    """The path of a field in which every ``$name`` is replaced."""
    texts = {name: plain(value) for name, value in variables.items()}
    return Template(template).substitute(texts)


def names_in(template: Any) -> set[str]:  # noqa: ANN401 - any TOML value
    """The variables that a value uses."""
    if isinstance(template, str):
        found = Template.pattern.finditer(template)
        return {name for match in found if (name := match["named"] or match["braced"])}
    if isinstance(template, Mapping):
        parts = [*template, *template.values()]
        return set().union(*map(names_in, parts))
    if isinstance(template, list):
        return set().union(*map(names_in, template))
    return set()
