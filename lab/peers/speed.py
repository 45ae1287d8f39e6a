"""What a packet costs here and in ns-2 and ns-3: `make bench-peers`; see docs/other-tools.md.

The scenarios `bulk-50` and `web-100mbit` run through aqmlab and, where they are installed, through
programs of the same meaning for ns-2 and ns-3. The figure is user CPU time per packet that arrives
at the bottleneck, both directions counted, in the steady state: every program runs twice, for a
short and for a long simulated time, and the difference in time is divided by the difference in
packets. So neither start-up nor the filling of pools and queues is charged to anyone. Rounds go
over all programs in turn, so that a busy minute of the machine meets all of them; the table shows
medians.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab._util.fields import toml_table

from lab import bench

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Where the table is kept.
TABLE = ROOT / "out" / "bench-peers.md"
# A peer whose run takes longer is left out.
TIME_LIMIT_S = 120
# Every packet has the same size everywhere: ns-2 knows no framing.
NO_FRAMING = "topology.bottleneck.framing=none"
NS3_LIBRARIES = ("applications", "internet", "point-to-point", "network", "core")
# Rows of the table of response sizes that ns-2 reads: neighbours differ by less than 1 %.
SIZE_ROWS = 1000
UNITS = (
    {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60}
    | {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
    | {"bytes": 1, "kB": 1e3, "MB": 1e6, "packets": 1, "/s": 1}
)


class UnavailableError(Exception):
    """A peer that cannot run here; the message is the reason."""


@dataclass(frozen=True)
class Count:
    """What one run of a program used and what passed its bottleneck, both directions together."""

    user_s: float
    arrived: int
    dropped: int
    carried_bytes: float


@dataclass(frozen=True)
class Program:
    """One line of the table: a simulator with a scenario."""

    name: str
    scenario: str
    short_s: float
    long_s: float
    run: Callable[[float], Count]
    target: float | None = None


@dataclass(frozen=True)
class Marginal:
    """The difference between a long and a short run of a program."""

    user_s: float
    simulated_s: float
    arrived: int
    dropped: int
    # Mean size in the short run: ns-2 counts bytes in 32 bits.
    mean_bytes: float

    @property
    def ns_per_packet(self) -> float:
        """User CPU time per packet in nanoseconds."""
        return self.user_s / self.arrived * 1e9


def quantity(text: str) -> float:
    """A quantity of a scenario in its base unit: seconds, bits per second, bytes, packets, 1/s."""
    number, _, unit = text.partition(" ")
    return float(number) * UNITS[unit]


def common_options(scenario: dict[str, Any]) -> dict[str, Any]:
    """The options that all programs of the peers share, from a scenario and its TCP profile."""
    bottleneck = scenario["topology"]["bottleneck"]
    [traffic] = scenario["traffic"]
    profile = toml_table(ROOT / "crates" / "tcp" / "profiles" / f"{traffic['tcp']}.toml", "profile")
    return {
        "seed": scenario["seed"],
        "rate": f"{quantity(bottleneck['rate']):.0f}",
        "queue": int(quantity(bottleneck["discipline"]["limit"])),
        "shortest": quantity(traffic["rtt"]["min"]),
        "longest": quantity(traffic["rtt"]["max"]),
        "segment": int(quantity(profile["mss"])),
        "window": int(quantity(profile["receive_buffer"])),
        "initial_window": profile["initial_window"],
    }


def bulk_options(scenario: dict[str, Any]) -> dict[str, Any]:
    """The options of a peer's program for bulk transfers."""
    [traffic] = scenario["traffic"]
    start_within = quantity(traffic.get("start_within", "1 s"))
    return common_options(scenario) | {"flows": traffic["flows"], "start_within": start_within}


def web_options(scenario: dict[str, Any], directory: Path) -> dict[str, Any]:
    """The options of ns-2's program for web traffic; writes its table of response sizes."""
    [traffic] = scenario["traffic"]
    sizes = directory / "sizes.cdf"
    sizes.write_text(bounded_pareto(traffic["response"]))
    return common_options(scenario) | {
        "connections": quantity(traffic["rate"]),
        "request": int(quantity(traffic["request"]["size"])),
        "sizes": sizes,
    }


def bounded_pareto(response: dict[str, Any]) -> str:
    """The distribution as ns-2 reads it: rows of value, an unused number, P(X <= value)."""
    if response["kind"] != "bounded-pareto":
        sys.exit(f"bench-peers: responses must be bounded-pareto here, not {response['kind']}")
    low, high = quantity(response["minimum"]), quantity(response["maximum"])
    shape = response["shape"]
    values = [low * (high / low) ** (row / SIZE_ROWS) for row in range(SIZE_ROWS + 1)]
    mass = 1 - (low / high) ** shape
    return "".join(f"{value:.3f} 1 {(1 - (low / value) ** shape) / mass:.9f}\n" for value in values)


def aqmlab(runner: Path, scenario: str) -> Callable[[float], Count]:
    """A run of aqmlab with everything recorded."""

    def run(seconds: float) -> Count:
        cost = bench.run(runner, scenario, NO_FRAMING, *bench.span(seconds))
        links = cost.summary["links"]["bottleneck"].values()
        return Count(
            cost.user_s,
            bench.packets(cost.summary),
            sum(link["dropped_packets"] for link in links),
            sum(link["throughput_bps"] for link in links) * seconds / 8,
        )

    return run


def peer(command: Sequence[str | Path]) -> Callable[[float], Count]:
    """A run of a peer's program: it prints a line "direction arrived dropped bytes" for each."""

    def run(seconds: float) -> Count:
        line = [str(word).replace("SECONDS", f"{seconds}") for word in command]
        with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
            # RLIMIT_CPU ends a run that takes too long.
            limited = ["prlimit", f"--cpu={TIME_LIMIT_S}", *line]
            process = subprocess.Popen(limited, stdout=printed, stderr=errors)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            printed.seek(0)
            errors.seek(0)
            if process.returncode in {-signal.SIGXCPU, -signal.SIGKILL}:
                raise UnavailableError(f"took more than {TIME_LIMIT_S} s of CPU time")
            if process.returncode != 0:
                last = (errors.read().strip().splitlines() or ["no message"])[-1]
                raise UnavailableError(f"ended with status {process.returncode} ({last})")
            counts = [row.split()[1:] for row in printed.read().splitlines()]
        arrived, dropped, carried = (sum(map(int, column)) for column in zip(*counts, strict=True))
        return Count(used.ru_utime, arrived, dropped, carried)

    return run


def ns2(script: str, options: dict[str, Any]) -> Callable[[float], Count]:
    """A run of a script of ours in ns-2."""
    if shutil.which("ns") is None:
        raise UnavailableError("ns is not on the PATH (Debian: apt-get install ns2)")
    words = [str(word) for pair in options.items() for word in pair]
    return peer(["ns", HERE / script, "seconds", "SECONDS", *words])


def ns3(source: str, options: dict[str, Any], directory: Path) -> Callable[[float], Count]:
    """A run of a program of ours for ns-3, compiled into `directory`."""
    for tool, package in (("g++", "g++"), ("prlimit", "util-linux")):
        if shutil.which(tool) is None:
            raise UnavailableError(f"{tool} is not on the PATH (Debian: apt-get install {package})")
    program = directory / Path(source).stem
    # The libraries by name: the list that Debian's pkg-config gives names files it lacks.
    libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
    command: list[str | Path] = [
        "g++",
        "-O2",
        "-std=c++17",
        HERE / source,
        "-o",
        program,
        *libraries,
    ]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    if compiled.returncode != 0:
        errors = [line for line in compiled.stderr.splitlines() if "error" in line]
        hint = "Debian: apt-get install ns3 libns3-dev"
        raise UnavailableError(
            f"{source} does not compile ({(errors or ['no message'])[0]}; {hint})"
        )
    options = options | {"rate": f"{options['rate']}bps"}
    return peer([program, "--seconds=SECONDS", *(f"--{k}={v}" for k, v in options.items())])


def programs(directory: Path, quick: bool, missing: list[str]) -> list[Program]:
    """All programs that can run here; says loudly, and notes, which cannot and why."""
    runner = bench.build()
    bulk, web = (
        toml_table(ROOT / "scenarios" / "bench" / f"{name}.toml", "scenario")
        for name in ("bulk-50", "web-100mbit")
    )
    warm_up = quantity(bulk["measure"]["warm_up"])
    # Long enough that a second of CPU time or more lies between the two runs.
    share = 0.5 if quick else 1
    found = []

    def add(
        name: str,
        scenario: str,
        seconds: float,
        make: Callable[[], Callable[[float], Count]],
        target: float | None = None,
    ) -> None:
        try:
            run = make()
        except UnavailableError as reason:
            note(missing, scenario, name, reason)
            return
        found.append(Program(name, scenario, warm_up, warm_up + seconds * share, run, target))

    add("aqmlab", "bulk-50", 1200, lambda: aqmlab(runner, "bulk-50"))
    add("ns-2 one-way TCP", "bulk-50", 300, lambda: ns2("bulk_ns2.tcl", bulk_options(bulk)), 15)
    add("ns-3", "bulk-50", 40, lambda: ns3("bulk_ns3.cc", bulk_options(bulk), directory), 400)
    add("aqmlab", "web-100mbit", 240, lambda: aqmlab(runner, "web-100mbit"))
    add(
        "ns-2 Full-TCP, PackMime",
        "web-100mbit",
        40,
        lambda: ns2("web_ns2.tcl", web_options(web, directory)),
        250,
    )
    return found


def marginal(program: Program, missing: list[str]) -> Marginal | None:
    """Runs a program for its short and for its long time; None if it fails, which is said."""
    try:
        short, long = program.run(program.short_s), program.run(program.long_s)
    except UnavailableError as reason:
        note(missing, program.scenario, program.name, reason)
        return None
    return Marginal(
        long.user_s - short.user_s,
        program.long_s - program.short_s,
        long.arrived - short.arrived,
        long.dropped - short.dropped,
        short.carried_bytes / (short.arrived - short.dropped),
    )


def note(missing: list[str], scenario: str, name: str, reason: Exception) -> None:
    """Says loudly, and notes, that a program cannot be measured here."""
    missing.append(f"{scenario}: {name}: NOT MEASURED: {reason}")
    print(missing[-1], file=sys.stderr)


def measure(found: list[Program], rounds: int, missing: list[str]) -> dict[Program, list[Marginal]]:
    """Runs all programs in turn; one that fails is left out from then on."""
    measured: dict[Program, list[Marginal]] = {program: [] for program in found}
    for _ in range(rounds):
        for program in list(measured):
            one = marginal(program, missing)
            if one is None:
                del measured[program]
            else:
                measured[program].append(one)
    return measured


COLUMNS = (
    "",
    "packets/s",
    "bytes",
    "loss",
    "ns per packet (span)",
    "simulated s per CPU s",
    "ratio",
    "target",
)


def table(measured: dict[Program, list[Marginal]]) -> list[tuple[str, ...]]:
    """A row for each program: medians, and ratios to aqmlab's median in the same scenario."""
    rows: list[tuple[str, ...]] = []
    own: dict[str, float] = {}
    for program, rounds in measured.items():
        costs = [one.ns_per_packet for one in rounds]
        median = statistics.median(costs)
        base = own.setdefault(program.scenario, median)
        last = rounds[-1]
        speed = statistics.median(one.simulated_s / one.user_s for one in rounds)
        rows.append(
            (
                f"{program.scenario}: {program.name}",
                f"{last.arrived / last.simulated_s:,.0f}",
                f"{last.mean_bytes:.0f}",
                f"{last.dropped / last.arrived:.2%}",
                f"{median:,.0f} ({min(costs):,.0f} to {max(costs):,.0f})",
                f"{speed:,.3g}",
                f"{median / base:.3g}",
                f"{program.target or ''}",
            )
        )
    return rows


def page(rows: list[tuple[str, ...]], rounds: int, missing: list[str]) -> str:
    """The table as Markdown, with what it lacks."""
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    lines = [
        "| " + " | ".join(map(str.ljust, row, widths)) + " |"
        for row in (COLUMNS, tuple("-" * width for width in widths), *rows)
    ]
    head = f"User CPU time per packet at the bottleneck, both directions; median of {rounds}."
    return "\n".join([head, "", *lines, *(f"\n{line}" for line in missing), ""])


def main() -> None:
    """Parses the command line, prepares, measures, prints and keeps the table."""
    parser = argparse.ArgumentParser(description="Measures what a packet costs here and in peers.")
    parser.add_argument("--quick", action="store_true", help="one short round instead of three")
    chosen = parser.parse_args()
    rounds = 1 if chosen.quick else 3
    missing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="aqmlab-peers-") as directory:
        found = programs(Path(directory), chosen.quick, missing)
        measured = measure(found, rounds, missing)
    found_there = page(table(measured), rounds, missing)
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text(found_there, encoding="utf-8")
    print(f"\n{found_there}\nkept in {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
