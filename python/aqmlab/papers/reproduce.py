"""Repeat a paper's experiments and put every published number beside ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from aqmlab import _native
from aqmlab._util.files import write_text
from aqmlab._util.lazy import np
from aqmlab._util.markup import markdown
from aqmlab.engine import parallel
from aqmlab.errors import AqmlabError
from aqmlab.papers import claims, noise, readings
from aqmlab.papers import figures as paper_figures
from aqmlab.papers import measured as kept
from aqmlab.papers.measured import Answers, Question, asked, measure, questions
from aqmlab.papers.paper import Fit, Paper, Table, product
from aqmlab.papers.plan import Plan
from aqmlab.papers.scoreboard import Cell, Scoreboard
from aqmlab.results.run import Run
from aqmlab.results.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from aqmlab.papers.paper import Figure

__all__ = ["reproduce", "table_cells", "with_references"]


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
) -> dict[str, Any]:
    """Repeats a paper's tables.

    Args:
        paper: Name of a paper, or path of a folder like those in ``papers/``.
        tables: Ids of tables, fits and figures; None: all.
        quick: Short runs with one seed, whose numbers are not scored.
        full: Runs of the published length, where the paper's usual ones are shorter.
        finished_only: Nothing is run: rows whose runs are not all finished are left out.
        measured: Runs that are not in ``out`` are taken from ``measured.json`` in the paper's
            folder, as far as it answers what the tables and fits ask of them. Figures that are not
            named lack them.
        out: Where ``cells.csv``, ``report.md``, ``scoreboard.json``, ``measured.json`` and the runs
            go; None: ``out/reproduce/PAPER``. Finished runs found there are not run again.
        jobs: Runs at a time; None: as many as there are processors.
        seeds: One run per row and seed; cells are judged by their mean; None: the paper's, with
            those that some of its rows have beside them.
        progress: Called, from several threads, with a run's name and the share of it that is done.

    Returns:
        What ``scoreboard.json`` holds.
    """
    source = Paper.load(paper)
    chosen, fits, wanted = source.select(tables)
    folder = out or Path("out") / "reproduce" / source.name
    used = list(dict.fromkeys(seeds or (source.seeds[:1] if quick else source.seeds)))
    lines = {fit.over for fit in fits}

    more = {} if quick or seeds else claims.further_seeds(source)
    plan = Plan(source, used, quick=quick, full=full, further=more)
    plan.add_tables([table for table in source.tables if table in chosen or table.id in lines])
    plan.add_figures(wanted)
    planned = len(plan.rows)
    wanted_of_runs = questions(plan, chosen, fits)
    shipped = kept.read(source.folder / kept.FILE, source) if measured else {}
    present = {path.name for path in (folder / "runs").glob("*") if path.is_dir()}
    # What the file cannot give, unless nothing is run.
    whole = set() if finished_only else _needed_whole(plan, wanted, tables or ())
    taken = _taken(shipped, wanted_of_runs, present | whole)
    if finished_only:
        plan.keep(present, taken)
    taken = {name: taken[name] for name in plan.scenarios if name in taken}
    scenarios = [(name, plan.scenarios[name]) for name in plan.scenarios if name not in taken]
    runs = parallel.execute_all(scenarios, folder / "runs", jobs, progress)
    ended = taken.keys() | {name for name, run in runs.items() if isinstance(run, Run)}

    given = measure(runs, wanted_of_runs)
    answers = {**taken, **given}
    cells = [cell for table in chosen for cell in table_cells(table, plan, answers)]
    cells = with_references(cells, plan.paper)
    cells += [cell for fit in fits for cell in _fit_cells(fit, plan, answers)]
    titles = {table.id: table.title for table in chosen} | {fit.id: fit.title for fit in fits}
    board = Scoreboard(titles, not quick, cells)
    judged = claims.judge(source, cells, tables=titles, quick=quick)
    decidable = noise.shares(source)
    chance = {} if quick else noise.shares_of_ours(source, cells)
    read = [] if quick else readings.judge(source, cells, judged, decidable, titles)
    result = {
        "paper": source.name,
        "title": source.title,
        "engine": _native.engine(),
        "seeds": used,
        "further": _further(plan),
        **({"quick": _why_quick(source)} if quick else {}),
        "length": "quick" if quick else "usual" if source.full and not full else "published",
        "rows": {
            "run": sum(ended.issuperset(names) for names in plan.rows.values()),
            "total": planned,
        },
        **board.to_json(),
        "claims": {
            **claims.score(judged, decidable),
            "types": claims.score_by_type(source, judged, decidable),
            "within_noise": sorted(
                claims.within_noise(source, chance, len(used), with_further=bool(more))
            ),
            "verdicts": [claims.to_json(verdict, decidable, chance) for verdict in judged],
        },
        "readings": [readings.to_json(one) for one in read],
        "failed": {name: str(run) for name, run in runs.items() if isinstance(run, AqmlabError)},
        "runs": len(plan.scenarios),
        "cpu_s": sum(run.metadata["cpu_s"] for run in runs.values() if isinstance(run, Run))
        + sum(entry.cpu_s for entry in taken.values()),
    }
    if measured:
        lacking = _lacking(source, plan, wanted, taken)
        result["measured"] = {"runs": len(taken), "figures_lacking": lacking}
    result["figures"] = paper_figures.draw(
        wanted,
        {table.id: table for table in source.tables},
        lambda table, label: _finished(plan.rows.get((table, label), ()), runs),
        folder / "figures",
        quick=quick,
        early=quick and _measures_early(source),
    )
    texts = {
        "cells": ("cells.csv", board.to_csv()),
        "report": ("report.md", _report(board, result, judged, decidable, read, wanted)),
        "measured": (kept.FILE, kept.to_text(source, kept.merged(shipped, given))),
    }
    result["files"] = _write(folder, texts, result)
    return result


def _further(plan: Plan) -> dict[str, Any]:
    """The seeds that some rows have beside the others', and how many runs these are."""
    first = {name for names in plan.rows.values() for name in names[: len(plan.seeds)]}
    more = {name for names in plan.rows.values() for name in names} - first
    return {
        "seeds": sorted({seed for row in plan.rows for seed in plan.further.get(row, ())}),
        "runs": len(more),
    }


def _needed_whole(plan: Plan, figures: Sequence[Figure], names: Sequence[str]) -> set[str]:
    """The runs of which more than numbers is needed: those of figures of these names.

    Other figures come with their tables, and do without.

    Raises:
        AqmlabError: quick runs have no row of a named figure.
    """
    named = {name.lower() for name in names}
    tables = {table.id: table for table in plan.paper.tables}
    needed = set[str]()
    for figure in figures:
        if figure.id.lower() in named:
            places = [place for place in figure.places(tables) if place in plan.rows]
            if not places:
                raise AqmlabError(
                    f"figure {figure.id}: quick runs leave out all of its rows; "
                    "repeat the figure without --quick"
                )
            needed.update(name for place in places for name in plan.rows[place])
    return needed


def _taken(
    shipped: Mapping[str, Answers],
    wanted: Mapping[str, set[Question]],
    others: Container[str],
) -> dict[str, Answers]:
    """What stands in place of runs, but not of others: of this engine, and all that is asked."""
    return {
        name: shipped[name]
        for name, of_run in wanted.items()
        if name in shipped
        and name not in others
        and shipped[name].engine == _native.engine()
        and shipped[name].know(of_run)
    }


def _lacking(
    paper: Paper, plan: Plan, figures: Sequence[Figure], taken: Container[str]
) -> list[str]:
    """Ids of the figures without some of their curves, because numbers draw none."""
    tables = {table.id: table for table in paper.tables}
    return [
        figure.id
        for figure in figures
        if any(
            name in taken for place in figure.places(tables) for name in plan.rows.get(place, ())
        )
    ]


def _measures_early(paper: Paper) -> bool:
    """Whether quick runs have another warm-up or duration than the usual ones."""
    return any(field.startswith("measure.") for field, _ in paper.quick)


def _why_quick(paper: Paper) -> str:
    """What keeps quick runs from being scored."""
    if _measures_early(paper):
        return "too short and too early to judge"
    return "of full length, but of one seed"


def table_cells(table: Table, plan: Plan, answers: Mapping[str, Answers]) -> list[Cell]:
    """A table's published cells beside ours; ours alone in columns that the paper has not."""
    cells = []
    for row in table.rows:
        if (table.id, row.label) not in plan.rows:
            continue
        names = plan.rows[table.id, row.label]
        done = [answers[name] for name in names if name in answers]
        for column, published in asked(table, row):
            given = [of_run[Question.of(column, published)] for of_run in done]
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
                    lacks_runs=len(done) < len(names),
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


def _fit_cells(fit: Fit, plan: Plan, answers: Mapping[str, Answers]) -> list[Cell]:
    """A fit's published cells beside ours: one least-squares line per seed.

    There are none where some of its rows are left out.
    """
    rows = plan.paper.table(fit.over).rows
    if any((fit.over, row.label) not in plan.rows for row in rows):
        return []
    x = [product(fit.x, row.published) for row in rows]
    lines = [
        np.polyfit(x, [answers[name].numbers[fit.terms] for name in of_seed], 1)
        # Some rows may have further seeds.
        for of_seed in zip(*(plan.rows[fit.over, row.label] for row in rows), strict=False)
        if all(name in answers for name in of_seed)
    ]
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


def _finished(names: Sequence[str], runs: _Runs) -> list[Run]:
    """Those of some runs that ended well."""
    return [run for run in map(runs.get, names) if isinstance(run, Run)]


def _write(
    folder: Path, texts: Mapping[str, tuple[str, str]], result: Mapping[str, Any]
) -> dict[str, str]:
    """Writes files, the scoreboard last, and returns where they are.

    Args:
        folder: Where they go.
        texts: Name and text of the files, by what they are.
        result: The scoreboard.
    """
    board = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    files = {**texts, "scoreboard": ("scoreboard.json", board)}
    for name, text in files.values():
        write_text(folder / name, text)
    return {kind: str(folder / name) for kind, (name, _) in files.items()}


def _taken_words(result: Mapping[str, Any]) -> str:
    """How many runs were taken from the paper's file, and which figures lack them."""
    taken, lacking = result["measured"]["runs"], result["measured"]["figures_lacking"]
    words = f"{taken} of them were taken from the paper's `{kept.FILE}`."
    if lacking:
        words += f" It draws no curves: they are missing in {len(lacking)} figures."
    return words


def _report(
    board: Scoreboard,
    result: Mapping[str, Any],
    judged: Sequence[Verdict],
    decidable: Mapping[str, float],
    read: Sequence[readings.Read],
    figures: Sequence[Figure],
) -> str:
    """The reproduction as a Markdown page."""
    seeds = ", ".join(str(seed) for seed in result["seeds"])
    head = [f"# {result['title']}", f"Ours / published; mean over seeds {seeds}."]
    if result["further"]["runs"]:
        further = result["further"]["seeds"]
        more = ", ".join(str(seed) for seed in further)
        head.append(
            f"Rows of claims whose verdict lies within noise have seed{'s'[: len(further) > 1]} "
            f"{more} as well, in {result['further']['runs']} further runs."
        )
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
    if "measured" in result:
        head.append(_taken_words(result))
    rows = result["rows"]
    if rows["run"] < rows["total"]:
        head.append(f"{rows['run']} of {rows['total']} rows have been run; the others are missing.")
    parts = [head[0], " ".join(head[1:]), board.to_markdown().rstrip()]
    if judged:
        marks = dict.fromkeys(result["claims"]["within_noise"], "within the noise of one run")
        for one in read:
            for first, _ in one.pairs if one.reading.mark else ():
                known = marks.get(first.id)
                marks[first.id] = f"{known}; {one.reading.mark}" if known else one.reading.mark
        parts.append(f"## Claims\n\n{claims.to_markdown(judged, decidable, marks)}")
    parts += [
        f"## Claims in a second reading: {one.reading.title}\n\n{readings.to_markdown(one)}"
        for one in read
    ]
    if drawn := paper_figures.listed(figures, result["figures"]):
        parts.append("## Figures\n\n" + markdown(["figure", "what", "file"], drawn, 3))
    if result["failed"]:
        listed = "\n".join(f"- {name}: {reason}" for name, reason in result["failed"].items())
        parts.append(f"## Runs that failed\n\n{listed}")
    return "\n\n".join(parts) + "\n"
