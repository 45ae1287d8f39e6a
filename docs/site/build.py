"""Builds the documentation site: `make site`, or `.venv/bin/python docs/site/build.py [FOLDER]`.

A warning is an error. The pages are in ``FOLDER/html`` (default: ``out/site/html``); what a second
build need not do again is kept beside them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from pages import PLAYGROUND, ROOT, Site
from sphinx.cmd.build import main as sphinx


def build(folder: Path) -> int:
    """Builds the site in a folder; the exit status."""
    Site(folder / "source").make()
    places = [str(folder / name) for name in ("source", "html")]
    settings = ["-c", str(Path(__file__).parent), "-d", str(folder / "doctrees")]
    status: int = sphinx(["-q", "-W", "--keep-going", "-b", "html", *settings, *places])
    if status == 0 and PLAYGROUND.exists():
        shutil.copytree(PLAYGROUND, folder / "html" / "playground", dirs_exist_ok=True)
    if status == 0:
        print(folder / "html" / "index.html")  # noqa: T201 - where it is
    return status


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "out" / "site"))
