"""Running a sweep: what is missing is made, what the store has is used.

The order of the results, and everything in them, depends on the sweep file and on the engine
alone: not on what was there before, on how many runs were made at a time, or where.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from aqmlab._util.bars import OnProgress, bar
from aqmlab._util.files import check_output_folder
from aqmlab._util.lazy import pa
from aqmlab._util.places import SWEEPS_ROOT
from aqmlab._util.renamed import renamed
from aqmlab.engine import packet_table, schedulers
from aqmlab.engine.batch import Batch
from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.kept import Kept, signed
from aqmlab.engine.memory import limited
from aqmlab.engine.schedulers import Scheduler
from aqmlab.engine.store import STORE_ROOT, Store
from aqmlab.errors import AqmlabError
from aqmlab.results.bounds import Bounds
from aqmlab.results.links import loaded_links
from aqmlab.results.numbers import Numbers
from aqmlab.results.quantity import Quantity
from aqmlab.results.statistics import estimate
from aqmlab.scenario.scenario import Scenario
from aqmlab.sweeps import results as sweep_results
from aqmlab.sweeps.file import Precision, Sweep
from aqmlab.sweeps.results import Outcome, SweepRow

__all__ = ["SweepProgress", "sweep"]


_FIRST_SEEDS = 3
"""With fewer runs of a point than this, an interval says too little to stop or go on by."""
_MOST_GROWTH = 2.0
"""The seeds of a point grow by this factor at most, before its interval is looked at again."""


class SweepProgress:
    """Is called as a sweep goes on; this one does nothing."""

    def planned(self, sweep: Sweep, points: int, seeds: int) -> None:
        """Every point and its seeds are known; with a precision there may be more of these."""

    def noted(self, note: str) -> None:
        """What hardly anybody wants in a scenario; each note once."""

    def calibrating(self, done: float) -> None:
        """The share of the calibration that is done."""

    def calibrated(self, answer: str) -> None:
        """How many users cause a load."""

    def recording(self, size: str) -> None:
        """How large the tables of packets become, if there are any."""

    def making(self, missing: int, found: int, seconds: float, jobs: int) -> None:
        """Runs are about to be made, the others are in the store; about how long it takes."""

    def progress(self, done: float, total: int) -> None:
        """How many of the runs to be made are done; parts of a run count."""

    def running(self, label: str, done: float) -> None:
        """The share of one run that is done; its label names the point and the seed."""


@renamed(watcher="progress")
def sweep(
    plan: Sweep | str | os.PathLike[str],
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    out: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] | None = None,
    verify: bool = False,
    progress: SweepProgress | bool | None = None,
    memory: str | int | None = None,
) -> pa.Table:
    """Runs what is missing of a sweep.

    Without `verify` the check of the store is quick: all files are there and have their lengths,
    and small ones have their bytes. Damaged runs are set aside, with a warning, and made
    again.

    Args:
        plan: the sweep, or the path of its file.
        jobs: runs at a time on this machine; default: the number of processors.
        scheduler: address of a Dask scheduler that makes the runs instead.
        out: folder of the results; default: ``runs/sweeps/NAME``.
        store: folder of the store of runs; default: ``runs/store``.
        verify: check every byte of the runs in the store.
        progress: is called as it goes on. Left out: a bar in terminals and notebooks (with
            ipywidgets); False: none.
        memory: how much the runs may take together on this machine, in bytes or as text such as
            "4 GiB"; default: most of what is free.

    Returns:
        The table of ``results.parquet``: a row for each run, the failed ones included; see
        docs/sweeps.md for its columns.

    Example:
        >>> import pathlib
        >>> import aqmlab
        >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
        >>> scenario = aqmlab.Scenario.load("scenarios/vectors.toml").with_overrides(short)
        >>> size = pathlib.Path("base.toml").write_text(scenario.effective)
        >>> size = pathlib.Path("rates.toml").write_text('''
        ... scenario = "base.toml"
        ... seeds = "1..2"
        ... baseline = { rate = "10 Mbit/s" }
        ... [[axes]]
        ... field = "topology.bottleneck.forward.rate"
        ... values = ["10 Mbit/s", "5 Mbit/s"]
        ... ''')
        >>> plan = aqmlab.Sweep.load("rates.toml")
        >>> table = aqmlab.sweep(plan)
        >>> table.num_rows, table.column_names[:3]
        (4, ['rate', 'seed', 'key'])
    """
    chosen = plan if isinstance(plan, Sweep) else Sweep.load(plan)
    target = Path(out) if out is not None else SWEEPS_ROOT / chosen.name
    sweep_results.refuse_a_taken_place(target)
    check_output_folder(target)
    runs_store = Store(Path(store) if store is not None else STORE_ROOT, verify)
    runs_store.tidy()
    with (
        limited(memory),
        _reporter(progress) as report,
        schedulers.scheduler(scheduler, jobs) as pool,
    ):
        kept = Kept(target, chosen.metrics)
        rows = _Campaign(chosen, runs_store, kept, report).run(pool)
    table = sweep_results.write(target, chosen, runs_store, rows)
    kept.write()
    return table


@contextmanager
def _reporter(progress: SweepProgress | bool | None) -> Iterator[SweepProgress]:
    """The object to which a sweep reports its progress."""
    if isinstance(progress, SweepProgress):
        yield progress
        return
    with bar("sweeping", progress) as on_progress:
        yield _Bar(on_progress)


class _Bar(SweepProgress):
    """Moves a bar: over the calibration, then over the runs."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress

    def calibrating(self, done: float) -> None:
        """See :class:`SweepProgress`."""
        self._on_progress(done)

    def progress(self, done: float, total: int) -> None:
        """See :class:`SweepProgress`."""
        self._on_progress(done / total)


class _Campaign:
    """A sweep on its way."""

    def __init__(self, plan: Sweep, store: Store, kept: Kept, progress: SweepProgress) -> None:
        """Makes the scenario of every point, which checks all of them."""
        self.sweep = plan
        self.store = store
        self.kept = kept
        self.progress = progress
        self.points = plan.points
        self.scenarios = [plan.scenario_of(point) for point in self.points]
        for metric in plan.metrics:
            for scenario in self.scenarios:
                metric.check(scenario.data)

    def run(self, pool: Scheduler) -> list[SweepRow]:
        """All runs, in the order of their points and seeds."""
        seeds = self.sweep.seeds or (self.scenarios[0].seed,)
        self.progress.planned(self.sweep, len(self.points), len(seeds))
        for note in dict.fromkeys(note for one in self.scenarios for note in one.notes):
            self.progress.noted(note)
        self.scenarios = self._calibrated(pool.jobs)
        rows: list[SweepRow] = []
        wanted = [(index, seed) for seed in seeds for index in range(len(self.points))]
        while wanted:
            rows += self._made(wanted, pool)
            wanted = self._more(rows)
        order = {seed: place for place, seed in enumerate(seeds)}
        return sorted(rows, key=lambda row: (row.index, order.get(row.seed, row.seed + len(order))))

    def _calibrated(self, jobs: int) -> list[Scenario]:
        """The scenarios with all their users."""
        ready: list[Scenario] = []
        announced: dict[str, None] = {}
        total = len(self.scenarios)
        for index, scenario in enumerate(self.scenarios):

            def on_progress(done: float, index: int = index) -> None:
                self.progress.calibrating((index + done) / total)

            found, answers = calibrate(scenario, jobs=jobs, progress=on_progress)
            ready.append(found)
            announced |= dict.fromkeys(map(str, answers))
        self.progress.calibrating(1.0)
        for answer in announced:
            self.progress.calibrated(answer)
        return ready

    def _made(self, wanted: Sequence[tuple[int, int]], pool: Scheduler) -> list[SweepRow]:
        """Some runs: found in the store, or made now. Points that are equal share theirs."""
        key_of = [one.keys_by_seed() for one in self.scenarios]
        keys = [key_of[index](seed) for index, seed in wanted]
        batch = Batch(
            dict(zip(keys, wanted, strict=True)),
            lambda which: self.scenarios[which[0]].with_seed(which[1]),
            self.store,
            lambda key: self.kept.find(key, self.store),
        )
        outcomes: dict[str, Outcome] = {**batch.found}
        if count := len(batch.missing):
            lacking = [self.scenarios[index] for index, _ in batch.missing.values()]
            if (size := packet_table.check(lacking, self.store.root)) is not None:
                self.progress.recording(f"packets.parquet: {size}")
            self.progress.making(count, len(batch.found), batch.seconds(pool), pool.jobs)
            made = batch.make(
                pool,
                partial(signed, wanted=self.sweep.metrics),
                lambda done: self.progress.progress(count * done, count),
                self._running,
            )
            for key, answer in made.items():
                outcomes[key] = (
                    answer if isinstance(answer, AqmlabError) else self.kept.note(key, *answer)
                )
        return [
            SweepRow(index, self.points[index], seed, key, outcomes[key])
            for (index, seed), key in zip(wanted, keys, strict=True)
        ]

    def _running(self, which: tuple[int, int], done: float) -> None:
        """Reports the share of one run that is done."""
        index, seed = which
        self.progress.running(f"{self.points[index].label}, seed {seed}", done)

    def _more(self, rows: Sequence[SweepRow]) -> list[tuple[int, int]]:
        """The points and seeds that a wanted precision still needs."""
        if not self.sweep.precision:
            return []
        of_point: dict[int, list[SweepRow]] = {}
        for row in rows:
            of_point.setdefault(row.index, []).append(row)
        found = []
        for index, own in sorted(of_point.items()):
            used = {row.seed for row in own}
            more = min(
                max(_more_seeds(precision, own) for precision in self.sweep.precision),
                self.sweep.max_seeds - len(used),
            )
            found += [(index, max(used) + number) for number in range(1, more + 1)]
        return found


def _more_seeds(precision: Precision, rows: Sequence[SweepRow]) -> int:
    """How many more seeds a point needs, as far as its runs can tell.

    The interval narrows with the root of their number. Points where the metric was not measured,
    or is the same in every run, need none: more would not change that.
    """
    measured = _measured(precision, rows)
    return max(
        (_seeds_for(precision, values, one.bounds) for one, values in measured.items()),
        default=0,
    )


def _seeds_for(precision: Precision, values: Sequence[float], bounds: Bounds) -> int:
    """How many more seeds one metric needs."""
    if not values or not any(values):
        return 0
    if len(values) < _FIRST_SEEDS:
        return _FIRST_SEEDS - len(values)
    found = estimate(values, bounds=bounds)
    if found.note:  # more seeds of what does not vary change nothing
        return 0
    wanted = precision.half_width * (abs(found.mean) if precision.relative else 1.0)
    if found.half_width <= wanted:
        return 0
    ratio = found.half_width / wanted if wanted > 0 else math.inf
    return max(1, math.ceil(len(values) * (min(ratio**2, _MOST_GROWTH) - 1)))


def _measured(precision: Precision, rows: Iterable[SweepRow]) -> dict[Quantity, list[float]]:
    """A metric of the runs that measured it; of each loaded link if it names none."""
    finished = [row.outcome for row in rows if isinstance(row.outcome, Numbers)]
    found = {}
    for one in Quantity.read(precision.metric).among(loaded_links(finished)):
        if finished and not any(one.key in numbers.layout.places for numbers in finished):
            raise AqmlabError(f"precision: the results have no {one.key}")
        values = (numbers.get(one.key) for numbers in finished)
        found[one] = [float(value) for value in values if value is not None]
    return found
