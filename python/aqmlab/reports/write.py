"""Reports: what some runs say, as one file that can be read anywhere and for years.

A web page (interactive, self-contained, no network), Markdown with its figures beside it, a PDF or
a picture. All of them say the same; see :mod:`aqmlab.reports.content`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from aqmlab._util.files import check_output_file, write_bytes, write_text
from aqmlab.errors import AqmlabError
from aqmlab.reports.content import Report, compose
from aqmlab.results.baseline import Baseline
from aqmlab.results.run import Run

__all__ = ["target", "write"]


_SUFFIXES: Mapping[str, str] = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".pdf": "pdf",
    ".png": "png",
}
"""Formats by the suffix of a file's name."""
_FORMATS = tuple(dict.fromkeys(_SUFFIXES.values()))
"""What a report can be written as."""
_COMPOSED = 0.7
"""Share of the work that is done, about, when the content is there."""


def target(output: Path | None, kind: str | None) -> tuple[Path, str]:
    """Where a report goes and as what; each may be left to the other."""
    if kind is not None and kind not in _FORMATS:
        raise AqmlabError(f'--format: found "{kind}"; allowed: {", ".join(_FORMATS)}')
    if output is None:
        kind = kind or _FORMATS[0]
        return Path(f"report.{kind}"), kind
    suffix = _SUFFIXES.get(output.suffix.lower())
    if kind is None and suffix is None:
        raise AqmlabError(
            f"{output}: a report is written as {', '.join(_SUFFIXES)}; choose one of these, "
            "or give --format"
        )
    if kind is not None and suffix not in (None, kind):
        raise AqmlabError(f"{output}: its name does not fit --format {kind}; leave one of them out")
    return output, kind or str(suffix)


def write(
    runs: Sequence[Run],
    path: str | os.PathLike[str] | None = None,
    *,
    kind: str | None = None,
    title: str | None = None,
    question: str | None = None,
    baseline: Baseline = None,
    ordered: bool = True,
    playground: str | None = None,
    brief: bool = False,
    progress: Callable[[float], None] = lambda _: None,
) -> Path:
    """Writes a report about some runs and returns where it is.

    Args:
        runs: What the report is about. Runs that differ in nothing but their seed are one
            configuration.
        path: Report file (.html, .md, .pdf, .png); default: report.html.
        kind: Format of the report; default: from the suffix of --output.
        title: Title; default: the title of the scenario.
        question: Question at the top of the report; default: computed from the runs.
        baseline: Label of the runs to compare with; default: the baseline of the sweep, or
            drop-tail.
        ordered: Whether somebody chose the order of the runs: without a drop-tail queue the first
            one is the baseline.
        playground: Address or folder of the playground. An HTML report then links scenarios to the
            playground.
        brief: Write the answer as one A4 page (.html or .pdf).
        progress: Called now and then with the share of the work that is done.
    """
    if not runs:
        raise AqmlabError("a report needs at least one run")
    place, chosen = target(None if path is None else Path(path), kind)
    if brief and chosen not in ("html", "pdf"):
        raise AqmlabError(f"--brief: found a page as {chosen}; it is written as html or pdf")
    check_output_file(place, "a report")
    link = _playground(playground, place.parent)
    if not brief:
        content = compose(
            runs,
            place.parent,
            title,
            question,
            baseline,
            ordered=ordered,
            progress=lambda done: progress(_COMPOSED * done),
        )
    if brief:
        from aqmlab.reports.brief import brief as composed
        from aqmlab.reports.brief_html import write_html
        from aqmlab.reports.brief_pdf import write_pdf

        page = composed(runs, place.parent, title, question, baseline, ordered=ordered)
        (write_html if chosen == "html" else write_pdf)(page, place)
    else:
        _write(content, place, chosen, link)
    progress(1.0)
    return place


def _playground(place: str | None, folder: Path) -> str | None:
    """The playground's address, seen from the folder of the report."""
    if place is None or place.startswith(("https://", "http://", "file://")):
        return place
    page = Path(place) / "index.html" if Path(place).is_dir() else Path(place)
    if not page.is_file():
        raise AqmlabError(
            f'--playground: found "{place}", where there is no page; expected an address that '
            "begins with https://, or the folder that make playground has built"
        )
    return quote(Path(os.path.relpath(page.resolve(), folder.resolve())).as_posix())


def _write(report: Report, path: Path, kind: str, playground: str | None) -> None:
    """Writes it; each format loads what it needs."""
    if kind == "html":
        from aqmlab.reports.html import page

        write_text(path, page(report, playground))
        return
    from aqmlab.document import markdown, sheet
    from aqmlab.reports.page import blocks

    content = blocks(report, kind)
    if kind == "md":
        markdown.write(content, path)
    elif kind == "png":
        write_bytes(path, sheet.picture(content))
    else:
        texts = {
            f"scenario-{number}.toml": scenario.text
            for number, scenario in enumerate(report.scenarios, 1)
        }
        write_bytes(
            path, sheet.document(report.title, content, attachments=texts, is_upright=False)
        )
