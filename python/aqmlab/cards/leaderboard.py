"""Cards of many queues, or controls, side by side: a sortable table, and what it does not say."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aqmlab._util.files import write_text
from aqmlab._util.table import Cell, TableModel
from aqmlab.cards.card import Card, about_seeds
from aqmlab.cards.findings import FAIL
from aqmlab.cards.kinds import CONTROL, QUEUE, Kind
from aqmlab.cards.scoring import VERSION, Area
from aqmlab.document.blocks import Block, Heading, Item, Items, Table, Text, Title

__all__ = [
    "CONTROLS",
    "QUEUES",
    "Board",
    "BoardEntry",
    "entries",
    "failing",
    "markdown",
    "read",
    "rows_of",
    "table",
    "write",
]


_HERE = Path(__file__).parent
_SCORED = ("grade", "score", "low", "high")


@dataclass(frozen=True)
class Board:
    """A table of cards."""

    about: Kind
    file: str
    """The name of its files, without their endings."""
    table: str
    """The table of its entries."""
    pages: str
    """The folder of the documentation that has a page for each."""
    scale: str
    """What 0 and 1 are, in words."""
    limits: Sequence[str]
    """What a table of grades does not say."""


QUEUES = Board(
    about=QUEUE,
    file="leaderboard",
    table="queues.csv",
    pages="disciplines",
    scale="0 is drop-tail with the same buffer, 1 the median of the baselines.",
    limits=(
        "Parameters are defaults, or listed below. A tuned queue can do better.",
        "Authors tuned most queues on tests of their own, which may resemble these or not.",
        "The quick tier has 33 settings and three seeds: look at the intervals.",
        "All queues get the same buffer in bytes, not the one that their authors recommend.",
        "Only one test of the quick tier has senders with ECN.",
    ),
)
"""The queue disciplines that ship with the package."""
CONTROLS = Board(
    about=CONTROL,
    file="controls",
    table="controls.csv",
    pages="congestion-controls",
    scale="1 is CUBIC in the same place, 0 half as good: twice the delay or half the rate.",
    limits=(
        "CUBIC is the yardstick, not the best control.",
        "Parameters are defaults. A tuned control can do better.",
        "The quick tier has 56 settings and three seeds: look at the intervals.",
        "Queues are drop-tail in the quick tier. DCTCP and Prague are made for queues that mark.",
        (
            "Round trips are 20 to 120 ms, most rates 10 to 50 Mbit/s: controls for data centres "
            "or long fat paths are not at home there."
        ),
        "No test asks how well LEDBAT++ yields to others.",
    ),
)
"""The congestion controls that ship with the package."""


@dataclass(frozen=True)
class BoardEntry:
    """A queue or a control of a table."""

    kind: str
    text: str
    """As ``aqmlab evaluate`` names it."""
    ecn: str
    """ECN of a control's flows."""
    chosen: str
    """Why it has these parameters; empty: it has its defaults."""


@cache
def entries(board: Board = QUEUES) -> tuple[BoardEntry, ...]:
    """Everything of its kind that ships with the package."""
    with (_HERE / "suites" / board.table).open(encoding="utf-8", newline="") as file:
        return tuple(BoardEntry(**row) for row in csv.DictReader(file))


def rows_of(cards: Sequence[tuple[BoardEntry, Card]]) -> list[dict[str, str]]:
    """A row for each card, in the order of their kinds: what the files hold."""
    found = []
    for entry, card in sorted(cards, key=lambda pair: pair[0].kind):
        failed = [gate.rule.name for gate in card.gates if gate.passed is False]
        row = {
            "kind": entry.kind,
            card.kind: entry.text,
            "chosen": entry.chosen,
            "gates_failed": " ".join(failed),
            "findings_failed": "; ".join(one.name for one in card.findings if one.outcome == FAIL),
        }
        for area in card.areas:
            row |= {f"{area.name}_{key}": _text(area, key) for key in _SCORED}
        found.append(
            row
            | {
                "card": str(VERSION),
                "tier": card.tier,
                "seeds": about_seeds(card.seeds),
                "engine": card.engine,
            }
        )
    return found


def failing(row: Mapping[str, str]) -> str:
    """The gates and findings that fail, in words."""
    gates = row["gates_failed"].split()
    found = [name for name in row["findings_failed"].split("; ") if name]
    return ", ".join(dict.fromkeys([*gates, *found]))


def _text(area: Area, key: str) -> str:
    """A number of an area with three decimals; empty if there is none."""
    if key == "grade":
        return area.grade
    if area.score is None:
        return ""
    value = {"score": area.score.mean, "low": area.score.low, "high": area.score.high}[key]
    return f"{value:.3f}" if math.isfinite(value) else ""


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a written table."""
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def _areas(rows: Sequence[Mapping[str, str]], board: Board) -> list[str]:
    """The areas that have a score somewhere."""
    return [name for name in board.about.areas if any(row.get(f"{name}_score") for row in rows)]


def table(
    rows: Sequence[Mapping[str, str]], board: Board = QUEUES, cards: Sequence[str] = ()
) -> TableModel:
    """Grades for a terminal; where cards are given, scores that a page links to them."""
    names = _areas(rows, board)
    made = TableModel("", [board.about.name], names, ["fails"])
    for number, row in enumerate(rows):
        named, failed = row[board.about.name].partition(":")[0], failing(row)
        if not cards:
            made.add_row(named, *(row[f"{name}_grade"] for name in names), failed)
            continue
        made.add_row(
            Cell(named, address=f"{cards[number]}/card.html"),
            *(_cell(row, name) for name in names),
            Cell(failed or "none", "worse" if failed else ""),
        )
    return made


def _blocks(
    rows: Sequence[Mapping[str, str]], cards: Sequence[str], board: Board
) -> Iterator[Block]:
    """The page from top to bottom."""
    yield Title("Report cards side by side")
    yield Text(
        f"Scores by area: {board.scale} Below each score is its 95 % interval over seeds. Click a "
        "column's head to sort."
    )
    yield Table(table(rows, board, cards), is_sortable=True)
    yield Heading("What the table does not say")
    yield Items([Item(limit) for limit in board.limits])
    chosen = [Item(row["chosen"], row[board.about.name]) for row in rows if row["chosen"]]
    if chosen:
        yield Heading("Parameters that have no default")
        yield Items(chosen)
    about = rows[0]
    yield Text(
        f"card {about['card']}, {about['tier']} tier, {about['seeds']}, engine {about['engine']}",
        "soft",
    )


def markdown(rows: Sequence[Mapping[str, str]], board: Board = QUEUES) -> str:
    """The table of docs/leaderboard.md: scores and grades, without the intervals of the CSV."""
    return "\n".join(_markdown(rows, board)) + "\n"


def _markdown(rows: Sequence[Mapping[str, str]], board: Board) -> Iterator[str]:
    names = _areas(rows, board)
    yield f"| {board.about.name} | {' | '.join(names)} | fails |"
    yield f"| --- |{' ---: |' * len(names)} --- |"
    for row in rows:
        cells = [_cell(row, name).text for name in names]
        link = f"[{row['kind']}]({board.pages}/{row['kind']}.md)"
        failed = f"{name} " if (name := failing(row)) else ""
        yield f"| {link} | {' | '.join(cells)} | {failed}|"


def _cell(row: Mapping[str, str], area: str) -> Cell:
    """A score with its grade, and its interval."""
    if not row[f"{area}_score"]:
        return Cell("?")
    score, low, high = (_short(row[f"{area}_{key}"]) for key in ("score", "low", "high"))
    return Cell(f"{score} {row[f'{area}_grade']}", note=f"{low} to {high}" if low else "")


def _short(text: str) -> str:
    """A score with two decimals; no minus before zero."""
    return f"{float(text) + 0.0:.2f}".replace("-0.00", "0.00") if text else ""


def write(
    rows: Sequence[Mapping[str, str]], cards: Sequence[str], folder: Path, board: Board = QUEUES
) -> list[Path]:
    """Writes the table as CSV, and as a web page.

    Args:
        rows: those of :func:`rows_of`.
        cards: the folder of each row's card, relative to `folder`.
        folder: where they go.
        board: whose rows they are.
    """
    from aqmlab.document.html import page  # it loads what draws

    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    files = [folder / f"{board.file}{ending}" for ending in (".csv", ".html")]
    write_text(files[0], stream.getvalue())
    script = (_HERE / "templates" / "sort.js").read_text(encoding="utf-8")
    blocks = _blocks(rows, cards, board)
    write_text(files[1], page("Report cards side by side", blocks, script))
    return files
