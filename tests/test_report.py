"""Reports: complete, self-contained, and alive in a real browser."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import numpy as np
import pytest
from aqmlab import report
from aqmlab.errors import AqmlabError
from made_runs import made_run

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab.runs import Run

TIMES = np.random.default_rng(1).exponential(1.0, 500)


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    queue = np.arange(600) % 121
    return [
        made_run(tmp_path / "a", label="droptail 120", times=TIMES, queue=queue),
        made_run(tmp_path / "b", label="red (30,90)", times=2 * TIMES, queue=queue // 2),
    ]


class Page(HTMLParser):
    """Text outside scripts, table rows, and every address of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._skipped = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        self._skipped = tag in ("script", "style")
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        self._skipped = self._skipped and tag not in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.text += data
            if data.strip() and self.rows:
                self.rows[-1].append(data.strip())


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def test_the_page_holds_what_ran(runs: list[Run], tmp_path: Path) -> None:
    page = read(report.write(runs, tmp_path / "report.html"))
    starts = [row[:3] for row in page.rows]
    assert ["droptail 120: bottleneck forward", "100,000", "4.00"] in starts
    assert ["droptail 120: browsers", "500", f"{TIMES.mean():.3f}"] in starts
    assert "red (30,90): all" not in page.text
    assert ["droptail 120: bottleneck forward", "dropped", "overflow", "4,000"] in page.rows
    assert "seed = 1" in page.text
    assert '"cpu_s": 0.25' in page.text


def test_the_page_needs_no_network(runs: list[Run], tmp_path: Path) -> None:
    page = read(report.write(runs, tmp_path / "report.html"))
    assert page.addresses
    assert all(address.startswith("data:") for address in page.addresses)


def test_runs_without_records_still_make_a_page(tmp_path: Path) -> None:
    page = read(report.write([made_run(tmp_path / "bare")], tmp_path / "report.html"))
    assert "Summaries" in page.text
    assert "Figures" not in page.text


def test_titles_cannot_inject_markup(tmp_path: Path) -> None:
    run = made_run(tmp_path / "a", title="</title><script>alert(1)</script>", times=TIMES)
    text = report.write([run], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text


def test_other_suffixes_are_refused(runs: list[Run], tmp_path: Path) -> None:
    with pytest.raises(AqmlabError, match=r"its name ends in \.html"):
        report.write(runs, tmp_path / "report.pdf")
    with pytest.raises(AqmlabError, match="at least one run"):
        report.write([], tmp_path / "report.html")


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


@pytest.mark.skipif(BROWSER is None, reason="no chromium is installed")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_browser_draws_the_figures(runs: list[Run], tmp_path: Path, scripts: bool) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = report.write(runs, tmp_path / "report.html")
    asked: list[str] = []
    wrong: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_context(java_script_enabled=scripts).new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text))
        page.goto(path.as_uri())
        chart = "figure .vega-embed svg.marks" if scripts else "figure img"
        page.locator(chart).nth(2).wait_for()
        assert page.locator(chart).count() == 3
        if scripts:
            assert page.locator("figure img").count() == 0
            curves = page.locator("#figure-cdf svg.marks g.mark-line path")
            assert curves.count() == len(runs)
            assert all(len(path.get_attribute("d")) > 1000 for path in curves.all())
        else:
            sizes = page.locator(chart).evaluate_all("all => all.map(one => one.naturalWidth)")
            assert min(sizes) > 300
        browser.close()
    assert [address for address in asked if not address.startswith("data:")] == [path.as_uri()]
    assert wrong == []
