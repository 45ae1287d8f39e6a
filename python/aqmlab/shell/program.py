"""A program behind a link: its run, what it reaches, and what becomes of signals."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from aqmlab import _native
from aqmlab.engine.execute import placed
from aqmlab.engine.finished import write_run
from aqmlab.engine.workspace import workspace
from aqmlab.errors import AqmlabError, RunError, ShellError
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario
from aqmlab.shell.link import FileLink, Link

__all__ = [
    "LONGEST_S",
    "LONGEST_WARM_UP_S",
    "LinkState",
    "Net",
    "Program",
    "ProgramOutcome",
    "Tcp",
    "Tick",
    "check_control",
    "run_program",
]

LONGEST_S = 24 * 3600.0
"""A program is measured no longer than this."""
LONGEST_WARM_UP_S = 3600.0
"""Users beside a program have no longer head start than this."""
_KILL = -1
"""What ends a program at once; see :func:`aqmlab._native.run_shell`."""
_FAR = "100.64.0.1"
_NAMES = "host.aqmlab,test.aqmlab,100.64.0.1,100.64.0.3"
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that go to the program first."""


class Net(str, Enum):
    """What a program reaches; the built-in services unless it is nothing."""

    NONE = "none"
    """Nothing."""
    LOCAL = "local"
    """Only the built-in services."""
    HOST = "host"
    """The host's loopback as ``host.aqmlab``, and private networks (RFC 1918)."""
    ALL = "all"
    """Public addresses, and the names that the host's name server knows."""


_Shown = tuple[float, int, int, int, int, float, float]
"""What the engine shows of a direction: the fields of :class:`LinkState`."""


class LinkState(NamedTuple):
    """What a direction of a link is doing at some moment, and did since the start."""

    at_s: float = 0.0
    """The moment."""
    departed_bytes: int = 0
    """IP bytes that left the queue."""
    dropped: int = 0
    """Packets that were dropped."""
    marked: int = 0
    """Packets that were marked."""
    queue_packets: int = 0
    """Packets that wait."""
    drain_s: float = 0.0
    """How long it takes to send all that waits."""
    rate_bps: float = 0.0
    """Bits per second on the wire."""


@dataclass(frozen=True)
class Tcp:
    """How the kernel's TCP is set; none is as the kernel has it."""

    ecn: bool | None = None
    """Whether connections ask for ECN (RFC 3168)."""
    control: str | None = None
    """The program's congestion control, as the kernel calls it."""
    far_control: str | None = None
    """That of the far end."""


def check_control(option: str, name: str | None) -> str | None:
    """A congestion control that this kernel has.

    Raises:
        AqmlabError: it has no such one.
    """
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    names = path.read_text(encoding="ascii").split() if path.is_file() else []
    if name is not None and name not in names:
        raise AqmlabError(
            f'{option}: found "{name[:40]}"; this kernel has {", ".join(names)} '
            "(more after sudo modprobe tcp_NAME)"
        )
    return name


Tick = Callable[[float, tuple[LinkState, LinkState]], object]
"""Called now and then with the seconds that have passed, and what both directions are doing."""


class Program(NamedTuple):
    """A program and its arguments."""

    path: str
    """Its file."""
    arguments: Sequence[str]
    """Its name, and what follows it."""
    named: Sequence[str]
    """What the run directory calls it: runs of a group have the same."""


@dataclass(frozen=True)
class ProgramOutcome:
    """What became of a program."""

    run: Run
    """What its packets met."""
    status: int | None
    """Its exit status as shells have it; none if the time was over first."""
    was_signalled: bool = False
    """Whether a signal came for it."""

    @property
    def took_s(self) -> float:
        """The program's own time, from its start to its end."""
        return float(self.run.summary["live"]["program"]["time_s"])


def run_program(
    scenario: Scenario,
    target: Path,
    program: Program,
    link: Link | FileLink,
    nets: Collection[Net],
    tcp: Tcp,
    watched: Callable[[Path], AbstractContextManager[Tick]],
    results: Callable[[Path], Mapping[str, object]] | None = None,
) -> ProgramOutcome:
    """Runs a program behind a link and writes a run directory.

    Args:
        scenario: the link, and the longest time.
        target: the run directory.
        program: what is run.
        link: what the scenario was made of.
        nets: what the program reaches.
        tcp: how the kernel's TCP is set.
        watched: who watches; gets the folder that becomes the run directory.
        results: what the program found out, for ``test`` of the summary; gets the same folder.
    """
    path, arguments, named = program
    environment = _environment(target)
    with (
        workspace(target) as folder,
        _Signals().handled() as signals,
        watched(folder) as tick,
    ):
        started, wall, cpu = datetime.now(timezone.utc), time.perf_counter(), time.process_time()

        def tell(passed_s: float, down: _Shown, up: _Shown) -> int:
            tick(passed_s, (LinkState(*down), LinkState(*up)))
            return signals.next()

        try:
            summary, measured_s, status = _native.run_shell(
                scenario.effective,
                os.fspath(folder),
                (os.fsencode(path), [os.fsencode(word) for word in arguments], environment),
                (link.jitter_s, Net.NONE not in nets, Net.HOST in nets, Net.ALL in nets),
                (tcp.ecn, tcp.control, tcp.far_control),
                tell,
            )
        except RunError as error:
            raise ShellError(str(placed(error, target))) from None
        if results is not None:
            content = {**json.loads(summary), "test": results(folder)}
            summary = f"{json.dumps(content, indent=2, ensure_ascii=False)}\n"
        duration = f"{round(measured_s * 1e9)} ns"
        measured = scenario.with_overrides({"measure.duration": duration})
        run = write_run(
            folder,
            measured,
            summary,
            target=target,
            key=f"{measured.key}-live",
            load=None,
            started=started,
            wall_s=time.perf_counter() - wall,
            cpu_s=time.process_time() - cpu,
            program=named,
            queue=link.asked,
        )
    return ProgramOutcome(run, status, signals.seen > 0)


def _environment(target: Path) -> list[bytes]:
    """The program's environment: how it finds the far end, past the proxies of this machine."""
    names = {**os.environ, "AQMLAB_BASE": _FAR, "AQMLAB_RUN": os.fspath(target.absolute())}
    for name in ("no_proxy", "NO_PROXY"):
        before = names.get(name, "")
        names[name] = f"{before},{_NAMES}" if before else _NAMES
    return [os.fsencode(f"{name}={value}") for name, value in names.items()]


@dataclass
class _Signals:
    """Signals that came for this process and go to the program; the second kills it."""

    waiting: list[int] = field(default_factory=list)
    seen: int = 0

    @contextmanager
    def handled(self) -> Iterator[_Signals]:
        """Within it they are kept for the program."""
        before = {number: signal.signal(number, self._keep) for number in _PASSED_ON}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _keep(self, number: int, _frame: object) -> None:
        self.waiting.append(number)

    def next(self) -> int:
        """The next of them; 0 if there is none."""
        if not self.waiting:
            return 0
        number = self.waiting.pop(0)
        self.seen += 1
        return number if self.seen == 1 else _KILL
