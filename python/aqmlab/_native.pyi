"""The engine. Scenarios are passed as their effective TOML text, results as JSON text."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, final

def version() -> str:
    """Version of the package."""

def engine() -> str:
    """Name of what the engine does: the same name, the same results."""

def parse(text: str, base_dir: str, overrides: Sequence[tuple[str, str]]) -> str:
    """Effective scenario of a scenario's text."""

def content(text: str) -> str | None:
    """What a text of TOML says, as JSON, before anything is checked; None: it is no TOML."""

def tree_notes(discipline: str, rate: str, packet: int) -> list[tuple[str, str]]:
    """What a tree of rates, given as JSON, may be and hardly anybody wants: fields and messages.

    `rate` is the link's, `packet` are the IP bytes of the largest packet.
    """

def to_json(effective: str) -> str:
    """A scenario as JSON."""

def schema() -> str:
    """JSON Schema of scenario files."""

def catalog(only: str | None = None) -> str:
    """JSON: what may stand in a scenario, with descriptions; with ``only``, that section alone."""

def result_schema() -> str:
    """JSON: what results hold, with meanings, labels and units; keys that were renamed."""

def results_version() -> int:
    """The version of the keys of ``summary.json`` and of the columns of the tables."""

def uncongested(effective: str, class_index: int, population: float) -> str:
    """The scenario in which one class alone is measured on an uncongested network."""

def play_script(text: str) -> tuple[int | None, str | None, str] | None:
    """Plays a packet script: nothing, or the line that does not hold, what it says, what happens.

    Without what it says: the script cannot be read, and why.
    """

def population(effective: str, class_index: int) -> float | None:
    """Users (or connections per second) of a class."""

def population_key(effective: str, class_index: int) -> str:
    """The field that holds a class's population: users, rate, sessions or flows."""

def loaded_links(effective: str, class_index: int) -> list[tuple[str, str, float]]:
    """Where a class's load is measured: link, direction and nominal rate in bits per second.

    For each direction in which its responses go, the slowest link of its path.
    """

def load_share(effective: str, class_index: int) -> float:
    """A class's part of the load, among the uncalibrated classes that cross that link."""

def set_population(effective: str, class_index: int, population: float) -> str:
    """The scenario with that many users (or connections per second) of a class."""

def play_source(effective: str, class_index: int, seconds: float) -> dict[str, bytes]:
    """What a class does in its first seconds on an ideal network.

    Columns of little-endian doubles. Connections: ``opened_s``, ``closed_s``, ``rtt_s``,
    ``exchanges``; exchanges in the order of their connections: ``request_bytes``,
    ``response_bytes``, ``pause_s``; datagrams: ``datagram_s``, ``datagram_bytes``; and
    ``refused_s``.
    """

def offered_bps(effective: str, class_index: int) -> float:
    """About the IP bits per second that a class asks for in the measured span, without packets.

    The mean of the directions in which its responses go. Transfers take a window per round trip.
    """

def parse_bytes(text: str) -> int:
    """The bytes of text such as "4 GiB"."""

def memory_free() -> int | None:
    """Most of the bytes that this process can still get, as far as the system says."""

def run(
    effective: str,
    out_dir: str | None,
    progress: Callable[[float], object] | None = None,
    memory: int | None = None,
) -> str:
    """Runs a scenario; writes its records into `out_dir`; returns the text of ``summary.json``.

    `progress` is called with the share of the simulated time that is done. An exception that it
    raises ends the run and is passed on. The run may take `memory` bytes more than the process has,
    by default most of what is free.
    """

def run_live(
    effective: str,
    out_dir: str | None,
    progress: Callable[[float], object] | None = None,
    memory: int | None = None,
) -> str:
    """Runs a scenario on the live bed, in real time; as :func:`run` otherwise.

    A build without the live bed has neither this function nor :func:`run_shell`.
    """

def seal(folder: Path, key: str, files: Sequence[tuple[str, bytes]]) -> list[tuple[str, int, str]]:
    """Writes some files into a folder, then ``manifest.json``.

    Returns:
        Name, length and SHA-256 hash of every other file.

    Raises:
        OSError: one cannot be written or read.
    """

def sync_folder(folder: Path) -> None:
    """Waits until the files of a folder, and their names, are on the disk."""

def run_shell(
    effective: str,
    out_dir: str,
    program: tuple[bytes, Sequence[bytes], Sequence[bytes]],
    settings: tuple[float, bool, bool, bool],
    tcp: tuple[bool | None, str | None, str | None],
    tell: Callable[..., int],
) -> tuple[str, float, int | None]:
    """Runs a program behind the bottleneck of a scenario; writes its records into `out_dir`.

    Args:
        effective: the scenario, whose users stay away; its duration is the longest time.
        out_dir: where the tables go.
        program: its file, its name and arguments, its environment as ``NAME=value``.
        settings: jitter in seconds; whether there are built-in services; whether the program
            reaches the host's loopback and private networks; whether it reaches public addresses.
        tcp: whether connections ask for ECN; the congestion controls of the program and of the far
            end. None is as the kernel has it.
        tell: called every 50 ms with the seconds that have passed, and what the directions to the
            program and from it are doing: the moment, bytes that left, packets dropped and marked,
            packets that wait, seconds until all of them are sent, bits per second. It returns 0,
            the number of a signal for the program, or -1 to kill it.

    Returns:
        The summary as JSON, how long it was measured in seconds, and the exit status as shells
        have it; none if the time was over first.
    """

def live_missing() -> str | None:
    """What this machine lacks for a live run, as one sentence."""

def live_privileged() -> bool:
    """Whether this process may make network namespaces and devices in them."""

def vectors_from_capture(
    capture: str,
    out: str,
    scratch_dir: str,
    settings: tuple[str, str, str, str],
    outside: str | None = None,
    progress: Callable[[int], object] | None = None,
) -> str:
    """Writes the TCP connections of a capture as connection vectors; returns a report as JSON.

    With `outside`, connections that were opened from beyond the link go to that file.

    `settings` are the idle time, the time-out, what happens to partial connections (keep or drop)
    and the format (original or alternate). `progress` is called with the number of bytes read.
    """

def capture_arrivals(
    capture: str,
    bin_s: float,
    by_direction: bool = False,
    progress: Callable[[int], object] | None = None,
) -> tuple[float, list[tuple[bytes, bytes]], str]:
    """Packets and bytes of each interface of a capture in bins of time, and the bins' width.

    Or of each direction: 0 towards home, 1 away from it, 2 not known.

    Columns of little-endian doubles. Bins are wider than asked for if there would be too many. Last
    what was put right in front of this, as JSON.
    """

def capture_segments(
    capture: str, progress: Callable[[int], object] | None = None
) -> tuple[tuple[bytes, bytes, bytes], int, str]:
    """TCP segments and UDP datagrams, the time of the first packet, and what was put right.

    The time is in nanoseconds since 1970, of a packet of any kind. What was put right is JSON.

    Seven little-endian words of 64 bits for each segment: nanoseconds since 1970, the connection,
    the sender (0: who opened it), sequence number, acknowledgement number, payload times 256 plus
    control bits, and the pair of addresses times 4 plus the way (0 unknown, 1 home, 2 away). Five
    words for each datagram: nanoseconds, the flow, the sender (0: who sent first), payload times
    2 and 1 if it may begin a QUIC connection, and pair and way. One word for each pair: the number
    of its address at home.
    """

def plugin_records() -> dict[str, Any]:
    """How the records of events lie in memory, the callbacks by kind, addresses of functions."""

def register_class(
    kind: str,
    name: str,
    purpose: str,
    sha256: str,
    fields: Sequence[tuple[str, str, int, int, float]],
    callbacks: Sequence[str],
    plugin: tuple[type, tuple[Callable[[dict[str, ModuleType]], dict[str, Any]], str] | None],
) -> tuple[str, str]:
    """Makes a Python class known as a plug-in: its kind and name.

    `plugin` is the class, what executes its module anew for a run, and its name there. The function
    gets what plug-ins of the run have imported from their folders, and adds to it.
    """

def plugin_callbacks(kind: str, name: str) -> list[str]:
    """The callbacks that a plug-in has; none if there is no such plug-in."""

def register_compiled(
    kind: str,
    name: str,
    purpose: str,
    sha256: str,
    fields: Sequence[tuple[str, str, int, int, float]],
    functions: Sequence[int],
) -> tuple[str, str]:
    """Makes compiled callbacks known as a plug-in, by their addresses in the engine's order."""

def check_plugin_name(name: str) -> None:
    """An error if a name is that of a built-in algorithm or of a preset."""

def plugins() -> str:
    """What the plug-ins that are loaded declare, as a JSON list."""

def plugin_value(form: int, text: str) -> float:
    """The number that a text stands for in a field of a form; an error if it stands for none."""

def load_shared_object(path: str, sha256: str, shown: str) -> list[tuple[str, str]]:
    """Makes the plug-ins of a shared object known: kinds and names.

    `shown` is the file that the user has given, of which `path` is a copy.
    """

@final
class Event:
    """What happens at a queue; see ``aqmlab.h`` for its fields."""

    def draw(self) -> float:
        """The next random number, uniform on [0, 1)."""

@final
class Ack:
    """What happens to a sender; see ``aqmlab.h`` for its fields."""

@final
class Stepper:
    """A run under way. Times are seconds since its start."""

    def __init__(self, effective: str, out_dir: str | None, memory: int | None = None) -> None: ...
    def now(self) -> float:
        """Up to when it has been simulated."""

    def end_time(self) -> float:
        """The end of the measured span."""

    def run_until(self, seconds: float) -> None:
        """Simulates up to that time, and at most to the end of the measured span."""

    def set(self, key: str, value: str) -> None:
        """Gives a key of the scenario's ``changes`` another value from now on."""

    def changeable(self) -> list[str]:
        """The keys that can change."""

    def scenario(self) -> str:
        """Effective scenario with all that was changed."""

    def observe(self) -> tuple[dict[str, dict[str, Any]], dict[str, list[Any]]]:
        """Links by name and direction, and the open connections, as columns."""

    def link(
        self, name: str
    ) -> (
        tuple[tuple[int, int, float, int], tuple[int, int, int, int, int], dict[str, float]] | None
    ):
        """A direction of a link, such as ``bottleneck.forward``; nothing if there is none.

        Packets and bytes that wait, delay in seconds and bits per second; arrived and departed
        packets, departed bytes, dropped and marked packets since the start; the discipline's
        variables.
        """

    def next_tick(self, name: str) -> float | None:
        """When the discipline of a link's direction is woken next, in seconds."""

    def flows(self, class_name: str) -> list[tuple[int, int, int, int, float | None]]:
        """The open connections of a class.

        Serial number, bytes received and segments sent again since it began, window in bytes,
        smoothed round trip in seconds.
        """

    def finish(self) -> str:
        """Simulates what is left: the summary as JSON."""

class Bench:
    """An end point of TCP alone: it is sent segments and shows what it sends.

    Segments are in the words of packet scripts. ``settings`` are keys of a stack in TOML.
    """

    def __init__(self, settings: str) -> None: ...
    @property
    def now(self) -> int:
        """Nanoseconds."""

    @property
    def wake_at(self) -> int | None:
        """When its next timer fires, in nanoseconds; none: no timer runs."""

    def set(self, settings: str) -> None:
        """Replaces keys of its stack."""

    def advance(self, nanoseconds: int) -> None:
        """Lets its timers fire up to a time."""

    def perform(self, word: str, length: int = 0) -> None:
        """``connect``, ``listen``, ``write``, ``write-last``, ``close`` or ``abort``."""

    def inject(self, segment: str) -> None:
        """A segment arrives."""

    def take_sent(self) -> list[tuple[int, str]]:
        """Time and segment of all that was sent since the last look."""

    def show(self, word: str) -> float | None:
        """What it shows of itself; none: nothing by that name."""

class Worked:
    """The queue of a scenario's bottleneck, towards the clients, event by event.

    Times are seconds and do not go back. Ticks that are due come by themselves.
    """

    def __init__(self, effective: str) -> None: ...
    def arrive(
        self, seconds: float, flow: int, size: int, ect: bool, draws: list[float]
    ) -> tuple[str, int]:
        """A packet arrives: ``enqueue``, ``mark`` or ``drop_REASON``, and draws that are left."""

    def depart(self, seconds: float) -> bool:
        """The packet that has waited longest leaves; whether there was one."""

    def idle(self, seconds: float) -> None:
        """Nothing waits, and the wire is quiet."""

    def tick(self, seconds: float) -> None:
        """Time passes."""

    def backlog(self) -> tuple[int, int]:
        """Packets and bytes that wait."""

    def variables(self) -> dict[str, float]:
        """The discipline's variables."""

def step_all(
    steppers: list[Stepper], changes: list[list[tuple[str, str]]], seconds: float, threads: int
) -> None:
    """Makes each run's changes, then simulates so many seconds of it.

    On up to so many threads, which do not hold the interpreter's lock. Each run is stepped once,
    and the result does not depend on the threads.
    """

def student_t_cdf(freedom: float, value: float) -> float:
    """Probability that Student's t of so many degrees of freedom is at most the value."""

def student_t_quantile(freedom: float, share: float) -> float:
    """The value that Student's t does not exceed in this share of cases."""
