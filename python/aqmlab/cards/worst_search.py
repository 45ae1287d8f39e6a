"""The search for the worst: where is a queue, or a control, worse than the best of the others?

The tuner's search proposes scenarios within the bounds of ``suites/worst.csv`` and looks for the
largest *regret*. What it finds is made simpler, part by part, as long as most of the regret stays.
Then it is run with seeds that the search has not seen.

The regret towards another is the number in which the candidate loses most, less what the other
loses elsewhere: a queue that is quick because it leaves the link idle causes no regret.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from aqmlab import _native
from aqmlab._util.bars import OnProgress, bar
from aqmlab._util.fields import Scalar
from aqmlab._util.files import check_output_folder, write_text
from aqmlab._util.lazy import tomllib
from aqmlab.cards.campaign import Job, Role, batch_of, jobs_in, make
from aqmlab.cards.candidates import DROPTAIL, Candidate, CandidateControl
from aqmlab.cards.generator import SuiteCell, toml_of
from aqmlab.cards.kinds import Kind
from aqmlab.cards.measures import values
from aqmlab.cards.roles import BASELINES, CONTROLS, Roles, control_roles, queue_roles
from aqmlab.cards.worst import (
    FILE,
    TESTS,
    Bound,
    Numbers,
    Values,
    Worst,
    WorstChange,
    bounds,
    cell_of,
    lost,
    whole,
)
from aqmlab.engine import schedulers
from aqmlab.engine.memory import limited
from aqmlab.engine.schedulers import Scheduler
from aqmlab.engine.store import STORE_ROOT, Store
from aqmlab.errors import AqmlabError, RunError
from aqmlab.results.statistics import estimate
from aqmlab.scenario.scenario import inline
from aqmlab.tuning.goals import Goal
from aqmlab.tuning.space import Variable
from aqmlab.tuning.study import FAILED, MEASURED, Study, needed

__all__ = ["SEEDS", "TRIALS", "regret_towards", "worst"]


TRIALS = 40
"""Scenarios that are tried."""
SEEDS = (1, 2)
"""Seeds of the search."""
_FRESH = 8
"""How many seeds what it found is run with: those after the seeds of the search."""
_BATCH = 4
_SLACK = 0.1
"""Points that another may lose in a number without a loss: seven per cent of a time."""
_KEPT = 0.8
"""The share of the regret that a simpler scenario keeps."""
_DIGITS = 2
"""Digits of the numbers in the scenario that is written."""


@dataclass(frozen=True)
class _Plan:
    """What the tuner's search asks of a search."""

    variables: Sequence[Variable]
    identity: Mapping[str, Any]
    trials: int
    batch: int = _BATCH
    goals: Sequence[Goal] = (Goal("regret", is_minimized=False),)


@dataclass(frozen=True)
class _Regret:
    """How much better a baseline does."""

    size: float
    other: str


@dataclass
class _WorstSearch:
    """A search on its way."""

    kind: Kind
    roles: Roles
    store: Store
    pool: Scheduler
    on_progress: OnProgress
    plan: _Plan
    seeds: Sequence[int]
    known: dict[str, _Regret | None] = field(default_factory=dict)
    """By scenario; None: one of its runs failed."""

    def regrets(self, wanted: Sequence[Values]) -> list[_Regret | None]:
        """The regret towards the best of the others, of each scenario."""
        names = [json.dumps(dict(one), sort_keys=True) for one in wanted]
        fresh = [place for place, name in enumerate(names) if name not in self.known]
        cells = [replace(cell_of(self.kind.name, wanted[k]), label=names[k]) for k in fresh]
        found = self.numbers(cells, self.roles, self.seeds)
        for cell in cells:
            self.known[cell.label] = self._regret(found[cell.label])
        return [self.known[name] for name in names]

    def numbers(
        self, cells: Sequence[SuiteCell], roles: Roles, seeds: Sequence[int]
    ) -> dict[str, dict[str, list[Numbers] | None]]:
        """By label and role the numbers of each seed; None where a run failed."""
        planned = jobs_in(cells, roles, seeds)
        made = make(planned, batch_of(planned, self.store), self.store, self.pool, values)
        found: dict[str, dict[str, list[Numbers] | None]] = {cell.label: {} for cell in cells}
        for one in made:
            own, name = found[one.job.cell.label], one.job.queue
            if isinstance(one.outcome, AqmlabError):
                own[name] = None
                _refuse(one.job, one.outcome)
            elif (listed := own.setdefault(name, [])) is not None:
                listed.append(whole(one.outcome, self.kind.name))
        return found

    def _regret(self, found: Mapping[str, list[Numbers] | None]) -> _Regret | None:
        """The largest regret towards any of the others."""
        mine = found["candidate"]
        if mine is None:
            return None
        regrets = [
            _Regret(regret_towards(self.kind.name, mine, theirs), name)
            for name, theirs in found.items()
            if name != "candidate" and theirs is not None
        ]
        return max(regrets, key=lambda one: one.size)

    def search(self, folder: Path) -> tuple[Values, _Regret]:
        """The worst of the scenarios that the tuner's search proposes."""
        with Study(folder, self.plan) as study:
            while batch := study.ask():
                regrets = self.regrets([one.values for one in batch])
                for trial, regret in zip(batch, regrets, strict=True):
                    state = FAILED if regret is None else MEASURED
                    loss = None if regret is None else [regret.size]
                    study.tell(replace(trial, state=state), loss, ())
                self.on_progress(0.7 * (batch[-1].number + 1) / self.plan.trials)
            tried = [one.values for one in study.trials]
        found = [
            (one, regret)
            for one, regret in zip(tried, self.regrets(tried), strict=True)
            if regret is not None
        ]
        if not found:
            raise RunError("a run of the candidate failed in every scenario that was tried")
        return max(found, key=lambda pair: pair[1].size)

    def simpler(self, found: Values, regret: _Regret) -> tuple[Values, _Regret]:
        """A scenario with fewer and rounder parts that keeps most of the regret."""
        least = _KEPT * regret.size
        for place, bound in enumerate(own := bounds(self.kind.name)):
            for value in _simpler(bound, found[bound.variable.name]):
                tried = {**found, bound.variable.name: value}
                [now] = self.regrets([tried])
                if now is not None and now.size >= least:
                    found, regret = tried, now
                    break
            self.on_progress(0.7 + 0.2 * (place + 1) / len(own))
        return found, regret


def _refuse(job: Job, error: AqmlabError) -> None:
    """An error if the run that failed is none of the candidate."""
    if job.queue != "candidate":
        raise RunError(f"the search for the worst, {job.queue}: {error}") from error


def regret_towards(kind: str, mine: Sequence[Numbers], theirs: Sequence[Numbers]) -> float:
    """The regret towards another: the most that is lost, less what the other loses elsewhere.

    Args:
        kind: ``queue`` or ``control``.
        mine: the candidate's numbers, of each seed.
        theirs: those of the other queue or control.
    """
    means = [float(np.mean(one)) for _, one in lost(kind, mine, theirs)]
    elsewhere = sum(max(0.0, -one - _SLACK) for one in means)
    return max(means) - elsewhere


def _simpler(bound: Bound, value: Scalar) -> Iterator[Scalar]:
    """Simpler values than one, the simplest first."""
    if value == bound.plain:
        return
    yield bound.plain
    if isinstance(value, str):
        return
    if bound.variable.is_whole:
        yield from (one for one in (2, 5, 10) if float(bound.plain) < one < value)
        return
    rounded = float(f"{value:.1g}")
    if bound.variable.low <= rounded <= bound.variable.high:
        yield rounded
    yield float(f"{value:.{_DIGITS}g}")


def worst(
    queue: str | Candidate | None = None,
    *,
    control: str | CandidateControl | None = None,
    ecn: str = "none",
    baselines: Sequence[str] | None = None,
    trials: int = TRIALS,
    seeds: Sequence[int] = SEEDS,
    jobs: int | None = None,
    scheduler: str | None = None,
    out: str | os.PathLike[str],
    store: str | os.PathLike[str] | None = None,
    progress: OnProgress | bool | None = None,
    memory: str | int | None = None,
) -> Worst:
    """Searches for the scenario in which a candidate does worst beside the best of some others.

    A search that was interrupted goes on in its folder.

    Args:
        queue: a queue, as :func:`aqmlab.evaluate` takes it.
        control: a congestion control instead.
        ecn: ECN of the control's flows.
        baselines: the others; drop-tail, or CUBIC for a control, always is one.
        trials: scenarios that are tried.
        seeds: what each is run with. More of them are less misled by chance.
        jobs: runs at a time; default: the number of processors.
        scheduler: address of a Dask scheduler that makes the runs instead.
        out: folder of the search and of ``worst.toml``.
        store: folder of the store of runs; default: ``runs/store``.
        progress: called with the share that is done. Left out: a bar where it is seen.
        memory: how much the runs may take together.

    Raises:
        AqmlabError: the candidate or an option is wrong, or optuna is not installed.
        RunError: a run of a baseline failed, or in every scenario a run of the candidate.
    """
    needed()
    if trials < 1:
        raise AqmlabError(f"--trials: found {trials}; expected a whole number from 1")
    kind, under_test, roles, _ = (
        control_roles(control, ecn, baselines or CONTROLS)
        if control is not None
        else queue_roles(queue or DROPTAIL, baselines or BASELINES)
    )
    roles = _without(roles, under_test)
    folder = Path(out)
    check_output_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    runs = Store(Path(store) if store is not None else STORE_ROOT)
    runs.tidy()
    plan = _Plan(
        [one.variable for one in bounds(kind.name)],
        _identity(kind, roles, under_test, seeds),
        trials,
    )
    with (
        limited(memory),
        bar(f"the worst for {under_test.name}", progress) as on_progress,
        schedulers.scheduler(scheduler, jobs) as pool,
    ):
        search = _WorstSearch(kind, roles, runs, pool, on_progress, plan, seeds)
        begun, regret = search.search(folder)
        found, now = search.simpler(begun, regret)
        fresh = range(max(seeds) + 1, max(seeds) + 1 + _FRESH)
        changes = _replayed(search, found, now.other, fresh)
        on_progress(1.0)
    cell = cell_of(kind.name, found)
    role = next(one for one in roles(cell) if one.name == "candidate")
    made = Worst(
        kind=kind.name,
        name=under_test.name,
        other=now.other,
        values=found,
        regret=regret.size,
        tried=len(search.known),
        failed=sum(one is None for one in search.known.values()),
        seeds=fresh,
        changes=changes,
        text=_titled(toml_of(cell, role.queue, role.control_in(cell)), under_test.name),
        instead=_instead(roles(cell), cell, now.other),
    )
    write_text(folder / FILE, made.file)
    return made


def _titled(text: str, name: str) -> str:
    """A scenario with a title that says what it is."""
    title = f"title = {inline(f'the worst that a search found for {name}')}"
    return re.sub(r"^title = .*$", lambda _: title, text, count=1, flags=re.MULTILINE)


def _instead(roles: Sequence[Role], cell: SuiteCell, other: str) -> str:
    """The option that puts a baseline in the place of the candidate."""
    if cell.row.id != TESTS["control"]:
        table = _made(roles, cell, other)["topology"]["bottleneck"]["forward"]["discipline"]
        return f"topology.bottleneck.forward.discipline={inline(table)}"
    mine, theirs = (
        next(one["tcp"] for one in _made(roles, cell, name)["traffic"] if one["name"] == "subject")
        for name in ("candidate", other)
    )
    key = "congestion_control"
    if {**mine, key: ""} == {**theirs, key: ""}:
        return f"traffic.subject.tcp.{key}={inline(theirs[key])}"
    return f"traffic.subject.tcp={inline(theirs)}"  # another ECN


def _made(roles: Sequence[Role], cell: SuiteCell, name: str) -> dict[str, Any]:
    """The scenario with the candidate or a baseline."""
    role = next(one for one in roles if one.name == name)
    return tomllib.loads(toml_of(cell, role.queue, role.control_in(cell)))


def _without(roles: Roles, under_test: Candidate | CandidateControl) -> Roles:
    """Roles without the one that is the candidate itself."""

    def kept(cell: SuiteCell) -> list[Role]:
        found = roles(cell)
        return [one for one in found if one.name == "candidate" or one.name != under_test.name]

    return kept


def _identity(
    kind: Kind, roles: Roles, under_test: Candidate | CandidateControl, seeds: Sequence[int]
) -> dict[str, Any]:
    """What tells one search from another; how long it lasts does not."""
    plain = {one.variable.name: one.plain for one in bounds(kind.name)}
    keys = [job.scenario.key for job in jobs_in([cell_of(kind.name, plain)], roles, seeds)]
    return {
        "candidate": under_test.name,
        "kind": kind.name,
        "vary": [str(one.variable) for one in bounds(kind.name)],
        "runs": hashlib.sha256("".join(keys).encode()).hexdigest()[:16],
        "engine": _native.engine(),
    }


def _replayed(
    search: _WorstSearch, found: Values, other: str, seeds: Sequence[int]
) -> list[WorstChange]:
    """What a scenario shows of the candidate and of a baseline on fresh seeds."""
    cell = cell_of(search.kind.name, found)

    def two(cell: SuiteCell) -> list[Role]:
        return [one for one in search.roles(cell) if one.name in ("candidate", other)]

    [numbers] = search.numbers([cell], two, seeds).values()
    mine, theirs = numbers["candidate"], numbers[other]
    if mine is None or theirs is None:
        raise RunError(f"{cell.id}: a run of the candidate failed on fresh seeds")
    changes = [
        WorstChange(
            measure,
            float(np.mean([one[measure.measure] for one in mine])),
            float(np.mean([one[measure.measure] for one in theirs])),
            estimate(by_seed),
        )
        for measure, by_seed in lost(search.kind.name, mine, theirs)
    ]
    return sorted(changes, key=lambda one: -one.points.mean)
