"""``aqmlab report``: one file about runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from aqmlab._util.console import Progress, out, say
from aqmlab._util.lazy import numpy_on_one_thread
from aqmlab.cli.build import Opt, built
from aqmlab.cli.options import MetricFiles, OwnMetrics, Runs
from aqmlab.errors import AqmlabError, RunError

__all__ = ["command"]


@built(
    "aqmlab.reports.write.write",
    path=Annotated[Path | None, Opt("FILE", "", "-o", "--output")],
    kind=Opt("<html|md|pdf|png>", "", "--format"),
    title=Opt("TEXT"),
    question=Opt("TEXT"),
    baseline=Annotated[str | None, Opt("LABEL")],
    playground=Opt("ADDRESS_OR_FOLDER"),
    brief=Opt(),
)
def command(
    written: partial[Path],
    sources: Runs,
    *,
    metrics: OwnMetrics = None,  # noqa: ARG001 - its callback has defined them
    metric_files: MetricFiles = None,  # noqa: ARG001 - its callback has loaded them
) -> None:
    """Write a report about runs: one file that needs no network.

    The report leaves out damaged run directories. Standard error lists them, and the exit status is
    1.
    """
    numpy_on_one_thread()
    from aqmlab.figures.files import check_address_space
    from aqmlab.reports.write import target
    from aqmlab.results.own_metrics import unmeasured
    from aqmlab.results.sources import gather, stated_baselines, stated_words

    asked = written.keywords
    target(asked["path"], asked["kind"])  # fail before the work, not after it
    check_address_space()
    broken: list[AqmlabError] = []
    runs = gather(sources, broken.append)
    for error in broken:
        say(f"left out: {error}")
    for line in unmeasured(runs):
        say(f"warning: {line}")
    stated_title, stated_question = stated_words(sources)
    with Progress("writing") as progress:
        place = written(
            runs,
            title=asked["title"] or stated_title,
            question=asked["question"] or stated_question,
            baseline=asked["baseline"] or stated_baselines(sources),
            ordered=False,
            progress=progress.task("the report"),
        )
    out(f"report: {place}")
    if broken:
        total = len(broken) + len(runs)
        raise RunError(f"{len(broken)} of {total} run directories are left out of the report")
