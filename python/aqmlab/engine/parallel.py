"""Many scenarios into one folder of runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from aqmlab._util.files import check_output_folder
from aqmlab._util.plugin_sources import has_files
from aqmlab._util.pool import OnProgress, run_all
from aqmlab.engine.commit import Done, RunCommit, itself
from aqmlab.engine.execute import execute, make
from aqmlab.engine.intake import Folder
from aqmlab.engine.schedulers import LocalProcesses
from aqmlab.errors import AqmlabError
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

    def work(item: tuple[str, Scenario], report: OnProgress) -> str | Run:
        name, scenario = item
        target = root / name
        if group is None or os.path.lexists(target):
            return execute(scenario, target, progress=report, reuse=True)
        place = group.place(name)
        try:
            if apart and has_files(scenario.effective):
                run = processes.make(scenario, place, report, durable=False)
            else:
                run = make(scenario, place, report)
        except AqmlabError as error:  # people know the place by its name
            raise type(error)(str(error).replace(str(place), str(target))) from None
        group.add(name, Done(run.at(target)))
        return name

    def on_progress(index: int, done: float) -> None:
        if progress is not None:
            progress(names[index], done)

    folder = Folder(root)
    folder.tidy()
    group = None
    with ExitStack() as stack:
        processes = stack.enter_context(LocalProcesses(jobs))  # none is begun before it is needed
        if any(not os.path.lexists(root / name) for name in names):
            check_output_folder(root)
            group = stack.enter_context(RunCommit(folder, itself))
        made = run_all(work, scenarios, jobs=jobs, progress=on_progress)
    known = {} if group is None else group.taken
    found = (known[one] if isinstance(one, str) else one for one in made)
    return dict(zip(names, found, strict=True))
