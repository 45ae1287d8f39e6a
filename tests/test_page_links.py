"""Links between the pages of the repository lead somewhere, headings included.

What other machines hold is not asked for.
"""

from __future__ import annotations

import posixpath
import re
from functools import cache

import pytest
from conftest import ROOT

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "records/**/*.md",
        "scenarios/**/*.md",
        "papers/**/*.md",
        "crates/**/README.md",
    )
    for path in ROOT.glob(pattern)
)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FIRST_PAGE = "docs/index.md"
CLICKS = 3
"""How many lead from the first page to every page of the documentation, at most."""


@cache
def text_of(page: str) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", (ROOT / page).read_text())


@cache
def anchors(page: str) -> set[str]:
    """What the links to the headings of a page end in, as forges make it."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        again = found[slug] = found.get(slug, -1) + 1
        if again:
            found[f"{slug}-{again}"] = 0
    return set(found)


def links(page: str) -> list[tuple[str, str]]:
    """Paths from the root and anchors of the links of a page to others of the repository."""
    found = []
    for link in LINK.findall(text_of(page)):
        if not re.match(r"[a-z]+:", link):
            path, _, anchor = link.partition("#")
            where = posixpath.join(posixpath.dirname(page), path) if path else page
            found.append((posixpath.normpath(where), anchor))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for path, anchor in links(page):
        assert not path.startswith(".."), f"{page}: {path} is outside the repository"
        assert (ROOT / path).exists(), f"{page}: there is no {path}"
        if (ROOT / path).is_dir() and page.startswith("docs/") and not path.startswith("docs/"):
            readme = f"{path.partition('/')[0]}/README.md"  # on the site it stands for its folders
            assert readme in PAGES, f"{page}: {path} is a folder without a page on the site"
        if anchor:
            assert anchor in anchors(path), f"{page}: {path} has no heading #{anchor}"


@cache
def clicks() -> dict[str, int]:
    """How many links lead from the first page to each page that can be reached."""
    found, new, count = dict[str, int](), {FIRST_PAGE}, 0
    while new:
        found |= dict.fromkeys(new, count)
        targets = {path for page in new if page.endswith(".md") for path, _ in links(page)}
        folders = {path for path in targets if (ROOT / path).is_dir()}
        inside = {page for page in PAGES if posixpath.dirname(page) in folders}
        new = ({path for path in targets if (ROOT / path).is_file()} | inside) - found.keys()
        count += 1
    return found


def test_every_page_of_the_documentation_is_near() -> None:
    found = clicks()
    shown = [page for page in PAGES if page.startswith("docs/")]
    shown += [path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.ipynb")]
    assert [page for page in shown if found.get(page, CLICKS + 1) > CLICKS] == []


ANSWERS = {
    "which queue for an office with uploads": "docs/choose.md",
    "how to compare two queues with intervals": "docs/tutorial.md",
    "what the same bytes cover": "docs/versioning.md#what-the-same-bytes-covers",
    "how to add an AQM in Python": "docs/how-to/own-queue.md",
    "what is known to be wrong": "docs/trust.md#what-is-known-to-be-wrong",
    "when to use ns-3": "docs/other-tools.md",
    "how to cite": "docs/faq.md#citing",
    "a thousand runs on a cluster": "docs/how-to/cluster.md",
    "what a p95 of the queueing delay is measured on": "docs/faq.md#results",
    "a figure of a paper again": "docs/reproduce.md",
    "a capture as traffic": "docs/how-to/capture.md",
    "a full disk": "docs/faq.md#running",
    "QUIC instead of TCP": "docs/how-to/quic.md",
    "a browser behind a queue": "docs/how-to/shell.md",
    "a report card": "docs/evaluate.md",
    "what grades of a card mean": "docs/evaluate.md#how-to-read-a-card",
    "what a write size is": "docs/terms.md#words-of-this-project",
    "what a run costs": "docs/benchmarks.md",
}
"""What readers ask, and the page that answers."""


@pytest.mark.parametrize("question", ANSWERS)
def test_answers_are_two_clicks_away(question: str) -> None:
    page, _, anchor = ANSWERS[question].partition("#")
    assert clicks()[page] <= 2
    assert not anchor or anchor in anchors(page)
