"""The numbers of the baselines that ship with the package, so that a first card is quick.

A number is used only for the run that it was taken of: the same scenario, the same engine, the
same formula. Where one of them differs, the run is made again.
:mod:`aqmlab.cards.renew` (``make baselines``) renews the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from aqmlab import _native
from aqmlab._util.files import write_bytes
from aqmlab.cards import counts
from aqmlab.cards import measures as formulas
from aqmlab.cards.campaign import Job
from aqmlab.cards.suites import measures
from aqmlab.cards.verdicts import PREFIX

__all__ = ["FILE", "is_current", "shipped", "write"]


FILE = Path(__file__).parent / "suites" / "baselines.parquet"
"""A row for each number of each run."""
_ENGINE, _FORMULAS = b"engine", b"formulas"
"""Keys of the file's metadata: the engine's name, and the hash of what takes the numbers."""
_ASKED = ("gate:", PREFIX)
"""What gates and findings ask of a run, which has no formula."""


def shipped(jobs: Iterable[Job], file: Path = FILE) -> dict[str, dict[str, float]]:
    """What is known of some runs, by their key: the numbers that a card takes of each.

    Args:
        jobs: the runs that are wanted.
        file: where the numbers are.
    """
    known = _numbers(file)
    found = {}
    for job in jobs if known else ():
        own = known.get(job.scenario.key)
        if own is not None and {*_formulas_of(job)} == {
            (name, formula) for name, formula in own if not name.startswith(_ASKED)
        }:
            found[job.scenario.key] = {
                name: value for (name, _), value in own.items() if value is not None
            }
    return found


def is_current(file: Path = FILE) -> bool:
    """Whether the numbers are of this engine and of these formulas."""
    if not file.is_file():
        return False
    metadata = pq.read_schema(file).metadata or {}
    return all(metadata.get(key) == value for key, value in _origin().items())


def write(
    taken: Sequence[tuple[Job, dict[str, float]]],
    file: Path = FILE,
) -> None:
    """Writes what was taken of some runs; equal numbers give equal bytes."""
    by_key = {}
    for job, numbers in taken:
        formula_of = dict(_formulas_of(job))
        # In the order of a card: equal numbers give equal cards, byte for byte.
        own: list[tuple[str, str, float | None]]
        own = [(name, formula_of.get(name, ""), value) for name, value in numbers.items()]
        own += [(name, text, None) for name, text in formula_of.items() if name not in numbers]
        by_key[job.scenario.key] = own
    rows = [(key, *one) for key in sorted(by_key) for one in by_key[key]]
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = pa.table(
        {
            "key": pa.array([bytes.fromhex(key) for key in columns[0]], pa.binary()),
            "measure": pa.array(columns[1], pa.string()),
            "formula": pa.array(columns[2], pa.string()),
            "value": pa.array(columns[3], pa.float64()),
        }
    ).replace_schema_metadata(_origin())
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    write_bytes(file, sink.getvalue().to_pybytes())


def _formulas_of(job: Job) -> list[tuple[str, str]]:
    """The names and formulas of what a run's test measures."""
    return [(one.measure, one.formula) for one in measures() if one.test == job.cell.row.id]


def _origin() -> dict[bytes, bytes]:
    """What made the numbers."""
    source = b"".join(Path(str(one.__file__)).read_bytes() for one in (formulas, counts))
    return {
        _ENGINE: _native.engine().encode(),
        _FORMULAS: hashlib.sha256(source).hexdigest().encode(),
    }


@cache
def _numbers(file: Path) -> dict[str, dict[tuple[str, str], float | None]]:
    """By key, then by measure and formula; nothing if something else made them."""
    if not is_current(file):
        return {}
    found: dict[str, dict[tuple[str, str], float | None]] = {}
    columns = pq.read_table(file).to_pydict()
    for key, measure, formula, value in zip(*columns.values(), strict=True):
        found.setdefault(key.hex(), {})[measure, formula] = value
    return found
