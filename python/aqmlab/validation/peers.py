"""The simulator beside ns-2: the same transfers through the same queues, in numbers.

``python -m aqmlab.validation.peers`` reads ``validation/peers/fidelity.toml``, runs each setting
with each seed here and in ns-2 (Debian's ``ns2``), and writes ``docs/peers-fidelity.md``. A program
of ours for ns-2 (``benches/peers/fidelity_ns2.tcl``) gets its values from the same scenario, so
that a setting is stated once.

Numbers are means over the seeds. A tolerance is a share of ns-2's mean.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from aqmlab._util.console import out, say
from aqmlab._util.files import write_text
from aqmlab.engine.execute import execute
from aqmlab.errors import AqmlabError, RunError
from aqmlab.papers.paper import read_toml
from aqmlab.results.terms import Tolerance, number_at
from aqmlab.scenario.scenario import Scenario

__all__ = [
    "METRICS",
    "PROGRAM",
    "SETTINGS",
    "Cell",
    "Setting",
    "judge",
    "load",
    "main",
    "measured",
    "ns2_options",
    "page",
    "parsed",
]


SETTINGS = Path("validation/peers/fidelity.toml")
"""What is compared."""
PROGRAM = Path("benches/peers/fidelity_ns2.tcl")
"""What ns-2 runs."""
_PAGE = Path("docs/peers-fidelity.md")
"""The tables."""
_TIME_LIMIT_S = 600
"""A run of ns-2 that takes longer is given up."""


@dataclass(frozen=True)
class _Metric:
    """How a number is shown."""

    title: str
    factor: float
    digits: int


METRICS = {
    "goodput": _Metric("Goodput of all transfers, kbit/s", 1e-3, 0),
    "loss": _Metric("Loss of the forward queue, %", 100, 2),
    "queue": _Metric("Mean forward queue, packets", 1, 1),
}
"""What is compared."""
_UNITS = (
    {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
    | {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
    | {"bytes": 1, "kB": 1e3, "packets": 1}
)
_COUNTS = {"goodput_bps", "arrived_packets", "dropped_packets", "queue_mean_packets"}
"""The numbers that ns-2's program prints; beside them its version."""


@dataclass(frozen=True)
class Setting:
    """A dumbbell that both simulators run."""

    name: str
    title: str
    scenario: Scenario
    seeds: tuple[int, ...]
    within: Mapping[str, float]
    """Tolerances by metric."""


@dataclass(frozen=True)
class Cell:
    """A metric of a setting on both sides, a value for each seed."""

    setting: str
    metric: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    bound: float

    @property
    def within(self) -> bool:
        """Whether the means differ by at most the tolerance."""
        return Tolerance(relative=self.bound).admits(fmean(self.ours), fmean(self.theirs))

    @property
    def difference(self) -> float:
        """Of the means, as a share of ns-2's."""
        ours, theirs = fmean(self.ours), fmean(self.theirs)
        if theirs == 0:
            return 0.0 if ours == 0 else float("inf")
        return ours / theirs - 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The command.

    Returns:
        0 if every cell is within its tolerance, 1 if not, 2 for wrong input or without ns-2.
    """
    parser = argparse.ArgumentParser(
        prog="python -m aqmlab.validation.peers", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", help="settings; default: all, and the page of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path("out/peers-fidelity"), help="our runs")
    options = parser.parse_args(arguments)
    try:
        return _compare_all(options.names, options.out, options.jobs)
    except AqmlabError as error:
        say(str(error))
        return error.exit_status


def _compare_all(names: Sequence[str], folder: Path, jobs: int | None) -> int:
    """Compares some settings, or all; prints the tables and writes the page."""
    settings = load(SETTINGS)
    for name in names:
        if name not in settings:
            raise AqmlabError(f"{SETTINGS}: has no setting {name}; known: {', '.join(settings)}")
    chosen = [settings[name] for name in names] or list(settings.values())
    if shutil.which("ns") is None:
        raise AqmlabError(
            "ns-2 is not installed: there is no ns on the PATH, so nothing was compared; "
            "on Debian: apt-get install ns2"
        )

    def both(setting: Setting, seed: int) -> tuple[dict[str, float], dict[str, float], str]:
        scenario = setting.scenario.with_overrides({"seed": seed})
        target = folder / f"{setting.name}-s{seed}-{scenario.key[:8]}"
        ours = execute(scenario, target, reuse=True).summary
        printed = _run_ns2(scenario)
        say(f"{setting.name}, seed {seed}")
        return measured(ours), *parsed(printed)

    work = [(setting, seed) for setting in chosen for seed in setting.seeds]
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(both, *zip(*work, strict=True)))
    cells = []
    for setting in chosen:
        of_it = [r for r, (owner, _) in zip(results, work, strict=True) if owner is setting]
        cells += judge(setting, [ours for ours, *_ in of_it], [theirs for _, theirs, _ in of_it])
    text = page(chosen, cells, version=results[0][2])
    out(text)
    if not names:
        write_text(_PAGE, text)
    return 0 if all(cell.within for cell in cells) else 1


def load(file: Path) -> dict[str, Setting]:
    """The settings of a file, by name."""
    content = read_toml(file)
    base = Scenario.load(file.parent / content["scenario"])
    return {
        name: Setting(
            name,
            entry["title"],
            base.with_overrides(entry["set"]),
            tuple(content["seeds"]),
            content["within"],
        )
        for name, entry in content["settings"].items()
    }


# ---- both sides ----


def measured(summary: Mapping[str, Any]) -> dict[str, float]:
    """Our numbers, by metric; per second, as a share, in packets."""
    return {
        "goodput": number_at(summary, "flows.all.goodput_bps"),
        "loss": number_at(summary, "links.bottleneck.forward.loss_rate"),
        "queue": number_at(summary, "links.bottleneck.forward.queue_mean_packets"),
    }


def _run_ns2(scenario: Scenario) -> str:
    """What ns-2 prints for a scenario."""
    words = [str(word) for pair in ns2_options(scenario.data).items() for word in pair]
    try:
        process = subprocess.run(
            ["ns", PROGRAM, *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIME_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"ns-2: {scenario.name} took more than {_TIME_LIMIT_S} s") from None
    if process.returncode != 0:
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"ns-2: {PROGRAM} ended with status {process.returncode}: {last}")
    return process.stdout


def parsed(printed: str) -> tuple[dict[str, float], str]:
    """ns-2's numbers, by metric, and its version, from lines "name value"."""
    lines = dict(line.split(maxsplit=1) for line in printed.splitlines() if " " in line)
    version = lines.pop("version", "")
    try:
        counts = {name: float(lines[name]) for name in _COUNTS}
    except (KeyError, ValueError) as error:
        wanted = ", ".join(sorted(_COUNTS))
        raise RunError(f"ns-2: {PROGRAM} must print {wanted}; found {printed!r}") from error
    arrived = counts["arrived_packets"]
    if arrived == 0:
        raise RunError("ns-2: no packet came to the queue")
    return {
        "goodput": counts["goodput_bps"],
        "loss": counts["dropped_packets"] / arrived,
        "queue": counts["queue_mean_packets"],
    }, version


def ns2_options(scenario: Mapping[str, Any]) -> dict[str, object]:
    """The options of ns-2's program for an effective scenario like ``dumbbell.toml``."""
    measure, [traffic] = scenario["measure"], scenario["traffic"]
    link, stack, flows = (
        scenario["topology"]["bottleneck"]["forward"],
        traffic["tcp"],
        traffic["flows"],
    )
    kind, settings, limit = _ns2_discipline(link["discipline"])
    # Its dumbbell puts host i of n at (i + 1/2)/n of the range, ours puts flow i at i/(n - 1).
    low, high = _base(traffic["rtt"]["min"]), _base(traffic["rtt"]["max"])
    step = (high - low) / (flows - 1)
    return {
        "seconds": _base(measure["duration"]),
        "warm_up": _base(measure["warm_up"]),
        "seed": scenario["seed"],
        "flows": flows,
        "rate": f"{_base(link['rate']):.0f}",
        "queue": limit,
        "shortest": low - step / 2,
        "longest": high + step / 2,
        "start_within": _base(traffic["start_within"]),
        "segment": int(_base(stack["mss"])),
        "window": int(_base(stack["send_buffer"])),
        "initial_window": stack["initial_window"],
        "tick": _base(stack["clock"]["period"]),
        "rto_initial": _base(stack["rto_initial"]),
        "rto_min": _base(stack["rto_min"]),
        "rto_max": _base(stack["rto_max"]),
        "limited_transmit": int(stack["limited_transmit"]),
        "sack": int(stack["recovery"] == "sack-pipe"),
        "ecn": int(stack["ecn"]),
        "two_way": int(traffic["direction"] == "both"),
        "discipline": kind,
        "settings": " ".join(f"{name} {value}" for name, value in settings.items()),
    }


def _ns2_discipline(ours: Mapping[str, Any]) -> tuple[str, dict[str, object], int]:
    """ns-2's name of a discipline, its settings and its limit.

    ns-2's drop-tail and REM keep one packet less waiting than their limit says.
    """
    kind, limit = ours["kind"], int(_base(ours["limit"]))
    if kind == "droptail":
        return "DropTail", {}, limit + 1
    if kind not in {"red", "pi", "rem"}:
        raise AqmlabError(
            f"topology.bottleneck.discipline.kind: found {kind}; "
            "the comparison knows droptail, red, pi and rem in ns-2"
        )
    mean = int(_base(ours["mean_packet"]))
    in_packets = {"mean_pktsize_": mean, "bytes_": "false", "queue_in_bytes_": "false"}
    ecn = "true" if ours["ecn"] else "false"
    if kind == "red":
        settings = {
            "thresh_": _base(ours["min_th"]),
            "maxthresh_": _base(ours["max_th"]),
            "linterm_": 1 / ours["max_p"],
            "q_weight_": ours["w_q"],
            "gentle_": "true" if ours["gentle"] else "false",
            "wait_": {"wait": "true", "uniform": "false"}[ours["gap"]],
            "setbit_": ecn,
        }
        return "RED", settings | in_packets, limit
    if kind == "pi":
        settings = {
            "a_": ours["a"],
            "b_": ours["b"],
            "w_": 1 / _base(ours["interval"]),
            "qref_": _base(ours["q_ref"]),
            "setbit_": ecn,
        }
        return "PI", settings | in_packets, limit
    settings = {
        "gamma_": ours["gamma"],
        "phi_": ours["phi"],
        "inw_": 1,  # the rate of the newest interval alone, as in the paper
        "pupdtime_": _base(ours["interval"]),
        "pbo_": _base(ours["q_ref"]),
        "mean_pktsize_": mean,
        "qib_": "false",
        "markpkts_": ecn,
    }
    return "REM", settings, limit + 1


def _base(quantity: str) -> float:
    """A quantity of a scenario in seconds, bits per second, bytes or packets."""
    number, _, unit = quantity.partition(" ")
    return float(number) * _UNITS[unit]


# ---- what is written ----


def judge(
    setting: Setting,
    ours: Sequence[Mapping[str, float]],
    theirs: Sequence[Mapping[str, float]],
) -> list[Cell]:
    """The cells of a setting, from the numbers of each seed."""
    return [
        Cell(
            setting.name,
            metric,
            tuple(run[metric] for run in ours),
            tuple(run[metric] for run in theirs),
            setting.within[metric],
        )
        for metric in METRICS
    ]


def page(settings: Sequence[Setting], cells: Sequence[Cell], version: str) -> str:
    """The page: what was run, and a table for each metric."""
    held = sum(cell.within for cell in cells)
    seeds = ", ".join(map(str, settings[0].seeds))
    head = (
        "# ns-2 beside us\n\n"
        "The same transfers through the same queues here and in ns-2, side by side. "
        "`make peers-fidelity` runs [the settings](../validation/peers/fidelity.toml) in both and "
        "writes this page; nothing here is edited by hand. "
        f"ns-2 {version}, seeds {seeds}.\n\n"
        f"**{held} of {len(cells)} cells are within their tolerance.** A cell compares means over "
        "the seeds, in parentheses the smallest and the largest; the difference is a share of "
        "ns-2's mean.\n"
    )
    sections = [_section(metric, settings, cells) for metric in METRICS]
    return "\n".join([head, *sections, _settings(settings)])


def _section(metric: str, settings: Sequence[Setting], cells: Sequence[Cell]) -> str:
    """A metric of all settings as a section of the page."""
    titles = {setting.name: setting.title for setting in settings}
    shown = METRICS[metric]

    def numbers(values: Sequence[float]) -> str:
        mean, low, high = (
            f"{shown.factor * value:,.{shown.digits}f}"
            for value in (fmean(values), min(values), max(values))
        )
        return f"{mean} ({low} to {high})"

    lines = [
        f"## {shown.title}\n",
        f"Tolerance {100 * settings[0].within[metric]:g} %.\n",
        "| setting | aqmlab | ns-2 | difference | |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for cell in cells:
        if cell.metric == metric:
            verdict = "within" if cell.within else "**outside**"
            lines.append(
                f"| {titles[cell.setting]} | {numbers(cell.ours)} | {numbers(cell.theirs)} | "
                f"{round(100 * cell.difference, 1) + 0.0:+.1f} % | {verdict} |"
            )
    return "\n".join(lines) + "\n"


def _settings(settings: Sequence[Setting]) -> str:
    """What is equal, what is not, and what each setting is."""
    text = (
        "## What was run\n\n"
        "[The scenario](../validation/peers/dumbbell.toml) and the options of "
        "[the program for ns-2](../benches/peers/fidelity_ns2.tcl) come from one file, so both "
        "have the same rates, round-trip times (spread evenly over the flows), windows, clocks, "
        "timers, thresholds and gains. Half of a round-trip time lies on either side.\n\n"
        "- Senders are ns-2's one-way TCP without handshake, delayed ACKs and random send delays, "
        "and without limited transmit where a setting does not name it; packets have 500 bytes, "
        "ACKs 40, the wire has no framing.\n"
        "- ns-2's `DropTail` and `REM` keep one packet less waiting than their limit says and get "
        "a limit one higher.\n"
        "- ns-2's RED has its default `use_mark_p_`: it marks up to a probability of 0.1 and "
        "drops beyond it. Ours marks below `max_th` and drops beyond it.\n"
        "- In a two-way setting every second flow sends against the others.\n\n"
    )
    lines = [
        "| setting | rate | discipline | round-trip times | warm-up, measured |",
        "| --- | --- | --- | --- | --- |",
    ]
    for setting in settings:
        data = setting.scenario.data
        link, [traffic] = data["topology"]["bottleneck"]["forward"], data["traffic"]
        rtt, span = traffic["rtt"], data["measure"]
        lines.append(
            f"| {setting.title} | {link['rate']} | {_discipline(link['discipline'])} | "
            f"{rtt['min']} to {rtt['max']} | {span['warm_up']}, {span['duration']} |"
        )
    lines.append(
        "\nns-3 was not run: this page has no numbers of CoDel, FQ-CoDel, PIE or RED in ns-3. "
        "[Peers](peers.md) compares what ns-3's queues do with one list of packets."
    )
    return text + "\n".join(lines) + "\n"


def _discipline(ours: Mapping[str, Any]) -> str:
    """A discipline's parameters that a reader needs."""
    names = ("min_th", "max_th", "q_ref", "limit", "max_p", "a", "b", "gamma", "interval")
    stated = ", ".join(f"{name} {ours[name]}" for name in names if ours.get(name) is not None)
    return f"{ours['kind']}: {stated}"


if __name__ == "__main__":
    sys.exit(main())
