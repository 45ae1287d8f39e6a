"""``aqmlab report``: one file about runs."""

from __future__ import annotations

from pathlib import Path

from aqmlab._util.console import Progress, out, say
from aqmlab._util.lazy import numpy_on_one_thread
from aqmlab.cli.options import MetricFiles, OwnMetrics, Runs
from aqmlab.errors import AqmlabError, RunError

__all__ = ["command"]


def command(
    sources: Runs,
    *,
    output: Path | None = None,
    kind: str | None = None,
    brief: bool = False,
    title: str | None = None,
    question: str | None = None,
    baseline: str | None = None,
    metrics: OwnMetrics = None,  # noqa: ARG001 - its callback has defined them
    metric_files: MetricFiles = None,  # noqa: ARG001 - its callback has loaded them
    playground: str | None = None,
) -> None:
    """Write a report about runs: one file that needs no network.

    A damaged run directory does not stop the report: standard error states it, the report leaves it
    out, and the exit status is 1.

    Options:
        output (-o, --output FILE): The file (.html, .md, .pdf, .png); default: report.html.
        kind (--format <html|md|pdf|png>): Format; default: by the suffix of --output.
        brief (--brief): Write one page (A4, .html or .pdf): picture, five numbers, verdict,
            setting, how to repeat it.
        title (TEXT): Title; default: the scenario's.
        question (TEXT): Question at the head of the report; default: computed from the runs.
        baseline (LABEL): Baseline: the label of a configuration; default: the sweep's baseline, or
            drop-tail.
        playground (ADDRESS_OR_FOLDER): Address or folder of the playground; a web page then links
            the scenarios that it can show.
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
