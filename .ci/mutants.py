"""Mutation testing: what part of small changes to the code do the tests of its crate notice?

`make mutants` runs cargo-mutants over the crates below and writes records/mutants.md: how many
changes were caught, and each that was not. A crate has up to 5,000 of them, 20 s each, so `--each`
are taken of a crate, spread over its files. What was tried is in out/mutants; remove it
after the code has changed. It wants a machine without other work: a mutant whose tests take five
times as long as they should counts as caught, because it may never end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "records" / "mutants.md"
OUT = ROOT / "out" / "mutants"
CRATES = ("aqm", "tcp", "link", "record")
BAR = 0.9
# Debug information only takes time here, and what a mutant prints is not looked at.
PLAIN = {"CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_TEST_DEBUG": "0"}
CAUGHT, ENDLESS, MISSED = VIABLE = ("CaughtMutant", "Timeout", "MissedMutant")


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


def outcomes(crate: str, parts: int) -> list[dict[str, Any]]:
    """What became of each mutant that compiles, of one of so many parts of a crate's."""
    out = OUT / f"{crate}-1-of-{parts}"
    made = out / "mutants.out" / "outcomes.json"
    if not (out / "done").is_file():
        out.mkdir(parents=True, exist_ok=True)
        part = ("--shard", f"0/{parts}", "--sharding", "round-robin")
        ended = mutants(
            *("--package", f"aqmlab-{crate}", "--output", str(out), *part, "--", "--locked")
        )
        # 2: some were missed, 3: some took too long. Both are results.
        if ended.returncode not in {0, 2, 3}:
            sys.exit(f"mutants: of {crate}, cargo-mutants ended with status {ended.returncode}")
        (out / "done").touch()
    found: list[dict[str, Any]] = json.loads(made.read_text())["outcomes"]
    return [one for one in found if one["summary"] in VIABLE and one["scenario"] != "Baseline"]


def place(mutant: dict[str, Any]) -> str:
    """Where a mutant is, and what it changes."""
    return str(mutant["scenario"]["Mutant"]["name"]).removeprefix("crates/")


def page(found: dict[str, tuple[int, list[dict[str, Any]]]]) -> str:
    """The record."""
    lines = [
        "# Mutation testing",
        "",
        "A mutant is a small change of the code: another operator, another value that a function",
        "returns. A test of its own crate must fail then. `make mutants` makes them by",
        "cargo-mutants and writes this page. Of each crate it takes a part, spread over its files.",
        f"Those that do not compile are left out. The bar is {BAR:.0%}. A mutant whose tests do",
        "not end counts as caught. Forty tried give the share of all mutants to some ten points.",
        "",
        "| crate | mutants in all | tried | a test fails | does not end | missed | caught, share |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    missed = []
    for crate, (count, tried) in found.items():
        summaries = Counter(one["summary"] for one in tried)
        caught = len(tried) - summaries[MISSED]
        share = f"{caught / len(tried):.0%}" if tried else "none"
        lines.append(
            f"| {crate} | {count} | {len(tried)} | {summaries[CAUGHT]} | {summaries[ENDLESS]} "
            f"| {summaries[MISSED]} | {share} |"
        )
        missed += [place(one) for one in tried if one["summary"] == MISSED]
    lines += ["", "## Missed", ""]
    lines += [f"- `{one}`" for one in sorted(missed)] or ["None."]
    return "\n".join(lines) + "\n"


def count(text: str) -> int:
    """How many mutants to take of a crate."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def main() -> None:
    """Runs what is missing, prints the table and writes it."""
    parser = argparse.ArgumentParser(description="Mutation testing of the crates.")
    parser.add_argument("--each", type=count, default=40, help="mutants of a crate (40)")
    parser.add_argument("--crates", nargs="+", choices=CRATES, default=CRATES)
    chosen = parser.parse_args()
    if mutants("--version", listed=True).returncode:
        sys.exit("mutants: needs cargo-mutants (`cargo install cargo-mutants --locked`)")
    found = {}
    for crate in chosen.crates:
        listed = mutants("--package", f"aqmlab-{crate}", "--list", listed=True).stdout.splitlines()
        parts = max(1, round(len(listed) / chosen.each))
        found[crate] = (len(listed), outcomes(crate, parts))
    content = page(found)
    sys.stdout.write(content)
    if set(chosen.crates) == set(CRATES):
        RECORD.write_text(content)


if __name__ == "__main__":
    main()
