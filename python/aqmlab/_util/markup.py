"""Tables as LaTeX, Markdown and CSV: for papers, web pages and other programs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from urllib.parse import quote

from aqmlab._util.table import Cell, TableColumn, TableModel
from aqmlab._util.words import printable

__all__ = ["Markup", "markdown", "markdown_table", "markdown_text", "rendered"]


class Markup(str, Enum):
    """How tables are written for anything that is no terminal."""

    LATEX = "latex"
    """``tabular`` with the rules of the package booktabs."""
    MARKDOWN = "markdown"
    """Tables with pipes, as GitHub and Pandoc read them."""
    CSV = "csv"
    """Comma-separated values as in RFC 4180, with line feeds."""


def rendered(markup: Markup, parts: Sequence[str | TableModel]) -> str:
    """Texts and tables, one below the other; an empty line stands between tables.

    Texts and titles of tables are paragraphs in Markdown, comments elsewhere. Cells that stand out
    are bold, except in CSV. Empty texts are empty lines.
    """
    write = {Markup.LATEX: _latex, Markup.MARKDOWN: _markdown, Markup.CSV: _csv}[markup]
    paragraphs: list[list[str]] = [[]]
    follows_table = False
    for part in parts:
        is_table = isinstance(part, TableModel)
        text = _one_line(part.title if isinstance(part, TableModel) else str(part))
        if (is_table and follows_table) or not (is_table or text):
            paragraphs.append([])
        if text:
            paragraphs[-1].append(_note(markup, text))
        if isinstance(part, TableModel):
            paragraphs[-1].append(write(part))
        follows_table = is_table
    gap = "\n\n" if markup is Markup.MARKDOWN else "\n"
    return "\n\n".join(gap.join(blocks) for blocks in paragraphs if blocks)


def _note(markup: Markup, text: str) -> str:
    """A text beside tables, which no program takes for a part of one."""
    if markup is Markup.MARKDOWN:
        return markdown_text(text)
    return f"{'%' if markup is Markup.LATEX else '#'} {text}"


def _one_line(text: str) -> str:
    """A text without line feeds, and without what a terminal would obey."""
    return " ".join(printable(text).split())


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table: the first ``left`` columns stand to the left, the others to the right."""
    return _piped(head, lines, [at >= left for at in range(len(head))])


def _piped(head: Sequence[str], lines: Sequence[Sequence[str]], to_right: Sequence[bool]) -> str:
    """A Markdown table, some of its columns to the right."""
    rule = ["---:" if right else "---" for right in to_right]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def markdown_text(words: str, *, bold: bool = False) -> str:
    """Text in one line that Markdown and the HTML in it take for nothing but text."""
    text = re.sub(r"([\\`*_\[\]<>|#~$&])", r"\\\1", _one_line(words))
    return f"**{text}**" if bold else text


def markdown_table(table: TableModel, left: int = 1) -> str:
    """A table as a document has it: the first ``left`` columns stand to the left."""
    return markdown(list(map(markdown_text, table.head)), _markdown_rows(table), left)


def _markdown(table: TableModel) -> str:
    """A table as Markdown."""
    heads = [markdown_text(column.short) for column in table.columns]
    to_right = [column.is_number for column in table.columns]
    return _piped(heads, _markdown_rows(table), to_right)


def _markdown_rows(table: TableModel) -> list[list[str]]:
    """The cells; those that stand out are bold."""
    return [[*map(_markdown_cell, row)] for row in table.rows]


def _markdown_cell(cell: Cell) -> str:
    """A cell, with its link."""
    text = markdown_text(cell.text, bold=bool(cell.tone))
    return f"[{text}]({quote(cell.address)})" if cell.address else text


def _latex(table: TableModel) -> str:
    """A table as LaTeX, for documents that load the package booktabs."""
    columns = "".join("r" if column.is_number else "l" for column in table.columns)
    return "\n".join(
        [
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            _latex_row([_latex_text(column.short) for column in table.columns]),
            "\\midrule",
            *(_latex_row(map(_latex_cell, row, table.columns)) for row in table.rows),
            "\\bottomrule",
            "\\end{tabular}",
        ]
    )


def _latex_row(cells: Iterable[str]) -> str:
    """A row; what begins it is no argument of the command in the line above."""
    row = " & ".join(cells)
    return ("{}" if row.startswith(("[", "*")) else "") + row + r" \\"


def _latex_cell(cell: Cell, column: TableColumn) -> str:
    """A cell; numbers get the minus sign of mathematics."""
    text = _latex_text(cell.text)
    if column.is_number:
        text = re.sub(r"(?<!\w)-(?=\d)", "$-$", text)
    return rf"\textbf{{{text}}}" if cell.tone else text


_LATEX = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
        "≤": r"$\le$",
        "≥": r"$\ge$",
        "±": r"$\pm$",
    }
)
"""What LaTeX takes for a command, or prints as another character in its usual fonts."""


def _latex_text(text: str) -> str:
    """Text in one line that LaTeX prints unchanged."""
    return _one_line(text).replace("<=", "≤").replace(">=", "≥").translate(_LATEX)


def _csv(table: TableModel) -> str:
    """A table as CSV; its numbers have no commas between thousands."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([_one_line(column.short) for column in table.columns])
    for row in table.rows:
        writer.writerow(map(_csv_cell, row, table.columns))
    return stream.getvalue().rstrip("\n")


def _csv_cell(cell: Cell, column: TableColumn) -> str:
    """A cell."""
    text = _one_line(cell.text)
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text) if column.is_number else text
