"""``make worst``: the worst scenarios of well-known queues and controls, searched again."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from pathlib import Path

from aqmlab._util.files import write_text
from aqmlab.cards import leaderboard
from aqmlab.cards.generator import FOLDER
from aqmlab.cards.leaderboard import entries
from aqmlab.cards.worst import Worst
from aqmlab.cards.worst_search import SEEDS, TRIALS, worst

__all__ = ["CONTROLS", "QUEUES", "TABLES", "WORST", "main"]


QUEUES = ("droptail", "red", "codel", "fq-codel", "pie", "cake", "dualpi2")
"""Whose worst scenarios ship with the package, with the parameters that the leaderboard has."""
CONTROLS = ("cubic", "reno", "bbr1", "bbr3", "vegas", "prague")
"""Controls with a worst scenario in the package, with the ECN of the leaderboard."""
WORST = FOLDER / "worst"
"""Where they are."""
TABLES = {"queue": WORST / "queues.csv", "control": WORST / "controls.csv"}
"""What they show, by kind of candidate."""
_MORE = {"cake": (120, SEEDS), "bbr3": (100, tuple(range(1, 7)))}
"""Trials and seeds of those for which the usual numbers find nothing that lasts."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Searches for each, and writes its scenario and a table of what they show."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", help="default: all queues and controls of the tables")
    parser.add_argument(
        "--trials", type=int, help=f"default: {TRIALS}, of {' and '.join(_MORE)} more"
    )
    parser.add_argument("--jobs", type=int, help="runs at a time; default: number of processors")
    parser.add_argument("--store", help="folder of the store of runs; default: runs/store")
    parser.add_argument("--search", type=Path, default=Path("out/worst"), help="folder of searches")
    given = parser.parse_args(arguments)
    boards = {"queue": leaderboard.QUEUES, "control": leaderboard.CONTROLS}
    for kind, names in (("queue", QUEUES), ("control", CONTROLS)):
        chosen = {entry.kind: entry for entry in entries(boards[kind])}
        rows: dict[str, list[dict[str, str]]] = {}
        for row in leaderboard.read(TABLES[kind]) if given.names else ():
            rows.setdefault(row[kind], []).append(row)
        for name in (one for one in names if one in (given.names or names)):
            entry = chosen[name]
            trials, seeds = _MORE.get(name, (TRIALS, SEEDS))
            found = worst(
                entry.text if kind == "queue" else None,
                control=None if kind == "queue" else entry.text,
                ecn=entry.ecn,
                trials=given.trials or trials,
                seeds=seeds,
                jobs=given.jobs,
                store=given.store,
                out=given.search / name,
            )
            text = found.file.replace("run worst.toml", f"run {name}.toml")
            write_text(WORST / f"{name}.toml", text)
            rows[name] = _rows(name, found)
            print(found.sentence)  # noqa: T201 - what `make worst` shows
        if rows:
            _write([row for name in names for row in rows.get(name, ())], TABLES[kind])


def _write(rows: Sequence[dict[str, str]], path: Path) -> None:
    """Writes a table."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, stream.getvalue())


def _rows(name: str, found: Worst) -> list[dict[str, str]]:
    """A row for each number, the worst one first."""
    return [
        {
            found.kind: name,
            "other": found.other,
            "number": one.measure.titled,
            f"{found.kind}_value": one.measure.shown(one.mine),
            "other_value": one.measure.shown(one.theirs),
            "points": f"{one.points.mean:.3f}",
            "low": f"{one.points.low:.3f}",
            "high": f"{one.points.high:.3f}",
            "instead": found.instead,
        }
        for one in found.changes
    ]


if __name__ == "__main__":
    main()
