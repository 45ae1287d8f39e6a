"""Tables that are whole at any width."""

from __future__ import annotations

import csv
import io
import itertools
import re

import pytest
from aqmlab._util import plain
from aqmlab._util.console import drawn as drawn_part
from aqmlab._util.markup import Markup, rendered
from aqmlab._util.table import Cell, TableModel, strong
from aqmlab._util.terminal import Drawing
from rich.cells import cell_len
from rich.console import Console

WIDTHS = (40, 60, 80, 100, 120, 200)


def drawn(table: TableModel, width: int) -> list[str]:
    """The lines of a table in a window."""
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(Drawing(table), crop=False)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def made(labels: list[str], heads: list[str]) -> tuple[TableModel, list[str]]:
    """A table whose numbers all differ, and these numbers."""
    table = TableModel()
    table.add_key("run")
    for head in heads:
        table.add_number(head)
    numbers = (f"{1_000_000 + 7 * number:,}" for number in itertools.count())
    shown = []
    for label in labels:
        row = list(itertools.islice(numbers, len(heads)))
        table.add_row(label, *row)
        shown += row
    return table, shown


LABELS = {
    "few": ["droptail 120", "red (30,90)"],
    "many": [f"red (30,90), seed {seed}" for seed in range(40)],
    "long": [f"fq-codel 10240, reverse droptail, rate {rate} Mbit/s, pace" for rate in (1, 2)],
    "one word": [f"{'x' * 90}{end}" for end in "ab"],
    "alike": [f"{'x' * 45}{end}{'y' * 45}" for end in "ab"],
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("count", [1, 3, 14])
def test_no_number_is_cut(width: int, labels: list[str], count: int) -> None:
    heads = [f"metric {number} Mbit/s" for number in range(count)]
    table, numbers = made(labels, heads)
    lines = drawn(table, width)
    shown = re.findall(r"1,00\d,\d{3}(?!\d)", "\n".join(lines))
    assert sorted(shown) == sorted(numbers)
    for head in heads:
        assert any(head in line for line in lines)
    if labels is not LABELS["alike"]:  # whose keys cannot be shortened
        assert max(map(cell_len, lines)) <= width


def test_what_fits_stays_as_it_is() -> None:
    table, _ = made(["a", "b"], ["x", "y"])
    assert drawn(table, 80) == [
        "run          x          y",
        "a    1,000,000  1,000,007",
        "b    1,000,014  1,000,021",
    ]


def test_a_wide_table_is_turned_if_that_fits() -> None:
    table, _ = made(["one long label", "b"], ["x", "y", "z", "u"])
    assert drawn(table, 40) == [
        "run  one long label          b",
        "x         1,000,000  1,000,028",
        "y         1,000,007  1,000,035",
        "z         1,000,014  1,000,042",
        "u         1,000,021  1,000,049",
    ]
    assert drawn(table, 26)[:3] == [
        "      one long",
        "run      label          b",
        "x    1,000,000  1,000,028",
    ]


def test_else_it_is_split_into_blocks() -> None:
    table, _ = made(["red (30,90), limit 480", "b", "c"], ["x", "y"])
    assert drawn(table, 30) == [
        "run                x",
        "red … 480  1,000,000",
        "b          1,000,014",
        "c          1,000,028",
        "",
        "run                y",
        "red … 480  1,000,007",
        "b          1,000,021",
        "c          1,000,035",
    ]


def test_labels_that_would_be_alike_are_not_shortened() -> None:
    table, _ = made(LABELS["alike"], ["x"])
    text = "\n".join(drawn(table, 60))
    assert all(label in text for label in LABELS["alike"])


def test_prose_wraps_and_names_do_not() -> None:
    table = TableModel()
    table.add_key("name")
    table.add_text("what it is")
    table.add_row("scenarios/quickstart.toml", "one two three four five six seven eight nine")
    assert drawn(table, 50) == [
        "name                       what it is",
        "scenarios/quickstart.toml  one two three four five",
        "                           six seven eight nine",
    ]


def test_texts_do_not_command_the_terminal() -> None:
    table = TableModel("title\x1b[2J")
    table.add_key("head\x1b[2J")
    table.add_number("number\x9b2J")
    table.add_row("label\x1b]0;x\x07", Cell("1\x1b[31m", "better"))
    text = "\n".join(drawn(table, 80))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert r"label\u001b]0;x\u0007" in text


def test_brackets_are_no_markup() -> None:
    table = TableModel()
    table.add_key("run")
    table.add_row("red [bold]x[/bold] :warning:")
    assert drawn(table, 80)[1] == "red [bold]x[/bold] :warning:"


def test_the_direction_of_a_link_is_not_cut() -> None:
    """Words of long labels give way first: the labels of a second key stay readable."""
    table = TableModel()
    for head in ("run", "link"):
        table.add_key(head)
    for number in range(6):
        table.add_number(f"metric {number}")
    for rate in (10, 20, 40):
        for side in ("forward", "reverse"):
            name = f"droptail 407, reverse rate {rate} Mbit/s"
            table.add_row(name, f"bottleneck {side}", *("1,234" for _ in range(6)))
    lines = drawn(table, 80)
    assert max(map(cell_len, lines)) <= 80
    assert any(line.startswith("droptail 407, … 10 Mbit/s  bottleneck forward") for line in lines)


SPECIAL = r"a & b % c $ d # e_f {g} ~h ^i \j <k> |l| *m*"
"""A label with all characters that LaTeX or Markdown takes for something else."""


def special() -> TableModel:
    """A table with such a label, and all that numbers are made of."""
    table = TableModel("100 % of\nthe runs")
    table.add_key("[run]")
    table.add_key("load", is_number=True)
    table.add_number("loss %")
    table.add_number("<= 1 s %")
    table.add_text("interval from")
    table.add_row(SPECIAL, "0.9", "1,234 ± 0.5", "-3 (-1,234,567 to +2)", "3 pairs, 1,234-56")
    table.add_row("*", "1", Cell("-0.5", "clear"), "-", "")
    return table


def test_a_table_as_latex() -> None:
    label = (
        r"a \& b \% c \$ d \# e\_f \{g\} \textasciitilde{}h \textasciicircum{}i "
        r"\textbackslash{}j $<$k$>$ $|$l$|$ *m*"
    )
    change = "$-$3 ($-$1,234,567 to +2)"
    assert rendered(Markup.LATEX, [special()]).splitlines() == [
        "% 100 % of the runs",
        r"\begin{tabular}{lrrrl}",
        r"\toprule",
        r"{}[run] & load & loss \% & $\le$ 1 s \% & interval from \\",
        r"\midrule",
        rf"{label} & 0.9 & 1,234 $\pm$ 0.5 & {change} & 3 pairs, 1,234-56 \\",
        r"{}* & 1 & \textbf{$-$0.5} & - &  \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_latex_is_well_formed() -> None:
    """Each row has a cell for each column; braces and signs of mathematics come in pairs."""
    lines = rendered(Markup.LATEX, [special()]).splitlines()
    rows = [line for line in lines if line.endswith(r"\\")]
    assert len(rows) == 3
    for row in rows:
        bare = re.sub(r"\\[&%$#_{}]", "", row.removesuffix(r"\\"))
        assert bare.count("&") == 4
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        assert not re.search(r"[%#_~^]", bare)
        outside = re.sub(r"\$[^$]*\$", "", bare)
        assert not re.search(r"[<>|±]", outside)
        commands = re.findall(r"\\([a-z]+)", bare)
        assert set(commands) <= {*("le", "pm", "textbf", "textbackslash")} | {
            *("textasciitilde", "textasciicircum")
        }


def test_a_table_as_markdown() -> None:
    label = r"a \& b % c \$ d \# e\_f {g} \~h ^i \\j \<k\> \|l\| \*m\*"
    change = "-3 (-1,234,567 to +2)"
    assert rendered(Markup.MARKDOWN, [special()]).splitlines() == [
        "100 % of the runs",
        "",
        r"| \[run\] | load | loss % | \<= 1 s % | interval from |",
        "| --- | ---: | ---: | ---: | --- |",
        f"| {label} | 0.9 | 1,234 ± 0.5 | {change} | 3 pairs, 1,234-56 |",
        r"| \* | 1 | **-0.5** | - |  |",
    ]


def test_a_table_as_csv() -> None:
    title, *lines = rendered(Markup.CSV, [special()]).splitlines()
    assert title == "# 100 % of the runs"
    assert list(csv.reader(lines)) == [
        ["[run]", "load", "loss %", "<= 1 s %", "interval from"],
        [SPECIAL, "0.9", "1234 ± 0.5", "-3 (-1234567 to +2)", "3 pairs, 1,234-56"],
        ["*", "1", "-0.5", "-", ""],
    ]


@pytest.mark.parametrize(("markup", "mark"), [(Markup.LATEX, "% "), (Markup.CSV, "# ")])
def test_texts_are_comments_and_tables_stand_apart(markup: Markup, mark: str) -> None:
    table, _ = made(["a"], ["x"])
    one = rendered(markup, [table])
    assert one
    assert rendered(markup, ["head\nof it", table, strong("below"), "", table, table]) == (
        f"{mark}head of it\n{one}\n{mark}below\n\n{one}\n\n{one}"
    )
    assert rendered(Markup.MARKDOWN, ["head", table, "", table]).startswith("head\n\n| run")


@pytest.mark.parametrize("markup", Markup)
def test_markup_has_no_commands_for_terminals(markup: Markup) -> None:
    table = TableModel("title\x1b[2J")
    table.add_key("head\x1b[2J")
    table.add_row("label\x1b]0;x\x07\nnext")
    text = rendered(markup, ["text\x1b[2J", table])
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert "u0007 next" in text


def in_a_wide_window(part: str | TableModel) -> list[str]:
    """What rich makes of it where nothing limits its width."""
    stream = io.StringIO()
    console = Console(
        file=stream, width=1_000_000, color_system=None, markup=False, emoji=False, highlight=False
    )
    console.print(drawn_part(part), crop=False)
    return stream.getvalue().removesuffix("\n").split("\n")


TEXTS = ("", "a", "many words  ", "two\nlines and more", "\u65e5\u672c", "e\u0301", "\x1b[1mx\t")


@pytest.mark.parametrize("has_text", [False, True])
@pytest.mark.parametrize("title", ["", "A title"])
def test_a_pipe_gets_the_lines_of_a_wide_window(title: str, has_text: bool) -> None:
    table = TableModel(title)
    table.add_key("run")
    table.add_key("a number", is_number=True)
    table.add_number("metric\nMbit/s")
    if has_text:
        table.add_text("what it is")
    for number, text in enumerate(TEXTS):
        cell = Cell(f"{10**number:,}", tone="better")
        row: list[str | Cell] = [text, TEXTS[number - 1], cell]
        table.add_row(*row, *[f"{text} {text}"] * has_text)
    assert list(plain.lines(table)) == in_a_wide_window(table)


@pytest.mark.parametrize("text", [*TEXTS, strong("bold", " and not\n"), strong("all of it")])
def test_texts_in_a_pipe_are_those_of_a_terminal(text: str) -> None:
    assert list(plain.lines(text)) == in_a_wide_window(text)
