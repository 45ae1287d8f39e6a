"""``make baselines``: the numbers of the baselines that ship with the package, made again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from aqmlab.cards.baselines import FILE, write
from aqmlab.cards.evaluation import numbers_of_baselines

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Makes the baselines' runs that the store lacks, and writes the file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--tier", default="standard", help="the largest tier; default: standard")
    parser.add_argument("--jobs", type=int, help="runs at a time; default: number of processors")
    parser.add_argument("--store", help="folder of the store of runs; default: runs/store")
    parser.add_argument("--out", type=Path, default=FILE, help="the file; default: the package's")
    given = parser.parse_args(arguments)
    write(numbers_of_baselines(given.tier, jobs=given.jobs, store=given.store), given.out)
    size = given.out.stat().st_size
    print(f"{given.out}: {size / 1000:.0f} kB")  # noqa: T201 - what `make baselines` shows


if __name__ == "__main__":
    main()
