"""Percentiles that are judged by rank where the distribution is flat."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from aqmlab.errors import AqmlabError
from aqmlab.papers.measured import rank
from aqmlab.papers.paper import Paper, column
from aqmlab.papers.scoreboard import PaperCell, Scoreboard
from aqmlab.results.distributions import Distribution
from aqmlab.results.run import Run
from aqmlab.results.terms import Percentile, Rank

MEDIAN = column(
    "p50_s",
    {
        "title": "median (s)",
        "tolerance": {"relative": 0.2, "absolute": 0.025, "rank": 6.0},
        "terms": [{"key": "responses.web.p50_s"}],
    },
)


def run(times: list[float], others: list[float]) -> Run:
    """A run of two classes with these response times."""
    both = times + others
    distribution = pa.table(
        {
            "of": ["response"] * len(both),
            "class": ["web"] * len(times) + ["other"] * len(others),
            "below_s": both,
            "count": [1] * len(both),
        }
    )
    return Run.in_memory({}, {}, {"distribution": distribution}, label="run")


def gap(share: float) -> list[float]:
    """A thousand responses: a share of them below 0.5 s, hardly any up to 1 s, the others above."""
    early = round(1000 * share)
    return [*np.linspace(0.1, 0.5, early), *np.linspace(1.0, 3.0, 1000 - early)]


def cell(published: str, share: float) -> PaperCell:
    of_run = run(gap(share), [9.0] * 500)
    found = rank(MEDIAN, published, of_run)
    assert found is not None
    return PaperCell("1", "row", MEDIAN, published, (float(np.median(gap(share))),), (found,))


def test_the_column_knows_its_percentile() -> None:
    assert MEDIAN.percentile == Percentile("response", "web", 50)
    source = Paper.load(str(Path(__file__).parents[1] / "papers" / "christiansen2000"))
    columns = {found.name: found for found in source.table("B.1").columns}
    assert columns["p50_s"].percentile == Percentile("response", None, 50)
    assert Percentile.named("flows.all.duration_p90_s") == Percentile("flow", None, 90)
    assert columns["loss_rate_pct"].percentile is None


def test_only_percentiles_have_a_rank(tmp_path: Path) -> None:
    spec = {"title": "x", "tolerance": {"rank": 6.0}, "terms": [{"key": "responses.all.mean_s"}]}
    with pytest.raises(ValueError, match=r"responses\.all\.mean_s is no percentile"):
        column("x", spec)
    (tmp_path / "tables.toml").write_text(
        'paper = "x"\nscenario = "x.toml"\nseeds = [1]\ntables = []\n[common]\n[quick]\n'
        '[columns.x]\ntitle = "x"\ntolerance = { rank = 6.0 }\n'
    )
    with pytest.raises(AqmlabError, match="no percentile"):
        Paper.load(str(tmp_path))


def test_the_time_of_a_share() -> None:
    web = Distribution(np.array([0.1, 0.2, 0.4]), np.array([1, 2, 1]))
    assert [web.time_s(share) for share in (-0.1, 0.0, 0.25, 0.26, 0.75, 1.0, 1.1)] == [
        *(0.1, 0.1, 0.1),
        *(0.2, 0.2),
        *(0.4, 0.4),
    ]
    assert web.rank(0.3, 6) == Rank(75, 0.4 - 0.2)
    assert Distribution(np.array([]), np.array([])).rank(1.0, 6) is None


# Published: 0.9 s, inside the gap from 0.5 to 1 s. Ours lies on one of its sides.
@pytest.mark.parametrize(
    ("share", "by_value", "by_rank"),
    [
        (0.52, False, True),  # our median is 0.48 s, and 52 % ended within 0.9 s
        (0.56, False, True),
        (0.57, False, False),  # seven points away
        (0.48, True, True),  # our median is 1.04 s
        (0.43, False, False),
    ],
)
def test_a_percentile_beside_a_gap(share: float, by_value: bool, by_rank: bool) -> None:
    found = cell("0.9", share)
    assert found.rank == pytest.approx(100 * share)
    assert (found.by_value, found.by_rank, found.within) == (by_value, by_rank, by_value or by_rank)


def test_a_near_rank_on_a_steep_part_does_not_excuse() -> None:
    # A tenth of the responses take 0.24 to 0.26 s; our median lies behind the gap after them.
    steep = [*np.linspace(0.1, 0.2, 390), *np.linspace(0.24, 0.26, 100), *np.linspace(0.5, 1, 510)]
    found = rank(MEDIAN, "0.25", run(steep, []))
    assert found is not None
    assert found.at == pytest.approx(44, abs=0.2)  # bins are a thousandth wide
    assert found.span_s == pytest.approx(0.012, abs=0.001)
    judged = PaperCell("1", "row", MEDIAN, "0.25", (0.51,), (found,))
    assert (judged.by_value, judged.by_rank) == (False, False)


def test_seeds_are_judged_by_their_mean() -> None:
    far = PaperCell("1", "row", MEDIAN, "0.9", (0.4,), (Rank(58, 1.0), Rank(50, 0.1)))
    assert (far.rank, far.by_rank) == (54, True)
    short = PaperCell("1", "row", MEDIAN, "0.9", (0.4,), (Rank(58, 0.1), Rank(50, 0.1)))
    assert short.by_rank is False


def test_runs_that_do_not_tell_are_judged_by_value() -> None:
    assert rank(MEDIAN, "0.9", run([], [1.0])) is None
    assert rank(MEDIAN, "", run(gap(0.5), [])) is None
    assert PaperCell("1", "row", MEDIAN, "0.9", (0.9,)).by_rank is None


def test_both_verdicts_are_shown() -> None:
    cells = [cell("0.9", 0.52), cell("0.9", 0.48), cell("0.9", 0.30)]
    rows = [
        PaperCell("1", f"{number}", *list(vars(one).values())[2:])
        for number, one in enumerate(cells)
    ]
    board = Scoreboard({"1": "Table"}, scored=True, cells=rows)
    assert board.to_json()["cells"] == {"within": 2, "by_value": 1, "total": 3}
    lines = list(csv.DictReader(board.to_csv().splitlines()))
    verdicts = [(line["by_value"], line["by_rank"], line["verdict"]) for line in lines]
    assert verdicts == [
        ("outside", "within", "within"),
        ("within", "within", "within"),
        ("outside", "outside", "outside"),
    ]
    assert [line["rank"] for line in lines] == ["52", "48", "30"]
    page = board.to_markdown()
    assert "| table | cells within | share | by value alone |" in page
    assert "| Table | 2 of 3 | 67 % | 1 |" in page
    assert "| 0 | 0.5 / 0.9 (52 %) † |" in page
    assert "| 2 | 1.6 / 0.9 (30 %) ✗ |" in page
    assert "±6 points of rank" in page
