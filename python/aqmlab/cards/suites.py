"""Suites of tests as tables: what ships with the package, row by row.

A row says what a test is about, and how it is realised: rate, round trip, buffer, traffic. Or it
says why it is not realised. :mod:`aqmlab.cards.generator` makes scenarios of rows.
docs/evaluate.md explains the columns.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError

__all__ = ["SCALES", "SUITES", "Measure", "Row", "chosen", "measures", "names", "rows"]


_FOLDER = Path(__file__).parent / "suites"
SUITES: Mapping[str, str] = {
    "rfc7928": "AQM characterization guidelines, RFC 7928, July 2016",
    "rfc9743": "Specifying new congestion control algorithms, RFC 9743, March 2025",
    "tcpeval": "Common TCP evaluation suite, draft-irtf-iccrg-tcpeval-01, July 2014",
    "rfc8867": "Test cases for interactive media, RFC 8867 and RFC 8868, January 2021",
    "responsiveness": "Responsiveness, draft-ietf-ippm-responsiveness-09, July 2026",
    "access": "Responsiveness and a household on ten access links",
    "bbr-draft": "Test cases of the BBR draft, draft-ietf-ccwg-bbr, appendix, August 2026",
    "control-cases": "Test cases of any congestion control",
    "card": "The tests of the report card of a queue",
    "card-controls": "The tests of the report card of a congestion control",
}
"""Names of the suites, and their sources."""
SCALES = {"ms": 1e3, "%": 100.0, "Mbit/s": 1e-6}
"""By shown unit: from that of the values."""


@dataclass(frozen=True)
class Row:
    """A test of a suite; empty texts are what its table leaves out."""

    id: str
    section: str
    """Section of the source; of a card's row the tests that it comes from."""
    scenario: str
    """What it is about."""
    requirement: str = ""
    """The source's own word: must, may, ..."""
    tier: str = ""
    """The first tier that has it: ``quick``, ``standard`` or ``full``."""
    area: str = ""
    """What it counts for on the card."""
    rate: str = ""
    rtt: str = ""
    buffer: str = ""
    traffic: str = ""
    load: str = ""
    """Load that classes without a number of users are calibrated to."""
    link: str = ""
    """Further keys of the forward direction of the bottleneck."""
    back: str = ""
    """Further keys of the reverse direction of the bottleneck."""
    links: str = ""
    """Links of a network with several queues."""
    paths: str = ""
    """Paths over these links."""
    wifi: str = ""
    """Keys of a Wi-Fi behind the bottleneck, whose access point has the queue under test."""
    aqm: str = ""
    """Which directions have the queue under test; left out: ``forward``."""
    queue: str = ""
    """The queue that a test of congestion controls prescribes; left out: drop-tail."""
    ecn: str = ""
    """``yes``: disciplines that can mark do so."""
    trace: str = ""
    """Connections of each class whose senders are sampled."""
    warm_up: str = ""
    duration: str = ""
    seeds: str = ""
    """How many of the seeds it is run with at most; left out: all."""
    measures: str = ""
    """What aqmlab measures in it."""
    period: str = ""
    """How often senders are sampled; left out: ``100 ms``."""
    numbers: str = ""
    """Of a test case: its numbers by name; :mod:`aqmlab.cards.cases` has the words."""
    holds: str = ""
    """Of a test case: the rule over these numbers."""
    expect: str = ""
    """What the table says should come out; a text, which nothing checks."""
    differs: str = ""
    """In what its realisation differs from the source."""
    not_realised: str = ""
    """Why there is no scenario for it; empty: there is one."""
    known: str = ""
    """What was read in the source, and what is this project's choice (``laboratory``)."""


@dataclass(frozen=True)
class Measure:
    """A number that a test of the card takes of each run."""

    test: str
    measure: str
    """Its name."""
    letter: str
    """How it is scored; ``-``: it is shown only."""
    unit: str
    """In which it is shown."""
    formula: str
    """How it is taken of a run: see :mod:`aqmlab.cards.measures`."""
    area: str = ""
    """What it counts for, if that is not the area of its test."""

    def shown(self, value: float) -> str:
        """A value in its unit, with three digits."""
        if math.isnan(value):
            return "none ended"
        if self.letter == "H":
            return f"{value:.3g}"
        number = value * SCALES.get(self.unit, 1.0)
        return f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"

    @property
    def titled(self) -> str:
        """Its name with its unit."""
        plain = self.unit in ("", "share") or self.letter == "H"
        return self.measure if plain else f"{self.measure} {self.unit}"

    @property
    def less_is_better(self) -> bool:
        """Whether the smaller of two values is the better one; of harm: of what is harmed."""
        return self.letter in "DT" or (self.letter == "H" and self.unit != "Mbit/s")


@cache
def rows(suite: str) -> tuple[Row, ...]:
    """The rows of a suite, in the order of its sections.

    Raises:
        AqmlabError: there is no such suite.
    """
    if suite not in SUITES:
        raise AqmlabError(
            f'--suite: found "{suite[:40]}"; expected one of {", ".join(SUITES)}'
            f"{nearest(suite, SUITES)}"
        )
    known = {field.name for field in fields(Row)}
    with (_FOLDER / f"{suite}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Row(**{name: text for name, text in entry.items() if name in known})
            for entry in csv.DictReader(file)
        )


@cache
def measures() -> tuple[Measure, ...]:
    """What the tests of the card measure, in their order."""
    with (_FOLDER / "measures.csv").open(encoding="utf-8", newline="") as file:
        return tuple(Measure(**entry) for entry in csv.DictReader(file))


def chosen(found: Sequence[Row], wanted: Sequence[str]) -> list[Row]:
    """The rows that some words name: ids, sections, or what these begin with.

    ``5.1`` names sections 5.1, 5.1.1 and 5.1.2; a whole id names its row alone. No word names all.

    Raises:
        AqmlabError: a word names none.
    """
    for word in wanted:
        if not any(names(word, row) for row in found):
            ids = [row.id for row in found]
            raise AqmlabError(
                f'--only: found "{word[:40]}", which names no test{nearest(word, ids)}; '
                "--list prints them"
            )
    whole = {row.id for row in found}
    return [
        row
        for row in found
        if not wanted
        or any(row.id == word if word in whole else names(word, row) for word in wanted)
    ]


def names(word: str, row: Row) -> bool:
    """Whether a word names a row."""
    _, _, bare = row.id.partition("-")
    sections = row.section.replace(",", " ").split()
    return any(
        text == word or (text.startswith(word) and text[len(word)] in ".-")
        for text in (row.id, bare, *sections)
    )
