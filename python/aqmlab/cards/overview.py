"""One suite whole, by its own section numbers: what each test showed, without scores."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from aqmlab._util.bars import OnProgress, bar
from aqmlab._util.files import check_output_folder, write_text
from aqmlab._util.words import counted, lasting
from aqmlab.cards.campaign import batch_of, jobs_of, make
from aqmlab.cards.candidates import CUBIC, DROPTAIL, Candidate, CandidateControl, named
from aqmlab.cards.generator import FOLDER, SuiteCell, cells, files_of, seconds_of, toml_of
from aqmlab.cards.measures import overview
from aqmlab.cards.suites import Row
from aqmlab.engine import schedulers
from aqmlab.engine.store import STORE_ROOT, Store
from aqmlab.errors import AqmlabError

__all__ = ["Observed", "cost_of", "observe", "suite_cells", "written"]


@dataclass(frozen=True)
class Observed:
    """What a cell showed behind a queue."""

    cell: SuiteCell
    queue: str
    seed: int
    numbers: dict[str, float | None] | AqmlabError


def cost_of(row: Row) -> tuple[int, float]:
    """Runs of a row for each queue and seed, and simulated seconds of each."""
    found = cells(row)
    return len(found), seconds_of(row) if found else 0.0


def suite_cells(rows: Sequence[Row], *, is_control: bool) -> tuple[list[SuiteCell], list[Row]]:
    """The cells of some rows, and the rows that are not run.

    Rows without a scenario are not run, nor are those that prescribe a queue where a queue is
    under test.
    """
    run = [row for row in rows if not row.not_realised and (is_control or not row.queue)]
    return [cell for row in run for cell in cells(row)], [row for row in rows if row not in run]


def observe(
    chosen: Sequence[SuiteCell],
    queue: Candidate,
    *,
    control: CandidateControl = CUBIC,
    seeds: Sequence[int] = (1,),
    jobs: int | None = None,
    scheduler: str | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: OnProgress | bool | None = None,
    say: Callable[[str], None] | None = None,
) -> list[Observed]:
    """Runs some cells behind a queue and behind drop-tail; what the store has is used."""
    queues = [queue] if queue.name == DROPTAIL else [queue, named(DROPTAIL)]
    planned = jobs_of(chosen, queues, seeds, control)
    runs = Store(Path(store) if store is not None else STORE_ROOT)
    runs.tidy()
    with (
        bar(f"evaluating {queue.name}", progress) as on_progress,
        schedulers.scheduler(scheduler, jobs) as pool,
    ):
        batch = batch_of(planned, runs)
        if say is not None and batch.missing:
            seconds = batch.seconds(pool)
            say(f"{counted(len(batch.missing), 'run')} to make, about {lasting(seconds)}")
        made = make(planned, batch, runs, pool, overview, on_progress)
    return [Observed(one.job.cell, one.job.queue, one.job.seed, one.outcome) for one in made]


def written(
    chosen: Sequence[SuiteCell], queue: Candidate, folder: Path, control: CandidateControl = CUBIC
) -> Iterator[Path]:
    """Writes the scenario of each cell, for ``aqmlab run``, and the files that they name."""
    check_output_folder(folder)
    plugin = "".join(f" --plugin {one.file}" for one in (queue, control) if one.file)
    for cell in chosen:
        head = f"# aqmlab run {cell.file}{plugin}\n"
        for name in files_of(cell):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(FOLDER / name, folder / name)
        path = folder / cell.file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, head + toml_of(cell, queue, control))
        yield path
