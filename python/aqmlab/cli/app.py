"""The command line as a whole.

Exit status 0: done, 1: a run failed or is damaged, 2: the user's input is wrong. What was asked for
goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import click
from click.exceptions import NoSuchCommand

from aqmlab.cli.build import METAVAR
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


def _print_version(context: click.Context, _: object, wanted: bool) -> None:
    """Prints the version and ends."""
    if wanted:
        from aqmlab import _native

        click.echo(f"aqmlab {_native.version()}, engine {_native.engine()}")
        context.exit()


def _install_completion(context: click.Context, _: object, shell: str | None) -> None:
    """Installs completion and ends."""
    if shell is not None:
        from aqmlab.cli import completion_scripts

        click.echo(completion_scripts.install(shell))
        context.exit()


def _show_completion(context: click.Context, _: object, shell: str | None) -> None:
    """Prints the script of completion and ends."""
    if shell is not None:
        from aqmlab.cli import completion_scripts

        click.echo(completion_scripts.script(shell))
        context.exit()


def _option(name: str, meaning: str, callback: Callable[..., None], **more: Any) -> click.Option:  # noqa: ANN401
    """An option of ``aqmlab`` itself, which ends it."""
    return click.Option([name], help=meaning, callback=callback, expose_value=False, **more)


def _root() -> None:
    """Says what there is, if nothing else is asked for."""
    if click.get_current_context().invoked_subcommand is None:
        click.echo(_first_screen())


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
        "aqmlab COMMAND -h explains a command, aqmlab -h lists all commands.",
    )
    return "\n".join(lines)


@cache
def application() -> CommandGroup:
    """All commands: the modules of :mod:`aqmlab.cli.commands`."""
    shell: dict[str, Any] = {"metavar": "[SHELL]", "is_flag": False, "flag_value": ""}
    return CommandGroup(
        name="aqmlab",
        help=_QUESTION,
        callback=_root,
        invoke_without_command=True,
        subcommand_metavar=METAVAR,
        context_settings={"help_option_names": ["-h", "--help"]},
        params=[
            _option(
                "--version",
                "Print the version of aqmlab and of its engine, and end.",
                _print_version,
                is_flag=True,
                is_eager=True,
            ),
            _option(
                "--install-completion",
                "Install completion for the current shell.",
                _install_completion,
                **shell,
            ),
            _option(
                "--show-completion",
                "Show completion for the current shell, to copy it or customize the installation.",
                _show_completion,
                **shell,
            ),
        ],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    try:
        with warnings.catch_warnings():
            for category in (DamagedRunWarning, NoWorkerWarning):
                warnings.simplefilter("always", category)
            warnings.showwarning = _say_warning
            status = _run(list(sys.argv[1:] if arguments is None else arguments))
    except click.ClickException as error:
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
    # The end of input where a question was asked is as good as an interrupt.
    except (KeyboardInterrupt, EOFError, click.Abort):
        return _failure("interrupted", INTERRUPTED)
    return status if isinstance(status, int) else 0


def _run(arguments: list[str]) -> object:
    """What a command returns; its exit status, if it ends early."""
    root = application()
    if instruction := os.environ.get("_AQMLAB_COMPLETE"):
        from aqmlab.cli import completion_scripts

        sys.exit(completion_scripts.answer(root, instruction))
    try:
        with root.make_context("aqmlab", arguments) as context:
            return root.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:  # the reader has read enough; what is still held would fail once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


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


def _usage(error: click.ClickException) -> str:
    """What is wrong with the arguments; of what is missing or unknown also where help is."""
    text = error.format_message()
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "aqmlab"
    if isinstance(error, click.NoSuchOption):
        text = f"No such option: {error.option_name}"
        if error.possibilities:
            return f"{text} (Possible options: {', '.join(sorted(error.possibilities))})"
        return f"{text}. `{path} -h` lists the options."
    if isinstance(error, click.MissingParameter):
        return f"{text} `{path} -h` explains it."
    if isinstance(error, NoSuchCommand):
        return f"{text} `{path} -h` lists the commands."
    return re.sub(r"^(Got unexpected extra argument)s? ", r"\1(s) ", text)


def _failure(message: str, status: int) -> int:
    """Says in one line what went wrong."""
    _say(" ".join(message.split()))
    return status


def _say(text: str) -> None:
    """A line on standard error."""
    from aqmlab._util.console import say  # what prints tables is loaded where something is printed

    say(text)
