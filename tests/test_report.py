"""Reports: what they say is what was measured, and nothing in them is taken as markup."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import altair
import numpy as np
import pypdf
import pytest
import vl_convert
from aqmlab import figures
from aqmlab._util.table import TableModel
from aqmlab.document.blocks import Table
from aqmlab.document.html import page as html_page
from aqmlab.document.sheet import Strip, paged, table
from aqmlab.engine.execute import execute
from aqmlab.errors import AqmlabError
from aqmlab.figures.files import svg
from aqmlab.figures.pdf import pdf
from aqmlab.reports import charts, html
from aqmlab.reports import write as report
from aqmlab.reports.content import compose
from aqmlab.reports.data import (
    CURVE_POINTS,
    PACKETS,
    TRACE_BINS,
    axis_limits,
    binned,
    distributions,
    traces,
)
from aqmlab.reports.fidelity import published_numbers
from aqmlab.reports.playground import _RANGES, fragment
from aqmlab.results.blocks import block_differences
from aqmlab.results.compare import differences
from aqmlab.results.groups import group
from aqmlab.results.run import Run
from aqmlab.results.sources import gather
from aqmlab.results.statistics import estimate
from aqmlab.scenario.scenario import Scenario
from conftest import SMALL, Cli
from made_runs import made_run
from report_runs import DROPTAIL, RED, real_runs

PAPER = """
paper = "A small paper"
scenario = "lab.toml"
seeds = [1]
[common]
title = "Small"
[quick]
[columns.loss_pct]
title = "loss (%)"
tolerance = { relative = 0.35 }
terms = [{ key = "links.bottleneck.forward.loss_rate", factor = 100.0 }]
[[tables]]
id = "1"
title = "Loss"
published = "published.csv"
row = "queue $queue"
compare = ["loss_pct"]
set = { "topology.bottleneck.discipline.limit" = "$queue packets" }
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return real_runs(tmp_path_factory.mktemp("runs"), seeds=(1, 2, 3))


@pytest.fixture(scope="module")
def pair(runs: list[Run]) -> list[Run]:
    return [run for run in runs if run.seed == 1]


class Page(HTMLParser):
    """Tables by their id as rows of texts, every address, and the text outside scripts."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text = ""
        self._tags: list[str] = []
        self._table: list[list[str]] = []
        self.source = file.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag == "table":
            self._table = self.tables.setdefault(dict(attrs).get("id") or "", [])
        if tag == "tr":
            self._table.append([])
        if tag in ("td", "th"):
            self._table[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self._tags and self._tags.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if {"script", "style"} & set(self._tags):
            return
        self.text += data
        if {"td", "th"} & set(self._tags):
            self._table[-1][-1] += data


def test_the_summary_says_what_the_run_measured(pair: list[Run], tmp_path: Path) -> None:
    page = Page(report.write(pair, tmp_path / "report.html"))
    head, *rows = page.tables["table-summary"]
    summary = pair[1].summary
    row = dict(zip(head, rows[1], strict=True))
    assert row["configuration"] == "red (5,15)"
    assert row["ended"] == f"{summary['responses']['all']['count']:,}"
    assert row["median (s)"] == f"{summary['responses']['all']['p50_s']:.3f}"
    head, *rows = page.tables["table-loaded"]
    row = dict(zip(head, rows[1], strict=True))
    assert row["link"] == "download"
    link = summary["links"]["bottleneck"]["forward"]
    assert row["loss (%)"] == f"{100 * link['loss_rate']:.2f}"
    [drop] = [row for row in page.tables["table-reasons"] if row[0] == "droptail 20"]
    assert drop[2:4] == ["dropped", "overflow"]
    assert drop[4] == f"{pair[0].summary['links']['bottleneck']['forward']['dropped_packets']:,}"
    assert 'kind = "red"' in page.text
    assert "How long do fetches and pages wait behind droptail 20 or red (5,15)?" in page.text


def test_a_grouped_table_without_rows_has_its_heads() -> None:
    """As of a card whose tests have no score."""
    table = TableModel("", ["test", "number"], ["candidate"], is_grouped=True)
    assert "candidate</th>" in html_page("A card", [Table(table)])


def test_calls_are_described_by_what_people_hear(tmp_path: Path) -> None:
    call = '[[traffic]]\nname = "call"\nkind = "voip"\ncalls = 1\n'
    call += 'rtt = { kind = "constant", rtt = "40 ms" }\n'
    made = execute(Scenario.from_toml(f"{SMALL}\n{call}"), tmp_path / "call")
    page = Page(report.write([made], tmp_path / "report.html"))
    score = made.summary["quality"]["call"]["mos_mean"]
    assert f"Calls of call have a mean opinion score of {score:.2f}." in page.text
    assert "Class call got" not in page.text


@pytest.mark.long
def test_many_configurations_are_left_to_the_tables(tmp_path: Path) -> None:
    own = "topology.bottleneck.discipline.limit"
    made = [
        execute(Scenario.from_toml(SMALL, [(own, f"{limit} packets")]), tmp_path / f"r{limit}")
        for limit in range(10, 17)
    ]
    few = Page(report.write(made[:6], tmp_path / "few.html"))
    assert few.text.count("Half of the responses") == 6
    many = Page(report.write(made, tmp_path / "many.html"))
    assert "Half of the responses" not in many.text
    assert len(many.tables["table-summary"]) == 8


@pytest.mark.long
def test_a_report_is_about_the_loaded_link(tmp_path: Path) -> None:
    """A full upload is not said to have held nothing."""
    office = SMALL.replace("[[traffic]]", '[[traffic]]\ndirection = "reverse"')
    own = "topology.bottleneck.reverse.discipline"
    made = [
        execute(Scenario.from_toml(office, [(own, name)]), tmp_path / name)
        for name in ("ared-auto", "droptail-240")
    ]
    page = Page(report.write(made, tmp_path / "report.html"))
    held = made[1].summary["links"]["bottleneck"]["reverse"]["queue_mean_packets"]
    assert held > 1
    assert f"The queue at bottleneck reverse held {held:.1f} packets on average" in page.text
    assert "bottleneck forward held" not in page.text
    assert [row[:2] for row in page.tables["table-loaded"][1:]] == [
        ["ared-auto", "bottleneck reverse"],
        ["droptail-240", "bottleneck reverse"],
    ]
    # The baseline is drop-tail, though it is the second.
    assert [row[0] for row in page.tables["table-differences"][1:]] == ["ared-auto"]
    assert "Differences to droptail-240, with 95 % intervals" in page.text
    assert "one seed: another may differ" in page.text
    found = traces(group(made))
    assert found is not None
    assert found.directions[0] == "bottleneck reverse"
    named = Page(report.write(made, tmp_path / "named.html", baseline="ared-auto"))
    assert "Differences to ared-auto, with 95 % intervals" in named.text
    with pytest.raises(AqmlabError, match="no run is called"):
        report.write(made, tmp_path / "wrong.html", baseline="nobody")


@pytest.mark.long
def test_scenarios_stand_apart(pair: list[Run], tmp_path: Path) -> None:
    """Each has its name, tables and charts; none shows runs of another section."""
    bulk = SMALL.partition("[[traffic]]")[0].replace("Small fetches", "Endless transfers") + (
        '[[traffic]]\nname = "files"\nkind = "bulk"\nflows = 2\n'
        'rtt = { kind = "constant", rtt = "50 ms" }\n'
    )
    queues = "topology.bottleneck.discipline"
    others = [
        execute(Scenario.from_toml(bulk, [(queues, name)]), tmp_path / name)
        for name in ("codel", "droptail-240")
    ]
    runs = [others[0], *pair, others[1]]
    titles = ["Endless transfers over a slow link", "Small fetches over a slow link"]
    found = compose(runs, tmp_path)
    assert [part.title for part in found.parts] == titles
    assert {change.baseline for change in found.parts[0].compared} == {"droptail-240"}
    assert {change.baseline for change in found.parts[1].compared} == {"droptail 20"}
    page = Page(report.write(runs, tmp_path / "report.html"))
    assert [row[0] for row in page.tables["table-s1-transfers"][1:]] == ["codel", "droptail-240"]
    assert [row[0] for row in page.tables["table-s2-summary"][1:]] == ["droptail 20", "red (5,15)"]
    assert "table-summary" not in page.tables
    identifiers = re.findall(r'<[^>]* id="([^"]+)"', page.source)
    assert len(identifiers) == len(set(identifiers))
    for title in titles:
        assert f"{title}</h2>" in page.source
    text = Path(report.write(runs, tmp_path / "report.md")).read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")][:2] == titles
    assert (tmp_path / "report_files" / "2-cdf.svg").exists()
    assert not (tmp_path / "report_files" / "1-cdf.svg").exists()
    for name in ("report.png", "report.pdf"):
        assert report.write(runs, tmp_path / name).stat().st_size > 10_000


def test_a_sweep_brings_its_baseline(aqmlab: Cli, small: Path) -> None:
    """Every point is compared with the one of its own load, whatever the names of the runs."""
    Path("two.toml").write_text(
        f'scenario = "{small.name}"\nbaseline = {{ queue = "codel" }}\n'
        '[[axes]]\nname = "queue"\nfield = "topology.bottleneck.discipline"\n'
        'values = ["droptail-240", "codel"]\n'
        '[[axes]]\nname = "rate"\nfield = "traffic.fetches.rate"\nvalues = ["20 /s", "30 /s"]\n'
    )
    assert aqmlab("sweep", "two.toml").status == 0
    assert aqmlab("report", "runs/sweeps/two", "-o", "two.html").status == 0
    page = Page(Path("two.html"))
    assert "What depends on queue and rate?" in page.text
    assert "<h1>two</h1>" in Path("two.html").read_text()
    rows = page.tables["table-differences"]
    assert rows[0][:2] == ["configuration", "against"]
    assert [row[:2] for row in rows[1:]] == [
        [f"queue = droptail-240, rate = {rate} /s", f"queue = codel, rate = {rate} /s"]
        for rate in (20, 30)
    ]


def test_the_page_needs_no_network(pair: list[Run], tmp_path: Path) -> None:
    page = Page(report.write(pair, tmp_path / "report.html"))
    files = [name for name in page.addresses if not name.startswith(("data:", "#"))]
    assert len(files) == 2 * 6
    assert all((tmp_path / name).exists() for name in files)
    assert not re.search(r"<link|@import|url\(\s*['\"]?https?:", page.source)
    assert "connect-src" not in page.source
    assert "default-src 'none'" in page.source


def test_seeds_of_a_configuration_are_taken_together(runs: list[Run]) -> None:
    droptail, red = group(runs)
    assert (droptail.label, red.label) == ("droptail 20", "red (5,15)")
    assert droptail.seeds == [1, 2, 3]
    medians = [run.summary["responses"]["all"]["p50_s"] for run in droptail.runs]
    found = droptail.estimate("responses", "all", "p50_s")
    assert found is not None
    assert found.mean == pytest.approx(np.mean(medians))
    assert found == estimate(medians, bounds=(0.0, math.inf))


def test_curves_are_exact_and_few(runs: list[Run]) -> None:
    groups = group(runs)
    found = distributions(groups)
    assert found is not None
    assert {curve.traffic for curve in found.curves} == {"all", "fetches", "pages"}
    curve = next(curve for curve in found.curves if curve.traffic == "all")
    tables = [run.responses for run in groups[0].runs]
    times = np.concatenate([table["response_s"].to_numpy() for table in tables if table])
    at, share = curve.cdf
    assert len(at) <= CURVE_POINTS[1]
    np.testing.assert_allclose(share, [np.mean(times <= t) for t in at], atol=1e-12)
    at, share = curve.ccdf
    np.testing.assert_allclose(share, [np.mean(times >= t) for t in at], atol=1e-12)
    assert curve.tail[-1] == times.max()
    np.testing.assert_allclose(curve.within, [np.mean(times <= t) for t in found.marks])


def test_the_time_axis_ends_where_the_curves_are_interesting(runs: list[Run]) -> None:
    limits, limit = axis_limits(group(runs))
    summaries = [run.summary["responses"]["all"] for run in runs]
    assert limit in limits
    assert limits[-1] >= max(summary["p99_s"] for summary in summaries)
    assert limit >= np.median([summary["p90_s"] for summary in summaries])


def test_traces_keep_extremes(pair: list[Run]) -> None:
    found = traces(group(pair))
    assert found is not None
    assert found.directions == ["download", "upload"]
    assert [trace.variable for trace in found.probabilities] == ["p_b"]
    queue = next(trace for trace in found.traces if trace.variable == "packets")
    table = pair[0].queue
    assert table is not None
    samples = table.to_pylist()
    packets = [row["packets"] for row in samples if row["direction"] == "forward"]
    assert len(queue.columns["time"]) <= TRACE_BINS[1]
    assert max(queue.columns["max"]) == max(packets)
    assert min(queue.columns["min"]) == min(packets)


def test_intervals_of_a_trace_are_equal_and_exact() -> None:
    time, value = np.arange(100) / 10, np.arange(100.0) % 7
    columns = binned(time, value, 10)
    assert columns["time"][0] == pytest.approx(0.45)
    assert columns["mean"][0] == pytest.approx(np.mean(value[:10]))
    assert [columns["min"][0], columns["max"][0]] == [0, 6]
    missing = np.array([1.0, np.nan, 3.0])
    assert binned(np.arange(3.0), missing, 4)["mean"] == [1, 3]
    assert binned(np.empty(0), np.empty(0), 4)["mean"] == []


def test_differences_of_several_seeds_are_paired(runs: list[Run]) -> None:
    groups = group(runs)
    changes = {(one.traffic, one.metric): one for one in differences(groups)}
    median = changes["all", "p50_s"]
    before, after = (group.values("p50") for group in groups)
    pairs = [after[seed] - before[seed] for seed in (1, 2, 3)]
    assert median.basis == "3 pairs of runs"
    assert median.difference == pytest.approx(np.mean(pairs))
    assert median.interval is not None
    expected = estimate(pairs)
    assert median.interval == pytest.approx((expected.low, expected.high))


def test_differences_of_one_pair_come_from_blocks_of_time(pair: list[Run]) -> None:
    changes = [one for one in differences(group(pair)) if one.traffic == "all"]
    expected = block_differences(pair[0], pair[1], "all")
    assert {one.metric: one.estimate for one in changes} == expected
    assert {one.basis for one in changes} == {"blocks of time of one pair of runs"}


def test_runs_without_tables_still_differ(tmp_path: Path) -> None:
    runs = real_runs(tmp_path, seeds=(1, 2), record="[]")
    page = Page(report.write(runs, tmp_path / "report.html"))
    assert page.tables["table-differences"][1][0] == "red (5,15)"
    assert "Response times by class" in page.text
    assert "to a thousandth of each time" in page.text


def test_runs_without_tables_have_their_curves_from_bins(tmp_path: Path) -> None:
    kept, rows = (
        distributions(group(real_runs(tmp_path / name, seeds=(1, 2), record=record)))
        for name, record in (("bins", "[]"), ("rows", '["responses"]'))
    )
    assert kept is not None
    assert rows is not None
    assert (kept.binned, rows.binned) == (True, False)
    assert len(kept.curves) == len(rows.curves) > 1
    for found, exact in zip(kept.curves, rows.curves, strict=True):
        assert (found.group, found.traffic, found.count) == (
            exact.group,
            exact.traffic,
            exact.count,
        )
        assert found.tail == pytest.approx(exact.tail, rel=2e-3)
        assert found.within == pytest.approx(exact.within, abs=0.02)


def test_other_users_are_said_to_be_others(tmp_path: Path) -> None:
    first = real_runs(tmp_path / "a", [DROPTAIL], seeds=(1, 2))
    second = real_runs(tmp_path / "b", [RED], seeds=(3, 4))
    found = compose([*first, *second], tmp_path)
    assert not found.paired
    assert {one.basis for one in found.compared} == {"2 and 2 runs, other users"}


def test_titles_are_text(tmp_path: Path) -> None:
    title = "</title></script><script>alert(1)</script>|`*"
    [run] = real_runs(tmp_path / "runs", [DROPTAIL], title=title)
    page = Page(report.write([replace(run, label='"><img src=x>')], tmp_path / "report.html"))
    assert "<script>alert" not in page.source
    assert "<img src=x" not in page.source
    assert title in page.text
    text = report.write([run], tmp_path / "report.md").read_text(encoding="utf-8")
    assert "<script>" not in text.partition("```")[0].replace("\\<script\\>", "")
    for kind in ("pdf", "png"):
        report.write([run], tmp_path / f"report.{kind}")


def test_runs_without_records_still_make_a_page(tmp_path: Path) -> None:
    page = Page(report.write([made_run(tmp_path / "bare")], tmp_path / "report.html"))
    assert "Summary" in page.text
    assert "Response times\n" not in page.text
    assert 'id="charts"' not in page.source


@pytest.mark.long
def test_a_hundred_runs_stay_small(runs: list[Run], tmp_path: Path) -> None:
    many = [
        replace(runs[k % 6], label=f"queue {k}", scenario={**runs[0].scenario, "number": k})
        for k in range(100)
    ]
    place = report.write(many, tmp_path / "report.html")
    assert place.stat().st_size < 5e6
    page = Page(place)
    assert "8 of 100 shown" in page.text
    assert len(page.tables["table-summary"]) == 101


def test_folders_of_runs_are_gathered_once(runs: list[Run], tmp_path: Path) -> None:
    folder = runs[0].path.parent
    found = gather([folder, runs[0].path, folder / "."])
    assert [run.path for run in found] == sorted(run.path for run in runs)
    assert [run.path.name for run in gather([runs[1].path, folder])][:2] == ["q0-s2", "q0-s1"]
    (tmp_path / "sweep" / "runs").mkdir(parents=True)
    (tmp_path / "sweep" / "runs" / "one").symlink_to(runs[0].path)
    assert len(gather([tmp_path / "sweep"])) == 1


def test_the_runs_of_a_sweep_keep_their_labels(
    aqmlab: Cli, runs: list[Run], tmp_path: Path
) -> None:
    entries = []
    for run in runs[:4]:
        key = run.metadata["key"]
        place = tmp_path / "store" / key[:2] / key
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(run.path)
        label = "short" if run.label.startswith("droptail") else "early"
        entries.append({"label": f"{label}, seed {run.seed}", "key": key})
    sweep = tmp_path / "sweep"
    sweep.mkdir()
    (sweep / "sweep.json").write_text(json.dumps({"store": "../store", "runs": entries}))
    assert [(one.label, one.seeds) for one in group(gather([sweep]))] == [
        ("short", [1, 2, 3]),
        ("early", [1]),
    ]
    for wrong, message in (
        ("{}", "does not name"),
        ('{"store": "", "runs": []}', "without finished"),
    ):
        (sweep / "sweep.json").write_text(wrong)
        answer = aqmlab("report", "sweep")
        assert (answer.status, message in answer.err) == (2, True)


def test_the_same_run_twice_is_an_error(tmp_path: Path) -> None:
    runs = [run for name in "ab" for run in real_runs(tmp_path / name, [DROPTAIL])]
    with pytest.raises(AqmlabError, match="is the same run as"):
        report.write(runs, tmp_path / "report.html")


def test_wrong_input_is_one_sentence(aqmlab: Cli, pair: list[Run], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").write_text("")
    run = pair[0].path
    cases = {
        ("nothing",): "nothing: there is no such run directory",
        ("empty",): "empty: is not a run directory: no readable metadata.json",
        (
            run,
            "-o",
            "report.doc",
        ): "report.doc: a report is written as .html, ",
        (run, "-o", "a.pdf", "--format", "md"): "a.pdf: its name does not fit --format md",
        (run, "--format", "doc"): '--format: found "doc"; allowed: html, md, pdf, png',
        (run, "-o", "folder.html"): "folder.html: is a folder; a report is a file",
        (run, "-o", "file/a.html"): "file/a.html: cannot be written",
    }
    for arguments, message in cases.items():
        before = sorted(tmp_path.rglob("*"))
        answer = aqmlab("report", *arguments)
        assert answer.status == 2, arguments
        assert answer.err.startswith(f"aqmlab: {message}"), answer.err
        assert answer.err.count("\n") == 1
        assert answer.out == ""
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(
    aqmlab: Cli, pair: list[Run], tmp_path: Path
) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    answer = aqmlab("report", pair[0].path, "-o", "closed/a.html")
    assert (answer.status, "Permission denied" in answer.err) == (2, True)


def test_a_missing_or_broken_table_is_an_error(aqmlab: Cli, tmp_path: Path) -> None:
    [run] = real_runs(tmp_path / "runs", [DROPTAIL])
    file = run.path / "responses.parquet"
    file.write_bytes(b"PAR1 nonsense")
    answer = aqmlab("report", run.path)
    assert answer.status == 2
    assert "is damaged: responses.parquet has" in answer.err
    file.unlink()
    answer = aqmlab("report", run.path)
    assert answer.status == 2
    assert "is damaged: responses.parquet is missing" in answer.err
    assert not list(tmp_path.glob("*report*"))


@pytest.mark.long
def test_every_format_says_the_same(aqmlab: Cli, pair: list[Run], tmp_path: Path) -> None:
    import pypdf

    median = f"{pair[1].summary['responses']['all']['p50_s']:.3f}"
    options = ("--title", "Two queues", "--question", "Which one?")
    for kind in ("html", "md", "pdf", "png"):
        answer = aqmlab("report", *(run.path for run in pair), "--format", kind, *options)
        assert answer.out == f"report: report.{kind}\n", answer.err
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    book = pypdf.PdfReader(tmp_path / "report.pdf")
    for words in (text, Page(tmp_path / "report.html").text, book.pages[0].extract_text()):
        for wanted in ("Two queues", "Which one?", "red (5,15)", median):
            assert wanted in words.replace("\\", "")
    figures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    first = ("cdf", "ccdf", "queue", "probability", "delay", "wait")
    names = (*first, "throughput-delay", "classes")
    assert figures == [f"report_files/{name}.svg" for name in names]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(re.findall(r'<figure class="picture"><svg role="img" aria-label="\w', page)) == 4
    assert page.count('fill="var(--run-1)"') > 0  # they follow the page's theme
    assert all((tmp_path / name).read_text().startswith("<svg") for name in figures)
    width, height = book.pages[0].mediabox.width, book.pages[0].mediabox.height
    assert (round(width), round(height)) == (842, 596)  # A4, landscape, in points
    assert book.metadata is not None
    assert book.metadata.title == "Two queues"
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_ends_where_the_next_strip_does_not_fit() -> None:
    head = Strip(10, "head")
    rows = [Strip(10, f"row {k}", head=head) for k in range(8)]
    pages = paged([Strip(5, ""), Strip(20, "title", below=40), *rows], 60)
    assert [[strip.drawing for strip in page] for page in pages] == [
        ["title", "row 0", "row 1", "row 2", "row 3"],
        ["head", "row 4", "row 5", "row 6", "row 7"],
    ]


def test_the_same_runs_give_the_same_bytes(pair: list[Run], tmp_path: Path) -> None:
    first, second = (report.write(pair, tmp_path / f"{name}.html") for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_its_charts_are_vega_lite(pair: list[Run], tmp_path: Path) -> None:
    """What is drawn is not checked by the way: that takes longer than drawing."""
    content = compose(pair, tmp_path)
    assert content.distributions is not None
    assert content.traces is not None
    for live in (True, False):
        style = charts.Style(content.drawn, live=live)
        for spec in (
            charts.cdf(content.distributions, style),
            charts.ccdf(content.distributions, style),
            charts.trace(content.traces, style, PACKETS),
        ):
            altair.Chart.from_dict(spec)  # checks it


@pytest.mark.long
def test_pictures_on_white_are_those_of_the_light_theme(pair: list[Run], tmp_path: Path) -> None:
    [picture] = [one for one in compose(pair, tmp_path).pictures if one.name == "delay"]
    assert picture.still == svg(figures.delay(pair).to_dict())
    assert "var(--run-1)" in picture.inline


def test_each_picture_is_drawn_once(
    pair: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the page's colours; on white it is the same drawing."""
    drawn: list[str] = []
    draw = vl_convert.vegalite_to_svg

    def counted(spec: dict[str, Any], **options: Any) -> str:
        drawn.append(" ".join(spec.get("title", {}).get("text", "")))
        return draw(spec, **options)

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", counted)
    pictures = compose(pair, tmp_path).pictures
    assert len(pictures) > 2
    assert drawn == [one.title for one in pictures]


def test_progress_grows_to_one(pair: list[Run], tmp_path: Path) -> None:
    shares: list[float] = []
    report.write(pair, tmp_path / "report.html", progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 5


@pytest.mark.long
def test_the_libraries_of_the_page_are_kept(
    pair: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path / "cache"))
    html._bundle.cache_clear()
    first = report.write(pair, tmp_path / "a.html").read_bytes()
    [kept] = (tmp_path / "cache").glob("bundle-*.js")
    monkeypatch.setattr(vl_convert, "javascript_bundle", None)
    html._bundle.cache_clear()
    assert report.write(pair, tmp_path / "b.html").read_bytes() == first
    assert kept.read_text().partition("\n")[2] in first.decode()


@pytest.mark.long
def test_a_cache_that_cannot_be_written_stops_no_report(
    pair: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path / "cache"))
    html._bundle.cache_clear()
    assert report.write(pair, tmp_path / "a.html").exists()


def test_a_reproduction_judges_its_runs(tmp_path: Path) -> None:
    from aqmlab.papers.reproduce import reproduce

    paper = tmp_path / "paper"
    paper.mkdir()
    (paper / "lab.toml").write_text(SMALL)
    (paper / "published.csv").write_text("queue,loss_pct\n5,99.0\n20,1.00\n")
    (paper / "tables.toml").write_text(PAPER)
    result = reproduce(str(paper), out=tmp_path / "out", jobs=1)
    assert result.failed == {}
    [run] = [
        run
        for run in gather([tmp_path / "out"])
        if run.scenario["topology"]["bottleneck"]["forward"]["discipline"]["limit"] == "5 packets"
    ]
    # The scoreboard names the paper, which must be found again from here.
    board = tmp_path / "out" / "scoreboard.json"
    board.write_text(board.read_text().replace('"paper": "paper"', f'"paper": "{paper}"'))
    [verdict] = published_numbers([run])
    assert (verdict.row, verdict.published, verdict.verdict) == ("queue 5", "99.0", "outside")
    loss = 100 * run.summary["links"]["bottleneck"]["forward"]["loss_rate"]
    assert verdict.ours == f"{loss:.1f}"
    page = Page(report.write([run], tmp_path / "report.html"))
    assert "0 of 1 scored cells" in page.text
    assert page.tables["table-fidelity"][1][3:] == ["99.0", verdict.ours, "outside"]
    elsewhere = real_runs(tmp_path / "other", [DROPTAIL])
    assert published_numbers(elsewhere) == []


def test_runs_of_a_folder_come_by_label_and_drop_tail_first(tmp_path: Path) -> None:
    """Not by the names of their folders, which hold a hash."""
    queues = {
        "a": "codel",
        "b": '{kind = "droptail", limit = "20 packets"}',
        "c": '{kind = "droptail", limit = "9 packets"}',
    }
    for name, queue in queues.items():
        scenario = Scenario.from_toml(SMALL, [("topology.bottleneck.discipline", queue)])
        execute(scenario, tmp_path / "runs" / name)
    assert [run.label for run in gather([tmp_path / "runs"])] == [
        "droptail 9",
        "droptail 20",
        "codel",
    ]
    chosen = [tmp_path / "runs" / name for name in "abc"]
    assert [run.path.name for run in gather(chosen)] == ["a", "b", "c"]


SHOWN = """
seed = 3
[measure]
warm_up = "0 s"
duration = "3 s"
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "5 Mbit/s"
discipline = { kind = "codel", limit = "100 packets", target = "7 ms" }
[topology.bottleneck.forward]
delay = "5 ms"
[topology.bottleneck.reverse]
rate = "1 Gbit/s"
discipline = { kind = "droptail", limit = "10000 packets" }
[[traffic]]
name = "transfers-1"
kind = "bulk"
flows = 2
start_within = "2 s"
direction = "reverse"
[traffic.tcp]
profile = "linux"
congestion_control = "prague"
ecn = true
ect = "ect1"
ect_on = "all-data"
ecn_echo = "accurate"
[traffic.rtt]
kind = "constant"
rtt = "25 ms"
[[traffic]]
name = "call"
kind = "voip"
calls = 1
rtt = { kind = "constant", rtt = "45 ms" }
[[changes]]
at = "1.5 s"
key = "bottleneck.forward.rate"
value = "2 Mbit/s"
"""
"""As the playground saves it."""


def test_the_playground_opens_what_it_can_show(aqmlab: Cli, tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SHOWN)
    fields = parse_qs(fragment(scenario.data) or "")
    assert fields["transfers"] == ["2,prague,20,ecn,up", "0,reno,40"]
    assert fields["change"] == ["0;1.5;bottleneck.forward.rate;2 Mbit/s"]
    assert {"target=7 ms", "codel"} <= set(fields["lane"][0].split(";"))
    expected = {"rate": "5", "buffer": "240", "delay": "5", "call": "1", "web": "0", "seed": "3"}
    assert {name: fields[name][0] for name in expected} == expected
    for other in (
        [("topology.bottleneck.forward.loss", "0.01")],
        [("topology.bottleneck.forward.rate", "500 Mbit/s")],
        [("traffic.transfers-1.tcp.initial_window", "4")],
        [("traffic.call.name", "phone")],
    ):
        assert fragment(scenario.with_overrides(other).data) is None, other
    execute(scenario, tmp_path / "run")
    site = tmp_path / "a site"
    site.mkdir()
    (site / "index.html").touch()
    page = tmp_path / "report.html"
    for place, link in (
        ("https://example.org/p/", "https://example.org/p/#rate=5&amp;"),
        (str(site), "a%20site/index.html#rate=5&amp;"),
    ):
        aqmlab("report", "run", "-o", page, "--playground", place)
        assert f'<a href="{link}' in page.read_text()
    aqmlab("report", "run", "-o", page)
    assert "Open in the playground" not in page.read_text()
    before = page.read_text()
    failed = aqmlab("report", "run", "-o", page, "--playground", "nowhere")
    assert (failed.status, page.read_text()) == (2, before)
    assert failed.err.startswith('aqmlab: --playground: found "nowhere", where there is no page')


def test_the_sliders_of_the_playground_are_known() -> None:
    source = (Path(__file__).parents[1] / "web" / "src" / "state.ts").read_text()
    ranges = re.search(r"RANGES = \{(.*?)\}", source, re.DOTALL)
    assert ranges is not None
    found = re.findall(r"(\w+): \[([\d.]+), ([\d.]+)\]", ranges[1])
    assert {name: (float(low), float(high)) for name, low, high in found} == dict(_RANGES)


def test_a_brief_is_one_page_of_a4(tmp_path: Path, aqmlab: Cli) -> None:
    """With long names and many configurations too; it has the answer and how to repeat it."""
    long = "A title that goes on and on, about users and lines and queues, " * 6
    queues = [DROPTAIL, RED, "fq-codel", "pie", "codel", "sfq", "drr"]
    folder = tmp_path / ("a folder with a long name " * 6)
    runs = real_runs(folder, queues, title=long)
    for chosen in (runs, runs[:2], runs[:1]):
        made = report.write(chosen, tmp_path / "brief.pdf", brief=True)
        [page] = pypdf.PdfReader(made).pages
        assert [round(float(side)) for side in page.mediabox[2:]] == [596, 842]
        words = page.extract_text()
        assert "How sure is this?" in words
        assert "To repeat it" in words
        assert "engine" in words
        for queue in ("drop-tail", "RED", "FQ-CoDel", "DRR")[: len(chosen)]:
            assert queue in words
    text = report.write(runs[:2], tmp_path / "brief.html", brief=True).read_text()
    assert "each: another may differ" in text
    assert "aqmlab compare" in text
    assert text.count('<th scope="row">') == 2
    refused = aqmlab("report", folder, "--brief", "-o", "brief.md")
    assert refused.status == 2
    assert "--brief: found a page as md" in refused.err


def test_wide_tables_are_split_and_stay_readable() -> None:
    """No table is smaller than eight tenths; every part has the columns of words."""
    wide = TableModel("Wide")
    wide.add_key("name")
    for k in range(30):
        wide.add_number(f"number {k}")
    wide.add_row("a name", *("1,234,567.89" for _ in range(30)))
    drawing = "".join(strip.drawing for strip in table({}, wide))
    scales = [float(found) for found in re.findall(r"scale\(([\d.]+)\)", drawing)]
    assert min(scales) >= 0.8
    assert drawing.count(">a name<") > 1
    for k in range(30):
        assert drawing.count(f">number {k}<") == 1


@pytest.mark.long
def test_a_pdf_holds_the_scenarios_as_files(tmp_path: Path) -> None:
    """They are whole there, and take no pages."""
    runs = real_runs(tmp_path)
    book = pypdf.PdfReader(report.write(runs, tmp_path / "report.pdf"))
    [text, _] = [parts[0].decode() for parts in book.attachments.values()]
    assert text == (runs[0].path / "scenario.toml").read_text()
    assert "[topology.bottleneck]" not in "".join(page.extract_text() for page in book.pages)


@pytest.mark.long
def test_a_pdf_made_again_has_the_same_bytes(tmp_path: Path) -> None:
    """Of a report, its brief and a figure; the converter orders fonts by chance."""
    runs = real_runs(tmp_path)
    for name, brief in (("report.pdf", False), ("brief.pdf", True)):
        made = {report.write(runs, tmp_path / name, brief=brief).read_bytes() for _ in range(4)}
        assert len(made) == 1, name
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40">{}</svg>'.format(
        "".join(
            f'<text x="1" y="{9 * row}" font-family="{family}">{family}</text>'
            for row, family in enumerate(("serif", "sans-serif", "monospace"), 1)
        )
    )
    assert len({pdf([drawing]) for _ in range(8)}) == 1


@pytest.mark.long
def test_no_heading_stands_alone_at_the_foot_of_a_page(tmp_path: Path) -> None:
    """Each heading of pictures has its first picture on the same page."""
    book = pypdf.PdfReader(report.write(real_runs(tmp_path), tmp_path / "report.pdf"))
    headings = ("Summary", "Differences", "Response times", "Queues", "Figures", "Drops", "Runs")
    for page in book.pages:
        lines = [line.strip() for line in page.extract_text().splitlines() if line.strip()]
        body = [line for line in lines if not re.search(r"page \d+ of \d+$", line)]
        last = body[-1] if body else ""
        assert last not in headings or len(page.images) > 0


@pytest.mark.parametrize("kept_bytes", [0, 300, -1])
def test_a_damaged_script_in_the_cache_is_made_again(
    kept_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut, empty, or with a line more."""
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path))
    html._bundle.cache_clear()
    whole = html._bundle("export const one = 1;")
    [kept] = tmp_path.glob("bundle-*.js")
    text = kept.read_text()
    kept.write_text(f"{text}// more" if kept_bytes < 0 else text[:kept_bytes])
    html._bundle.cache_clear()
    assert html._bundle("export const one = 1;") == whole
    assert kept.read_text() == text
    html._bundle.cache_clear()
