"""The page of the answer for a browser, which also prints it on one sheet."""

from __future__ import annotations

from pathlib import Path

from aqmlab._util.drawing import templates
from aqmlab._util.files import write_text
from aqmlab.reports.brief import Brief, runs_of_bold

__all__ = ["write_html"]


def write_html(page: Brief, path: Path) -> None:
    """Writes the page: one file that needs no network."""
    environment = templates("aqmlab.reports")
    style = environment.get_template("answer.css").render()
    made = environment.get_template("answer.html").render(
        page=page, style=style, bolds=runs_of_bold
    )
    write_text(path, made.lstrip())
