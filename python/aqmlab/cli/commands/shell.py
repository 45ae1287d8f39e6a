"""``aqmlab shell``: any program behind any queue."""

from __future__ import annotations

from pathlib import Path

import click

from aqmlab._util.console import show
from aqmlab.cli.build import modes
from aqmlab.cli.shell_link import LinkOptions
from aqmlab.cli.shell_runs import EndOptions, RunOptions, Subject, made
from aqmlab.errors import AqmlabError
from aqmlab.shell.program import Net
from aqmlab.shell.tests import BuiltIn

__all__ = ["CONTEXT", "command"]

CONTEXT = {"allow_interspersed_args": False}
"""What follows the program's name belongs to the program."""
_CANNOT_RUN = 125
"""Exit status where no program can be run."""


def _doctor(*, doctor: bool) -> None:  # noqa: ARG001 - it chooses this function
    """What this machine allows; the exit status says whether programs can be run.

    Options:
        doctor (--doctor): Print what this machine allows and how to allow more, and run nothing.
    """
    from aqmlab.shell.doctor import State, findings, table

    found = list(findings())
    show(table(found))
    if any(finding.state is State.MISSING for finding in found):
        raise click.exceptions.Exit(_CANNOT_RUN)


def _attach(program: list[str] | None = None, *, attach: Path) -> None:
    """A program over the link of a running program.

    Options:
        attach (DIR): Run the program over the link of a running program. DIR is its run directory.
    """
    from aqmlab.shell.attach import run_beside

    own = Subject.program(program, 0.0)
    raise click.exceptions.Exit(run_beside(attach, [own.path, *own.words[1:]]))


def _test(
    program: list[str] | None = None,
    *,
    test: BuiltIn,
    link: LinkOptions,
    ends: EndOptions,
    runs: RunOptions,
) -> None:
    """A built-in test, instead of a program.

    Options:
        test: Run a test instead of a program: rpm (responsiveness under load, 15 s) or rrul (from
            Flent, 30 s). --for changes the time.
    """
    words, link = link.read(program)
    if words:
        raise AqmlabError("program: found one beside --test, which brings its own")
    if Net.NONE in ends.nets():
        raise AqmlabError("--net: found none beside --test, which needs the services")
    raise click.exceptions.Exit(made(Subject.built_in(test, runs), link.links(), ends, runs))


@modes(test=_test, attach=_attach, doctor=_doctor)
def command(
    program: list[str] | None = None, *, link: LinkOptions, ends: EndOptions, runs: RunOptions
) -> None:
    r"""Run a program over any queue: curl, a browser, a game.

    The program needs no change and no root. It runs in a separate network, behind an emulated link.
    When the program ends, the command prints a summary. `aqmlab show`, `compare` and `plot` read
    the run directory.

    Measure bufferbloat with two queues, without a program:

      aqmlab shell --test rpm --queue 'droptail:250 ms,fq-codel'

    The far end of the link, host.aqmlab, has a file server and an echo service (TCP and UDP, port
    7), and answers pings:

      aqmlab shell --queue fq-codel -- curl -O http://host.aqmlab:8000/5MB

    With --net all the program also reaches public addresses:

      aqmlab shell --net all -- firefox

    Browsers can load a test page with 34 objects and 1 MB, http://host.aqmlab:8000/page.

    The exit status is the status of the program, or 0 if --for ended the program. It is 2 if an
    option or the name of the program is wrong. It is 125 if this machine cannot run programs in
    this way; --doctor prints the reason.

    Ctrl-C and other signals go to the program. A second signal kills the program.

    Options:
        program (PROGRAM): The program and its arguments, after --; default: your shell.
    """
    words, link = link.read(program)
    subject = Subject.program(words, runs.longest_s())
    raise click.exceptions.Exit(made(subject, link.links(), ends, runs))
