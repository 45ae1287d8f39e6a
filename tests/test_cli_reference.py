"""The commands as a whole: one file each, the same options everywhere, a page that is current."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import aqmlab as package
import click
import pytest
from aqmlab.cli import commands
from aqmlab.cli.build import Either, Group, made, modes
from aqmlab.cli.loading import load, names
from aqmlab.cli.options import Json
from aqmlab.cli.reference import PAGE, page
from aqmlab.errors import AqmlabError
from conftest import ROOT, SMALL, Cli

TOY = '''"""A toy."""

from aqmlab._util.console import out


def command(word: str) -> None:
    """Say a word."""
    out(word.upper())
'''


def test_a_docstring_declares_arguments_and_options() -> None:
    def command(
        file: Path,
        *,
        tier: str = "quick",
        directory: Path | None = None,
        quiet: bool = False,
        mode: Literal["a", "b"] = "a",
        as_json: Json = False,
    ) -> None:
        """Do something.

        At length.

        Options:
            file (FILE): What is
                read.
            tier (TIER): Which tests: quick (1 s) or full.
            directory (-o, --out FOLDER): Where it goes.
            quiet (--quiet): Say nothing.
            mode: How.
        """

    built = made(command, "do")
    assert built.help == "Do something.\n\nAt length."
    of: dict[str, Any] = {str(one.name): one for one in built.params}
    found = {name: (one.param_type_name, one.opts, one.metavar) for name, one in of.items()}
    assert found == {
        "file": ("argument", ["file"], "FILE"),
        "tier": ("option", ["--tier"], "TIER"),
        "directory": ("option", ["-o", "--out"], "FOLDER"),
        "quiet": ("option", ["--quiet"], None),
        "mode": ("option", ["--mode"], None),
        "as_json": ("option", ["--json"], None),
    }
    assert of["file"].opt.help == "What is read."
    assert of["tier"].opt.help == "Which tests: quick (1 s) or full."
    assert of["file"].required
    assert of["quiet"].is_flag


def test_a_docstring_declares_no_other_options() -> None:
    def command(*, word: str = "") -> None:
        """Say a word.

        Options:
            word (WORD): It.
            loud (--loud): Whether loudly.
        """

    with pytest.raises(TypeError, match=r"^loud: described, but no parameters"):
        made(command, "say")


@dataclass(frozen=True, kw_only=True)
class Loudness:
    """How loudly.

    Options:
        loud (--loud): Whether loudly.
        times (N): How often.
    """

    loud: bool = False
    times: int = 1


def test_modes_take_their_own_options_and_groups(capsys: pytest.CaptureFixture[str]) -> None:
    def count(*, count: int) -> None:
        """Options:
        count (N): Count up to N.
        """
        print("counted", count)  # noqa: T201

    @modes(count=count)
    def command(word: str = "", *, how: Loudness) -> None:
        """Say a word."""
        print(word, how.loud, how.times)  # noqa: T201

    built = made(command, "say")
    assert [one.name for one in built.params] == ["word", "loud", "times", "count"]
    assert built.params[1].opt.help == "Whether loudly."
    built.main(["--loud", "a"], standalone_mode=False)
    built.main(["--count", "3"], standalone_mode=False)
    assert capsys.readouterr().out.splitlines() == ["a True 1", "counted 3"]
    for words, name in ((["--times", "2"], "--times"), (["a"], "word")):
        with pytest.raises(AqmlabError, match=f"^{name}: found one beside --count, which"):
            built.main(["--count", "3", *words], standalone_mode=False)


def test_every_argument_and_option_is_explained() -> None:
    def unexplained(command: Any) -> Iterator[str]:
        for inner in command.functions if isinstance(command, Either | Group) else ():
            yield from unexplained(command.get_command(click.Context(command), inner))
        yield from (
            f"{command.name} {one.name}"
            for one in command.params
            if not (one.opt.help or one.opt.is_hidden)
        )

    assert [one for name in names() for one in unexplained(load(name))] == []


def test_the_reference_page_is_current() -> None:
    written = (ROOT / PAGE).read_text()
    assert written == page(), f"{PAGE} is old: run python -m aqmlab.cli.reference"


def test_every_command_is_in_the_page() -> None:
    for file in Path(commands.__path__[0]).glob("[!_]*.py"):
        assert f"## aqmlab {file.stem}" in page()


def test_the_help_names_values_by_what_they_are() -> None:
    assert not re.findall(r"<(?:str|int|float|path|list\[\w+\]|\w+ range)>", page())


def test_usage_lines_have_no_braces(aqmlab: Cli) -> None:
    usage = {
        ("run",): "run [OPTIONS] SCENARIO",
        ("compare",): "compare [OPTIONS] RUNS_OR_SCENARIO...",
        ("init",): "init [OPTIONS] [FILE]",
        ("shell",): "shell [OPTIONS] [PROGRAM...]",
        ("plot", "cdf"): "plot cdf [OPTIONS] RUNS...",
        ("traffic", "describe"): "traffic describe [OPTIONS] SOURCE",
        ("new",): "new [OPTIONS] KIND NAME",
    }
    for words, line in usage.items():
        assert aqmlab(*words, "-h").out.startswith(f"Usage: aqmlab {line}\n"), words


def test_no_line_of_the_first_help_is_cut(aqmlab: Cli) -> None:
    for words in [(), ("traffic",), ("plot",), ("store",)]:
        answer = aqmlab(*words, "-h").out
        cut = [line for line in answer.splitlines() if line.endswith("...")]
        assert [line for line in cut if "metric, ..." not in line and "[ARGS]" not in line] == []


def test_a_new_command_is_one_file(elsewhere: Path) -> None:
    (elsewhere / "toy.py").write_text(TOY)
    code = (
        "import sys; from aqmlab.cli import commands; commands.__path__.append('.'); "
        "from aqmlab.cli.app import main; sys.exit(main(sys.argv[1:]))"
    )
    call = [sys.executable, "-c", code]
    assert subprocess.check_output([*call, "toy", "hello"], text=True) == "HELLO\n"
    assert "Say a word." in subprocess.check_output([*call, "--help"], text=True)


COMMANDS = re.compile(r"^<!-- a command: \S*?/(\w+\.py) -->\n```python\n(.*?)^```$", re.M | re.S)
"""The commands of docs/extending.md."""


def test_the_commands_of_the_documentation(small: Path, aqmlab: Cli) -> None:
    for seed in ("1", "2"):
        place = f"runs/{seed}"
        words = ["--set", "title=Busy", "--set", f"rate={seed} Mbit/s", "--out", place]
        assert aqmlab("run", str(small), *words).status == 0
    for name, text in COMMANDS.findall((ROOT / "docs" / "extending.md").read_text()):
        Path(name).write_text(text)
    code = (
        "import sys; from aqmlab.cli import commands; commands.__path__.append('.'); "
        "from aqmlab.cli.app import main; sys.exit(main(sys.argv[1:]))"
    )
    call = [sys.executable, "-c", code]
    found = subprocess.check_output([*call, "busy", "runs", "--digits", "3"], text=True)
    assert re.findall(r": 0\.\d{3}$", found, re.MULTILINE), found
    found = subprocess.check_output(
        [*call, "busiest", "runs/1", "runs/2", "--most", "2"], text=True
    )
    assert len(found.splitlines()) == 2
    shown = subprocess.check_output([*call, "busiest", "-h"], text=True)
    assert re.search(r"--baseline LABEL +Label of the runs with which", shown)


def test_the_version(aqmlab: Cli) -> None:
    answer = aqmlab("--version")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith(f"aqmlab {package.__version__}, engine ")


@pytest.mark.parametrize("name", ["run", "compare", "sweep", "reproduce"])
def test_seeds_mean_the_same_everywhere(aqmlab: Cli, name: str) -> None:
    Path("small.toml").write_text(SMALL)
    Path("sweep.toml").write_text('scenario = "small.toml"\n')
    source = {"sweep": "sweep.toml", "reproduce": "christiansen2000"}.get(name, "small.toml")
    both = aqmlab(name, source, "--seed", "1", "--seeds", "1..2")
    assert both.status == 2
    assert both.err == "aqmlab: --seed and --seeds: found both; give one of them\n"
    twice = aqmlab(name, source, "--seed", "1", "--seed", "2")
    assert twice.status == 2
    assert twice.err == "aqmlab: --seed: found 2 of them; several are --seeds 1,2\n"
    wrong = aqmlab(name, source, "--seeds", "3..1")
    assert wrong.status == 2
    assert "expected 1..3" in wrong.err


def test_old_options_are_refused_with_their_new_names(aqmlab: Cli) -> None:
    answer = aqmlab("traffic", "from-capture", "x.pcap", "-o", "y", "--format", "alternate")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == "aqmlab: --format: is called --layout\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["--list", "--control", "cubic"], ["control", "cubic", "--list"]),
        (["--list", "--suite", "rfc7928"], ["suite", "rfc7928", "--list"]),
        (["pie", "--suite", "card", "--only", "no"], ["suite", "card", "pie", "--only", "no"]),
        (["--control", "cubic", "--ecn", "x"], ["control", "cubic", "--ecn", "x"]),
        (["pie", "--worst", "--trials", "0"], ["worst", "pie", "--trials", "0"]),
        (["--worst", "--control", "no.py"], ["worst", "--control", "no.py"]),
        (["--all", "--tier", "no"], ["all", "--tier", "no"]),
        (["--all-controls", "--seeds", "no"], ["all-controls", "--seeds", "no"]),
    ],
)
def test_old_spellings_of_evaluate_do_the_same(
    aqmlab: Cli, elsewhere: Path, old: list[str], new: list[str]
) -> None:
    assert elsewhere == Path.cwd()
    assert aqmlab("evaluate", *new) == aqmlab("evaluate", *old)


def test_the_help_of_evaluate_lists_its_commands(aqmlab: Cli) -> None:
    shown = aqmlab("evaluate", "-h").out
    options, _, listed = shown.partition("\nCommands:\n")
    assert [line.split()[0] for line in listed.splitlines()] == [
        "control",
        "suite",
        "worst",
        "all",
        "all-controls",
    ]
    assert not re.findall(r"^  --(?:control|ecn|suite|worst|trials|all)\b", options, re.MULTILINE)


def test_an_error_names_the_argument_of_the_command(aqmlab: Cli) -> None:
    answer = aqmlab("evaluate", "suite", "nosuch")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith('aqmlab: SUITE: found "nosuch"; expected one of rfc7928, ')
    missing = aqmlab("evaluate", "control")
    assert missing.err.startswith(
        "aqmlab: Missing argument 'CONTROL'. `aqmlab evaluate control -h`"
    )
