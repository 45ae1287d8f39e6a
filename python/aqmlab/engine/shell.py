"""A program behind a queue: its link as a scenario, its run, and what becomes of signals."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path

from aqmlab import _native
from aqmlab.engine.finished import write_run
from aqmlab.engine.workspace import workspace
from aqmlab.errors import AqmlabError, RunError, ShellError
from aqmlab.results.run import Run
from aqmlab.scenario.quantities import parsed_time, rate_text, time_text
from aqmlab.scenario.scenario import Scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["LONGEST_S", "Link", "Net", "Outcome", "run_program"]

LONGEST_S = 24 * 3600.0
"""A program is measured no longer than this."""
_SMALLEST_BUFFER = 2 * 1500
"""Bytes of two full packets."""
_SAMPLE_S = 0.01
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


@dataclass(frozen=True)
class Link:
    """The link that a program is behind.

    Rates are in bits per second of IP packets, times in seconds. The round trip is that of an empty
    queue. Queues are kinds or presets, as ``NAME``, ``NAME:BUFFER`` or a TOML table.
    """

    down_bps: float
    up_bps: float
    rtt_s: float = 0.02
    jitter_s: float = 0.0
    loss: float = 0.0
    queue_down: str = "droptail"
    queue_up: str = "droptail"
    buffer: str | None = None

    def scenario(self, title: str, seed: int, duration_s: float) -> Scenario:
        """The link as a scenario, for so long; its one user stands for the program."""
        bottleneck: dict[str, object] = {
            "delay": time_text(self.rtt_s / 2),
            "framing": "none",
            "loss": float(self.loss) or None,
        }
        for direction, option, queue, rate_bps in (
            ("forward", "--queue-down", self.queue_down, self.down_bps),
            ("reverse", "--queue-up", self.queue_up, self.up_bps),
        ):
            bottleneck[direction] = {
                "rate": rate_text(rate_bps),
                "discipline": self._discipline(option, queue, rate_bps),
            }
        rtt = {"kind": "constant", "rtt": time_text(self.rtt_s)}
        measure = {
            "warm_up": "0 s",
            "duration": time_text(duration_s),
            "queue_sample": time_text(_SAMPLE_S),
        }
        content = {
            "title": title,
            "seed": seed,
            "measure": measure,
            "topology": {"kind": "dumbbell", "bottleneck": bottleneck},
            "traffic": [
                {"name": "program", "kind": "bulk", "flows": 1, "tcp": "linux", "rtt": rtt}
            ],
        }
        return Scenario.from_dict(content)

    def _discipline(self, option: str, text: str, rate_bps: float) -> object:
        """A discipline as a scenario has it."""
        if text.lstrip().startswith("{"):
            try:
                return tomllib.loads(f"discipline = {text}")["discipline"]
            except tomllib.TOMLDecodeError as error:
                raise AqmlabError(f"{option}: found {text[:60]}: {error}") from None
        name, _, size = (part.strip() for part in text.partition(":"))
        catalog = json.loads(_native.catalog())
        discipline: dict[str, object] = {"kind": name}
        if name in catalog["presets"]:
            values = catalog["presets"][name]["parameters"]
            discipline = {value["name"]: value["value"] for value in values}
        fields = catalog["disciplines"].get(discipline["kind"], {}).get("parameters", [])
        [limit] = [field for field in fields if field["name"] == "limit"] or [None]
        if size:
            discipline["limit"] = self._size(option, size, rate_bps)
        elif limit is not None and self.buffer:
            discipline["limit"] = self._size("--buffer", self.buffer, rate_bps)
        elif limit is not None and limit["required"] and "limit" not in discipline:
            discipline["limit"] = self._size(option, "1 bdp", rate_bps)
        return discipline

    def _size(self, option: str, text: str, rate_bps: float) -> str:
        """A buffer as a scenario has it: times, and bandwidth-delay products, become bytes.

        Bytes wait as long whatever the sizes of the packets.
        """
        match = re.fullmatch(r"([0-9]*\.?[0-9]+) *(bdp|us|ms|s)", text, re.IGNORECASE)
        if match is None:
            if re.fullmatch(r"[0-9]*\.?[0-9]+ *(packets|bytes|[kM]i?B)", text):
                return text
            raise AqmlabError(
                f'{option}: found the buffer "{text[:40]}"; expected one such as "100 packets", '
                '"64 kB", "250 ms" or "1 bdp"'
            )
        unit = self.rtt_s if match[2].lower() == "bdp" else parsed_time(f"1 {match[2].lower()}")
        return f"{max(_SMALLEST_BUFFER, round(float(match[1]) * unit * rate_bps / 8))} bytes"


@dataclass(frozen=True)
class Outcome:
    """What became of a program."""

    run: Run
    """What its packets met."""
    status: int | None
    """Its exit status as shells have it; none if the time was over first."""


def run_program(
    scenario: Scenario,
    target: Path,
    program: tuple[str, Sequence[str]],
    link: Link,
    nets: Collection[Net],
    tick: Callable[[float], None],
) -> Outcome:
    """Runs a program behind a link and writes a run directory.

    Args:
        scenario: the link, and the longest time.
        target: the run directory.
        program: its file, and its name and arguments.
        link: what the scenario was made of.
        nets: what the program reaches.
        tick: called now and then with the seconds that have passed.
    """
    path, arguments = program
    environment = _environment(target)
    with workspace(target) as folder, _Signals().handled() as signals:
        started, wall, cpu = datetime.now(timezone.utc), time.perf_counter(), time.process_time()

        def tell(passed_s: float) -> int:
            tick(passed_s)
            return signals.next()

        try:
            summary, measured_s, status = _native.run_shell(
                scenario.effective,
                os.fspath(folder),
                (os.fsencode(path), [os.fsencode(word) for word in arguments], environment),
                (link.jitter_s, Net.NONE not in nets, Net.HOST in nets, Net.ALL in nets),
                tell,
            )
        except RunError as error:
            raise ShellError(str(error)) from None
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
        )
    return Outcome(run, status)


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
