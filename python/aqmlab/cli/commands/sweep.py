"""``aqmlab sweep``: a scenario with many values of some fields."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab._util.console import Progress, out, print_json, print_tsv, say, show
from aqmlab._util.markup import rendered
from aqmlab._util.places import SWEEPS_ROOT
from aqmlab.cli import sweep_tables
from aqmlab.cli.build import Opt, built
from aqmlab.cli.options import (
    Fields,
    Format,
    Jobs,
    Json,
    Memory,
    MetricFiles,
    OwnMetrics,
    Plugins,
    SchedulerAddress,
    Seed,
    Seeds,
    StoreFolder,
    Tsv,
    Where,
    check_format,
    chosen_seeds,
    named_as_options,
)
from aqmlab.errors import RunError
from aqmlab.results import own_metrics

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["command"]


_MOST_ANSWERED = 400
"""Runs of a sweep that are read once more for an answer."""


@built(
    "aqmlab.sweeps.campaign.sweep",
    jobs=Jobs,
    scheduler=SchedulerAddress,
    out=Opt("FOLDER"),
    store=StoreFolder,
    verify=Opt(),
)
def command(
    made: partial[pa.Table],
    file: Path,
    overrides: Fields = None,
    seed: Seed = None,
    seeds: Seeds = None,
    *,
    metrics: OwnMetrics = None,  # noqa: ARG001 - its callback has defined them
    metric_files: MetricFiles = None,  # noqa: ARG001 - its callback has loaded them
    where: Where = None,
    as_json: Json = False,
    as_tsv: Tsv = False,
    markup: Format = None,
    memory: Memory = None,  # noqa: ARG001 - its callback has set it
    plugin: Plugins = None,  # noqa: ARG001 - its callback has loaded them
) -> None:
    """Run a scenario with many values of fields and several seeds.

    The same command continues an interrupted sweep. If you extend the sweep file, it makes only the
    new runs.

    Options:
        file (SWEEP): Sweep file (TOML).
    """
    from aqmlab.sweeps.file import Sweep
    from aqmlab.sweeps.summary import SweepSummary, points_where

    check_format(as_json=as_json, as_tsv=as_tsv, markup=markup)
    plan = Sweep.load(file).with_overrides(overrides or [])
    stated = {one.name for one in plan.metrics}
    plan = plan.with_metrics(
        one
        for one in own_metrics.defined()
        if one.origin.startswith("--metric") and one.name not in stated
    )
    if (wanted := chosen_seeds(seed, seeds)) is not None:
        plan = plan.with_seeds(wanted)
    with named_as_options(["where"]):  # before the work, not after it
        points_where(plan, where or [])
    target = made.keywords["out"] or SWEEPS_ROOT / plan.name
    with Progress("sweep") as progress:
        table = made(plan, out=target, progress=sweep_tables.TerminalProgress(progress))
    summary = SweepSummary(plan, table, where=where or ())
    if as_json:
        print_json({"results": str(target / "results.parquet"), **summary.to_json()})
    elif as_tsv:
        print_tsv(sweep_tables.points_tsv(summary.points))
    else:
        shown = [sweep_tables.points_table(summary.points)]
        if summary.differences:
            shown.append(sweep_tables.differences_table(summary))
        if markup is not None:
            out(rendered(markup, shown))
        else:
            for found in shown:
                show(found, "")
            out(f"results: {target / 'results.parquet'}")
            if table.num_rows <= _MOST_ANSWERED and not summary.failures and not where:
                _conclude(target)
    for point in summary.under_warmed:
        say(f"warning: the warm-up is too short at {point.label} (p = {point.warm_up_p:.1g})")
    if failures := summary.failures:
        raise RunError(f"{len(failures)} of {table.num_rows} runs failed; the first, {failures[0]}")


def _conclude(target: Path) -> None:
    """Which queue to take in all settings, where the sweep varies the queue."""
    from aqmlab.results.compare import compared_groups
    from aqmlab.results.settings import answers
    from aqmlab.results.sources import gather, stated_baselines

    groups = compared_groups(gather([target], needs_tables=False))
    found = answers(groups, stated_baselines([target]))
    if found is not None:
        out("\nanswer")
        for line in found.lines():
            out(line)
