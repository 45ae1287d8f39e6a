"""The command line as a whole.

Exit status 0: done, 1: a run failed, 2: the user's input is wrong. What was asked for goes to
standard output, everything else to standard error.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Annotated

import typer

from aqmlab import _native
from aqmlab._util.console import out, say
from aqmlab.cli import commands
from aqmlab.errors import AqmlabError, DamagedRunWarning, NoWorkerWarning

__all__ = ["application", "main"]


_INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def _show_version(wanted: bool) -> None:
    """Prints the version and ends."""
    if wanted:
        out(f"aqmlab {_native.version()}, engine {_native.engine()}")
        raise typer.Exit


def _root(
    version: Annotated[
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


@cache
def application() -> typer.Typer:
    """All commands: the modules of :mod:`aqmlab.cli.commands`."""
    app = typer.Typer(
        help="What will this queue do to the people whose traffic crosses it?",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    for found in pkgutil.iter_modules(commands.__path__):
        module = importlib.import_module(f"{commands.__name__}.{found.name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=found.name)
        else:
            app.command(found.name)(module.command)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    try:
        with warnings.catch_warnings():
            for told in (DamagedRunWarning, NoWorkerWarning):
                warnings.simplefilter("always", told)
            warnings.showwarning = _say_warning
            status = application()(
                list(sys.argv[1:] if arguments is None else arguments), standalone_mode=False
            )
    except typer.TyperException as error:
        return _failure(error.format_message(), error.exit_code)
    except AqmlabError as error:
        return _failure(str(error), error.exit_status)
    # typer turns an interrupt into this status.
    if status == _INTERRUPTED:
        return _failure("interrupted", _INTERRUPTED)
    return status if isinstance(status, int) else 0


def _say_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Says a warning in a line."""
    say(f"warning: {message}")


def _failure(message: str, status: int) -> int:
    """Says in one line what went wrong."""
    say(" ".join(message.split()))
    return status
