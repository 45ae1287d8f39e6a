"""Every paper in turn, and one scoreboard of all of them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import _native
from aqmlab._util.files import write_text
from aqmlab._util.markup import markdown
from aqmlab.papers.claims import CONTRADICTED
from aqmlab.papers.measured import FILE
from aqmlab.papers.paper import names
from aqmlab.papers.reproduce import reproduce
from aqmlab.papers.scoreboard import power_words, score_words
from aqmlab.results.verdict import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["intact", "reproduce_all"]

_Result = dict[str, Any]
"""What a reproduction found: its ``scoreboard.json``."""

_HEAD = """# Fidelity

How close aqmlab comes to what five studies published: every cell that a paper prints, and every
claim. [What could not be reproduced](not-reproduced/index.md) says which results fail, and why.
[Reproduce](reproduce.md) says how cells and claims are judged. `aqmlab reproduce all` writes this
page, and [the claims that fail](../records/fidelity-claims.md)."""
_CLAIMS_HEAD = """# Claims that fail, and second readings

[Fidelity](../docs/fidelity.md) counts the claims. `aqmlab reproduce all` writes this page."""
_POWER = (
    *("informative", "informative_within", "right_side"),
    *("reference_within", "unfitted", "unfitted_within"),
)
"""What the cells can tell, as counts that are added up over the papers."""
_LENGTHS = {"published": "as published", "usual": "partly shorter", "quick": "quick"}
"""How long a paper's runs are."""
_SEAL = "<!-- Generated: what is changed by hand does not fit its hash, {} -->"
"""The last line of a generated page."""


def reproduce_all(out: Path | None = None, **options: Any) -> _Result:  # noqa: ANN401 - passed on
    """Repeats every known paper, one after the other.

    Args:
        out: Folder of the papers' own folders, of ``scoreboard.json`` and of ``pages``; None:
            ``out/reproduce``. Finished runs found there are not run again.
        options: What :func:`aqmlab.papers.reproduce.reproduce` takes beside paper and tables.

    Returns:
        What ``scoreboard.json`` holds: the sums over the papers, and the result of each.
    """
    folder = out or Path("out") / "reproduce"
    results = {name: reproduce(name, out=folder / name, **options) for name in names()}
    whole = {
        "engine": _native.engine(),
        "scored": all(result["scored"] for result in results.values()),
        "cells": _added(results, "cells", ("within", "by_value", "total")),
        "power": _added(results, "power", _POWER),
        "claims": _added(
            results, "claims", (HOLDS, FAILS, UNDECIDED, "undecidable", "contradicted")
        ),
        "rows": _added(results, "rows", ("run", "total")),
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
    taken = [result["measured"] for result in results.values() if "measured" in result]
    if taken:
        whole["measured"] = {
            "runs": sum(found["runs"] for found in taken),
            "figures_lacking": [
                f"{name} {figure}"
                for name, result in results.items()
                for figure in result.get("measured", {}).get("figures_lacking", [])
            ],
        }
    whole["files"] = _write(folder, whole)
    return whole


def _added(results: Mapping[str, _Result], part: str, keys: Sequence[str]) -> dict[str, int | None]:
    """The sums of some counts over the papers; None where one of them counts nothing."""
    columns = {key: [result[part][key] for result in results.values()] for key in keys}
    return {key: None if None in counts else sum(counts) for key, counts in columns.items()}


def _write(folder: Path, whole: _Result) -> dict[str, str]:
    """Writes the scoreboard, its page for ``docs``, and the reports that it links for ``records``.

    A paper some of whose rows have not been run gets none, so that an earlier page of it stays.
    """
    pages = folder / "pages"
    for name, result in whole["papers"].items():
        if _unfinished(result):
            continue
        report = Path(result["files"]["report"]).read_text(encoding="utf-8")
        write_text(pages / "records" / f"fidelity-{name}.md", _sealed(report))
    write_text(pages / "docs" / "fidelity.md", _sealed(_page(whole)))
    claims = "\n\n".join(
        [
            _CLAIMS_HEAD,
            f"## Claims\n\n{_claims_table(whole['papers'])}",
            f"## Second readings\n\n{_readings_table(whole['papers'])}",
        ]
    )
    write_text(pages / "records" / "fidelity-claims.md", _sealed(f"{claims}\n"))
    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    write_text(folder / "scoreboard.json", text)
    return {
        "scoreboard": str(folder / "scoreboard.json"),
        "report": str(pages / "docs" / "fidelity.md"),
    }


def _unfinished(result: _Result) -> bool:
    """Whether runs of some rows are missing; runs that failed are in the report."""
    return bool(result["rows"]["run"] < result["rows"]["total"] and not result["failed"])


def _sealed(text: str) -> str:
    """A page that shows whether somebody has changed it since; see :func:`intact`."""
    return f"{text}\n{_seal(text)}\n"


def _seal(text: str) -> str:
    """The line that a page of this text ends with."""
    return _SEAL.format(hashlib.sha256(text.encode()).hexdigest()[:16])


def intact(page: str) -> bool:
    """Whether nobody has changed a generated page."""
    text, _, last = page.removesuffix("\n").rpartition("\n")
    return last == _seal(text)


def _page(whole: _Result) -> str:
    """The scoreboard of all papers as a Markdown page."""
    papers = whole["papers"]
    made = (
        f"Engine {whole['engine']}, {whole['runs']} runs, {whole['cpu_s'] / 3600:.1f} hours of CPU "
        "time."
    )
    if "measured" in whole:
        taken = whole["measured"]["runs"]
        made += f" {taken} of the runs were taken from the `{FILE}` of the papers."
    if not whole["scored"]:
        made += " Quick runs: cells are not scored."
    return (
        "\n\n".join(
            [
                _HEAD,
                made,
                f"## Papers\n\n{_papers_table(papers, whole)}",
                f"## What the cells can tell\n\n{_power_table(papers, whole)}",
                f"## Cells\n\n{_cells_table(papers, whole)}",
                f"## Claims\n\n{_types_table(papers)}",
            ]
        )
        + "\n"
    )


def _papers_table(papers: Mapping[str, _Result], whole: _Result) -> str:
    """The state of each paper in a line."""
    lines = [
        [
            f"[{name}](../records/fidelity-{name}.md)",
            *_state(result),
            _seeds(result),
            _LENGTHS[result["length"]],
        ]
        for name, result in papers.items()
    ]
    lines.append(["**all**", *_state(whole), "", ""])
    head = [
        *("paper", "rows run", "cells within"),
        *("claims hold", "fail", "undecided", "undecidable", "contradicted"),
        *("seeds", "length of runs"),
    ]
    titles = "\n".join(f"- {name}: {result['title']}" for name, result in papers.items())
    missing = [name for name, result in papers.items() if _unfinished(result)]
    note = (
        f"**Not all rows of {' and '.join(missing)} have been run**: what stands here is of those "
        "that have, and the report behind the link is an earlier one.\n\n"
        if missing
        else ""
    )
    return (
        f"{titles}\n\n{markdown(head, lines)}\n\n{note}"
        "Rows that have not been run have no cells, and claims that need them are undecided; the "
        "share of the claims that hold is that of the decided. "
        "Undecidable: another run of the paper's own laboratory would often have said otherwise. "
        "Contradicted: the paper's own tables say otherwise. These claims do not count."
    )


def _state(result: _Result) -> list[str]:
    """Rows run, cells within and claims of a paper, or of all."""
    rows, cells, found = result["rows"], result["cells"], result["claims"]
    return [
        _part(rows["run"], rows["total"]),
        "-" if cells["within"] is None else _part(cells["within"], cells["total"]),
        f"{found[HOLDS]}{_share(found[HOLDS], found[HOLDS] + found[FAILS])}",
        *(str(found[word]) for word in (FAILS, UNDECIDED, "undecidable", "contradicted")),
    ]


def _part(some: int, whole: int) -> str:
    """Some of a whole, with their share; a dash of nothing."""
    return f"{some} of {whole}{_share(some, whole)}" if whole else "-"


def _share(some: int, whole: int) -> str:
    """A share in brackets; nothing of nothing."""
    return f" ({100 * some / whole:.0f} %)" if whole else ""


def _cells_table(papers: Mapping[str, _Result], whole: _Result) -> str:
    """How many cells are within tolerance, by paper and table."""
    lines = []
    for name, result in papers.items():
        tables = [table for table in result["tables"].values() if table["total"]]
        lines += [[name, table["title"], *score_words(table)] for table in tables]
        if len(tables) > 1:
            lines.append([name, "**all**", *score_words(result["cells"])])
    lines.append(["**all**", "", *score_words(whole["cells"])])
    head = ["paper", "table", "cells within", "share", "by value alone"]
    return markdown(head, lines, left=2) + (
        "\n\nA percentile is within by value or, where the distribution is flat, by rank. "
        "Papers that print plots only have no cells."
    )


def _power_table(papers: Mapping[str, _Result], whole: _Result) -> str:
    """What the cells can tell, by paper."""
    lines = [
        [
            name,
            *power_words({**result["cells"], **result["power"]}),
            _part(result["power"]["unfitted_within"], result["power"]["unfitted"]),
        ]
        for name, result in {**papers, "**all**": whole}.items()
        if result["power"]["informative"] and result["cells"]["within"] is not None
    ]
    if not lines:
        return "No paper that was scored has a row without active queue management beside others."
    head = [
        *("paper", "informative cells", "within by value", "on the right side"),
        *("within if every row were the reference's", "within without fitted settings"),
    ]
    return markdown(head, lines) + (
        "\n\nA cell is informative where the published number is not within tolerance of that of "
        "drop-tail with 240 packets at the same load, so that a network in which queue management "
        "did nothing would miss it. The right side is that of our drop-tail on which the published "
        "number lies of theirs."
    )


def _types_table(papers: Mapping[str, _Result]) -> str:
    """The claims by what they assert: equalities are cheap, orderings are not."""
    lines = []
    for name, result in papers.items():
        for kind, found in result["claims"]["types"].items():
            decided = found[HOLDS] + found[FAILS]
            lines.append([name, kind, f"{_part(found[HOLDS], decided)}", str(found[UNDECIDED])])
    return markdown(["paper", "type", "hold, of the decided", "undecided"], lines, left=2)


def _claims_table(papers: Mapping[str, _Result]) -> str:
    """The claims that fail, with measured values; those that the tables cannot decide apart."""
    failed = {
        counts: [
            [f"{name} {found['id']}", _text(found, result), found["because"]]
            for name, result in papers.items()
            for found in result["claims"]["verdicts"]
            if found["verdict"] == FAILS
            and found["own_tables"] not in CONTRADICTED
            and found["counts"] is counts
        ]
        for counts in (True, False)
    }
    head = ["claim", "text", "measured"]
    parts = ["None of the decided claims fails."]
    if failed[True]:
        parts = ["Those that fail:\n\n" + markdown(head, failed[True], left=3)]
    if failed[False]:
        parts.append(
            "Not counted, because the paper's tables cannot decide them, and false of our "
            "numbers:\n\n" + markdown(head, failed[False], left=3)
        )
    return "\n\n".join(parts)


def _text(found: Mapping[str, Any], result: _Result) -> str:
    """A claim, with what its verdict rests on."""
    marks = [
        f" ({reading['mark']})"
        for reading in result["readings"]
        if reading["mark"] and any(one["id"] == found["id"] for one in reading["concerned"])
    ]
    return str(found["text"]) + "".join(marks)


def _readings_table(papers: Mapping[str, _Result]) -> str:
    """The second readings, and how many claims hold in either."""
    lines = []
    for name, result in papers.items():
        for reading in result["readings"]:
            first, second = result["claims"], reading["claims"]
            moved = [
                (one["first"] == HOLDS, one["second"] == HOLDS) for one in reading["concerned"]
            ]
            lines.append(
                [
                    *(name, reading["title"], str(len(moved))),
                    *(_part(one[HOLDS], one[HOLDS] + one[FAILS]) for one in (first, second)),
                    *(str(moved.count(way)) for way in ((False, True), (True, False))),
                ]
            )
    if not lines:
        return "There are none."
    head = [
        *("paper", "second reading", "claims that rest on it"),
        *("hold, of the decided, first reading", "in the second"),
        *("in the second only", "in the first only"),
    ]
    return markdown(head, lines, left=2) + (
        "\n\nWhat a paper leaves open is read in one way for the counts above, and in another way "
        "here. The reports say what is open, and give both verdicts of each claim."
    )


def _seeds(result: _Result) -> str:
    """The seeds of a paper's rows, and those that some have beside them."""
    further = result["further"]["seeds"]
    first = _listed(result["seeds"])
    return f"{first}; some rows {_listed([*result['seeds'], *further])}" if further else first


def _listed(numbers: Sequence[int]) -> str:
    """Numbers as people write them: 1 to 5, or 1, 3."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and list(numbers) == list(range(first, last + 1)):
        return f"{first} to {last}"
    return ", ".join(map(str, numbers))
