"""Metrics of one's own on a card: each is shown beside the card's numbers, and may score tests.

What is defined is shown for every test, in a table of its own that changes no grade. A file of
measures, with the columns ``test,measure,letter,unit,formula`` of ``suites/measures.csv``, scores
tests: they form an area of their own. A formula is the text of a metric, or the name of one.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from aqmlab._util.files import read_text
from aqmlab._util.words import nearest
from aqmlab.cards.campaign import Job
from aqmlab.cards.kinds import KINDS
from aqmlab.cards.scoring import OWN, UNSCORED
from aqmlab.cards.suites import SCALES, Measure, measures, rows
from aqmlab.engine import packet_table
from aqmlab.engine.store import Store
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.results.columns import recording
from aqmlab.results.own_metrics import Definition, defined
from aqmlab.results.run import Run
from aqmlab.results.units import converted, factor

__all__ = ["OwnMeasure", "asked", "recorded", "size", "values"]


_COLUMNS = ("test", "measure", "letter", "unit", "formula")
_LETTERS = "DTRFUG"
_UNITS: Mapping[str, Sequence[str]] = {"D": ("ms", "%"), "T": ("s",)}
"""Letters whose constants are in a unit."""
_MAX_BYTES = 2**20


@dataclass(frozen=True)
class OwnMeasure:
    """A number of one's own that a test takes of each run."""

    measure: Measure
    definition: Definition

    @cached_property
    def _to_card(self) -> Callable[[float], float]:
        """From the definition's unit to that of the card's numbers: s, bit/s and shares."""
        unit, scale = self.measure.unit, SCALES.get(self.measure.unit, 1.0)
        by = factor(self.definition.formula.unit or unit, unit) if unit else (1, 1)
        return lambda value: converted(value, by) / scale

    def of(self, run: Run) -> float | None:
        """Its value in a run, as a card has it.

        None: it was not measured, or the run cannot have a table that it reads.
        """
        if not all(run.has(table) for table in self.definition.formula.tables):
            return None
        found = self.definition.of(run)
        return None if found is None else self._to_card(found)


def asked(tests: Sequence[str], file: Path | None = None) -> list[OwnMeasure]:
    """What is wanted of the runs of some tests: all that is defined, and a file's measures."""
    found = [
        OwnMeasure(Measure(test, one.name, UNSCORED, one.formula.unit, one.formula.text, OWN), one)
        for one in defined()
        for test in tests
    ]
    return found if file is None else [*found, *_read(file, tests)]


def values(run: Run, test: str, own: Sequence[OwnMeasure]) -> dict[str, float]:
    """The numbers of a run; what was not measured is left out."""
    found = {one.measure.measure: one.of(run) for one in own if one.measure.test == test}
    return {name: value for name, value in found.items() if value is not None}


def recorded(jobs: Sequence[Job], own: Sequence[OwnMeasure]) -> list[Job]:
    """The jobs, whose runs have the tables that measures of one's own read, where they can."""
    tables: dict[str, set[str]] = {}
    for one in own:
        tables.setdefault(one.measure.test, set()).update(one.definition.formula.tables)
    return [_recording(job, sorted(tables.get(job.cell.row.id, ()))) for job in jobs]


def _recording(job: Job, tables: Sequence[str]) -> Job:
    """A job whose run has some tables."""
    scenario = job.scenario
    for table in tables:
        needed = recording(table, scenario.data)
        if needed is not None:
            with suppress(ScenarioError):  # over Wi-Fi no table of packets is known
                scenario = scenario.with_overrides([needed])
    return Job(job.cell, job.queue, job.seed, scenario)


def size(jobs: Iterable[Job], store: Store, own: Sequence[OwnMeasure]) -> str:
    """How large the tables of packets become that measures of one's own read, in words.

    Raises:
        AqmlabError: one is too large, or the disk too full.
    """
    tests = {one.measure.test for one in own if "packets" in one.definition.formula.tables}
    reading = [job.scenario for job in jobs if job.cell.row.id in tests]
    found = packet_table.check(reading, store.root)
    return "" if found is None else f"; packets.parquet: {found}"


def _read(file: Path, tests: Sequence[str]) -> list[OwnMeasure]:
    """The measures of a file for some tests; an error names line and column."""
    lines = csv.reader(read_text(file, "measures", _MAX_BYTES).splitlines())
    head = next(lines, [])
    if tuple(head) != _COLUMNS:
        raise AqmlabError(
            f'{file}:1: found the columns "{",".join(head)[:80]}"; expected {",".join(_COLUMNS)}'
        )
    known = {row.id for kind in KINDS.values() for row in rows(kind.suite) if not row.not_realised}
    taken = {(one.test, one.measure) for one in measures()}
    taken |= {(test, one.name) for one in defined() for test in known}
    found = []
    for number, line in enumerate(lines, 2):
        if line:
            one = _measure(_Line(file, number, line), known, taken)
            taken.add((one.measure.test, one.measure.measure))
            found.append(one)
    if not found:
        raise AqmlabError(f"{file}: has no measure; expected a line for each test that is scored")
    return [one for one in found if one.measure.test in tests]


@dataclass(frozen=True)
class _Line:
    """A line of a file of measures."""

    file: Path
    number: int
    cells: Sequence[str]

    def __getitem__(self, column: str) -> str:
        return self.cells[_COLUMNS.index(column)].strip()

    def wrong(self, column: str, expected: str) -> NoReturn:
        """Raises an error about a column."""
        shown = self[column][:80]
        raise AqmlabError(f'{self.file}:{self.number}: {column}: found "{shown}"; {expected}')


def _measure(line: _Line, known: set[str], taken: set[tuple[str, str]]) -> OwnMeasure:
    """The measure of a line."""
    if len(line.cells) != len(_COLUMNS):
        raise AqmlabError(
            f"{line.file}:{line.number}: found {len(line.cells)} columns; expected "
            f"{len(_COLUMNS)}; a formula with commas stands in double quotes"
        )
    test, name, letter, unit = line["test"], line["measure"], line["letter"], line["unit"]
    if test not in known:
        line.wrong("test", f"expected a test of --list{nearest(test, known)}")
    if not name or (test, name) in taken or ":" in name:
        line.wrong(
            "measure", f"expected a name that no other number of {test} has, without a colon"
        )
    if len(letter) != 1 or letter not in _LETTERS:
        line.wrong("letter", f"expected one of {', '.join(_LETTERS)}")
    if letter in _UNITS and unit not in _UNITS[letter]:
        line.wrong("unit", f"expected {' or '.join(_UNITS[letter])} with the letter {letter}")
    try:
        definition = _definition(line["formula"])
        if unit:
            factor(definition.formula.unit or unit, unit)
    except AqmlabError as error:
        line.wrong("formula", str(error))
    text = definition.formula.text
    return OwnMeasure(Measure(test, name, letter, unit, text, OWN), definition)


def _definition(text: str) -> Definition:
    """The metric that a formula names, or is the text of."""
    for one in defined():
        if text in (one.name, f"metrics.{one.name}"):
            return one
    found = Definition(text[:80], text, "formula")
    _ = found.formula
    return found
