"""Test cases of congestion controls: rows, rules, verdicts and the numbers of the policer."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import aqmlab
import pytest
from aqmlab import plugins
from aqmlab._util.expressions import Expression
from aqmlab.cards import case_files
from aqmlab.cards.candidates import candidate, control
from aqmlab.cards.cases import CaseOutcome, Shown, are_cases, judged, numbers
from aqmlab.cards.generator import cells, scenario_of
from aqmlab.cards.suites import chosen, rows
from conftest import ROOT, Cli
from figure_runs import draw

SUITES = ("control-cases", "bbr-draft")


def run_cases(
    name: str, only: Sequence[str], store: Path, suite: str = "control-cases"
) -> dict[str, CaseOutcome]:
    """Some cases with a control."""
    found = chosen(rows(suite), only)
    made = judged(found, candidate("droptail"), control(name), store=store)
    return {case.row.id: case for case in made}


@pytest.mark.parametrize("suite", SUITES)
def test_rules_name_numbers_of_their_rows(suite: str) -> None:
    assert are_cases(rows(suite))
    for row in rows(suite):
        names = {part.partition(" = ")[0].strip() for part in row.numbers.split(";")}
        assert Expression.parse(row.holds).names <= names, row.id
        assert row.expect, row.id


def test_there_are_twelve_rows_for_every_control_and_the_drafts_22() -> None:
    assert len(rows("control-cases")) == 12
    assert sorted(int(row.section) for row in rows("bbr-draft")) == [*range(1, 23)]
    assert not are_cases(rows("rfc9743"))


@pytest.mark.parametrize("name", ["bbr3", "cubic"])
@pytest.mark.parametrize("burst", ["30 kB", "250 kB"])
def test_a_policer_written_in_python_gives_the_same_numbers(name: str, burst: str) -> None:
    """As the discipline, and before a queue: the same losses and goodput to the last packet."""
    plugins.load(ROOT / "tests/plugins/token_bucket.py")
    [row] = chosen(rows("control-cases"), ["policer"])
    scenario = scenario_of(cells(row)[0], candidate("droptail"), control(name))
    forward = "topology.bottleneck.forward"
    bucket = {"rate": "10 Mbit/s", "burst": burst}

    def policed(link: dict[str, object]) -> tuple[int, float]:
        overrides = {f"{forward}.{key}": value for key, value in link.items()}
        found = aqmlab.run(scenario.with_overrides(overrides), seed=1).summary
        dropped = sum(one["forward"]["dropped_packets"] for one in found["links"].values())
        return dropped, found["flows"]["subject"]["goodput_bps"]

    before_queue = policed({"policer": bucket})
    kind = {"kind": "policer", "limit": "500000 bytes", **bucket}
    idle = {"rate": "10 Gbit/s", "burst": "100 MB"}
    plugin = {"kind": "plugin", "name": "token-bucket", "burst": burst, "limit": "500000 bytes"}
    assert policed({"policer": idle, "discipline": plugin}) == before_queue
    assert policed({"policer": idle, "discipline": kind}) == before_queue
    assert before_queue[0] > 10


def test_a_policer_costs_more_losses_than_a_shaper_of_its_rate() -> None:
    """T. Flach et al., SIGCOMM 2016: six times the loss where a connection is policed."""
    [row] = chosen(rows("control-cases"), ["policer"])
    scenario = scenario_of(cells(row)[0], candidate("droptail"), control("cubic"))
    forward = "topology.bottleneck.forward"
    buffer = "50000 bytes"  # a BDP of 10 Mbit/s and 40 ms
    shaper = {"kind": "shaper", "rate": "10 Mbit/s", "leaf": {"kind": "droptail", "limit": buffer}}
    shares = []
    for policer, queue in (
        ({"rate": "10 Mbit/s", "burst": buffer}, {"kind": "droptail", "limit": "500000 bytes"}),
        ({"rate": "1 Gbit/s", "burst": "100 MB"}, shaper),
    ):
        overrides = {f"{forward}.policer": policer, f"{forward}.discipline": queue}
        links = aqmlab.run(scenario.with_overrides(overrides), seed=1).summary["links"].values()
        shares.append(max(one["forward"]["loss_rate"] for one in links))
    assert shares[0] > 3 * shares[1]


def test_verdicts_follow_the_numbers(tmp_path: Path) -> None:
    reno = run_cases("reno", ["loss", "one-packet"], tmp_path)
    assert reno["loss"].verdict == "fails"
    assert reno["one-packet"].verdict == "holds"
    bbr = run_cases("bbr1", ["loss"], tmp_path)
    assert bbr["loss"].verdict == "holds"
    assert bbr["loss"].shown[0].numbers["used"] > 0.9  # type: ignore[operator]


def test_one_setting_that_fails_makes_the_row_fail() -> None:
    row = replace(rows("control-cases")[0])

    def verdict(*found: bool | None) -> str:
        return CaseOutcome(row, [Shown("", 1, {}, holds) for holds in found]).verdict

    assert verdict(True, True) == "holds"
    assert verdict(True, False) == "fails"
    assert verdict(None, False) == "fails"
    assert verdict(True, None) == "n/a"
    assert verdict() == "n/a"


def test_the_command_prints_verdicts_and_ends_by_them(aqmlab: Cli) -> None:
    words = ["evaluate", "--control", "reno", "--suite", "control-cases", "--only", "loss,outage"]
    answer = aqmlab(*words)
    assert answer.status == 1
    assert "1 holds, 1 fail" in answer.out.replace("hold,", "holds,")
    assert answer.err.endswith("reno fails: loss\n")
    assert aqmlab(*words, "--allow", "loss").status == 0
    found = json.loads(aqmlab(*words, "--json", "--allow", "loss").out)
    assert [(one["id"], one["verdict"]) for one in found["rows"]] == [
        ("outage", "holds"),
        ("loss", "fails"),
    ]
    assert all(one["numbers"] for one in found["rows"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--suite", "control-cases"], "QUEUE: found none"),
        (["pie", "--suite", "control-cases"], "--control: found none"),
        (
            ["--control", "cubic", "--suite", "control-cases", "--only", "polcer"],
            '--only: found "polcer", which names no test',
        ),
        (
            ["--control", "cubic", "--suite", "control-cases", "--allow", "age"],
            '--allow: found "age", which is no case',
        ),
        (["--control", "cubicc", "--suite", "control-cases"], '--control: found "cubicc"'),
    ],
)
def test_what_makes_no_sense_is_refused(aqmlab: Cli, words: list[str], message: str) -> None:
    answer = aqmlab("evaluate", *words)
    assert answer.status == 2
    assert message in answer.err


def test_rows_are_written_as_scenarios(aqmlab: Cli) -> None:
    words = ["--control", "bbr3", "--suite", "control-cases", "--only", "policer"]
    assert aqmlab("evaluate", *words, "--write", "rows").status == 0
    assert sorted(file.name for file in Path("rows").iterdir()) == [
        "policer-1.toml",
        "policer-2.toml",
    ]


@pytest.mark.long
def test_rows_of_the_draft_read_the_state_of_bbr(tmp_path: Path) -> None:
    only = ["startup-plateau", "drain-inflight", "probe-rtt", "refill-limited", "down-longest"]
    found = run_cases("bbr3", only, tmp_path, "bbr-draft")
    verdicts = {name: case.verdict for name, case in found.items()}
    assert verdicts == dict.fromkeys(only, "holds") | {"down-longest": "fails"}
    plateau = found["startup-plateau"].shown[0].numbers
    assert plateau["max_bw_mbit"] == pytest.approx(20 * 1448 / 1500, rel=0.02)
    gain = found["drain-inflight"].shown[0].numbers["gain"]
    assert gain == pytest.approx(0.5, abs=0.01)


def test_rows_about_phases_do_not_apply_to_controls_without_them(tmp_path: Path) -> None:
    only = ["startup-plateau", "drain-time", "refill-limited"]
    found = run_cases("reno", only, tmp_path, "bbr-draft")
    assert [case.verdict for case in found.values()] == ["n/a"] * 3
    assert all(one.numbers for case in found.values() for one in case.shown)


def traced(name: str) -> aqmlab.Run:
    """A transfer of some seconds that is traced at every ACK."""
    [row] = chosen(rows("bbr-draft"), ["startup-plateau"])
    return aqmlab.run(scenario_of(cells(row)[0], candidate("droptail"), control(name)), seed=1)


def test_traces_have_the_state_of_the_control(aqmlab: Cli) -> None:  # noqa: ARG001 - its folder
    table = traced("bbr3").flow_trace
    assert table is not None
    phases = table["phase"].to_pylist()
    changes = [phase for phase, before in pairwise([*phases, ""]) if phase != before]
    assert changes[:4] == ["startup", "drain", "probe-down", "cruise"]
    pacing = table["pacing_bps"].to_numpy()[-1] / table["bw_bps"].to_numpy()[-1]
    assert pacing == pytest.approx(0.99 * 1500 / 1448, rel=0.3)
    assert table["full_bw_reached"].to_pylist()[-1] == 1
    assert table["round"].to_pylist() == sorted(table["round"].to_pylist())
    cubic = traced("cubic").flow_trace
    assert cubic is not None
    assert {*cubic["phase"].to_pylist()} <= {"slow-start", "avoidance"}
    assert cubic["max_bw_bps"].null_count == cubic.num_rows


def test_phases_are_a_strip_below_the_curves(aqmlab: Cli) -> None:  # noqa: ARG001 - its folder
    drawn = draw.flows([traced("bbr3")]).to_dict()
    curves, strip = drawn["vconcat"]
    assert len(curves["vconcat"]) == 3
    assert strip["mark"]["type"] == "bar"
    assert strip["encoding"]["color"]["scale"]["domain"][:3] == ["startup", "drain", "probe-down"]
    assert len(draw.flows([traced("cubic")]).to_dict()["vconcat"]) == 3


def test_files_of_cases_give_their_numbers_again(tmp_path: Path) -> None:
    found = chosen(rows("bbr-draft"), ["drain-time", "one-packet-bdp"])
    queue, bbr3 = candidate("droptail"), control("bbr3")
    made = judged(found, queue, bbr3, store=tmp_path / "store")
    folder = tmp_path / "files"
    files = [*case_files.written(made, queue, bbr3, folder)]
    assert sorted(files) == sorted(folder.iterdir())
    with (folder / case_files.TABLE).open() as file:
        table = [*csv.DictReader(file)]
    shown = [(case, one) for case in made for one in case.shown]
    assert len(table) == len(shown) == 3
    for line, (case, one) in zip(table, shown, strict=True):
        assert (line["case"], line["section"]) == (case.row.id, case.row.section)
        assert line["verdict"] == {True: "holds", False: "fails", None: "n/a"}[one.holds]
        run = aqmlab.run(
            folder / line["scenario"],
            seed=int(line["seed"]),
            out_dir=tmp_path / line["scenario"][:-5],
        )
        assert one.cell is not None
        assert numbers(run, one.cell) == one.numbers
        said = dict(part.split(" = ") for part in line["numbers"].split("; "))
        assert {name: float(value) for name, value in said.items()} == pytest.approx(
            {name: value for name, value in one.numbers.items() if value is not None}, rel=1e-5
        )
