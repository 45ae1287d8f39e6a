"""All papers in turn, and their scoreboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aqmlab.errors import AqmlabError
from aqmlab.papers import fidelity
from aqmlab.papers.paper import Paper, names
from conftest import ROOT

if TYPE_CHECKING:
    from conftest import Cli


def verdict(name: str, word: str, own_tables: str = "agrees") -> dict[str, Any]:
    claim = {"id": name, "text": f"what {name} says", "verdict": word}
    numbers = {"because": f"numbers of {name}", "own_tables": own_tables}
    return {**claim, **numbers, "counts": own_tables == "agrees"}


ONE = {
    "title": "Paper one",
    "seeds": [1, 2, 3],
    "further": {"seeds": [4, 5], "runs": 2},
    "scored": True,
    "length": "usual",
    "rows": {"run": 6, "total": 8},
    "cells": {"within": 5, "by_value": 4, "total": 8},
    "power": {
        "informative": 4,
        "informative_within": 1,
        "right_side": 3,
        "reference_within": 4,
        "unfitted": 6,
        "unfitted_within": 3,
    },
    "tables": {
        "1": {"title": "Table 1", "within": 3, "by_value": 2, "total": 4},
        "2": {"title": "Table 2", "within": 2, "by_value": 2, "total": 4},
        "figure": {"title": "A plot", "within": 0, "by_value": 0, "total": 0},
    },
    "claims": {
        "holds": 3,
        "fails": 1,
        "undecided": 2,
        "undecidable": 5,
        "contradicted": 1,
        "types": {
            "ordering": {"holds": 3, "fails": 0, "undecided": 1},
            "equality": {"holds": 0, "fails": 1, "undecided": 1},
        },
        "verdicts": [
            verdict("A1", "fails"),
            verdict("A2", "fails", "disagrees"),
            {**verdict("A3", "fails"), "counts": False},
        ],
    },
    "readings": [
        {
            "title": "small packets count less",
            "mark": "hangs on sizes",
            "claims": {"holds": 4, "fails": 0},
            "concerned": [{"id": "A1", "first": "fails", "second": "holds"}],
        }
    ],
    "failed": {"run": "it broke"},
    "figures": {"4": "4.svg"},
    "runs": 24,
    "cpu_s": 3600.0,
}
TWO = {
    "title": "Paper two",
    "seeds": [4, 7],
    "further": {"seeds": [], "runs": 0},
    "scored": True,
    "length": "published",
    "rows": {"run": 2, "total": 2},
    "cells": {"within": 0, "by_value": 0, "total": 0},
    "power": dict.fromkeys(
        (
            *("informative", "informative_within", "right_side"),
            *("reference_within", "unfitted", "unfitted_within"),
        ),
        0,
    ),
    "tables": {"figure": {"title": "A plot", "within": 0, "by_value": 0, "total": 0}},
    "claims": {
        "holds": 0,
        "fails": 0,
        "undecided": 1,
        "undecidable": 0,
        "contradicted": 0,
        "types": {},
        "verdicts": [],
    },
    "readings": [],
    "failed": {},
    "figures": {},
    "runs": 6,
    "cpu_s": 1800.0,
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Two papers in place of the real ones; what was asked of each."""
    calls: list[dict[str, Any]] = []

    def reproduce(name: str, *, out: Path, quick: bool = False, **options: Any) -> dict[str, Any]:
        calls.append({"name": name, "out": out, "quick": quick, **options})
        report = out / "report.md"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(f"# Report of {name}\n")
        result = {**(ONE if name == "one" else TWO), "files": {"report": str(report)}}
        if quick:
            result |= {"scored": False, "cells": {"within": None, "by_value": None, "total": 8}}
        return result

    monkeypatch.setattr(fidelity, "names", lambda: ["one", "two"])
    monkeypatch.setattr(fidelity, "reproduce", reproduce)
    return calls


def test_every_paper_is_repeated_in_its_own_folder(asked: list[Any], tmp_path: Path) -> None:
    result = fidelity.reproduce_all(tmp_path, jobs=2, quick=False)
    assert [(call["name"], call["out"], call["jobs"]) for call in asked] == [
        ("one", tmp_path / "one", 2),
        ("two", tmp_path / "two", 2),
    ]
    assert result["cells"] == {"within": 5, "by_value": 4, "total": 8}
    assert result["claims"] == {
        "holds": 3,
        "fails": 1,
        "undecided": 3,
        "undecidable": 5,
        "contradicted": 1,
    }
    assert (result["runs"], result["cpu_s"]) == (30, 5400)
    assert result["failed"] == {"one/run": "it broke"}
    assert result["figures"] == {"one 4": "4.svg"}
    written = json.loads((tmp_path / "scoreboard.json").read_text())
    assert {**written, "files": result["files"]} == result


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
        .startswith("# Report of two\n\n<!-- Generated")
    )
    page = (pages / "docs" / "fidelity.md").read_text()
    for line in (
        "- one: Paper one",
        "(../records/fidelity-one.md) | 6 of 8 (75 %) | 5 of 8 (62 %) | 3 (75 %) | 1 | 2 | 5 | 1 |",
        "fidelity-two.md) | 2 of 2 (100 %) | - | 0 | 0 | 1 | 0 | 0 | 4, 7 | as published |",
        "| **all** | 8 of 10 (80 %) | 5 of 8 (62 %) | 3 (75 %) | 1 | 3 | 5 | 1 |  |  |",
        "30 runs, 1.5 hours of CPU time",
        "| one | 4 | 1 (25 %) | 3 (75 %) | 4 of 8 | 3 of 6 (50 %) |",
        "| **all** | 4 | 1 (25 %) | 3 (75 %) | 4 of 8 | 3 of 6 (50 %) |",
        "| one | ordering | 3 of 3 (100 %) | 1 |",
        "| one | equality | 0 of 1 (0 %) | 1 |",
        "| one | Table 1 | 3 of 4 | 75 % | 2 |",
        "| one | **all** | 5 of 8 | 62 % | 4 |",
        "| **all** |  | 5 of 8 | 62 % | 4 |",
        "| 3 (75 %) | 1 | 2 | 5 | 1 | 1 to 3; some rows 1 to 5 | partly shorter |",
    ):
        assert line in page
    assert "../records/fidelity-claims.md" in page
    page = (pages / "records" / "fidelity-claims.md").read_text()
    assert fidelity.intact(page)
    for line in (
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
    monkeypatch.setitem(ONE, "failed", {})
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
    assert (result["scored"], result["cells"]["within"]) == (False, None)
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
    with pytest.raises(AqmlabError, match=r"no table or figure figure99; it has .*, figure6"):
        source.select(["figure99"])


def test_every_folder_with_tables_is_a_paper() -> None:
    folders = {path.parent.name for path in (ROOT / "papers").glob("*/tables.toml")}
    assert folders <= set(names())
