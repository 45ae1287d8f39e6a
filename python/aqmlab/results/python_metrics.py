"""Metrics of one's own in Python: ``def mine(run) -> float | None`` in a file that a user names.

A file is code, so nothing but :func:`allow` loads one: the option ``--metrics FILE`` calls it.
"""

from __future__ import annotations

import hashlib
import math
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Real
from pathlib import Path
from typing import Any

from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.results.bounds import UNBOUNDED, Bounds
from aqmlab.results.columns import TABLES, lacking
from aqmlab.results.units import factor

__all__ = ["MetricFunction", "allow", "forget", "functions", "here"]


@dataclass(frozen=True)
class _MetricFile:
    """A file that a user has named."""

    path: str
    source: str = field(repr=False)

    @property
    def name(self) -> str:
        """Its name without its folder."""
        return Path(self.path).name

    @property
    def sha256(self) -> str:
        """Hash of its text."""
        return hashlib.sha256(self.source.encode()).hexdigest()


_ALLOWED: dict[str, _MetricFile] = {}
"""What was named, by the name without its folder."""


@dataclass(frozen=True)
class MetricFunction:
    """A function of a file that gives a number of a run.

    It goes to other processes with its file's text, so that all of them run the same.
    """

    file: str
    """Name of the file."""
    function: str
    sha256: str
    """Hash of the file's text."""
    unit: str = ""
    reads: tuple[str, ...] = ()
    """The tables that it needs."""
    source: _MetricFile | None = None
    """None: nobody has named the file here."""

    @classmethod
    def named(cls, text: str, unit: str = "", reads: tuple[str, ...] = ()) -> MetricFunction:
        """The function of ``FILE:FUNCTION``, whose file a user has named."""
        file, _, function = text.rpartition(":")
        name = Path(file).name
        if not file or not function.isidentifier():
            raise AqmlabError(f'found "{text[:80]}"; expected FILE:FUNCTION, as metrics.py:mine')
        _check_reads(reads)
        source = _ALLOWED.get(name)
        if source is None:
            raise AqmlabError(f"is code of {name}, which runs if you allow it: --metrics {file}")
        there = functions(source)
        if function not in there:
            raise AqmlabError(f"{name} has no function {function}{nearest(function, there)}")
        stated = _stated(_loaded(source)[function], f"{name}:{function}")
        return cls(name, function, source.sha256, unit or stated[0], reads or stated[1], source)

    @property
    def text(self) -> str:
        """What tells it from other metrics."""
        return f"{self.file}:{self.function} (sha256 {self.sha256})"

    @property
    def bounds(self) -> Bounds:
        """The least and the largest number: nobody knows."""
        return UNBOUNDED

    @property
    def tables(self) -> frozenset[str]:
        """What it reads, as far as it says so."""
        return frozenset(self.reads)

    def lacking(self, scenario: Mapping[str, Any]) -> str:
        """Why the runs of a scenario will not do; nothing if they will."""
        return next(filter(None, (lacking(table, scenario) for table in self.reads)), "")

    def of(self, run: Any) -> float | None:  # noqa: ANN401 - a run, which functions may read
        """Its number of a run; None: it was not measured."""
        if self.source is None:
            raise AqmlabError(
                f"is code of {self.file}, which runs if you allow it: --metrics {self.file}"
            )
        for table in self.reads:
            if not run.has(table):
                raise AqmlabError(lacking(table, run.scenario, always=True))
        function = _loaded(self.source)[self.function]
        try:
            found = function(run)
        except Exception as error:  # noqa: BLE001 - whatever a user's code may raise
            hint = ""
            if "NoneType" in str(error):
                hint = (
                    f'; a table that a run lacks is None: {self.function}.reads = ["packets"] asks'
                )
            raise AqmlabError(f"{_place(error, self.source)} (in {run.path}){hint}") from None
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, Real) or not math.isfinite(found):
            raise AqmlabError(
                f"{self.file}:{self.function} gives {str(found)[:40]!r} of {run.path}; expected a "
                "number or None"
            )
        return float(found)


def _check_reads(reads: Iterable[object]) -> None:
    """Raises an error for what is no table."""
    for table in reads:
        if table not in TABLES:
            hint = nearest(table, TABLES) if isinstance(table, str) else ""
            raise AqmlabError(
                f'reads: there is no table "{table}"{hint} (there are {", ".join(TABLES)})'
            )


def _stated(function: object, where: str) -> tuple[str, tuple[str, ...]]:
    """What a function says of itself: its attributes ``unit`` and ``reads``."""
    unit, reads = getattr(function, "unit", ""), getattr(function, "reads", ())
    if not isinstance(unit, str):
        raise AqmlabError(f'{where}: unit: found {unit!r}; expected a text such as "ms"')
    if not isinstance(reads, list | tuple):
        raise AqmlabError(f'{where}: reads: found {reads!r}; expected a list such as ["packets"]')
    try:
        if unit:
            factor("", unit)
        _check_reads(reads)
    except AqmlabError as error:
        raise AqmlabError(f"{where}: {error}") from None
    return unit, tuple(reads)


def allow(path: Path) -> list[MetricFunction]:
    """Loads a file, which runs it; its functions, except those with a ``_`` in front."""
    try:
        source = _MetricFile(str(path), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "is no text"
        raise AqmlabError(f"{path}: cannot be read: {reason}") from None
    other = _ALLOWED.get(source.name)
    if other is not None and Path(other.path).resolve() != path.resolve():
        raise AqmlabError(f"{path} and {other.path}: have the same name; rename one of them")
    _ALLOWED[source.name] = source
    found = [MetricFunction.named(f"{path}:{name}") for name in functions(source)]
    if not found:
        raise AqmlabError(f"{path}: has no function; expected one such as def mine(run):")
    return found


def forget() -> None:
    """Forgets which files a user has named."""
    _ALLOWED.clear()


def here(file: str) -> _MetricFile | None:
    """A file that a user has named, by its name."""
    return _ALLOWED.get(file)


def functions(source: _MetricFile) -> list[str]:
    """The names of a file's own functions, except those with a ``_`` in front."""
    space = _loaded(source)
    return [
        name
        for name, value in space.items()
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", None) == space["__name__"]
        and not isinstance(value, type)
    ]


@lru_cache(maxsize=64)
def _loaded(source: _MetricFile) -> dict[str, Callable[[Any], object]]:
    """What a file defines; it runs once in each process."""
    space: dict[str, Any] = {"__name__": Path(source.path).stem, "__file__": source.path}
    try:
        exec(compile(source.source, source.path, "exec"), space)  # the user named it
    except Exception as error:  # noqa: BLE001 - whatever a user's code may raise
        raise AqmlabError(_place(error, source)) from None
    return space


def _place(error: Exception, source: _MetricFile) -> str:
    """File, line, kind and words of what a user's code raised."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == source.path:
            line = frame.lineno
    words = " ".join(str(error).split())
    return f"{source.path}:{line or 1}: {type(error).__name__}: {words}".rstrip(": ")
