"""The playground's stories, the page about them, and their pictures are the same."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

FOLDER = ROOT / "docs/images/playground"
LOOKS = ("light", "dark", "phone")
SOURCE = (ROOT / "web/src/stories.ts").read_text()
STORIES = dict(re.findall(r'^    id: "(.+)",\n    title: "(.+)",$', SOURCE, re.MULTILINE))
PAGE = (ROOT / "docs/playground.md").read_text()
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def _row(title: str) -> str:
    """The row of a story on the page."""
    [found] = re.findall(rf"^\| {re.escape(title)} \|.*$", PAGE, re.MULTILINE)
    return str(found)


def test_the_page_has_a_row_for_each_story() -> None:
    """In the order of the playground, and the front page counts them."""
    _, _, section = PAGE.partition("\n## Stories\n")
    table = section.partition("\n## ")[0]
    titles = re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)
    assert titles[2:] == list(STORIES.values())
    assert f"{NUMBERS[len(STORIES)]} guided examples" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("story", STORIES)
def test_each_story_is_drawn_and_its_row_links_the_pictures(story: str) -> None:
    """In three looks: `node screenshots.mjs` in `web` makes them."""
    row = _row(STORIES[story])
    pictures = [f"{story}-{look}.webp" for look in LOOKS]
    drawn = [name for name in pictures if (FOLDER / name).is_file()]
    linked = [name for name in pictures if f"(images/playground/{name})" in row]
    assert drawn == linked == pictures


def test_no_picture_is_of_a_story_that_is_gone() -> None:
    """Nor of another look."""
    known = {f"{story}-{look}.webp" for story in STORIES for look in LOOKS}
    assert {path.name for path in FOLDER.iterdir()} <= known
