"""Repeat a paper's experiments and put every published number beside ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from aqmlab import _native
from aqmlab._util.files import write_text
from aqmlab.engine import parallel
from aqmlab.errors import AqmlabError
from aqmlab.papers import figures as paper_figures
from aqmlab.papers import measured as cache
from aqmlab.papers.judge import alternatives, judge, with_noise
from aqmlab.papers.measured import measure, quantities
from aqmlab.papers.paper import Paper
from aqmlab.papers.plan import Plan, further_seeds
from aqmlab.papers.reproduction import FurtherRuns, Reproduction, Reused, Rows
from aqmlab.papers.scoreboard import Scoreboard, fit_cells, table_cells, with_references
from aqmlab.results.columns import recording
from aqmlab.results.run import Run
from aqmlab.results.term_names import own

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["reproduce"]


_Runs: TypeAlias = "Mapping[str, Run | AqmlabError]"
"""What became of runs, by name."""


def reproduce(
    paper: str,
    tables: Sequence[str] | None = None,
    *,
    quick: bool = False,
    full: bool = False,
    finished_only: bool = False,
    measured: bool = False,
    out: Path | None = None,
    jobs: int | None = None,
    seeds: Sequence[int] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Reproduction:
    """Repeats a paper's tables: plans, runs, measures, judges and writes.

    `paper` may also be the path of a folder like those in ``papers/``; `all` is of the command
    line, see :func:`aqmlab.papers.fidelity.reproduce_all`. Rows whose runs are not all finished are
    left out with `finished_only`. With `measured`, runs that are not in `out` are taken from
    ``measured.json`` in the paper's folder, as far as it has what the tables and fits take from
    them; figures that are not named lack them. ``cells.csv``, ``report.md``, ``scoreboard.json``,
    ``measured.json`` and the runs go to `out`. Finished runs found there are not run again.

    Args:
        paper: Name of a paper (see `aqmlab list papers`), or `all`.
        tables: Tables or figures to repeat, such as B.1; default: all.
        quick: Make short runs. aqmlab does not test whether their numbers are within the tolerance.
        full: Make runs as long as in the paper. The default runs of some papers are shorter.
        finished_only: Use only finished runs.
        measured: Use stored numbers (measured.json in the paper's folder) instead of new runs.
        out: Folder of the results; default: out/reproduce/PAPER.
        jobs: Runs at a time; None: as many as there are processors.
        seeds: One run per row and seed; cells are judged by their mean; None: the paper's, with
            those that some of its rows have beside them.
        progress: Called, from several threads, with a run's name and the share of it that is done.
    """
    source = Paper.load(paper)
    chosen, fits, figures = source.select(tables)
    folder = out or Path("out") / "reproduce" / source.name

    # Plan.
    first = list(dict.fromkeys(seeds or (source.seeds[:1] if quick else source.seeds)))
    more = {} if quick or seeds else further_seeds(source)
    plan = Plan(source, first, quick=quick, full=full, further=more)
    lines = {fit.over for fit in fits}
    plan.add_tables([table for table in source.tables if table in chosen or table.id in lines])
    plan.add_figures(figures)
    planned = len(plan.rows)
    whole = set() if finished_only else plan.drawn(figures, tables or ())

    # Run what numbers of the paper's file cannot stand in for.
    of_runs = quantities(plan, chosen, fits)
    _check_records(of_runs, plan)
    cached = cache.read(source.folder / cache.FILE, source) if measured else {}
    present = {path.name for path in (folder / "runs").glob("*") if path.is_dir()}
    reused = cache.reusable(cached, of_runs, present | whole)
    if finished_only:
        plan.keep(present, reused)
    reused = {name: reused[name] for name in plan.scenarios if name in reused}
    wanted = [(name, plan.scenarios[name]) for name in plan.scenarios if name not in reused]
    runs = parallel.execute_all(wanted, folder / "runs", jobs, progress)

    # Measure.
    new = measure(runs, of_runs)
    numbers = {**reused, **new}
    cells = [cell for table in chosen for cell in table_cells(table, plan, numbers)]
    cells = with_references(cells, source)
    cells += [cell for fit in fits for cell in fit_cells(fit, plan, numbers)]
    titles = {table.id: table.title for table in chosen} | {fit.id: fit.title for fit in fits}

    # Judge.
    judged = judge(source, cells, tables=titles, quick=quick)
    ours = [] if quick else cells
    judged = with_noise(source, judged, ours, len(first), further=bool(more))
    others = [] if quick else alternatives(source, cells, judged, titles)

    # Write.
    ended = reused.keys() | {name for name, run in runs.items() if isinstance(run, Run)}
    result = Reproduction(
        paper=source,
        engine=_native.engine(),
        seeds=first,
        further=FurtherRuns(
            sorted({seed for row in plan.rows for seed in more.get(row, ())}), plan.further_runs
        ),
        quick=source.why_quick if quick else "",
        length="quick" if quick else "usual" if source.full and not full else "published",
        rows=Rows(sum(ended.issuperset(names) for names in plan.rows.values()), planned),
        board=Scoreboard(titles, not quick, cells),
        judged=judged,
        alternatives=others,
        failed={name: str(run) for name, run in runs.items() if isinstance(run, AqmlabError)},
        runs=len(plan.scenarios),
        cpu_s=sum(run.metadata["cpu_s"] for run in runs.values() if isinstance(run, Run))
        + sum(entry.cpu_s for entry in reused.values()),
        reused=Reused(len(reused), plan.lacking(figures, reused)) if measured else None,
        figures=paper_figures.draw(
            figures,
            {table.id: table for table in source.tables},
            lambda table, label: _finished(plan.rows.get((table, label), ()), runs),
            folder / "figures",
            quick=quick,
            early=quick and source.measures_early,
        ),
    )
    return _written(result, folder, cache.to_text(source, cache.merged(cached, new)))


def _check_records(of_runs: Mapping[str, set[cache.Asked]], plan: Plan) -> None:
    """Raises an error, before any run, if runs lack what a metric of one's own reads."""
    for name, asked in of_runs.items():
        scenario = plan.scenarios[name].data
        for one in (one for part in asked for term in part.terms for one in own(term)):
            for table in sorted(one.formula.tables):
                if (needed := recording(table, scenario)) is not None:
                    field, value = needed
                    raise AqmlabError(
                        f"{plan.paper.folder / 'tables.toml'}: {one.name} reads {table}.parquet, "
                        f"which the runs do not record; expected \"{field}\" = '{value}' in "
                        "[common] or in set of the table"
                    )


def _finished(names: Sequence[str], runs: _Runs) -> list[Run]:
    """Those of some runs that ended well."""
    return [run for run in map(runs.get, names) if isinstance(run, Run)]


def _written(result: Reproduction, folder: Path, numbers: str) -> Reproduction:
    """Writes the files into a folder, the scoreboard last; the result says where they are."""
    files = {
        "cells": ("cells.csv", result.board.to_csv()),
        "report": ("report.md", result.to_markdown()),
        "measured": (cache.FILE, numbers),
        "scoreboard": (
            "scoreboard.json",
            json.dumps(result.to_json(), indent=2, ensure_ascii=False) + "\n",
        ),
    }
    for name, text in files.values():
        write_text(folder / name, text)
    return replace(result, files={kind: str(folder / name) for kind, (name, _) in files.items()})
