"""Repeat a paper's experiments and put every published number beside ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aqmlab import _native
from aqmlab._util.files import write_text
from aqmlab.engine import parallel
from aqmlab.errors import AqmlabError
from aqmlab.papers import claims, noise, readings, signatures
from aqmlab.papers import figures as paper_figures
from aqmlab.papers.paper import Fit, Paper, Row, Table, product
from aqmlab.papers.plan import Plan
from aqmlab.papers.scoreboard import Cell, Column, Scoreboard, markdown
from aqmlab.results.distributions import Distribution
from aqmlab.results.recorded import numbers
from aqmlab.results.run import Run
from aqmlab.results.terms import Rank, total
from aqmlab.results.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["measure", "rank", "reproduce", "table_cells", "with_references"]


_Asked: TypeAlias = tuple[Column, str]
"""What a row asks of a run: a column's number, and where the published one lies among ours."""
_Answer: TypeAlias = "tuple[float, Rank | None]"
"""Ours; where the published number lies, if that is asked and known."""
_Measured: TypeAlias = "Mapping[str, Mapping[_Asked, _Answer]]"
"""What runs answered, by run name."""


def reproduce(
    paper: str,
    tables: Sequence[str] | None = None,
    *,
    quick: bool = False,
    full: bool = False,
    finished_only: bool = False,
    out: Path | None = None,
    jobs: int | None = None,
    seeds: Sequence[int] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> dict[str, Any]:
    """Repeats a paper's tables.

    Args:
        paper: Name of a paper, or path of a folder like those in ``papers/``.
        tables: Ids of tables, fits and figures; None: all, and the signatures.
        quick: Short runs with one seed, whose numbers are not scored.
        full: Runs of the published length, where the paper's usual ones are shorter.
        finished_only: Nothing is run: rows whose runs are not all finished are left out, and so
            are signatures that look at single connections of such a run.
        out: Where ``cells.csv``, ``report.md``, ``scoreboard.json`` and the runs go; None:
            ``out/reproduce/PAPER``. Finished runs found there are not run again.
        jobs: Runs at a time; None: as many as there are processors.
        seeds: One run per row and seed; cells are judged by their mean; None: the paper's.
        progress: Called, from several threads, with a run's name and the share of it that is done.

    Returns:
        What ``scoreboard.json`` holds.
    """
    source = Paper.load(paper)
    chosen, fits, wanted = source.select(tables)
    folder = out or Path("out") / "reproduce" / source.name
    used = list(dict.fromkeys(seeds or (source.seeds[:1] if quick else source.seeds)))
    lines = {fit.over for fit in fits}

    plan = Plan(source, used, quick=quick, full=full)
    plan.add_tables([table for table in source.tables if table in chosen or table.id in lines])
    plan.add_figures(wanted)
    planned = len(plan.rows)
    if tables is None and not quick:
        plan.add_recorded()
    if finished_only:
        plan.keep({path.name for path in (folder / "runs").glob("*") if path.is_dir()})
    runs = parallel.execute_all(list(plan.scenarios.items()), folder / "runs", jobs, progress)

    measured = measure(plan, chosen, runs)
    cells = [cell for table in chosen for cell in table_cells(table, plan, measured)]
    cells = with_references(cells, plan.paper)
    cells += [cell for fit in fits for cell in _fit_cells(fit, plan, runs)]
    titles = {table.id: table.title for table in chosen} | {fit.id: fit.title for fit in fits}
    board = Scoreboard(titles, not quick, cells)
    found = [] if quick else _signature_verdicts(plan, cells, runs)
    judged = claims.judge(source, cells, found, tables=titles, quick=quick)
    decidable = noise.shares(source)
    read = [] if quick else readings.judge(source, cells, judged, decidable, titles)
    result = {
        "paper": source.name,
        "title": source.title,
        "engine": _native.engine(),
        "seeds": used,
        **({"quick": _why_quick(source)} if quick else {}),
        "length": "quick" if quick else "usual" if source.full and not full else "published",
        "rows": {"run": _rows_that_ended(plan, runs), "total": planned},
        **board.to_json(),
        "signatures": [signatures.to_json(verdict) for verdict in found],
        "claims": {
            **claims.score(judged, decidable),
            "types": claims.score_by_type(source, judged, decidable),
            "verdicts": [claims.to_json(verdict, decidable) for verdict in judged],
        },
        "readings": [readings.to_json(one) for one in read],
        "failed": {name: str(run) for name, run in runs.items() if isinstance(run, AqmlabError)},
        "runs": len(runs),
        "cpu_s": sum(run.metadata["cpu_s"] for run in runs.values() if isinstance(run, Run)),
    }
    result["figures"] = paper_figures.draw(
        wanted,
        {table.id: table for table in source.tables},
        lambda table, label: _finished(plan.rows.get((table, label), ()), runs),
        folder / "figures",
        quick=quick,
    )
    result["files"] = _write(folder, _report(board, result, judged, decidable, read), board, result)
    return result


def _rows_that_ended(plan: Plan, runs: Mapping[str, Run | AqmlabError]) -> int:
    """How many rows have all their runs."""
    return sum(len(_finished(names, runs)) == len(names) for names in plan.rows.values())


def _why_quick(paper: Paper) -> str:
    """What keeps quick runs from being scored."""
    if any(field.startswith("measure.") for field, _ in paper.quick):
        return "too short and too early to judge"
    return "of full length, but of one seed"


def _signature_verdicts(
    plan: Plan, cells: Sequence[Cell], runs: Mapping[str, Run | AqmlabError]
) -> list[Verdict]:
    """What became of the signatures that the runs can answer."""
    recorded = {row: runs[name] for row, name in plan.recorded.items()}
    return [
        *signatures.check_orderings(plan.paper.signatures, cells),
        *signatures.check_recorded(plan.paper.signatures, recorded),
    ]


def measure(
    plan: Plan, tables: Sequence[Table], runs: Mapping[str, Run | AqmlabError]
) -> _Measured:
    """What the tables take from the runs that ended well.

    Every run is read once and let go, so memory does not grow with the number of runs.
    """
    wanted: dict[str, set[_Asked]] = {}
    for table in tables:
        for row in table.rows:
            for name in plan.rows.get((table.id, row.label), ()):
                wanted.setdefault(name, set()).update(_asked(table, row))
    return {
        name: _answers(run.afresh(), wanted[name])
        for name, run in runs.items()
        if isinstance(run, Run) and name in wanted
    }


def _asked(table: Table, row: Row) -> list[_Asked]:
    """What a row asks of its runs: nothing of columns that the paper has, but not in this row."""
    published = ((column, row.published.get(column.name)) for column in table.columns)
    return [(column, number or "") for column, number in published if number != ""]


def _answers(run: Run, questions: Iterable[_Asked]) -> dict[_Asked, _Answer]:
    """What a run answers to what is asked of it."""
    summary = numbers(run)
    return {
        (column, published): (total(column.terms, summary), rank(column, published, run))
        for column, published in questions
    }


def rank(column: Column, published: str, run: Run) -> Rank | None:
    """Where a published percentile lies in a run, if the column is judged by rank.

    None, too, when the run has nothing of the kind.
    """
    percentile, tolerance = column.percentile, column.tolerance
    if percentile is None or tolerance is None or not published:
        return None
    time_s, points = float(published) / column.terms[0].factor, tolerance.rank or 0.0
    times = Distribution.of_run(run, percentile.what, percentile.traffic_class)
    return times.rank(time_s, points)


def table_cells(table: Table, plan: Plan, measured: _Measured) -> list[Cell]:
    """A table's published cells beside ours; ours alone in columns that the paper has not."""
    cells = []
    for row in table.rows:
        if (table.id, row.label) not in plan.rows:
            continue
        names = plan.rows[table.id, row.label]
        done = [measured[name] for name in names if name in measured]
        for column, published in _asked(table, row):
            given = [of_run[column, published] for of_run in done]
            ranks = tuple(rank for _, rank in given if rank is not None)
            cells.append(
                Cell(
                    table=table.id,
                    row=row.label,
                    column=column,
                    published=published,
                    ours=tuple(ours for ours, _ in given),
                    ranks=ranks if len(ranks) == len(given) else (),
                    excluded=plan.paper.why_excluded(table.id, row, column.name),
                    fitted=plan.paper.why_fitted(table.id, row, column.name),
                )
            )
    return cells


def with_references(cells: Sequence[Cell], paper: Paper) -> list[Cell]:
    """The cells with the same number of the row that they are held against.

    It is taken from the table itself or, if that has no such row, from the first one that has it.
    """
    own = {(cell.table, cell.row, cell.column.name): cell for cell in cells}
    anywhere: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        anywhere.setdefault((cell.row, cell.column.name), cell)
    labels = {
        (table.id, row.label): paper.reference_of(row)
        for table in paper.tables
        for row in table.rows
    }
    found = []
    for cell in cells:
        label, column = labels[cell.table, cell.row], cell.column.name
        reference = own.get((cell.table, label, column), anywhere.get((label, column)))
        found.append(replace(cell, reference=reference))
    return found


def _fit_cells(fit: Fit, plan: Plan, runs: Mapping[str, Run | AqmlabError]) -> list[Cell]:
    """A fit's published cells beside ours: one least-squares line per seed.

    There are none where some of its rows are left out.
    """
    rows = plan.paper.table(fit.over).rows
    if any((fit.over, row.label) not in plan.rows for row in rows):
        return []
    x = [product(fit.x, row.published) for row in rows]
    lines = []
    for of_seed in zip(*(plan.rows[fit.over, row.label] for row in rows), strict=True):
        done = _finished(of_seed, runs)
        if len(done) == len(rows):
            lines.append(np.polyfit(x, [total(fit.terms, run.summary) for run in done], 1))
    return [
        Cell(
            table=fit.id,
            row=row.label,
            column=fit.column,
            published=row.published[fit.column.name],
            ours=tuple(
                float((float(row.published[fit.target_column]) - intercept) / slope)
                for slope, intercept in lines
            ),
        )
        for row in fit.rows
    ]


def _finished(names: Sequence[str], runs: Mapping[str, Run | AqmlabError]) -> list[Run]:
    """Those of some runs that ended well."""
    return [run for run in (runs[name] for name in names) if isinstance(run, Run)]


def _write(folder: Path, page: str, board: Scoreboard, result: Mapping[str, Any]) -> dict[str, str]:
    """Writes the cells, the report and the scoreboard, and returns where they are."""
    texts = {
        "cells": ("cells.csv", board.to_csv()),
        "report": ("report.md", page),
        "scoreboard": ("scoreboard.json", json.dumps(result, indent=2, ensure_ascii=False) + "\n"),
    }
    for name, text in texts.values():
        write_text(folder / name, text)
    return {kind: str(folder / name) for kind, (name, _) in texts.items()}


def _report(
    board: Scoreboard,
    result: Mapping[str, Any],
    judged: Sequence[Verdict],
    decidable: Mapping[str, float],
    read: Sequence[readings.Read],
) -> str:
    """The reproduction as a Markdown page."""
    seeds = ", ".join(str(seed) for seed in result["seeds"])
    head = [f"# {result['title']}", f"Ours / published; mean over seeds {seeds}."]
    if board.scored:
        head.append("A star marks a cell outside its tolerance.")
        if board.ranked:
            head.append(
                "In brackets stands the share of ours that took at most the published time; "
                "a dagger marks a percentile that is within by this rank alone."
            )
    else:
        head.append(f"Quick runs: {result['quick']}, so nothing is scored.")
    head.append(f"Engine {result['engine']}, {result['runs']} runs.")
    rows = result["rows"]
    if rows["run"] < rows["total"]:
        head.append(f"{rows['run']} of {rows['total']} rows have been run; the others are missing.")
    parts = [head[0], " ".join(head[1:]), board.to_markdown().rstrip()]
    if result["signatures"]:
        answers = {True: "yes", False: "**no**", None: "no run"}
        lines = [
            [f"{found['id']}: {found['claim']}", answers[found["holds"]], found["measured"]]
            for found in result["signatures"]
        ]
        parts.append("## Signatures\n\n" + markdown(["effect", "holds", "measured"], lines, 3))
    if judged:
        marks = {
            first.id: one.reading.mark for one in read if one.reading.mark for first, _ in one.pairs
        }
        parts.append(f"## Claims\n\n{claims.to_markdown(judged, decidable, marks)}")
    parts += [
        f"## Claims in a second reading: {one.reading.title}\n\n{readings.to_markdown(one)}"
        for one in read
    ]
    if result["failed"]:
        listed = "\n".join(f"- {name}: {reason}" for name, reason in result["failed"].items())
        parts.append(f"## Runs that failed\n\n{listed}")
    return "\n\n".join(parts) + "\n"
