"""What a link is doing while a program runs behind it: a few lines on a terminal, or text."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import log
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from aqmlab.scenario.quantities import rate_text
from aqmlab.shell.program import LinkState

__all__ = ["View", "output_in"]

_DRAWN_S = 0.1
_LINE_S = 10.0
_SPAN_S = 60.0
_COLUMNS = 30
"""Width of the pictures: they and their words fit into 80 columns."""
_BLOCKS = " ▁▂▃▄▅▆▇█"
_WAIT_S = (0.001, 1.0)
"""The picture of the wait goes from here to here, in logarithms."""


class View:
    """Draws what both directions are doing; use it as a context.

    On a terminal it draws ten times a second; elsewhere it writes a line every ten seconds.
    """

    def __init__(self, title: str, console: Console) -> None:
        """Begins with nothing; `title` stands above."""
        self._title = title
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._ways = (_Way("down"), _Way("up"))
        self._next_s = 0.0 if self._live else _LINE_S

    def __enter__(self) -> View:
        """Begins to draw."""
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The last picture stays."""
        if self._live:
            self._live.stop()

    def update(self, passed_s: float, links: Sequence[LinkState]) -> None:
        """Takes what the directions to the program and from it are doing."""
        for way, seen in zip(self._ways, links, strict=True):
            way.take(seen)
        if passed_s < self._next_s:
            return
        if self._live:
            self._next_s = passed_s + _DRAWN_S
            lines = [f"{self._title}, {passed_s:.0f} s"]
            for way in self._ways:
                lines += way.lines()
            self._live.update(Text("\n".join(lines), no_wrap=True, overflow="crop"), refresh=True)
        else:
            self._next_s = passed_s + _LINE_S
            words = "; ".join(way.words() for way in self._ways)
            self._console.print(Text(f"aqmlab: {passed_s:.0f} s: {words}"), soft_wrap=True)


class _Way:
    """A direction, and its last minute."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = LinkState()
        self._now = LinkState()
        self._rates: deque[float] = deque(maxlen=_COLUMNS)
        self._waits: deque[float] = deque(maxlen=_COLUMNS)
        self._counted = LinkState()
        self._longest_s = 0.0

    def take(self, seen: LinkState) -> None:
        """What it is doing; a column of the pictures is the mean rate and the longest wait."""
        self._now = seen
        self._longest_s = max(self._longest_s, seen.drain_s)
        if (span := seen.at_s - self._last.at_s) >= _SPAN_S / _COLUMNS:
            sent = 8 * (seen.departed_bytes - self._last.departed_bytes) / span
            self._rates.append(sent)
            self._waits.append(self._longest_s)
            self._counted, self._last, self._longest_s = self._last, seen, 0.0

    def _rate_bps(self) -> float:
        """What it sends, over the last column and this one."""
        before = self._counted
        span = self._now.at_s - before.at_s
        return 8 * (self._now.departed_bytes - before.departed_bytes) / span if span > 0 else 0.0

    def words(self) -> str:
        """What it does, in a few words."""
        now = self._now
        return (
            f"{self._name} {rate_text(round(self._rate_bps(), -3))}, "
            f"wait {1e3 * now.drain_s:.1f} ms, {now.queue_packets} packets, "
            f"{now.dropped} dropped, {now.marked} marked"
        )

    def lines(self) -> Iterator[str]:
        """Two lines: what it sends, and how long packets wait."""
        now = self._now
        share = [rate / now.rate_bps if now.rate_bps else 0.0 for rate in self._rates]
        sent = f"{self._rate_bps() / 1e6:7.2f} of {now.rate_bps / 1e6:.4g} Mbit/s"
        yield f"{self._name:<4} rate {_picture(share)} {sent}"
        waits = [_logarithmic(wait_s) for wait_s in self._waits]
        counts = f"{now.queue_packets} pkt, {now.dropped} dr, {now.marked} mk"
        yield f"     wait {_picture(waits)} {1e3 * now.drain_s:6.1f} ms {counts}"


def _logarithmic(wait_s: float) -> float:
    """Where a wait lies between the ends of its picture."""
    least, most = _WAIT_S
    return log(max(wait_s, least) / least) / log(most / least)


def _picture(shares: Sequence[float]) -> str:
    """Columns, the latest at the right."""
    top = len(_BLOCKS) - 1
    columns = "".join(_BLOCKS[max(0, min(top, round(share * top)))] for share in shares)
    return columns.rjust(_COLUMNS)


@contextmanager
def output_in(path: Path) -> Iterator[Console]:
    """Within it this process and its program write into a file; a console stays outside.

    Args:
        path: the file, which is made.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        for number in (1, 2):
            os.dup2(file, number)
        with os.fdopen(os.dup(kept[1]), "w", encoding="utf-8", errors="replace") as stream:
            yield Console(file=stream)
    finally:
        os.close(file)
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
