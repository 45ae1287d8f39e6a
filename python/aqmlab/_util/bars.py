"""Progress bars of the Python interface: in terminals and notebooks, nowhere else."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnProgress = Callable[[float], None]
"""Called with the share of the work that is done."""


def are_seen() -> bool:
    """Whether somebody would see a bar: standard error is a terminal, or this is a notebook."""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    """Whether this is a notebook that can show a bar that moves."""
    if "IPython" not in sys.modules or importlib.util.find_spec("ipywidgets") is None:
        return False
    from rich.console import Console

    return Console().is_jupyter


@contextmanager
def bar(what: str, progress: OnProgress | bool | None) -> Iterator[OnProgress]:
    """What is to be called with the share of some work that is done.

    Args:
        what: the work in a word or two.
        progress: whom to tell. None and True: a bar, where it is seen; False: nobody.
    """
    if callable(progress):
        yield progress
        return
    if progress is False or not are_seen():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=1.0)
        yield lambda done: bars.update(task, completed=done)
