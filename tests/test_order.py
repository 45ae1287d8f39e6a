"""A queue has one place and one colour in every table and figure: that in which it was given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import aqmlab as library
import pytest
from aqmlab import figures
from aqmlab.cards.page import beside
from aqmlab.figures.theme import THEMES, Look
from aqmlab.reports.charts import Style, stroke
from aqmlab.reports.content import compose
from aqmlab.reports.html import _strokes
from aqmlab.results import order
from aqmlab.results.sources import gather
from conftest import SMALL, Cli
from figure_runs import draw

GIVEN = ["pie", "droptail-24", "fq-codel", "codel"]
"""Neither in the order of the alphabet nor with drop-tail first."""
COLOURS = list(THEMES["light"].series)


@pytest.fixture
def folder(aqmlab: Cli, small: Path) -> Path:
    """Runs of a comparison of four queues."""
    vary = f"topology.bottleneck.discipline={','.join(GIVEN)}"
    answer = aqmlab("compare", small, "--vary", vary, "--seeds", "1,2", "--out", "queues")
    assert answer.status == 0, answer.err
    heads = [line.split() for line in answer.out.splitlines() if line.startswith("number ")]
    assert [word for line in heads for word in line[1:]] == GIVEN
    return Path("queues")


def _colours(chart: Any) -> dict[str, str]:
    """The colour of each curve of a figure."""
    found: dict[str, str] = {}

    def look(part: Any) -> None:
        for value in part.values() if isinstance(part, dict) else part:
            if isinstance(value, dict) and isinstance(colour := value.get("color"), dict):
                scale = colour.get("scale") or {}
                found.update(zip(scale.get("domain", ()), scale.get("range", ()), strict=True))
            if isinstance(value, dict | list):
                look(value)

    look(chart.to_dict())
    return found


@pytest.mark.long
@pytest.mark.parametrize("place", ["queues", "queues/*"])
def test_figures_and_reports_of_a_folder_have_the_order_of_its_command(
    folder: Path, place: str
) -> None:
    """Of the folder, and of a pattern."""
    assert folder.is_dir()
    expected = dict(zip(GIVEN, COLOURS, strict=False))
    for kind in (figures.cdf, figures.ccdf, figures.delay, figures.classes):
        found = _colours(kind(place))
        assert found == expected, kind
        assert list(found) == GIVEN, kind
    assert _colours(draw.throughput_delay(place)) == expected
    assert _colours(draw.utilization_delay(place)) == expected
    report = compose(gather([place]), Path())
    assert report.drawn == GIVEN
    assert _strokes(report) == {name: stroke(k) for k, name in enumerate(GIVEN)}


def test_the_last_command_gives_the_order(aqmlab: Cli, small: Path, folder: Path) -> None:
    """Runs that it found finished are in its order too; others stay before them."""
    vary = "topology.bottleneck.discipline=codel,pie"
    aqmlab("compare", small, "--vary", vary, "--seeds", "1,2", "--out", "queues")
    labels = dict.fromkeys(run.label for run in gather([folder]))
    assert list(labels) == ["droptail-24", "fq-codel", "codel", "pie"]


def test_runs_that_no_command_noted_come_by_their_labels(folder: Path) -> None:
    """As those of older folders do: drop-tail first."""
    (folder / ".order").unlink()
    labels = dict.fromkeys(run.label for run in gather([folder]))
    assert list(labels) == ["droptail-24", "codel", "fq-codel", "pie"]


def test_a_damaged_order_is_none(tmp_path: Path) -> None:
    """It is a courtesy, no data."""
    order.note(tmp_path, ["b 1", "a"])
    assert order.noted(tmp_path) == {"b 1": 0, "a": 1}
    order.note(tmp_path, ["b 1"])
    assert list(order.noted(tmp_path)) == ["a", "b 1"]
    (tmp_path / ".order").write_bytes(b"\xff\xfe")
    assert order.noted(tmp_path) == {}
    order.note(tmp_path / "nowhere" / "at" / "all", [])


def test_a_curve_keeps_its_colour_where_another_has_none(tmp_path: Path) -> None:
    """In figures, and on the page of a report."""
    look = Look()
    assert look.colour(["b"], among=["a", "b"])["scale"]["range"] == [COLOURS[1]]
    many = [str(k) for k in range(9)]
    assert look.pattern(["8"], among=many)["scale"]["range"] == [look.dash(8)]
    style = Style(["b"], live=False, among=["a", "b"])
    assert style.colour["scale"]["range"] == [COLOURS[1]]
    runs = [
        library.run(library.Scenario.from_toml(SMALL, [("topology.bottleneck.discipline", name)]))
        for name in ("pie", "codel")
    ]
    report = compose(runs, tmp_path)
    assert report.distributions is not None
    left = [curve for curve in report.distributions.curves if curve.group == "codel"]
    alone = replace(report, distributions=replace(report.distributions, curves=left), traces=None)
    assert alone.drawn == ["codel"]
    assert _strokes(alone) == {"codel": stroke(1)}


def test_a_card_has_its_baselines_in_the_order_that_was_given() -> None:
    """Beside the candidate, in the table and in the picture."""
    given = ["pie", "codel"]
    card = library.evaluate("fq-codel", only=["a-base"], seeds="1", baselines=given)
    assert [name for name in beside(card) if name in given] == given
