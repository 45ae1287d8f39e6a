"""``aqmlab run``: one scenario, once or with several seeds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from aqmlab._util.console import Progress, out, print_json, print_tsv, say, show
from aqmlab._util.files import check_output_folder
from aqmlab._util.places import RUNS_ROOT
from aqmlab._util.plugin_sources import has_files
from aqmlab.cli import tables
from aqmlab.cli.options import (
    Jobs,
    Json,
    Link,
    Memory,
    Plugins,
    ScenarioFile,
    Seed,
    Seeds,
    Sets,
    Tsv,
    check_format,
    chosen_seeds,
    one_seed,
)
from aqmlab.cli.planning import calibrated, load, made, say_packets
from aqmlab.engine import privileges
from aqmlab.engine.execute import World, default_path, execute, existing_run
from aqmlab.engine.workspace import remove_abandoned
from aqmlab.errors import AqmlabError
from aqmlab.results.labels import distinguish
from aqmlab.results.run import Run

__all__ = ["command"]


def command(
    scenario: ScenarioFile,
    overrides: Sets = None,
    link: Link = None,
    seed: Seed = None,
    seeds: Seeds = None,
    *,
    directory: Path | None = None,
    world: World = World.SIM,
    as_json: Json = False,
    as_tsv: Tsv = False,
    jobs: Jobs = None,
    memory: Memory = None,  # noqa: ARG001 - its callback has set it
    plugin: Plugins = None,  # noqa: ARG001 - its callback has loaded them
) -> None:
    """Run a scenario.

    If the scenario states a load, the command first finds the number of users that causes this
    load. The command does not repeat a finished run. --link replaces the bottleneck and the
    round-trip times of the scenario.

    Options:
        directory (--out FOLDER): Run directory; default: runs/NAME-KEY-sSEED, where KEY is a hash
            of the scenario. With --seeds: folder of all run directories.
        world (--on): Run in the simulator (sim), or in real time on this machine's kernel (live).
    """
    check_format(as_json=as_json, as_tsv=as_tsv)
    if seeds is not None:
        if world is World.LIVE:
            raise AqmlabError("--seeds: live runs go one at a time; give each its --seed")
        wanted = chosen_seeds(seed, seeds) or []
        root = directory or RUNS_ROOT
        planned = [load(scenario, overrides, number, link) for number in wanted]
        _show_runs(distinguish(made(planned, root, jobs)), as_json=as_json, as_tsv=as_tsv)
        return
    chosen = load(scenario, overrides, one_seed(seed), link)
    if world is World.LIVE:
        privileges.require()  # before the work of calibration, too
    if directory is not None and os.path.lexists(directory):
        existing_run(directory)  # fail before the work, not after it
    elif directory is not None:
        check_output_folder(directory)
    [ready] = calibrated([chosen], jobs)
    place = directory or default_path(ready, world=world)
    if world is World.LIVE:
        for left in remove_abandoned(place.parent):
            say(f"removed {left}, which a killed run left behind")
    with Progress("running") as progress:
        task = progress.task(chosen.name)
        if world is World.SIM and has_files(ready.effective):  # a plug-in may end its process
            from aqmlab.engine.schedulers import LocalProcesses

            say_packets([(ready, place)])
            with LocalProcesses(1) as processes:
                run = processes.make(ready, place, task)
        else:
            note = say if world is World.SIM else None
            run = execute(ready, place, world=world, progress=task, reuse=True, say=note)
    for reason in run.invalid:
        say(f"invalid: {reason}")
    if as_json:
        print_json(run.summary)
        return
    if as_tsv:
        print_tsv(tables.runs_tsv([run]))
        return
    show(*tables.run_tables(run))
    out(f"run directory: {run.path}")


def _show_runs(runs: Sequence[Run], *, as_json: bool, as_tsv: bool) -> None:
    """Shows runs of several seeds side by side."""
    if as_json:
        print_json([run.summary for run in runs])
        return
    if as_tsv:
        print_tsv(tables.runs_tsv(runs))
        return
    from aqmlab.results.groups import Group
    from aqmlab.results.tables import comparison

    show(*tables.apart(comparison([Group(run.label, (run,)) for run in runs])))
    out("")
    for run in runs:
        out(f"run directory: {run.path}")
