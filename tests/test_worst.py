"""The search for the worst: bounds, regret, what is written, and the scenarios that ship."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

import aqmlab as package
import numpy as np
import pytest
from aqmlab.cards import renew_worst, worst_search
from aqmlab.cards.candidates import named
from aqmlab.cards.generator import scenario_of
from aqmlab.cards.scoring import points
from aqmlab.cards.suites import Measure
from aqmlab.cards.worst import bounds, cell_of, lost, numbers_of
from conftest import ROOT, Cli

SEEDS = (1001, 1002)


WORST = ROOT / "scenarios/worst"
KINDS = {"queue": renew_worst.QUEUES, "control": renew_worst.CONTROLS}
CASES = [(kind, name) for kind, names in KINDS.items() for name in names]


def shipped(kind: str) -> dict[str, list[dict[str, str]]]:
    """The rows of a table, by queue or control."""
    with (WORST / renew_worst.TABLES[kind].name).open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    return {name: [*own] for name, own in groupby(rows, key=lambda row: row[kind])}


def test_no_scenario_is_left_over() -> None:
    assert sorted(file.stem for file in WORST.glob("*.toml")) == sorted(name for _, name in CASES)


@pytest.mark.parametrize("kind", [*KINDS])
def test_the_well_known_have_one_each(kind: str) -> None:
    assert tuple(shipped(kind)) == KINDS[kind]
    for name, rows in shipped(kind).items():
        first = rows[0]
        low = float(first["low"])  # not a number: every seed shows the most that counts
        assert low > 0 or (math.isnan(low) and float(first["points"]) == 4), name
        assert float(first["points"]) == max(float(row["points"]) for row in rows)
        head = (WORST / f"{name}.toml").read_text().partition("\ntitle")[0]
        assert first["instead"] in head
        assert first["number"].split(" ")[0] in head


@pytest.mark.parametrize("kind", [*KINDS])
def test_the_page_shows_the_table(kind: str) -> None:
    lines = [
        f"| {kind} | worst beside | number | {kind} | other |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    for name, rows in shipped(kind).items():
        row = rows[0]
        shown = (name, row["other"], row["number"], row[f"{kind}_value"], row["other_value"])
        lines.append(f"| {' | '.join(shown)} |")
    page = ROOT / "records/worst.md"
    text = page.read_text()
    table = "\n".join(lines)
    mark = rf"(<!-- worst {kind} -->\n).*?(<!-- end -->)"
    wanted, count = re.subn(mark, rf"\g<1>{table}\n\2", text, flags=re.DOTALL)
    assert count == 1
    if os.environ.get("AQMLAB_REWRITE") == "1":
        page.write_text(wanted)
    else:
        assert text == wanted, "AQMLAB_REWRITE=1 writes it anew"


@pytest.mark.long_cases("control-*")
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_shipped_scenario_is_bad_for_its_own_and_better_for_the_other(
    kind: str, name: str
) -> None:
    first = shipped(kind)[name][0]
    path, _, table = first["instead"].partition("=")
    scenario = package.Scenario.load(WORST / f"{name}.toml")
    other = scenario.with_overrides({path: table})
    mine, theirs = (
        [numbers_of(package.run(one.with_seed(seed)), kind) for seed in SEEDS]
        for one in (scenario, other)
    )
    found = {one.titled: float(np.mean(by_seed)) for one, by_seed in lost(kind, mine, theirs)}
    assert found[first["number"]] > 0.5 * float(first["points"])


@pytest.mark.parametrize("kind", ["queue", "control"])
def test_every_end_of_the_bounds_is_a_scenario(kind: str) -> None:
    plain = {one.variable.name: one.plain for one in bounds(kind)}
    for bound in bounds(kind):
        assert bound.source
        for value in bound.variable.some:
            scenario_of(cell_of(kind, {**plain, bound.variable.name: value}), named("pie"))
    page = (ROOT / "records/worst.md").read_text()
    for bound in bounds(kind):
        assert bound.meaning in page
        assert bound.source in page


def test_a_point_is_a_step_of_a_controls_card() -> None:
    def of(letter: str, unit: str = "") -> Measure:
        return Measure("t", "n", letter, unit, "")

    assert points(of("D", "ms"), 0.4, 0.2) == pytest.approx(1)
    assert points(of("R", "Mbit/s"), 1e6, 4e6) == pytest.approx(2)
    assert points(of("U"), 3.0, 4.0) == pytest.approx(1)
    assert points(of("F"), 1.0, 0.75) == pytest.approx(-1)


def seen(page: float, rate: float, mos: float = 4.0) -> list[Mapping[str, float]]:
    return [{"page p50": page, "MOS": mos, "long goodput": rate, "Jain": 1.0}]


def test_what_another_loses_elsewhere_is_no_regret() -> None:
    size = worst_search.regret_towards
    mine = seen(page=0.4, rate=4e6)
    assert size("queue", mine, seen(page=0.1, rate=4e6)) == pytest.approx(2)
    assert size("queue", mine, seen(page=0.1, rate=1e6)) == pytest.approx(0.1)
    assert size("queue", mine, mine) == 0
    never = numbers_without_pages(mine)
    assert size("queue", never, seen(page=0.1, rate=4e6)) == 4, "no number counts for more"


def numbers_without_pages(mine: list[Mapping[str, float]]) -> list[Mapping[str, float]]:
    return [{**mine[0], "page p50": 40.0}]


@pytest.mark.long
def test_a_search_goes_on_and_is_the_same_again(aqmlab: Cli, tmp_path: Path) -> None:
    words = ("evaluate", "droptail", "--worst", "--baseline", "fq-codel", "--trials")
    first = aqmlab(*words, "2", "--out", "one")
    assert first.status == 0, first.err
    assert re.search(r"^droptail: .* (times|less than) that of fq-codel \(95 %: ", first.out, re.M)
    assert all(len(line) <= 80 for line in first.out.splitlines())
    runs = len([*tmp_path.glob("runs/store/??/*")])
    again = aqmlab(*words, "2", "--out", "one")
    assert again.out == first.out
    assert len([*tmp_path.glob("runs/store/??/*")]) == runs, "nothing was run again"
    other = aqmlab(*words, "2", "--out", "two", "--json")
    found = json.loads(other.out)
    assert found["other"] == "fq-codel"
    assert (tmp_path / "one/worst.toml").read_bytes() == (tmp_path / "two/worst.toml").read_bytes()
    done = aqmlab("run", "one/worst.toml", "--set", "measure.duration=1 s")
    assert done.status == 0, done.err
    refused = aqmlab("evaluate", "pie", "--worst", "--trials", "2", "--out", "one")
    assert refused.status == 2
    assert "another candidate" in refused.err


@pytest.mark.long
def test_controls_have_a_worst_too(aqmlab: Cli, tmp_path: Path) -> None:
    few = ("--trials", "1", "--seeds", "1..3")
    done = aqmlab("evaluate", "--control", "bbr1", "--worst", *few, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["kind"] == "control"
    assert found["seeds"] == [*range(4, 12)], "the search has seen the first three"
    assert found["other"] in ("cubic", "bbr3")
    text = (tmp_path / "runs/worst/bbr1/worst.toml").read_text()
    [option] = re.findall(r"--set '(.*)'", text)
    scenario = package.Scenario.load(tmp_path / "runs/worst/bbr1/worst.toml")
    path, _, table = option.partition("=")
    scenario.with_overrides({path: table})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["pie", "--trials", "3"], "--trials: found it without --worst"),
        (["pie", "--worst", "--trials", "0"], "--trials: found 0"),
        (["pie", "--worst", "--only", "a-web"], "--worst: found it with --only"),
        (["--all", "--worst"], "--all: found it with --worst"),
    ],
)
def test_what_makes_no_sense_is_refused(aqmlab: Cli, more: list[str], message: str) -> None:
    done = aqmlab("evaluate", *more)
    assert done.status == 2
    assert message in done.err
