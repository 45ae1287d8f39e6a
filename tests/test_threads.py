"""Another thread may encode a run's records: the files are the same, and its time is counted."""

from __future__ import annotations

import os
from pathlib import Path

import aqmlab as package
import pytest
from aqmlab import _native
from aqmlab._util.pool import run_all
from aqmlab.engine import threads
from conftest import SMALL, Cli

MANY = SMALL.replace('"2 Mbit/s"', '"40 Mbit/s"').replace('"30 /s"', '"600 /s"')
"""More rows than one batch holds."""


@pytest.fixture
def effective(elsewhere: Path) -> str:
    """A scenario with many rows."""
    file = elsewhere / "many.toml"
    file.write_text(MANY, encoding="utf-8")
    return package.Scenario.load(file).effective


def recorded(effective: str, folder: Path, number: int) -> dict[str, bytes]:
    """The files of a run with so many threads."""
    folder.mkdir()
    _native.run(effective, os.fspath(folder), None, None, number)
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_files_are_the_same_and_the_threads_time_is_counted(
    effective: str, elsewhere: Path
) -> None:
    before = _native.encoding_time()
    alone = recorded(effective, elsewhere / "one", 1)
    assert _native.encoding_time() == before
    assert recorded(effective, elsewhere / "two", 2) == alone
    assert _native.encoding_time() > before


def test_runs_of_a_process_share_its_threads(effective: str, elsewhere: Path) -> None:
    alone = recorded(effective, elsewhere / "alone", 1)
    folders = [elsewhere / f"{number}" for number in range(6)]
    found = run_all(lambda folder, _: recorded(effective, folder, 3), folders, jobs=3)
    assert all(files == alone for files in found)


def test_the_bound_is_a_variable(
    aqmlab: Cli, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    assert threads.bound() == _native.available_threads() >= 1
    monkeypatch.setenv(threads.VARIABLE, "6")
    assert (threads.bound(), threads.share(2), threads.share(7)) == (6, 3, 1)
    with threads.limited(1):
        assert threads.bound() == 1
    assert threads.bound() == 6
    (elsewhere / "small.toml").write_text(SMALL, encoding="utf-8")
    for wrong in ("0", "two", "-1"):
        monkeypatch.setenv(threads.VARIABLE, wrong)
        answer = aqmlab("run", "small.toml")
        assert (answer.status, answer.out) == (2, "")
        assert f'AQMLAB_THREADS: found "{wrong}"; a whole number from 1 on' in answer.err
    monkeypatch.setenv(threads.VARIABLE, "1")
    assert aqmlab("run", "small.toml").status == 0
