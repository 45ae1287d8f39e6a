"""What ``aqmlab evaluate`` prints."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab._util.console import out, print_json, show
from aqmlab._util.extras import undrawable
from aqmlab._util.files import check_output_folder, write_text
from aqmlab._util.places import RUNS_ROOT
from aqmlab._util.table import TableModel, strong
from aqmlab._util.words import counted
from aqmlab.cards.card import Card
from aqmlab.cards.overview import Observed, cost_of
from aqmlab.cards.regression import Comparison
from aqmlab.cards.suites import Row, measures
from aqmlab.errors import AqmlabError

__all__ = [
    "folder_name",
    "left_out",
    "listed",
    "listed_json",
    "observed",
    "observed_json",
    "print_card",
    "write_card",
    "written",
]


def listed(rows: Sequence[Row], source: str) -> Iterator[str | TableModel]:
    """The tests of a suite: section, what is measured, cost; then those that are not realised."""
    yield strong(source)
    about = "scenario; what is measured"
    table = TableModel("", ["test", "section"], ["runs", "s each"], [about])
    for row in rows:
        if row.not_realised:
            continue
        runs, seconds = cost_of(row)
        about = f"{row.scenario}; {_measured(row)}"
        about += f"; differs: {row.differs}" if row.differs else ""
        table.add_row(row.id, _section(row), str(runs), f"{seconds:g}", about)
    yield table
    total = sum(cost_of(row)[0] for row in rows)
    yield f"runs: for each queue and seed, {total} together"
    left = [row for row in rows if row.not_realised]
    if left:
        yield ""
        table = TableModel("", ["not realised"], texts=["why"])
        for row in left:
            table.add_row(row.id, row.not_realised)
        yield table


def _section(row: Row) -> str:
    return row.section.split(" figure")[0].split(" table")[0][:22]


def _measured(row: Row) -> str:
    """What a row measures: by its own column, or on the card by the table of measures."""
    own = [measure.measure for measure in measures() if measure.test == row.id]
    return row.measures or ", ".join(own) or "gates"


def listed_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows of the list, as JSON."""
    found = []
    for row in rows:
        runs, seconds = cost_of(row)
        found.append({**vars(row), "measures": _measured(row), "runs": runs, "seconds": seconds})
    return found


def observed(found: Sequence[Observed]) -> Iterator[str | TableModel]:
    """What each cell showed, a row for each queue: the mean over seeds."""
    rpm = any(isinstance(one.numbers, dict) and one.numbers["rpm"] for one in found)
    heads = ("wait p50 ms", "p95", "p99", "Mbit/s", "loss %", "Jain", *(("RPM",) if rpm else ()))
    table = TableModel("", ["test", "setting", "queue"], heads)
    groups: dict[tuple[str, str, str], list[dict[str, float | None]]] = {}
    for one in found:
        if isinstance(one.numbers, dict):
            key = one.cell.id, one.cell.label, one.queue
            groups.setdefault(key, []).append(one.numbers)
    for (name, label, queue), runs in groups.items():
        mean = {key: _mean([run[key] for run in runs]) for key in runs[0]}
        cells = [
            _format(mean["wait_p50_s"], 1e3),
            _format(mean["wait_p95_s"], 1e3),
            _format(mean["wait_p99_s"], 1e3),
            _format(mean["goodput_bps"], 1e-6),
            _format(mean["loss_rate"], 100),
            _format(mean["jain"], 1),
        ]
        table.add_row(name, label, queue, *cells, *([_format(mean["rpm"], 1)] if rpm else []))
    yield table
    yield "wait: queueing delay in the queue under test, of several queues the longest"
    yield "Mbit/s: goodput of all classes; Jain: among a class's endless transfers, the lowest"


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of what was measured in every run."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _format(value: float | None, scale: float) -> str:
    """A value with three digits."""
    if value is None:
        return "-"
    number = value * scale
    return f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"


def observed_json(one: Observed) -> dict[str, Any]:
    """What a run showed, as JSON."""
    failed = isinstance(one.numbers, AqmlabError)
    return {
        "test": one.cell.row.id,
        "section": one.cell.row.section,
        "cell": one.cell.id,
        "setting": one.cell.label,
        "queue": one.queue,
        "seed": one.seed,
        "error": str(one.numbers) if failed else None,
        **({} if isinstance(one.numbers, AqmlabError) else one.numbers),
    }


def left_out(rows: Sequence[Row], homeless: Mapping[str, str]) -> Iterator[str]:
    """What was not run, and why.

    Args:
        rows: tests that have no scenario here.
        homeless: tests where the queue cannot stand, and why, by their ids.
    """
    for row in rows:
        why = row.not_realised or f"prescribes its queue ({row.queue}); give only --control"
        yield f"not run: {row.id} ({row.scenario}): {why}"
    for name, why in homeless.items():
        yield f"not run: {name}: {why}"


def print_card(
    card: Card,
    directory: Path | None,
    comparison: Comparison | None,
    weights: Mapping[str, float] | None = None,
    *,
    as_json: bool,
) -> None:
    """Writes the card's files, and prints the card."""
    from aqmlab.cards.page import page

    folder = directory or RUNS_ROOT / "cards" / folder_name(card.name)
    check_output_folder(folder)
    files = written(card, folder)
    if as_json:
        beside = {} if comparison is None else {"comparison": comparison.to_json()}
        print_json({**card.to_json(), **beside})
        return
    show(*page(card, weights))
    if comparison is not None:
        out("")
        for line in textwrap.wrap(comparison.summary, 80):
            out(line)
        for line in comparison.regressions:
            out(f"  worse: {line}")
    out("")
    for line in textwrap.wrap(f"written: {', '.join(map(str, files))}", 80):
        out(line)
    if why := undrawable():
        out(f"no page: {why}")
    if card.failures:
        out(f"{counted(len(card.failures), 'run')} of the candidate failed")


def folder_name(name: str) -> str:
    """The name of a candidate as a folder has it."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-")


def write_card(card: Card, path: Path) -> None:
    """Writes ``card.json``."""
    write_text(path, json.dumps(card.to_json(), indent=1, ensure_ascii=False) + "\n")


def written(card: Card, folder: Path) -> list[Path]:
    """Writes the files of a card: the numbers alone where what draws is not installed."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / name for name in ("card.json", "card.html", "card.pdf")]
    write_card(card, files[0])
    if undrawable():
        return files[:1]
    from aqmlab.cards.html import write_html, write_pdf  # it loads what draws

    write_html(card, files[1])
    write_pdf(card, files[2])
    return files
