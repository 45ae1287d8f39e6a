"""``aqmlab shell``: any program behind any queue."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import click
from rich.console import Console

from aqmlab._util.console import say, say_lines, show, tell
from aqmlab._util.files import check_output_folder
from aqmlab._util.places import RUNS_ROOT
from aqmlab._util.table import Cell, TableModel
from aqmlab.cli.build import Opt
from aqmlab.cli.options import Link as LinkName
from aqmlab.cli.options import Seed, one_seed
from aqmlab.engine import privileges
from aqmlab.engine.workspace import is_being_made
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario import vary
from aqmlab.scenario.named_links import NamedLink, named_link
from aqmlab.scenario.quantities import parsed_rates, parsed_rtt, parsed_time, time_text
from aqmlab.scenario.scenario import Override, Scenario
from aqmlab.shell.attach import run_beside
from aqmlab.shell.doctor import State, findings
from aqmlab.shell.link import FileLink, Link, Span, trace_rate_bps
from aqmlab.shell.mahimahi import Mahimahi
from aqmlab.shell.mahimahi import read as read_mahimahi
from aqmlab.shell.notes import notes, refusals, trust, ways_out
from aqmlab.shell.program import (
    LONGEST_S,
    LONGEST_WARM_UP_S,
    Net,
    Outcome,
    Program,
    Tcp,
    Tick,
    check_control,
    run_program,
)
from aqmlab.shell.tables import ending, series_table, summary_lines
from aqmlab.shell.tests import BuiltIn, LinkTest
from aqmlab.shell.users import users_of
from aqmlab.shell.view import View, output_in
from aqmlab.shell.wifi import ShellWifi

__all__ = ["CONTEXT", "command"]

CONTEXT = {"allow_interspersed_args": False}
"""What follows the program's name belongs to the program."""
_RATE = "20/2"
_RATE_BEFORE_WIFI = "1000/1000"
_MOST_REPEATS = 1000
_OF_QUEUES = ("--queue-down", "--queue-up", "--buffer")
"""Options, besides --queue, that a scenario's link leaves open."""
_TEST_S = {BuiltIn.RPM: 15.0, BuiltIn.RRUL: 30.0}
"""What a test takes unless the time is stated."""
_SHORTEST_TEST_S = 3.0
_WARM_UP_S = 5.0
"""Head start of users beside a program; records/shell.md shows what it fills."""
_CANNOT_RUN = 125
"""Exit status where no program can be run."""


def command(
    program: list[str] | None = None,
    *,
    scenario: Path | None = None,
    link_name: LinkName = None,
    rate: str | None = None,
    down: str | None = None,
    up: str | None = None,
    rtt: str | None = None,
    queue: list[str] | None = None,
    queue_down: str | None = None,
    queue_up: str | None = None,
    buffer: str | None = None,
    loss: float = 0.0,
    jitter: str = "0 ms",
    ecn: bool | None = None,
    control: str | None = None,
    far_control: str | None = None,
    net: str = "local",
    duration: str | None = None,
    repeat: Annotated[
        int,
        Opt(
            "N",
            "Number of runs with each queue. Each has the next seed.",
            least=1,
            most=_MOST_REPEATS,
        ),
    ] = 1,
    test: BuiltIn | None = None,
    beside: list[str] | None = None,
    warm_up: str | None = None,
    wifi: bool = False,
    sets: Annotated[
        list[str] | None,
        Opt(
            "FIELD=VALUE",
            "Replace a field of topology.wifi, such as wifi.queue=fifo; may be repeated.",
            "--set",
        ),
    ] = None,
    seed: Seed = None,
    record: list[str] | None = None,
    pcap: bool = False,
    view: bool = False,
    mm: bool = False,
    attach: Path | None = None,
    doctor: bool = False,
    directory: Path | None = None,
) -> None:
    r"""Run any program with any queue: curl, a browser, a game.

    The program runs unchanged and without root. It is in a separate network, behind an emulated
    link. When the program ends, the command prints a summary. `aqmlab show`, `compare` and `plot`
    read the run directory.

    See bufferbloat and its cure in a minute, without a program:

      aqmlab shell --test rpm --queue 'droptail:250 ms,fq-codel'

    The far end, host.aqmlab, has a file server, an echo (TCP and UDP port 7) and ping:

      aqmlab shell --queue fq-codel -- curl -O http://host.aqmlab:8000/5MB

      aqmlab shell --net all -- firefox

    A download beside a backup, first with the queue of a home router, then with FQ-CoDel:

      aqmlab shell --rate 20/2 --rtt 30 --queue 'droptail:250 ms,fq-codel' \
        --beside upload -- curl -s -o /dev/null http://host.aqmlab:8000/250kB

    For browsers there is a web page, http://host.aqmlab:8000/page. It has 34 objects, 1 MB
    together.

    The exit status is the status of the program, or 0 if --for ended the program. It is 2 if an
    option or the program's name is wrong. It is 125 if this machine cannot run the program;
    --doctor says why.

    Ctrl-C and other signals go to the program. A second signal kills the program.

    Options:
        program (PROGRAM): What to run, with its arguments, after --; default: your shell.
        scenario (FILE): Use the bottleneck of this scenario, instead of options for rates, traces
            and losses. --queue replaces the queue of the scenario. --beside FILE adds its users.
        rate (DOWN/UP): Download and upload in Mbit/s, or one number for both; default: 20/2.
        down (RATE|FILE): Rate of the download, or a trace file of mahimahi. Each of its lines is a
            time in ms at which the link can send a packet of 1500 bytes.
        up (RATE|FILE): Rate of the upload, or a trace file.
        rtt (TIME): Round trip of the empty link, in ms; default: 20 ms.
        queue (QUEUE,...): Queue of both directions: a name of `aqmlab list disciplines` or presets,
            NAME:BUFFER, or a TOML table; default: droptail. With several queues the program runs
            once with each, and a table compares the runs.
        queue_down (QUEUE): Queue of the download alone.
        queue_up (QUEUE): Queue of the upload alone.
        buffer (SIZE): Size of the queues: '100 packets', '64 kB', '250 ms' or '2 bdp' (rate times
            round trip). Default: the queue's own size, else 1 bdp. Home routers often have 250 ms
            or more.
        loss (SHARE): Random loss each way: 0.01 is 1 %.
        jitter (TIME): A random delay of up to TIME for each packet of both directions; packets keep
            their order.
        ecn (--ecn/--no-ecn): Whether connections ask for ECN; default: this kernel's setting.
        control (NAME): The program's congestion control, for uploads: cubic, bbr, reno; default:
            this kernel's (net.ipv4.tcp_congestion_control). The summary states it.
        far_control (NAME): The far end's congestion control, for downloads; default: this kernel's.
        net (NET): Addresses that the program reaches. none: nothing. local: the built-in services.
            host: the services, private networks, and this machine's own servers as host.aqmlab, not
            as 127.0.0.1. all: the services and public addresses. host,all: all of these.
        duration (--for TIME): End the program after TIME: '30 s', '5 min'.
        test: Instead of a program: responsiveness under load (15 s, or --for TIME), or Flent's rrul
            (30 s).
        beside (USERS): Add simulated users to the same link. KIND:NUMBER: users of a kind (`aqmlab
            list traffic`), such as http2-web:10. bulk:2 is two downloads without end.
            upload:NUMBER: uploads without end. '{ kind = ... }': a class of traffic, as in a
            scenario. A scenario file: all its users.
        wifi (--wifi): Add Wi-Fi after the link. The program is a device near the access point.
            Users beside the program have three other devices. The Wi-Fi is 802.11n with 20 MHz;
            --set changes it. The default of --rate is then 1000/1000, so that the air is the
            bottleneck.
        warm_up (TIME): Start the users TIME before the program, so that the program meets a full
            queue; default: 5 s with --beside, else 0 s. This time is not measured.
        record (TABLE,...): Further tables of the run directory. packets: a row for each packet at a
            queue, with its flow, wait and outcome.
        pcap (--pcap): Write capture.pcapng into the run directory: every packet at the queue. A
            comment says how long a packet waited, or why it was dropped or marked.
        view (--view): Draw rates and waits while the program runs. The program's output goes to
            output.txt in the run directory. Without a terminal, print a line every 10 s.
        mm (--mm): Read options of mahimahi's mm-delay and mm-link, then the program: --mm up.trace
            down.trace --downlink-queue=codel -- PROGRAM.
        attach (DIR): Run the program in the network and over the link of another program that is
            running. DIR is the run directory of the other program.
        doctor (--doctor): Print what this machine allows and how to allow more, and run nothing.
        directory (--out DIR): The run directory, or the folder of several run directories; default:
            runs/shell-PROGRAM-TIME.
    """
    if doctor:
        _examine()
        return
    if attach is not None:
        words = list(program or [os.environ.get("SHELL") or "/bin/sh"])
        raise click.exceptions.Exit(run_beside(attach, [_found(words[0]), *words[1:]]))
    given: dict[str, Any] = {
        "--rate": rate,
        "--down": down,
        "--up": up,
        "--queue": queue,
        "--queue-down": queue_down,
        "--queue-up": queue_up,
        "--buffer": buffer,
        "--loss": loss or None,
    }
    rtt_s = None if rtt is None else parsed_rtt(rtt)
    if mm:
        line = _mahimahi(program or [], {**given, "--link": link_name}, scenario)
        program, given, rtt_s = line.program, {**given, **line.options()}, rtt_s or line.rtt_s
    nets = _nets(net)
    subject = _subject(program, test, nets, duration)
    tcp = Tcp(
        ecn,
        check_control("--control", control),
        check_control("--far-control", far_control),
    )
    chosen = _Wifi(wifi, tuple(vary.assignment(text, "--set") for text in sets or []))
    links = _links(link_name, scenario, given, queue, rtt_s, _jitter(jitter), chosen)
    target = _target(directory, subject.name)
    first_seed = one_seed(seed) or 1
    warm_up_s = _warm_up(warm_up, has_users=bool(beside))
    runs = []
    for number in range(repeat):
        for name, link in links.items():
            title = shlex.join(subject.words)[:60]
            users = users_of(beside or [], link.rtt_s)
            span = Span(subject.longest_s, warm_up_s)
            content = _recording(
                record or [], link.scenario(title, first_seed + number, span, users)
            )
            if pcap and link.wifi is not None:
                raise AqmlabError(
                    "--pcap: found it beside Wi-Fi, whose queues the capture would not have; leave "
                    "it out"
                )
            if pcap:
                content = content.with_overrides({"measure.capture": "bottleneck"})
            place = _place(target, list(links), name, number if repeat > 1 else None)
            runs.append(_Planned(name, link, content, place))
    privileges.require_for_program()
    if test is not None:
        say(f"{test.value}: {len(runs)} of about {subject.seconds:.0f} s")
    elif program is None:
        say_lines([f"{runs[0].link}; exit ends it"])
    say_lines(notes({planned.name: planned.scenario for planned in runs}))

    def run(planned: _Planned) -> Outcome:
        watched = _watch(planned.link, view=view)
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

    if len(runs) == 1:
        outcome = run(runs[0])
        say_lines(summary_lines(outcome, runs[0].link, subject.name, subject.words))
        raise click.exceptions.Exit(outcome.status or 0)
    raise click.exceptions.Exit(_series(runs, run, target, subject))


def _recording(tables: Sequence[str], scenario: Scenario) -> Scenario:
    """A scenario that records some tables besides its own."""
    names = [name.strip() for text in tables for name in text.split(",")]
    wanted = dict.fromkeys([*scenario.data["measure"]["record"], *names])
    try:
        return scenario.with_overrides({"measure.record": list(wanted)})
    except ScenarioError as error:
        raise AqmlabError(re.sub(r"^measure\.record(\.\d+)?", "--record", str(error))) from None


def _mahimahi(words: Sequence[str], given: Mapping[str, object], scenario: Path | None) -> Mahimahi:
    """What mahimahi's words say, which nothing else may say."""
    for name, value in {**given, "--scenario": scenario}.items():
        if value is not None and name != "--loss":
            raise AqmlabError(f"{name}: found one beside --mm, whose words say it")
    return read_mahimahi(words)


class _Subject(NamedTuple):
    """What is behind the link: a program, or a built-in test."""

    name: str
    path: str
    words: list[str]
    longest_s: float
    """What it may take, in seconds."""
    seconds: float
    """What a test takes."""
    test: LinkTest | None


def _subject(
    program: Sequence[str] | None,
    test: BuiltIn | None,
    nets: Collection[Net],
    duration: str | None,
) -> _Subject:
    """The program, or the test, that was asked for."""
    longest_s = _duration(duration)
    if test is not None:
        if program:
            raise AqmlabError("program: found one beside --test, which brings its own")
        if Net.NONE in nets:
            raise AqmlabError("--net: found none beside --test, which needs the services")
        seconds = _TEST_S[test] if duration is None else longest_s
        if seconds < _SHORTEST_TEST_S:
            raise AqmlabError(f'--for: found "{duration}"; tests take 3 s or more')
        own = LinkTest(test, seconds)
        words = ["aqmlab", "shell", "--test", test.value, "--for", time_text(seconds)]
        return _Subject(test.value, sys.executable, words, own.longest_s, seconds, own)
    words = list(program or [os.environ.get("SHELL") or "/bin/sh"])
    path = _found(words[0])
    return _Subject(Path(path).name, path, words, longest_s, 0.0, None)


def _found(name: str) -> str:
    """The file of a program."""
    path = shutil.which(name)
    if path is None:
        raise AqmlabError(f"program: found {name}, which is no program of your PATH")
    return os.fspath(Path(path).absolute())


class _Planned(NamedTuple):
    """A run of a program."""

    name: str
    """That of its queue."""
    link: Link | FileLink
    scenario: Scenario
    place: Path


def _series(
    runs: Sequence[_Planned],
    run: Callable[[_Planned], Outcome],
    target: Path,
    subject: _Subject,
) -> int:
    """Runs a program several times; the first exit status that is not 0. A signal ends it."""
    series: dict[str, list[Outcome]] = {}
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


def _links(
    name: str | None,
    scenario: Path | None,
    given: Mapping[str, Any],
    queues: Sequence[str] | None,
    rtt_s: float | None,
    jitter_s: float,
    wifi: _Wifi,
) -> Mapping[str, Link | FileLink]:
    """The links that were asked for, by the names of their queues."""
    if name is not None and scenario is not None:
        raise AqmlabError("--link: found one beside --scenario; give either")
    if name is not None:
        named = named_link(name)
        rtt_s = named.rtt_s if rtt_s is None else rtt_s
        return _file_links("--link", named, given, queues, rtt_s, jitter_s, wifi)
    if scenario is not None:
        return _file_links("--scenario", scenario, given, queues, rtt_s, jitter_s, wifi)
    return _made_links(given, queues, rtt_s, jitter_s, wifi)


def _file_links(
    option: str,
    source: Path | NamedLink,
    given: Mapping[str, Any],
    queues: Sequence[str] | None,
    rtt_s: float | None,
    jitter_s: float,
    wifi: _Wifi,
) -> dict[str, FileLink]:
    """A link with its queue, or with each of some others, by their names.

    Args:
        option: what it comes from.
        source: a scenario, or a link that has a name.
        given: other options.
        queues: queues that replace its own.
        rtt_s: its round trip, if not that of its delays.
        jitter_s: the random delay of each packet at most.
        wifi: what is asked of Wi-Fi behind it.
    """
    queue_down, queue_up, buffer = (given[name] for name in _OF_QUEUES)
    for name, value in given.items():
        if value is not None and name not in ("--queue", *_OF_QUEUES):
            raise AqmlabError(f"{name}: found one beside {option}, whose link says it")
    if buffer is not None and not (queues or queue_down or queue_up):
        raise AqmlabError(
            f"--buffer: found one beside {option}, whose queue says it; expected --queue, too"
        )
    names = _queue_names(queues, queue_down, queue_up) if queues else [None]
    if isinstance(source, NamedLink):
        content, file = source.scenario(), Path(source.name)
    else:
        content, file = Scenario.load(source), source
    return {
        name or file.stem: FileLink.of(
            content,
            file,
            rtt_s,
            jitter_s,
            queue_down or name,
            queue_up or name,
            buffer,
            wifi.behind(content, file),
        )
        for name in names
    }


def _made_links(
    given: Mapping[str, Any],
    queues: Sequence[str] | None,
    rtt_s: float | None,
    jitter_s: float,
    wifi: _Wifi,
) -> dict[str, Link]:
    """The links of some options, by the names of their queues."""
    rates = parsed_rates(given["--rate"] or (_RATE_BEFORE_WIFI if wifi.is_asked else _RATE))
    down_bps, trace_down = _way("--down", given["--down"], rates[0])
    up_bps, trace_up = _way("--up", given["--up"], rates[1])
    queue_down, queue_up = given["--queue-down"], given["--queue-up"]
    names = _queue_names(queues, queue_down, queue_up)
    return {
        name: Link(
            down_bps=down_bps,
            up_bps=up_bps,
            rtt_s=Link.rtt_s if rtt_s is None else rtt_s,
            jitter_s=jitter_s,
            loss=given["--loss"] or 0.0,
            queue_down=queue_down or name,
            queue_up=queue_up or name,
            buffer=given["--buffer"],
            trace_down=trace_down,
            trace_up=trace_up,
            wifi=wifi.behind(),
        )
        for name in names
    }


class _Wifi(NamedTuple):
    """What the command line asks of Wi-Fi."""

    is_asked: bool
    """Whether it wants some."""
    sets: tuple[Override, ...]
    """Fields that it sets."""

    def behind(
        self, scenario: Scenario | None = None, file: Path | None = None
    ) -> ShellWifi | None:
        """The Wi-Fi behind a link: that of a scenario, or one that was asked for."""
        topology = scenario.data["topology"] if scenario is not None else {}
        own = topology.get("wifi")
        if own is not None and self.is_asked:
            raise AqmlabError(f"--wifi: found it beside {file}, whose topology.wifi says it")
        if own is not None:
            return ShellWifi(own, str(file), topology["hosts"]["clients"], self.sets)
        if not self.is_asked:
            for path, _ in self.sets:
                raise AqmlabError(
                    f'--set: found "{path[:40]}" without Wi-Fi; expected --wifi, or a scenario '
                    "with topology.wifi"
                )
            return None
        return ShellWifi(sets=self.sets)


def _queue_names(
    texts: Sequence[str] | None, queue_down: str | None, queue_up: str | None
) -> list[str]:
    """The queues that were asked for, as far as the directions leave a choice."""
    names = _queues(texts)
    if len(names) > 1 and queue_down and queue_up:
        raise AqmlabError(
            "--queue: found several beside --queue-down and --queue-up; leave out one of these"
        )
    return names


def _queues(texts: Sequence[str] | None) -> list[str]:
    """The queues that were asked for, each once."""
    if not texts:
        return [Link.queue_down]
    try:
        found = [name for text in texts for name in vary.split(text)]
    except AqmlabError:
        raise AqmlabError(f'--queue: found "{texts[0][:40]}", where a name is missing') from None
    for name in found:
        if found.count(name) > 1:
            raise AqmlabError(f"--queue: found {name[:40]} twice; --repeat runs it again")
    return found


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


def _examine() -> None:
    """Shows what this machine allows; the exit status says whether programs can be run."""
    title = "programs behind a queue on this machine"
    table = TableModel(title, ["part", "state"], texts=["found"])
    found = list(findings())
    for finding in found:
        tone = {State.FINE: "better", State.POOR: "clear", State.MISSING: "worse"}[finding.state]
        text = f"{finding.found}. Cure: {finding.cure}" if finding.cure else finding.found
        table.add_row(finding.name, Cell(finding.state.value, tone), text)
    show(table)
    if any(finding.state is State.MISSING for finding in found):
        raise click.exceptions.Exit(_CANNOT_RUN)


def _nets(text: str) -> frozenset[Net]:
    """What the program reaches."""
    words = [word.strip() for word in text.split(",")]
    names = [net.value for net in Net]
    wrong = [word for word in words if word not in names]
    if wrong or (len(words) > 1 and Net.NONE.value in words):
        raise AqmlabError(
            f'--net: found "{text[:40]}"; expected none, local, host, all, or host,all '
            "(all except none have the built-in services)"
        )
    return frozenset(map(Net, words))


def _duration(text: str | None) -> float:
    """How long the program may take, in seconds."""
    if text is None:
        return LONGEST_S
    seconds = parsed_time(text, "--for", "s")
    if not 0.01 <= seconds <= LONGEST_S:
        raise AqmlabError(f'--for: found "{text[:40]}"; expected 10 ms to 24 h')
    return seconds


def _warm_up(text: str | None, *, has_users: bool) -> float:
    """How long users are alone before the program begins, in seconds."""
    if text is None:
        return _WARM_UP_S if has_users else 0.0
    seconds = parsed_time(text, "--warm-up", "s")
    if not 0.0 <= seconds <= LONGEST_WARM_UP_S:
        raise AqmlabError(f'--warm-up: found "{text[:40]}"; expected 0 s to 1 h')
    return seconds


_DIRECTIONS = {"--down": "forward", "--up": "reverse"}
"""Directions of a link by option."""


def _way(option: str, text: str | None, rate_bps: float) -> tuple[float, Path | None]:
    """The rate of a direction in bits per second, and its trace if it has one."""
    if text is None:
        return rate_bps, None
    if Path(text).is_file():
        return trace_rate_bps(Path(text), _DIRECTIONS[option]), Path(text)
    try:
        return parsed_rates(text)[0], None
    except AqmlabError:
        raise AqmlabError(
            f'{option}: found "{text[:40]}", which is no file; expected one, or a rate in Mbit/s'
        ) from None


def _jitter(text: str) -> float:
    """The jitter in seconds."""
    seconds = parsed_time(text, "--jitter", "ms")
    if seconds > 10.0:
        raise AqmlabError(f'--jitter: found "{text[:40]}"; expected at most 10 s')
    return seconds


def _target(directory: Path | None, name: str) -> Path:
    """Where the runs go: a folder that nobody has made, or is making."""
    target = directory or _default_path(name)
    if os.path.lexists(target):
        raise AqmlabError(f"--out: {target} is there already; choose another place")
    if is_being_made(target):
        raise AqmlabError(f"--out: another aqmlab is writing {target}; choose another place")
    if directory is not None:
        check_output_folder(directory)
    return target


def _default_path(name: str) -> Path:
    """A run directory of its own for each run."""
    now = datetime.now().astimezone()
    first = RUNS_ROOT / f"shell-{name}-{now:%Y%m%d-%H%M%S}"
    path, number = first, 2
    while os.path.lexists(path):
        path, number = first.with_name(f"{first.name}-{number}"), number + 1
    return path
