"""``aqmlab reproduce``: published tables beside ours."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aqmlab._util.console import Progress, out, print_json, show
from aqmlab._util.files import check_output_folder
from aqmlab._util.pool import available_cpus
from aqmlab.cli import tables
from aqmlab.cli.build import Arg, Opt, built
from aqmlab.cli.options import (
    Jobs,
    Json,
    Memory,
    MetricFiles,
    OwnMetrics,
    Plugins,
    Seed,
    Seeds,
    chosen_seeds,
)
from aqmlab.errors import AqmlabError, RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aqmlab.papers.fidelity import Fidelity
    from aqmlab.papers.reproduction import Reproduction, Reused

__all__ = ["command"]


@built(
    "aqmlab.papers.reproduce.reproduce",
    paper=Arg("PAPER"),
    tables=Annotated[list[str] | None, Arg("TABLE_OR_FIGURE")],
    quick=Opt(),
    full=Opt(),
    finished_only=Opt("", "", "--finished"),
    measured=Opt(),
    out=Opt("FOLDER"),
    jobs=Jobs,
)
def command(
    repeated: partial[Reproduction],
    *,
    calibrate: bool = False,
    seed: Seed = None,
    seeds: Seeds = None,
    as_json: Json = False,
    memory: Memory = None,  # noqa: ARG001 - its callback has set it
    plugin: Plugins = None,  # noqa: ARG001 - its callback has loaded them
    metrics: OwnMetrics = None,  # noqa: ARG001 - its callback has defined them
    metric_files: MetricFiles = None,  # noqa: ARG001 - its callback has loaded them
) -> None:
    """Repeat the tables of a paper beside its published numbers.

    Options:
        calibrate (--calibrate): Only find the arrival rates that the runs of the paper need, for
            each seed.
    """
    from aqmlab.papers.fidelity import reproduce_all

    asked = dict(repeated.keywords)
    paper, named, directory = asked.pop("paper"), asked.pop("tables"), asked["out"]
    if asked["quick"] and asked["full"]:
        raise AqmlabError("--quick and --full exclude each other: give one of them")
    if paper == "all" and named:
        raise AqmlabError(f"found {named[0]} after all; expected one paper when tables are named")
    check_output_folder(directory or Path("out"))
    wanted = chosen_seeds(seed, seeds)
    asked["jobs"] = asked["jobs"] or available_cpus()
    if calibrate:
        _calibrate(paper, wanted, directory, asked["jobs"])
        return
    with Progress("running") as progress:
        asked |= {"seeds": wanted, "progress": progress.update}
        result: Reproduction | Fidelity = (
            reproduce_all(**asked) if paper == "all" else repeated(**asked)
        )
    if as_json:
        print_json(result.to_json())
    else:
        scored = not asked["quick"]
        show(tables.score_table(result.lines(), of_papers=paper == "all", scored=scored))
        if result.reused:
            out(_reused(result.reused, result.runs))
        for name, path in result.figures.items():
            out(f"figure {name}: {path}")
        for kind, path in result.files.items():
            out(f"{kind}: {path}")
    if failed := result.failed:
        name, reason = next(iter(failed.items()))
        raise RunError(f"{len(failed)} of {result.runs} runs failed; the first, {name}: {reason}")


def _calibrate(paper: str, seeds: Sequence[int] | None, folder: Path | None, jobs: int) -> None:
    """Finds rates by seed, and says what they cause."""
    from aqmlab.papers.calibration import calibrate, to_csv
    from aqmlab.papers.paper import Paper

    source = Paper.load(paper)
    where = (folder or Path("out") / "reproduce" / source.name) / "loads.csv"
    with Progress("calibrating") as progress:
        lines, failed = calibrate(
            source, seeds or source.seeds, where, jobs=jobs, progress=progress.update
        )
    out(to_csv(lines).rstrip())
    out(f"loads: {where}")
    if failed:
        name, reason = next(iter(failed.items()))
        raise RunError(f"{len(failed)} were not found; the first, {name}: {reason}")


def _reused(found: Reused, runs: int) -> str:
    """How many runs were taken from files, and what is missing for that."""
    words = f"taken from measured.json: {found.runs} of {runs} runs"
    lacking = len(found.figures_lacking)
    return f"{words}; without their curves: {lacking} figures" if lacking else words
