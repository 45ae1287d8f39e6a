"""The command line as a whole.

Exit status 0: done, 1: a run failed or is damaged, 2: the user's input is wrong. What was asked for
goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import sys
import textwrap
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Annotated

import typer

from aqmlab.cli.interrupts import INTERRUPTED
from aqmlab.cli.loading import CommandGroup, names, shortened, summary
from aqmlab.errors import (
    AqmlabError,
    DamagedRunWarning,
    NoWorkerWarning,
    PluginError,
    UnprivilegedError,
    UnprivilegedShellError,
)

__all__ = ["EXAMPLES", "application", "main"]


_QUESTION = "What will this queue do to the people whose traffic crosses it?"
_FIRST = (
    "init",
    "run",
    "compare",
    "plot",
    "replay",
    "sweep",
    "report",
    "reproduce",
    "list",
    "explain",
)
"""The commands that are needed first."""
_WIDTH = 80
"""Columns that every terminal has."""
EXAMPLES = (
    "aqmlab init office.toml --kind office --rate 100/20 --call --upload",
    """aqmlab compare office.toml \\
    --vary 'discipline={kind="droptail",limit="813 packets"},fq-codel'""",
    "aqmlab report runs",
)
"""What a beginner may type, in this order."""


def _show_version(wanted: bool) -> None:
    """Prints the version and ends."""
    if wanted:
        from aqmlab import _native

        typer.echo(f"aqmlab {_native.version()}, engine {_native.engine()}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Print the version of aqmlab and of its engine, and end.",
        ),
    ] = False,
) -> None:
    """What will this queue do to the people whose traffic crosses it?"""
    if context.invoked_subcommand is None:
        typer.echo(_first_screen())


def _first_screen() -> str:
    """What ``aqmlab`` alone says: where to begin, and what there is."""
    there = names()
    first = [name for name in _FIRST if name in there]
    others = ", ".join(name for name in there if name not in first)
    lines = (
        f"aqmlab: {_QUESTION[0].lower()}{_QUESTION[1:]}",
        "",
        *(f"  {example}" for example in EXAMPLES),
        "",
        *(f"  {name:<10} {shortened(summary(name), _WIDTH - 13)}" for name in first),
        "",
        *textwrap.wrap(f"Also: {others}.", _WIDTH),
        "aqmlab COMMAND -h explains a command, aqmlab -h names all of them.",
    )
    return "\n".join(lines)


@cache
def application() -> typer.Typer:
    """All commands: the modules of :mod:`aqmlab.cli.commands`."""
    app = typer.Typer(
        help=_QUESTION,
        cls=CommandGroup,
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    try:
        with warnings.catch_warnings():
            for category in (DamagedRunWarning, NoWorkerWarning):
                warnings.simplefilter("always", category)
            warnings.showwarning = _say_warning
            status = application()(
                list(sys.argv[1:] if arguments is None else arguments),
                prog_name="aqmlab",
                standalone_mode=False,
            )
    except typer.TyperException as error:
        return _failure(_usage(error), error.exit_code)
    except UnprivilegedError as error:
        why = f"; {_start_again(error)}" if arguments is None else ""
        return _failure(f"{error}{why}", error.exit_status)
    except AqmlabError as error:
        return _failure(_traced(error), error.exit_status)
    except ModuleNotFoundError as error:
        from aqmlab._util.extras import DRAWING, undrawable

        if error.name not in DRAWING:
            raise
        return _failure(undrawable(), AqmlabError.exit_status)
    except typer.Abort:  # an interrupt or the end of input where a question was asked
        status = INTERRUPTED
    # typer turns an interrupt into this status.
    if status == INTERRUPTED:
        return _failure("interrupted", INTERRUPTED)
    return status if isinstance(status, int) else 0


def _start_again(error: UnprivilegedError) -> str:
    """Begins anew where this process may do more; returns why it cannot."""
    from aqmlab.engine import privileges

    return privileges.start_again(keeping_user=isinstance(error, UnprivilegedShellError))


def _say_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Says a warning in a line."""
    _say(f"warning: {message}")


def _traced(error: AqmlabError) -> str:
    """What an error says; a plug-in's exception shows its traceback before."""
    text = str(error)
    if text.startswith("memory: "):  # the argument of the functions is an option here
        return f"--{text}"
    if not isinstance(error, PluginError):
        return text
    first, _, traceback = text.partition("\n")
    sys.stderr.write(f"{traceback}\n" if traceback else "")
    return first


def _usage(error: typer.TyperException) -> str:
    """What is wrong with the arguments; of what is missing or unknown also where help is."""
    text = error.format_message().replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    if context is not None and text.startswith("Missing "):
        return f"{text} `{context.command_path} -h` explains it."
    if context is not None and text.startswith("No such command "):
        return f"{text} `{context.command_path} -h` lists the commands."
    if context is not None and text.startswith("No such option: ") and "(Possible " not in text:
        return f"{text}. `{context.command_path} -h` lists the options."
    return text


def _failure(message: str, status: int) -> int:
    """Says in one line what went wrong."""
    _say(" ".join(message.split()))
    return status


def _say(text: str) -> None:
    """A line on standard error."""
    from aqmlab._util.console import say  # what prints tables is loaded where something is printed

    say(text)
