"""A report as Markdown; its figures are SVG files in a folder beside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from aqmlab._util.files import write_text
from aqmlab._util.markup import markdown, markdown_table, markdown_text
from aqmlab.reports.charts import stills
from aqmlab.reports.sections import SECTIONS
from aqmlab.results.metrics import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aqmlab.reports.content import Report

__all__ = ["write"]


_CAPTIONS = {
    "cdf": "Share of the responses that ended within a time",
    "ccdf": "Share of the responses that took a time or longer, both axes logarithmic",
    "queue": "Packets in the queue over time",
    "probability": "Signal probability over time",
}
"""What the figures show."""


def write(report: Report, path: Path) -> None:
    """Writes the figures, then the text that shows them."""
    folder = path.with_name(f"{path.stem}_files")
    parts = report.parts or [report]
    shown = []
    for number, part in enumerate(parts, 1):
        prefix = f"{number}-" if report.parts else ""
        pictures = stills(part) | {one.name: one.still for one in part.pictures}
        found = part.distributions
        whose = f", class {found.traffic}" if found and found.traffic != ALL else ""
        captions = {
            name: text + (whose if name in ("cdf", "ccdf") else "")
            for name, text in _CAPTIONS.items()
        }
        titles = {**captions, **{one.name: markdown_text(one.title) for one in part.pictures}}
        for name, picture in pictures.items():
            write_text(folder / f"{prefix}{name}.svg", picture)
        shown.append(
            {
                name: f"![{titles[name]}]({quote(folder.name)}/{prefix}{name}.svg)"
                + (f"\n\n*{titles[name]}*" if name in _CAPTIONS else "")
                for name in pictures
            }
        )
    paragraphs = [*_opening(report)]
    for part, figures in zip(parts, shown, strict=True):
        paragraphs += [f"## {markdown_text(part.title)}"] if report.parts else []
        below = [*_results(part, figures), *(_details(part) if report.parts else [])]
        paragraphs += [_deeper(text) for text in below] if report.parts else below
    paragraphs += _closing(report)
    write_text(path, "\n\n".join(filter(None, paragraphs)) + "\n")


def _deeper(text: str) -> str:
    """A heading one level down; other paragraphs unchanged."""
    return f"#{text}" if text.startswith("##") else text


def _opening(report: Report) -> Iterator[str]:
    """What the report is about."""
    yield f"# {markdown_text(report.title)}"
    yield markdown_text(report.question)
    yield markdown_text("; ".join(filter(None, report.subjects[:4])))
    yield markdown(
        ["what", "value"], [[name, markdown_text(value)] for name, value in report.facts]
    )


def _results(report: Report, shown: dict[str, str]) -> Iterator[str]:
    """What the runs of one scenario say."""
    yield _heading("summary")
    head, *lines = [markdown_text(line) for line in report.verdict] or [""]
    yield head
    yield "\n".join(f"- {line}" for line in lines)
    for label, words in report.words:
        yield f"**{markdown_text(label)}.** {markdown_text(words)}"
    for part in report.summary:
        yield f"*{markdown_text(part.caption)}*"
        yield markdown_table(part)
    if report.differences:
        yield _heading("differences")
        yield markdown_text(report.differences.caption + ". " + report.differences.note)
        yield markdown_table(report.differences)
    if report.distributions:
        yield _heading("responses")
        yield from (shown["cdf"], shown["ccdf"])
        yield from (markdown_table(one) for one in (report.within, report.tail) if one)
    if report.traces:
        yield _heading("queues")
        yield from (shown[name] for name in ("queue", "probability") if name in shown)
        yield markdown_table(report.traced) if report.traced else ""
    if report.pictures:
        yield _heading("pictures")
        yield from (shown[one.name] for one in report.pictures)
    if report.reasons:
        yield _heading("reasons")
        yield markdown_table(report.reasons)


def _details(report: Report) -> Iterator[str]:
    """All numbers."""
    yield _heading("details")
    for one in report.details:
        if one.rows:
            yield f"### {one.caption}"
            yield markdown_table(one)


def _closing(report: Report) -> Iterator[str]:
    """What was published, all numbers of one scenario, and how everything came about."""
    if report.fidelity:
        yield _heading("fidelity")
        yield markdown_table(report.fidelity)
    if not report.parts:
        yield from _details(report)
    yield _heading("method")
    yield "\n".join(f"- {markdown_text(note)}" for note in report.notes)
    yield markdown(
        ["run", "seed", "engine", "run directory"],
        [
            [
                markdown_text(run.label),
                str(run.seed),
                run.engine,
                f"[{markdown_text(run.folder)}]({quote(run.folder)})",
            ]
            for run in report.sources
        ],
    )
    for scenario in report.scenarios:
        yield f"### Scenario: {markdown_text(scenario.label)}"
        fence = max(re.findall(r"`{3,}", scenario.text), key=len, default="``") + "`"
        yield f"{fence}toml\n{scenario.text.rstrip()}\n{fence}"
        yield "The text goes on in the run directory." if scenario.cut else ""


def _heading(section: str) -> str:
    """The heading of a section."""
    return f"## {SECTIONS[section]}"
