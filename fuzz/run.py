"""Fuzz every target for some minutes: `make fuzz MINUTES=10`, or `python3 fuzz/run.py --help`.

Builds the targets of `crates/fuzz` with the instrumentation of coverage that libFuzzer needs. The
compiler of the project does: neither a nightly one nor cargo-fuzz is needed. A C++ compiler is: it
builds libFuzzer. What is found stands in `out/fuzz/findings`; corpora grow in `out/fuzz/corpus`,
beside what is committed. The expressions of sweeps are Python, and are fuzzed by
`tests/test_expressions.py`.
"""
# ruff: noqa: T201  (it prints a table)

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "fuzz"
COMMITTED = ROOT / "fuzz" / "corpus"
PAGE = ROOT / "records" / "reliability.md"
EXPRESSIONS = "expressions"

# What libFuzzer needs: counters of edges, their addresses, and what is compared with what.
FLAGS = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg fuzzing",
)
# Longer inputs than these only take time.
LONGEST = {"scenario": 16_384, "vectors": 8_192, "pcap": 8_192, "pcapng": 8_192, "run": 512}
LONGEST_OF_OTHERS = 4_096
# What an input frees is kept for the next one: asking the kernel anew takes a third of the time.
HEAP = {"MALLOC_TRIM_THRESHOLD_": str(64 << 20), "MALLOC_MMAP_THRESHOLD_": str(64 << 20)}
# No input may take longer, nor more memory.
SECONDS, MEGABYTES = 25, 2_048


@dataclass(frozen=True)
class Fuzzed:
    """What a target did."""

    executions: int
    edges: int
    inputs: int
    findings: int


def build() -> Path:
    """Builds the executables of all targets; the folder that they are in."""
    if shutil.which("c++") is None and shutil.which("g++") is None:
        sys.exit("fuzz: NOTHING WAS FUZZED: there is no C++ compiler, which libFuzzer needs (g++)")
    host = re.search(r"^host: (\S+)", _said("rustc", "-vV"), re.MULTILINE)
    assert host is not None
    # With a target named, build scripts are not instrumented.
    command = f"cargo build --release --target {host[1]} --manifest-path fuzz/Cargo.toml"
    flags = {"RUSTFLAGS": " ".join(FLAGS), "CARGO_TARGET_DIR": str(ROOT / "target" / "fuzz")}
    if subprocess.run(
        command.split(), cwd=ROOT, env={**os.environ, **flags}, check=False
    ).returncode:
        sys.exit("fuzz: NOTHING WAS FUZZED: the targets cannot be built")
    return ROOT / "target" / "fuzz" / host[1] / "release"


def _said(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def targets() -> list[str]:
    """The names of all targets of `crates/fuzz`."""
    return sorted(path.stem for path in (ROOT / "fuzz" / "src" / "bin").glob("*.rs"))


def fuzz(executables: Path, name: str, seconds: float) -> Fuzzed:
    """Fuzzes a target for some seconds, from what is kept of it on."""
    corpus, findings = OUT / "corpus" / name, OUT / "findings" / name
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    kept = [folder for folder in (corpus, COMMITTED / name) if folder.is_dir()]
    options = {
        "max_total_time": max(1, round(seconds)),
        "max_len": LONGEST.get(name, LONGEST_OF_OTHERS),
        "timeout": SECONDS,
        "report_slow_units": SECONDS,  # less says how busy the machine is
        "rss_limit_mb": MEGABYTES,
        "artifact_prefix": f"{findings}/",
        "print_final_stats": 1,
    }
    words = OUT / "words"
    words.write_text("".join(f'"{word}"\n' for word in _words()))
    if name == "scenario":
        options["dict"] = words
    given = [f"-{key}={value}" for key, value in options.items()]
    command: list[str | Path] = [executables / name, *given, *kept]
    done = subprocess.run(
        command,
        env={**os.environ, **HEAP},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    said = done.stderr.decode(errors="replace")
    (OUT / f"{name}.log").write_text(said)
    executions = re.findall(r"stat::number_of_executed_units:\s+(\d+)", said)
    edges = re.findall(r" cov: (\d+)", said)
    if not executions or not edges:
        sys.exit(f"fuzz: {name} did not run; see {OUT / name}.log")
    found = len(list(findings.iterdir()))
    if done.returncode != 0 and found == 0:
        sys.exit(f"fuzz: {name} ended with status {done.returncode}; see {OUT / name}.log")
    return Fuzzed(int(executions[-1]), int(edges[-1]), len(list(corpus.iterdir())), found)


def _words() -> list[str]:
    """What the keys and the words of scenarios are called."""
    schema = (ROOT / "scenarios" / "schema.json").read_text()
    return sorted(set(re.findall(r'"([a-z_0-9-]{2,40})"', schema)))


def expressions(seconds: float) -> Fuzzed:
    """Fuzzes the expressions of sweeps with Hypothesis."""
    script = ROOT / "tests" / "test_expressions.py"
    command: list[str | Path] = [sys.executable, script, str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    counts = re.search(r"(\d+) executions, (\d+) lines", done.stdout)
    if counts is None:
        sys.exit(f"fuzz: {EXPRESSIONS} did not run")
    return Fuzzed(int(counts[1]), int(counts[2]), 0, int(done.returncode != 0))


def note(name: str, done: Fuzzed) -> None:
    """Adds what a target did to its row of the table in records/reliability.md."""

    def added(row: re.Match[str]) -> str:
        executions, edges = (int(number.replace(",", "")) for number in (row[2], row[3]))
        total, most = executions + done.executions, max(edges, done.edges)
        return f"| {row[1]} | {total:,} | {most:,}{row[4] or ''} |"

    row = rf"^\| (`{name}`|{name} \(Python\)) \| ([\d,]+) \| ([\d,]+)( lines)? \|"
    text, rows = re.subn(row, added, PAGE.read_text(), flags=re.MULTILINE)
    if rows != 1:
        sys.exit(f"fuzz: {PAGE} has {rows} rows of {name}")
    PAGE.write_text(text)


def smallest(executables: Path, name: str, most: int) -> None:
    """Renews a committed corpus: few inputs that together reach what all of them do."""
    chosen = OUT / "merged" / name
    shutil.rmtree(chosen, ignore_errors=True)
    chosen.mkdir(parents=True)
    kept = [folder for folder in (COMMITTED / name, OUT / "corpus" / name) if folder.is_dir()]
    options = ["-set_cover_merge=1", f"-max_len={LONGEST.get(name, LONGEST_OF_OTHERS)}"]
    subprocess.run(
        [executables / name, *options, chosen, *kept],
        env={**os.environ, **HEAP},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    # The first ones reach most, but nothing says which they are: long ones reach more.
    by_size = sorted(chosen.iterdir(), key=lambda path: path.stat().st_size)
    step = max(1, -(-len(by_size) // most))
    shutil.rmtree(COMMITTED / name, ignore_errors=True)
    (COMMITTED / name).mkdir(parents=True)
    for path in by_size[::step]:
        shutil.copy(path, COMMITTED / name / path.name[:16])


def main() -> None:
    """Reads the command line, fuzzes, prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of all targets together")
    parser.add_argument("--target", action="append", help="only these; default: all")
    parser.add_argument(
        "--note", action="store_true", help="add what was done to records/reliability.md"
    )
    parser.add_argument(
        "--minimise", type=int, help="renew fuzz/corpus, with so many files at most"
    )
    arguments = parser.parse_args()
    known = [*targets(), EXPRESSIONS]
    wanted = arguments.target or known
    for name in wanted:
        if name not in known:
            sys.exit(f"fuzz: there is no target {name}; there are {', '.join(known)}")
    executables = build()
    seconds = arguments.minutes * 60 / len(wanted)
    print(f"{'':<14} {'executions':>12} {'edges':>7} {'new inputs':>11} {'findings':>9}")
    findings = 0
    for name in wanted:
        done = expressions(seconds) if name == EXPRESSIONS else fuzz(executables, name, seconds)
        findings += done.findings
        print(
            f"{name:<14} {done.executions:>12,} {done.edges:>7,} {done.inputs:>11,} "
            f"{done.findings:>9}",
            flush=True,
        )
        if arguments.note:
            note(name, done)
        if arguments.minimise and name != EXPRESSIONS:
            smallest(executables, name, arguments.minimise)
    if findings:
        sys.exit(f"fuzz: {findings} findings, in {OUT / 'findings'}")


if __name__ == "__main__":
    main()
