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
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Scenario

from lab import bench
from lab.peers import ns2, ns3
from lab.peers.simulators import plain

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Where the table is kept.
TABLE = ROOT / "out" / "bench-peers.md"
# A peer whose run takes longer is left out.
TIME_LIMIT_S = 600
# Every packet has the same size everywhere: ns-2 knows no framing.
NO_FRAMING = "topology.bottleneck.framing=none"
# Rows of the table of response sizes that ns-2 reads: neighbours differ by less than 1 %.
SIZE_ROWS = 1000


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


def common_options(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The options that all programs of the peers share, from an effective scenario."""
    link = scenario["topology"]["bottleneck"]["forward"]
    [traffic] = scenario["traffic"]
    stack = traffic["tcp"]
    return {
        "seed": scenario["seed"],
        "rate": f"{plain(link['rate']):.0f}",
        "queue": int(plain(link["discipline"]["limit"])),
        "shortest": plain(traffic["rtt"]["min"]),
        "longest": plain(traffic["rtt"]["max"]),
        "segment": int(plain(stack["mss"])),
        "window": int(plain(stack["receive_buffer"])),
        "initial_window": stack["initial_window"],
    }


def bulk_options(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a peer's program for bulk transfers."""
    [traffic] = scenario["traffic"]
    start_within = plain(traffic["start_within"])
    return common_options(scenario) | {"flows": traffic["flows"], "start_within": start_within}


def web_options(scenario: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The options of ns-2's program for web traffic; writes its table of response sizes."""
    [traffic] = scenario["traffic"]
    sizes = directory / "sizes.cdf"
    sizes.write_text(bounded_pareto(traffic["response"]))
    return common_options(scenario) | {
        "connections": plain(traffic["rate"]),
        "request": int(plain(traffic["request"]["size"])),
        "sizes": sizes,
    }


def bounded_pareto(response: Mapping[str, Any]) -> str:
    """The distribution as ns-2 reads it: rows of value, an unused number, P(X <= value)."""
    if response["kind"] != "bounded-pareto":
        sys.exit(f"bench-peers: responses must be bounded-pareto here, not {response['kind']}")
    low, high = plain(response["minimum"]), plain(response["maximum"])
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


def peer(answer: Callable[[float], str]) -> Callable[[float], Count]:
    """A run of a peer's program: it prints a line "direction arrived dropped bytes" for each."""

    def run(seconds: float) -> Count:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        counts = [row.split()[1:] for row in answer(seconds).splitlines()]
        user_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        arrived, dropped, carried = (sum(map(int, column)) for column in zip(*counts, strict=True))
        return Count(user_s, arrived, dropped, carried)

    return run


def in_ns2(script: str, options: Mapping[str, Any]) -> Callable[[float], Count]:
    """A run of a script of ours in ns-2."""
    ns2.prepare()
    return peer(
        lambda seconds: ns2.answer(
            HERE / script, {"seconds": seconds, **options}, script, TIME_LIMIT_S
        )
    )


def in_ns3(source: str, options: Mapping[str, Any], directory: Path) -> Callable[[float], Count]:
    """A run of a program of ours for ns-3, compiled into `directory`."""
    program = ns3.compiled(HERE / source, directory)
    words = {**options, "rate": f"{options['rate']}bps"}
    return peer(
        lambda seconds: ns3.answer(program, {"seconds": seconds, **words}, source, TIME_LIMIT_S)
    )


def programs(directory: Path, quick: bool, missing: list[str]) -> list[Program]:
    """All programs that can run here; says loudly, and notes, which cannot and why."""
    runner = bench.build()
    bulk, web = (
        Scenario.load(ROOT / "scenarios" / "bench" / f"{name}.toml").data
        for name in ("bulk-50", "web-100mbit")
    )
    warm_up = plain(bulk["measure"]["warm_up"])
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
        except AqmlabError as reason:
            note(missing, scenario, name, reason)
            return
        found.append(Program(name, scenario, warm_up, warm_up + seconds * share, run, target))

    add("aqmlab", "bulk-50", 1200, lambda: aqmlab(runner, "bulk-50"))
    add("ns-2 one-way TCP", "bulk-50", 300, lambda: in_ns2("bulk_ns2.tcl", bulk_options(bulk)), 15)
    add("ns-3", "bulk-50", 40, lambda: in_ns3("bulk_ns3.cc", bulk_options(bulk), directory), 400)
    add("aqmlab", "web-100mbit", 240, lambda: aqmlab(runner, "web-100mbit"))
    add(
        "ns-2 Full-TCP, PackMime",
        "web-100mbit",
        40,
        lambda: in_ns2("web_ns2.tcl", web_options(web, directory)),
        250,
    )
    return found


def marginal(program: Program, missing: list[str]) -> Marginal | None:
    """Runs a program for its short and for its long time; None if it fails, which is said."""
    try:
        short, long = program.run(program.short_s), program.run(program.long_s)
    except AqmlabError as reason:
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
