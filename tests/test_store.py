"""The store of runs: whatever happens to its files, nothing wrong is read as a result."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import aqmlab as package
import power
import pytest
from aqmlab.engine import intake, parallel, schedulers
from aqmlab.engine.commit import Done, RunCommit
from aqmlab.engine.store import Store
from aqmlab.engine.workspace import RUNS
from aqmlab.errors import DamagedRunError, DamagedRunWarning, RunError
from aqmlab.results.manifest import seal
from aqmlab.scenario.scenario import Scenario
from conftest import SMALL, Cli
from test_sweep import SWEEP, digest, stored

FILES = (
    "distribution.parquet",
    "flows.parquet",
    "manifest.json",
    "metadata.json",
    "queue.parquet",
    "responses.parquet",
    "scenario.toml",
    "summary.json",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with its store, which tests copy."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.toml").write_text(SMALL)
    (folder / "limits.toml").write_text(SWEEP)
    package.sweep(folder / "limits.toml", jobs=2, out=folder / "whole", store=folder / "store")
    return folder


@pytest.fixture
def sweep_file(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sweep in the current folder."""
    shutil.copytree(finished, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return Path("limits.toml")


def flip(path: Path) -> None:
    """Changes one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    """Leaves half of a file."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def other_digit(path: Path) -> None:
    """Changes a digit, which leaves a file of text as readable as it was."""
    text = path.read_text()
    place = next(place for place in range(len(text) // 2, len(text)) if text[place].isdigit())
    path.write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :])


def empty(path: Path) -> None:
    """Leaves nothing in a file."""
    path.write_bytes(b"")


DAMAGES: list[tuple[Callable[[Path], None], tuple[str, ...]]] = [
    *((damage, FILES) for damage in (Path.unlink, flip, cut, empty)),
    (other_digit, tuple(name for name in FILES if not name.endswith(".parquet"))),
]
"""What happens, and to which files: to each of them in a run of its own."""


def seed_of(run: package.Run) -> int:
    """What is wanted of a run; a process that makes runs finds it by its name."""
    return run.seed


def name_of(damage: Callable[[Path], None]) -> str:
    """What a test is called."""
    return damage.__name__


def each_damaged(damage: Callable[[Path], None], names: tuple[str, ...]) -> list[Path]:
    """As many runs of the store as there are files, each with another file damaged."""
    runs = sorted(Path("store").glob("??/*"))[: len(names)]
    for run, name in zip(runs, names, strict=True):
        damage(run / name)
    return runs


@pytest.mark.long_cases("cut-*", "empty-*", "other_digit-*")
@pytest.mark.parametrize(("damage", "names"), DAMAGES)
def test_damaged_runs_are_set_aside_and_made_again(
    sweep_file: Path, damage: Callable[[Path], None], names: tuple[str, ...]
) -> None:
    """With one bit changed too, wherever it is."""
    wanted = {path: path.read_bytes() for path in Path("store").glob("??/*/*")}
    runs = each_damaged(damage, names)
    with pytest.warns(DamagedRunWarning) as warned:
        package.sweep(sweep_file, jobs=1, out="again", store="store", verify=True)
    messages = [str(one.message) for one in warned]
    assert len(messages) == len(runs)
    for run in runs:
        [message] = [one for one in messages if str(run) in one]
        assert f"set aside as store/damaged/{run.name}" in message
        assert Path("store/damaged", run.name).is_dir()
    assert digest("again") == digest("whole")
    for path, content in wanted.items():
        if path.name not in ("manifest.json", "metadata.json"):
            assert path.read_bytes() == content, path


@pytest.mark.long_cases("cut-*", "empty-*", "flip-*")
@pytest.mark.parametrize(("damage", "names"), DAMAGES)
def test_a_sweep_with_nothing_to_do_notices_what_was_written(
    sweep_file: Path, damage: Callable[[Path], None], names: tuple[str, ...]
) -> None:
    """It trusts what the file system says of a run's files; no bytes are read."""
    package.sweep(sweep_file, jobs=1, out="whole", store="store")
    before, runs = digest("whole"), each_damaged(damage, names)
    with pytest.warns(DamagedRunWarning) as warned:
        package.sweep(sweep_file, jobs=1, out="whole", store="store")
    messages = sorted(str(one.message) for one in warned)
    for run, message in zip(runs, messages, strict=True):
        assert re.search(rf"{run}: .*; set aside as", message)
    assert digest("whole") == before


def test_a_change_that_keeps_length_and_time_is_noticed(sweep_file: Path) -> None:
    package.sweep(sweep_file, jobs=1, out="whole", store="store")
    file = sorted(Path("store").glob("??/*/summary.json"))[2]
    before = file.stat()
    other_digit(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.warns(DamagedRunWarning, match=r"summary\.json does not have the bytes"):
        package.sweep(sweep_file, jobs=1, out="whole", store="store")


def test_what_a_sweep_reads_is_checked_without_being_asked(sweep_file: Path) -> None:
    """All files here are small; their bytes are checked whenever a run is opened."""
    run = sorted(Path("store").glob("??/*"))[0]
    other_digit(run / "summary.json")
    with pytest.warns(DamagedRunWarning, match=r"summary\.json does not have the bytes"):
        package.sweep(sweep_file, jobs=1, out="again", store="store")
    assert digest("again") == digest("whole")


@pytest.mark.usefixtures("sweep_file")
def test_a_table_is_checked_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from aqmlab.results import manifest

    monkeypatch.setattr(manifest, "_SMALL", 10)
    path = sorted(Path("store").glob("??/*"))[0]
    flip(path / "responses.parquet")
    run = package.Run.open(path)
    assert run.flows is not None
    with pytest.raises(DamagedRunError, match=r"responses\.parquet does not have the bytes"):
        _ = run.responses


def test_a_run_under_the_key_of_another_is_not_taken_for_it(sweep_file: Path) -> None:
    one, other = sorted(Path("store").glob("??/*"))[:2]
    shutil.rmtree(one)
    shutil.copytree(other, one)
    with pytest.warns(DamagedRunWarning, match="it holds the run of another key"):
        package.sweep(sweep_file, jobs=1, out="again", store="store")
    assert digest("again") == digest("whole")


def test_a_manifest_of_brackets_is_damage_like_any_other(aqmlab: Cli, sweep_file: Path) -> None:
    path = sorted(Path("store").glob("??/*"))[0]
    (path / "manifest.json").write_text("[" * 100_000)
    answer = aqmlab("store", "check", "--store", "store")
    assert answer.status == 1
    assert f"{path}: is damaged: manifest.json cannot be read" in answer.err
    with pytest.warns(DamagedRunWarning, match="manifest.json cannot be read"):
        package.sweep(sweep_file, jobs=1, out="again", store="store")
    assert digest("again") == digest("whole")


def test_a_scenario_that_does_not_give_the_key_is_damage(aqmlab: Cli, sweep_file: Path) -> None:
    """Even if all hashes are made anew."""
    path = sorted(Path("store").glob("??/*"))[0]
    text = (path / "scenario.toml").read_text()
    (path / "scenario.toml").write_text(text.replace("20 packets", "21 packets") + "\n")
    seal(path, path.name)
    answer = aqmlab("store", "check", "--store", "store")
    assert answer.status == 1
    assert f"{path}: is damaged: scenario.toml does not give the run's key" in answer.err
    with pytest.warns(DamagedRunWarning, match="does not give the run's key"):
        package.sweep(sweep_file, jobs=1, out="again", store="store")
    assert digest("again") == digest("whole")


def test_runs_of_earlier_versions_have_no_manifest_and_are_read(sweep_file: Path) -> None:
    path = sorted(Path("store").glob("??/*"))[0]
    (path / "manifest.json").unlink()
    metadata = json.loads((path / "metadata.json").read_text())
    del metadata["manifest"]
    (path / "metadata.json").write_text(json.dumps(metadata))
    before = stored("store")
    package.sweep(sweep_file, jobs=1, out="again", store="store", verify=True)
    assert stored("store") == before


def test_the_command_checks_measures_and_prunes(aqmlab: Cli, sweep_file: Path) -> None:
    answer = aqmlab("store", "check", "--store", "store")
    assert (answer.status, answer.out) == (0, "8 runs, 8 whole, 0 damaged\n")
    first, second, *_ = sorted(Path("store").glob("??/*"))
    flip(first / "queue.parquet")
    (second / "flows.parquet").unlink()
    answer = aqmlab("store", "check", "--store", "store", "--json")
    assert answer.status == 1
    assert set(json.loads(answer.out)["damaged"]) == {str(first), str(second)}
    assert "queue.parquet does not have the bytes that were written" in answer.err
    assert "flows.parquet is missing" in answer.err
    answer = aqmlab("sweep", sweep_file, "--store", "store", "--out", "again", "--verify")
    assert answer.status == 0
    assert answer.err.count("aqmlab: warning: ") == 2
    assert digest("again") == digest("whole")
    size = json.loads(aqmlab("store", "size", "--store", "store", "--json").out)
    assert (size["runs"]["count"], size["damaged"]["count"]) == (8, 2)
    leftover = first.parent / ".killed.1234.partial"
    leftover.mkdir()
    answer = aqmlab("store", "prune", "--store", "store")
    assert (answer.status, answer.out.split(",")[0]) == (0, "removed 2 runs")
    assert not leftover.exists()
    assert not list(Path("store/damaged").iterdir())
    assert aqmlab("store", "prune", "--store", "store", "--other-engines").out[:14] == (
        "removed 0 runs"
    )
    assert len(stored("store")) == 8
    assert aqmlab("store", "check", "--store", "nowhere").err == (
        "aqmlab: nowhere: there is no such store\n"
    )


def test_what_killed_processes_left_goes_with_the_next_sweep(sweep_file: Path) -> None:
    left = Path("store/ff/.killed.1234.partial")
    left.mkdir(parents=True)
    package.sweep(sweep_file, jobs=1, out="again", store="store")
    assert not left.exists()


def test_files_reach_the_disk_before_their_names_do(tmp_path: Path, syscalls: Path) -> None:
    """Every file of a run, then its folder, then the rename, then the folder of the name."""
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "root").mkdir()
    code = "from aqmlab.engine.store import Store; import aqmlab, pathlib; "
    code += "print(Store(pathlib.Path('root')).run(aqmlab.Scenario.load('small.toml')).path)"
    environment = {
        **os.environ,
        "LD_PRELOAD": str(syscalls),
        "AQMLAB_TEST_LOG": str(tmp_path / "log"),
        "AQMLAB_TEST_ROOT": str(tmp_path / "root"),
    }
    command = [sys.executable, "-c", code]
    said = subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)
    run = tmp_path / said.strip()
    acts = [*power.acts((tmp_path / "log").read_bytes())]
    [renamed] = [at for at, act in enumerate(acts) if act.kind == "R"]
    assert acts[renamed].second == os.fsencode(run)
    for path in run.iterdir():
        inode = path.stat().st_ino
        own = [act.kind for act in acts if act.inode == inode]
        assert own[-1] == "F", f"{path.name} is written after it was synced"
        assert any(act.inode == inode and act.kind == "F" for act in acts[:renamed])
    assert (acts[renamed - 1].kind, acts[renamed - 1].inode) == ("F", run.stat().st_ino)
    assert (acts[renamed + 1].kind, acts[renamed + 1].inode) == ("F", run.parent.stat().st_ino)


def test_a_run_is_tried_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def dies(self: object, scenario: Scenario, *_: object) -> None:
        tried.append(scenario)
        self._process.kill()  # type: ignore[attr-defined]
        before(self, scenario, *_)  # type: ignore[arg-type]

    before = schedulers._Worker.run
    monkeypatch.setattr(schedulers._Worker, "run", dies)
    with schedulers.scheduler(None, 1) as pool:
        [outcome] = pool.run([Scenario.from_toml(SMALL)], Store(tmp_path), lambda *_: None, seed_of)
    assert isinstance(outcome, RunError)
    assert "ended by SIGKILL" in str(outcome)
    assert str(outcome).endswith("3 times over")
    assert len(tried) == 3


def test_whole_runs_of_a_killed_process_are_taken_in(tmp_path: Path, finished: Path) -> None:
    store = Store(shutil.copytree(finished / "store", tmp_path / "store"))
    whole, damaged, begun, there = list(store.runs())[:4]
    left = store.root / ".1234.abcd.partial" / RUNS
    left.mkdir(parents=True)
    shutil.copytree(there, left / there.name)
    for path in (whole, damaged, begun):
        path.rename(left / path.name)
    flip(left / damaged.name / "queue.parquet")
    (left / begun.name / "manifest.json").unlink()
    (store.root / ".5678.abcd.partial").mkdir()  # killed before it had a folder of runs
    store.tidy()
    assert not list(store.root.glob(".*"))
    assert store.find(whole.name) is not None
    assert store.find(there.name) is not None
    assert store.find(damaged.name) is None
    assert store.find(begun.name) is None
    assert not store.damaged()


def test_runs_of_a_group_are_synced_before_they_have_their_names(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[str] = []
    path = next(Store(finished / "store").runs())
    monkeypatch.setattr(intake, "filesystem_synced", lambda _: acts.append("sync"))

    def rename(path: Path, target: Path) -> None:
        acts.append("rename")
        path.rename(target)

    monkeypatch.setattr(intake, "renamed", rename)
    store = Store(tmp_path / "store")
    with RunCommit(store, lambda run: run.seed) as group:
        shutil.copytree(path, group.place(path.name))
        group.add(path.name)
        group.add("missing")
    assert acts == ["sync", "rename", "sync"]
    assert group.taken[path.name] == Store(finished / "store").opened(path, everything=True).seed
    assert isinstance(group.taken["missing"], package.AqmlabError)
    assert not list(store.root.glob(".*"))


def test_what_is_known_of_a_run_is_not_read_again(finished: Path, tmp_path: Path) -> None:
    path = next(Store(finished / "store").runs())

    def take(_: package.Run) -> str:
        raise AssertionError("a run was opened")

    with RunCommit(Store(tmp_path / "store"), take) as group:
        shutil.copytree(path, group.place(path.name))
        group.add(path.name, Done("known"))
    assert group.taken == {path.name: "known"}


def test_runs_of_seeds_get_their_names_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[str] = []
    monkeypatch.setattr(intake, "filesystem_synced", lambda _: acts.append("sync"))
    scenario = Scenario.from_toml(SMALL, [("measure.duration", "1 s")])
    made = package.run(scenario, seeds="1..3", out_dir=tmp_path, jobs=1, progress=False)
    assert len(acts) <= 4  # two for each group; all three fit into one, if the machine is not slow
    assert made == [package.Run.open(run.path) for run in made]
    assert {run.path for run in made} == {*tmp_path.iterdir()}
    acts.clear()
    assert package.run(scenario, seeds="1..3", out_dir=tmp_path, progress=False) == made
    assert not acts
    assert {run.path for run in made} == {*tmp_path.iterdir()}


def test_a_run_of_seeds_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its own place, not by the one where it waits for its name."""

    def fails(_: Scenario, place: Path, __: object) -> None:
        raise RunError(f"{place}: cannot be written: No space left on device")

    monkeypatch.setattr(parallel, "make", fails)
    with pytest.raises(RunError) as caught:
        package.run(Scenario.from_toml(SMALL), seeds="1..2", out_dir=tmp_path, progress=False)
    assert re.fullmatch(
        rf"{tmp_path}/scenario-[0-9a-f]{{8}}-s1: cannot be written: No space left on device",
        str(caught.value),
    )
    assert not list(tmp_path.iterdir())


def test_whole_runs_of_seeds_of_a_killed_process_are_taken_in(
    tmp_path: Path, finished: Path
) -> None:
    whole, damaged = list(Store(finished / "store").runs())[:2]
    left = tmp_path / ".1234.abcd.partial" / RUNS
    shutil.copytree(whole, left / "a-s1")
    shutil.copytree(damaged, left / "a-s2")
    flip(left / "a-s2" / "queue.parquet")
    intake.Folder(tmp_path).tidy()
    assert {path.name for path in tmp_path.iterdir()} == {"a-s1"}
    assert package.Run.open(tmp_path / "a-s1").seed == package.Run.open(whole).seed


def test_a_disk_that_cannot_be_synced_names_no_run(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(intake, "filesystem_synced", fails)
    path = next(Store(finished / "store").runs())
    store = Store(tmp_path / "store")
    with RunCommit(store, lambda run: run) as group:
        shutil.copytree(path, group.place(path.name))
        group.add(path.name)
    assert (
        str(group.taken[path.name]) == f"{store.root}: cannot be written: No space left on device"
    )
    assert not list(store.runs())


def test_what_a_cluster_sends_is_checked(tmp_path: Path, finished: Path) -> None:
    path = sorted(finished.glob("store/??/*"))[0]
    files = {file.name: file.read_bytes() for file in path.iterdir()}
    store = Store(tmp_path / "store")
    assert store.put(path.name, files).seed
    for name in FILES[2:]:
        spoilt = {**files, name: files[name][:-1] + b"?"}
        with pytest.raises(package.AqmlabError):
            Store(tmp_path / name).put(path.name, spoilt)
        with RunCommit(Store(tmp_path / name), lambda run: run.seed) as group:
            group.put(path.name, spoilt)
        assert isinstance(group.taken[path.name], package.AqmlabError)
        assert Store(tmp_path / name).find(path.name) is None
    with RunCommit(Store(tmp_path / "group"), lambda run: run.seed) as group:
        group.put(path.name, files)
    run = Store(tmp_path / "group").opened(group._store.path(path.name), everything=True)
    assert group.taken == {path.name: run.seed}
    with pytest.raises(DamagedRunError, match="another run arrived"):
        store.put("0" * len(path.name), files)
