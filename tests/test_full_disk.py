"""A full disk: one line, nothing half-written, and the same command continues."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SMALL

IN_MOUNTS = ["unshare", "--user", "--map-root-user", "--mount"]
REASON = "NO TESTS OF A FULL DISK RAN: this machine allows no mount in a user namespace"


def can_mount(folder: Path) -> bool:
    """Whether a small file system can be had."""
    try:
        call = [*IN_MOUNTS, "mount", "-t", "tmpfs", "none", str(folder)]
        return subprocess.run(call, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A folder over which commands mount a file system; its scenario and sweep lie beside it."""
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "sweep.toml").write_text(
        'title = "Seeds"\nscenario = "small.toml"\nseeds = "1..8"\n'
        '[set]\n"measure.record" = ["responses", "flows", "queue"]\n'
        '[[axes]]\nname = "s"\nvalues = [10, 20]\nset = { "measure.duration" = "$s s" }\n'
    )
    folder = tmp_path / "disk"
    folder.mkdir()
    if not can_mount(folder):
        pytest.skip(REASON)
    return folder


def on_small(disk: Path, kib: int, script: str) -> subprocess.CompletedProcess[str]:
    """What a script does beside a file system of some KiB."""
    mount = f"mount -t tmpfs -o size={kib}k none {disk}"
    prelude = f'aqmlab() {{ {sys.executable} -m aqmlab "$@"; }}'
    return subprocess.run(
        [*IN_MOUNTS, "bash", "-c", f"{mount} && cd {disk.parent} && {prelude}\n{script}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_run_ends_with_one_line_and_leaves_nothing(disk: Path) -> None:
    answer = on_small(
        disk, 16, f"aqmlab run small.toml --out {disk}/run; echo status $?; ls -A {disk}"
    )
    assert answer.stdout == "status 1\n", answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert answer.stderr.startswith(f"aqmlab: {disk}/run: cannot be written: ")
    assert "No space left on device" in answer.stderr


@pytest.mark.long
def test_a_sweep_goes_on_and_is_completed_when_there_is_room(disk: Path) -> None:
    sweep = f"aqmlab sweep sweep.toml --store {disk}/store --out out --json"
    script = f"""
        {sweep} >/dev/null; echo status $?
        mount -o remount,size=8m {disk}
        {sweep} >/dev/null; echo status $?
        aqmlab store check {disk}/store
    """
    answer = on_small(disk, 200, script)
    assert [line for line in answer.stdout.splitlines() if line.startswith("status")] == [
        "status 1",
        "status 0",
    ], answer.stderr
    assert "of 16 runs failed" in answer.stderr
    assert "No space left on device" in answer.stderr
    counts = re.findall(r"(\d+) runs? to make, .*; (\d+) in the store", answer.stderr)
    (first, _), (second, kept) = [(int(made), int(stored)) for made, stored in counts]
    assert first == 16 == second + kept
    assert 0 < second < 16
