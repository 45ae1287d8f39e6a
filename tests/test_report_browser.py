"""The report in a real browser: it draws, toggles, reads out, prints, and is accessible."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aqmlab.reports import write as report
from conftest import PHONE
from report_runs import real_runs

WIDE = {"width": 1280, "height": 900}
AXIS = "#chart-cdf svg"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    return report.write(real_runs(folder, seeds=(1, 2)), folder / "report.html")


class Visit:
    """A visit of a page, and what must not happen on it."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": WIDE, **options})
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.address = file.as_uri()
        self.page.goto(self.address)
        if options.get("java_script_enabled", True):
            self.page.locator("html[data-ready=all]").wait_for(state="attached")

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        outside = [url for url in self.asked if not url.startswith(("data:", "blob:"))]
        self.context.close()
        if error is None:
            assert outside == [self.address]
            assert self.wrong == []

    def curves(self, chart: str = "#chart-cdf") -> list[str]:
        """The drawn lines."""
        lines = self.page.locator(f"{chart} svg .mark-line path").all()
        return [line.get_attribute("d") or "" for line in lines]

    def colour(self, selector: str, name: str = "color") -> str:
        script = "(one, name) => getComputedStyle(one)[name]"
        return str(self.page.locator(selector).first.evaluate(script, name))

    def open_details(self) -> None:
        """Opens everything that can be unfolded."""
        self.page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")

    def overflow(self) -> int:
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(script))


def test_curves_are_drawn_and_toggled(browser: Any, file: Path) -> None:
    with Visit(browser, file) as visit:
        both = visit.curves()
        assert len(both) == len(visit.curves("#chart-ccdf")) == 2
        assert all(len(line) > 500 for line in both)
        visit.page.get_by_role("checkbox", name="droptail 20").uncheck()
        assert visit.curves() == both[1:]
        assert len(visit.curves("#chart-ccdf")) == 1
        assert visit.page.locator("#shown").inner_text() == "1 of 2 shown"
        visit.page.get_by_role("button", name="none", exact=True).click()
        assert visit.curves() == []
        visit.page.get_by_role("button", name="all", exact=True).click()
        assert visit.curves() == both


@pytest.mark.long
def test_class_and_axis_can_be_chosen(browser: Any, file: Path) -> None:
    with Visit(browser, file) as visit:
        before = visit.curves()
        visit.page.locator("#traffic").select_option("pages")
        pages = visit.curves()
        assert len(pages) == 2
        assert pages != before
        shortest = visit.page.locator("#limit option").first.get_attribute("value") or ""
        visit.page.locator("#limit").select_option(index=0)
        assert visit.curves() != pages
        axis = visit.page.locator(f"{AXIS} .role-axis", has_text="response time (s)")
        labels = axis.locator(".role-axis-label text")
        assert max(map(float, labels.all_text_contents())) == float(shortest)


@pytest.mark.long
def test_pointing_reads_all_curves(browser: Any, file: Path) -> None:
    with Visit(browser, file) as visit:
        tip = visit.page.locator("#tip")
        assert not tip.is_visible()
        visit.page.locator("#chart-cdf").scroll_into_view_if_needed()
        axis = visit.page.locator(f"{AXIS} .role-axis", has_text="response time (s)")
        box = axis.locator(".role-axis-domain line").bounding_box()
        assert box
        visit.page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] - 100)
        text = tip.inner_text()
        limit = float(visit.page.locator("#limit").input_value())
        assert float(text.split()[0]) == pytest.approx(limit / 4, rel=0.01)
        cursor = visit.page.locator("#chart-cdf .cursor").bounding_box()
        assert cursor
        assert cursor["x"] == pytest.approx(box["x"] + 0.25 * box["width"], abs=1.5)
        assert cursor["y"] + cursor["height"] == pytest.approx(box["y"], abs=2)
        assert "droptail 20" in text
        assert "red (5,15)" in text
        shares = [float(value) for value in re.findall(r"([\d.]+) %", text)]
        assert len(shares) == 2
        assert all(0 < share <= 100 for share in shares)
        assert shares == sorted(shares, reverse=True)
        visit.page.mouse.move(2, 2)
        assert not tip.is_visible()


def test_the_keyboard_reaches_everything(browser: Any, file: Path) -> None:
    with Visit(browser, file) as visit:
        chart = visit.page.locator("#chart-ccdf .plot")
        chart.focus()
        visit.page.keyboard.press("Home")
        visit.page.keyboard.press("Shift+ArrowRight")
        assert chart.get_attribute("aria-valuenow") == "10"
        assert "red (5,15) " in (chart.get_attribute("aria-valuetext") or "")
        assert visit.page.locator("#tip").is_visible()
        visit.page.keyboard.press("Escape")
        assert not visit.page.locator("#tip").is_visible()
        visit.page.get_by_role("checkbox", name="red (5,15)").focus()
        visit.page.keyboard.press("Space")
        assert len(visit.curves()) == 1
        visit.page.keyboard.press("Control+Home")
        visit.page.locator(".skip").focus()
        assert visit.page.locator(".skip").bounding_box()["x"] >= 0


@pytest.mark.long
def test_queues_and_probabilities_are_traced(browser: Any, file: Path) -> None:
    with Visit(browser, file) as visit:
        visit.page.locator("#queues").scroll_into_view_if_needed()
        visit.page.locator("#inner-1 svg .mark-line path").wait_for()
        assert visit.page.locator("#traces h3").all_inner_texts() == [
            "droptail 20",
            "red (5,15): packets, p_b",
        ]
        forward = visit.curves("#trace-0")
        visit.page.locator("#variable").select_option("avg")
        assert "red (5,15): packets, avg" in visit.page.locator("#traces").inner_text()
        visit.page.locator("#direction").select_option("upload")
        assert visit.curves("#trace-0") != forward
        visit.page.get_by_role("checkbox", name="droptail 20").uncheck()
        assert not visit.page.locator("#trace-0").is_visible()


def test_themes_follow_the_system_and_the_button(browser: Any, file: Path) -> None:
    with Visit(browser, file, color_scheme="dark") as visit:
        dark = visit.colour("body", "backgroundColor")
        line = visit.colour(f"{AXIS} .mark-line path", "stroke")
        visit.page.locator("#theme").click()
        assert visit.page.locator("#theme").get_attribute("aria-label") == "Colours: light"
        assert visit.colour("body", "backgroundColor") != dark
        assert visit.colour(f"{AXIS} .mark-line path", "stroke") != line
        visit.page.locator("#theme").click()
        assert visit.colour("body", "backgroundColor") == dark
        assert max(map(int, re.findall(r"\d+", dark)[:3])) < 60


@pytest.mark.long
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_nothing_is_wider_than_the_window(browser: Any, file: Path, size: Any) -> None:
    with Visit(browser, file, viewport=size) as visit:
        visit.open_details()
        assert visit.overflow() <= 0
        box = visit.page.locator(AXIS).bounding_box()
        assert box
        assert box["width"] > 0.7 * min(size["width"], 600)


@pytest.mark.long
def test_print_is_black_on_white_without_controls(browser: Any, file: Path) -> None:
    with Visit(browser, file, color_scheme="dark") as visit:
        visit.page.emulate_media(media="print")
        assert visit.colour("body", "backgroundColor") == "rgb(255, 255, 255)"
        assert visit.colour("h1") == "rgb(26, 28, 32)"
        assert visit.colour(f"{AXIS} .mark-line path", "stroke") == "rgb(0, 114, 178)"
        for selector in ("#controls", ".top", "#chart-cdf .save"):
            assert not visit.page.locator(selector).is_visible()
        assert len(visit.curves("#trace-0")) == 1  # although nobody scrolled there
        assert len(visit.page.pdf(format="A4")) > 20_000


@pytest.mark.long
def test_figures_can_be_saved(browser: Any, file: Path, tmp_path: Path) -> None:
    with Visit(browser, file) as visit:
        for kind in ("SVG", "PNG"):
            with visit.page.expect_download() as download:
                visit.page.get_by_label(f"Save as {kind}: Tail of the response times").click()
            download.value.save_as(tmp_path / kind)
        picture = (tmp_path / "SVG").read_text(encoding="utf-8")
        assert "var(" not in picture
        assert picture.count("#0072b2") >= 2  # its curve and its legend
        assert "red (5,15)" in picture
        assert (tmp_path / "PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Any, file: Path, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe check: no axe"
    )
    with Visit(browser, file, color_scheme=scheme) as visit:
        visit.open_details()
        visit.page.locator("#queues").scroll_into_view_if_needed()
        visit.page.locator("#inner-1 svg .mark-line path").wait_for()
        found = axe.Axe().run(visit.page).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []


@pytest.mark.long
def test_pictures_stand_in_without_scripts(browser: Any, file: Path) -> None:
    with Visit(browser, file, java_script_enabled=False) as visit:
        pictures = visit.page.locator("figure img").all()
        assert len(pictures) == 4
        assert all(picture.get_attribute("alt") for picture in pictures)
        assert all((picture.bounding_box() or {})["width"] > 300 for picture in pictures)
        assert not visit.page.locator("#controls").is_visible()


@pytest.mark.long
def test_other_words_do_not_break_the_script(browser: Any, tmp_path: Path) -> None:
    name = """a"b'c</script>\\u2028 [x]=y"""
    queue = '{ kind = "droptail", limit = "20 packets" }'
    [run] = real_runs(tmp_path / "runs", [queue], title=name)
    page = report.write([replace(run, label=name)], tmp_path / "report.html")
    with Visit(browser, page) as visit:
        assert len(visit.curves()) == 1
        visit.page.locator("#controls input[name=run]").uncheck()
        assert visit.curves() == []
        assert visit.page.locator("h1").inner_text() == name
