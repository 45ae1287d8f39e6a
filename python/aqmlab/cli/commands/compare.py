"""``aqmlab compare``: runs beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab._util.console import out, print_json, print_tsv, say, show
from aqmlab.cli import sweep_tables, tables
from aqmlab.cli.completion import assigned
from aqmlab.cli.options import Jobs, Json, Seed, Seeds, Sets, Tsv, check_format, chosen_seeds
from aqmlab.cli.planning import made, opened_or_varied
from aqmlab.engine.execute import RUNS_ROOT
from aqmlab.errors import AqmlabError
from aqmlab.results.compare import compared_groups, differences, distances
from aqmlab.results.labels import distinguish

__all__ = ["command"]


def command(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_OR_SCENARIO", help="Run directories or scenario files."),
    ],
    varied: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="FIELD=A,B,...",
            help="Runs scenarios once with each value; commas inside quotes, brackets and braces "
            "belong to a value. Repeated: every combination.",
            autocompletion=assigned,
        ),
    ] = None,
    overrides: Sets = None,
    seed: Seed = None,
    seeds: Seeds = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Figure (.svg, .png, .pdf, .html); default: runs/compare.svg."
        ),
    ] = None,
    root: Annotated[Path, typer.Option("--out", help="Folder of new run directories.")] = RUNS_ROOT,
    as_json: Json = False,
    as_tsv: Tsv = False,
    jobs: Jobs = None,
) -> None:
    """Compare runs: the same users under different queues.

    Scenario files are run first, unless their finished runs are found. Runs that differ in their
    seed alone are taken together: means over the seeds, and differences seed by seed.
    """
    from aqmlab import figures
    from aqmlab.figures.files import check_suffix
    from aqmlab.figures.theme import MOST_SERIES

    check_format(as_json=as_json, as_tsv=as_tsv)
    target = figure or root / "compare.svg"
    check_suffix(target)
    wanted = chosen_seeds(seed, seeds)
    planned = [
        entry
        for source in sources
        for entry in opened_or_varied(source, varied or [], overrides, wanted)
    ]
    if len(planned) < 2:
        raise AqmlabError("a comparison needs two runs at least; add one, or --vary FIELD=A,B")
    curves = len(planned) // len(wanted or [None])
    if figure and curves > MOST_SERIES:
        raise AqmlabError(f"{figure}: a figure shows at most {MOST_SERIES} runs, not {curves}")
    opened = made(planned, root, jobs)
    found = distinguish(opened)
    groups = compared_groups(opened)
    alone = len(groups) == len(found)
    compared, apart = differences(groups), distances(groups)
    too_many = len(groups) > MOST_SERIES
    recorded = any(run.responses is not None or run.queue is not None for run in found)
    drawn = recorded and not too_many
    if drawn:
        figures.save(figures.comparison(opened), target)
    if as_json:
        content = {
            "runs": [
                {"label": run.label, "path": str(run.path), "summary": run.summary} for run in found
            ],
            "differences": [difference.to_json() for difference in compared],
            "distances": [distance.to_json() for distance in apart],
            "figure": str(target) if drawn else None,
        }
        print_json(content)
        return
    if as_tsv:
        print_tsv(tables.runs_tsv(found))
        return
    show(tables.compare_table(found) if alone else sweep_tables.groups_table(groups))
    for run in found:
        for reason in run.invalid:
            say(f"invalid: {run.label}: {reason}")
    if compared:
        out("")
        show(tables.difference_table(compared))
    if apart:
        out("")
        show(tables.distance_table(apart))
    out("")
    for run in found:
        out(f"run directory: {run.path} ({run.label})")
    why = "it would show too many runs" if too_many else "measure.record is empty"
    out(f"figure: {target}" if drawn else f"no figure: {why}")
