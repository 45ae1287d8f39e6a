"""Papers: what they ask for, how cells are judged, and a whole small reproduction."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aqmlab.engine import parallel
from aqmlab.errors import AqmlabError
from aqmlab.papers import rule
from aqmlab.papers.paper import Paper, PaperColumn
from aqmlab.papers.plan import Plan
from aqmlab.papers.reproduce import reproduce
from aqmlab.papers.scoreboard import PaperCell, Scoreboard
from aqmlab.results import recorded
from aqmlab.results.terms import Term, Tolerance, total
from scipy.signal import find_peaks
from small_paper import executor, scoreboard, written

ROOT = Path(__file__).parents[1]


def christiansen() -> Paper:
    return Paper.load(str(ROOT / "papers" / "christiansen2000"))


PUBLISHED = {"B.1": 20, "B.2": 15, "B.3": 12, "B.4": 12, "3": 9, "5": 2, "2": 6}
"""Rows of the tables that the paper prints."""


def test_the_paper_has_its_published_rows() -> None:
    rows = {table.id: len(table.rows) for table in christiansen().tables}
    assert rows.items() >= PUBLISHED.items()


def test_seven_columns_of_the_fifo_table_are_scored() -> None:
    table = christiansen().table("B.1")
    scored = [column for column in table.columns if column.tolerance]
    assert len(scored) * len(table.rows) == 140
    assert "mean_queue_packets" not in {column.name for column in scored}


def test_labels_tell_the_rows_of_a_table_apart() -> None:
    for table in christiansen().tables:
        labels = [row.label for row in table.rows]
        assert len(set(labels)) == len(labels)


def test_rows_become_scenarios() -> None:
    paper = christiansen()
    plan = Plan(paper, [1, 2])
    plan.add_tables([table for table in paper.tables if table.id in PUBLISHED])
    # (30,90) with limit 480 stands in four tables, and Table 5 repeats two rows of B.2.
    assert len(plan.scenarios) == 2 * (20 + 15 + 9 + 9 + 6 + 6)
    one = plan.scenarios[plan.rows["B.2", "RED (30,90) at 98 %"][1]]
    assert one.seed == 2
    assert one.data["traffic"][0]["users"] == 3332
    red = one.data["topology"]["bottleneck"]["forward"]["discipline"]
    assert (red["kind"], red["gap"], red["max_p"], red["w_q"]) == ("red", "altq", 0.1, 1 / 512)
    assert (red["min_th"], red["max_th"]) == ("30 packets", "90 packets")
    assert one.data["measure"]["record"] == []
    plan.add_tables([paper.table("figures17-18"), paper.table("figure21")])
    same = [plan.rows[table, "RED (5,15) at 98 %"] for table in ("figures17-18", "figure21")]
    assert same[0] == same[1]
    assert plan.scenarios[same[0][0]].data["measure"]["record"] == ["responses", "flows"]


def test_throughput_is_ip_and_header_bytes_in_kilobytes() -> None:
    columns = {column.name: column for column in christiansen().table("B.1").columns}
    forward = {"throughput_bps": 8_192_000.0, "departed_packets": 1024_000, "loss_rate": 0.031}
    summary = {
        "measured_s": 1000.0,
        "links": {"bottleneck": {"forward": forward}},
        "responses": {"all": {"le_1s": 0.812, "le_2s": 0.887}},
    }
    # 8,192,000 bit/s are 1000 KB/s; 1024 packets a second with 14 bytes each are 14 KB/s.
    assert total(columns["throughput_kbytes_per_s"].terms, summary) == pytest.approx(1014)
    assert total(columns["loss_rate_pct"].terms, summary) == pytest.approx(3.1)
    assert total(columns["pct_1_to_2s"].terms, summary) == pytest.approx(7.5)


def test_a_key_that_a_summary_lacks_is_named() -> None:
    with pytest.raises(AqmlabError, match=r"no key responses\.all\.p50_s"):
        Term("responses.all.p50_s").value({"responses": {"all": {}}})


@pytest.mark.parametrize(
    ("tolerance", "ours", "published", "admitted"),
    [
        (Tolerance(relative=0.035), 1035.0, 1000.0, True),
        (Tolerance(relative=0.035), 1036.0, 1000.0, False),
        (Tolerance(relative=0.35, absolute=1.0), 1.1, 0.2, True),
        (Tolerance(relative=0.35, absolute=1.0), 13.0, 10.0, True),
        (Tolerance(relative=0.35, absolute=1.0), 14.0, 10.0, False),
        (Tolerance(absolute=6.0), 0.3, 6.3, True),
        (Tolerance(absolute=6.0), 0.2, 6.3, False),
        (Tolerance(relative=0.5), 0.1, 0.0, False),
    ],
)
def test_tolerances(tolerance: Tolerance, ours: float, published: float, admitted: bool) -> None:
    assert tolerance.admits(ours, published) is admitted


LOSS = PaperColumn("loss", "loss (%)", tolerance=Tolerance(relative=0.35, absolute=1.0))
QUEUE = PaperColumn("queue", "queue")


def test_a_cell_is_judged_by_its_mean() -> None:
    cell = PaperCell("B.1", "row", LOSS, "6.70", ours=(9.0, 9.2))
    assert cell.mean == pytest.approx(9.1)
    assert cell.spread == pytest.approx(0.2)
    assert cell.difference == pytest.approx(2.4)
    assert cell.relative == pytest.approx(2.4 / 6.7)
    assert not cell.within
    assert cell.formatted(cell.mean) == "9.10"


def test_scores_count_scored_cells_only() -> None:
    cells = [
        PaperCell("a", "one", LOSS, "2", ours=(2.5,)),
        PaperCell("a", "two", LOSS, "2", ours=(4.0,)),
        PaperCell("a", "three", LOSS, "2"),
        PaperCell("a", "one", QUEUE, "10", ours=(99.0,)),
    ]
    board = Scoreboard({"a": "Table A"}, scored=True, cells=cells)
    assert board.to_json()["cells"] == {"within": 1, "by_value": 1, "total": 3}
    columns = board.to_json()["tables"]["a"]["columns"]
    assert columns == {"loss": {"within": 1, "by_value": 1, "total": 3}}
    verdicts = [row["verdict"] for row in csv.DictReader(board.to_csv().splitlines())]
    assert verdicts == ["within", "outside", "missing", "not scored"]
    assert "| two | 4 / 2 ✗ |" in board.to_markdown()
    assert "1 of 3" in board.to_markdown()


def test_quick_boards_judge_nothing() -> None:
    board = Scoreboard(
        {"a": "A"}, scored=False, cells=[PaperCell("a", "one", LOSS, "2", ours=(9.0,))]
    )
    assert board.to_json()["cells"] == {"within": None, "by_value": None, "total": 1}
    assert "not scored" in board.to_csv()
    assert "✗" not in board.to_markdown()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return written(tmp_path / "small")


def test_a_reproduction_scores_and_writes(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Seeds 1 and 2 miss by -0.01 and +0.01: their mean is right for 20 users and off for 40.
    engine = executor(lambda users, seed: users / 200 + 0.02 * seed - 0.03)
    monkeypatch.setattr(parallel, "execute_all", engine)
    result = scoreboard(small, out=tmp_path / "out")
    assert result["cells"] == {"within": 2, "by_value": 2, "total": 3}
    assert result["tables"]["1"] == {
        "title": "Table 1",
        "within": 1,
        "by_value": 1,
        "total": 2,
        "columns": {"median": {"within": 1, "by_value": 1, "total": 2}},
    }
    assert (result["scored"], result["seeds"], result["runs"]) == (True, [1, 2], 6)
    assert [found["verdict"] for found in result["claims"]["verdicts"]] == ["holds"]
    rows = list(csv.DictReader(Path(result["files"]["cells"]).read_text().splitlines()))
    # Of 30 users the paper gives no median. 40 x 30 - 200 = 1000 responses.
    assert [(row["row"], row["ours"], row["verdict"]) for row in rows] == [
        ("10 users", "0.1", "within"),
        ("20 users", "0.2", "outside"),
        ("at 1000", "30", "within"),
    ]
    assert rows[0]["spread"] == "0.02"
    written = json.loads(Path(result["files"]["scoreboard"]).read_text())
    assert {**written, "files": result["files"]} == result
    assert "| 20 users | 0.2 / 0.3 ✗ |" in Path(result["files"]["report"]).read_text()


def test_a_failed_run_counts_as_outside(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = executor(lambda users, _: None if users == 40 else users / 200)
    monkeypatch.setattr(parallel, "execute_all", engine)
    result = scoreboard(small, out=tmp_path / "out")
    assert result["cells"] == {"within": 1, "by_value": 1, "total": 3}
    assert list(result["failed"].values()) == ["it broke", "it broke"]
    [found] = result["claims"]["verdicts"]
    assert (found["verdict"], found["because"]) == ("undecided", "a run is missing")
    assert "missing" in Path(result["files"]["cells"]).read_text()


def test_a_fit_runs_the_table_that_it_needs(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = executor(lambda users, _: users / 200)
    monkeypatch.setattr(parallel, "execute_all", engine)
    result = scoreboard(small, ["LINE"], out=tmp_path / "out", seeds=[7])
    assert list(result["tables"]) == ["line"]
    assert result["runs"] == 3


def test_the_engine_runs_and_runs_are_used_again(small: Path, tmp_path: Path) -> None:
    first = scoreboard(small, ["1"], quick=True, out=tmp_path / "out")
    assert (first["scored"], first["failed"], first["seeds"]) == (False, {}, [1])
    runs = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").iterdir()}
    assert len(runs) == 3
    again = scoreboard(small, quick=True, out=tmp_path / "out")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").iterdir()} == runs
    assert again["tables"]["1"] == first["tables"]["1"]
    assert again["claims"]["verdicts"][0]["because"] == "quick runs decide orderings only"


def test_only_what_is_finished_is_shown(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert scoreboard(small, out=out, finished_only=True)["runs"] == 0
    whole = scoreboard(small, ["1"], out=out, seeds=[1])
    gone = next((out / "runs").iterdir())
    shutil.rmtree(gone)
    part = scoreboard(small, ["1"], out=out, seeds=[1], finished_only=True)
    assert (part["runs"], part["failed"]) == (whole["runs"] - 1, {})
    assert (whole["rows"], part["rows"]) == ({"run": 3, "total": 3}, {"run": 2, "total": 3})
    assert "2 of 3 rows have been run" in (out / "report.md").read_text()
    line = scoreboard(small, ["line"], out=out, seeds=[1], finished_only=True)
    assert line["cells"]["total"] == 0
    assert not gone.exists()


def test_unknown_papers_and_tables_are_named(small: Path) -> None:
    with pytest.raises(AqmlabError, match=r"no paper nobody1999; known papers: .*christiansen2000"):
        reproduce("nobody1999")
    with pytest.raises(AqmlabError, match=r"small has no table or figure B\.9; it has 1, line"):
        scoreboard(small, ["B.9"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("paper =", "paper", "tables.toml: "),
        ("compare = ", "compared = ", "'compare'"),
        ("factor = 2", "times = 2", "'factor'"),
        ("relative = 0.1", "relatively = 0.1", "relatively"),
    ],
)
def test_a_broken_paper_is_one_sentence(small: Path, old: str, new: str, message: str) -> None:
    text = (small / "tables.toml").read_text()
    (small / "tables.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(AqmlabError, match=message):
        scoreboard(small)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'rule = "few.median < more.median - 0.05"',
            'signature = ["S"]',
            "found none; expected one of rule, undecided and elsewhere",
        ),
        ("rule = ", 'undecided = "x"\nrule = ', "found rule and undecided; expected one of"),
        ("rule = ", 'elsewhere = "holds"\nrule = ', "found rule and elsewhere"),
        ("rule = ", 'because = "x"\nrule = ', "expected holds or fails, and because"),
        (
            'rule = "few.median < more.median - 0.05"',
            'elsewhere = "true"\nbecause = "x"',
            "expected holds or fails, and because",
        ),
        ("few.median < more", "few.median < $more", "rule or each: KeyError"),
        ("few.median < more", "few.median << more", "rule .* holds"),
        ('["1", "20 users"]', '["1", "?0 users"]', "rule .*more.median.* answers row by row"),
        ('own_tables = "agrees"', "", "found no own_tables"),
    ],
)
def test_a_broken_claim_is_one_sentence(small: Path, old: str, new: str, message: str) -> None:
    text = (small / "claims.toml").read_text()
    (small / "claims.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(AqmlabError, match=rf"claims\.toml: S: .*{message}"):
        scoreboard(small)


def test_signatures_are_refused(small: Path) -> None:
    (small / "signatures.toml").write_text("")
    expected = r"signatures\.toml: found signatures; expected rules in claims\.toml"
    with pytest.raises(AqmlabError, match=expected):
        scoreboard(small)


SIZES = np.arange(1921, 3841)
AROUND = ("1921-2400", "2401-2880", "2881-3360", "3361-3840")


def exchanges(times: np.ndarray, *, retransmitted: bool = False) -> Any:
    """What response times of rising sizes give; the sizes begin anew after their end."""
    flow = np.arange(len(times))
    again = np.full(len(times), int(retransmitted))
    flows = {"flow": flow, "retransmitted_syn": again}
    flows |= {f"retransmitted_{kind}": np.zeros_like(again) for kind in ("fin", "data")}
    sizes = 2880 - flow % 900 if retransmitted else SIZES
    table = {"flow": flow, "response_s": times, "response_bytes": sizes}
    return recorded.exchanges(pa.table(table), pa.table(flows))


def steps(times: np.ndarray) -> bool:
    """Whether the medians around 2,880 bytes step up by 40 ms."""
    medians = [exchanges(times)["p50_s"][span] for span in AROUND]
    return bool(rule.FUNCTIONS["step"](0.04, *medians))


def test_a_step_is_found() -> None:
    times = np.where(SIZES > 2880, 0.18, 0.1)
    assert steps(times)
    assert [exchanges(times)["p50_s"][span] for span in AROUND[1:3]] == [0.1, 0.18]
    assert exchanges(times)["p50_s"]["1-100"] is None


@pytest.mark.parametrize(
    "times",
    [
        np.full(len(SIZES), 0.1),
        np.where(SIZES > 3360, 0.18, 0.1),
        0.1 + (SIZES - 1920) / 480 * 0.05,
    ],
    ids=["flat", "elsewhere", "slope"],
)
def test_no_step_is_no_step(times: np.ndarray) -> None:
    assert not steps(times)


@pytest.mark.parametrize(
    ("times", "middles", "off"),
    [
        ([1.5, 2.5, 3.0], [1.55, 2.55, 3.05], 0.0),
        ([1.5, 2.5, 3.2], [1.55, 2.55, 3.25], 0.2),
        ([1.5, 2.5], [1.55, 2.55], 0.0),
        ([1.5], [1.55], None),
    ],
)
def test_bands_are_separate_peaks(
    times: list[float], middles: list[float], off: float | None
) -> None:
    random = np.random.default_rng(1)
    banded = random.choice(times, 1900) + random.normal(0.05, 0.06, 1900)
    assert recorded.bands(banded) == pytest.approx(middles)
    found = exchanges(banded, retransmitted=True)["bands"]
    assert found["count"] == len(middles)
    assert found["off_timer_s"] == (None if off is None else pytest.approx(off))
    assert exchanges(banded[: len(SIZES)].repeat(2)[: len(SIZES)])["bands"]["count"] == 0


@pytest.mark.parametrize("seed", range(20))
def test_peaks_are_those_of_scipy(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(50):
        counts = random.integers(0, random.integers(2, 9), random.integers(1, 60))
        places, found = find_peaks(counts, prominence=0)
        ours = list(recorded._peaks(counts))
        assert ours == list(zip(places, found["prominences"], strict=True))


def test_even_times_have_no_bands() -> None:
    even = np.random.default_rng(1).uniform(1, 6, 1900)
    assert exchanges(even, retransmitted=True)["bands"]["count"] == 0


def test_a_figure_without_a_quick_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AqmlabError, match="4-pi-90: quick runs leave out all of its rows"):
        scoreboard(Path("le2005"), ["4-pi-90"], quick=True, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
