"""Places with runs: every command that takes runs takes the same places, and names what is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from aqmlab._util.effective import key_of
from aqmlab.results.sources import gather
from conftest import Cli
from test_cli import TWO_QUEUES, one_line

SWEEP = """
scenario = "small.toml"
seeds = "1..2"
baseline = { limit = "10 packets" }
set = { "measure.duration" = "4 s" }
[[axes]]
field = "topology.bottleneck.discipline.limit"
values = ["10 packets", "40 packets"]
"""
COMMANDS = (["show"], ["compare"], ["report"], ["plot", "delay"])


@pytest.fixture
def swept(aqmlab: Cli, small: Path) -> Path:
    """The file of a sweep that has been run."""
    file = small.with_name("limits.toml")
    file.write_text(SWEEP)
    assert aqmlab("sweep", file, "--jobs", "1").status == 0
    return file


@pytest.mark.usefixtures("swept")
def test_a_sweep_is_its_folder_its_file_or_its_store() -> None:
    by_folder = gather(["runs/sweeps/limits"])
    assert [(run.label, run.seed) for run in by_folder] == [
        ("limit = 10 packets", 1),
        ("limit = 10 packets", 2),
        ("limit = 40 packets", 1),
        ("limit = 40 packets", 2),
    ]
    assert gather(["limits.toml"]) == by_folder
    assert {run.path.resolve() for run in gather(["runs/store"])} == {
        run.path.resolve() for run in by_folder
    }


@pytest.mark.long
@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_takes_every_place(aqmlab: Cli, small: Path, command: list[str]) -> None:
    assert aqmlab("compare", small, "--vary", TWO_QUEUES, "--out", "pair").status == 0
    for place in ("limits.toml", "runs/sweeps/limits", "runs/store", "pair", "pair/sm*", "p*"):
        answer = aqmlab(*command, place)
        many = command == ["show"] and not place.startswith("p")  # four runs, not two
        hint = "4 runs; `aqmlab compare` with the same arguments prints their means"
        expected = f"aqmlab: {hint}\n" if many else ""
        assert (answer.status, answer.err) == (0, expected), (place, answer.err)


def _by_another_engine(folder: Path) -> None:
    """A copy of each run of a folder as an older engine has it, beside it."""
    for run in [*folder.glob("[!.]*/")]:
        old = shutil.copytree(run, folder / f"old-{run.name}")
        file = old / "metadata.json"
        data = json.loads(file.read_text())
        data["versions"]["engine"] = "0123456789abcdef"
        data["key"] = key_of((old / "scenario.toml").read_text(), "0123456789abcdef")
        data["started"] = "2026-01-01T00:00:00+00:00"
        del data["manifest"]
        file.write_text(json.dumps(data))
        (old / "manifest.json").unlink()


LEFT_OUT = (
    "aqmlab: left out: 2 runs of pair that a newer engine has made again; "
    "name a run directory to take it\n"
)


@pytest.mark.long_cases("report")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_folder_has_no_run_that_a_newer_engine_made_again(
    aqmlab: Cli, small: Path, command: list[str]
) -> None:
    assert aqmlab("compare", small, "--vary", TWO_QUEUES, "--out", "pair").status == 0
    before = aqmlab(*command, "pair")
    _by_another_engine(Path("pair"))
    after = aqmlab(*command, "pair")
    assert (after.status, after.out) == (0, before.out)
    assert after.err == LEFT_OUT + before.err
    assert len(gather(["pair"])) == 2


def test_a_run_that_is_named_or_has_no_newer_one_stays(aqmlab: Cli, small: Path) -> None:
    aqmlab("compare", small, "--vary", TWO_QUEUES, "--out", "pair")
    _by_another_engine(Path("pair"))
    new, other = sorted(Path("pair").glob("[!.o]*/"))
    old = Path("pair") / f"old-{new.name}"
    assert len(gather([old, new])) == 2, "somebody wants to see both"
    shutil.rmtree(other)
    kept = {run.path.name for run in gather(["pair"])}
    assert kept == {new.name, f"old-{other.name}"}


def test_a_sweep_is_compared_with_its_baseline(aqmlab: Cli, swept: Path) -> None:
    answer = aqmlab("compare", swept)
    assert "limit = 10 packets" in answer.out
    assert "clearly differs from limit = 10 packets" in answer.out


def test_conditions_keep_some_runs(aqmlab: Cli, swept: Path) -> None:
    """Every command takes the same; errors name the option, and what there is."""
    shown = aqmlab("show", swept, "--where", "limit=40,seed=2")
    assert (shown.out.count("seed 2"), shown.out.count("seed 1")) == (1, 0)
    assert aqmlab("show", swept, "--where", "limit=40", "--tsv").out.count("\n") == 3
    compared = aqmlab("compare", swept, "--where", "seed=1")
    assert "one seed each" in compared.out
    again = aqmlab("sweep", swept, "--where", "limit=40")
    assert [line.split()[0] for line in again.out.splitlines()[1:2]] == ["40"]
    assert "difference to limit = 10 packets" in again.out
    for command in (["show"], ["compare"], ["sweep"], ["plot", "delay"]):
        refused = aqmlab(*command, swept, "--where", "limit=30")
        assert refused.status == 2
        assert one_line(refused.err).startswith("--where: found limit=30, which no run has; limit")
    refused = aqmlab("compare", "small.toml", "--where", "seed=1")
    assert one_line(refused.err) == "--where: needs finished runs; small.toml is a scenario"


def test_show_names_the_seed_once(aqmlab: Cli, swept: Path) -> None:
    assert "limit = 10 packets, seed 2\n4 s measured" in aqmlab("show", swept).out


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_places_without_runs_are_named(aqmlab: Cli, small: Path, command: list[str]) -> None:
    small.with_name("limits.toml").write_text(SWEEP)
    Path("notes.txt").write_text("Buy milk.\n")
    scenario = "small.toml: is a scenario; run it with `aqmlab run small.toml`"
    found = {
        "limits.toml": "limits.toml: is a sweep; run it with `aqmlab sweep limits.toml`, or name "
        "the folder of its results: runs/sweeps/limits has none",
        "runs/sm*": "runs/sm*: no run directory fits this pattern",
    }
    if command != ["compare"]:  # which runs scenarios itself
        found |= {
            "small.toml": scenario,
            "notes.txt": "notes.txt: is a file, not a run directory",
            "smal.toml": "smal.toml: there is no such run directory; did you mean small.toml?",
        }
    for place, message in found.items():
        answer = aqmlab(*command, place)
        assert (answer.status, answer.out) == (2, "")
        assert one_line(answer.err) == message


def test_options_for_scenarios_are_not_ignored(aqmlab: Cli, swept: Path) -> None:
    for option in (["--vary", "a=1,2"], ["--set", "a=1"], ["--seeds", "1..2"]):
        answer = aqmlab("compare", swept, *option)
        assert answer.status == 2
        assert one_line(answer.err) == f"{option[0]}: needs a scenario; {swept} is finished runs"


def test_files_of_the_other_kind_name_their_command(aqmlab: Cli, small: Path) -> None:
    sweep = small.with_name("limits.toml")
    sweep.write_text(SWEEP)
    answer = aqmlab("run", sweep)
    assert answer.status == 2
    assert one_line(answer.err) == f"{sweep}: is a sweep; run it with `aqmlab sweep {sweep}`"
    answer = aqmlab("sweep", small)
    assert answer.status == 2
    assert one_line(answer.err) == f"{small}: is a scenario; run it with `aqmlab run {small}`"


def test_why_names_what_its_run_must_measure(aqmlab: Cli, small: Path) -> None:
    answer = aqmlab("why", "small.toml")
    command = "aqmlab run small.toml --set measure.breakdown=true"
    said = f"small.toml: is a scenario; run it with `{command}`, then name its run"
    assert (answer.status, one_line(answer.err)) == (2, said)
    assert small.is_file()


def test_a_file_that_is_no_toml_is_named(aqmlab: Cli, small: Path) -> None:
    Path("other.toml").write_text("seed = = 3\n")
    mistake = "other.toml: line 1, column 8: not TOML: extra `=`, expected nothing"
    for files in (["small.toml", "other.toml"], ["other.toml"]):
        answer = aqmlab("compare", *files)
        assert (answer.status, one_line(answer.err)) == (2, mistake)
    answer = aqmlab("compare", "small.toml", "smal.toml")
    assert answer.err.count("smal.toml") == 1
    assert small.is_file()
