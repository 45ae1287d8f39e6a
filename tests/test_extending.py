"""A reader of docs/extending.md adds a discipline, a control, a rule of TCP, a traffic model.

The files and lines of the page go into a copy of the checkout. The comments before its blocks say
where:

``<!-- new file: PATH -->``             The block is that file.
``<!-- add to PATH, below: LINE -->``   It goes below the only line of the file that reads so.
``<!-- add to PATH, at its end -->``    It goes to the end of a page that the generator has begun.

The copy and what is built of it stay in target/extending: in a folder that both share cargo takes
the copy's crates for those of the checkout. What the tests of the crates have built of other crates
is taken from there. `make test` leaves this file out; `make test-extending` runs it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extending.md"
COPY = ROOT / "target" / "extending" / "checkout"
PROFILE = "quick"
BUILT = ROOT / "target" / PROFILE
OURS = re.compile(r"(lib)?(aqmlab[-_]|it-)")
BLOCK = re.compile(
    r"^## (?P<section>[^\n]+)$|^<!-- (?P<comment>new file: [^>]+|add to [^>]+) -->\n"
    r"(?:<!-- not run: [^>]+ -->\n)?```\w+\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"^(cargo run -p aqmlab-xtask.*)$", re.MULTILINE)
SCENARIO = "scenarios/extended.toml"
SECONDS = 1200

KINDS = {
    "A queue discipline": ("disciplines", "every-nth", "Every n-th"),
    "A congestion control": ("congestion-controls", "mimd", "MIMD"),
    "A traffic model": ("traffic", "polling", "Polling"),
}
"""Sections of the page: the folder of the kind's pages, the name of the example, its title."""

PLAYER = {
    "crates/extended/Cargo.toml": """\
[package]
name = "extended"
version = "0.0.0"
edition.workspace = true

[dependencies]
aqmlab-record.workspace = true
aqmlab-scenario.workspace = true
aqmlab-sim.workspace = true
serde_json.workspace = true
""",
    "crates/extended/src/main.rs": """\
//! Prints what can be explained, and what a scenario does: its summary, and the trace of its
//! connections.

use std::path::Path;
use std::sync::{Arc, Mutex};

use aqmlab_record::{
    ClassMetrics, Exchange, Flow, LinkStats, QueueSamples, Records, RunError, TraceRow, sections,
};
use aqmlab_scenario::{Scenario, catalog};
use serde_json::{Value, json};

struct Traces(Arc<Mutex<Vec<Value>>>);

impl Records for Traces {
    fn begin(&mut self, _: &[String], _: &[&'static str]) -> Result<(), RunError> {
        Ok(())
    }
    fn response(&mut self, _: &Exchange) {}
    fn flow(&mut self, _: &Flow) {}
    fn trace(&mut self, row: &TraceRow) {
        self.0.lock().unwrap().push(json!({
            "class": row.class,
            "cwnd": row.probe.cwnd,
            "ssthresh": row.probe.ssthresh,
            "state": format!("{:?}", row.probe.recovery_state),
        }));
    }
    fn queue(&mut self, _: &QueueSamples) {}
    fn check(&mut self) -> Result<(), RunError> {
        Ok(())
    }
    fn finish(self: Box<Self>, _: &[ClassMetrics], _: &[&LinkStats]) -> Result<(), RunError> {
        Ok(())
    }
}

fn main() {
    let file = std::env::args().nth(1).expect("a scenario");
    let scenario = Scenario::load(Path::new(&file), &[]).unwrap_or_else(|error| panic!("{error}"));
    let rows = Arc::new(Mutex::new(Vec::new()));
    let records = Box::new(Traces(rows.clone()));
    let summary = aqmlab_sim::run(&scenario, records, &mut |_| true)
        .unwrap_or_else(|error| panic!("{error}"));
    let trace = std::mem::take(&mut *rows.lock().unwrap());
    let (catalog, metrics) = (catalog(), sections());
    let found =
        json!({ "catalog": catalog, "metrics": metrics, "summary": summary, "trace": trace });
    println!("{found}");
}
""",
}
"""A crate of the copy that shows what the additions do. It is no part of an addition."""


@dataclass(frozen=True)
class Block:
    """A file or an insertion, and the section of the page in which it stands."""

    section: str
    comment: str
    text: str

    @property
    def path(self) -> str:
        """The file that it is, or goes to."""
        return re.sub(r"^(new file: |add to )|, (below: .*|at its end)$", "", self.comment)

    @property
    def is_new_file(self) -> bool:
        return self.comment.startswith("new file: ")

    @property
    def is_end(self) -> bool:
        return self.comment.endswith(", at its end")

    @property
    def kind(self) -> str:
        """What its file is to the addition."""
        if self.is_new_file:
            return "new"
        if self.is_end:
            return "page"
        return "tests" if "/tests/" in self.path else "changed"

    def added_to(self, content: str) -> str:
        """The content of its file with the block in its place."""
        _, anchor = self.comment.split(", below: ")
        lines = content.splitlines(keepends=True)
        (place,) = [number for number, line in enumerate(lines) if line.strip() == anchor]
        return "".join([*lines[: place + 1], self.text, *lines[place + 1 :]])


@dataclass(frozen=True)
class Extended:
    """The copy of the checkout after the page was followed."""

    blocks: list[Block]
    changed: set[str]
    """Files that are not as in the checkout."""
    catalog: dict[str, Any]
    metrics: list[dict[str, Any]]
    """Those of the summary, by section."""
    summary: dict[str, Any]
    trace: list[dict[str, Any]]

    def touched(self, section: str) -> Counter[str]:
        """How many files a section touches by hand, by what they are."""
        paths = {block.path: block.kind for block in self.blocks if block.section == section}
        return Counter(paths.values())


def blocks_of_the_page() -> list[Block]:
    section, blocks = "", []
    for found in BLOCK.finditer(PAGE.read_text()):
        if found["section"]:
            section = found["section"]
        else:
            blocks.append(Block(section, found["comment"], found["text"]))
    return blocks


def tracked() -> dict[str, bytes]:
    """The tracked files of the checkout, as they are in the working folder."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    files = [name for name in names.split("\0") if name and (ROOT / name).is_file()]
    return {name: (ROOT / name).read_bytes() for name in files}


def make_copy(files: dict[str, bytes]) -> None:
    """Makes the copy hold these files and no others; those that are right keep their time."""
    for path in [path for path in COPY.rglob("*") if not path.is_dir()]:
        if path.relative_to(COPY).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        path = COPY / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def take_built(target: Path) -> None:
    """Takes what is built of crates that are not ours: cargo finds the same names and times."""
    for folder, names in (("deps", "lib*-*.*"), ("build", "*"), (".fingerprint", "*")):
        place = target / PROFILE / folder
        place.mkdir(parents=True, exist_ok=True)
        for path in (BUILT / folder).glob(names):
            if OURS.match(path.name) or (place / path.name).exists():
                continue
            if path.is_dir():
                shutil.copytree(path, place / path.name)
            else:
                (place / path.name).hardlink_to(path)


def cargo(command: str, *arguments: str) -> str:
    """What a command of cargo in the copy prints."""
    answer = subprocess.run(
        ["cargo", command, "--profile", PROFILE, *arguments],
        cwd=COPY,
        env={
            **os.environ,
            "CARGO_TARGET_DIR": str(COPY.parent / "target"),
            "CARGO_NET_OFFLINE": "true",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert answer.returncode == 0, (
        f"cargo {command} {shlex.join(arguments)}\n{answer.stdout}{answer.stderr}"
    )
    return answer.stdout


@pytest.fixture(scope="module")
def extended() -> Extended:
    """The page, followed once."""
    before = tracked()
    files, blocks = dict(before), blocks_of_the_page()
    for block in blocks:
        if block.is_new_file:
            assert block.path not in files, f"{block.path} is part of aqmlab"
            files[block.path] = block.text.encode()
        elif not block.is_end:
            files[block.path] = block.added_to(files[block.path].decode()).encode()
    make_copy(files | {name: text.encode() for name, text in PLAYER.items()})
    take_built(COPY.parent / "target")
    (generate,) = COMMAND.findall(PAGE.read_text())
    _, run, *arguments = shlex.split(generate)
    cargo(run, "--quiet", *arguments)
    for block in blocks:
        if block.is_end:
            page = COPY / block.path
            page.write_text(page.read_text() + block.text)
    found = json.loads(cargo("run", "--quiet", "-p", "extended", "--", SCENARIO))
    own = {*PLAYER, "Cargo.lock"}
    paths = {path.relative_to(COPY).as_posix(): path for path in COPY.rglob("*") if path.is_file()}
    changed = {name for name, path in paths.items() if before.get(name) != path.read_bytes()}
    return Extended(blocks, changed - own, **found)


@pytest.mark.parametrize("section", KINDS)
def test_an_addition_is_one_file_and_lines_in_another(
    section: str, extended: Extended, capsys: pytest.CaptureFixture[str]
) -> None:
    touched = extended.touched(section)
    lines = sum(
        block.text.count("\n")
        for block in extended.blocks
        if block.section == section and block.kind == "changed"
    )
    with capsys.disabled():
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(touched.items()))
        sys.stdout.write(f"{section}: {counts}; {lines} lines in the changed file\n")
    # The tests of all disciplines ask for parameters that reach the limits of each.
    tests = {"tests": 1} if section == "A queue discipline" else {}
    assert touched == {"new": 1, "changed": 1, "page": 1, **tests}
    # The module, the line in the list, and its comment.
    assert lines == 3


def test_a_rule_of_tcp_is_a_key_and_one_place(extended: Extended) -> None:
    section = "A rule of TCP"
    assert extended.touched(section) == {"new": 1, "changed": 2}
    changed = [b for b in extended.blocks if b.section == section and b.kind == "changed"]
    assert [block.text.count("\n") for block in changed] == [3, 4]
    assert '"idle_keeps_ssthresh"' in (COPY / "scenarios" / "schema.json").read_text()
    assert "| `idle_keeps_ssthresh` |" in (COPY / "docs" / "tcp-stack.md").read_text()


def test_the_packet_script_of_the_rule_plays(extended: Extended) -> None:
    assert "crates/tcp/tests/scripts/idle-keeps-ssthresh.script" in extended.changed
    cargo("test", "--quiet", "-p", "aqmlab-tcp", "--test", "it", "scripts")


def test_a_parameter_is_one_declaration(extended: Extended) -> None:
    """The field, and what it does, in one file; it is checked and explained."""
    assert extended.touched("A parameter") == {"changed": 1}
    found = extended.catalog["disciplines"]["every-nth"]["parameters"]
    [skip] = [parameter for parameter in found if parameter["name"] == "skip"]
    assert (skip["default"], skip["description"]) == (
        0,
        "Arrivals that pass before the count begins.",
    )
    assert '"maximum": 1000000' in (COPY / "scenarios" / "schema.json").read_text()


def test_a_metric_is_one_declaration(extended: Extended) -> None:
    """One line with its look, and its value: no line of Python."""
    assert extended.touched("A metric") == {"changed": 1}
    blocks = [block.text for block in extended.blocks if block.section == "A metric"]
    assert sum(text.count("\n") for text in blocks) == 3
    link = extended.summary["links"]["bottleneck"]["forward"]
    assert link["delivered_share"] == link["departed_packets"] / link["arrived_packets"]
    [metric] = [
        metric
        for section in extended.metrics
        for metric in section["metrics"]
        if metric["key"] == "links.<link>.<direction>.delivered_share"
    ]
    assert metric["meaning"] == "`departed_packets / arrived_packets`."
    look = {key: metric[key] for key in ("label", "shown_unit", "digits", "head", "name")}
    assert look == {
        "label": "delivered",
        "shown_unit": "%",
        "digits": 2,
        "head": "delivered %",
        "name": "delivered",
    }


def test_nothing_else_changes(extended: Extended) -> None:
    generated = {
        "docs/scenario.md",
        "docs/tcp-stack.md",
        "scenarios/schema.json",
        "web/src/catalog.json",
        "docs/metrics.md",
        "docs/summary.schema.json",
    }
    assert extended.changed == {block.path for block in extended.blocks} | generated
    lock = (COPY / "Cargo.lock").read_text()
    own = re.compile(r'\[\[package\]\]\nname = "extended"\n.*?\n\n', re.DOTALL)
    assert own.sub("", lock) == (ROOT / "Cargo.lock").read_text()


def test_every_file_of_the_page_is_formatted(extended: Extended) -> None:
    files = [block.path for block in extended.blocks if block.path.endswith(".rs")]
    subprocess.run(["rustfmt", "--check", "--edition", "2024", *files], cwd=COPY, check=True)


@pytest.mark.parametrize("section", KINDS)
def test_each_is_explained_and_has_a_page(section: str, extended: Extended) -> None:
    folder, name, title = KINDS[section]
    if folder == "congestion-controls":
        entry = extended.catalog["transports"][f"congestion_control.{name}"]
    else:
        entry = extended.catalog[folder][name]
    assert entry["about"]["title"] == title
    assert entry["parameters"]
    page = (COPY / "docs" / folder / f"{name}.md").read_text()
    assert page.startswith(f"# {title} (`{name}`)\n\n{entry['about']['purpose']}\n")
    for parameter in entry["parameters"]:
        assert f"| `{parameter['name']}` |" in page
    (by_hand,) = [b.text for b in extended.blocks if b.section == section and b.is_end]
    assert page.endswith(by_hand)
    schema = (COPY / "scenarios" / "schema.json").read_text()
    assert f'"const": "{name}"' in schema


def test_every_nth_arrival_is_dropped(extended: Extended) -> None:
    link = extended.summary["links"]["bottleneck"]["forward"]
    assert link["arrived_packets"] > 100_000
    # Where the count stood when the measured span began is not known.
    assert abs(link["drops"]["early"] - link["arrived_packets"] / 250) < 1
    assert link["drops"] == {"early": link["dropped_packets"], "overflow": 0}
    assert link["marks"] == {"early": 0}


def test_what_holds_for_every_discipline_holds(extended: Extended) -> None:
    assert "crates/aqm/tests/model/mod.rs" in extended.changed
    cargo("test", "--quiet", "-p", "aqmlab-aqm", "--test", "it", "properties")


def test_each_client_polls_once_per_period(extended: Extended) -> None:
    polls = extended.summary["responses"]["polls"]
    # 20 clients, 240 s, a period of 2 s.
    assert polls["started"] == 20 * 120
    assert abs(polls["count"] - polls["started"]) <= 20
    goodput = extended.summary["flows"]["polls"]["goodput_bps"]
    assert goodput == pytest.approx(20 * 20_000 * 8 / 2, rel=0.02)


def test_the_window_follows_the_rule_of_mimd(extended: Extended) -> None:
    mss = 1448
    rows = [row for row in extended.trace if row["class"] == 1]
    steps, shares = [], []
    for before, after in pairwise(rows):
        if before["state"] == after["state"] == "Open":
            grown = after["cwnd"] - before["cwnd"]
            if before["cwnd"] > before["ssthresh"] and grown > 0:
                steps.append(grown)
        elif before["state"] == "Open":
            shares.append((before["cwnd"], after["ssthresh"]))
    assert len(steps) > 1000
    assert len(shares) > 20
    # A hundredth of what an ACK acknowledges, most often two segments; the trace has whole bytes.
    rule = 0.01 * mss
    assert statistics.mode(steps) == round(2 * rule)
    assert all(abs(step - rule * round(step / rule)) <= 1 for step in steps)
    # The profile takes the share in whole segments.
    for window, left in shares:
        assert left == int(0.875 * window) // mss * mss
    goodput = extended.summary["flows"]["transfer"]["goodput_bps"]
    assert goodput > 2e6


def test_what_ships_is_complete(extended: Extended) -> None:
    """Schema, reference and heads are fresh; every page mentions its validation."""
    assert extended.changed
    cargo("test", "--quiet", "-p", "aqmlab-scenario", "--test", "it", "shipped")
