"""Blocks as one web page that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from aqmlab._util import drawing  # noqa: F401 - says what is not installed
from aqmlab.figures.palette import PALETTE

if TYPE_CHECKING:
    import jinja2

    from aqmlab._util.table import Cell, TableModel
    from aqmlab.document.blocks import Block

__all__ = ["environment", "page", "style"]


def page(title: str, blocks: Iterable[Block], script: str = "") -> str:
    """The page.

    Args:
        title: of the browser's window.
        blocks: what the page says.
        script: what makes it live; empty: nothing does.
    """
    made = environment()
    return made.get_template("page.html").render(
        title=title, blocks=[*blocks], script=script, style=style(made), strokes={}, prefix=""
    )


def environment(*packages: str) -> jinja2.Environment:
    """The templates of every page and of some packages; a name without a value is an error."""
    import jinja2  # figures do without it

    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(one) for one in ("aqmlab.document", *packages)]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    made.globals |= {"grouped": _grouped, "kind": _kind}
    return made


def style(made: jinja2.Environment) -> str:
    """The style of every page."""
    return made.get_template("page.css").render(palette=PALETTE)


def _kind(block: Block) -> str:
    """What a block is."""
    return type(block).__name__


def _grouped(table: TableModel) -> Iterator[tuple[tuple[Cell, ...], int | None]]:
    """Each row, with how many rows its first cell spans; 0: none; None: the table has no groups."""
    if not table.is_grouped or not table.rows:
        yield from ((row, None) for row in table.rows)
        return
    begins = [place for place, row in enumerate(table.rows) if row[0].text]
    ends = [*begins[1:], len(table.rows)]
    spans = {begin: end - begin for begin, end in zip(begins, ends, strict=True)}
    yield from ((row, spans.get(place, 0)) for place, row in enumerate(table.rows))
