"""Every row of every Markdown table has as many cells as the head of its table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

FENCE = re.compile(r"^(```|~~~)")
CELLS = re.compile(r"(?<!\\)\|")
CODE = re.compile(r"`[^`]*`")
RULE = re.compile(r"^\|( *:?-+:? *\|)+$")
PAGES = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if not {".venv", "target", "node_modules", "out", "runs", "releases"}
    & set(path.relative_to(ROOT).parts)
]


def tables(text: str) -> list[list[tuple[int, str]]]:
    """The tables of a page: numbered lines that begin with a bar, outside of code."""
    found: list[list[tuple[int, str]]] = []
    fenced, before = False, False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        is_row = not fenced and line.startswith("|")
        if is_row and not before:
            found.append([])
        if is_row:
            found[-1].append((number, line.rstrip()))
        before = is_row
    return found


def cells(line: str) -> int:
    """Cells of a row; bars in code and behind a backslash divide none."""
    return len(CELLS.findall(CODE.sub("", line))) - 1


def wrong(text: str) -> list[str]:
    """What is wrong with the tables of a page."""
    found = []
    for table in tables(text):
        if len(table) < 2 or not RULE.match(table[1][1]):
            found.append(f"line {table[0][0]}: a table without a head")
            continue
        width = cells(table[0][1])
        found += [
            f"line {number}: {cells(line)} cells under a head of {width}"
            for number, line in table
            if cells(line) != width
        ]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_rows_of_tables_are_whole(page: Path) -> None:
    assert not wrong(page.read_text())


def test_planted_faults_are_found() -> None:
    assert wrong("| a | b |\n| - | - |\n| 1 |\n")
    assert wrong("| 1 | 2 |\n| 3 | 4 |\n")
    assert not wrong("| a | `x | y` |\n| --- | ---: |\n| 1 \\| 2 | 3 |\n")
    assert len(PAGES) > 100
