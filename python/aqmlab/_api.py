"""The functions that ``import aqmlab`` offers beside its classes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import overload

from aqmlab._util.bars import OnProgress, bar
from aqmlab._util.places import RUNS_ROOT
from aqmlab._util.pool import Shares
from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.execute import default_path, execute
from aqmlab.engine.memory import limited
from aqmlab.engine.parallel import execute_all
from aqmlab.errors import AqmlabError
from aqmlab.results.compare import Difference, compared_groups, differences
from aqmlab.results.run import Run
from aqmlab.results.settings import Answers, answers
from aqmlab.scenario.scenario import Scenario
from aqmlab.scenario.vary import seeds as parsed_seeds


@overload
def run(
    scenario: Scenario | str | os.PathLike[str],
    seed: int | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    seeds: None = None,
    jobs: int | None = None,
    progress: OnProgress | bool | None = None,
    memory: str | int | None = None,
) -> Run: ...


@overload
def run(
    scenario: Scenario | str | os.PathLike[str],
    seed: None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    seeds: str | Iterable[int],
    jobs: int | None = None,
    progress: OnProgress | bool | None = None,
    memory: str | int | None = None,
) -> list[Run]: ...


def run(
    scenario: Scenario | str | os.PathLike[str],
    seed: int | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    seeds: str | Iterable[int] | None = None,
    jobs: int | None = None,
    progress: OnProgress | bool | None = None,
    memory: str | int | None = None,
) -> Run | list[Run]:
    """Runs a scenario, or finds its finished run.

    Args:
        scenario: the scenario, or the path of its file.
        seed: seed of every random stream; default: the scenario's.
        out_dir: the run directory; default: a name under ``runs``. With `seeds` their folder.
        seeds: one run for each, several at a time; numbers, or text such as "1..8".
        jobs: runs at a time with `seeds`; default: the number of processors.
        progress: called now and then with the share that is done, with `seeds` from several
            threads. Left out: a bar in terminals and notebooks (with ipywidgets); False: none.
        memory: how much this process may take for the runs, in bytes or as text such as "4 GiB";
            default: most of what is free.

    Returns:
        The run; with `seeds` a list of runs in their order.

    Raises:
        ScenarioError: the scenario is wrong.
        RunError: a run failed.

    Example:
        >>> import aqmlab
        >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
        >>> scenario = aqmlab.Scenario.load("scenarios/bulk.toml").with_overrides(short)
        >>> run = aqmlab.run(scenario)
        >>> run.label, run.seed
        ('droptail 100', 1)
        >>> run.summary["links"]["bottleneck"]["forward"]["utilization"] > 0.9
        True
        >>> [run.seed for run in aqmlab.run(scenario, seeds="1..3")]
        [1, 2, 3]
    """
    chosen = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    if seeds is not None and seed is not None:
        raise AqmlabError("run(): found seed and seeds; give one of them")
    with limited(memory):
        return _made(chosen, seed, seeds, out_dir, jobs, progress)


def _made(
    chosen: Scenario,
    seed: int | None,
    seeds: str | Iterable[int] | None,
    out_dir: str | os.PathLike[str] | None,
    jobs: int | None,
    progress: OnProgress | bool | None,
) -> Run | list[Run]:
    """The run of a scenario, or those of some seeds."""
    if chosen.uncalibrated:
        with bar("calibrating", None if callable(progress) else progress) as on_calibration:
            chosen, _ = calibrate(chosen, jobs=jobs, progress=on_calibration)
    with bar(f"running {chosen.name}", progress) as on_run:
        if seeds is None:
            chosen = chosen if seed is None else chosen.with_seed(seed)
            return execute(chosen, out_dir, progress=on_run, reuse=True)
        numbers = parsed_seeds(seeds) if isinstance(seeds, str) else list(dict.fromkeys(seeds))
        root = RUNS_ROOT if out_dir is None else Path(out_dir)
        return _replicas([chosen.with_seed(number) for number in numbers], root, jobs, on_run)


def _replicas(
    planned: Sequence[Scenario], root: Path, jobs: int | None, progress: OnProgress
) -> list[Run]:
    """Runs of a scenario with several seeds; an error if one failed."""
    named = {default_path(one, root).name: one for one in planned}
    shares = Shares(len(named), progress)
    found = []
    for result in execute_all(list(named.items()), root, jobs, shares).values():
        if isinstance(result, AqmlabError):
            raise result
        found.append(result)
    return found


def compare(
    runs: Sequence[Run | str | os.PathLike[str]], baseline: str | None = None
) -> list[Difference]:
    """Differences to a baseline, with their intervals.

    Runs that differ in nothing but their seed are taken together; see
    :mod:`aqmlab.results.compare`. Only runs of the same scenario are compared; see
    :mod:`aqmlab.results.families`.

    Args:
        runs: runs, or paths of run directories.
        baseline: label of the runs with which the others are compared; default: those with a
            drop-tail queue, or else the first ones.

    Returns:
        A difference for each metric, class of traffic and direction of a link that both sides
        measured. The interval covers 95 %; a single pair of runs has one from blocks of time.

    Raises:
        AqmlabError: a folder holds no run, or no run has the label of the baseline.

    Example:
        >>> import aqmlab
        >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
        >>> scenario = aqmlab.Scenario.load("scenarios/vectors.toml").with_overrides(short)
        >>> queues = ("droptail-240", "fq-codel")
        >>> field = "topology.bottleneck.discipline"
        >>> runs = [aqmlab.run(scenario.with_overrides({field: queue})) for queue in queues]
        >>> [run.label for run in runs]
        ['droptail-240', 'fq-codel']
        >>> {difference.metric for difference in aqmlab.compare(runs)} >= {"p50_s", "p90_s"}
        True
    """
    return differences(compared_groups([opened(entry) for entry in runs]), baseline)


def answer(runs: Sequence[Run | str | os.PathLike[str]], baseline: str | None = None) -> Answers:
    """Which of some queues to take: who gains, who pays, and how sure that is.

    Args:
        runs: runs, or paths of run directories, of the same scenario behind several queues.
        baseline: label of the runs of what is used today; default: those with a drop-tail queue.

    Raises:
        AqmlabError: there is nothing to decide between.

    Example:
        >>> import aqmlab
        >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
        >>> scenario = aqmlab.Scenario.load("scenarios/office.toml").with_overrides(short)
        >>> queues = ("droptail-240", "fq-codel")
        >>> runs = [aqmlab.run(scenario.with_overrides({"discipline": queue})) for queue in queues]
        >>> answer = aqmlab.answer(runs)
        >>> answer.headline
        'No queue is enough. Best: FQ-CoDel.'
        >>> answer.to_json()["take"]
        ['fq-codel']
    """
    found = answers(compared_groups([opened(entry) for entry in runs]), baseline)
    if found is None:
        raise AqmlabError(
            "answer(): found no two runs of one scenario with different queues, or senders; name "
            "the runs of two queues at least"
        )
    return found


def report(
    runs: Sequence[Run | str | os.PathLike[str]],
    path: str | os.PathLike[str] | None = None,
    *,
    kind: str | None = None,
    title: str | None = None,
    question: str | None = None,
    baseline: str | None = None,
) -> Path:
    """Writes a report about some runs: one file that needs no network.

    Args:
        runs: runs, or paths of run directories.
        path: the file; its suffix says what is written. Default: ``report.html`` or its like.
        kind: ``html``, ``md``, ``pdf`` or ``png``, where the suffix does not say it.
        title: its title; default: that of the scenarios.
        question: what the runs are to answer; default: made from what differs.
        baseline: label of the runs with which the others are compared; default: those with a
            drop-tail queue, or else the first ones.

    Returns:
        Where it is.

    Example:
        >>> import aqmlab
        >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
        >>> run = aqmlab.run(aqmlab.Scenario.load("scenarios/bulk.toml").with_overrides(short))
        >>> aqmlab.report([run], "report.md").read_text().startswith("# ")
        True
    """
    from aqmlab._util import drawing  # noqa: F401 - says what is not installed
    from aqmlab.reports.write import write  # it loads what draws

    found = [opened(entry) for entry in runs]
    return write(found, path, kind=kind, title=title, question=question, baseline=baseline)


def opened(entry: Run | str | os.PathLike[str]) -> Run:
    """A run, or that of a run directory."""
    return entry if isinstance(entry, Run) else Run.open(entry)
