"""The gallery: a command and a sentence for each picture, and no picture that nothing makes.

Whether the commands make these pictures is looked at in `test_docs.py`.
"""

from __future__ import annotations

import re

from conftest import ROOT

PAGE = (ROOT / "docs/gallery.md").read_text()
FOLDER = ROOT / "docs/images/gallery"
SECTIONS = re.findall(r"^### (.*?)\n\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
MOST_BYTES = 1_500_000


def test_there_are_twenty_four_pictures() -> None:
    assert len(SECTIONS) == 24


def test_a_picture_has_a_sentence_and_one_command() -> None:
    for title, text in SECTIONS:
        sentence, *_ = text.partition("\n\n")
        assert sentence.endswith("."), title
        commands = re.search(r"```sh\n(.*?)```\n\n<!-- picture: ", text, re.DOTALL)
        assert commands is not None, title
        assert len(commands[1].replace("\\\n", "").splitlines()) == 1, title


def test_every_picture_is_shown_once_and_small() -> None:
    shown = re.findall(r"\(images/gallery/([^)]+)\)", PAGE)
    assert sorted(shown) == sorted(path.name for path in FOLDER.iterdir())
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < MOST_BYTES
