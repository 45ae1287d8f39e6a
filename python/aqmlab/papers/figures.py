"""Figures of a paper: distributions of some rows of its tables together.

``figures.toml`` beside ``tables.toml`` names the rows; a figure shows our runs, since what papers
plot is seldom published as numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import altair as alt

from aqmlab.figures import base as figures
from aqmlab.figures import groups as group_figures
from aqmlab.papers.paper import Figure
from aqmlab.results.groups import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aqmlab.papers.paper import Table
    from aqmlab.results.run import Run

__all__ = ["draw"]


def draw(
    wanted: Sequence[Figure],
    tables: Mapping[str, Table],
    runs_of: Callable[[str, str], list[Run]],
    folder: Path,
) -> dict[str, str]:
    """Writes figures as SVG into a folder; those whose runs are all missing are left out.

    Args:
        wanted: The figures.
        tables: The paper's tables, by id.
        runs_of: The finished runs, one per seed, of a table's row, by table and label.
        folder: Where they go.

    Returns:
        Where each is, by its id.
    """
    written = {}
    for figure in wanted:
        groups = [
            Group(label, tuple(runs), figure.of)
            for table, label in figure.places(tables)
            if (runs := runs_of(table, label))
        ]
        if (drawn := _chart(figure, groups)) is not None:
            folder.mkdir(parents=True, exist_ok=True)
            written[figure.id] = str(figures.save(drawn, folder / f"{figure.id}.svg"))
    return written


def _chart(figure: Figure, groups: Sequence[Group]) -> figures.Chart | None:
    """A figure: the distribution up to its limit, and the tail; None where no run tells."""
    distributions = group_figures.distributions(groups, figure.limit_s)
    if distributions is None:
        return None
    drawn = alt.vconcat(distributions)
    titled = drawn.properties(title=f"{figure.title} (figure {figure.id})")
    return figures.finish(titled.resolve_scale(color="shared"))
