"""The page of the answer for a browser, which also prints it on one sheet."""

from __future__ import annotations

from pathlib import Path

from aqmlab._util.files import write_text
from aqmlab.document.html import environment
from aqmlab.reports.brief import Brief, runs_of_bold

__all__ = ["write_html"]


def write_html(page: Brief, path: Path) -> None:
    """Writes the page: one file that needs no network."""
    templates = environment("aqmlab.reports")
    style = templates.get_template("answer.css").render()
    made = templates.get_template("answer.html").render(page=page, style=style, bolds=runs_of_bold)
    write_text(path, made.lstrip())
