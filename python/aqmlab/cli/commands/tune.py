"""``aqmlab tune``: a search for the parameters that serve a goal best."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aqmlab._util.console import Progress, out, print_json, print_tsv, say, show
from aqmlab.cli.build import Arg, Opt, built
from aqmlab.cli.options import (
    Fields,
    Jobs,
    Json,
    Memory,
    MetricFiles,
    OwnMetrics,
    Plugins,
    SchedulerAddress,
    SeedNumbers,
    StoreFolder,
    Tsv,
    check_format,
)
from aqmlab.errors import AqmlabError, RunError
from aqmlab.results.metric_groups import listed
from aqmlab.results.metrics import GROUPED
from aqmlab.scenario import vary

if TYPE_CHECKING:
    from aqmlab.tuning.outcome import Tuning

__all__ = ["command"]


def _derived(texts: list[str]) -> dict[str, str]:
    """Variables by name, each once."""
    found = dict(vary.assignment(text, "--derive") for text in texts)
    if len(found) < len(texts):
        raise AqmlabError("--derive: found a name twice; name each variable once")
    return found


_GOAL = (
    '"minimize METRIC" or "maximize METRIC". Commas separate several goals: "minimize '
    'responses.all.p90_s, maximize links.bottleneck.utilization". A metric of an application ends '
    "with a class, such as mos.calls (class calls). "
    f"Short names of metrics, by what they measure: {listed(GROUPED)}."
)


@built(
    "aqmlab.tuning.campaign.tune",
    scenarios=Annotated[list[Path], Arg("SCENARIO", "Scenario files (TOML).")],
    vary=Annotated[list[str] | None, Opt("FIELD=RANGE")],
    goal=Annotated[list[str] | None, Opt("GOAL", _GOAL)],
    constraints=Annotated[list[str] | None, Opt("BOUND", "", "--constraint")],
    settings=Fields,
    derive=Annotated[list[str] | None, Opt("NAME=EXPRESSION", "", "--derive", parse=_derived)],
    seeds=SeedNumbers,
    trials=Opt("N"),
    confirm=Opt("N"),
    batch=Opt("N"),
    jobs=Jobs,
    scheduler=SchedulerAddress,
    out=Opt("FOLDER"),
    store=StoreFolder,
)
def command(
    search: partial[Tuning],
    *,
    metrics: OwnMetrics = None,  # noqa: ARG001 - its callback has defined them
    metric_files: MetricFiles = None,  # noqa: ARG001 - its callback has loaded them
    as_json: Json = False,
    as_tsv: Tsv = False,
    memory: Memory = None,  # noqa: ARG001 - its callback has set it
    plugin: Plugins = None,  # noqa: ARG001 - its callback has loaded them
) -> None:
    """Search for the parameters that serve one or more goals best.

    A setting has a value for each parameter. Every setting runs in every scenario with every seed.
    The best settings run again with new seeds, and the command compares them with the untuned
    scenario. The same command continues an interrupted search.
    """
    from aqmlab.cli import tune_tables

    check_format(as_json=as_json, as_tsv=as_tsv)
    with Progress("tune") as progress:
        found = search(progress=progress.task("search"))
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
