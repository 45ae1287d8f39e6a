"""A store and an output that several processes use at a time, on file systems of all kinds."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import aqmlab as package
import pytest
from aqmlab.engine.store import Store
from aqmlab.engine.workspace import remove_abandoned, workspace
from aqmlab.sweeps.results import Results
from conftest import SMALL

DAY_S = 24 * 3600.0
PROCESSES = 3
SWEEP = """
scenario = "small.toml"
seeds = "1..3"
set = { "measure.warm_up" = "0 s", "measure.duration" = "3 s" }
[[axes]]
field = "topology.bottleneck.discipline.limit"
name = "limit"
values = VALUES
"""
FEW, MANY = '["5 packets", "10 packets"]', '["5 packets", "10 packets", "15 packets"]'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sweeps that share their runs, and what they come to."""
    (tmp_path / "small.toml").write_text(SMALL)
    for name, values in (("few", FEW), ("many", MANY)):
        (tmp_path / f"{name}.toml").write_text(SWEEP.replace("VALUES", values))
        plan, out = tmp_path / f"{name}.toml", tmp_path / f"wanted-{name}"
        package.sweep(plan, jobs=1, out=out, store=tmp_path / "wanted", progress=False)
    return tmp_path


def sweeping(
    folder: Path, name: str, out: str, settings: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """A process that makes a sweep."""
    command = f"aqmlab sweep {name}.toml --jobs 1 --out {out} --store store"
    return subprocess.Popen(
        [sys.executable, "-m", *command.split()],
        cwd=folder,
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def ended(process: subprocess.Popen[bytes]) -> str:
    """What a process that ended well said."""
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()
    return said.decode()


def whole(folder: Path, runs: int) -> None:
    """The store holds so many runs and nothing else."""
    store = Store(folder / "store", verify=True)
    assert len([store.opened(path, everything=True) for path in store.runs()]) == runs
    assert not list(store.root.rglob(".*"))


@pytest.mark.long
def test_several_processes_share_a_store_and_an_output(folder: Path) -> None:
    processes = [sweeping(folder, "few", "out", {}) for _ in range(PROCESSES)]
    for process in processes:
        assert "damaged" not in ended(process)
    wanted = (folder / "wanted-few/results.parquet").read_bytes()
    assert (folder / "out/results.parquet").read_bytes() == wanted
    assert Results.open(folder / "out").table.num_rows == 6
    assert not list((folder / "out").glob(".*"))
    whole(folder, 6)


@pytest.mark.long
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF])
def test_no_locks_and_lost_answers(folder: Path, syscalls: Path, number: int) -> None:
    """What network file systems do: the rename alone keeps processes apart."""
    settings = {
        "LD_PRELOAD": str(syscalls),
        "AQMLAB_TEST_NO_LOCKS": str(number),
        "AQMLAB_TEST_LOST": "1",
    }
    plain = {name: settings[name] for name in ("LD_PRELOAD", "AQMLAB_TEST_NO_LOCKS")}
    names = ["few", "many", "many"]
    processes = [sweeping(folder, name, f"out-{at}", settings if at == 2 else plain)
                 for at, name in enumerate(names)]  # fmt: skip
    for process in processes:
        assert "damaged" not in ended(process)
    for at, name in enumerate(names):
        wanted = (folder / f"wanted-{name}/results.parquet").read_bytes()
        assert (folder / f"out-{at}/results.parquet").read_bytes() == wanted
    whole(folder, 9)


@pytest.mark.long
def test_a_killed_process_without_locks_harms_nobody(folder: Path, syscalls: Path) -> None:
    settings = {"LD_PRELOAD": str(syscalls), "AQMLAB_TEST_NO_LOCKS": str(errno.ENOLCK)}
    process = sweeping(folder, "many", "out", settings)
    until = time.monotonic() + 60
    while not list(folder.glob("store/.*.partial/runs/*")) and time.monotonic() < until:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    ended(sweeping(folder, "many", "out", settings))
    wanted = (folder / "wanted-many/results.parquet").read_bytes()
    assert (folder / "out/results.parquet").read_bytes() == wanted


def test_results_that_do_not_belong_together_are_refused(folder: Path) -> None:
    """The table of one sweep beside the page of another: two wrote into one output."""
    shutil.copytree(folder / "wanted-few", folder / "out")
    shutil.copy(folder / "wanted-many/results.parquet", folder / "out")
    with pytest.raises(package.AqmlabError, match=r"is not the one that sweep\.json"):
        _ = Results.open(folder / "out").table
    package.sweep(folder / "few.toml", jobs=1, out=folder / "out", store=folder / "wanted")
    assert Results.open(folder / "out").table.num_rows == 6


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", fails)


@pytest.mark.usefixtures("no_locks")
def test_without_locks_what_is_left_goes_after_a_day(tmp_path: Path) -> None:
    with workspace(tmp_path / "one") as first:
        (first / "file").write_text("under way")
        old = tmp_path / ".two.1234.partial"
        old.mkdir()
        (old / "file").write_text("left")
        for path in (old / "file", old):
            long_ago = path.stat().st_mtime - DAY_S - 60
            os.utime(path, (long_ago, long_ago))
        with workspace(tmp_path / "three"):
            assert not old.exists()
            assert first.exists()
        recent = tmp_path / ".four.1234.partial"
        recent.mkdir()
        # The folder is old, what is written into it is not.
        (recent / "file").write_text("slow")
        long_ago = recent.stat().st_mtime - DAY_S - 60
        os.utime(recent, (long_ago, long_ago))
        remove_abandoned(tmp_path)
        assert recent.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [recent.name, "one", "three"]
