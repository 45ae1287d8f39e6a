"""Figures of a paper: distributions of some rows of its tables together.

``figures.toml`` beside ``tables.toml`` names the rows; a figure shows our runs, since what papers
plot is seldom published as numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, cast

import altair as alt

from aqmlab.figures import base as figures
from aqmlab.figures import groups as replica_figures
from aqmlab.results.distributions import Of
from aqmlab.results.replicas import Replicas

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aqmlab.papers.paper import Table
    from aqmlab.results.run import Run


@dataclass(frozen=True)
class Figure:
    """Rows of tables whose distributions are drawn together."""

    id: str
    title: str
    rows: tuple[tuple[str, str], ...]
    """Tables, and patterns of their rows' labels."""
    of: Of
    limit_s: float
    """End of the time axis; the tail beside it has none."""

    def places(self, tables: Mapping[str, Table]) -> list[tuple[str, str]]:
        """Table and label of each of its rows, in the order of the patterns."""
        found = []
        for name, pattern in self.rows:
            known = [row.label for row in tables[name].rows] if name in tables else []
            matching = [(name, label) for label in known if fnmatchcase(label, pattern)]
            if not matching:
                raise ValueError(f"figure {self.id}: there is no row {pattern} in table {name}")
            found += matching
        return list(dict.fromkeys(found))


def read(spec: Mapping[str, Any]) -> list[Figure]:
    """The figures of an entry: one, or one per value of ``each``, which ``$each`` stands for."""
    values = spec.get("each", [""])
    return [
        Figure(
            id=filled(spec["id"], value),
            title=filled(spec["title"], value),
            rows=tuple((table, filled(row, value)) for table, row in spec["rows"]),
            of=cast("Of", spec.get("of", "response")),
            limit_s=float(spec["limit_s"]),
        )
        for value in values
    ]


def filled(text: str, value: object) -> str:
    """A text with its ``$each`` filled in."""
    return Template(text).substitute(each=value)


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
            Replicas(label, tuple(runs), figure.of)
            for table, label in figure.places(tables)
            if (runs := runs_of(table, label))
        ]
        if (drawn := chart(figure, groups)) is not None:
            folder.mkdir(parents=True, exist_ok=True)
            written[figure.id] = str(figures.save(drawn, folder / f"{figure.id}.svg"))
    return written


def chart(figure: Figure, groups: Sequence[Replicas]) -> figures.Chart | None:
    """A figure: the distribution up to its limit, and the tail; None where no run tells."""
    distributions = replica_figures.distributions(groups, figure.limit_s)
    if distributions is None:
        return None
    drawn = alt.vconcat(distributions)
    titled = drawn.properties(title=f"{figure.title} (figure {figure.id})")
    return figures.finish(titled.resolve_scale(color="shared"))
