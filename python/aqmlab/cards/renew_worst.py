"""``make worst``: the worst scenarios of the well-known queues, searched again."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from pathlib import Path

from aqmlab._util.files import write_text
from aqmlab.cards.generator import FOLDER
from aqmlab.cards.leaderboard import entries
from aqmlab.cards.worst import Worst
from aqmlab.cards.worst_search import TRIALS, worst

__all__ = ["QUEUES", "main"]


QUEUES = ("droptail", "red", "codel", "fq-codel", "pie", "cake", "dualpi2")
"""Whose worst scenarios ship with the package, with the parameters that the leaderboard has."""

_MORE = {"cake": 120}
"""Trials of queues for which the usual number finds nothing that lasts."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Searches for each queue, and writes its scenario and a table of what they show."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("queues", nargs="*", default=QUEUES, help="default: the seven of the table")
    parser.add_argument("--trials", type=int, help=f"default: {TRIALS}; of cake {_MORE['cake']}")
    parser.add_argument("--jobs", type=int, help="runs at a time; default: number of processors")
    parser.add_argument("--store", help="folder of the store of runs; default: runs/store")
    parser.add_argument("--search", type=Path, default=Path("out/worst"), help="folder of searches")
    parser.add_argument("--out", type=Path, default=FOLDER / "worst", help="folder of scenarios")
    given = parser.parse_args(arguments)
    chosen = {entry.kind: entry.text for entry in entries()}
    rows = []
    for queue in given.queues:
        found = worst(
            chosen[queue],
            trials=given.trials or _MORE.get(queue, TRIALS),
            jobs=given.jobs,
            store=given.store,
            out=given.search / queue,
        )
        given.out.mkdir(parents=True, exist_ok=True)
        write_text(
            given.out / f"{queue}.toml", found.file.replace("run worst.toml", f"run {queue}.toml")
        )
        rows += _rows(queue, found)
        print(found.sentence)  # noqa: T201 - what `make worst` shows
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(given.out / "worst.csv", stream.getvalue())


def _rows(queue: str, found: Worst) -> list[dict[str, str]]:
    """A row for each number, the worst one first."""
    return [
        {
            "queue": queue,
            "other": found.other,
            "number": one.measure.titled,
            "queue_value": one.measure.shown(one.mine),
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
