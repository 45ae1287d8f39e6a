"""Metrics of one's own in the tables and the claims of a paper."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from aqmlab import Run
from aqmlab.papers.reproduce import reproduce
from aqmlab.results import own_metrics, python_metrics
from aqmlab.results.term_names import numbers, read
from conftest import Cli
from small_paper import CLAIMS, SMALL, written

CODE = """
def longest(run):
    return {result}
"""
LONGEST = 'max(run.packets.column("wait_ns").drop_null().to_pylist()) / 1e9'
CLAIM = """
[[claims]]
id = "L"
type = "ordering"
text = "more users see a longer longest wait"
own_tables = "not_tabulated"
rule = "few.longest < more.longest"
"""
COLUMN = """[columns.longest]
title = "longest wait (ms)"
terms = [{ key = "longest", factor = 1000 }]
[columns.users]"""
PACKETS = """"measure.record" = '["packets"]'"""


def forget() -> None:
    """As a new process has it."""
    own_metrics.forget()
    python_metrics.forget()


def tables(folder: Path, text: str = SMALL, metrics: str = "") -> None:
    """Writes the paper's tables with a metric as a column."""
    text = text.replace("[columns.users]", COLUMN, 1)
    text = text.replace('compare = ["median"]', 'compare = ["median", "longest"]')
    (folder / "tables.toml").write_text(text + metrics)


@pytest.fixture
def paper(elsewhere: Path) -> Path:
    """A paper one of whose claims is about the longest wait, which aqmlab does not have."""
    folder = written(elsewhere / "mine")
    tables(folder, SMALL.replace('"measure.record" = "[]"', PACKETS))
    (folder / "claims.toml").write_text(CLAIMS + CLAIM)
    (elsewhere / "mine.py").write_text(CODE.format(result=LONGEST))
    return folder


def cells(column: str) -> dict[str, float]:
    """Ours in the cells of a column, by row."""
    with Path("out/reproduce/mine/cells.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["column"] == column]
    return {row["row"]: float(row["ours"]) for row in rows if row["ours"]}


def waits() -> dict[int, list[float]]:
    """The longest waits of the runs in ms, by users, read from their packets."""
    found: dict[int, list[float]] = {}
    for folder in Path("out/reproduce/mine/runs").iterdir():
        run = Run.open(folder)
        users = int(run.scenario["traffic"][0]["users"])
        found.setdefault(users, []).append(1000 * (run.metric("max(packets.wait_s)") or 0.0))
    return found


def test_a_claim_names_a_metric_in_python(paper: Path, aqmlab: Cli) -> None:
    answer = aqmlab("reproduce", paper, "--metrics", "mine.py")
    assert answer.status == 0, answer.err
    board = json.loads(Path("out/reproduce/mine/scoreboard.json").read_text())
    verdicts = {one["id"]: one for one in board["claims"]["verdicts"]}
    true = waits()
    ours = cells("longest")
    assert ours == {
        f"{users // 2} users": pytest.approx(sum(values) / 2) for users, values in true.items()
    }, "a metric that is ignored, or one run's for all, would be another number"
    assert len({*ours.values()}) == 3
    grows = sum(true[20]) < sum(true[40])
    assert verdicts["L"]["verdict"] == ("holds" if grows else "fails")
    assert "few.longest" in verdicts["L"]["because"]


def test_another_text_is_another_number(paper: Path, aqmlab: Cli) -> None:
    """`measured.json` stands in for runs: never for those of another definition."""
    assert aqmlab("reproduce", paper, "--metrics", "mine.py").status == 0
    first = cells("longest")
    measured = Path("out/reproduce/mine/measured.json").read_text()
    (paper / "measured.json").write_text(measured)
    forget()
    again = ("reproduce", paper, "--metrics", "mine.py", "--measured", "--finished")
    answer = aqmlab(*again, "--out", "out/other")
    assert "6 of 6 runs" in answer.out, answer.err
    forget()
    Path("mine.py").write_text(CODE.format(result=f"2 * {LONGEST}"))
    answer = aqmlab(*again, "--out", "out/third")
    assert "of 0 runs" in answer.out, answer.out + answer.err
    forget()
    assert aqmlab("reproduce", paper, "--metrics", "mine.py").status == 0
    after = cells("longest")  # with six digits
    assert after == {row: pytest.approx(2 * value, rel=1e-4) for row, value in first.items()}


@pytest.mark.parametrize(
    "entry",
    [
        "longest = 'max(packets.wait_s)'",
        'longest = { python = "mine.py:longest", unit = "s", reads = ["packets"] }',
    ],
)
def test_the_tables_define_it(entry: str, paper: Path, aqmlab: Cli) -> None:
    text = SMALL.replace('"measure.record" = "[]"', PACKETS)
    tables(paper, text, f"[metrics]\n{entry}\n")
    options = ("--metrics", "mine.py") if "python" in entry else ()
    answer = aqmlab("reproduce", paper, *options)
    assert answer.status == 0, answer.err
    assert cells("longest") == {
        f"{users // 2} users": pytest.approx(sum(values) / 2) for users, values in waits().items()
    }


def test_an_option_defines_it(paper: Path, aqmlab: Cli) -> None:
    answer = aqmlab("reproduce", paper, "--metric", "longest = max(packets.wait_s)")
    assert answer.status == 0, answer.err
    assert len(cells("longest")) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            (),
            'mine/tables.toml: columns.longest: there is no metric "longest" (one of your own ',
        ),
        (
            ("--metric", "longes = max(packets.wait_s)"),
            'mine/tables.toml: columns.longest: there is no metric "longest"; did you mean "long',
        ),
        (("--metrics", "none.py"), "--metrics: none.py: cannot be read: No such file"),
        (("--metric", "p95 = max(packets.wait_s)"), "--metric: p95: the name is taken by"),
    ],
)
def test_a_metric_that_is_not_there(
    options: tuple[str, ...], message: str, paper: Path, aqmlab: Cli
) -> None:
    answer = aqmlab("reproduce", paper.name, *options)
    assert answer.status == 2
    assert answer.err.startswith(f"aqmlab: {message}"), answer.err
    assert not Path("out").exists(), "nothing ran"


def test_a_table_of_packets_that_is_not_recorded(paper: Path, aqmlab: Cli) -> None:
    tables(paper)
    answer = aqmlab("reproduce", paper.name, "--metric", "longest = max(packets.wait_s)")
    assert answer.status == 2
    assert answer.err == (
        "aqmlab: mine/tables.toml: longest reads packets.parquet, which the runs do not record; "
        'expected "measure.record" = \'["packets"]\' in [common] or in set of the table\n'
    )
    assert not Path("out").exists(), "nothing ran"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("1 / 0", "longest: mine.py:3: ZeroDivisionError: division by zero (in out/reproduce/"),
        ('float("nan")', "longest: mine.py:longest gives 'nan' of out/reproduce/"),
        ("'fast'", "longest: mine.py:longest gives 'fast' of out/reproduce/"),
        ("None", "the summary's metrics.longest is empty: nothing was measured"),
    ],
)
def test_what_a_function_may_not_give(result: str, message: str, paper: Path, aqmlab: Cli) -> None:
    Path("mine.py").write_text(CODE.format(result=result))
    answer = aqmlab("reproduce", paper, "1", "--metrics", "mine.py")
    assert answer.status == 2
    assert answer.err.startswith(f"aqmlab: {message}"), answer.err
    assert answer.err.count("\n") == 1


def test_what_was_not_measured_counts_as_empty_says(paper: Path) -> None:
    """A planted fault: what the function gives reaches the cell, whatever it is."""
    text = (paper / "tables.toml").read_text()
    (paper / "tables.toml").write_text(text.replace("factor = 1000", "factor = 1000, empty = 7"))
    Path("mine.py").write_text(CODE.format(result="None"))
    own_metrics.load(Path("mine.py"))
    board = reproduce(str(paper), ["1"]).board
    assert {cell.mean for cell in board.cells if cell.column.name == "longest"} == {7000.0}


def test_names_of_terms() -> None:
    """A short name is its key; an unknown last part of a key is an error of the summary."""
    assert read({"key": "p95"}).key == "responses.all.p95_s"
    assert read({"key": "recorded.all.mean_bytes"}).key == "recorded.all.mean_bytes"
    assert read({"key": "p95", "per": "measured_s"}).per == "measured_s"
    made = Run.in_memory({}, {"responses": {"all": {"p95_s": 0.5}}})
    own_metrics.define([own_metrics.option("half = p95 / 2")])
    assert read({"key": "metrics.half"}).value(numbers(made)) == 0.25
    assert read({"key": "half", "per": "p95"}).value(numbers(made)) == 0.5
