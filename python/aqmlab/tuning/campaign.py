"""Running a search: settings are proposed, run where the store lacks them, weighed, confirmed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aqmlab._util.bars import OnProgress, bar
from aqmlab._util.fields import Scalar
from aqmlab._util.files import check_output_folder
from aqmlab._util.places import RUNS_ROOT
from aqmlab._util.words import counted
from aqmlab.engine import schedulers
from aqmlab.engine.batch import Batch
from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.commit import nothing
from aqmlab.engine.memory import limited
from aqmlab.engine.schedulers import Scheduler
from aqmlab.engine.store import STORE_ROOT, Store
from aqmlab.errors import AqmlabError, RunError, is_of_the_machine
from aqmlab.results.own_metrics import measured
from aqmlab.results.quantity import Quantity
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Override, Scenario
from aqmlab.tuning.outcome import Choice, Numbers, Scales, Tuning, balanced, checks, front
from aqmlab.tuning.plan import Plan
from aqmlab.tuning.report import refuse_a_taken_place, write
from aqmlab.tuning.study import FAILED, MEASURED, OPEN, REFUSED, Study, Trial, needed

__all__ = ["TUNES_ROOT", "tune"]


TUNES_ROOT = RUNS_ROOT / "tunes"
"""Where searches go by default."""
_Outcome = Run | AqmlabError
"""What became of a run."""
_Settings = Sequence[tuple[Mapping[str, Scalar] | None, int]]
"""Settings, None the untuned scenario, and the index of a scenario each."""


def tune(
    scenarios: Sequence[Scenario | str | os.PathLike[str]] | Scenario | str | os.PathLike[str],
    *,
    vary: str | Sequence[str],
    goal: str | Sequence[str],
    constraints: Sequence[str] = (),
    settings: Iterable[Override] | Mapping[str, str] = (),
    derive: Mapping[str, str] | None = None,
    seeds: Sequence[int] = (1, 2, 3),
    trials: int = 60,
    confirm: int = 8,
    batch: int = 4,
    jobs: int | None = None,
    scheduler: str | None = None,
    out: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: OnProgress | bool | None = None,
    memory: str | int | None = None,
) -> Tuning:
    """Searches for the parameters that serve one or several goals best, and checks what it found.

    Every setting runs in every scenario with every seed, so that all of them meet the same users.
    Whatever was run before is taken from the store; a search that was interrupted goes on in its
    folder and proposes what it would have proposed. It needs the package optuna.

    Args:
        scenarios: one or several, or the paths of their files.
        vary: field, and the range or values to search. "discipline.target=1 ms..50 ms:log" searches
            on a logarithmic scale, "discipline.limit=10..500:whole" only whole numbers.
            "discipline.ecn=true,false" tries two values. A name that is not a field is a variable:
            use it as $name in --set. May be repeated.
        goal: ``minimize METRIC`` or ``maximize METRIC``, several between commas or as a list.
        constraints: condition that every scenario must meet, such as "loss.forward <= 0.02". May be
            repeated.
        settings: fields of every scenario and their values; those that use ``$name`` are of the
            tuned ones alone.
        derive: variable computed from other variables, such as "max_th=3 * min_th". May be
            repeated.
        seeds: the seeds of the search.
        trials: number of settings to try.
        confirm: number of new seeds with which the command tests the best settings.
        batch: number of settings that the search proposes together.
        jobs: runs at a time on this machine; default: the number of processors.
        scheduler: address of a Dask scheduler that makes the runs instead.
        out: folder of the search; default: ``runs/tunes/SCENARIO``.
        store: folder of the store of runs; default: ``runs/store``.
        progress: called with the share that is done. Left out: a bar in terminals and notebooks.
        memory: how much the runs may take together on this machine.

    Returns:
        What was found, which is also written into the folder.

    Raises:
        AqmlabError: an argument is wrong, or the folder holds another search.
        RunError: the untuned scenario cannot be run, or the machine could not run some settings.

    Example:
        >>> import aqmlab
        >>> short = {"measure.warm_up": "1 s", "measure.duration": "2 s"}
        >>> scenario = aqmlab.Scenario.load("scenarios/bulk.toml").with_overrides(short)
        >>> found = aqmlab.tune(
        ...     scenario,
        ...     vary="discipline.limit=10..200 packets:log:whole",
        ...     goal="minimize delay",
        ...     trials=4, seeds=[1], confirm=2,
        ... )
        >>> len(found.trials), found.best.checks[0].verdict
        (4, 'better')
    """
    needed()
    listed = [scenarios] if isinstance(scenarios, Scenario | str | os.PathLike) else list(scenarios)
    plan = Plan.make(
        listed,
        vary=[vary] if isinstance(vary, str) else vary,
        goal=[goal] if isinstance(goal, str) else goal,
        constraints=constraints,
        settings=list(settings.items() if isinstance(settings, Mapping) else settings),
        derive=derive or {},
        seeds=seeds,
        trials=trials,
        confirm=confirm,
        batch=batch,
    )
    name = "-".join(scenario.name for scenario in plan.scenarios)
    folder = Path(out) if out is not None else TUNES_ROOT / name
    refuse_a_taken_place(folder)
    check_output_folder(folder)
    runs = Store(Path(store) if store is not None else STORE_ROOT)
    check_output_folder(runs.root)
    runs.tidy()
    with (
        limited(memory),
        bar("tuning", progress) as on_progress,
        schedulers.scheduler(scheduler, jobs) as pool,
    ):
        return _TuningSearch(plan, runs, pool, on_progress).run(folder)


@dataclass
class _TuningSearch:
    """A search on its way."""

    plan: Plan
    store: Store
    pool: Scheduler
    progress: OnProgress
    quantities: list[dict[str, Quantity]] = field(default_factory=list)
    """For each scenario what each metric stands for."""

    def run(self, folder: Path) -> Tuning:
        """All of it: the untuned scenarios, the search, what was chosen on fresh seeds."""
        everywhere = [(None, index) for index in range(len(self.plan.scenarios))]
        plain = self._made(everywhere, self.plan.seeds, (0.0, self._share(1)))
        reference = [list(map(_succeeded, outcomes)) for outcomes in plain]
        wanted = {name: Quantity.read(name) for name in self.plan.metrics}
        self.quantities = [
            {name: one.busiest(runs) for name, one in wanted.items()} for runs in reference
        ]
        untuned = self._numbers(reference)
        scales = Scales.of(self.plan, untuned)
        folder.mkdir(parents=True, exist_ok=True)
        left: list[Trial] = []
        with Study(folder, self.plan) as study:
            while batch := study.ask():
                done = batch[0].number
                span = (self._share(1 + done), self._share(1 + done + len(batch)))
                for trial in self._tried(batch, span):
                    if trial.state == OPEN:
                        study.leave(trial)
                        left.append(trial)
                        continue
                    known = trial.state == MEASURED
                    study.tell(
                        trial,
                        scales.mean(trial.measured) if known else None,
                        scales.violations(trial.measured) if known else (),
                    )
            trials = study.trials
            goals = [goal.metric for goal in self.plan.goals]
            importance = {name: study.importance(place) for place, name in enumerate(goals)}
        if left:
            settings = counted(len(left), "setting")
            raise RunError(
                f"{settings} could not be run ({left[0].error}); the same command tries them again"
            )
        found = Tuning(self.plan, folder, untuned, trials, importance, scales)
        found = self._chosen(found)
        write(found)
        self.progress(1.0)
        return found

    def _share(self, settings: int) -> float:
        """The share that is done with so many settings, the untuned one included."""
        return settings / (self.plan.trials + 1 + 3 * self.plan.confirm / len(self.plan.seeds))

    def _tried(self, batch: Sequence[Trial], span: tuple[float, float]) -> list[Trial]:
        """What became of some settings."""
        refused = {
            one.number: str(error)
            for one in batch
            if (error := self.plan.refusal(one.values)) is not None
        }
        wanted = [
            (trial, index)
            for trial in batch
            if trial.number not in refused
            for index in range(len(self.plan.scenarios))
        ]
        made = self._made([(one.values, index) for one, index in wanted], self.plan.seeds, span)
        by_trial: dict[int, list[list[_Outcome]]] = {}
        for (trial, _), outcomes in zip(wanted, made, strict=True):
            by_trial.setdefault(trial.number, []).append(outcomes)
        return [
            replace(trial, state=REFUSED, error=refused[trial.number])
            if trial.number in refused
            else self._judged(trial, by_trial[trial.number])
            for trial in batch
        ]

    def _judged(self, trial: Trial, outcomes: Sequence[Sequence[_Outcome]]) -> Trial:
        """A setting with its numbers, or with the error of one of its runs."""
        try:
            runs = [list(map(_succeeded, row)) for row in outcomes]
            return replace(trial, state=MEASURED, measured=self._numbers(runs))
        except AqmlabError as error:
            state = OPEN if is_of_the_machine(error) else FAILED
            return replace(trial, state=state, error=str(error))

    def _numbers(self, runs: Sequence[Sequence[Run]]) -> Numbers:
        """Every metric of some runs, scenarios by seeds; an error if one was not measured."""
        found: dict[str, list[list[float]]] = {name: [] for name in self.plan.metrics}
        for index, row in enumerate(runs):
            for name, quantity in self.quantities[index].items():
                values = [quantity.of(run) for run in row]
                known = [value for value in values if value is not None]
                if len(known) < len(values):
                    scenario = self.plan.scenarios[index].name
                    raise AqmlabError(f"{name}: was not measured in {scenario} ({quantity.key})")
                found[name].append(known)
        return found

    def _made(
        self, settings: _Settings, seeds: Sequence[int], span: tuple[float, float]
    ) -> list[list[_Outcome]]:
        """The runs of some settings with some seeds: found in the store, or made now."""
        planned = [
            [ready.with_seed(seed) for seed in seeds]
            for ready in (self._ready(values, index) for values, index in settings)
        ]
        distinct = {one.key: one for row in planned for one in row}
        batch = Batch(distinct, lambda one: one, self.store, self.store.find)
        begin, end = span
        made = batch.make(
            self.pool, nothing, lambda done: self.progress(begin + (end - begin) * done)
        )
        outcomes: dict[str, _Outcome] = {**batch.found}
        for key, error in made.items():
            outcomes[key] = error or Run.open(self.store.path(key))
        return [[outcomes[one.key] for one in row] for row in planned]

    def _ready(self, values: Mapping[str, Scalar] | None, index: int) -> Scenario:
        """A scenario with all its users."""
        base = self.plan.scenarios[index]
        chosen = base if values is None else self.plan.scenario_of(values, index)
        found, _ = calibrate(chosen, jobs=self.pool.jobs)
        return found

    def _chosen(self, found: Tuning) -> Tuning:
        """The search with what was chosen, confirmed on fresh seeds."""
        feasible = found.feasible
        if not feasible:
            return found
        signs = [goal.sign for goal in self.plan.goals]

        def turned(vector: Sequence[float]) -> list[float]:
            return [sign * value for sign, value in zip(signs, vector, strict=True)]

        means = [turned(found.scales.mean(trial.measured)) for trial in feasible]
        worst = [turned(found.scales.worst(trial.measured)) for trial in feasible]
        best, robust = feasible[balanced(means)], feasible[balanced(worst)]
        order = sorted(front(means), key=lambda index: means[index])
        fresh = self._fresh([best, robust] if robust is not best else [best], found)
        return replace(
            found,
            best=fresh[best.number],
            robust=fresh[robust.number],
            front=tuple(feasible[index] for index in order),
        )

    def _fresh(self, chosen: Sequence[Trial], found: Tuning) -> dict[int, Choice]:
        """Chosen settings against the untuned scenarios, on seeds that nobody has seen."""
        count = len(self.plan.scenarios)
        settings = [
            (values, index)
            for values in (None, *(trial.values for trial in chosen))
            for index in range(count)
        ]
        made = self._made(settings, self.plan.fresh_seeds, (self._share(1 + self.plan.trials), 1.0))
        runs = [list(map(_succeeded, row)) for row in made]
        numbers = [
            self._numbers(runs[first : first + count]) for first in range(0, len(runs), count)
        ]
        return {
            trial.number: checks(self.plan, trial, found.untuned, numbers[0], own)
            for trial, own in zip(chosen, numbers[1:], strict=True)
        }


def _succeeded(outcome: _Outcome) -> Run:
    """The run, with metrics of one's own; an error if it failed."""
    if isinstance(outcome, AqmlabError):
        raise outcome
    return measured(outcome)
