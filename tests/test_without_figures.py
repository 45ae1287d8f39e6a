"""Without the extra `figures`: what draws nothing works, the rest says what is not installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from aqmlab._util.extras import DRAWING
from conftest import SMALL

BARE = f"""
import sys
sys.modules.update(dict.fromkeys({list(DRAWING)}))
from aqmlab.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""The command where none of the libraries that draw is installed."""


def bare(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BARE, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
        timeout=300,
        check=False,
    )


def works(*arguments: str | Path) -> str:
    done = bare(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two queues, compared: no figure, and one line says why."""
    folder = tmp_path_factory.mktemp("compared")
    small = folder / "small.toml"
    small.write_text(SMALL)
    vary = "topology.bottleneck.discipline=codel,pie"
    said = works("compare", small, "--vary", vary, "--out", folder / "queues")
    assert "no figure: figures and pages need jinja2, pypdf, vl_convert, which" in said
    assert "pip install 'jinja2>=3.1' 'pypdf>=5.0'" in said
    assert not list((folder / "queues").glob("*.svg"))
    return folder / "queues"


@pytest.fixture
def runs(compared: Path, elsewhere: Path) -> Path:
    """A copy of these runs."""
    return Path(shutil.copytree(compared, elsewhere / "queues")).relative_to(elsewhere)


def test_runs_are_made_shown_and_compared(runs: Path) -> None:
    works("show", runs)
    assert "no figure" not in works("compare", runs, "--no-figure")
    assert len(json.loads(works("compare", runs, "--json"))["runs"]) == 2
    assert "codel" in works("compare", runs, "--where", "seed=1", "--no-figure")
    works("explain", "p50_s")


@pytest.mark.long_cases("evaluate*", "reproduce*")
@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "queues", "-o", "compare.svg"),
        ("report", "queues", "-o", "report.html"),
        ("plot", "cdf", "queues"),
        ("reproduce", "christiansen2000"),
        ("evaluate", "--all"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("runs")
def test_what_draws_says_what_is_not_installed(arguments: tuple[str, ...]) -> None:
    done = bare(*arguments)
    assert done.returncode == 2
    assert "pip install 'jinja2>=3.1'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_card_is_its_numbers_and_its_table() -> None:
    said = works("evaluate", "codel", "--only", "a-base", "--seeds", "1", "--out", "card")
    assert "no page: figures and pages need jinja2" in said
    assert sorted(file.name for file in Path("card").iterdir()) == ["card.json"]


def test_the_interface_says_it_too(runs: Path) -> None:
    lines = BARE.splitlines()[:3]
    lines += ["import aqmlab", f"aqmlab.report([{str(next(runs.glob('*-s*')))!r}], 'report.html')"]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "AqmlabError: figures and pages need jinja2" in done.stderr
