"""``aqmlab tune``: a search for the parameters that serve a goal best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aqmlab._util.console import Progress, out, print_json, print_tsv, say, show
from aqmlab.cli.build import Opt
from aqmlab.cli.options import (
    Jobs,
    Json,
    Memory,
    MetricFiles,
    OwnMetrics,
    Plugins,
    SchedulerAddress,
    Seeds,
    Sets,
    StoreFolder,
    Tsv,
    check_format,
)
from aqmlab.engine.store import STORE_ROOT
from aqmlab.errors import AqmlabError, RunError
from aqmlab.results.metric_groups import listed
from aqmlab.results.metrics import GROUPED
from aqmlab.scenario import vary

__all__ = ["command"]


def command(
    files: list[Path],
    *,
    varied: list[str] | None = None,
    goals: Annotated[
        list[str] | None,
        Opt(
            "GOAL",
            '"minimize METRIC" or "maximize METRIC"; commas separate several: '
            '"minimize responses.all.p90_s, maximize links.bottleneck.utilization". Short '
            "names, by what they measure: "
            f"{listed(GROUPED)}. Metrics of applications name a class: mos.calls.",
            "--goal",
        ),
    ] = None,
    constraints: list[str] | None = None,
    derived: list[str] | None = None,
    metrics: OwnMetrics = None,  # noqa: ARG001 - its callback has defined them
    metric_files: MetricFiles = None,  # noqa: ARG001 - its callback has loaded them
    overrides: Sets = None,
    seeds: Seeds = None,
    trials: int = 60,
    confirm: int = 8,
    batch: int = 4,
    scheduler: SchedulerAddress = None,
    directory: Path | None = None,
    store: StoreFolder = STORE_ROOT,
    as_json: Json = False,
    as_tsv: Tsv = False,
    jobs: Jobs = None,
    memory: Memory = None,  # noqa: ARG001 - its callback has set it
    plugin: Plugins = None,  # noqa: ARG001 - its callback has loaded them
) -> None:
    """Search for the parameters that serve one or more goals best.

    Every setting runs in every scenario with every seed. The chosen settings run again on fresh
    seeds, against the untuned scenario. Finished runs are reused: the same command continues an
    interrupted search.

    Options:
        files (SCENARIO): Scenario files (TOML).
        varied (--vary FIELD=RANGE): Range or values to search: "discipline.target=1 ms..50 ms:log",
            "...limit=10..500:whole", or values between commas. A name that is no field is a
            variable for $name in --set. May be repeated.
        constraints (--constraint BOUND): Condition of every scenario: "loss.forward <= 0.02". May
            be repeated.
        derived (--derive NAME=EXPRESSION): A variable computed from others: "max_th=3 * min_th".
            May be repeated.
        trials (N): Number of settings to try.
        confirm (N): Number of fresh seeds that test the chosen settings.
        batch (N): Number of settings to propose at a time.
        directory (--out FOLDER): Folder of the search; default: runs/tunes/SCENARIO.
    """
    from aqmlab.cli import tune_tables
    from aqmlab.tuning.campaign import tune

    check_format(as_json=as_json, as_tsv=as_tsv)
    derive = dict(vary.assignment(text, "--derive") for text in derived or [])
    if len(derive) < len(derived or []):
        raise AqmlabError("--derive: found a name twice; name each variable once")
    with Progress("tune") as progress:
        found = tune(
            files,
            vary=varied or [],
            goal=goals or [],
            constraints=constraints or [],
            settings=[vary.assignment(text, "--set") for text in overrides or []],
            derive=derive,
            seeds=vary.seeds(seeds) if seeds is not None else (1, 2, 3),
            trials=trials,
            confirm=confirm,
            batch=batch,
            jobs=jobs,
            scheduler=scheduler,
            out=directory,
            store=store,
            progress=progress.task("search"),
        )
    if as_json:
        print_json(found.to_json())
    elif as_tsv:
        print_tsv([found.row(trial) for trial in found.front])
    else:
        show(tune_tables.front_table(found))
        if (table := tune_tables.importance_table(found)) is not None:
            show("", table)
        if found.best is not None:
            show("", tune_tables.checks_table(found))
            for sentence in tune_tables.sentences(found):
                out(sentence)
        out(f"\nsearch: {found.folder}")
    if found.best is None:
        say("warning: no setting was measured for which all constraints hold")
    refused = [trial for trial in found.trials if trial.state == "refused"]
    if refused:
        say(
            f"warning: {len(refused)} of {len(found.trials)} settings are no scenarios; the first: "
            f"{refused[0].error}"
        )
    failed = [trial for trial in found.trials if trial.state == "failed"]
    if failed:
        raise RunError(
            f"{len(failed)} of {len(found.trials)} settings failed; the first, "
            f"{found.plan.label(failed[0].values)}: {failed[0].error}"
        )
