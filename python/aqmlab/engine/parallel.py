"""Many scenarios into one folder of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from aqmlab._util.pool import OnProgress, run_all
from aqmlab.engine.execute import execute
from aqmlab.engine.schedulers import LocalProcesses
from aqmlab.errors import AqmlabError
from aqmlab.plugins.sources import has_files
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

__all__ = ["execute_all"]


def execute_all(
    scenarios: Sequence[tuple[str, Scenario]],
    root: Path,
    jobs: int | None = None,
    progress: Callable[[str, float], None] | None = None,
    *,
    apart: bool = False,
) -> dict[str, Run | AqmlabError]:
    """Runs scenarios, several at a time, into ``root/NAME`` each.

    A finished run of the same scenario that is found there is used again, so that work continues
    where an interruption ended it. A failure is returned in the run's place and does not stop
    the others.

    Args:
        scenarios: pairs of a name, which must be unique, and a scenario.
        root: folder of the run directories.
        jobs: runs at a time; default: the number of processors.
        progress: called with a run's name and the share of it that is done, from several threads.
        apart: whether runs with plug-ins are made in other processes, which a plug-in may end.
    """
    names = [name for name, _ in scenarios]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise AqmlabError(f"two of the runs are called {twice}; names must be unique")

    def work(item: tuple[str, Scenario], report: OnProgress) -> Run:
        name, scenario = item
        if apart and has_files(scenario.effective):
            return processes.make(scenario, root / name, report)
        return execute(scenario, root / name, progress=report, reuse=True)

    def on_progress(index: int, done: float) -> None:
        if progress is not None:
            progress(names[index], done)

    with LocalProcesses(jobs) as processes:  # none is begun before it is needed
        made = run_all(work, scenarios, jobs=jobs, progress=on_progress)
    return dict(zip(names, made, strict=True))
