"""Making the runs of an evaluation: what the store has is used, what is missing is made."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from aqmlab._util.pool import OnProgress
from aqmlab.cards.candidates import CUBIC, Candidate, CandidateControl
from aqmlab.cards.generator import SuiteCell, scenario_of
from aqmlab.engine.batch import Batch
from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.commit import nothing
from aqmlab.engine.schedulers import Scheduler
from aqmlab.engine.store import Store
from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

__all__ = [
    "ALIKE",
    "Job",
    "Made",
    "Role",
    "batch_of",
    "jobs_in",
    "jobs_of",
    "make",
    "reason",
    "refused",
    "without_place",
]


_Taken = TypeVar("_Taken")
ALIKE = 3
"""So many runs that fail in the same words show that the others would fail, too."""


@dataclass(frozen=True)
class Role:
    """What a run is made with: a queue, and a congestion control of the test's subject."""

    name: str
    """What the frame calls it."""
    queue: Candidate
    control: CandidateControl | None = CUBIC
    """None: the subject is left out."""
    marked: CandidateControl | None = None
    """The control where queues mark, if that is different."""

    def control_in(self, cell: SuiteCell) -> CandidateControl | None:
        """Its control in a test."""
        return self.marked if self.marked is not None and cell.row.ecn else self.control


@dataclass(frozen=True)
class Job:
    """A run that is wanted."""

    cell: SuiteCell
    queue: str
    """The name of the role."""
    seed: int
    scenario: Scenario


@dataclass(frozen=True)
class Made(Generic[_Taken]):
    """What became of it."""

    job: Job
    outcome: _Taken | AqmlabError


def jobs_of(
    cells: Sequence[SuiteCell],
    queues: Sequence[Candidate],
    seeds: Sequence[int],
    control: CandidateControl = CUBIC,
) -> list[Job]:
    """The runs of some cells behind some queues, checked; classes with a load are calibrated."""
    roles = [Role(queue.name, queue, control) for queue in queues]
    return jobs_in(cells, lambda _: roles, seeds)


def jobs_in(
    cells: Sequence[SuiteCell], roles: Callable[[SuiteCell], Sequence[Role]], seeds: Sequence[int]
) -> list[Job]:
    """The runs of some cells, each in its own roles."""
    found = []
    for cell in cells:
        for role in roles(cell):
            scenario = scenario_of(cell, role.queue, role.control_in(cell))
            if scenario.uncalibrated:
                scenario, _ = calibrate(scenario)
            own = seeds[: int(cell.row.seeds)] if cell.row.seeds else seeds
            found += [Job(cell, role.name, seed, scenario.with_seed(seed)) for seed in own]
    return found


def without_place(
    cells: Sequence[SuiteCell], roles: Callable[[SuiteCell], Sequence[Role]]
) -> dict[str, str]:
    """The tests over Wi-Fi where a queue cannot be the access point's, and why, by their ids."""
    pairs = [(cell, role) for cell in cells if cell.row.wifi for role in roles(cell)]
    reasons = ((cell.row.id, role.queue.name, _refusal(cell, role)) for cell, role in pairs)
    return {
        name: f"{queue} cannot be the access point's queue: {why}"
        for name, queue, why in reasons
        if why
    }


def _refusal(cell: SuiteCell, role: Role) -> str:
    """Why a cell has no scenario in a role; empty: it has one."""
    try:
        scenario_of(cell, role.queue, role.control_in(cell))
    except AqmlabError as error:
        return str(error)
    return ""


def batch_of(
    jobs: Sequence[Job], store: Store, known: Container[str] = ()
) -> Batch[Job, Literal[True]]:
    """Their runs, each once: those are found that the store has or whose keys are known."""

    def find(key: str) -> Literal[True] | None:
        return True if key in known or store.find(key) is not None else None

    by_key = {job.scenario.key: job for job in jobs}
    return Batch(by_key, lambda job: job.scenario, store, find)


def make(
    jobs: Sequence[Job],
    batch: Batch[Job, Any],
    store: Store,
    pool: Scheduler,
    take: Callable[[Run, SuiteCell], _Taken],
    progress: OnProgress = lambda _: None,
    known: Mapping[str, _Taken] | None = None,
) -> list[Made[_Taken]]:
    """Makes what is missing, and takes what is wanted of every run, in the order of the jobs.

    Args:
        jobs: the runs.
        batch: what :func:`batch_of` found of them.
        store: where they are, or go.
        pool: who makes them.
        take: what is wanted of a run; called from several threads.
        progress: called with the share that is done.
        known: what was taken of some runs elsewhere, by their key.
    """
    made = batch.make(pool, nothing, progress)
    errors = {key: error for key, error in made.items() if error is not None}
    return [Made(job, _outcome(job, errors, store, take, known or {})) for job in jobs]


def refused(lacking: Iterable[Job], who: str, store: Store, pool: Scheduler) -> str:
    """Makes the first runs of somebody, and says why if they all fail alike; empty: they do not.

    Whatever fails three times over in the same words fails every time: nobody waits for the rest.
    """
    first = [job.scenario for job in lacking if job.queue == who][:ALIKE]
    if len(first) < ALIKE:
        return ""
    made = pool.run(first, store, lambda _, __: None, nothing)
    reasons = {reason(one) if isinstance(one, AqmlabError) else "" for one in made}
    return reasons.pop() if len(reasons) == 1 else ""


def reason(error: AqmlabError) -> str:
    """Why a run failed, in a line: of a traceback the first line and the last."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if len(lines) == 1 else f"{lines[0]}: {lines[-1]}"


def _outcome(
    job: Job,
    errors: dict[str, AqmlabError],
    store: Store,
    take: Callable[[Run, SuiteCell], _Taken],
    known: Mapping[str, _Taken],
) -> _Taken | AqmlabError:
    """What was taken of a run, or why there is none."""
    key = job.scenario.key
    if key in known:
        return known[key]
    if key in errors:
        return errors[key]
    return take(Run.open(store.path(key)), job.cell)
