"""What the command line prints, and where."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

LONGEST_RUN_S = 24 * 3600.0
"""The time left is estimated from as long a past: runs of hours end once in hours."""
PIPE_WIDTH = 200
"""Width of tables in a pipe, where nobody's window limits it."""


def out(text: str) -> None:
    """A line on standard output."""
    sys.stdout.write(text + "\n")


def say(text: str) -> None:
    """A line on standard error."""
    sys.stderr.write(f"aqmlab: {text}\n")


def print_json(content: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    """JSON on standard output."""
    out(json.dumps(content, indent=2, ensure_ascii=False))


def show(*parts: RenderableType) -> None:
    """Tables on standard output."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    for part in parts:
        console.print(part)


class Progress:
    """Bars on standard error if that is a terminal; nothing elsewhere."""

    def __init__(self, verb: str) -> None:
        """Makes the bars; `verb` says what goes on."""
        console = Console(stderr=True)
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            speed_estimate_period=LONGEST_RUN_S,
            disable=not sys.stderr.isatty(),
        )
        self._verb = verb
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def update(self, name: str, done: float) -> None:
        """Notes the share of something that is done; what is finished disappears."""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(f"{self._verb} {name}", total=1.0)
        self._bars.update(self._tasks[name], completed=done, visible=done < 1.0)

    def task(self, name: str) -> Callable[[float], None]:
        """:meth:`update` for one thing."""
        return lambda done: self.update(name, done)
