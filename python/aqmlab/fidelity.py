"""Every paper in turn, and one scoreboard of all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import _native
from aqmlab.claims import CONTRADICTED, FAILS, HOLDS, UNDECIDED
from aqmlab.files import write_text
from aqmlab.papers import names
from aqmlab.reproduce import reproduce
from aqmlab.scoreboard import markdown, score_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Result = dict[str, Any]
"""What a reproduction found: its ``scoreboard.json``."""

HEAD = """# Fidelity

How close aqmlab comes to what others published: every cell that a paper prints, and every claim.
This page is written by `aqmlab reproduce all`, not by hand. The [notes](fidelity-notes.md) say what
is missed and what we know of why, [reproduce](reproduce.md) how cells and claims are judged."""


def reproduce_all(out: Path | None = None, **options: Any) -> Result:  # noqa: ANN401 - passed on
    """Repeats every known paper, one after the other.

    Args:
        out: Folder of the papers' own folders, of ``scoreboard.json`` and of ``pages``; None:
            ``out/reproduce``. Finished runs found there are not run again.
        options: What :func:`aqmlab.reproduce.reproduce` takes beside the paper and its tables.

    Returns:
        What ``scoreboard.json`` holds: the sums over the papers, and the result of each.
    """
    folder = out or Path("out") / "reproduce"
    results = {name: reproduce(name, out=folder / name, **options) for name in names()}
    whole = {
        "engine": _native.version(),
        "scored": all(result["scored"] for result in results.values()),
        "cells": added(results, "cells", ("within", "by_value", "total")),
        "claims": added(results, "claims", (HOLDS, FAILS, UNDECIDED, "contradicted")),
        "runs": sum(result["runs"] for result in results.values()),
        "failed": {
            f"{name}/{run}": reason
            for name, result in results.items()
            for run, reason in result["failed"].items()
        },
        "cpu_s": sum(result["cpu_s"] for result in results.values()),
        "figures": {
            f"{name} {figure}": file
            for name, result in results.items()
            for figure, file in result["figures"].items()
        },
        "papers": results,
    }
    whole["files"] = write(folder, whole)
    return whole


def added(results: Mapping[str, Result], part: str, keys: Sequence[str]) -> dict[str, int | None]:
    """The sums of some counts over the papers; None where one of them counts nothing."""
    columns = {key: [result[part][key] for result in results.values()] for key in keys}
    return {key: None if None in counts else sum(counts) for key, counts in columns.items()}


def write(folder: Path, whole: Result) -> dict[str, str]:
    """Writes the scoreboard, and side by side the pages that it links."""
    pages = folder / "pages"
    for name, result in whole["papers"].items():
        report = Path(result["files"]["report"]).read_text(encoding="utf-8")
        write_text(pages / f"fidelity-{name}.md", report)
    write_text(pages / "fidelity.md", page(whole))
    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    write_text(folder / "scoreboard.json", text)
    return {
        "scoreboard": str(folder / "scoreboard.json"),
        "report": str(pages / "fidelity.md"),
    }


def page(whole: Result) -> str:
    """The scoreboard of all papers as a Markdown page."""
    papers = whole["papers"]
    sources = "\n".join(
        f"- [{name}](fidelity-{name}.md): {result['title']}" for name, result in papers.items()
    )
    made = (
        f"Engine {whole['engine']}, {whole['runs']} runs, {whole['cpu_s'] / 3600:.1f} hours of CPU "
        "time. Seeds: "
        + "; ".join(f"{name} {listed(result['seeds'])}" for name, result in papers.items())
        + "."
    )
    if not whole["scored"]:
        made += " Quick runs: cells are not scored."
    return (
        "\n\n".join(
            [
                HEAD,
                sources,
                made,
                f"## Cells\n\n{cells_table(papers, whole)}",
                f"## Claims\n\n{claims_table(papers, whole)}",
            ]
        )
        + "\n"
    )


def cells_table(papers: Mapping[str, Result], whole: Result) -> str:
    """How many cells are within tolerance, by paper and table."""
    lines = []
    for name, result in papers.items():
        tables = [table for table in result["tables"].values() if table["total"]]
        lines += [[name, table["title"], *score_words(table)] for table in tables]
        if len(tables) > 1:
            lines.append([name, "**all**", *score_words(result["cells"])])
    lines.append(["**all**", "", *score_words(whole["cells"])])
    head = ["paper", "table", "cells within", "share", "by value alone"]
    return markdown(head, lines) + (
        "\n\nA percentile is within by value or, where the distribution is flat, by rank. "
        "Papers that print plots only have no cells."
    )


def claims_table(papers: Mapping[str, Result], whole: Result) -> str:
    """What became of the claims, by paper."""
    scores = {name: result["claims"] for name, result in papers.items()}
    lines = [[name, *claim_words(score)] for name, score in scores.items()]
    lines.append(["**all**", *claim_words(whole["claims"])])
    failed = [
        [f"{name} {found['id']}", found["text"], found["because"]]
        for name, score in scores.items()
        for found in score["verdicts"]
        if found["verdict"] == FAILS and found["own_tables"] not in CONTRADICTED
    ]
    counts = markdown(
        ["paper", "hold", "fail", "hold of the decided", "undecided", "contradicted"], lines
    )
    return (
        f"{counts}\n\nContradicted: the paper's own tables say otherwise; these do not count.\n\n"
        "### Claims that fail\n\n" + markdown(["claim", "text", "measured"], failed)
    )


def claim_words(score: Mapping[str, int]) -> list[str]:
    """Counts of verdicts, and the share of the decided that holds."""
    decided = score[HOLDS] + score[FAILS]
    share = f"{100 * score[HOLDS] / decided:.0f} %" if decided else "-"
    return [
        str(score[HOLDS]),
        str(score[FAILS]),
        share,
        str(score[UNDECIDED]),
        str(score["contradicted"]),
    ]


def listed(numbers: Sequence[int]) -> str:
    """Numbers as people write them: 1 to 5, or 1, 3."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and list(numbers) == list(range(first, last + 1)):
        return f"{first} to {last}"
    return ", ".join(map(str, numbers))
