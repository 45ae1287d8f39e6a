"""Evaluating a queue discipline or a congestion control: the runs of the tests, and the card."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from aqmlab import _native
from aqmlab._util.bars import OnProgress, bar
from aqmlab._util.words import counted, lasting
from aqmlab.cards import audit, draw, own_measures
from aqmlab.cards import sealed as sealing
from aqmlab.cards.baselines import shipped
from aqmlab.cards.campaign import (
    ALIKE,
    Job,
    Made,
    Role,
    batch_of,
    jobs_in,
    make,
    reason,
    refused,
    without_place,
)
from aqmlab.cards.candidates import CUBIC, DROPTAIL, Candidate, CandidateControl
from aqmlab.cards.card import TIERS, Card, card_rows
from aqmlab.cards.counts import counts
from aqmlab.cards.generator import SuiteCell
from aqmlab.cards.kinds import CONTROL, Kind
from aqmlab.cards.measures import gate_values, values
from aqmlab.cards.roles import BASELINES, CONTROLS, control_roles, queue_roles, tier_cells
from aqmlab.cards.scoring import VERSION
from aqmlab.cards.suites import Measure
from aqmlab.cards.verdicts import PREFIX
from aqmlab.engine import schedulers
from aqmlab.engine.batch import Batch
from aqmlab.engine.in_memory import simulate
from aqmlab.engine.memory import limited
from aqmlab.engine.store import STORE_ROOT, Store
from aqmlab.errors import AqmlabError, RunError
from aqmlab.results.run import Run
from aqmlab.scenario.vary import seeds as parsed_seeds

__all__ = ["SEEDS", "baseline_jobs", "evaluate", "numbers_of_baselines"]


SEEDS: Mapping[str, Sequence[int]] = {
    "quick": range(1, 4),
    "standard": range(1, 11),
    "full": range(1, 31),
}
"""By tier."""
_REPEATED = "q-kinds"
"""The test whose run of a plug-in is made again: short, with traffic of all kinds."""
_COLUMNS = ("test", "cell", "queue", "seed", "measure", "value")


def evaluate(
    queue: str | Candidate | None = None,
    *,
    control: str | CandidateControl | None = None,
    ecn: str = "none",
    tier: str = "quick",
    baselines: Sequence[str] | None = None,
    only: Sequence[str] = (),
    seeds: str | Iterable[int] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: OnProgress | bool | None = None,
    memory: str | int | None = None,
    sealed: str = "",
    measures: str | os.PathLike[str] | None = None,
    keep_going: bool = False,
    say: Callable[[str], None] | None = None,
) -> Card:
    """Makes the report card of a queue discipline, or of a congestion control.

    What the store has is not run again: an evaluation that was interrupted goes on. If the first
    runs of the candidate all fail in the same words, the card says so of all. The numbers of the
    usual baselines ship with the package, as long as the engine is the one that made them.

    Args:
        queue: queue under test: a plug-in file (.py or .so; aqmlab executes its code), a preset or
            a kind. Parameters follow a colon: 'pie: qdelay_ref 5 ms'.
        control: congestion control under test: a plug-in file or a name.
        ecn: ECN of the flows of the control: none, classic (RFC 3168) or l4s (RFC 9331).
        tier: size of the set of tests: quick, standard or full.
        baselines: queues to compare with, in addition to drop-tail; default:
            fq-codel,pie,dualpi2,cake. For a control: controls to compare with, in addition to
            CUBIC; default: bbr3.
        only: run only these tests: names or sections that --list prints, such as a-base or
            r7928-5.3.
        seeds: numbers, or text such as "1..10"; default: 3, 10 or 30 by tier.
        jobs: runs at a time; default: the number of processors.
        scheduler: address of a Dask scheduler that makes the runs instead.
        store: folder of the store of runs; default: ``runs/store``.
        progress: called with the share that is done. Left out: a bar in terminals and notebooks;
            False: none.
        memory: how much the runs may take together, such as "4 GiB"; default: most of what is free.
        sealed: select other sealed settings: test links that the author of the queue cannot choose.
            aqmlab computes the links from this word and a hash of the queue. By default aqmlab uses
            only the hash.
        measures: score the tests by your own measures, from a CSV file: each row
            (test,measure,letter,unit,formula) adds a measure to a test. The letter selects the rule
            of the score: D (delay), T (time), R (RPM), F (fairness), U (opinion score) or G
            (goodput). A formula is the name of a metric, or an expression as in --metric.
        keep_going: continue even if the first three runs fail with the same message.
        say: called with a line about the work ahead.

    Raises:
        AqmlabError: the candidate, a baseline or an option is wrong.
        RunError: a run of a baseline failed.

    Example:
        >>> import aqmlab
        >>> card = aqmlab.evaluate("codel", only=["a-base", "a-cubic"], seeds="1..2")
        >>> card.name, [test.id for test in card.tests]
        ('codel', ['a-base', 'a-cubic'])
        >>> card.tests[0].score > 0.5, card.grade("delay")
        (True, 'A-C')
    """
    if tier not in TIERS:
        raise AqmlabError(f'tier: found "{tier}"; expected one of {", ".join(TIERS)}')
    if (queue is None) == (control is None):
        raise AqmlabError("found a queue and a control, or neither; expected one of the two")
    if baselines is not None and not baselines:
        raise AqmlabError("baselines: found none; expected one or more")
    kind, under_test, roles, others = (
        control_roles(control, ecn, baselines or CONTROLS)
        if control is not None
        else queue_roles(queue or DROPTAIL, baselines or BASELINES)
    )
    numbers = _numbers(seeds, tier)
    tests = [word for word in only if word not in (sealing.AREA, *audit.WORDS)]
    cells = tier_cells(tier, tests, kind) if tests or not only else []
    homeless = without_place(cells, roles)
    cells = [cell for cell in cells if cell.row.id not in homeless]
    wanted = own_measures.asked(
        list(dict.fromkeys(cell.row.id for cell in cells)),
        None if measures is None else Path(measures),
    )
    planned = jobs_in(cells, roles, numbers)
    planned = own_measures.recorded(planned, wanted) if wanted else planned
    word = ""
    if isinstance(under_test, Candidate) and (not only or sealing.AREA in only):
        word = draw.word_of(under_test, VERSION, sealed)
        for cell, seed in draw.drawn(word):
            planned += jobs_in([cell], roles, [seed])
    if isinstance(under_test, Candidate):
        planned += _audits(audit.asked(only), roles)
    if homeless and not planned:
        raise AqmlabError(next(iter(homeless.values())))
    if not planned:
        raise AqmlabError(f'only: found "{", ".join(only)}", which is of queues; expected a test')
    runs_store = Store(Path(store) if store is not None else STORE_ROOT)
    runs_store.tidy()
    with (
        limited(memory),
        bar(f"evaluating {under_test.name}", progress) as on_progress,
        schedulers.scheduler(scheduler, jobs) as pool,
    ):
        # What ships with the package has no number of one's own.
        own_tests = {one.measure.test for one in wanted}
        known = shipped(job for job in planned if job.cell.row.id not in own_tests)
        batch = batch_of(planned, runs_store, known)
        size = own_measures.size(batch.missing.values(), runs_store, wanted) if wanted else ""
        if say is not None and batch.missing:
            say(_plan(batch, batch.seconds(pool)) + size)
        why = "" if keep_going else refused(batch.missing.values(), "candidate", runs_store, pool)
        if why:
            mine = [job for job in planned if job.queue == "candidate"]
            why = f"the first {ALIKE} runs failed, all alike: {why}; {len(mine) - ALIKE} not tried"
            made: list[Made[dict[str, float]]] = [Made(job, RunError(why)) for job in mine]
        else:
            batch = batch_of(planned, runs_store, known)
            take = partial(_taken, wanted=wanted)
            made = make(planned, batch, runs_store, pool, take, on_progress, known)
            if under_test.file is not None:
                made = _with_a_repeat(made, runs_store)
    return _card(
        made,
        kind,
        under_test,
        word,
        _shown(_effective(kind, planned)),
        ecn=ecn,
        tier=tier,
        only=[*only],
        seeds=numbers,
        baselines=others,
        without_place=homeless,
        own=[one.measure for one in wanted],
    )


def _with_a_repeat(
    made: Sequence[Made[dict[str, float]]], store: Store
) -> list[Made[dict[str, float]]]:
    """Makes a run of a plug-in again, and adds the gate ``repeats``.

    A plug-in can draw random numbers of its own, read a clock, or keep something between runs: its
    results then are of one day.
    """
    found = [*made]
    own = [
        (one.job.cell.row.id != _REPEATED, place)
        for place, one in enumerate(made)
        if one.job.queue == "candidate" and not isinstance(one.outcome, AqmlabError)
    ]
    if not own:
        return found
    _, place = min(own)
    one = made[place]
    known = store.find(one.job.scenario.key)
    if known is not None and not isinstance(one.outcome, AqmlabError):
        try:
            differs = simulate(one.job.scenario).summary != known.summary
        except AqmlabError:
            differs = True
        found[place] = replace(one, outcome={**one.outcome, "gate:repeats": float(differs)})
    return found


def _audits(cells: Sequence[SuiteCell], roles: Callable[[SuiteCell], Sequence[Role]]) -> list[Job]:
    """The candidate's runs whose packets are recorded, with one seed each."""
    jobs = jobs_in(cells, roles, [1])
    own = [job for job in jobs if job.queue == "candidate"]
    record = {"measure.record": ["queue", "packets"]}
    return [replace(job, scenario=job.scenario.with_overrides(record)) for job in own]


def baseline_jobs(tier: str, only: Sequence[str] = ()) -> list[Job]:
    """The runs of cards that are none of a candidate, of a tier and of those before it, each once.

    Args:
        tier: the largest tier.
        only: tests; none: all.
    """
    found: dict[str, Job] = {}
    for upto in TIERS[: TIERS.index(tier) + 1]:
        for kind, _, roles, _ in (
            queue_roles(DROPTAIL, BASELINES),
            control_roles(CUBIC, "none", CONTROLS),
        ):
            own = [row.id for row in card_rows(upto, kind) if row.id in only]
            if only and not own:
                continue
            for job in jobs_in(tier_cells(upto, own, kind), roles, SEEDS[upto]):
                if job.queue != "candidate":
                    found.setdefault(job.scenario.key, job)
    return [*found.values()]


def numbers_of_baselines(
    tier: str, *, jobs: int | None = None, store: str | os.PathLike[str] | None = None
) -> list[tuple[Job, dict[str, float]]]:
    """What cards take of every run that is none of a candidate.

    Raises:
        AqmlabError: a run failed.
    """
    planned = baseline_jobs(tier)
    runs = Store(Path(store) if store is not None else STORE_ROOT)
    runs.tidy()
    with bar("baselines", None) as on_progress, schedulers.scheduler(None, jobs) as pool:
        made = make(planned, batch_of(planned, runs), runs, pool, _taken, on_progress)
    return [(one.job, _succeeded(one)) for one in made]


def _succeeded(made: Made[dict[str, float]]) -> dict[str, float]:
    """What was taken of a run; an error if it failed."""
    if isinstance(made.outcome, AqmlabError):
        raise made.outcome
    return made.outcome


def _numbers(seeds: str | Iterable[int] | None, tier: str) -> list[int]:
    """The seeds, in their order, each once."""
    if seeds is None:
        return [*SEEDS[tier]]
    found = parsed_seeds(seeds) if isinstance(seeds, str) else [*seeds]
    return sorted(set(found))


def _plan(batch: Batch[Job, Any], seconds: float) -> str:
    """What is about to be made."""
    own = sum(job.queue == "candidate" for job in batch.missing.values())
    return (
        f"{counted(len(batch.missing), 'run')} to make, {own} of the candidate; "
        f"{len(batch.found)} known already; about {lasting(seconds)}"
    )


def _taken(
    run: Run, cell: SuiteCell, wanted: Sequence[own_measures.OwnMeasure] = ()
) -> dict[str, float]:
    """What the card takes of a run, numbers of one's own included."""
    if cell.row.area == sealing.AREA:
        return {sealing.MEASURE: run.summary["links"]["bottleneck"]["forward"]["sojourn_p95_s"]}
    if cell.row.area == audit.AREA:
        return {f"{PREFIX}{name}": value for name, value in audit.taken(run, cell.row.id).items()}
    gates = {f"gate:{name}": value for name, value in gate_values(run, cell).items()}
    return {
        **values(run, cell),
        **gates,
        **counts(run, cell.row.id),
        **own_measures.values(run, cell.row.id, wanted),
    }


def _card(
    made: Sequence[Made[dict[str, float]]],
    kind: Kind,
    under_test: Candidate | CandidateControl,
    word: str,
    parameters: Mapping[str, Any],
    *,
    ecn: str,
    tier: str,
    only: Sequence[str],
    seeds: Sequence[int],
    baselines: Sequence[str],
    without_place: Mapping[str, str],
    own: Sequence[Measure],
) -> Card:
    """The card of what became of the runs.

    Args:
        made: the runs.
        kind: what the card is about.
        under_test: the candidate.
        word: what its sealed settings are drawn from; empty: it has none.
        parameters: of the candidate, with all defaults.
        ecn: of the flows of a control: none, classic or l4s.
        tier: the tier of the tests.
        only: names of the tests that were asked for; empty: all.
        seeds: of the runs.
        baselines: their names, without drop-tail or CUBIC.
        without_place: tests that were left out because a queue cannot stand there, and why.
        own: measures of one's own.
    """
    table: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    failures = []
    sealed: dict[str, dict[str, float]] = {}
    for one in made:
        job = one.job
        if job.cell.row.area == sealing.AREA:
            wait = (
                math.nan
                if isinstance(one.outcome, AqmlabError)
                else one.outcome.get(sealing.MEASURE, math.nan)
            )
            sealed.setdefault(_setting(job.cell), {})[job.queue] = wait
            continue
        if isinstance(one.outcome, AqmlabError):
            if job.queue != "candidate":
                raise RunError(
                    f"{job.cell.id} with {job.queue}, seed {job.seed}: {one.outcome}"
                ) from one.outcome
            failures.append((job.cell.id, job.seed, reason(one.outcome)))
            continue
        for measure, value in one.outcome.items():
            row = (job.cell.row.id, job.cell.id, job.queue, job.seed, measure, float(value))
            for name, item in zip(_COLUMNS, row, strict=True):
                table[name].append(item)
    given = under_test.table
    return Card(
        name=under_test.name,
        parameters=parameters,
        given={} if isinstance(given, str) else _shown(given),
        sha256=under_test.sha256,
        engine=_native.engine(),
        columns=table,
        failures=failures,
        kind=kind.name,
        sealed=_sealed(word, kind.anchor, baselines, sealed),
        ecn=ecn,
        tier=tier,
        only=only,
        seeds=seeds,
        baselines=baselines,
        without_place=without_place,
        own=own,
    )


def _setting(cell: SuiteCell) -> str:
    """A sealed setting in words."""
    row = cell.row
    flows = row.traffic.split()[0]
    return f"{row.rate}, {row.rtt}, buffer of {row.buffer}, {flows} flows"


def _sealed(
    word: str, anchor: str, baselines: Sequence[str], found: Mapping[str, Mapping[str, float]]
) -> sealing.Sealed | None:
    """What came out in the sealed settings."""
    if not found or any(anchor not in waits for waits in found.values()):
        return None
    settings = [
        sealing.SealedSetting(
            label,
            waits["candidate"],
            waits[anchor],
            [waits[name] for name in baselines],
        )
        for label, waits in found.items()
    ]
    return sealing.Sealed(word, settings)


def _shown(table: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters among the keys of a table."""
    hidden = ("kind", "name", "sha256", "limit", "memory")
    return {key: value for key, value in table.items() if key not in hidden}


def _effective(kind: Kind, planned: Sequence[Job]) -> Mapping[str, Any]:
    """The candidate as the scenario of the first test has it, with all defaults."""
    first = next(job for job in planned if job.queue == "candidate").scenario.data
    found: Mapping[str, Any] = {}
    if kind is CONTROL:
        subjects = [one for one in first["traffic"] if "tcp" in one]
        found = subjects[0]["tcp"]["congestion_control"]
    elif "wifi" in first["topology"]:
        found = first["topology"]["wifi"]["discipline"]
    elif "bottleneck" in first["topology"]:
        found = first["topology"]["bottleneck"]["forward"]["discipline"]
    return found
