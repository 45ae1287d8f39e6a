"""``aqmlab report``: one file about runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab._util.console import Progress, out, say
from aqmlab._util.lazy import numpy_on_one_thread
from aqmlab.cli.options import MetricFiles, OwnMetrics, Runs
from aqmlab.errors import AqmlabError, RunError

__all__ = ["command"]


def command(
    sources: Runs,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The file (.html, .md, .pdf, .png); default: report.html.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="<html|md|pdf|png>",
            help="Format; default: by the suffix of --output.",
        ),
    ] = None,
    brief: Annotated[
        bool,
        typer.Option(
            "--brief",
            help="Write one page (A4, .html or .pdf): picture, five numbers, verdict, setting, how "
            "to repeat it.",
        ),
    ] = False,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title; default: the scenario's.")
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Question at the head of the report; default: computed from the runs.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Baseline: the label of a configuration; default: the "
            "sweep's baseline, or drop-tail.",
        ),
    ] = None,
    metrics: OwnMetrics = None,  # noqa: ARG001 - its callback has defined them
    metric_files: MetricFiles = None,  # noqa: ARG001 - its callback has loaded them
    playground: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS_OR_FOLDER",
            help="Address or folder of the playground; a web page then links the "
            "scenarios that it can show.",
        ),
    ] = None,
) -> None:
    """Write a report about runs: one file that needs no network.

    A damaged run directory does not stop the report: standard error states it, the report leaves it
    out, and the exit status is 1.
    """
    numpy_on_one_thread()
    from aqmlab.figures.files import check_address_space
    from aqmlab.reports.write import target, write
    from aqmlab.results.own_metrics import unmeasured
    from aqmlab.results.sources import gather, stated_baselines, stated_words

    target(output, kind)  # fail before the work, not after it
    check_address_space()
    broken: list[AqmlabError] = []
    runs = gather(sources, broken.append)
    for error in broken:
        say(f"left out: {error}")
    for line in unmeasured(runs):
        say(f"warning: {line}")
    stated_title, stated_question = stated_words(sources)
    with Progress("writing") as progress:
        place = write(
            runs,
            output,
            kind=kind,
            title=title or stated_title,
            question=question or stated_question,
            baseline=baseline or stated_baselines(sources),
            ordered=False,
            playground=playground,
            brief=brief,
            progress=progress.task("the report"),
        )
    out(f"report: {place}")
    if broken:
        total = len(broken) + len(runs)
        raise RunError(f"{len(broken)} of {total} run directories are left out of the report")
