"""Cases with their results as files: a table, and the scenario of each run."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab import _native
from aqmlab._util.files import check_output_folder, made_folder, write_text
from aqmlab.cards.candidates import Candidate, CandidateControl
from aqmlab.cards.generator import FOLDER, SuiteCell, files_of, toml_of

if TYPE_CHECKING:
    from aqmlab.cards.cases import CaseOutcome, Shown

__all__ = ["TABLE", "written"]

TABLE = "cases.csv"
"""The table of cases: a row for each run."""

_VERDICTS = {True: "holds", False: "fails", None: "n/a"}


def written(
    judged: Sequence[CaseOutcome], queue: Candidate, control: CandidateControl, folder: Path
) -> Iterator[Path]:
    """Writes the table and the scenarios that ran, and yields each file."""
    check_output_folder(folder)
    made_folder(folder)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(
        [
            *("section", "case", "title", "control", "setting", "seed", "verdict"),
            *("numbers", "rule", "expect", "differs", "scenario", "engine"),
        ]
    )
    for case in judged:
        row = case.row
        for one in case.shown:
            file = "" if one.cell is None else _name(one.cell, one.seed)
            numbers = "; ".join(
                f"{name} = {value:.6g}" for name, value in one.numbers.items() if value is not None
            )
            writer.writerow(
                [
                    *(row.section, row.id, row.scenario, control.name, one.setting, one.seed),
                    *(_VERDICTS[one.holds], numbers, row.holds, row.expect, row.differs, file),
                    _native.engine(),
                ]
            )
            if one.cell is not None:
                yield _scenario(one, one.cell, queue, control, folder / file)
    write_text(folder / TABLE, table.getvalue())
    yield folder / TABLE


def _name(cell: SuiteCell, seed: int) -> str:
    """The file of a run."""
    return f"{cell.file.removesuffix('.toml')}-s{seed}.toml"


def _scenario(
    one: Shown, cell: SuiteCell, queue: Candidate, control: CandidateControl, path: Path
) -> Path:
    """Writes the scenario of a run, and the files that it names."""
    for name in files_of(cell):
        made_folder((path.parent / name).parent)
        shutil.copyfile(FOLDER / name, path.parent / name)
    plugins = "".join(f" --plugin {it.file}" for it in (queue, control) if it.file)
    head = f"# aqmlab run {path.name} --seed {one.seed}{plugins}\n"
    write_text(path, head + toml_of(cell, queue, control))
    return path
