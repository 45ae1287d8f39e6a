"""Metrics of one's own on a card: beside its numbers, and as scores of tests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aqmlab as package
import jsonschema
import pypdf
import pytest
from aqmlab import Run
from aqmlab.cards import evaluation, own_measures
from aqmlab.cards.baselines import is_current
from aqmlab.results import own_metrics, python_metrics
from conftest import ROOT, Answer, Cli

QUEUES = ("candidate", "droptail", "pie")
CODE = """
def longest(run):
    return {result}


longest.unit = "ms"
longest.reads = ["packets"]
"""
LONGEST = '1000 * max(run.packets.column("wait_ns").drop_null().to_pylist()) / 1e9'
HEAD = "test,measure,letter,unit,formula\n"
WAITED = "longest = max(packets.wait_s, where=packets.direction == 'forward') in us"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that the tests share."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def evaluate(aqmlab: Cli, store: Path) -> Any:
    """Makes a small card by the command line."""

    def call(*options: object, queue: str = "codel", tests: str = "a-base") -> Answer:
        own_metrics.forget()  # as a new process has it
        python_metrics.forget()
        return aqmlab(
            *("evaluate", queue, "--only", tests, "--seeds", "1..2", "--baseline", "pie"),
            *("--store", store, "--out", "card"),
            *options,
        )

    return call


def card() -> dict[str, Any]:
    """The card that was written."""
    found: dict[str, Any] = json.loads(Path("card/card.json").read_text())
    return found


def own(test: str = "a-base", measure: str = "longest") -> dict[str, float | None]:
    """The means of a metric of one's own."""
    [found] = [one for one in card()["own"] if (one["test"], one["measure"]) == (test, measure)]
    means: dict[str, float | None] = found["means"]
    return means


def by_queue(card: dict[str, Any], measure: str) -> dict[str, list[float]]:
    """The values of a measure in runs, by queue."""
    found: dict[str, list[float]] = {}
    columns = card["values"]
    for queue, name, value in zip(
        columns["queue"], columns["measure"], columns["value"], strict=True
    ):
        if name == measure:
            found.setdefault(queue, []).append(value)
    return found


def test_a_metric_stands_beside_the_numbers_of_the_card(evaluate: Any, store: Path) -> None:
    assert evaluate().status == 0
    plain = card()
    assert "own" not in plain
    Path("mine.py").write_text(CODE.format(result=LONGEST))
    answer = evaluate("--metrics", "mine.py")
    assert answer.status == 0, answer.err
    assert "6 runs to make, 2 of the candidate; 0 known already; about" in answer.err
    assert "packets.parquet: " in answer.err, "the size is said before the runs"
    mine = card()

    # A planted fault: were the metric ignored, or of other runs, no number would be equal.
    true: dict[str, list[float]] = {}
    for folder in store.glob("*/*"):
        run = Run.open(folder)
        if run.has("packets") and run.scenario["title"].startswith("a-base"):
            queue = run.scenario["topology"]["bottleneck"]["forward"]["discipline"]["kind"]
            true.setdefault(queue, []).append(run.metric("max(packets.wait_s)") or 0.0)
    names = dict(zip(("codel", "droptail", "pie"), QUEUES, strict=True))
    assert {names[kind]: pytest.approx(sum(of) / 2) for kind, of in true.items()} == own()
    assert len({*own().values()}) == 3
    shown = next(line for line in answer.out.splitlines() if line.startswith("longest ms"))
    assert shown.split()[2:] == ["a-base", *(f"{1000 * (own()[q] or 0):.3g}" for q in QUEUES)]
    assert max(map(len, answer.out.splitlines())) <= 80
    html = Path("card/card.html").read_text()
    assert re.search(r'<th scope="row">longest ms</th><td class="word">a-base</td><td>', html)

    left = {"own", "values"}
    assert {key: mine[key] for key in mine if key not in left} == {
        key: plain[key] for key in plain if key not in left
    }, "it changes nothing else on the card"
    rows = {key: list(mine["values"][key]) for key in mine["values"]}
    keep = [place for place, name in enumerate(rows["measure"]) if name != "longest"]
    assert {key: [of[place] for place in keep] for key, of in rows.items()} == plain["values"]


@pytest.mark.long
def test_a_number_of_the_summary_needs_no_packets(evaluate: Any) -> None:
    answer = evaluate("--metric", "worst = delay_p99.forward in ms", tests="a-base,a-cubic")
    assert answer.status == 0, answer.err
    assert "packets.parquet" not in answer.err
    gates = by_queue(card(), "wait p95")
    assert own("a-base", "worst").keys() == gates.keys()
    assert (own("a-base", "worst")["candidate"] or 0) > sum(gates["candidate"][:2]) / 2
    assert own("a-cubic", "worst") != own("a-base", "worst")


@pytest.mark.long
def test_a_file_of_measures_scores_tests(evaluate: Any) -> None:
    Path("mine.py").write_text(CODE.format(result=LONGEST))
    Path("own.csv").write_text(
        f'{HEAD}a-base,longest wait,D,ms,longest\na-base,mean,D,ms,"mean(packets.wait_s)"\n'
        "a-outage,none,D,ms,p95\n"
    )
    plain = evaluate()
    answer = evaluate("--metrics", "mine.py", "--measures", "own.csv")
    assert answer.status == plain.status == 0, answer.err
    [test] = [one for one in card()["tests"] if one["area"] == "own"]
    [area] = [one for one in card()["areas"] if one["name"] == "own"]
    assert [one["measure"] for one in test["measures"]] == ["longest wait", "mean"]
    assert area["score"] == pytest.approx(test["score"])
    assert area["grade"] != "?"
    waits = own()
    assert own(measure="longest wait") == waits
    assert test["measures"][0]["candidate"] == pytest.approx(waits["candidate"], rel=0.01)
    assert test["measures"][0]["score"] > 0.5, "CoDel's longest wait is far from drop-tail's"
    assert not [one for one in card()["own"] if one["test"] == "a-outage"]
    schema = json.loads((ROOT / "docs/card.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(card())
    again = package.Card.load("card/card.json")
    assert again.to_json() == card(), "a card needs no code to be read"

    Path("mine.py").write_text(CODE.format(result=f"200 - {LONGEST}"))
    assert evaluate("--metrics", "mine.py", "--measures", "own.csv").status == 0
    [other] = [one for one in card()["tests"] if one["area"] == "own"]
    assert other["score"] != test["score"], "another function is another score"


def test_what_was_not_measured_is_a_question_mark(evaluate: Any) -> None:
    code = "None if 'codel' in str(run.scenario['topology']) else 7"
    Path("mine.py").write_text(CODE.format(result=code))
    answer = evaluate("--metrics", "mine.py")
    assert answer.status == 0, answer.err
    assert own() == {"candidate": None, "droptail": 0.007, "pie": 0.007}
    shown = next(line for line in answer.out.splitlines() if line.startswith("longest ms"))
    assert shown.split() == ["longest", "ms", "a-base", "?", "7", "7"]
    gates = {one["name"]: one["passed"] for one in card()["gates"]}
    assert gates["answers"] is True, "a metric of one's own fails no gate"


def test_what_only_some_runs_have_is_no_mean(evaluate: Any) -> None:
    code = "None if run.seed == 1 else 7"
    Path("mine.py").write_text(CODE.format(result=code))
    assert evaluate("--metrics", "mine.py").status == 0
    assert {*own().values()} == {None}


def test_over_wifi_no_packets_are_recorded() -> None:
    """A test that cannot have the table shows a question mark; others go on."""
    jobs = evaluation.baseline_jobs("quick", ["w-home", "a-base"])
    own_metrics.define([own_metrics.option("late = share(packets.wait_s > 1) in %")])
    wanted = own_measures.asked(["w-home", "a-base"])
    found = {one.cell.row.id: one for one in own_measures.recorded(jobs, wanted)}
    assert "packets" not in found["w-home"].scenario.data["measure"]["record"]
    assert "packets" in found["a-base"].scenario.data["measure"]["record"]
    made = Run.in_memory({"measure": {"record": ["queue"]}}, {})
    assert own_measures.values(made, "w-home", wanted) == {}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("1 / 0", "longest: mine.py:3: ZeroDivisionError: division by zero (in "),
        ('float("nan")', "longest: mine.py:longest gives 'nan' of "),
        ("'fast'", "longest: mine.py:longest gives 'fast' of "),
        ("run.packets.column('wait_ns').to_numpy()", "longest: mine.py:longest gives '[0. "),
        ("__import__('numpy').array([1.0])", "longest: mine.py:longest gives '[1.]' of "),
        (
            "run.flow_trace.num_rows",
            "longest: mine.py:3: AttributeError: 'NoneType' object has no attribute 'num_rows'",
        ),
    ],
)
def test_what_a_function_may_not_give(result: str, message: str, evaluate: Any) -> None:
    Path("mine.py").write_text(CODE.format(result=result))
    answer = evaluate("--metrics", "mine.py")
    assert answer.status == 2
    [line] = [line for line in answer.err.splitlines() if not line.endswith("MB")]
    assert line.startswith(f"aqmlab: {message}"), answer.err
    assert not Path("card").exists()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def goodput(run):\n    return 1\n", "goodput: the name is taken by the metric"),
        ("def f(run):\n    return 1\nf.unit = 7\n", "m.py:f: unit: found 7; expected a text"),
        ("def f(run):\n    return 1\nf.unit = 'mss'\n", "m.py:f: "),
        (
            "def f(run):\n    return 1\nf.reads = 'queue'\n",
            "m.py:f: reads: found 'queue'; expected",
        ),
        (
            "def f(run):\n    return 1\nf.reads = ['que']\n",
            'm.py:f: reads: there is no table "que"',
        ),
    ],
)
def test_what_is_wrong_with_a_file_of_metrics(code: str, message: str, evaluate: Any) -> None:
    Path("m.py").write_text(code)
    answer = evaluate("--metrics", "m.py")
    assert answer.status == 2
    assert answer.err.startswith(f"aqmlab: --metrics: {message}"), answer.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '1: found the columns ""; expected test,measure,letter,unit,formula'),
        ("test,measure\n", '1: found the columns "test,measure"; expected test,'),
        (HEAD, " has no measure; expected a line for each test that is scored"),
        (f"{HEAD}a-bas,w,D,ms,longest\n", '2: test: found "a-bas"; expected a test of --list; did'),
        (f"{HEAD}a-base,wait p95,D,ms,longest\n", '2: measure: found "wait p95"; expected a name'),
        (f"{HEAD}a-base,longest,D,ms,longest\n", '2: measure: found "longest"; expected a name'),
        (f"{HEAD}a-base,gate:age,D,ms,longest\n", '2: measure: found "gate:age"; expected a name'),
        (f"{HEAD}a-base,w,H,ms,longest\n", '2: letter: found "H"; expected one of D, T, R, F, U,'),
        (f"{HEAD}a-base,w,D,us,longest\n", '2: unit: found "us"; expected ms or % with the letter'),
        (f"{HEAD}a-base,w,D,%,longest\n", '2: formula: found "longest"; '),
        (f"{HEAD}a-base,w,D,ms,longes\n", '2: formula: found "longes"; formula: longes: there is'),
        (f"{HEAD}a-base,w,D,ms,max(packets.wait_s, 1)\n", "2: found 6 columns; expected 5; a form"),
    ],
)
def test_what_is_wrong_with_a_file_of_measures(text: str, message: str, evaluate: Any) -> None:
    Path("own.csv").write_text(text)
    answer = evaluate("--metric", WAITED, "--measures", "own.csv")
    assert answer.status == 2
    assert answer.err.startswith(f"aqmlab: own.csv:{message}"), answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("other", ["--worst", "--list", "--suite=rfc7928", "--write=rows"])
def test_only_a_card_shows_metrics(other: str, evaluate: Any) -> None:
    answer = evaluate("--metric", WAITED, other)
    assert answer.status == 2
    name = other.partition("=")[0]
    expected = f"aqmlab: --metric: found it with {name}; only a card shows your metrics\n"
    assert answer.err == expected


def test_shipped_numbers_stay_and_stand_in_for_nothing_else() -> None:
    """Baselines have no metric of one's own: their runs of such tests are made."""
    assert is_current()
    jobs = [job for job in evaluation.baseline_jobs("quick", ["a-base"]) if job.queue == "pie"]
    own_metrics.define([own_metrics.option("late = share(packets.wait_s > 1) in %")])
    wanted = own_measures.asked(["a-base"])
    [first, *_] = own_measures.recorded(jobs, wanted)
    assert first.scenario.data["measure"]["record"] == ["queue", "packets"]
    assert own_measures.recorded(jobs, own_measures.asked(["a-cubic"])) == jobs


@pytest.mark.long
def test_a_card_of_a_control(aqmlab: Cli, store: Path) -> None:
    Path("own.csv").write_text(f"{HEAD}c-self,p99,D,ms,delay_p99.forward\n")
    answer = aqmlab(
        *("evaluate", "--control", "reno", "--only", "c-self", "--seeds", "1..2"),
        *("--store", store, "--out", "card", "--measures", "own.csv"),
    )
    assert answer.status == 0, answer.err
    assert own("c-self", "p99").keys() == {"candidate", "cubic", "bbr3"}
    [area] = [one for one in card()["areas"] if one["name"] == "own"]
    assert area["score"] is not None


@pytest.mark.long
def test_many_metrics_take_more_pages(evaluate: Any) -> None:
    """The PDF says what the web page says."""
    counts = []
    for many in (2, 120):
        names = [f"m{number}" for number in range(many)]
        options = [("--metric", f"{name} = delay.forward in ms") for name in names]
        answer = evaluate(*(text for option in options for text in option))
        assert answer.status == 0, answer.err
        sheets = pypdf.PdfReader("card/card.pdf").pages
        text = "\n".join(sheet.extract_text() for sheet in sheets)
        assert {*re.findall(r"\bm\d+(?= ms)", text)} == {*names}
        assert "m1 ms" in Path("card/card.html").read_text()
        counts.append(len(sheets))
    assert counts[0] < counts[1]
