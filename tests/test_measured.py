"""What the tables took from runs, kept in a file that stands in for them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aqmlab import _native
from aqmlab.engine import parallel
from aqmlab.errors import AqmlabError
from aqmlab.papers import fidelity
from aqmlab.papers.measured import FILE, Asked, Measurements, merged, read, sealed, to_text
from aqmlab.papers.paper import Paper
from aqmlab.papers.reproduce import reproduce
from aqmlab.papers.reproduction import Reproduction, Reused
from aqmlab.results.terms import Rank, Term
from conftest import ROOT
from small_paper import SMALL, scoreboard, written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aqmlab.scenario.scenario import Scenario
    from conftest import Cli

RANKED = """
[[figures]]
id = "times"
title = "Ten and twenty users"
limit_s = 2.0
rows = [["1", "10 users"], ["1", "20 users"]]
"""


@dataclass(frozen=True)
class Repeated:
    """A paper that was repeated, and its file."""

    paper: Path
    out: Path
    result: dict[str, Any]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Repeated:
    """By the engine, with ranks, two seeds, a figure and a fit; the paper has no file yet."""
    place = tmp_path_factory.mktemp("measured")
    paper = written(place / "small")
    ranked = SMALL.replace("relative = 0.1 }", "relative = 0.1, rank = 6.0 }", 1)
    (paper / "tables.toml").write_text(ranked)
    (paper / "figures.toml").write_text(RANKED)
    return Repeated(paper, place / "out", scoreboard(paper, out=place / "out"))


@pytest.fixture
def shipped(once: Repeated, tmp_path: Path) -> Path:
    """A copy of the paper with its file."""
    paper = tmp_path / once.paper.name
    shutil.copytree(once.paper, paper)
    shutil.copy(once.out / FILE, paper)
    return paper


@pytest.fixture
def run_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs that the engine is asked for."""
    asked: list[str] = []
    engine = parallel.execute_all

    def noted(scenarios: Sequence[tuple[str, Scenario]], *more: Any) -> Any:
        asked.extend(name for name, _ in scenarios)
        return engine(scenarios, *more)

    monkeypatch.setattr(parallel, "execute_all", noted)
    return asked


def lines(paper: Path) -> dict[str, Any]:
    """The runs of a file."""
    found: dict[str, Any] = json.loads((paper / FILE).read_text())["runs"]
    return found


def edited(paper: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes what the file of a paper holds."""
    content = json.loads((paper / FILE).read_text())
    change(content)
    version, _ = content.pop("format"), content.pop("sha256")
    text = sealed(json.dumps(content)[1:])
    (paper / FILE).write_text(text.replace('"format": 3', f'"format": {version}', 1))


MEDIAN = Asked((Term("responses.all.p50_s"),), "0.30", 6.0)
COUNT = Asked((Term("responses.all.count"),))


def test_cpu_seconds_are_beside_the_hash() -> None:
    """Runs that are made again give the same hash; every other digit counts."""
    hashes = [
        json.loads(sealed(f'"cpu_s":{cpu_s},"n":{n}}}'))["sha256"]
        for cpu_s, n in ((1.5, 1), (2e-05, 1), (1.5, 2))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def small(folder: Path) -> Paper:
    return Paper.load(str(written(folder)))


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    numbers = {MEDIAN.terms: 0.1 + 0.2, COUNT.terms: 1e22}
    finer = MEDIAN._replace(points=4.0)
    earlier = MEDIAN._replace(published="0.1")
    ranks = {MEDIAN: Rank(100 / 3, 1e-7), finer: None, earlier: Rank(0.0, 2.0)}
    paper, engine = small(tmp_path / "small"), _native.engine()
    runs = {
        "b-s1": Measurements(engine, 144.179, numbers, ranks),
        "a-s2": Measurements(engine, 0.25, {COUNT.terms: 1.0}, {}),
    }
    text = to_text(paper, runs)
    (tmp_path / FILE).write_text(text)
    assert read(tmp_path / FILE, paper) == runs
    assert to_text(paper, dict(reversed(runs.items()))) == text
    assert [line.partition(":")[0] for line in text.splitlines() if "-s" in line] == [
        '"a-s2"',
        '"b-s1"',
    ]
    assert '"median":[["0.1",6.0,[0.0,2.0]],["0.30",4.0,null],["0.30",6.0,[33.3' in text
    assert read(tmp_path / "none.json", paper) == {}


def test_names_tell_columns_of_one_name_apart() -> None:
    paper = Paper.load("le2005")
    quantities = json.loads(to_text(paper, {}))["quantities"]
    assert quantities["p50_s"] == [{"key": "responses.all.p50_s"}]
    assert quantities["p50_s_2"] == [{"key": "flows.all.duration_p50_s"}]
    keys = [json.dumps(terms) for terms in quantities.values()]
    assert len(set(keys)) == len(keys)


def test_both_files_are_merged_but_not_of_another_engine() -> None:
    engine = _native.engine()
    old = {
        "a": Measurements(engine, 1.0, {COUNT.terms: 1.0}, {}),
        "b": Measurements(engine, 1.0, {COUNT.terms: 2.0}, {}),
        "c": Measurements("another", 1.0, {COUNT.terms: 3.0}, {}),
    }
    new = {"b": Measurements(engine, 4.0, {MEDIAN.terms: 5.0}, {MEDIAN: None})}
    found = merged(old, new)
    assert sorted(found) == ["a", "b"]
    assert found["b"] == Measurements(
        engine, 4.0, {COUNT.terms: 2.0, MEDIAN.terms: 5.0}, {MEDIAN: None}
    )


JUDGED = ("cells", "tables", "power", "claims", "readings", "rows", "runs", "length")


def test_the_file_stands_in_for_the_runs(
    once: Repeated, shipped: Path, run_names: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "elsewhere"
    result = scoreboard(shipped, out=out, finished_only=True, measured=True)
    assert run_names == []
    assert not (out / "runs").exists()
    first = once.result
    assert first["rows"] == {"run": 3, "total": 3}
    assert first["cells"]["total"] == 3
    assert {key: result[key] for key in JUDGED} == {key: first[key] for key in JUDGED}
    assert (out / "cells.csv").read_bytes() == (once.out / "cells.csv").read_bytes()
    assert (out / FILE).read_bytes() == (once.out / FILE).read_bytes()
    assert result["cpu_s"] == pytest.approx(first["cpu_s"])
    assert "measured" not in first
    assert result["measured"] == {"runs": 6, "figures_lacking": ["times"]}
    assert (list(first["figures"]), result["figures"]) == (["times"], {})
    page = (out / "report.md").read_text()
    assert "6 runs. 6 of them were taken from the paper's `measured.json`." in page
    assert "missing in 1 figures" in page


def test_ranks_are_kept(once: Repeated) -> None:
    """Else the test above says nothing of them."""
    ranks = [line["ranks"]["median"] for line in lines(once.out).values() if "ranks" in line]
    assert len(ranks) == 4
    assert all(points == 6.0 and 0 <= at <= 100 for [[_, points, [at, _]]] in ranks)


def test_only_what_the_file_lacks_is_run(
    once: Repeated, shipped: Path, run_names: list[str], tmp_path: Path
) -> None:
    gone = sorted(lines(shipped))[2]
    edited(shipped, lambda content: content["runs"].pop(gone))
    result = scoreboard(shipped, out=tmp_path / "out", measured=True)
    assert run_names == [gone]
    assert (result["measured"]["runs"], result["runs"]) == (5, 6)
    runs = lines(tmp_path / "out")
    again, before = runs.pop(gone), lines(once.out)
    assert runs == {name: line for name, line in before.items() if name != gone}
    assert {**again, "cpu_s": 0} == {**before[gone], "cpu_s": 0}
    assert result["cells"] == once.result["cells"]


def test_runs_on_disk_come_first(once: Repeated, shipped: Path, run_names: list[str]) -> None:
    """The whole of them is there, for figures too."""
    result = scoreboard(shipped, out=once.out, finished_only=True, measured=True)
    assert len(run_names) == 6
    assert result["measured"] == {"runs": 0, "figures_lacking": []}
    assert list(result["figures"]) == ["times"]


def test_a_figure_that_is_named_has_its_runs(
    shipped: Path, run_names: list[str], tmp_path: Path
) -> None:
    result = scoreboard(shipped, ["1", "Times"], out=tmp_path / "out", measured=True)
    assert len(run_names) == 4
    assert result["measured"] == {"runs": 2, "figures_lacking": []}
    assert list(result["figures"]) == ["times"]
    nothing = scoreboard(
        shipped, ["times"], out=tmp_path / "none", finished_only=True, measured=True
    )
    assert (nothing["runs"], nothing["figures"]) == (0, {})


def test_numbers_of_single_connections_are_kept(
    shipped: Path, run_names: list[str], tmp_path: Path
) -> None:
    text = (shipped / "tables.toml").read_text().partition("[[fits]]")[0]
    term = "recorded.all.exchanges.p50_s.1-10000000"
    text = text.replace("responses.all.p50_s", term).replace(", rank = 6.0", "")
    text = text.replace('= "[]"', """= '["responses", "flows"]'""")
    (shipped / "tables.toml").write_text(text)
    first = scoreboard(shipped, ["1"], out=tmp_path / "first", measured=True)
    assert (len(run_names), first["rows"]["run"]) == (6, 3)
    shutil.copy(tmp_path / "first" / FILE, shipped)
    again = scoreboard(shipped, ["1"], out=tmp_path / "again", finished_only=True, measured=True)
    assert (len(run_names), again["measured"]["runs"]) == (6, 6)
    assert again["tables"] == first["tables"]
    cells = [(tmp_path / out / "cells.csv").read_text() for out in ("first", "again")]
    assert cells[0] == cells[1]
    assert ",median,0.1,0." in cells[0]


def count_of_taken(paper: Path, out: Path) -> int:
    result = scoreboard(paper, out=out, finished_only=True, measured=True)
    return int(result["measured"]["runs"])


def test_numbers_of_another_engine_do_not_count(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = sorted(lines(shipped))[0]
    edited(shipped, lambda content: content["runs"][name].update(engine="another"))
    part = scoreboard(shipped, out=tmp_path / "out", finished_only=True, measured=True)
    # The other seed of its row has nothing to be averaged with.
    assert (part["measured"]["runs"], part["rows"]["run"]) == (4, 2)
    assert name not in lines(tmp_path / "out")
    monkeypatch.setattr(_native, "engine", lambda: "another")
    assert count_of_taken(shipped, tmp_path / "out") == 0


# Of 30 users no median is published, so their two runs are asked for the fit only.
@pytest.mark.parametrize(
    ("old", "new", "taken"),
    [
        ("relative = 0.1, rank", "relative = 0.3, rank", 6),
        ('title = "median (s)"', 'title = "the median"', 6),
        ("rank = 6.0", "rank = 4.0", 2),
        ("responses.all.p50_s", "responses.all.p90_s", 2),
        ('"responses.all.count" }', '"responses.all.count", factor = 2.0 }', 0),
        ('"2 s"\n[columns', '"3 s"\n[columns', 6),
        ('"measure.record" = "[]"', '"measure.duration" = "11 s"', 0),
    ],
    ids=["tolerance", "title", "rank", "column", "fit", "quick", "scenario"],
)
def test_a_number_counts_for_its_quantity(
    shipped: Path, tmp_path: Path, old: str, new: str, taken: int
) -> None:
    text = (shipped / "tables.toml").read_text()
    assert old in text
    (shipped / "tables.toml").write_text(text.replace(old, new, 1))
    assert count_of_taken(shipped, tmp_path / "out") == taken


def test_quick_runs_are_others(shipped: Path, tmp_path: Path) -> None:
    result = scoreboard(
        shipped, out=tmp_path / "out", quick=True, finished_only=True, measured=True
    )
    assert (result["runs"], result["measured"]["runs"]) == (0, 0)


def test_a_user_repeats_the_experiment(shipped: Path, run_names: list[str], tmp_path: Path) -> None:
    (shipped / FILE).write_text("not looked at")
    result = scoreboard(shipped, ["1"], out=tmp_path / "out", seeds=[1])
    assert (len(run_names), result["runs"]) == (3, 3)
    assert "measured.json" not in (tmp_path / "out" / "report.md").read_text()


def corrupted(place: str, value: object) -> Callable[[dict[str, Any]], None]:
    """A change of what the first run, or the head, of a file says."""

    def change(content: dict[str, Any]) -> None:
        first = content["runs"][sorted(content["runs"])[0]]
        part = content if place in content else first
        part[place] = value

    return change


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("format", 4, "is of format 4; this aqmlab reads format 3"),
        ("paper", "le2005", "holds what runs of le2005 gave, not of small"),
        ("runs", [], "is damaged: "),
        ("quantities", {}, "is damaged: KeyError"),
        ("numbers", {"median": "0.3"}, "is damaged: found '0.3' where a number stands"),
        ("ranks", {"median": [["0.3", 6.0, [1.0]]]}, "is damaged: "),
        ("engine", 7, "is damaged: found 7 where a text stands"),
    ],
)
def test_a_wrong_file_is_one_sentence(
    shipped: Path, aqmlab: Cli, place: str, value: object, message: str
) -> None:
    edited(shipped, corrupted(place, value))
    answer = aqmlab("reproduce", shipped, "--finished", "--measured")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"aqmlab: {shipped / FILE}: {message}")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 3}', "[" * 100_000])
def test_a_damaged_file_is_one_sentence(shipped: Path, text: str) -> None:
    (shipped / FILE).write_text(text)
    with pytest.raises(AqmlabError, match=r"measured\.json: is damaged: "):
        scoreboard(shipped, finished_only=True, measured=True)


def test_a_changed_digit_is_noticed(shipped: Path) -> None:
    text = (shipped / FILE).read_text()
    place = next(place for place in range(len(text) // 2, len(text)) if text[place] in "1234")
    (shipped / FILE).write_text(f"{text[:place]}5{text[place + 1 :]}")
    with pytest.raises(AqmlabError, match=r"measured\.json: is damaged: it was changed after"):
        scoreboard(shipped, finished_only=True, measured=True)


def test_the_command_says_what_was_taken(shipped: Path, aqmlab: Cli) -> None:
    answer = aqmlab("reproduce", shipped, "--finished", "--measured", "--out", "out")
    assert (answer.status, answer.err) == (0, "")
    said = "taken from measured.json: 6 of 6 runs; without their curves: 1 figures"
    assert said in answer.out.splitlines()
    assert Path("out", FILE).is_file()


def test_the_page_of_all_papers_says_what_was_taken(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(_: str, **options: Any) -> Reproduction:
        return reproduce(str(shipped), **options)

    monkeypatch.setattr(fidelity, "names", lambda: ["one"])
    monkeypatch.setattr(fidelity, "reproduce", again)
    result = fidelity.reproduce_all(tmp_path / "out", finished_only=True, measured=True)
    assert result.reused == Reused(6, ["one times"])
    page = Path(result.files["report"]).read_text()
    assert "6 of the runs were taken from the `measured.json` of the papers." in page
    assert (tmp_path / "out" / "pages" / "records" / "fidelity-one.md").is_file()


def test_the_files_of_the_papers_are_what_their_tables_ask() -> None:
    for file in sorted((ROOT / "papers").glob(f"*/{FILE}")):
        paper = Paper.load(str(file.parent))
        runs = read(file, paper)
        assert runs
        assert to_text(paper, runs) == file.read_text()
        assert file.stat().st_size < 900 * len(runs)
