"""Values of arguments: what needs no library is what typer makes of it, and libraries stay away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from aqmlab.cli.coercion import _Eased, _number
from aqmlab.cli.loading import load, names

HEAVY = ("altair", "email", "numpy", "polars", "pyarrow", "pydantic", "rich", "rich.progress")
"""What takes long to load."""
TEXTS = ("", "a", "3", "-1", " 7", "1_0", "0x1", "2.5", "1e3", "true", "runs", "/dev/null", "é")


def parameters(command: Any, context: Any = None) -> Iterator[tuple[Any, Any]]:
    """Every parameter of a command and of those in it."""
    here = typer.Context(command, parent=context)
    for parameter in command.get_params(here):
        yield here, parameter
    for name in getattr(command, "commands", ()):
        yield from parameters(command.get_command(here, name), here)


def outcome(coerce: Any, value: Any, parameter: Any, context: Any) -> Any:
    """What becomes of a value: what it is, or what is said of it."""
    try:
        found = coerce(value, param=parameter, ctx=context)
    except typer.BadParameter as error:
        return error.format_message()
    return type(found), found


@pytest.mark.parametrize("name", names())
def test_values_are_what_typer_makes_of_them(name: str) -> None:
    seen = 0
    for context, parameter in parameters(load(name)):
        eased = parameter.get_runtime_param
        assert isinstance(eased, _Eased), parameter.name
        of_typer = eased._of_typer().coerce
        choices = parameter.type_descriptor.choices or ()
        words = get_args(parameter.type_descriptor.annotation)
        values: list[Any] = [None, parameter.default, *TEXTS, *(str(one) for one in choices)]
        values += [word for word in words if isinstance(word, str)]  # those of a Literal
        if parameter.multiple or parameter.nargs == -1:
            values = [None, (), ("a", "3"), ("7",)]
        for value in values:
            if callable(value):
                continue
            wanted = outcome(of_typer, value, parameter, context)
            found = outcome(eased.coerce, value, parameter, context)
            if isinstance(wanted, str) and _number(parameter.type_descriptor):
                # A number is refused where typer refuses it, in words of our own.
                ours = r"Invalid value for .*: found .+; expected a( whole)? number(, at .*)?"
                assert re.fullmatch(ours, str(found)), (parameter, value, found)
            else:
                assert found == wanted, (parameter, value)
            seen += 1
    assert seen


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
        (["--version"], 160),
        (["list"], 190),
        (["list", "disciplines"], 185),
        (["explain", "red"], 185),
        (["run", "small.toml", "--seed", "3", "--out", "run"], 230),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_commands_load_little(small: Path, arguments: list[str], most: int) -> None:
    """Counts, not times: these do not depend on the machine."""
    found = loaded(arguments, small.parent)
    assert not {*HEAVY} & found
    assert len(found) <= most


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
    assert not kinds.commands._made
    assert kinds.get_command(typer.Context(kinds), "cdf").name == "cdf"
    assert [*kinds.commands._made] == ["cdf"]
