"""The documentation site: built without a warning, right in a real browser, without a server.

`make test` leaves this file out; `make test-site` runs it.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aqmlab
import pytest
from conftest import PHONE, ROOT
from site_questions import QUESTIONS

pytest.importorskip("sphinx", reason="NO SITE TESTS RAN: no sphinx (requirements-docs.txt)")

WIDE = {"width": 1280, "height": 900}
PAGES = (
    "index",
    "tutorial",
    "how-to/cookbook",
    "notebooks/two-queues",
    "scenario/measure",
    "disciplines/codel",
    "python/functions",
    "gallery",
    "gym",
    "c-interface",
    "search",
)
"""One of each kind."""
WIDE_PAGES = ("cli", "metrics", "scenario/discipline", "fidelity", "tcp-stack")
"""Pages with wide tables."""


@pytest.fixture(scope="module")
def site() -> Path:
    """The folder of the pages. What was built before and is the same is not built again."""
    call = [sys.executable, "docs/site/build.py"]
    answer = subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return ROOT / "out" / "site" / "html"


class Visit:
    """A visit of the site, and what must not happen on it."""

    def __init__(self, browser: Any, site: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": WIDE, **options})
        self.page = self.context.new_page()
        self.site = site
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self.on_console)

    def on_console(self, message: Any) -> None:
        """The theme logs what it does ("[PST]: ..."); these messages do not matter."""
        if message.type != "log" or not message.text.startswith("[PST]"):
            self.wrong.append(message.text)

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        outside = [url for url in self.asked if not url.startswith((self.site.as_uri(), "data:"))]
        self.context.close()
        if error is None:
            assert outside == []
            assert self.wrong == []

    def go(self, page: str) -> None:
        self.page.goto(f"{self.site.as_uri()}/{page}.html")

    def colour(self, selector: str, name: str = "color") -> str:
        script = "(one, name) => getComputedStyle(one)[name]"
        return str(self.page.locator(selector).first.evaluate(script, name))


# --- what was built -------------------------------------------------------------------------------


def test_no_page_asks_other_machines(site: Path) -> None:
    loaded = "script|link|img|iframe|source"
    fetched = re.compile(rf'<(?:{loaded})\b[^>]*\b(?:src|href)="(?:https?:)?//')
    for page in site.rglob("*.html"):
        assert fetched.findall(page.read_text()) == [], page
    for style in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", style.read_text()) == []


def test_every_table_of_the_scenario_has_its_place(site: Path) -> None:
    headings = re.findall(r"^## (`.*)$", (ROOT / "docs/scenario.md").read_text(), re.MULTILINE)
    pages = "".join(page.read_text() for page in (site / "scenario").glob("*.html"))
    shown = [re.sub(r"<[^>]+>", "", found) for found in re.findall(r"<h2>(.*?)<a class", pages)]
    wanted = [heading.replace("`", "") for heading in headings]
    assert sorted(name.replace("&quot;", '"') for name in shown) == sorted(wanted)


def test_options_stay_what_a_reader_types(site: Path) -> None:
    page = (site / "cli.html").read_text()
    assert "With --trace, the plug-in" in page
    assert "\N{EN DASH}" not in page


def test_everything_public_is_explained(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "python").glob("*.html"))
    for name in aqmlab.__all__:
        assert f'id="aqmlab.{name}"' in pages, name


@pytest.mark.parametrize(("page", "module"), [("gym", "gym"), ("plug-ins", "plugins")])
def test_packages_with_pages_of_their_own_are_explained(site: Path, page: str, module: str) -> None:
    text = (site / f"{page}.html").read_text()
    for name in importlib.import_module(f"aqmlab.{module}").__all__:
        assert re.search(rf'id="aqmlab\.{module}\.(\w+\.)?{name}"', text), name


def test_the_c_interface_is_explained(site: Path) -> None:
    header = (ROOT / "python/aqmlab/plugins/aqmlab.h").read_text()
    text = (site / "c-interface.html").read_text()
    names = set(re.findall(r"\b(?:Aqmlab\w+|AQMLAB_[A-Z]+|aqmlab_(?:draw|chance))\b", header))
    assert [name for name in sorted(names - {"AQMLAB_H"}) if name not in text] == []
    assert text.count("<td><p>") > 150  # constants and fields, each with its meaning


# --- in a browser ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_pages_fit_and_are_quiet(browser: Any, site: Path, size: Any) -> None:
    with Visit(browser, site, viewport=size) as visit:
        for page in (*PAGES, *WIDE_PAGES):
            visit.go(page)
            script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert visit.page.evaluate(script) <= 0, page
            assert visit.page.locator("h1").count() == 1, page


def test_long_names_fit_into_the_contents_of_a_page(browser: Any, site: Path) -> None:
    with Visit(browser, site) as visit:
        visit.go("metrics")
        script = "parts => parts.filter(e => e.getBoundingClientRect().right > innerWidth).length"
        assert visit.page.locator(".section-nav *").count() > 20
        assert visit.page.locator(".section-nav *").evaluate_all(script) == 0


def test_keys_stay_beside_a_wide_table(browser: Any, site: Path) -> None:
    with Visit(browser, site) as visit:
        visit.go("tcp-stack")
        table = visit.page.locator(".pst-scrollable-table-container", has_text="ns-one-way").first
        key = table.locator("td", has_text="initial_ssthresh").first
        left = "cell => cell.getBoundingClientRect().left"
        before = key.evaluate(left)
        table.evaluate("box => { box.scrollLeft = 400; }")
        assert abs(key.evaluate(left) - before) <= 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Any, site: Path, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe check: no axe"
    )
    with Visit(browser, site, color_scheme=scheme) as visit:
        for page in PAGES:
            visit.go(page)
            found = axe.Axe().run(visit.page, options={"preload": False}).response["violations"]
            short = [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found]
            assert short == [], page


def test_a_search_finds(browser: Any, site: Path) -> None:
    with Visit(browser, site) as visit:
        visit.go("index")
        visit.page.keyboard.press("Control+k")
        visit.page.keyboard.type("thresholds of adaptive red")
        visit.page.keyboard.press("Enter")
        visit.page.locator("#search-results li a").first.wait_for()
        assert visit.page.locator("#search-results a", has_text="Adaptive RED").count() > 0
        visit.page.locator("#search-results a", has_text="Adaptive RED").first.click()
        visit.page.wait_for_url("**/*ared*.html*")
        assert "Adaptive RED" in visit.page.locator("h1").inner_text()


def hits(page: Any) -> list[str]:
    """The pages that the search shows, best first, each once."""
    page.wait_for_function(
        """() => {
            const said = document.querySelector("#search-results .search-summary")?.textContent;
            return said?.trim() && !/Searching|Preparing/.test(said);
        }"""
    )
    links = "all => all.map((one) => one.getAttribute('href'))"
    found = page.locator("#search-results ul.search > li > a").evaluate_all(links)
    return list(dict.fromkeys(re.split(r"[?#]", link)[0].removesuffix(".html") for link in found))


def test_what_people_type_is_among_the_first_three(browser: Any, site: Path) -> None:
    missed = {}
    with Visit(browser, site) as visit:
        for words, pages in QUESTIONS.items():
            visit.page.goto(f"{site.as_uri()}/search.html?q={quote(words)}")
            found = hits(visit.page)[:3]
            if not set(found) & set(pages):
                missed[words] = found
    assert len(QUESTIONS) > 12 + 30
    assert missed == {}


def test_dark_and_light(browser: Any, site: Path) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        with Visit(browser, site, color_scheme=scheme) as visit:
            visit.go("index")
            grounds[scheme] = visit.colour("body", "backgroundColor")
            visit.page.locator("button.theme-switch-button:visible").click()
            other = "light" if scheme == "dark" else "dark"
            visit.page.get_by_role("button", name=re.compile(other, re.IGNORECASE)).click()
            grounds[f"{other}, chosen"] = visit.colour("body", "backgroundColor")
            visit.go("reference")
            assert visit.colour("body", "backgroundColor") == grounds[f"{other}, chosen"]
    assert grounds["light"] == grounds["light, chosen"] != grounds["dark"]
    assert grounds["dark"] == grounds["dark, chosen"]


def test_the_menu_of_a_phone(browser: Any, site: Path) -> None:
    with Visit(browser, site, viewport=PHONE) as visit:
        visit.go("index")
        link = visit.page.locator("#pst-primary-sidebar-modal a", has_text="Reference")
        assert not link.is_visible()
        visit.page.locator("button.primary-toggle").click()
        link.click()
        assert visit.page.locator("h1").inner_text().startswith("Reference")


def test_pages_can_be_read_without_scripts(browser: Any, site: Path) -> None:
    with Visit(browser, site, java_script_enabled=False) as visit:
        visit.go("scenario/measure")
        assert visit.page.locator("table").first.is_visible()
        assert visit.page.locator("nav a", has_text="Reference").first.is_visible()
