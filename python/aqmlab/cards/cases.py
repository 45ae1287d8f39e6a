"""Test cases of congestion controls: each row of a suite holds or fails, with numbers.

The column ``numbers`` of such a suite has numbers by name, ``used = used(100); ...``, and ``holds``
a rule over these names. A row holds if its rule does in each of its settings and with
each seed.

=====================  ===============================================================
``goodput(CLASS)``     Mbit/s of application data in the measured span
``used()``             IP bytes of the goodput of all classes over what the link carries;
                       ``used(R)``: over R Mbit/s
``loss()``             the share that the policer and the queue drop
``wait(Q)``            the quantile Q of the backlog, in ms
``longest()``          the most packets that waited in the queue
``reached(R, T)``      from T on, the seconds until a sampled sender has R Mbit/s in flight
                       a round trip; the end of the run if it never has
``larger(A, B)``       the larger one over the smaller one
=====================  ===============================================================
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from aqmlab._util.bars import OnProgress, bar
from aqmlab._util.expressions import Expression
from aqmlab._util.words import counted, lasting
from aqmlab.cards import measures
from aqmlab.cards.campaign import Job, batch_of, jobs_of, make
from aqmlab.cards.candidates import Candidate, CandidateControl
from aqmlab.cards.control_states import STATE_FUNCTIONS
from aqmlab.cards.generator import SuiteCell, cells
from aqmlab.cards.suites import Row
from aqmlab.engine import schedulers
from aqmlab.engine.store import STORE_ROOT, Store
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.results.run import Run
from aqmlab.scenario.quantities import parsed_rate

__all__ = ["CaseOutcome", "Shown", "are_cases", "judged", "numbers"]


_PACKET, _DATA = 1500, 1448
"""IP bytes of a full packet, and those of the application in it."""
_MEGA = 1e6
_OF_PHASE = re.compile(r"\S+\.when\.phase: ")
"""How the error of a scenario begins that waits for a phase which its control does not have."""


@dataclass(frozen=True)
class Shown:
    """What a setting of a row showed with a seed."""

    setting: str
    seed: int
    numbers: Mapping[str, float | None]
    """None: the control shows nothing of it."""
    holds: bool | None
    """None: not applicable."""
    error: str | None = None
    """Why there is no run."""
    cell: SuiteCell | None = None
    """What ran; None: the control has no such phase as the row waits for."""


@dataclass(frozen=True)
class CaseOutcome:
    """A row, and what became of it."""

    row: Row
    shown: Sequence[Shown]

    @property
    def verdict(self) -> str:
        """``holds``, ``fails`` or ``n/a``."""
        found = [one.holds for one in self.shown]
        if any(one is False for one in found):
            return "fails"
        return "n/a" if None in found or not found else "holds"


def are_cases(rows: Sequence[Row]) -> bool:
    """Whether rows of a suite hold or fail."""
    return any(row.holds for row in rows)


def numbers(run: Run, cell: SuiteCell) -> dict[str, float | None]:
    """The numbers of a case in a run."""
    functions = {name: partial(_called, function, run) for name, function in _FUNCTIONS.items()}
    found: dict[str, float | None] = {}
    for part in cell.row.numbers.split(";"):
        name, _, text = part.partition(" = ")
        value = Expression.parse(text.strip(), functions).value({})
        found[name.strip()] = None if math.isnan(value) else float(value)
    return found


def _called(function: Callable[..., float | None], run: Run, *arguments: Any) -> Any:  # noqa: ANN401
    """A number; what there is none of is not a number, with which expressions go on."""
    value = function(run, *arguments)
    return np.float64(math.nan if value is None else value)


def judged(
    rows: Sequence[Row],
    queue: Candidate,
    control: CandidateControl,
    *,
    seeds: Sequence[int] = (1,),
    jobs: int | None = None,
    scheduler: str | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: OnProgress | bool | None = None,
    say: Callable[[str], None] | None = None,
) -> list[CaseOutcome]:
    """Runs some rows with a control; what the store has is used."""
    planned: list[Job] = []
    by_row: dict[str, list[Shown]] = {row.id: [] for row in rows}
    for cell in [cell for row in rows for cell in cells(row)]:
        if found := _jobs(cell, queue, seeds, control):
            planned += found
        else:
            absent = dict.fromkeys(_names(cell.row))
            by_row[cell.row.id] += [Shown(cell.label, seed, absent, None) for seed in seeds]
    runs = Store(Path(store) if store is not None else STORE_ROOT)
    runs.tidy()
    with (
        bar(f"evaluating {control.name}", progress) as on_progress,
        schedulers.scheduler(scheduler, jobs) as pool,
    ):
        batch = batch_of(planned, runs)
        if say is not None and batch.missing:
            seconds = batch.seconds(pool)
            say(f"{counted(len(batch.missing), 'run')} to make, about {lasting(seconds)}")
        made = make(planned, batch, runs, pool, numbers, on_progress)
    for one in made:
        cell = one.job.cell
        if isinstance(one.outcome, AqmlabError):
            shown = Shown(cell.label, one.job.seed, {}, None, str(one.outcome), cell)
        else:
            holds = _holds(cell.row, one.outcome)
            shown = Shown(cell.label, one.job.seed, one.outcome, holds, cell=cell)
        by_row[cell.row.id].append(shown)
    return [CaseOutcome(row, by_row[row.id]) for row in rows]


def _jobs(
    cell: SuiteCell, queue: Candidate, seeds: Sequence[int], control: CandidateControl
) -> list[Job]:
    """The runs of a cell; none if it waits for a phase that the control does not have."""
    try:
        return jobs_of([cell], [queue], seeds, control)
    except ScenarioError as error:
        if _OF_PHASE.match(str(error)):
            return []
        raise


def _names(row: Row) -> list[str]:
    """The names of a row's numbers."""
    return [part.partition(" = ")[0].strip() for part in row.numbers.split(";")]


def _holds(row: Row, found: Mapping[str, float | None]) -> bool | None:
    """Whether the rule of a row holds; None where a number of the rule is missing."""
    rule = Expression.parse(row.holds)
    if any(found[name] is None for name in rule.names):
        return None
    return bool(rule.value(found))


# ---- what numbers are made of ----


def _goodput(run: Run, name: str) -> float:
    return float(run.summary["flows"][name]["goodput_bps"] or 0.0) / _MEGA


def _used(run: Run, mbit: float | None = None) -> float:
    names = [name for name in run.summary["flows"] if name != "all"]
    link = run.scenario["topology"]["bottleneck"]["forward"]
    rate = parsed_rate(link["rate"]) / _MEGA if mbit is None else mbit
    return math.fsum(_goodput(run, name) for name in names) * _PACKET / _DATA / rate


def _loss(run: Run) -> float:
    links = run.summary["links"].values()
    return 1 - math.prod(1 - float(link["forward"]["loss_rate"] or 0.0) for link in links)


def _wait(run: Run, share: float) -> float | None:
    _, waits = measures.backlog(run)
    return float(np.quantile(waits, share)) * 1e3 if len(waits) else None


def _longest(run: Run) -> float:
    return float(run.summary["links"]["bottleneck"]["forward"]["queue_max_packets"])


def _reached(run: Run, mbit: float, since: float) -> float | None:
    end = float(run.summary["simulated_s"])
    found = []
    for times, rates in measures.senders(run):
        there = times[(times >= since) & (8 * rates >= mbit * _MEGA)]
        found.append((float(there[0]) if len(there) else end) - since)
    return max(found, default=None)


def _larger(_: Run, one: float, other: float) -> float | None:
    low, high = sorted((one, other))
    return high / low if low else math.inf


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "goodput": _goodput,
    "used": _used,
    "loss": _loss,
    "wait": _wait,
    "longest": _longest,
    "reached": _reached,
    "larger": _larger,
    **STATE_FUNCTIONS,
}
"""By name: what the numbers of a row may call."""
