"""Programs, and tests, behind the links of ``aqmlab shell``: their options, and their runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, NamedTuple

from rich.console import Console

from aqmlab._util.console import say, say_lines, tell
from aqmlab._util.files import check_output_folder
from aqmlab._util.places import RUNS_ROOT
from aqmlab.cli.build import Opt
from aqmlab.cli.options import Seed, one_seed
from aqmlab.engine import privileges
from aqmlab.engine.workspace import is_being_made
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario.quantities import parsed_time, time_text
from aqmlab.scenario.scenario import Scenario
from aqmlab.shell.link import FileLink, Link, Span
from aqmlab.shell.notes import notes, refusals, trust, ways_out
from aqmlab.shell.program import (
    LONGEST_S,
    LONGEST_WARM_UP_S,
    Net,
    Program,
    ProgramOutcome,
    Tcp,
    Tick,
    check_control,
    run_program,
)
from aqmlab.shell.tables import ending, series_table, summary_lines
from aqmlab.shell.tests import BuiltIn, LinkTest
from aqmlab.shell.users import users_of
from aqmlab.shell.view import View, output_in

__all__ = ["EndOptions", "RunOptions", "Subject", "made"]

_MOST_REPEATS = 1000
_TEST_S = {BuiltIn.RPM: 15.0, BuiltIn.RRUL: 30.0}
"""What a test takes unless the time is stated."""
_SHORTEST_TEST_S = 3.0
_WARM_UP_S = 5.0
"""Head start of users beside a program; records/shell.md shows what it fills."""


@dataclass(frozen=True, kw_only=True)
class EndOptions:
    """How connections behave, and what a program reaches.

    Options:
        ecn (--ecn/--no-ecn): Use ECN on connections, or not; default: the setting of this kernel.
        control (NAME): Congestion control of the program, for uploads, such as cubic, bbr or reno;
            default: the setting of this kernel.
        far_control (NAME): Congestion control of the far end, for downloads; default: the setting
            of this kernel.
        net (NET): Addresses that the program can reach. none: no address. local: the built-in
            services. host: these services, private networks, and servers on this machine (at
            host.aqmlab, not at 127.0.0.1). all: these services and public addresses. host,all: the
            addresses of both.
    """

    ecn: bool | None = None
    control: str | None = None
    far_control: str | None = None
    net: str = "local"

    def nets(self) -> frozenset[Net]:
        """What the program reaches."""
        words = [word.strip() for word in self.net.split(",")]
        names = [net.value for net in Net]
        wrong = [word for word in words if word not in names]
        if wrong or (len(words) > 1 and Net.NONE.value in words):
            raise AqmlabError(
                f'--net: found "{self.net[:40]}"; expected none, local, host, all, or host,all '
                "(all except none have the built-in services)"
            )
        return frozenset(map(Net, words))

    def tcp(self) -> Tcp:
        """How the kernel's TCP is set."""
        own = check_control("--control", self.control)
        return Tcp(self.ecn, own, check_control("--far-control", self.far_control))


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How often and how long a program runs, beside what, and what is kept of it.

    Options:
        duration (--for TIME): End the program after this time, such as '30 s' or '5 min'.
        beside (USERS): Add simulated users to the same link. KIND:NUMBER adds users of a kind from
            `aqmlab list traffic`, such as http2-web:10. upload:2 adds two endless uploads. '{ kind
            = ... }' adds a class of traffic, as in a scenario. A scenario file adds all its users.
        warm_up (TIME): Time from the start of the users to the start of the program. Results leave
            this time out. Default: 5 s with --beside, otherwise 0 s.
        record (TABLE,...): Write further tables into the run directory. packets has a row for each
            packet at a queue, with its flow, queueing delay and outcome.
        pcap (--pcap): Write every packet at the queue to capture.pcapng, with a comment: its
            queueing delay, or why the queue dropped or marked it.
        view (--view): Draw rates and queueing delays while the program runs. The program's output
            goes to output.txt in the run directory. Without a terminal, print a line every 10 s.
        directory (--out DIR): Run directory, or folder of several run directories; default:
            runs/shell-PROGRAM-TIME.
    """

    duration: str | None = None
    repeat: Annotated[
        int,
        Opt(
            "N",
            "Number of runs with each queue. Each run has the next seed.",
            least=1,
            most=_MOST_REPEATS,
        ),
    ] = 1
    beside: list[str] | None = None
    warm_up: str | None = None
    seed: Seed = None
    record: list[str] | None = None
    pcap: bool = False
    view: bool = False
    directory: Path | None = None

    def longest_s(self) -> float:
        """How long the program may take, in seconds."""
        if self.duration is None:
            return LONGEST_S
        seconds = parsed_time(self.duration, "--for", "s")
        if not 0.01 <= seconds <= LONGEST_S:
            raise AqmlabError(f'--for: found "{self.duration[:40]}"; expected 10 ms to 24 h')
        return seconds

    def warm_up_s(self) -> float:
        """How long users are alone before the program begins, in seconds."""
        if self.warm_up is None:
            return _WARM_UP_S if self.beside else 0.0
        seconds = parsed_time(self.warm_up, "--warm-up", "s")
        if not 0.0 <= seconds <= LONGEST_WARM_UP_S:
            raise AqmlabError(f'--warm-up: found "{self.warm_up[:40]}"; expected 0 s to 1 h')
        return seconds

    def target(self, name: str) -> Path:
        """Where the runs of a program go: a folder that nobody has made, or is making."""
        target = self.directory or _default_path(name)
        if os.path.lexists(target):
            raise AqmlabError(f"--out: {target} is there already; choose another place")
        if is_being_made(target):
            raise AqmlabError(f"--out: another aqmlab is writing {target}; choose another place")
        if self.directory is not None:
            check_output_folder(self.directory)
        return target

    def recording(self, scenario: Scenario, *, has_wifi: bool) -> Scenario:
        """A scenario that records what is asked for besides its own tables."""
        names = [name.strip() for text in self.record or () for name in text.split(",")]
        wanted = dict.fromkeys([*scenario.data["measure"]["record"], *names])
        try:
            found = scenario.with_overrides({"measure.record": list(wanted)})
        except ScenarioError as error:
            raise AqmlabError(re.sub(r"^measure\.record(\.\d+)?", "--record", str(error))) from None
        if self.pcap and has_wifi:
            raise AqmlabError(
                "--pcap: found it beside Wi-Fi, whose queues the capture would not have; leave "
                "it out"
            )
        return found.with_overrides({"measure.capture": "bottleneck"}) if self.pcap else found


@dataclass(frozen=True)
class Subject:
    """What is behind the link: a program, or a built-in test."""

    name: str
    path: str
    words: Sequence[str]
    longest_s: float
    """What it may take, in seconds."""
    is_own_shell: bool = False
    """Whether it is the user's shell, since no program was named."""
    test: LinkTest | None = None

    @classmethod
    def program(cls, program: Sequence[str] | None, longest_s: float) -> Subject:
        """A program with its arguments; none is the user's shell."""
        words = list(program or [os.environ.get("SHELL") or "/bin/sh"])
        path = shutil.which(words[0])
        if path is None:
            raise AqmlabError(f"program: found {words[0]}, which is no program of your PATH")
        path = os.fspath(Path(path).absolute())
        return cls(Path(path).name, path, words, longest_s, program is None)

    @classmethod
    def built_in(cls, kind: BuiltIn, runs: RunOptions) -> Subject:
        """A built-in test."""
        longest_s = runs.longest_s()
        seconds = _TEST_S[kind] if runs.duration is None else longest_s
        if seconds < _SHORTEST_TEST_S:
            raise AqmlabError(f'--for: found "{runs.duration}"; tests take 3 s or more')
        test = LinkTest(kind, seconds)
        words = ["aqmlab", "shell", "--test", kind.value, "--for", time_text(seconds)]
        return cls(kind.value, sys.executable, words, test.longest_s, test=test)

    def hello(self, link: Link | FileLink, runs: int) -> Iterator[str]:
        """What there is to say before it runs."""
        if self.test is not None:
            yield f"{self.name}: {runs} of about {self.test.seconds:.0f} s"
        elif self.is_own_shell:
            yield f"{link}; exit ends it"


class _Planned(NamedTuple):
    """A run of a program."""

    name: str
    """That of its queue."""
    link: Link | FileLink
    scenario: Scenario
    place: Path


def made(
    subject: Subject,
    links: Mapping[str, Link] | Mapping[str, FileLink],
    ends: EndOptions,
    options: RunOptions,
) -> int:
    """Runs a program behind each link, as often as was asked for; its exit status."""
    nets, tcp = ends.nets(), ends.tcp()
    target = options.target(subject.name)
    runs = list(_planned(subject, links, target, options))
    privileges.require_for_program()
    say_lines(subject.hello(runs[0].link, len(runs)))
    say_lines(notes({planned.name: planned.scenario for planned in runs}))

    def run(planned: _Planned) -> ProgramOutcome:
        watched = _watch(planned.link, view=options.view)
        scenario, place, link = planned.scenario, planned.place, planned.link
        if subject.test is None:
            own = Program(subject.path, subject.words, subject.words)
            return run_program(scenario, place, own, link, nets, tcp, watched)
        results = subject.test.results
        with subject.test.program() as (words, file):
            own = Program(subject.path, words, subject.words)
            return run_program(
                scenario, place, own, link, nets, tcp, watched, lambda it: results(file, it)
            )

    if len(runs) > 1:
        return _series(runs, run, target, subject)
    outcome = run(runs[0])
    say_lines(summary_lines(outcome, runs[0].link, subject.name, subject.words))
    return outcome.status or 0


def _planned(
    subject: Subject,
    links: Mapping[str, Link] | Mapping[str, FileLink],
    target: Path,
    options: RunOptions,
) -> Iterator[_Planned]:
    """The runs: each queue in turn, then all of them with the next seed."""
    first_seed = one_seed(options.seed) or 1
    span = Span(subject.longest_s, options.warm_up_s())
    title = shlex.join(subject.words)[:60]
    for number in range(options.repeat):
        for name, link in links.items():
            users = users_of(options.beside or [], link.rtt_s)
            scenario = options.recording(
                link.scenario(title, first_seed + number, span, users),
                has_wifi=link.wifi is not None,
            )
            place = _place(target, list(links), name, number if options.repeat > 1 else None)
            yield _Planned(name, link, scenario, place)


def _series(
    runs: Sequence[_Planned],
    run: Callable[[_Planned], ProgramOutcome],
    target: Path,
    subject: Subject,
) -> int:
    """Runs a program several times; the first exit status that is not 0. A signal ends it."""
    series: dict[str, list[ProgramOutcome]] = {}
    status = 0
    for count, planned in enumerate(runs, 1):
        outcome = run(planned)
        series.setdefault(planned.name, []).append(outcome)
        status = status or outcome.status or 0
        line = f"{count} of {len(runs)}: {planned.name}: {ending(outcome)}; {trust(outcome.run)}"
        say_lines([line, *refusals(outcome.run, subject.words)])
        if outcome.was_signalled:
            say("a signal ended the series")
            break
    tell(series_table(series))
    by_queue = [[outcome.run for outcome in found] for found in series.values()]
    say_lines(ways_out([run for own in by_queue if all(it.invalid for it in own) for run in own]))
    more = f"aqmlab compare {shlex.quote(os.fspath(target))} says more"
    say_lines([f"the runs are in {target}; {more}"])
    return status


def _place(target: Path, names: Sequence[str], name: str, number: int | None) -> Path:
    """The run directory of a queue, and of a repetition if there are several."""
    if len(names) == 1 and number is None:
        return target
    short = [re.sub(r"[^A-Za-z0-9.]+", "-", it).strip("-")[:40] for it in names]
    place = names.index(name)
    folder = short[place]
    if short.count(folder) > 1:
        folder += f"-q{place + 1}"
    return target / (folder if number is None else f"{folder}-{number + 1}")


def _watch(link: Link | FileLink, *, view: bool) -> Callable[[Path], AbstractContextManager[Tick]]:
    """Who watches a link: the view, if it is wanted."""

    @contextmanager
    def watched(folder: Path) -> Iterator[Tick]:
        if not view:
            yield lambda _passed_s, _links: None
            return
        with ExitStack() as stack:
            console = Console(stderr=True)
            if console.is_terminal:
                console = stack.enter_context(output_in(folder / "output.txt"))
            yield stack.enter_context(View(str(link), console)).update

    return watched


def _default_path(name: str) -> Path:
    """A run directory of its own for each run."""
    now = datetime.now().astimezone()
    first = RUNS_ROOT / f"shell-{name}-{now:%Y%m%d-%H%M%S}"
    path, number = first, 2
    while os.path.lexists(path):
        path, number = first.with_name(f"{first.name}-{number}"), number + 1
    return path
