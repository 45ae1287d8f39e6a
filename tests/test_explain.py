"""`aqmlab explain` knows the words that results are written in, and where to upgrade."""

from __future__ import annotations

import json
import re

import pytest
from aqmlab.scenario.catalog import Catalog
from aqmlab.scenario.vocabulary import WORDS
from conftest import ROOT, Cli


@pytest.mark.parametrize(
    ("asked", "word", "said"),
    [
        ("forward", "forward", "call it download"),
        ("reverse", "reverse", "call it upload"),
        ("download", "download", "forward in files, keys and --set"),
        ("upload", "upload", "reverse in files, keys and --set"),
        ("Wi-Fi", "wi-fi", "docs/how-to/wifi.md"),
        ("wifi", "wi-fi", "docs/how-to/wifi.md"),
        ("WMM", "edca", "docs/topologies.md#access-categories"),
        ("control", "control", "sender's window or rate"),
        ("metric", "metric", "docs/metrics.md"),
        ("upgrade", "upgrade", "docs/versioning.md"),
        ("migrate", "upgrade", "Upgrade from 0.3"),
    ],
)
def test_words_of_results_are_explained(aqmlab: Cli, asked: str, word: str, said: str) -> None:
    """With the page that says more."""
    answer = aqmlab("explain", asked)
    assert answer.status == 0, answer.err
    assert answer.out.startswith(word)
    assert said in " ".join(answer.out.split())
    assert "Page: docs/" in answer.out
    [first, *_] = json.loads(aqmlab("explain", asked, "--json").out)
    assert (first["kind"], first["name"]) == ("words", word)


def test_a_word_hides_no_metric() -> None:
    """The short name of a metric may be a word too."""
    kinds = [entry.kind for entry in Catalog.load().find("upload")]
    assert kinds[0] == "words"
    assert "metrics" in kinds


def test_words_are_found_by_what_is_nearly_right(aqmlab: Cli) -> None:
    """The search has them beside what a scenario can name."""
    for wrong, right in (("forwrad", "forward"), ("downlod", "download"), ("upgrad", "upgrade")):
        assert right in aqmlab("explain", wrong).err


def test_pages_of_words_are_there() -> None:
    """Their files, and the headings in them."""
    for about in WORDS.values():
        page, _, anchor = about.page.partition("#")
        text = (ROOT / page).read_text()
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        assert not anchor or anchor in {head.lower().replace(" ", "-") for head in headings}


def test_no_word_is_what_something_else_is_called() -> None:
    """Else a page about it would be out of reach."""
    names = {entry.name for entry in Catalog.load().entries if entry.kind != "words"}
    for word, about in WORDS.items():
        assert not {word, *about.others} & names
