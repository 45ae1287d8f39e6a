"""What a paper's scoreboard says about the runs of a report.

``aqmlab reproduce`` leaves ``scoreboard.json`` and ``cells.csv`` beside the folder of its runs. A
run in that folder belongs to the published rows whose effective scenario is its own.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError
from aqmlab.papers.paper import Paper
from aqmlab.papers.plan import Plan
from aqmlab.results.run import Run

__all__ = ["PublishedNumber", "published_numbers"]


@dataclass(frozen=True)
class PublishedNumber:
    """A published number beside ours."""

    paper: str
    """Title of the paper."""
    table: str
    """Title of its table."""
    row: str
    column: str
    """Title of the column."""
    published: str
    ours: str
    """Mean over the seeds of the reproduction, with as many decimals as the published number."""
    seeds: int
    verdict: str
    """``within``, ``outside``, ``missing`` or ``not scored``."""


def published_numbers(runs: Sequence[Run]) -> list[PublishedNumber]:
    """The numbers of the published rows that the runs belong to, each once."""
    found: dict[tuple[Path, str, str], None] = {}
    for run in runs:
        folder = run.path.resolve().parent.parent
        if (folder / "scoreboard.json").is_file():
            for table, row in _rows_of(folder).get(_fingerprint(run.scenario), ()):
                found[folder, table, row] = None
    return [number for place in found for number in _cells_of(*place)]


@cache
def _rows_of(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Table and row of what a reproduction ran, by the fingerprints of the scenarios."""
    result = _scoreboard(folder)
    try:
        paper = Paper.load(result["paper"])
        length = result["length"]
        plan = Plan(paper, result["seeds"], length == "quick", length == "published")
        plan.add_tables(paper.tables)
    except (AqmlabError, KeyError, TypeError):
        return {}  # a paper that is not installed here says nothing about its runs
    found: dict[str, list[tuple[str, str]]] = {}
    for place, names in plan.rows.items():
        for name in names:
            found.setdefault(_fingerprint(plan.scenarios[name].data), []).append(place)
    return found


def _fingerprint(scenario: Mapping[str, Any]) -> str:
    """The content of an effective scenario; unlike its key it does not depend on the engine."""
    return json.dumps(scenario, sort_keys=True)


@cache
def _scoreboard(folder: Path) -> Mapping[str, Any]:
    """The scoreboard of a reproduction."""
    try:
        content = json.loads((folder / "scoreboard.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


@cache
def _cells(folder: Path) -> list[dict[str, str]]:
    """The cells of a reproduction."""
    try:
        with (folder / "cells.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError:
        return []


def _cells_of(folder: Path, table: str, row: str) -> list[PublishedNumber]:
    """The cells of one published row."""
    result = _scoreboard(folder)
    paper = Paper.load(result["paper"])
    of_table = paper.table(table)
    columns = {column.name: column.title for column in of_table.columns}
    return [
        PublishedNumber(
            paper=paper.title,
            table=of_table.title,
            row=row,
            column=columns.get(cell["column"], cell["column"]),
            published=cell["published"],
            ours=_like(cell["ours"], cell["published"]),
            seeds=int(cell["seeds"]),
            verdict=cell["verdict"],
        )
        for cell in _cells(folder)
        if (cell["table"], cell["row"]) == (table, row) and cell["published"]
    ]


def _like(ours: str, published: str) -> str:
    """Our number with as many decimals as the published one; a dash if there is none."""
    decimals = len(published.partition(".")[2])
    return f"{float(ours):.{decimals}f}" if ours else "-"
