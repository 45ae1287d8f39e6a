"""What a sweep leaves behind: ``results.parquet``, one row per run, and ``sweep.json``."""

from __future__ import annotations

import hashlib
import io
import json
import os
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from aqmlab import _native
from aqmlab._util.files import write_bytes, write_text
from aqmlab._util.lazy import np, pa, pq
from aqmlab.engine.kept import KNOWN
from aqmlab.engine.store import Store
from aqmlab.errors import AqmlabError
from aqmlab.results.numbers import Layout, Numbers
from aqmlab.results.run import Run, read_json
from aqmlab.sweeps.file import Point, Sweep

__all__ = ["Outcome", "Results", "SweepRow", "refuse_a_taken_place", "write"]


_TABLE = "results.parquet"
_PAGE = "sweep.json"
_HASH = "results_sha256"
"""Under which key the page has the hash of its table."""
Outcome = Numbers | AqmlabError
"""What became of a run."""


@dataclass(frozen=True)
class SweepRow:
    """A run of a sweep and what became of it."""

    index: int
    """Number of its point."""
    point: Point
    seed: int
    key: str
    outcome: Outcome


@dataclass(frozen=True)
class Results:
    """The results of a finished sweep."""

    path: Path
    """Its folder."""
    about: Mapping[str, Any]
    """``sweep.json``."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Results:
        """Opens the folder of a sweep."""
        folder = Path(path)
        if not _is_sweep(folder):
            raise AqmlabError(f"{folder}: is not the folder of a finished sweep")
        return cls(folder, read_json(folder, _PAGE))

    @cached_property
    def table(self) -> pa.Table:
        """``results.parquet``; an error if it is not the one that ``sweep.json`` is about."""
        content = (self.path / _TABLE).read_bytes()
        wanted = self.about.get(_HASH)  # sweeps of earlier versions have none
        if wanted is not None and hashlib.sha256(content).hexdigest() != wanted:
            raise AqmlabError(
                f"{self.path}: {_TABLE} is not the one that {_PAGE} was written with; "
                "run the sweep again"
            )
        return pq.read_table(pa.BufferReader(content))

    @property
    def runs(self) -> list[Run]:
        """The runs that ended well, labelled by point and seed; each once."""
        store = Store(self.path / self.about["store"])
        distinct = {entry["key"]: entry["label"] for entry in self.about["runs"]}
        return [replace(Run.open(store.path(key)), label=label) for key, label in distinct.items()]


def _is_sweep(folder: Path) -> bool:
    """Whether a folder holds the results of a sweep."""
    return (folder / _TABLE).is_file() and (folder / _PAGE).is_file()


def refuse_a_taken_place(folder: Path) -> None:
    """Raises an error if something else than a sweep is there."""
    if not os.path.lexists(folder) or _is_sweep(folder):
        return
    # A sweep that was killed as it wrote its results may have left one of the files, or a part.
    own = [name for file in (_TABLE, _PAGE, KNOWN) for name in (file, f".{file}.*.part")]
    if not folder.is_dir() or any(
        not any(entry.match(name) for name in own) for entry in folder.iterdir()
    ):
        raise AqmlabError(
            f"{folder}: exists and is not the folder of a sweep; choose another --out"
        )


def write(folder: Path, sweep: Sweep, store: Store, rows: Sequence[SweepRow]) -> pa.Table:
    """Writes the results into a folder, in place of earlier ones of the sweep."""
    table = _tabulated(sweep, rows)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    done = [row for row in rows if isinstance(row.outcome, Numbers)]
    about = {
        "title": sweep.title,
        "name": sweep.name,
        "version": _native.version(),
        "store": os.path.relpath(store.root, folder),
        "points": len({row.index for row in rows}),
        "failed": len(rows) - len(done),
        _HASH: hashlib.sha256(buffer.getvalue()).hexdigest(),
        "baselines": sweep.baselines,
        **(
            {"metrics": {one.name: one.to_json() for one in sweep.metrics}} if sweep.metrics else {}
        ),
        "runs": [],
    }
    # The page comes last: a folder that has it is whole.
    write_bytes(folder / _TABLE, buffer.getvalue())
    page = json.dumps(about, indent=2, ensure_ascii=False)
    write_text(folder / _PAGE, page.removesuffix("[]\n}") + f"{_listed(done)}\n}}\n")
    return table


def _listed(done: Sequence[SweepRow]) -> str:
    """The runs as :func:`json.dumps` indents them, which takes ten times as long for thousands."""
    entries = [
        (json.dumps(f"{row.point.label}, seed {row.seed}", ensure_ascii=False), json.dumps(row.key))
        for row in done
    ]
    lines = ",\n".join(
        f'    {{\n      "label": {label},\n      "key": {key}\n    }}' for label, key in entries
    )
    return f"[\n{lines}\n  ]" if lines else "[]"


def _tabulated(sweep: Sweep, rows: Sequence[SweepRow]) -> pa.Table:
    """A row for each run: variables, seed, key, status, error, then every number of its summary.

    The numbers are in alphabetical order, so that the columns do not depend on which run is first.
    """
    measured = [row.outcome if isinstance(row.outcome, Numbers) else None for row in rows]
    columns: dict[str, list[Any]] = {
        name: [row.point.variables[name] for row in rows] for name in sweep.variables
    }
    failures = [None if isinstance(row.outcome, Numbers) else str(row.outcome) for row in rows]
    columns |= {
        "seed": [row.seed for row in rows],
        "key": [row.key for row in rows],
        "status": ["done" if error is None else "failed" for error in failures],
    }
    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays["error"] = pa.array(failures, pa.string())
    arrays |= _number_arrays(measured)
    about = {"title": sweep.title, "version": _native.version(), "variables": sweep.variables}
    table = pa.table(arrays)
    return table.replace_schema_metadata({"aqmlab": json.dumps(about, ensure_ascii=False)})


def _rank(name: str) -> tuple[int, str]:
    """The whole run's numbers first, then those of links, flows and responses, by name."""
    return name.count("."), name


def _number_arrays(measured: Sequence[Numbers | None]) -> dict[str, pa.Array]:
    """A column for each number, in their order: whole ones if all of them are."""
    of_layout: dict[Layout, tuple[list[int], list[array[float]]]] = {}
    for row, numbers in enumerate(measured):
        if numbers is not None:
            rows, values_of = of_layout.setdefault(numbers.layout, ([], []))
            rows.append(row)
            values_of.append(numbers.values)
    # Numbers of a layout lie side by side: none becomes an object.
    blocks = [(layout, rows, np.array(lists)) for layout, (rows, lists) in of_layout.items()]
    found = {}
    for name in sorted({name for layout in of_layout for name in layout.names}, key=_rank):
        values = np.full(len(measured), np.nan)
        kinds = set()
        for layout, rows, block in blocks:
            if (place := layout.places.get(name)) is not None:
                values[rows] = block[:, place]
                if not np.isnan(block[:, place]).all():
                    kinds.add(layout.whole[place])
        missing = np.isnan(values)
        if kinds == {1}:
            whole = np.where(missing, 0, values).astype(np.int64)
            found[name] = pa.array(whole, mask=missing)
        else:
            found[name] = pa.array(values, mask=missing)
    return found
