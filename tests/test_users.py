"""Figures of applications in tables, comparisons, reports and by their short names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aqmlab import AqmlabError, Run
from aqmlab.figures.findings import shown as figure_number
from aqmlab.figures.kinds.comparison import comparison
from aqmlab.results.quantity import Quantity
from conftest import Cli

HOME = """\
title = "Home"
[measure]
warm_up = "5 s"
duration = "15 s"
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "5 Mbit/s"
discipline = { kind = "droptail", limit = "300 packets" }
[[traffic]]
name = "pages"
kind = "http2-web"
users = 2
objects = 20
think = "1 s"
rtt = { kind = "constant", rtt = "40 ms" }
[[traffic]]
name = "call"
kind = "voip"
calls = 1
rtt = { kind = "constant", rtt = "40 ms" }
[[traffic]]
name = "upload"
kind = "bulk"
flows = 2
rtt = { kind = "constant", rtt = "40 ms" }
"""


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("mos.call", "quality.call.mos_mean"),
        ("page_load_p75.pages", "quality.pages.page_load_p75_s"),
        ("stall_ratio.video", "quality.video.stall_ratio"),
        ("quality.call.r_factor_mean", "quality.call.r_factor_mean"),
    ],
)
def test_figures_of_applications_have_short_names(name: str, key: str) -> None:
    """Of one class each."""
    assert Quantity.read(name).key == key
    assert Quantity.read(name).about is not None


def test_a_figure_of_an_application_is_of_one_class() -> None:
    """There is no opinion score of pages."""
    with pytest.raises(AqmlabError, match=r"which class of traffic; mos\.CLASS is of one"):
        _ = Quantity.read("mos").key


def test_runs_comparisons_and_reports_show_them(aqmlab: Cli) -> None:
    """The call is better behind fair queues, and the tables say so."""
    Path("home.toml").write_text(HOME)
    shown = aqmlab("run", "home.toml").out
    assert "page load p50 s" in shown
    assert "lowest MOS" in shown
    queues = '{kind="droptail",limit="300 packets"},fq-codel'
    compared = aqmlab(
        "compare", "home.toml", "--all", "--vary", f"topology.bottleneck.discipline={queues}"
    ).out
    assert "applications, one seed each" in compared
    assert "mean MOS" in compared
    paths = [path.parent for path in Path("runs").glob("*/summary.json")]
    assert paths
    assert all("<th>mos.call</th>" in Run.open(path)._repr_html_() for path in paths)
    aqmlab("report", "runs", "-o", "report.html")
    page = Path("report.html").read_text()
    assert "mean MOS" in page
    assert "median page load time" in page


def test_responses_of_different_applications_are_not_put_together(aqmlab: Cli) -> None:
    """What pages and segments of films take together is no number for anybody."""
    film = '[[traffic]]\nname = "film"\nkind = "abr-video"\nviewers = 1\n'
    film += 'rtt = { kind = "constant", rtt = "40 ms" }\n'
    Path("home.toml").write_text(HOME + film)
    shown = aqmlab("run", "home.toml").out
    responses = shown.partition("responses")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in responses.splitlines()[1:]] == ["film", "pages"]
    queues = '{kind="droptail",limit="300 packets"},fq-codel'
    words = ("compare", "home.toml", "--vary", f"topology.bottleneck.discipline={queues}")
    compared = aqmlab(*words).out.partition("against")[2].partition("\nrun directory")[0]
    assert {"film", "pages"} <= set(compared.split())
    assert "all" not in compared.split()
    film = (
        film.replace('"film"', '"more"')
        .replace("abr-video", "http2-web")
        .replace("viewers", "users")
    )
    Path("home.toml").write_text(HOME + film)
    shown = aqmlab("run", "home.toml").out
    assert "\nall " in shown.partition("responses")[2].partition("\n\n")[0]


def test_headlines_speak_of_one_class(aqmlab: Cli) -> None:
    """Picture, table, report and differences state the pages' number, not one of pages and film."""
    film = '[[traffic]]\nname = "film"\nkind = "abr-video"\nviewers = 1\n'
    film += 'rtt = { kind = "constant", rtt = "40 ms" }\n'
    Path("home.toml").write_text(HOME + film)
    queues = '{kind="droptail",limit="300 packets"},fq-codel'
    words = ("compare", "home.toml", "--vary", f"topology.bottleneck.discipline={queues}")
    content = json.loads(aqmlab(*words, "--json").out)
    assert {entry["class"] for entry in content["differences"]} >= {"film", "pages"}
    assert "all" not in {entry["class"] for entry in content["differences"]}
    medians = [run["summary"]["responses"]["pages"]["p50_s"] for run in content["runs"]]
    runs = [Run.open(run["path"]) for run in content["runs"]]
    spec = json.dumps(comparison(runs).to_dict())
    assert "median response time of pages" in spec.replace('", "', " ")
    shown = [figure_number(1000 * value if max(medians) < 1 else value) for value in medians]
    assert f"from {shown[0]} to {shown[1]}" in spec.replace('", "', " ")
    aqmlab("report", "runs", "-o", "report.md")
    page = Path("report.md").read_text()
    assert "Half of the responses of pages ended within" in page
    assert "class pages" in page
