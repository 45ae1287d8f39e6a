"""The simulator beside ns-2 and ns-3: the same transfers through the same queues, in numbers.

``python -m lab.peers.fidelity`` reads ``lab/peers/*.toml``, runs each setting with each
seed here and in its peer (Debian's ``ns2``, ``libns3-dev``), and writes
``records/peers-fidelity.md``.
A program of ours for the peer gets its values from the same scenario, so that a setting is stated
once.

Numbers are means over the seeds. A tolerance is a share of the peer's mean.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

from aqmlab._util.console import out, say
from aqmlab._util.fields import toml_table
from aqmlab._util.files import write_text
from aqmlab._util.markup import markdown
from aqmlab.engine.execute import execute
from aqmlab.results.terms import Tolerance, number_at
from aqmlab.scenario.scenario import Scenario

from lab import study
from lab.peers import ns2, ns3

__all__ = [
    "METRICS",
    "PEERS",
    "Peer",
    "PeerCell",
    "Setting",
    "judge",
    "load",
    "main",
    "measured",
    "page",
    "record",
]

_RECORD = Path("records/peers-fidelity.md")
"""The differences, the values of both, and what was run."""


@dataclass(frozen=True)
class Peer:
    """Another simulator."""

    name: str
    settings: Path
    """What is compared with it."""
    program: ModuleType
    """How it is asked: :mod:`lab.peers.ns2`, for instance."""


PEERS = (
    Peer("ns-2", Path("lab/peers/fidelity.toml"), ns2),
    Peer("ns-3", Path("lab/peers/fidelity-ns3.toml"), ns3),
)


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


@dataclass(frozen=True)
class Setting:
    """A dumbbell that both simulators run."""

    peer: Peer
    name: str
    title: str
    scenario: Scenario
    seeds: tuple[int, ...]
    within: Mapping[str, float]
    """Tolerances by metric."""


@dataclass(frozen=True)
class PeerCell:
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
        """Of the means, as a share of the peer's."""
        ours, theirs = fmean(self.ours), fmean(self.theirs)
        if theirs == 0:
            return 0.0 if ours == 0 else float("inf")
        return ours / theirs - 1


@study.program
def main(arguments: Sequence[str] | None = None) -> int:
    """The command.

    Returns:
        0 if every cell is within its tolerance, 1 if not, 2 for wrong input or without a peer.
    """
    parser = study.parser(__doc__, out="out/peers-fidelity")
    parser.add_argument("names", nargs="*", help="settings; default: all, and the page of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    options = parser.parse_args(arguments)
    return _compare_all(options.names, options.out, options.jobs)


def _compare_all(names: Sequence[str], folder: Path, jobs: int | None) -> int:
    """Compares some settings, or all; prints the tables and writes the page."""
    settings = {name: found for peer in PEERS for name, found in load(peer).items()}
    chosen = study.chosen(settings, names, "there is no setting {}")
    peers = [peer for peer in PEERS if any(setting.peer is peer for setting in chosen)]
    for peer in peers:
        peer.program.prepare(folder / "programs")

    def both(setting: Setting, seed: int) -> tuple[dict[str, float], dict[str, float], str]:
        scenario = setting.scenario.with_overrides({"seed": seed})
        target = folder / f"{setting.name}-s{seed}-{scenario.key[:8]}"
        ours = execute(scenario, target, reuse=True).summary
        theirs, version = setting.peer.program.run(scenario, folder / "programs")
        say(f"{setting.name}, seed {seed}")
        return measured(ours), theirs, version

    work = [(setting, seed) for setting in chosen for seed in setting.seeds]
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(both, *zip(*work, strict=True)))
    cells = []
    for setting in chosen:
        of_it = [r for r, (owner, _) in zip(results, work, strict=True) if owner is setting]
        cells += judge(setting, [ours for ours, *_ in of_it], [theirs for _, theirs, _ in of_it])
    versions = {
        setting.peer.name: version
        for (_, _, version), (setting, _) in zip(results, work, strict=True)
    }
    text = record(chosen, cells)
    out(text)
    if not names:
        write_text(_RECORD, f"{page(chosen, cells, versions)}\n{text}")
    return 0 if all(cell.within for cell in cells) else 1


def load(peer: Peer) -> dict[str, Setting]:
    """What is compared with a peer, by name."""
    content = toml_table(peer.settings, "settings")
    base = Scenario.load(peer.settings.parent / content["scenario"])
    return {
        name: Setting(
            peer,
            name,
            entry["title"],
            base.with_overrides(entry["set"]),
            tuple(content["seeds"]),
            content["within"],
        )
        for name, entry in content["settings"].items()
    }


def measured(summary: Mapping[str, Any]) -> dict[str, float]:
    """Our numbers, by metric; per second, as a share, in packets."""
    return {
        "goodput": number_at(summary, "flows.all.goodput_bps"),
        "loss": number_at(summary, "links.bottleneck.forward.loss_rate"),
        "queue": number_at(summary, "links.bottleneck.forward.queue_mean_packets"),
    }


# ---- what is written ----


def judge(
    setting: Setting,
    ours: Sequence[Mapping[str, float]],
    theirs: Sequence[Mapping[str, float]],
) -> list[PeerCell]:
    """The cells of a setting, from the numbers of each seed."""
    return [
        PeerCell(
            setting.name,
            metric,
            tuple(run[metric] for run in ours),
            tuple(run[metric] for run in theirs),
            setting.within[metric],
        )
        for metric in METRICS
    ]


def page(
    settings: Sequence[Setting], cells: Sequence[PeerCell], versions: Mapping[str, str]
) -> str:
    """The head of the record: for each peer a table of the differences, and what differs."""
    peers = list(dict.fromkeys(setting.peer for setting in settings))
    held = sum(cell.within for cell in cells)
    seeds = ", ".join(map(str, settings[0].seeds))
    named = " and ".join(peer.name for peer in peers)
    head = (
        f"# Transfers beside {named}\n\n"
        f"**{held} of {len(cells)} cells are within their tolerance.** The same transfers run "
        f"through the same queues here and in {named}. A cell is the difference of two means over "
        f"the seeds {seeds}, as a share of the peer's mean. A cell outside its tolerance is bold. "
        f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}. "
        "[Peers](../docs/other-tools.md#ns-2-and-ns-3-beside-aqmlab) compares what queues do with "
        "one list of packets.\n"
    )
    parts = [head]
    for peer in peers:
        own = [setting for setting in settings if setting.peer is peer]
        parts += [f"## {peer.name}\n", _differences(own, cells), _notes(peer)]
    return "\n".join([*parts, "`make peers-fidelity` runs the settings and writes this page.\n"])


def record(settings: Sequence[Setting], cells: Sequence[PeerCell]) -> str:
    """The values: for each peer a table for each metric, and what was run."""
    parts = [
        "## Every value\n\nMeans over the seeds, in parentheses the smallest and the largest.\n"
    ]
    for peer in dict.fromkeys(setting.peer for setting in settings):
        own = [setting for setting in settings if setting.peer is peer]
        parts += [_section(metric, own, cells) for metric in METRICS]
        parts.append(_settings(peer, own))
    return "\n".join(parts)


def _differences(settings: Sequence[Setting], cells: Sequence[PeerCell]) -> str:
    """The differences of all settings, a column for each metric."""
    bounds = settings[0].within
    titles = [
        f"{METRICS[metric].title.partition(',')[0].lower()}, within {100 * bounds[metric]:g} %"
        for metric in METRICS
    ]
    rows = []
    for setting in settings:
        own = [cell for cell in cells if cell.setting == setting.name]
        texts = [(_percent(cell), cell.within) for cell in own]
        shown = [text if within else f"**{text}**" for text, within in texts]
        rows.append((setting.title, *shown))
    return markdown(("setting", *titles), rows) + "\n"


def _percent(cell: PeerCell) -> str:
    """The difference of a cell in percent."""
    return f"{round(100 * cell.difference, 1) + 0.0:+.1f} %"


def _notes(peer: Peer) -> str:
    """What is equal, and what is not."""
    notes = "\n".join(f"- {note}" for note in peer.program.NOTES)
    return (
        f"[The settings](../{peer.settings}), their scenario and the options of "
        f"[the program for {peer.name}](../{peer.program.PROGRAM}) come from one file. So both "
        "have the same rates, round-trip times, windows, timers, thresholds and gains. Half of a "
        f"round-trip time lies on either side. What differs:\n\n{notes}\n"
    )


def _section(metric: str, settings: Sequence[Setting], cells: Sequence[PeerCell]) -> str:
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
        f"### {settings[0].peer.name}: {shown.title[0].lower()}{shown.title[1:]}\n",
        f"Tolerance {100 * settings[0].within[metric]:g} %.\n",
        f"| setting | aqmlab | {settings[0].peer.name} | difference | |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for cell in cells:
        if cell.metric == metric and cell.setting in titles:
            verdict = "within" if cell.within else "**outside**"
            lines.append(
                f"| {titles[cell.setting]} | {numbers(cell.ours)} | {numbers(cell.theirs)} | "
                f"{_percent(cell)} | {verdict} |"
            )
    return "\n".join(lines) + "\n"


def _settings(peer: Peer, settings: Sequence[Setting]) -> str:
    """What each setting is."""
    text = f"### {peer.name}: what was run\n\n"
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
    return text + "\n".join(lines) + "\n"


def _discipline(ours: Mapping[str, Any]) -> str:
    """A discipline's parameters that a reader needs."""
    names = (
        *("min_th", "max_th", "q_ref", "qdelay_ref", "target", "limit", "max_p"),
        *("a", "b", "gamma", "interval", "t_update", "quantum"),
    )
    stated = ", ".join(f"{name} {ours[name]}" for name in names if ours.get(name) is not None)
    return f"{ours['kind']}: {stated}"


if __name__ == "__main__":
    sys.exit(main())
