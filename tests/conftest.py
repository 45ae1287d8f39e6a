"""What the tests share."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from aqmlab._util import console
from aqmlab.cli import app as cli
from aqmlab.results import own_metrics, python_metrics

SMALL = """
title = "Small fetches over a slow link"

[measure]
warm_up = "2 s"
duration = "20 s"

[topology]
kind = "dumbbell"

[topology.bottleneck]
rate = "2 Mbit/s"
discipline = { kind = "droptail", limit = "20 packets" }

[[traffic]]
name = "fetches"
kind = "poisson"
rate = "30 /s"
request = { kind = "constant", size = "400 bytes" }
response = { kind = "bounded-pareto", shape = 1.2, minimum = "2 kB", maximum = "100 kB" }
rtt = { kind = "uniform", min = "20 ms", max = "100 ms" }
"""
"""A scenario that runs in milliseconds."""

ROOT = Path(__file__).parents[1]
PHONE = {"width": 390, "height": 844}
"""The window of a telephone, in pixels."""


@dataclass(frozen=True)
class Answer:
    """What a command answered."""

    status: int
    out: str
    err: str


Cli = Callable[..., Answer]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the cases that `long_cases` names `long`: those of its patterns, but not of ``but``."""
    for item in items:
        for marker in item.iter_markers("long_cases"):
            case = item.nodeid.partition("[")[2].removesuffix("]")
            but = marker.kwargs.get("but", ())
            kept = (but,) if isinstance(but, str) else but
            if any(fnmatchcase(case, pattern) for pattern in marker.args or ("*",)) and not any(
                fnmatchcase(case, pattern) for pattern in kept
            ):
                item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Interrupts arrive, here and in commands that are begun here.

    A shell begins its background jobs with interrupts ignored.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def quiet() -> Iterator[None]:
    """A busy machine prints no lines of progress among the errors that tests compare."""
    before = console.LINE_EVERY_S
    console.LINE_EVERY_S = 3600.0
    yield
    console.LINE_EVERY_S = before


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The calibration cache of all tests: not the user's."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of tests that make report cards: a baseline is run once, by whichever process."""
    folder = tmp_path_factory.getbasetemp()
    return (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cards"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Every test works in a folder of its own, and has metrics of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AQMLAB_CACHE", str(cache))
    yield tmp_path
    own_metrics.forget()
    python_metrics.forget()


@pytest.fixture
def small(elsewhere: Path) -> Path:
    """The file of the small scenario."""
    file = elsewhere / "small.toml"
    file.write_text(SMALL)
    return file


@pytest.fixture(scope="session")
def syscalls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`syscalls.c` as a library to preload: other file systems than this machine's."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("NO OTHER FILE SYSTEM IS TESTED: there is no C compiler (cc)")
    library = tmp_path_factory.mktemp("preload") / "syscalls.so"
    source = Path(__file__).with_name("syscalls.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library


@pytest.fixture
def aqmlab(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Calls the command line in this process."""

    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        status = cli.main([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return Answer(status, written.out, written.err)

    return call


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium; a test opens and closes its pages."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no browser tests: no playwright")
    names = ("chromium", "chromium-browser", "chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("NO BROWSER TESTS RAN: no chromium is installed (apt-get install chromium)")
    with sync_api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()
