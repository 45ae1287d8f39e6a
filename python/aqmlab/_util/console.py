"""What the command line prints, and where.

Whatever is printed goes through this module, so that texts of files and titles never reach a
terminal as commands: see :func:`aqmlab._util.words.printable`.
"""

from __future__ import annotations

import io
import json
import os
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from aqmlab._util import plain
from aqmlab._util.table import Strong, TableModel
from aqmlab._util.words import printable
from aqmlab.errors import RunError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID
    from rich.text import Text

    from aqmlab._util.terminal import Drawing

LONGEST_RUN_S = 24 * 3600.0
"""The time left is estimated from as long a past: runs of hours end once in hours."""
LINE_EVERY_S = 10.0
"""Where there are no bars, a line says this often how far the work is."""
_BAR_COLUMNS = 30
"""Room for a bar, its percentage and the time left beside what a bar is about."""
_MOST_NAMED = 3
"""Most things that such a line names."""


def out(text: str) -> None:
    """A line on standard output."""
    with _writing():
        sys.stdout.write(printable(text) + "\n")


@contextmanager
def _writing() -> Iterator[None]:
    """Within it standard output is written; it has all of it in the end, or there is an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # its encoding may lack characters
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has read enough
        raise
    except OSError as error:
        # What it still holds would fail once more when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise RunError(f"standard output cannot be written: {error.strerror}") from None


def say(text: str) -> None:
    """A line on standard error."""
    sys.stderr.write(f"aqmlab: {printable(text)}\n")


def say_lines(lines: Iterable[str]) -> None:
    """Lines on standard error; a terminal shows each within its width."""
    with suppress(OSError):  # it is no terminal, or is gone
        columns = os.get_terminal_size(sys.stderr.fileno()).columns - len("aqmlab: ")
        lines = [part for line in lines for part in folded(printable(line), columns)]
    for line in lines:
        say(line)


_LEAST_COLUMNS = 40
"""A narrower terminal folds lines itself."""
_UNDER_TEXT = 11
"""Where the text of a summary's line begins, behind its name."""


def folded(line: str, columns: int) -> list[str]:
    """A line within some columns: what does not fit continues under its text.

    A word that is longer than a line, such as a path, stays whole.
    """
    indent = " " * (_UNDER_TEXT if line.startswith("  ") else 2)
    parts = textwrap.wrap(
        line,
        max(columns, _LEAST_COLUMNS),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return parts or [""]


def print_json(content: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    """JSON on standard output."""
    out(json.dumps(content, indent=2, ensure_ascii=False))


def print_tsv(rows: Sequence[Mapping[str, object]]) -> None:
    """Tab-separated values on standard output: a line of all keys, then a line for each row."""
    heads = list(dict.fromkeys(key for row in rows for key in row))
    lines: list[list[object]] = [[*heads], *([row.get(head) for head in heads] for row in rows)]
    with _writing():
        for cells in lines:
            sys.stdout.write("\t".join(map(_tsv_cell, cells)) + "\n")


def _tsv_cell(value: object) -> str:
    """A value in one line without tabs; nothing for None."""
    return "" if value is None else printable(str(value)).replace("\n", "\\u000a")


def show(*parts: str | TableModel) -> None:
    """Texts and tables on standard output, as wide as a terminal's window; elsewhere plain."""
    with _writing():
        _print(sys.stdout, parts)


def tell(*parts: str | TableModel) -> None:
    """Texts and tables on standard error, as :func:`show` has them."""
    _print(sys.stderr, parts)


def _print(stream: TextIO, parts: Sequence[str | TableModel]) -> None:
    """Texts and tables on a stream."""
    if not stream.isatty():
        stream.write("".join(f"{line}\n" for part in parts for line in plain.lines(part)))
        return
    console = _console(stream)
    for part in parts:
        console.print(drawn(part), crop=False)


def drawn(part: str | TableModel) -> str | Text | Drawing:
    """What a console can print."""
    from rich.text import Text

    from aqmlab._util.terminal import Drawing

    if isinstance(part, TableModel):
        return Drawing(part)
    if not isinstance(part, Strong):
        return printable(part)
    first = printable(part[: part.strong])
    return Text.assemble((first, "bold"), printable(part[part.strong :]))


def _console(stream: TextIO) -> Console:
    """What draws on a terminal; styles are for those whose user wants them."""
    from rich.console import Console

    return Console(
        file=stream,
        force_terminal=True,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        emoji=False,
        highlight=False,
    )


class Progress:
    """How far work is, on standard error: bars on a terminal, elsewhere a line now and then."""

    def __init__(self, verb: str) -> None:
        """Makes the bars; `verb` says what goes on."""
        console = _console(sys.stderr) if sys.stderr.isatty() else None
        has_bars = console is not None and not console.is_dumb_terminal
        self._bars = _bars(console) if console is not None and has_bars else None
        self._verb = verb
        self._tasks: dict[str, TaskID] = {}
        self._lines = None if has_bars else _Lines(verb)

    def __enter__(self) -> Progress:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, name: str, done: float) -> None:
        """Notes the share of something that is done; what is finished disappears."""
        if self._lines is not None:
            self._lines.update(name, done)
        if self._bars is None:
            return
        if name not in self._tasks:
            task = _cut(printable(f"{self._verb} {name}"), self._bars.console.width - _BAR_COLUMNS)
            self._tasks[name] = self._bars.add_task(task, total=1.0)
        self._bars.update(self._tasks[name], completed=done, visible=done < 1.0)

    def detail(self, name: str, done: float) -> None:
        """Notes the share of a part of something: it has no bar, and is forgotten when it ends."""
        if self._lines is not None:
            self._lines.update(name, done, is_kept=False)

    def task(self, name: str) -> Callable[[float], None]:
        """:meth:`update` for one thing."""
        return lambda done: self.update(name, done)


def _bars(console: Console) -> Bars:
    """Bars that disappear when they end. What draws them is loaded for terminals only."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
        speed_estimate_period=LONGEST_RUN_S,
    )


def _cut(text: str, width: int) -> str:
    """A text of at most so many characters; what is left out is in its middle."""
    if len(text) <= width:
        return text
    behind = width // 2
    return f"{text[: width - behind - 1].rstrip()}…{text[-behind:].lstrip()}"


class _Lines:
    """Progress as lines."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._shares: dict[str, float] = {}
        self._printed_at = monotonic()
        self._lock = threading.Lock()  # runs report from threads of their own

    def update(self, name: str, done: float, *, is_kept: bool = True) -> None:
        """Notes a share, and says the shares of all that is unfinished if it is time to.

        What is not kept does not count as finished when it ends: there may be a million of it.
        """
        with self._lock:
            self._shares[name] = done
            if done >= 1 and not is_kept:
                del self._shares[name]
            if monotonic() - self._printed_at < LINE_EVERY_S:
                return
            self._printed_at = monotonic()
            say(self._line())

    def _line(self) -> str:
        """What is unfinished and how far it is; what is finished as a number."""
        active = [f"{name} {share:.0%}" for name, share in self._shares.items() if share < 1]
        finished = len(self._shares) - len(active)
        more = [f"{len(active) - _MOST_NAMED} more"] if len(active) > _MOST_NAMED else []
        ended = [f"{finished} finished"] if finished else []
        return f"{self._verb}: {', '.join([*active[:_MOST_NAMED], *more, *ended])}"
