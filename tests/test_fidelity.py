"""All papers in turn, and their scoreboard."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aqmlab.errors import AqmlabError
from aqmlab.papers import fidelity
from aqmlab.papers.claim import Claim, Claims
from aqmlab.papers.judge import Alternative, ClaimScore, Judged
from aqmlab.papers.names import names
from aqmlab.papers.paper import Interpretation, Paper, PaperColumn
from aqmlab.papers.reproduction import FurtherRuns, Reproduction, Rows
from aqmlab.papers.scoreboard import PaperCell, Power, Score, Scoreboard
from conftest import ROOT

if TYPE_CHECKING:
    from conftest import Cli


def judged(name: str, outcome: str, kind: str = "ordering", **more: Any) -> Judged:
    own_tables = more.pop("own_tables", "agrees")
    claim = Claim(name, kind, f"what {name} says", own_tables)
    return Judged(claim, outcome, f"numbers of {name}", **more)


ONE = [
    *(judged(f"B{number}", "holds") for number in range(3)),
    judged("B3", "undecided"),
    judged("B4", "undecided", "equality"),
    judged("A1", "fails", "equality"),
    judged("A2", "fails", own_tables="disagrees"),
    judged("A3", "fails", noisy_copies=0.5),
    *(judged(f"C{number}", "holds", noisy_copies=0.5) for number in range(4)),
]
"""3 hold, 1 fails, 2 are undecided, 5 are undecidable, 1 is contradicted."""


@dataclass
class Counted(Scoreboard):
    """A scoreboard whose cells are counted already."""

    scores: Mapping[str, Score] = field(default_factory=dict)
    """By table."""
    known: Power = field(default_factory=lambda: Power(0, 0, 0, 0, 0, 0))

    def of_table(self, table: str) -> list[PaperCell]:
        """A cell that stands for those of the table."""
        return [PaperCell(table, "", PaperColumn("", ""), "")]

    def count(self, cells: Iterable[PaperCell] | None = None) -> Score:
        """The score of a table, or of all."""
        named = None if cells is None else {cell.table for cell in cells}
        chosen = [one for name, one in self.scores.items() if named is None or name in named]
        if not self.scored:
            return Score(None, None, sum(one.total for one in chosen))
        return Score(*(sum(getattr(one, key) for one in chosen) for key in vars(chosen[0])))

    def power(self, cells: Iterable[PaperCell] | None = None) -> Power:  # noqa: ARG002 - known
        """What is known of all cells."""
        return self.known


NOTHING = Score(0, 0, 0)
BOARDS = {
    "one": Counted(
        {"1": "Table 1", "2": "Table 2", "figure": "A plot"},
        scored=True,
        scores={"1": Score(3, 2, 4), "2": Score(2, 2, 4), "figure": NOTHING},
        known=Power(
            informative_within=1,
            right_side=3,
            unfitted_within=3,
            informative=4,
            unfitted=6,
            reference_within=4,
        ),
    ),
    "two": Counted({"figure": "A plot"}, scored=True, scores={"figure": NOTHING}),
}


def made(name: str, report: Path, *, quick: bool, failed: Mapping[str, str]) -> Reproduction:
    """What became of one of two papers; all runs of the second ended."""
    first = name == "one"
    claims = Claims(entries=tuple(one.claim for one in ONE) if first else ())
    paper = replace(Paper.load("zhangqiu2000"), name=name, title=f"Paper {name}", claims=claims)
    fails = next(one for one in ONE if one.claim.id == "A1")
    other = Alternative(
        Interpretation("small", "small packets count less", "", "hangs on sizes", {}),
        ClaimScore(holds=4),
        ((fails, replace(fails, outcome="holds")),),
    )
    return Reproduction(
        paper=paper,
        engine="an engine",
        seeds=[1, 2, 3] if first else [4, 7],
        further=FurtherRuns([4, 5], 2) if first else FurtherRuns([], 0),
        quick="too short" if quick else "",
        length="usual" if first else "published",
        rows=Rows(6, 8) if first else Rows(2, 2),
        board=replace(BOARDS[name], scored=not quick),
        judged=ONE if first else [judged("D1", "undecided")],
        alternatives=[other] if first else [],
        failed=failed if first else {},
        runs=24 if first else 6,
        cpu_s=3600.0 if first else 1800.0,
        figures={"4": "4.svg"} if first else {},
        files={"report": str(report)},
    )


FAILED = {"run": "it broke"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Two papers in place of the real ones; what was asked of each."""
    calls: list[dict[str, Any]] = []

    def reproduce(name: str, *, out: Path, quick: bool = False, **options: Any) -> Reproduction:
        calls.append({"name": name, "out": out, "quick": quick, **options})
        return made(name, out / "report.md", quick=quick, failed=FAILED)

    monkeypatch.setattr(fidelity, "names", lambda: ["one", "two"])
    monkeypatch.setattr(fidelity, "reproduce", reproduce)
    return calls


def test_every_paper_is_repeated_in_its_own_folder(asked: list[Any], tmp_path: Path) -> None:
    result = fidelity.reproduce_all(tmp_path, jobs=2, quick=False)
    assert [(call["name"], call["out"], call["jobs"]) for call in asked] == [
        ("one", tmp_path / "one", 2),
        ("two", tmp_path / "two", 2),
    ]
    assert result.cells == Score(within=5, by_value=4, total=8)
    assert result.claims == ClaimScore(3, 1, 3, 5, 1)
    assert (result.runs, result.cpu_s) == (30, 5400)
    assert result.failed == {"one/run": "it broke"}
    assert result.figures == {"one 4": "4.svg"}
    written = json.loads((tmp_path / "scoreboard.json").read_text())
    assert {**written, "files": result.files} == result.to_json()
    assert written["papers"]["one"]["claims"]["holds"] == 3


def test_the_page_counts_and_links(asked: list[Any], tmp_path: Path) -> None:
    fidelity.reproduce_all(tmp_path)
    pages = tmp_path / "pages"
    assert len(asked) == 2
    assert sorted(page.name for page in pages.rglob("*.md")) == [
        "fidelity-claims.md",
        "fidelity-one.md",
        "fidelity-two.md",
        "fidelity.md",
    ]
    assert (
        (pages / "records" / "fidelity-two.md")
        .read_text()
        .startswith("# Paper two\n\nOurs / published")
    )
    assert "## Figures" not in (pages / "records" / "fidelity-one.md").read_text()
    page = (pages / "docs" / "fidelity.md").read_text()
    for line in (
        "- one: Paper one",
        "(../records/fidelity-one.md) | 6 of 8 (75 %) | 5 of 8 (62 %) | 3 (75 %) | 1 | 2 | 5 | 1 |",
        "fidelity-two.md) | 2 of 2 (100 %) | - | 0 | 0 | 1 | 0 | 0 | 4, 7 | as published |",
        "| **all** | 8 of 10 (80 %) | 5 of 8 (62 %) | 3 (75 %) | 1 | 3 | 5 | 1 |  |  |",
        "30 runs, 1.5 hours of CPU time",
        "By value alone, within are 4 of 8 (50 %) cells.",
        "| one | 4 | 1 (25 %) | 3 (75 %) | 4 of 8 | 3 of 6 (50 %) |",
        "| **all** | 4 | 1 (25 %) | 3 (75 %) | 4 of 8 | 3 of 6 (50 %) |",
        "| 3 (75 %) | 1 | 2 | 5 | 1 | 1 to 3; some rows 1 to 5 | partly shorter |",
    ):
        assert line in page
    assert "../records/fidelity-claims.md" in page
    page = (pages / "records" / "fidelity-claims.md").read_text()
    assert fidelity.intact(page)
    for line in (
        "| one | ordering | 3 of 3 (100 %) | 1 |",
        "| one | equality | 0 of 1 (0 %) | 1 |",
        "| one | Table 1 | 3 of 4 | 75 % | 2 |",
        "| one | **all** | 5 of 8 | 62 % | 4 |",
        "| **all** |  | 5 of 8 | 62 % | 4 |",
        "| one A1 | what A1 says (hangs on sizes) | numbers of A1 |",
        "| one | small packets count less | 1 | 3 of 4 (75 %) | 4 of 4 (100 %) | 1 | 0 |",
    ):
        assert line in page
    assert "A plot" not in page
    assert "A2" not in page  # contradicted by the paper's own tables: not counted as failed
    # What the paper's tables cannot decide stands apart from what fails.
    assert page.index("one A1") < page.index("Not counted, because") < page.index("one A3")


def test_a_paper_with_missing_runs_keeps_its_earlier_page(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(FAILED, "run")
    fidelity.reproduce_all(tmp_path)
    assert len(asked) == 2
    pages = tmp_path / "pages"
    names = sorted(page.name for page in pages.rglob("*.md"))
    assert names == ["fidelity-claims.md", "fidelity-two.md", "fidelity.md"]
    page = (pages / "docs" / "fidelity.md").read_text()
    assert "**Not all rows of one have been run**" in page
    assert "| [one](../records/fidelity-one.md) | 6 of 8 (75 %) |" in page


def test_a_page_that_was_edited_tells_it(asked: list[Any], tmp_path: Path) -> None:
    fidelity.reproduce_all(tmp_path)
    assert len(asked) == 2
    page = (tmp_path / "pages" / "docs" / "fidelity.md").read_text()
    assert fidelity.intact(page)
    assert not fidelity.intact(page.replace("5 of 8", "6 of 8"))
    assert not fidelity.intact(page + "\nMore.\n")
    assert not fidelity.intact(page.replace("fit its hash", "fit"))


@pytest.mark.parametrize(
    "name",
    [
        "docs/fidelity.md",
        "records/fidelity-claims.md",
        *(f"records/fidelity-{key}.md" for key in names()),
    ],
)
def test_the_committed_pages_are_as_they_were_generated(name: str) -> None:
    """They are mended by `make reproduce`, not by hand; what we know of them is in the notes."""
    assert fidelity.intact((ROOT / name).read_text(encoding="utf-8"))


def test_quick_runs_are_not_scored(asked: list[Any], tmp_path: Path) -> None:
    result = fidelity.reproduce_all(tmp_path, quick=True)
    assert all(call["quick"] for call in asked)
    assert (result.scored, result.cells.within) == (False, None)
    assert "cells are not scored" in (tmp_path / "pages" / "docs" / "fidelity.md").read_text()


def test_the_command_says_what_failed(asked: list[Any], aqmlab: Cli, tmp_path: Path) -> None:
    answer = aqmlab("reproduce", "all", "--out", tmp_path, "--json", "--seed", "5")
    assert answer.status == 1
    assert "1 of 30 runs failed; the first, one/run: it broke" in answer.err
    assert json.loads(answer.out)["claims"]["holds"] == 3
    assert [call["seeds"] for call in asked] == [[5], [5]]
    shown = aqmlab("reproduce", "all", "--out", tmp_path)
    assert "5/8" in shown.out
    assert "3/4" in shown.out


def test_all_papers_have_no_tables(aqmlab: Cli) -> None:
    answer = aqmlab("reproduce", "all", "B.1")
    assert (answer.status, answer.out) == (2, "")
    assert "found B.1 after all" in answer.err


def test_figures_name_the_tables_that_plot_their_numbers() -> None:
    source = Paper.load(str(ROOT / "papers" / "zhangqiu2000"))
    tables, _, _ = source.select(["Figure6", "figure7"])
    assert [table.id for table in tables] == ["figure3", "figure7"]
    with pytest.raises(
        AqmlabError, match=r"no table or figure figure99; it has figure3, .*\(33 in all\)"
    ):
        source.select(["figure99"])


def test_every_folder_with_tables_is_a_paper() -> None:
    folders = {path.parent.name for path in (ROOT / "papers").glob("*/tables.toml")}
    assert folders <= set(names())
