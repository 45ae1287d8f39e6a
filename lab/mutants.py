"""Mutation testing: what part of small changes to the code do the tests of its crate notice?

`make mutants` runs cargo-mutants over the crates below and writes records/mutants.md: how many
changes were caught, and each that was not. A crate has up to 5,000 of them, 20 s each, so `--each`
are taken of a crate, spread over its files. Tests that were written for what one sample missed show
little by it: `--sample` takes another. What was tried is in out/mutants; remove it after the code
has changed. It needs a machine without other work: a mutant whose tests take five times as long as
they should counts as caught, because it may never end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "records" / "mutants.md"
OUT = ROOT / "out" / "mutants"
CRATES = ("aqm", "tcp", "link", "record")
# Debug information only takes time here, and what a mutant prints is not looked at.
PLAIN = {"CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_TEST_DEBUG": "0"}
CAUGHT, ENDLESS, MISSED = VIABLE = ("CaughtMutant", "Timeout", "MissedMutant")
HEAD = """\
# Mutation testing

A mutant is a small change of the code: another operator, another value that a function returns.
`make mutants` makes them by cargo-mutants, runs the tests of their crate, and writes this page. It
tries a part of each crate's, spread over its files; what does not compile is left out. A mutant
whose tests do not end counts as caught. What tests of other crates notice, such as the pinned runs
of the simulator, does not count. The aim is 90 %. Forty tried give the share of all mutants to some
ten points. A sample is every n-th mutant of a crate, from the one with the sample's number on.
Notes in parentheses are by hand: the test that catches a mutant today, or why no test does. They
change no count.

"""
COLUMNS = (
    *("crate", "commit", "sample", "mutants", "tried"),
    *("tests fail", "do not end", "missed", "caught"),
)
RULE = ("---", "---", *("---:",) * 7)


def mutants(*arguments: str, listed: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs cargo-mutants. What it lists is in ``stdout``; else that goes to the terminal."""
    return subprocess.run(
        ["cargo", "mutants", "--colors", "never", *arguments],
        cwd=ROOT,
        env=os.environ | PLAIN,
        stdout=subprocess.PIPE if listed else None,
        text=True,
        check=False,
    )


Outcome = dict[str, Any]


def tried(out: Path, *arguments: str) -> list[Outcome]:
    """What became of each mutant that compiles, now or at an earlier call."""
    if not (out / "done").is_file():
        out.mkdir(parents=True, exist_ok=True)
        ended = mutants("--output", str(out), *arguments)
        # 2: some were missed, 3: some took too long. Both are results.
        if ended.returncode not in {0, 2, 3}:
            sys.exit(f"mutants: cargo-mutants ended with status {ended.returncode}")
        (out / "done").touch()
    made = (out / "mutants.out" / "outcomes.json").read_text()
    found: list[Outcome] = json.loads(made)["outcomes"]
    return [one for one in found if one["summary"] in VIABLE and one["scenario"] != "Baseline"]


def name(mutant: Outcome) -> str:
    """Where a mutant is, and what it changes, as cargo-mutants lists it."""
    return str(mutant["scenario"]["Mutant"]["name"])


def of_crate(crate: str, sample: int, parts: int) -> Row:
    """Tries one of so many parts of a crate's mutants."""
    number = (sample - 1) % parts
    part = ("--shard", f"{number}/{parts}", "--sharding", "round-robin")
    found = tried(
        OUT / f"{crate}-{number + 1}-of-{parts}",
        *("--package", f"aqmlab-{crate}", *part, "--", "--locked"),
    )
    summaries = Counter(one["summary"] for one in found)
    missed = [name(one) for one in found if one["summary"] == MISSED]
    return Row(summaries[CAUGHT], summaries[ENDLESS], missed)


@dataclass(frozen=True)
class Row:
    """A crate's mutants: those that a test fails with, those that do not end, and the others."""

    caught: int
    endless: int
    missed: list[str]

    @property
    def cells(self) -> str:
        """The counts, and the share that is caught."""
        caught, missed = self.caught + self.endless, len(self.missed)
        share = f"{caught / max(caught + missed, 1):.0%}"
        return " | ".join(map(str, (caught + missed, self.caught, self.endless, missed, share)))


def line(cells: Iterable[str]) -> str:
    """A line of the table."""
    return f"| {' | '.join(cells)} |"


def kept(crate: str) -> list[str]:
    """The lines of the record about a crate that is not counted now."""
    lines = RECORD.read_text().splitlines() if RECORD.is_file() else []
    return [it for it in lines if it.startswith((f"| {crate} |", f"- `crates/{crate}/"))]


def counted(crate: str, sample: int, row: tuple[int, Row]) -> list[str]:
    """The lines of the record about a crate."""
    commit = ["git", "log", "-1", "--format=%h of %cs"]
    at = subprocess.check_output(commit, cwd=ROOT, text=True).strip()
    mutants, found = row
    cells = (crate, at, str(sample), str(mutants), found.cells)
    return [line(cells), *sorted(f"- `{one}`" for one in found.missed)]


def page(lines: list[str]) -> str:
    """The record, from the lines about each crate."""
    rows = [one for one in lines if one.startswith("|")]
    missed = [one for one in lines if one.startswith("-")] or ["None."]
    table = [line(COLUMNS), line(RULE), *rows, "", "## Missed", "", *missed]
    return HEAD + "\n".join(table) + "\n"


def count(text: str) -> int:
    """How many mutants to take of a crate, or the number of a sample."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def main() -> None:
    """Runs what is missing, prints the table and writes it."""
    parser = argparse.ArgumentParser(description="Mutation testing of the crates.")
    parser.add_argument("--each", type=count, default=40, help="mutants of a crate (40)")
    parser.add_argument("--sample", type=count, default=1, help="which mutants of a crate (1)")
    parser.add_argument("--crates", nargs="+", choices=CRATES, default=CRATES, help="others stay")
    chosen = parser.parse_args()
    if mutants("--version", listed=True).returncode:
        sys.exit("mutants: needs cargo-mutants (`cargo install cargo-mutants --locked`)")
    lines = []
    for crate in CRATES:
        if crate not in chosen.crates:
            lines += kept(crate)
            continue
        listed = mutants("--package", f"aqmlab-{crate}", "--list", listed=True).stdout.splitlines()
        parts = max(1, round(len(listed) / chosen.each))
        row = len(listed), of_crate(crate, chosen.sample, parts)
        lines += counted(crate, chosen.sample, row)
    content = page(lines)
    sys.stdout.write(content)
    RECORD.write_text(content)


if __name__ == "__main__":
    main()
