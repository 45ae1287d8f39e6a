"""Figures of papers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from aqmlab.errors import AqmlabError
from aqmlab.papers.figures import published_points
from aqmlab.papers.paper import Paper, read_figures
from aqmlab.papers.reproduce import reproduce

PAPERS = sorted(path.parent.name for path in Path("papers").glob("*/figures.toml"))


@pytest.mark.parametrize("name", PAPERS)
def test_every_figure_has_rows_and_a_name_of_its_own(name: str) -> None:
    paper = Paper.load(name)
    tables = {table.id: table for table in paper.tables}
    assert all(len(figure.places(tables)) > 1 for figure in paper.figures)
    ids = [figure.id for figure in paper.figures] + [table.id for table in paper.tables]
    assert len(set(ids)) == len(ids)


def test_a_figure_of_rows_that_do_not_exist_is_refused() -> None:
    spec = {"id": "1", "title": "t", "limit_s": 1, "rows": [["B.1", "drop-head *"]]}
    (figure,) = read_figures(spec)
    with pytest.raises(ValueError, match=r"no row drop-head \* in table B\.1"):
        figure.places({table.id: table for table in Paper.load("christiansen2000").tables})


def test_each_makes_a_figure_for_every_value() -> None:
    spec = {"id": "f-$each", "title": "at $each %", "limit_s": 1, "each": [80, 90]}
    found = read_figures({**spec, "rows": [["B.1", "* at $each %"]], "of": "flow"})
    assert [figure.id for figure in found] == ["f-80", "f-90"]
    assert found[1].rows == (("B.1", "* at 90 %"),)


def test_figures_come_with_their_tables_and_alone() -> None:
    paper = Paper.load("christiansen2000")
    assert "22-98" not in {figure.id for figure in paper.select(["B.1"])[2]}
    assert "22-98" in {figure.id for figure in paper.select(["B.1", "B.2", "4"])[2]}
    tables, _, (figure,) = paper.select(["22-98"])
    assert (tables, figure.id) == ([], "22-98")
    with pytest.raises(AqmlabError, match="no table or figure 23"):
        paper.select(["23"])


def test_a_figure_is_drawn_from_runs_that_recorded_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = (("measure.warm_up", '"10 s"'), ("measure.duration", '"30 s"'))
    source = Paper.load("christiansen2000")
    monkeypatch.setattr(Paper, "load", classmethod(lambda *_: replace(source, quick=short)))
    result = reproduce("christiansen2000", ["22-98"], quick=True, out=tmp_path)
    assert (result.runs, result.failed) == (5, {})
    assert result.figures == {"22-98": str(tmp_path / "figures" / "figure-22-98.svg")}
    text = Path(result.figures["22-98"]).read_text(encoding="utf-8")
    assert "drop-tail 190 at 98 %" in text
    assert "Share of responses that take that long or longer" in text
    assert "figure 22-98, quick" in text
    assert "Quick runs of 30 s, which are not scored" in text
    assert "Dots: published" not in text
    assert "ublished points are left out" in text
    report = Path(result.files["report"]).read_text(encoding="utf-8")
    assert "(figures/figure-22-98.svg)" in report


def test_published_points_are_those_of_the_tables() -> None:
    tables = {table.id: table for table in Paper.load("christiansen2000").tables}
    row = tables["B.1"].row("drop-tail 120 at 98 %")
    points = published_points(tables["B.1"], row, "response")
    printed = {key: float(row.published[key]) for key in ("p50_s", "pct_le_1s", "pct_1_to_2s")}
    assert points[:3] == [
        (printed["p50_s"], 0.5),
        (1.0, pytest.approx(printed["pct_le_1s"] / 100)),
        (2.0, pytest.approx((printed["pct_le_1s"] + printed["pct_1_to_2s"]) / 100)),
    ]
    assert [time for time, _ in points] == sorted(time for time, _ in points)
    assert published_points(tables["B.1"], row, "flow") == []
    le = {table.id: table for table in Paper.load("le2005").tables}["4.2"]
    found = published_points(le, le.row("uncongested at 80"), "response")
    assert found == [(0.137, 0.5), (0.237, 0.75), (0.312, 0.9)]
