"""Metrics of one's own: what people call them, where they say so, and the numbers of runs.

A metric that is [defined](define) is a number of every run that this process opens from then on:
``metrics.NAME`` of its summary. So whatever reads numbers of runs by name takes it as any other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aqmlab._util.fields import Field
from aqmlab._util.words import counted, nearest
from aqmlab.errors import AqmlabError
from aqmlab.results.columns import TABLES
from aqmlab.results.formula import FUNCTIONS, Formula
from aqmlab.results.metrics import OWN, SHORT_NAMES, OwnMetric, known_keys
from aqmlab.results.quantity import Quantity
from aqmlab.results.run import Run
from aqmlab.results.units import factor

if TYPE_CHECKING:
    from aqmlab.results.python_metrics import MetricFunction

__all__ = [
    "Definition",
    "define",
    "defined",
    "definition",
    "forget",
    "formula",
    "kept_name",
    "load",
    "measured",
    "option",
    "table_of",
    "unmeasured",
    "values",
]


_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
_OPTION = re.compile(r"\s*(?P<name>[^=<>!]*?)\s*=(?!=)(?P<text>.*)", re.DOTALL)
_KEYS = ("of", "python", "unit", "better", "label", "reads")
_STORED = ("sha256",)
"""What a sweep's results say besides."""
_BETTER = ("less", "more")
_KNOWN_VALUES = 200_000
"""So many numbers of runs are remembered."""


@dataclass(frozen=True)
class Definition:
    """A metric of one's own."""

    name: str
    text: str
    """What computes it, with its unit."""
    origin: str
    """Where it is defined, such as ``--metric`` or the name of a sweep."""
    label: str = ""
    better: Literal["less", "more", ""] = ""
    code: MetricFunction | None = None
    """What computes it instead of the text: a function in Python."""

    @cached_property
    def formula(self) -> Formula | MetricFunction:
        """What computes it; an error says what is wrong."""
        if self.code is not None:
            return self.code
        try:
            return formula(self.text)
        except AqmlabError as error:
            raise AqmlabError(f"{self.origin}: {self.name}: {error}") from None

    @property
    def about(self) -> OwnMetric:
        """How it is shown."""
        return OwnMetric(
            self.name,
            self.label or self.name,
            self.formula.unit,
            decimals=3,
            short=self.name,
            within=self.formula.bounds,
            better=self.better,
        )

    @cached_property
    def sha256(self) -> str:
        """Hash of what its numbers depend on."""
        return hashlib.sha256(self.formula.text.encode()).hexdigest()

    def of(self, run: Run) -> float | None:
        """Its number of a run; None: it was not measured."""
        try:
            return self.formula.of(run)
        except AqmlabError as error:
            raise type(error)(f"{self.name}: {error}") from None

    def check(self, scenario: Mapping[str, Any]) -> None:
        """Raises an error, before any run, if the runs of a scenario lack a table of it."""
        if reason := self.formula.lacking(scenario):
            raise AqmlabError(f"{self.name}: {reason}")

    def to_json(self) -> dict[str, Any]:
        """As a sweep's results keep it."""
        found: dict[str, Any] = {"better": self.better, "label": self.label}
        if self.code is None:
            found["of"] = self.text
        else:
            found["python"] = f"{self.code.file}:{self.code.function}"
            found |= {"unit": self.code.unit, "sha256": self.code.sha256}
            found["reads"] = list(self.code.reads)
        return {key: value for key, value in found.items() if value}


@lru_cache(maxsize=1024)
def formula(text: str) -> Formula:
    """The formula of a text, which is read once."""
    return Formula.read(text, Quantity.read)


_DEFINED: dict[str, Definition] = {}
"""What is defined, by name."""
_VALUES: dict[tuple[str, str, str], float | None] = {}
"""Numbers of runs, by their path, their key and the hash of the definition."""


def define(found: Iterable[Definition]) -> None:
    """Makes metrics numbers of every run that is opened from then on.

    A definition replaces one of the same place. Two places that give one name two texts are an
    error.
    """
    for one in found:
        _check_name(one)
        _ = one.formula
        old = _DEFINED.get(one.name)
        if old is not None and old.origin != one.origin and old.formula.text != one.formula.text:
            raise AqmlabError(
                f"{one.name}: has two definitions; {old.origin}: {old.formula.text}; "
                f"{one.origin}: {one.formula.text}"
            )
        _DEFINED[one.name] = one
        OWN[one.name] = one.about


def defined() -> Sequence[Definition]:
    """What is defined."""
    return tuple(_DEFINED.values())


def definition(name: str) -> Definition:
    """The definition of a metric that is defined."""
    return _DEFINED[name]


def forget() -> None:
    """Forgets every definition."""
    _DEFINED.clear()
    OWN.clear()


def option(text: str, origin: str = "--metric") -> Definition:
    """The definition of ``NAME = TEXT``, as an option has it."""
    match = _OPTION.fullmatch(text)
    if match is None or not match["name"] or not match["text"].strip():
        raise AqmlabError(
            f'{origin}: found "{text[:80]}"; expected NAME = TEXT, such as '
            "'late = share(responses.response_s > 1) in %'"
        )
    return Definition(match["name"], match["text"].strip(), origin)


def load(path: Path, origin: str = "--metrics") -> list[Definition]:
    """Runs a file and defines its functions."""
    from aqmlab.results.python_metrics import allow  # few metrics are functions

    try:
        found = [Definition(one.function, "", origin, code=one) for one in allow(path)]
    except AqmlabError as error:
        raise AqmlabError(f"{origin}: {error}") from None
    define(found)
    return found


def table_of(field: Field, origin: str, *, stored: bool = False) -> tuple[Definition, ...]:
    """The definitions of a file's table ``[metrics]``.

    Args:
        field: the table.
        origin: what messages call the file.
        stored: whether the results of a sweep say so: their code need not be here.
    """
    what = "a table of names and texts"
    return tuple(
        _definition(name, one, origin, stored=stored)
        for name, one in field.table(what=what).items()
    )


def _definition(name: str, field: Field, origin: str, *, stored: bool) -> Definition:
    """The definition of one entry: a text, or a table."""
    try:
        if isinstance(field.value, str):
            found = Definition(name, field.text("a text"), origin)
        else:
            found = _of_table(name, field, origin, stored=stored)
        _check_name(found)
        _ = found.formula
    except AqmlabError as error:
        message = str(error).removeprefix(f"{origin}: {name}: ")
        if message.startswith(field.path):
            raise
        field.wrong(message)
    return found


def _of_table(name: str, field: Field, origin: str, *, stored: bool) -> Definition:
    """The definition of an entry that is a table."""
    known = (*_KEYS, *_STORED) if stored else _KEYS
    spec = field.table(known, what='a text, or a table such as { of = "...", unit = "%" }')
    if "of" in spec and "python" in spec:
        field.wrong("found of and python; give one of them")
    better = spec["better"].text("less or more") if "better" in spec else ""
    if better and better not in _BETTER:
        spec["better"].expected(f"less or more{nearest(better, _BETTER)}")
    unit = spec["unit"].text("a unit") if "unit" in spec else ""
    text, code = "", None
    if "python" in spec:
        code = _code(spec, unit, stored=stored)
    elif "of" not in spec:
        field.wrong("of is missing; it is the text that computes the metric")
    else:
        if "reads" in spec:
            spec["reads"].wrong("is for python; a text says what it reads")
        text = spec["of"].text("a text")
        if unit and re.search(r"\bin\s+[^\W\d]\S*\s*$", text):
            field.wrong("found a unit in the text and in unit; give one of them")
        text = f"{text} in {unit}" if unit else text
    label = spec["label"].text("a text") if "label" in spec else ""
    wanted: Literal["less", "more", ""] = ""
    if better:
        wanted = "more" if better == "more" else "less"
    return Definition(name, text, origin, label, wanted, code)


def _code(spec: Mapping[str, Field], unit: str, *, stored: bool) -> MetricFunction:
    """The function of an entry in Python."""
    from aqmlab.results.python_metrics import MetricFunction, here

    text = spec["python"].text("FILE:FUNCTION")
    what = 'a list of tables such as ["packets"]'
    reads = tuple(
        item.text("the name of a table")
        for item in (spec["reads"].items(what) if "reads" in spec else ())
    )
    if unit:
        factor("", unit)  # an error where there is no such unit
    if not stored:
        return MetricFunction.named(text, unit, reads)
    file, _, function = text.rpartition(":")
    sha256 = spec["sha256"].text("a hash")
    code = here(file)
    same = code if code is not None and code.sha256 == sha256 else None
    return MetricFunction(file, function, sha256, unit, reads, same)


def _check_name(one: Definition) -> None:
    """Raises an error for a name that no metric of one's own can have."""
    reason = ""
    if not _NAME.fullmatch(one.name):
        reason = "names are letters, digits and _, and begin with no digit"
    elif one.name in SHORT_NAMES:
        reason = f"the name is taken by the metric {SHORT_NAMES[one.name]}"
    elif one.name in TABLES:
        reason = "the name is taken by a table"
    elif one.name in FUNCTIONS:
        reason = "the name is taken by a function"
    elif any(one.name in known_keys(section) for section in _SECTIONS):
        reason = "the name is taken by a number of summary.json"
    if reason:
        raise AqmlabError(f"{one.origin}: {one.name[:80] or 'a metric without a name'}: {reason}")


_SECTIONS = ("links", "responses", "flows", "quality")


def kept_name(one: Definition) -> str:
    """What a file of kept numbers calls a metric: another text has another name."""
    return f"metrics.{one.name}@{one.sha256}"


def values(run: Run, wanted: Sequence[Definition]) -> dict[str, float | None]:
    """The numbers of a run by name; each is computed once for a run directory."""
    found: dict[str, float | None] = {}
    for one in wanted:
        place = (str(run.path), str(run.metadata.get("key")), one.sha256)
        if run.tables is not None:  # in memory: another run may have its name
            found[one.name] = one.of(run)
            continue
        if place not in _VALUES:
            if len(_VALUES) >= _KNOWN_VALUES:
                _VALUES.clear()
            _VALUES[place] = one.of(run)
        found[one.name] = _VALUES[place]
    return found


def measured(run: Run, known: Mapping[str, float | None] | None = None) -> Run:
    """A run with what is defined in its summary.

    Args:
        run: the run.
        known: numbers that somebody computed already, by name.
    """
    if not _DEFINED:
        return run
    there = {name: value for name, value in (known or {}).items() if name in _DEFINED}
    lacking = [one for one in _DEFINED.values() if one.name not in there]
    there |= values(run, lacking)
    return replace(
        run, summary={**run.summary, "metrics": {name: there[name] for name in _DEFINED}}
    )


def unmeasured(runs: Sequence[Run]) -> list[str]:
    """Sentences about metrics that some runs did not measure."""
    found = []
    for name in _DEFINED:
        lacking = sum(run.summary.get("metrics", {}).get(name) is None for run in runs)
        if lacking:
            found.append(
                f"{name}: not measured in {lacking} of {counted(len(runs), 'run')}: no row fits"
            )
    return found
