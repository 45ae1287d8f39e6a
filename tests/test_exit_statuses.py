"""The exit status of every command: fine, wrong input, a run that failed, a gate, an interrupt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest
from aqmlab.cli import loading
from aqmlab.cli.build import Group
from aqmlab.cli.loading import names
from conftest import SMALL

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Cli

QUICK = ("--set", "measure.duration=3s", "--set", "measure.warm_up=0s")
SWEEP = 'title = "s"\nscenario = "small.toml"\nseeds = "1..2"\n'
TUNE = (
    "--vary",
    "discipline.limit=2..30 packets:whole",
    "--goal",
    "minimize p95",
    "--trials",
    "2",
    "--confirm",
    "2",
    "--seeds",
    "1..2",
)
RAISES = '''
from aqmlab.plugins import ADMIT, Discipline


class Bad(Discipline):
    """Fails."""

    def on_arrival(self, event):
        raise ValueError("no more")
'''
PLUGIN = 'topology.bottleneck.discipline={kind="plugin",name="bad",limit="20 packets"}'

FINE = {
    "run": ("run", "small.toml", *QUICK, "--out", "again"),
    "show": ("show", "one"),
    "compare": ("compare", "one", "two", "--no-figure"),
    "plot": ("plot", "cdf", "one", "-o", "cdf.svg"),
    "report": ("report", "one", "-o", "page.html"),
    "why": ("why", "one"),
    "export": ("export", "one", "-o", "logs"),
    "explain": ("explain", "pie"),
    "list": ("list", "disciplines"),
    "init": ("init", "home.toml", "--kind", "home"),
    "new": ("new", "discipline", "my-own"),
    "check": ("check", "mine.py"),
    "sweep": ("sweep", "sweep.toml", "--out", "swept", "--store", "swept/store"),
    "store": ("store", "size", "--store", "swept/store"),
    "schema": ("schema",),
    "traffic": ("traffic", "describe", "small.toml", "--seconds", "30"),
    "tune": ("tune", "small.toml", *TUNE, "--out", "tuned"),
    "evaluate": ("evaluate", "fq-codel", "--only", "a-base", "--seeds", "1", "--out", "card"),
}
WRONG = {
    "run": ("run", "nothing.toml"),
    "show": ("show", "nothing"),
    "compare": ("compare", "nothing", "one"),
    "plot": ("plot", "cdf", "nothing"),
    "report": ("report", "nothing"),
    "why": ("why", "nothing"),
    "export": ("export", "nothing"),
    "explain": ("explain", "nosuchword"),
    "list": ("list", "nosuchthing"),
    "init": ("init", "x.toml", "--kind", "castle"),
    "new": ("new", "castle", "x"),
    "check": ("check", "nothing.py"),
    "sweep": ("sweep", "nothing.toml"),
    "store": ("store", "check", "--store", "nothing"),
    "schema": ("schema", "more"),
    "traffic": ("traffic", "describe", "nothing.toml"),
    "tune": ("tune", "small.toml", "--vary", "nothing=1..2", "--goal", "minimize p95"),
    "evaluate": ("evaluate", "nosuchqueue"),
    "reproduce": ("reproduce", "nosuchpaper"),
    "calibrate": ("calibrate", "nothing.toml"),
    "replay": ("replay", "nothing.pcap"),
    "playground": ("playground", "--port", "0x"),
    "shell": ("shell", "--rate", "fast", "--", "true"),
}
FAILED = {
    "sweep": ("sweep", "sweep.toml", "--plugin", "bad.py", "--set", PLUGIN, "--out", "failed"),
    "evaluate": ("evaluate", "bad.py", "--only", "a-base", "--seeds", "1", "--out", "card"),
}


RAISING = {
    "run": ("run", "small.toml", "--plugin", "bad.py", "--set", PLUGIN, "--out", "failed"),
    "check": ("check", "bad.py"),
}
"""Here the plug-in itself is the input that is wrong."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the commands are given."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    (tmp_path / "bad.py").write_text(RAISES)
    return tmp_path


def prepare(name: str, aqmlab: Cli) -> None:
    """Runs that a command reads, or the plug-in that it checks."""
    if name in ("show", "compare", "plot", "report", "why", "export"):
        more = ("--set", "measure.breakdown=true", "--set", "measure.flow_trace={ flows = 1 }")
        for folder, seed in (("one", "1"), ("two", "2")):
            call = ("run", "small.toml", *QUICK, *more, "--set", f"seed={seed}", "--out", folder)
            assert aqmlab(*call).status == 0
    if name == "check":
        assert aqmlab("new", "discipline", "mine").status == 0
    if name == "store":
        assert aqmlab(*FINE["sweep"]).status == 0


def test_the_tables_have_every_command() -> None:
    assert set(WRONG) == set(names())
    apart = {
        "calibrate",  # a load takes minutes: test_calibrate
        "replay",  # needs a capture: test_replay
        "playground",  # serves until it is ended: test_playground
        "reproduce",  # takes minutes: test_reproduce
        "shell",  # needs namespaces: test_shell
    }
    assert set(FINE) == set(names()) - apart


@pytest.mark.long_cases("report", "evaluate")
@pytest.mark.parametrize("name", FINE)
@pytest.mark.usefixtures("place")
def test_a_command_that_does_its_work_ends_with_0(name: str, aqmlab: Cli) -> None:
    prepare(name, aqmlab)
    answer = aqmlab(*FINE[name])
    assert answer.status == 0, answer.err


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("place")
def test_wrong_input_ends_with_2(name: str, aqmlab: Cli) -> None:
    answer = aqmlab(*WRONG[name])
    assert answer.status == 2, answer.out + answer.err
    assert answer.err.strip()


@pytest.mark.long_cases("evaluate")
@pytest.mark.parametrize("name", FAILED)
@pytest.mark.usefixtures("place")
def test_a_run_that_failed_ends_with_1(name: str, aqmlab: Cli) -> None:
    answer = aqmlab(*FAILED[name])
    assert answer.status == 1, answer.out + answer.err
    assert "no more" in answer.out + answer.err


@pytest.mark.parametrize("name", RAISING)
@pytest.mark.usefixtures("place")
def test_a_plug_in_that_raises_is_wrong_input(name: str, aqmlab: Cli) -> None:
    answer = aqmlab(*RAISING[name])
    assert answer.status == 2, answer.out + answer.err
    assert "no more" in answer.err


def test_a_gate_that_failed_ends_with_1(place: Path, aqmlab: Cli) -> None:
    """A queue that drops everything starves its users."""
    text = RAISES.replace('raise ValueError("no more")', "return DROP if event.now > 3 else ADMIT")
    (place / "bad.py").write_text(text.replace("import ADMIT", "import ADMIT, DROP"))
    answer = aqmlab("evaluate", "bad.py", "--only", "a-udp-only", "--seeds", "1", "--out", "card")
    assert answer.status == 1, answer.out + answer.err
    assert "bad fails: " in answer.err.splitlines()[-1]


@pytest.mark.parametrize("name", names())
@pytest.mark.usefixtures("place")
def test_an_interrupt_ends_with_130(
    name: str, aqmlab: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = loading.load

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def loaded(which: str) -> Any:
        command = load(which)
        if not isinstance(command, Group):
            command.callback = interrupted
            return command
        for one in command.functions:
            each = command.get_command(click.Context(command), one)
            assert each is not None
            each.callback = interrupted
        return command

    monkeypatch.setattr(loading, "load", loaded)
    call = {**WRONG, **FINE, "playground": ("playground", "--no-browser")}[name]
    answer = aqmlab(*call)
    assert answer.status == 130, answer.err
