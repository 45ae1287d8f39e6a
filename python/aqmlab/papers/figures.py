"""Figures of a paper: distributions of some rows of its tables together.

``figures.toml`` beside ``tables.toml`` names the rows. A figure shows our runs, and beside each
curve the points of the distribution that the paper's tables print: percentiles, and shares of
responses within some seconds. The curves of plots are seldom published as numbers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.figures.distributions import Points, Selection, view
from aqmlab.figures.files import save
from aqmlab.figures.grammar import Chart, hconcat
from aqmlab.figures.theme import Heading, Look, finish
from aqmlab.papers.paper import PaperFigure
from aqmlab.results.configurations import Configuration
from aqmlab.results.groups import Group
from aqmlab.results.terms import Percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aqmlab.papers.paper import PaperColumn, PaperRow, Table
    from aqmlab.results.distributions import Of
    from aqmlab.results.run import Run

__all__ = ["draw", "published_points"]


_WITHIN = re.compile(r"(responses|flows)\.all\.le_(\d+)s")


def draw(
    wanted: Sequence[PaperFigure],
    tables: Mapping[str, Table],
    runs_of: Callable[[str, str], list[Run]],
    folder: Path,
    *,
    quick: bool = False,
    early: bool = False,
) -> dict[str, str]:
    """Writes figures as SVG into a folder; those whose runs are all missing are left out.

    Args:
        wanted: The figures.
        tables: The paper's tables, by id.
        runs_of: The finished runs, one per seed, of a table's row, by table and label.
        folder: Where they go.
        quick: Whether the runs are quick ones, which the figures say.
        early: Whether they are measured before the paper's users have arrived. Published points
            beside them would mislead, and are left out.

    Returns:
        Where each is, by its id.
    """
    written = {}
    for figure in wanted:
        places = figure.places(tables)
        found = [
            Configuration(Group(label, tuple(runs)), {})
            for table, label in places
            if (runs := [run for run in runs_of(table, label) if _tells(run, figure.of)])
        ]
        if not found:
            continue
        published: dict[str, Points] = {}
        for table, label in places:
            points = published_points(tables[table], tables[table].row(label), figure.of)
            published.setdefault(label, points)
        drawn = {case.label: published[case.label] for case in found if published[case.label]}
        folder.mkdir(parents=True, exist_ok=True)
        chart = _chart(figure, found, {} if early else drawn, quick=quick, early=early)
        written[figure.id] = str(save(chart, folder / figure.file_name))
    return written


def _tells(run: Run, of: Of) -> bool:
    """Whether something of the kind ended in a run."""
    section = {"response": "responses", "flow": "flows"}[of]
    return bool(run.summary.get(section, {}).get("all", {}).get("count"))


def published_points(table: Table, row: PaperRow, of: Of) -> Points:
    """What a row prints of a distribution of all classes: times, and the shares within them."""
    points = [point for column in table.columns if (point := _point(column, row, of)) is not None]
    return sorted(points)


def _point(column: PaperColumn, row: PaperRow, of: Of) -> tuple[float, float] | None:
    """The point that a column prints; None if it prints none."""
    text = row.published.get(column.name)
    if not text:
        return None
    if len(column.terms) == 1 and column.percentile is not None:
        percentile: Percentile = column.percentile
        if percentile.what != of or percentile.traffic_class is not None:
            return None
        return float(text) / column.terms[0].factor, percentile.rank / 100
    return _share_within(column, row, of)


def _share_within(column: PaperColumn, row: PaperRow, of: Of) -> tuple[float, float] | None:
    """The share within some seconds, of a column of it, or of one of what is between two of them.

    Papers print shares from 0 to 1 s, from 1 to 2 s and so on: the sum of those up to here.
    """
    within = [_WITHIN.fullmatch(term.key) for term in column.terms]
    if of != "response" or not within or any(found is None for found in within):
        return None
    seconds = max(int(found[2]) for found in within if found is not None)
    names = ["pct_le_1s", *(f"pct_{k - 1}_to_{k}s" for k in range(2, seconds + 1))]
    shares = [row.published.get(name) for name in names]
    if not all(shares):
        return None
    return float(seconds), sum(float(share) for share in shares if share) / 100


def _chart(
    figure: PaperFigure,
    found: Sequence[Configuration],
    published: Mapping[str, Points],
    *,
    quick: bool,
    early: bool,
) -> Chart:
    """The distribution up to the figure's limit, and the tail."""
    look = Look()
    selection = Selection(of=figure.of, limit_s=figure.limit_s)
    views = [view(found, look, tail, selection, published) for tail in ("cdf", "ccdf")]
    notes = [note for one in views for note in one.heading.subtitle[1:]]
    lengths = sorted({f"{run.summary['measured_s']:g} s" for case in found for run in case.runs})
    quickly: tuple[str, ...] = (
        (f"quick runs of {' or '.join(lengths)}, which are not scored",) if quick else ()
    )
    if early:
        quickly += ("published points are left out: the paper's users have not all arrived yet",)
    title = f"{figure.title} (figure {figure.id}{', quick' if quick else ''})"

    def build(room: float) -> Chart:
        each = (room - 6 * look.size.text) / 2
        plots = [one.build(each).properties(title=one.heading.within(look, each)) for one in views]
        pair: Chart = hconcat(*plots, spacing=2 * look.size.text).scales(color="shared")
        return pair

    return finish(build, look, Heading(title, (*quickly, *dict.fromkeys(notes))))
