"""What the engine costs: `make bench`, or `python -m lab.bench --help`.

Every scenario runs several times as a process of its own, with all records written to a temporary
directory. Time is the user CPU time of the process and covers everything it does: reading the
scenario, the warm-up, the measured span, the Parquet files, the summary. Packets are those that
arrived at the bottleneck in both directions during the whole run; they are counted once, by a
run of the same length without a warm-up (the same seed gives the same packets).

Times depend on the machine and on its other work. A reference loop is timed beside, so that they
can be had in cycles, too. Instruction counts (valgrind's callgrind, on shortened runs) depend on
neither: they are what `lab/baseline.json` keeps and later runs compare with. Two lengths tell
what a packet of a long run costs from what every run costs once.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "lab" / "baseline.json"
# The reference loop, as a program: each step waits for the last one and takes four cycles, a
# multiplication three and an exclusive or one. It prints cycles per nanosecond, of the fastest of
# many tries: other work on the machine makes tries slower only.
REFERENCE = """
use std::hint::black_box;
use std::time::Instant;
fn main() {
    let factor = black_box(6_364_136_223_846_793_005_u64);
    let mut fastest = f64::INFINITY;
    for _ in 0..200 {
        let began = Instant::now();
        let mut value = black_box(1_u64);
        for _ in 0..500_000 {
            value = value.wrapping_mul(factor) ^ factor;
        }
        black_box(value);
        fastest = fastest.min(began.elapsed().as_secs_f64());
    }
    println!("{:.3}", 4.0 * 500_000.0 / (fastest * 1e9));
}
"""
TOLERANCE = 0.05
RED = (
    '{kind = "red", min_th = "40 packets", max_th = "120 packets", limit = "240 packets", '
    'mean_packet = "1000 bytes"}'
)
SACK = '{profile = "rfc", recovery = "sack", ecn = true}'
RED_ECN = f"topology.bottleneck.discipline={RED[:-1]}, ecn = true}}"
# Ten times web-1gbit, with longer ways: some 200,000 connections are open at once. No scenario of
# its own, so that tests which run every scenario need not run this one.
TEN_GBIT = (
    "topology.bottleneck.rate=10 Gbit/s",
    'topology.bottleneck.discipline={kind = "droptail", limit = "24000 packets"}',
    "traffic.web.rate=208500 /s",
    'traffic.web.rtt={kind = "uniform", min = "20 ms", max = "500 ms"}',
    "measure.warm_up=3 s",
    "measure.duration=5 s",
)
# Rows wait in memory until they are written, which takes up to 50 MB.
NO_ROWS = "measure.record=[]"
# Connections that are opened and do not end: nothing but what each of them takes.
OPEN_ONLY = (
    "topology.bottleneck.rate=10 Gbit/s",
    'topology.bottleneck.discipline={kind = "droptail", limit = "24000 packets"}',
    "traffic.web.rate=400000 /s",
    'traffic.web.rtt={kind = "constant", rtt = "2 s"}',
    "measure.warm_up=0 s",
    "measure.duration=2.6 s",
)
# Simulated seconds of each run that compares disciplines.
LAWS_S = 30
# Fifty endless transfers. The deep buffer loses nothing, so that no sender pays for repairs that
# other senders need not make.
DEEP = 'topology.bottleneck.discipline={kind = "droptail", limit = "20000 packets"}'
DUALPI2 = "topology.bottleneck.discipline=dualpi2"
L4S = 'ecn = true, ecn_echo = "accurate", ect = "ect1", ect_on = "all-data"'
BURSTS = 'pacing_burst = "linux"'
OVER_QUIC = "traffic.transfers.transport=quic"
SENDERS = [
    ("CUBIC", "cubic", "", (DEEP,)),
    ("CUBIC over QUIC", "cubic", "", (DEEP, OVER_QUIC)),
    ("BBR, version 1", "bbr1", "", (DEEP,)),
    ("BBR, version 1, bursts of Linux", "bbr1", BURSTS, (DEEP,)),
    ("BBR, version 3", "bbr3", "", (DEEP,)),
    ("BBR, version 3, bursts of Linux", "bbr3", BURSTS, (DEEP,)),
    ("CUBIC with ECN, DualPI2", "cubic", "ecn = true", (DUALPI2,)),
    ("Prague, DualPI2", "prague", L4S, (DUALPI2,)),
    ("Prague, DualPI2, bursts of Linux", "prague", f"{L4S}, {BURSTS}", (DUALPI2,)),
]
SENDERS_S = 5
# Trees of rates beside one queue for all: what they cost at the root, and what the leaves are.
ISP = "scenarios/isp.toml"
TREES = (("FQ-CoDel", "fq-codel"), ("CAKE", "cake"))
TREES_S = 2
DIRECTIONS = ("forward", "reverse")


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    name: str
    # A file of scenarios/bench without its ending, or a path in the repository.
    scenario: str
    settings: tuple[str, ...]
    # What is asked of a long run: per packet, on a core of some 4.1 GHz, and in instructions.
    asked_ns: int
    asked_instructions: int
    # Simulated seconds of the two runs that callgrind counts: it is some fifty times slower.
    short_s: float = 3
    long_s: float = 23


# Users who wait for their pages and think, behind machines with links of their own.
LE_2005 = "papers/le2005/scenarios/web.toml"
WEB_USERS = ("measure.warm_up=20 s", "measure.duration=60 s")


def _with(discipline: str) -> tuple[str, ...]:
    return (f"topology.bottleneck.discipline={discipline}",)


CASES = [
    Case("web-100mbit", "web-100mbit", (), 90, 1020),
    Case("web-100mbit RED", "web-100mbit", _with(RED), 122, 1220),
    Case("web-100mbit CoDel", "web-100mbit", _with("codel"), 122, 1290),
    Case("web-100mbit FQ-CoDel", "web-100mbit", _with("fq-codel"), 165, 1830),
    Case("web-100mbit SACK", "web-100mbit", (f"traffic.web.tcp={SACK}", RED_ECN), 126, 1220),
    Case("web-1gbit", "web-1gbit", (), 125, 1180, 1, 3),
    Case("web-10gbit", "web-1gbit", TEN_GBIT, 240, 1320, 1, 2),
    Case("bulk-50", "bulk-50", (), 40, 700),
    # Chapter 4 of Le 2005 has 168 runs of some 42 thousand million packets: an hour on two cores.
    Case("web-users", LE_2005, WEB_USERS, 165, 1430, 24, 44),
]


@dataclass(frozen=True)
class Cost:
    """What one process used, and what it printed."""

    user_s: float
    peak_mb: float
    summary: dict[str, Any]


def build() -> Path:
    """Builds the runner in release mode and returns the path of its executable."""
    command = "cargo build --release --locked -p aqmlab-sim --example run"
    built = subprocess.run(
        [*command.split(), "--message-format=json-render-diagnostics"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        sys.exit(f"bench: `{command}` failed")
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    [executable] = [message["executable"] for message in messages if message.get("executable")]
    return Path(executable)


def run(runner: Path, scenario: str, *settings: str) -> Cost:
    """Runs a scenario to its end with everything recorded."""
    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-") as directory:
        command = arguments(runner, scenario, settings, directory)
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        printed = process.stdout.read()
        # wait4 reports what this child used; the sum over all children would not do.
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench: {scenario} ended with status {process.returncode}")
    return Cost(used.ru_utime, used.ru_maxrss / 1024, json.loads(printed))


def arguments(
    runner: Path, scenario: str, settings: tuple[str, ...], directory: str
) -> list[str | Path]:
    """The command line of the runner."""
    file = scenario if "/" in scenario else f"scenarios/bench/{scenario}.toml"
    return [runner, ROOT / file, *settings, directory]


def packets(summary: dict[str, Any]) -> int:
    """Packets that arrived at the bottleneck in the measured span, both directions."""
    return sum(link["arrived_packets"] for link in summary["links"]["bottleneck"].values())


def span(seconds: float) -> tuple[str, ...]:
    """The settings of a run without a warm-up: it measures all that happens."""
    return ("measure.warm_up=0 s", f"measure.duration={seconds} s")


def cycles_per_ns() -> float:
    """How many cycles of this core take a nanosecond, by the reference loop."""
    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-") as directory:
        loop = Path(directory) / "reference"
        compiler = ("rustc", "--edition", "2024", "-O", "-o", loop, "-")
        subprocess.run(compiler, input=REFERENCE, text=True, check=True)
        return float(subprocess.check_output([loop], text=True))


def print_times(runner: Path, runs: int) -> None:
    """Prints time and memory of every case, medians over `runs` runs."""
    rate = cycles_per_ns()
    print(f"\nUser CPU time, median of {runs} (span); packets at the bottleneck, both directions")
    print(f"Reference loop: {rate:.2f} cycles in a nanosecond")
    print(
        f"{'':<20} {'packets':>11} {'ns/packet':>10} {'asked':>7} {'(span)':>15} {'cycles':>7} "
        f"{'sim s/CPU s':>12} {'peak MB':>8}"
    )
    for case in CASES:
        costs = [run(runner, case.scenario, *case.settings) for _ in range(runs)]
        seconds = costs[0].summary["simulated_s"]
        whole = run(runner, case.scenario, *case.settings, *span(seconds))
        count = packets(whole.summary)
        times = [cost.user_s for cost in costs]
        median = statistics.median(times)
        low, middle, high = (time / count * 1e9 for time in (min(times), median, max(times)))
        peak = statistics.median(cost.peak_mb for cost in costs)
        print(
            f"{case.name:<20} {count:>11,} {middle:>10.1f} {case.asked_ns:>7} "
            f"{f'({low:.0f} to {high:.0f})':>15} {middle * rate:>7.0f} "
            f"{seconds / median:>12.0f} {peak:>8.1f}"
        )


def print_laws(runner: Path, runs: int) -> None:
    """Prints what each discipline costs over drop-tail: web-100mbit with a preset of each kind.

    The runs of all take turns, so that other work on the machine meets all of them. Another
    discipline makes another run: the cost is per packet of its own.
    """
    listed = subprocess.check_output([runner, "--presets"], text=True)
    presets = [line.split() for line in listed.splitlines()]
    kinds = {kind: name for name, kind in reversed(presets)}
    del kinds["droptail"]
    base = "droptail-240"
    print(f"\nUser CPU time per packet on web-100mbit, median of {runs} runs that take turns")
    print(f"{'':<24} {'ns/packet':>10} {'over drop-tail':>15} {'instructions':>13}")
    names = [base, *kinds.values()]
    times: dict[str, list[float]] = {name: [] for name in names}
    counts = {}
    for _ in range(runs):
        for name in names:
            setting = f"topology.bottleneck.discipline={name}"
            cost = run(runner, "web-100mbit", setting, *span(LAWS_S))
            counts[name] = packets(cost.summary)
            times[name].append(cost.user_s / counts[name] * 1e9)
    drop_tail = statistics.median(times[base])
    for name in names:
        median = statistics.median(times[name])
        settings = (f"topology.bottleneck.discipline={name}",)
        counted = "" if shutil.which("valgrind") is None else per_packet(runner, name, settings)
        print(f"{name:<24} {median:>10.1f} {median - drop_tail:>+15.1f} {counted:>13}")


def print_senders(runner: Path) -> None:
    """Prints instructions per packet of today's senders, and times those of CUBIC."""
    if shutil.which("valgrind") is None:
        sys.exit("bench: --senders counts instructions and needs valgrind")
    print(f"\nInstructions per packet on bulk-50, profile linux, {SENDERS_S} s")
    cubic = 0.0
    for name, control, more, bottleneck in SENDERS:
        keys = ['profile = "linux"', f'congestion_control = "{control}"', more]
        tcp = ", ".join(key for key in keys if key)
        settings = (f"traffic.transfers.tcp={{{tcp}}}", *bottleneck)
        total, count = instructions(runner, Case(name, "bulk-50", settings, 0, 0, SENDERS_S))
        each = total / count
        cubic = each if control == "cubic" and OVER_QUIC not in bottleneck else cubic
        print(f"{name:<34} {each:>7,.0f} {each / cubic:>6.2f}")


def print_trees(runner: Path) -> None:
    """Prints instructions per packet of 400 subscribers: under one queue, and under a tree."""
    if shutil.which("valgrind") is None:
        sys.exit("bench: --trees counts instructions and needs valgrind")
    print(f"\nInstructions per packet on {ISP}, {TREES_S} s")
    print(f"{'':<12} {'one queue':>10} {'tree':>8} {'times':>6}")
    for title, preset in TREES:
        each = []
        for key in ("discipline", "discipline.leaf"):
            paths = (f"topology.bottleneck.{way}.{key}" for way in DIRECTIONS)
            settings = tuple(f"{path}={preset}" for path in paths)
            total, count = instructions(runner, Case(title, ISP, settings, 0, 0, TREES_S))
            each.append(total / count)
        print(f"{title:<12} {each[0]:>10,.0f} {each[1]:>8,.0f} {each[1] / each[0]:>6.2f}")


def per_packet(runner: Path, name: str, settings: tuple[str, ...]) -> str:
    """Instructions per packet of web-100mbit with some settings."""
    total, count = instructions(runner, Case(name, "web-100mbit", settings, 0, 0))
    return f"{total / count:.0f}"


def instructions(runner: Path, case: Case, seconds: float | None = None) -> tuple[int, int]:
    """Instructions and bottleneck packets of a run, by callgrind; by default of the short one."""
    settings = (*case.settings, *span(case.short_s if seconds is None else seconds))
    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-") as directory:
        profiled = subprocess.run(
            [
                *("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"),
                *arguments(runner, case.scenario, settings, directory),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    collected = re.search(r"Collected : (\d+)", profiled.stderr)
    if profiled.returncode != 0 or collected is None:
        sys.exit(f"bench: callgrind failed on {case.name}:\n{profiled.stderr}")
    return int(collected[1]), packets(json.loads(profiled.stdout))


def print_instructions(runner: Path, save: bool) -> None:
    """Prints instructions per packet beside those of the baseline, or makes the baseline anew."""
    if shutil.which("valgrind") is None:
        print("\nInstruction counts: skipped, valgrind is not installed")
        return
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {"cases": {}}
    compiler = subprocess.check_output(["rustc", "--version"], text=True).strip()
    if not save and baseline.get("compiler", compiler) != compiler:
        print(f"\nThe baseline was made with {baseline['compiler']}, this is {compiler}")
    print("\nInstructions without a warm-up, by callgrind: what a packet of a long run costs, what")
    print("every run costs once, and all of a short run per packet")
    print(
        f"{'':<20} {'seconds':>9} {'long run':>9} {'asked':>7} {'once, M':>8} {'short run':>10} "
        f"{'baseline':>9}"
    )
    measured = {}
    for case in CASES:
        total, count = instructions(runner, case)
        long_total, long_count = instructions(runner, case, case.long_s)
        each = (long_total - total) / (long_count - count)
        per_packet = round(total / count, 1)
        measured[case.name] = {
            "seconds": case.short_s,
            "instructions": total,
            "packets": count,
            "instructions_per_packet": per_packet,
            "long_instructions": long_total,
            "long_packets": long_count,
            "instructions_per_packet_of_a_long_run": round(each, 1),
        }
        saved = baseline["cases"].get(case.name, {})
        # A short run of another length has another share of what every run costs once.
        same_length = saved.get("seconds") == case.short_s
        before = saved["instructions_per_packet"] if same_length else None
        print(
            f"{case.name:<20} {f'{case.short_s}, {case.long_s}':>9} {each:>9.1f} "
            f"{case.asked_instructions:>7} {(total - each * count) / 1e6:>8.1f} "
            f"{per_packet:>10.1f} "
            + ("none" if before is None else f"{before:.1f}").rjust(9)
            + change(before, per_packet)
        )
    if save:
        content = {"compiler": compiler, "cases": measured}
        BASELINE.write_text(json.dumps(content, indent=2) + "\n")
        print(f"saved to {BASELINE.relative_to(ROOT)}")


def change(before: float | None, now: float) -> str:
    """How far a count is from its baseline, with a warning where that is much."""
    if before is None:
        return ""
    change = now / before - 1
    warning = "  WARNING: more than 5 % above" if change > TOLERANCE else ""
    better = "  better: save it with --save" if change < -TOLERANCE else ""
    return f"  {change:+.1%}{warning}{better}"


def print_memory(runner: Path) -> None:
    """Prints the peak memory of two simulated hours, and what an open connection takes."""
    print("\nMemory: web-100mbit for two simulated hours, everything recorded")
    cost = run(runner, "web-100mbit", "measure.duration=2 h")
    responses = cost.summary["responses"]["all"]["count"]
    print(f"{responses:,} responses, peak {cost.peak_mb:.0f} MB, {cost.user_s:.1f} s of user CPU")
    print("\nMemory per connection that is open at the end, over that of an empty network")
    print(f"{'':<20} {'open':>11} {'peak MB':>8} {'bytes each':>11}")
    empty = run(runner, "web-1gbit", *TEN_GBIT, NO_ROWS, "traffic.web.rate=1 /s")
    for name, settings in (("web-10gbit", TEN_GBIT), ("none ends", OPEN_ONLY)):
        cost = run(runner, "web-1gbit", *settings, NO_ROWS)
        count = cost.summary["flows"]["all"]["still_open"]
        each = (cost.peak_mb - empty.peak_mb) * 1024 * 1024 / count
        print(f"{name:<20} {count:>11,} {cost.peak_mb:>8.0f} {each:>11.0f}")


def main() -> None:
    """Parses the command line, builds, measures, prints."""
    parser = argparse.ArgumentParser(description="Measures what the engine costs.")
    parser.add_argument("--quick", action="store_true", help="one run of each scenario, not five")
    parser.add_argument("--memory", action="store_true", help="peak memory of a two-hour run")
    parser.add_argument("--laws", action="store_true", help="what each discipline costs")
    parser.add_argument("--senders", action="store_true", help="what today's senders cost")
    parser.add_argument("--trees", action="store_true", help="what a tree of rates costs")
    parser.add_argument("--save", action="store_true", help="make lab/baseline.json anew")
    chosen = parser.parse_args()
    runner = build()
    if chosen.memory:
        print_memory(runner)
        return
    if chosen.senders:
        print_senders(runner)
        return
    if chosen.trees:
        print_trees(runner)
        return
    if chosen.laws:
        print_laws(runner, 1 if chosen.quick else 5)
        return
    print_times(runner, 1 if chosen.quick else 5)
    print_instructions(runner, chosen.save)


if __name__ == "__main__":
    main()
