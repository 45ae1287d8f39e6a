"""What the programs of the lab share: their arguments, their status, sections of a page.

A program keeps its finished runs in the folder ``--out``; the next call takes them up again.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from aqmlab._util.console import say
from aqmlab.errors import AqmlabError

P = ParamSpec("P")
T = TypeVar("T")


def parser(about: str | None, out: str = "") -> argparse.ArgumentParser:
    """The parser of a program, described by the first line of its docstring.

    With `out` it has the option for the folder of runs.
    """
    spec = sys.modules["__main__"].__spec__
    made = argparse.ArgumentParser(
        prog=f"python -m {spec.name}" if spec else None,
        description=(about or "").partition("\n")[0],
    )
    if out:
        made.add_argument("--out", type=Path, default=Path(out), help="folder of runs")
    return made


def program(main: Callable[P, int]) -> Callable[P, int]:
    """The command of a program: what it refuses becomes a message and an exit status."""

    @functools.wraps(main)
    def command(*arguments: P.args, **options: P.kwargs) -> int:
        try:
            return main(*arguments, **options)
        except AqmlabError as error:
            say(str(error))
            return error.exit_status

    return command


def chosen(known: Mapping[str, T], names: Sequence[str], lacking: str) -> list[T]:
    """What is called by these names, or everything.

    Args:
        known: what there is, by name.
        names: those that were asked for.
        lacking: the message about another name, which stands at ``{}``.
    """
    for name in names:
        if name not in known:
            raise AqmlabError(f"{lacking.format(name)}; known: {', '.join(known)}")
    return [known[name] for name in names] or [*known.values()]


def with_section(page: str, name: str, text: str) -> str:
    """A page whose section between ``<!-- name -->`` and the next ``<!-- end -->`` is this text."""
    begin, end = f"<!-- {name} -->\n", "<!-- end -->"
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise AqmlabError(f"the page has no mark {begin.strip()} with an end")
    return f"{before}{begin}{text}{end}{after}"
