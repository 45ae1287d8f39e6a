"""``aqmlab shell``: any program behind any queue."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from aqmlab._util.console import say, show
from aqmlab._util.files import check_output_folder
from aqmlab._util.places import RUNS_ROOT
from aqmlab._util.table import Cell, TableModel
from aqmlab.cli.options import Seed, one_seed
from aqmlab.cli.shell_view import View, output_in
from aqmlab.engine import privileges
from aqmlab.engine.doctor import State, findings
from aqmlab.engine.shell import (
    LONGEST_S,
    FileLink,
    Link,
    Net,
    Outcome,
    Tcp,
    Tick,
    check_control,
    run_program,
    trace_rate_bps,
)
from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run
from aqmlab.scenario.quantities import parsed_rates, parsed_rtt, parsed_time, rate_text

__all__ = ["CONTEXT", "command"]

CONTEXT = {"allow_interspersed_args": False}
"""What follows the program's name belongs to the program."""
_RATE = "20/2"
_CANNOT_RUN = 125
"""Exit status where no program can be run."""


def command(
    program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM",
            help="What to run, with its arguments, behind --; default: your shell.",
            show_default=False,
        ),
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The bottleneck of this scenario, without its users; instead of rates, traces, "
            "queues and losses.",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="DOWN/UP", help="Download and upload in Mbit/s; default: 20/2."),
    ] = None,
    down: Annotated[
        str | None,
        typer.Option(
            metavar="RATE|FILE",
            help="The download alone, or a trace: a line with the millisecond of each opportunity "
            "to send 1500 bytes, as mahimahi has them.",
        ),
    ] = None,
    up: Annotated[
        str | None, typer.Option(metavar="RATE|FILE", help="The upload alone, or a trace.")
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Round trip of the empty link, in ms; default: 20 ms."),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE",
            help="Queue of both directions: a name of `aqmlab list disciplines` or presets, "
            "NAME:BUFFER, or a TOML table; default: droptail.",
        ),
    ] = None,
    queue_down: Annotated[
        str | None, typer.Option(metavar="QUEUE", help="Queue of the download alone.")
    ] = None,
    queue_up: Annotated[
        str | None, typer.Option(metavar="QUEUE", help="Queue of the upload alone.")
    ] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Size of the queues: '100 packets', '64 kB', '250 ms' or '2 bdp' (rate times "
            "round trip); default: 1 bdp where a queue has none of its own.",
        ),
    ] = None,
    loss: Annotated[
        float, typer.Option(metavar="SHARE", help="Random loss each way: 0.01 is 1 %.")
    ] = 0.0,
    jitter: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Delay of up to TIME more for each packet, in order, each way."
        ),
    ] = "0 ms",
    ecn: Annotated[
        bool | None,
        typer.Option(
            "--ecn/--no-ecn",
            help="Whether connections ask for ECN; default: as this kernel has it.",
            show_default=False,
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The program's congestion control: cubic, bbr, reno."),
    ] = None,
    far_control: Annotated[
        str | None, typer.Option(metavar="NAME", help="That of the far end, which sends downloads.")
    ] = None,
    net: Annotated[
        str,
        typer.Option(
            metavar="NET",
            help="What the program reaches: none; local: the built-in services; host: also this "
            "machine's loopback as host.aqmlab and private networks; all: also public addresses. "
            "host,all is both.",
        ),
    ] = "local",
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="End the program after TIME: '30 s', '5 min'."),
    ] = None,
    seed: Seed = None,
    pcap: Annotated[
        bool,
        typer.Option(
            "--pcap",
            help="Write capture.pcapng into the run directory: every packet at the queue, with a "
            "comment on how long it waited, or why it was dropped or marked.",
        ),
    ] = False,
    view: Annotated[
        bool,
        typer.Option(
            "--view",
            help="Draw rates and waits while the program runs; its output goes to output.txt in "
            "the run directory. Without a terminal: a line every 10 s.",
        ),
    ] = False,
    doctor: Annotated[
        bool,
        typer.Option("--doctor", help="Say what this machine allows, with cures, and run nothing."),
    ] = False,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="The run directory; default: runs/shell-PROGRAM-TIME."
        ),
    ] = None,
) -> None:
    """Run any program behind any queue: curl, a browser, a game, a test suite.

    The program runs unchanged, without root, in a network of its own behind an emulated link. A
    summary follows its end; `aqmlab show`, `compare` and `plot` read the run directory.

    At the far end, host.aqmlab, there are a file server, an echo (TCP and UDP port 7) and ping:

      aqmlab shell --queue fq-codel -- curl -O http://host.aqmlab:8000/5MB

      aqmlab shell --net all -- firefox

      aqmlab shell --buffer '250 ms' -- curl -T FILE http://host.aqmlab:8000

    Exit status: that of the program; 0 if --for ended it; 125 if it could not be run; 2 for wrong
    options. Ctrl-C and other signals go to the program, the second of them kills it.
    """
    if doctor:
        _examine()
        return
    words = list(program or [os.environ.get("SHELL") or "/bin/sh"])
    path = shutil.which(words[0])
    if path is None:
        raise AqmlabError(f"program: found {words[0]}, which is no program of your PATH")
    nets = _nets(net)
    tcp = Tcp(
        ecn,
        check_control("--control", control),
        check_control("--far-control", far_control),
    )
    rtt_s = None if rtt is None else parsed_rtt(rtt)
    if scenario is not None:
        given = {
            "--rate": rate,
            "--down": down,
            "--up": up,
            "--queue": queue,
            "--queue-down": queue_down,
            "--queue-up": queue_up,
            "--buffer": buffer,
            "--loss": loss or None,
        }
        for name, value in given.items():
            if value is not None:
                raise AqmlabError(f"{name}: found one beside --scenario, whose link says it")
        link: Link | FileLink = FileLink.load(scenario, rtt_s, _jitter(jitter))
    else:
        rates = parsed_rates(rate or _RATE)
        down_bps, trace_down = _way("--down", down, rates[0])
        up_bps, trace_up = _way("--up", up, rates[1])
        link = Link(
            down_bps=down_bps,
            up_bps=up_bps,
            rtt_s=Link.rtt_s if rtt_s is None else rtt_s,
            jitter_s=_jitter(jitter),
            loss=loss,
            queue_down=queue_down or queue or Link.queue_down,
            queue_up=queue_up or queue or Link.queue_up,
            buffer=buffer,
            trace_down=trace_down,
            trace_up=trace_up,
        )
    title = shlex.join(words)[:60]
    content = link.scenario(title, one_seed(seed) or 1, _duration(duration))
    if pcap:
        content = content.with_overrides({"measure.capture": "bottleneck"})
    target = directory or _default_path(Path(path).name)
    if os.path.lexists(target):
        raise AqmlabError(f"--out: {target} is there already; choose another place")
    if directory is not None:
        check_output_folder(directory)
    privileges.require_for_program()
    if program is None:
        say(f"{link}; exit ends it")
    file = os.fspath(Path(path).absolute())

    @contextmanager
    def watched(folder: Path) -> Iterator[Tick]:
        """Draws what the link is doing, if that is wanted."""
        if not view:
            yield lambda _passed_s, _links: None
            return
        with ExitStack() as stack:
            console = Console(stderr=True)
            if console.is_terminal:
                console = stack.enter_context(output_in(folder / "output.txt"))
            yield stack.enter_context(View(str(link), console)).update

    outcome = run_program(content, target, (file, words), link, nets, tcp, watched)
    for line in _summary(outcome, link, Path(path).name):
        say(line)
    raise typer.Exit(outcome.status or 0)


def _examine() -> None:
    """Shows what this machine allows; the exit status says whether programs can be run."""
    table = TableModel("programs behind a queue on this machine")
    table.add_key("part")
    table.add_key("state")
    table.add_text("found")
    found = list(findings())
    for finding in found:
        tone = {State.FINE: "better", State.POOR: "clear", State.MISSING: "worse"}[finding.state]
        text = f"{finding.found}. Cure: {finding.cure}" if finding.cure else finding.found
        table.add_row(finding.name, Cell(finding.state.value, tone), text)
    show(table)
    if any(finding.state is State.MISSING for finding in found):
        raise typer.Exit(_CANNOT_RUN)


def _nets(text: str) -> frozenset[Net]:
    """What the program reaches."""
    words = [word.strip() for word in text.split(",")]
    names = [net.value for net in Net]
    wrong = [word for word in words if word not in names]
    if wrong or (len(words) > 1 and Net.NONE.value in words):
        raise AqmlabError(
            f'--net: found "{text[:40]}"; expected none, local, host, all, or host,all'
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


def _way(option: str, text: str | None, rate_bps: float) -> tuple[float, Path | None]:
    """The rate of a direction in bits per second, and its trace if it has one."""
    if text is None:
        return rate_bps, None
    if Path(text).is_file():
        return trace_rate_bps(Path(text)), Path(text)
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


def _default_path(name: str) -> Path:
    """A run directory of its own for each run."""
    now = datetime.now().astimezone()
    first = RUNS_ROOT / f"shell-{name}-{now:%Y%m%d-%H%M%S}"
    path, number = first, 2
    while os.path.lexists(path):
        path, number = first.with_name(f"{first.name}-{number}"), number + 1
    return path


def _summary(outcome: Outcome, link: Link | FileLink, name: str) -> list[str]:
    """Some lines: what was run, what each direction saw, how far to trust it, and where it is."""
    run = outcome.run
    directions = [run.summary["links"]["bottleneck"][way] for way in ("forward", "reverse")]
    end = "was ended" if outcome.status is None else f"ended with status {outcome.status}"
    rows = [("", "down", "up")]
    rows += [
        (label, shown(directions[0]), shown(directions[1]))
        for label, shown in (
            ("rate", lambda it: f"{rate_text(it['throughput_bps'])} ({it['utilization']:.0%})"),
            ("queueing", _queueing),
            ("lost", _lost),
            ("marked", lambda it: _count(it["marked_packets"], it["mark_rate"])),
        )
    ]
    return [
        f"{name} {end} after {run.summary['measured_s']:.1f} s: {link}",
        *(f"  {label:<8} {down:<32} {up}".rstrip() for label, down, up in rows),
        *_outside(run),
        f"  {_health(run)}",
        f"  run directory: {run.path}",
    ]


def _outside(run: Run) -> list[str]:
    """What the gateway met beyond the link, if the program could reach anything there."""
    met = run.summary["live"].get("outside")
    if met is None:
        return []
    text = f"{met['connections']} connections"
    if met["connections"]:
        times = (1e3 * met["connect_p50_s"], 1e3 * met["connect_max_s"])
        text += " made in {:.1f} ms (p50), {:.1f} ms at most".format(*times)
    for key, what in (
        ("refused", "refused"),
        ("unreachable", "not reached"),
        ("datagram_flows", "flows of datagrams"),
    ):
        if met[key]:
            text += f", {met[key]} {what}"
    return [f"  outside  {text}"]


def _queueing(direction: dict[str, Any]) -> str:
    """How long packets were in the queue."""
    shown = [
        f"{word} {1e3 * direction[key]:.1f}"
        for word, key in (
            ("p50", "sojourn_p50_s"),
            ("p95", "sojourn_p95_s"),
            ("max", "sojourn_max_s"),
        )
        if direction[key] is not None
    ]
    return f"{', '.join(shown)} ms" if shown else "no packet"


def _lost(direction: dict[str, Any]) -> str:
    """Packets that the queue dropped, and that the link lost."""
    text = _count(direction["dropped_packets"], direction["loss_rate"])
    if lost := direction["wire_lost_packets"]:
        text += f", {lost} on the wire"
    return text


def _count(packets: int, share: float | None) -> str:
    """Packets, and their share."""
    return f"{packets} packets ({share or 0.0:.2%})"


def _health(run: Run) -> str:
    """Whether the run is valid, and why it is not."""
    if not run.invalid:
        late = max(it["late_p99_s"] for it in run.summary["live"]["router"].values())
        return f"valid: 99 of 100 packets left within {1e3 * late:.2f} ms of their time"
    return f"INVALID: {'; '.join(run.invalid)}"
