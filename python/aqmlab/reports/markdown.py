"""A report as Markdown; its figures are SVG files in a folder beside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from aqmlab._util.files import write_text
from aqmlab.papers.scoreboard import markdown
from aqmlab.reports.html import SECTIONS, stills

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aqmlab.reports.content import Report
    from aqmlab.reports.tables import Table

CAPTIONS = {
    "cdf": "Share of the responses that ended within a time",
    "ccdf": "Share of the responses that took a time or longer, both axes logarithmic",
    "queue": "Packets in the queue over time",
    "probability": "Signal probability over time",
}
"""What the figures show."""


def write(report: Report, path: Path) -> None:
    """Writes the figures, then the text that shows them."""
    folder = path.with_name(f"{path.stem}_files")
    pictures = stills(report)
    for name, picture in pictures.items():
        write_text(folder / f"{name}.svg", picture)
    shown = {
        name: f"![{CAPTIONS[name]}]({quote(folder.name)}/{name}.svg)\n\n*{CAPTIONS[name]}*"
        for name in pictures
    }
    write_text(path, "\n\n".join(filter(None, parts(report, shown))) + "\n")


def parts(report: Report, shown: dict[str, str]) -> Iterator[str]:
    """The paragraphs, headings, tables and figures in their order."""
    yield f"# {plain(report.title)}"
    yield plain(report.question)
    yield plain("; ".join(filter(None, report.subjects[:4])))
    yield markdown(["what", "value"], [[name, plain(value)] for name, value in report.facts])
    yield heading("summary")
    for label, words in report.words:
        yield f"**{plain(label)}.** {plain(words)}"
    yield table(report.summary)
    if report.differences:
        yield heading("differences")
        yield plain(report.differences.caption + ". " + report.differences.note)
        yield table(report.differences)
    if report.distributions:
        yield heading("responses")
        yield from (shown["cdf"], shown["ccdf"])
        yield from (table(one) for one in (report.within, report.tail) if one)
    if report.traces:
        yield heading("queues")
        yield from (shown[name] for name in ("queue", "probability") if name in shown)
        yield table(report.traced) if report.traced else ""
    for section, one in (("reasons", report.reasons), ("fidelity", report.fidelity)):
        if one:
            yield heading(section)
            yield table(one)
    yield heading("details")
    for one in report.details:
        if one.rows:
            yield f"### {one.caption}"
            yield table(one)
    yield heading("method")
    yield "\n".join(f"- {plain(note)}" for note in report.notes)
    yield markdown(
        ["run", "seed", "engine", "run directory"],
        [
            [
                plain(run.label),
                str(run.seed),
                run.engine,
                f"[{plain(run.folder)}]({quote(run.folder)})",
            ]
            for run in report.sources
        ],
    )
    for scenario in report.scenarios:
        yield f"### Scenario: {plain(scenario.label)}"
        fence = max(re.findall(r"`{3,}", scenario.text), key=len, default="``") + "`"
        yield f"{fence}toml\n{scenario.text.rstrip()}\n{fence}"
        yield "The text goes on in the run directory." if scenario.cut else ""


def heading(section: str) -> str:
    """The heading of a section."""
    return f"## {SECTIONS[section]}"


def table(one: Table) -> str:
    """A table; clear differences are bold."""
    lines = [
        [f"**{plain(cell.text)}**" if cell.tone else plain(cell.text) for cell in row]
        for row in one.rows
    ]
    return markdown([plain(name) for name in one.head], lines)


def plain(words: str) -> str:
    """Text that Markdown and the HTML in it take for nothing but text."""
    one_line = " ".join(words.split())
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", one_line)
