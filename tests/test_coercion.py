"""Values of arguments by the types of their parameters; libraries that are not needed stay away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest
from aqmlab.cli.build import Arg, Opt, built, made
from aqmlab.cli.loading import load

HEAVY = ("altair", "email", "numpy", "polars", "pyarrow", "pydantic", "rich", "rich.progress")
"""What takes long to load."""


class Side(str, Enum):
    """Words with other names."""

    LEFT = "left"
    RIGHT = "right"


def command(
    files: list[Path],
    *,
    whole: int = 3,
    many: list[int] | None = None,
    real: float | None = None,
    side: Side = Side.LEFT,
    word: Literal["a", "b"] | None = None,
    sure: bool | None = None,
    loud: bool = False,
) -> None:
    """Take values.

    Options:
        files (FILE): Files.
        sure (--sure/--unsure): Whether sure.
        loud (--loud): Whether loud.
    """


def taken(*words: str) -> dict[str, Any]:
    """What a command gets."""
    return made(command, "take").make_context("take", list(words)).params


def test_what_is_not_given_is_the_default() -> None:
    assert taken("x") == {
        "files": [Path("x")],
        "whole": 3,
        "many": None,
        "real": None,
        "side": Side.LEFT,
        "word": None,
        "sure": None,
        "loud": False,
    }


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--whole", "-1"], "whole", -1),
        (["--whole", " 7"], "whole", 7),
        (["--whole", "2.0"], "whole", 2),
        (["--whole", "9" * 30], "whole", int("9" * 30)),
        (["--many", "1", "--many", "2"], "many", [1, 2]),
        (["--real", "1e3"], "real", 1000.0),
        (["--side", "right"], "side", Side.RIGHT),
        (["--word", "b"], "word", "b"),
        (["--unsure"], "sure", False),
        (["--sure"], "sure", True),
        (["--loud"], "loud", True),
        (["y"], "files", [Path("x"), Path("y")]),
    ],
)
def test_a_type_reads_its_values(words: list[str], name: str, value: Any) -> None:
    found = taken("x", *words)[name]
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Missing argument 'FILE'."),
        (["x\0"], "Invalid value for 'FILE': Path 'x\\x00' is not readable."),
        (
            ["x", "--whole", ""],
            "Invalid value for '--whole': found nothing; expected a whole number",
        ),
        (
            ["x", "--whole", "1.5"],
            "Invalid value for '--whole': found 1.5; expected a whole number",
        ),
        (["x", "--many", "a"], "Invalid value for '--many': found a; expected a whole number"),
        (["x", "--real", "0x1"], "Invalid value for '--real': found 0x1; expected a number"),
        (
            ["x", "--side", "LEFT"],
            "Invalid value for '--side': 'LEFT' is not one of 'left', 'right'.",
        ),
        (["x", "--word", "c"], "Invalid value for '--word': 'c' is not one of 'a', 'b'."),
        (["x", "--loud=1"], "Option '--loud' does not take a value."),
    ],
)
def test_a_type_refuses_other_values(words: list[str], message: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        taken(*words)
    assert refused.value.format_message() == message


def found_by(
    place: str | os.PathLike[str],
    *,
    depth: int = 2,
    pairs: dict[str, str] | None = None,
    progress: object = None,
) -> list[Any]:
    """Finds something.

    Args:
        place: where to look, a folder such as ``runs``.
        depth: how deep;
            default: two folders.
        pairs: what to find.
        progress: called now and then.

    Returns:
        What was given.
    """
    return [place, depth, pairs, progress]


def test_a_function_of_the_package_gives_parameters() -> None:
    seen: list[Any] = []

    @built(
        found_by,
        place=Arg("FOLDER"),
        depth=Opt("N", least=1),
        pairs=Annotated[str | None, Opt("K=V", "", "--pair", parse=lambda it: {it[0]: it[2:]})],
    )
    def find(found: Callable[..., list[Any]], *, quiet: bool = False) -> None:
        """Find things.

        Options:
            quiet (--quiet): Say nothing.
        """
        seen.append(found(progress=quiet))

    command = made(find, "find")
    context = click.Context(command)
    assert command.help == "Find things."
    assert [one.get_help_record(context) for one in command.params] == [
        ("FOLDER", "Where to look, a folder such as runs.  [required]"),
        ("--depth N", "How deep; default: two folders.  [at least 1]"),
        ("--pair K=V", "What to find."),
        ("--quiet", "Say nothing."),
    ]
    for words in (["x"], ["x", "--depth", "3", "--pair", "a=1", "--quiet"]):
        command.invoke(command.make_context("find", words))
    assert seen == [[Path("x"), 2, None, False], [Path("x"), 3, {"a": "1"}, True]]


def test_a_function_gives_no_other_parameters() -> None:
    with pytest.raises(TypeError, match=r"^width: no parameters of the function"):
        built(found_by, width=Opt())(print)


def loaded(arguments: list[str], folder: Path) -> set[str]:
    """The modules that a command has loaded as it ends."""
    code = (
        "import json, sys\n"
        "from aqmlab import cli\n"
        f"status = cli.main({json.dumps(arguments)})\n"
        "print(json.dumps([status, *sys.modules]), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    status, *modules = json.loads(said.stderr.splitlines()[-1])
    assert status == 0
    return set(modules)


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (["--version"], 130),
        (["list"], 160),
        (["list", "disciplines"], 155),
        (["explain", "red"], 155),
        (["run", "small.toml", "--seed", "3", "--out", "run"], 208),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_commands_load_little(small: Path, arguments: list[str], most: int) -> None:
    """Counts, not times: these do not depend on the machine."""
    found = loaded(arguments, small.parent)
    assert not {*HEAVY} & found
    assert len(found) <= most


@pytest.mark.long
def test_finished_runs_are_compared_without_the_engine(small: Path) -> None:
    """Neither what runs scenarios nor what draws is loaded, nor pyarrow's functions."""
    for seed in ("3", "4"):
        loaded(["run", "small.toml", "--seed", seed, "--out", f"run-{seed}"], small.parent)
    runs = ["run-3", "run-4"]
    for arguments, most in ((["compare", *runs, "--no-figure"], 387), (["show", *runs], 227)):
        found = loaded(arguments, small.parent)
        assert not {"altair", "vl_convert", "scipy", "pandas", "pyarrow.compute"} & found
        assert not {"aqmlab.engine.parallel", "aqmlab.engine.calibrate"} & found
        assert len(found) <= most, arguments


@pytest.mark.parametrize(("stated", "threads"), [({}, True), ({"OMP_NUM_THREADS": "2"}, False)])
def test_linear_algebra_has_one_thread_unless_the_user_says_otherwise(
    stated: dict[str, str], threads: bool
) -> None:
    """Child processes get the environment as it was."""
    code = (
        "import os, sys\n"
        "from aqmlab._util.lazy import numpy_on_one_thread\n"
        "before = dict(os.environ)\n"
        "numpy_on_one_thread()\n"
        "assert before == dict(os.environ)\n"
        "print('numpy' in sys.modules, len(os.listdir('/proc/self/task')))\n"
    )
    plain = {name: value for name, value in os.environ.items() if "_NUM_THREADS" not in name}
    command = [sys.executable, "-c", code]
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**plain, **stated}
    )
    assert said.stdout.split() == [str(threads), "1"]


def test_a_figure_needs_no_pydantic(small: Path) -> None:
    """The words of its options are looked up."""
    loaded(["run", "small.toml", "--out", "run"], small.parent)
    found = loaded(["plot", "cdf", "run", "-o", "cdf.svg", "--width", "column"], small.parent)
    assert "vl_convert" in found
    assert not {"pydantic", "rich"} & found


@pytest.mark.long
def test_commands_draw_without_altair(small: Path) -> None:
    """It makes charts for Python; importing it takes longer than most commands."""
    for seed in ("3", "4"):
        loaded(["run", "small.toml", "--seed", seed, "--out", f"runs/{seed}"], small.parent)
    for arguments, most in (
        (["plot", "ccdf", "runs", "-o", "figure.svg"], 380),
        (["compare", "runs/3", "runs/4", "-o", "figure.png"], 430),
        (["report", "runs", "-o", "report.html"], 600),
    ):
        found = loaded(arguments, small.parent)
        assert "vl_convert" in found
        assert not {"altair", "jsonschema", "narwhals"} & found
        assert len(found) <= most, arguments


def test_a_command_of_a_group_is_made_when_it_is_asked_for() -> None:
    """The kinds of figures load what draws them."""
    kinds = load("plot")
    assert isinstance(kinds, click.Group)
    assert not kinds.commands
    found = kinds.get_command(click.Context(kinds), "cdf")
    assert found is not None
    assert found.name == "cdf"
    assert [*kinds.commands] == ["cdf"]
