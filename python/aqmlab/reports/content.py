"""The content of a report, whatever it is written as: words, tables, charts, provenance."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aqmlab._util.pool import OnProgress
from aqmlab._util.table import TableModel
from aqmlab._util.words import listing, natural, ranged
from aqmlab.reports.data import MOST_DRAWN, Distributions, Traces, distributions, traces
from aqmlab.reports.fidelity import PublishedNumber, published_numbers
from aqmlab.reports.pictures import ReportPicture, pictures
from aqmlab.reports.playground import fragment
from aqmlab.reports.tables import fidelity_table, tail_table, trace_table, within_table
from aqmlab.results import tables
from aqmlab.results.baseline import Baseline, scenarios_of
from aqmlab.results.breakdown import has_breakdown
from aqmlab.results.compare import ALL, Difference, differences, link_differences
from aqmlab.results.conclusion import conclusion
from aqmlab.results.directions import in_words, placed
from aqmlab.results.families import family_titles
from aqmlab.results.groups import Group, group, headline_class, transfer_classes
from aqmlab.results.links import BUSY, LinkDirection, loaded_links
from aqmlab.results.metrics import look_up
from aqmlab.results.queues import link_at
from aqmlab.results.run import Run
from aqmlab.results.statistics import Estimate
from aqmlab.results.why import reasons

__all__ = ["Report", "compose"]


_BEGUN, _READ = 0.1, 0.3
"""Shares of the work that are done, about, when runs are compared and when curves are read."""
_MOST_SHOWN = 8
"""Configurations whose curves are shown at first: as many as there are colours."""
_MOST_LINKS = 3
"""Loaded links that are described in words."""
_MOST_WORDS = 6
"""More configurations than this are not described in words: the tables are shorter."""
_SCENARIO_BYTES = 24_000
"""Longest scenario that is shown in full."""
_SCENARIOS_BYTES = 250_000
"""All scenarios that are shown, together."""


@dataclass(frozen=True)
class _Source:
    """A run, where it is, and what made it."""

    label: str
    seed: int
    folder: str
    """The run directory, relative to the report."""
    files: Mapping[str, str]
    """Its files by name, as relative addresses."""
    engine: str
    started: str
    cpu_s: float
    key: str


@dataclass(frozen=True)
class _Scenario:
    """The effective scenario of a configuration."""

    label: str
    text: str
    cut: bool
    """Whether it is too long to be shown in full."""
    fragment: str | None
    """Of the playground's address, if the playground can show it."""


@dataclass(frozen=True)
class Report:
    """Everything that a report says."""

    title: str
    question: str
    subjects: list[str]
    """Titles of the scenarios."""
    groups: list[Group]
    facts: list[tuple[str, str]]
    """Name and value of what is worth knowing before anything else."""
    words: list[tuple[str, str]]
    """Configuration and what was measured, in sentences."""
    summary: list[TableModel]
    """What users felt, and what the loaded queues did."""
    details: list[TableModel]
    reasons: TableModel | None
    distributions: Distributions | None
    traces: Traces | None
    pictures: list[ReportPicture]
    """Further figures that the runs have something for."""
    compared: list[Difference]
    at_links: list[Difference]
    """Of the loaded links, which only the verdict and the page speak of."""
    differences: TableModel | None
    verdict: list[str]
    """What is better, what is worse, what is unclear."""
    published: list[PublishedNumber]
    fidelity: TableModel | None
    within: TableModel | None
    """Numbers behind the distribution."""
    tail: TableModel | None
    """Numbers behind the tail."""
    traced: TableModel | None
    """Numbers behind the traces."""
    scenarios: list[_Scenario]
    sources: list[_Source]
    notes: list[str] = field(default_factory=list)
    """How the numbers and curves come about."""
    parts: list[Report] = field(default_factory=list)
    """The report of each scenario if there are several: no table or chart mixes them."""

    @property
    def drawn(self) -> list[str]:
        """Labels of the configurations that have curves or traces, in their order."""
        curves = self.distributions.curves if self.distributions else []
        traced = self.traces.traces if self.traces else []
        found = {curve.group for curve in curves} | {trace.group for trace in traced}
        return [group.label for group in self.groups if group.label in found]

    @property
    def places(self) -> dict[str, int]:
        """The place of each configuration, by which its colour goes, drawn or not."""
        return {group.label: place for place, group in enumerate(self.groups)}

    @property
    def shown(self) -> list[str]:
        """Those whose curves are shown at first."""
        return self.drawn[:_MOST_SHOWN]

    @property
    def baselines(self) -> str:
        """What the others are compared with, in words."""
        names = list(dict.fromkeys(change.baseline for change in self.compared))
        return names[0] if len(names) == 1 else "each the one in its row"

    @property
    def paired(self) -> bool:
        """Whether all differences are taken between runs with the same users."""
        return all(one.paired for one in self.compared)

    @property
    def classes(self) -> list[str]:
        """What the class selector offers."""
        if self.distributions is None:
            return []
        return list(dict.fromkeys(curve.traffic for curve in self.distributions.curves))


def compose(
    runs: Sequence[Run],
    folder: Path,
    title: str | None = None,
    question: str | None = None,
    baseline: Baseline = None,
    *,
    ordered: bool = True,
    progress: OnProgress = lambda _: None,
) -> Report:
    """The report about some runs; addresses are relative to the folder of the report.

    Args:
        runs: what it is about.
        folder: where it will be.
        title: its title; None: that of the scenarios.
        question: what the runs are to answer; None: made from what differs.
        baseline: what the others are compared with; None: the drop-tail queue.
        ordered: whether somebody chose the order of the runs.
        progress: called now and then with the share of the work that is done.
    """
    folder = folder.resolve()
    groups = group(runs)
    changes = differences(groups, baseline, ordered=ordered)
    at_links = link_differences(groups, baseline, ordered=ordered)
    scenarios = scenarios_of(groups)
    progress(_BEGUN)
    if len(scenarios) == 1:
        return _of_scenario(groups, (changes, at_links), folder, title, question, progress)
    titles = family_titles([[entry.first for entry in own] for own in scenarios])
    parts = [
        _of_scenario(
            own,
            (_of_groups(changes, own), _of_groups(at_links, own)),
            folder,
            name,
            None,
            _part_of(progress, number, len(scenarios)),
        )
        for number, (own, name) in enumerate(zip(scenarios, titles, strict=True))
    ]
    return Report(
        title=title or f"{len(parts)} scenarios",
        question=question or "What do these runs say of each scenario?",
        subjects=titles,
        groups=groups,
        facts=_facts(groups, links=False),
        words=[],
        summary=[],
        details=[],
        reasons=None,
        distributions=None,
        traces=None,
        pictures=[],
        compared=[],
        at_links=[],
        differences=None,
        verdict=[],
        published=(published := published_numbers(runs)),
        fidelity=fidelity_table(published) if published else None,
        within=None,
        tail=None,
        traced=None,
        scenarios=_scenarios(groups),
        sources=[_source(entry.label, run, folder) for entry in groups for run in entry.runs],
        notes=list(dict.fromkeys(note for part in parts for note in part.notes)),
        parts=parts,
    )


def _of_groups(changes: Sequence[Difference], groups: Sequence[Group]) -> list[Difference]:
    """The differences of some groups."""
    labels = {entry.label for entry in groups}
    return [change for change in changes if change.run in labels]


def _part_of(progress: OnProgress, number: int, parts: int) -> OnProgress:
    """What a part of some work calls."""
    return lambda done: progress((number + done) / parts)


def _of_scenario(
    groups: list[Group],
    compared: tuple[list[Difference], list[Difference]],
    folder: Path,
    title: str | None,
    question: str | None,
    progress: OnProgress,
) -> Report:
    """The report about the runs of one scenario, with its differences of users and of links."""
    changes, at_links = compared
    runs = [run for entry in groups for run in entry.runs]
    curves = distributions(groups)
    progress(_READ)
    traced = traces(groups)
    drawn = pictures(runs, len(groups), lambda done: progress(_READ + (1.0 - _READ) * done))
    published = published_numbers(runs)
    return Report(
        title=title or _title_of(groups),
        question=question or _question_of(groups),
        subjects=list(dict.fromkeys(str(run.scenario.get("title") or "") for run in runs)),
        groups=groups,
        facts=_facts(groups),
        words=[
            (entry.label, " ".join([_in_words(entry, changes), *_why(entry)]))
            for entry in groups
            if len(groups) <= _MOST_WORDS
        ],
        summary=tables.comparison(groups),
        details=tables.all_numbers(groups),
        reasons=tables.reasons(groups),
        distributions=curves,
        traces=traced,
        pictures=drawn,
        compared=changes,
        at_links=at_links,
        differences=tables.differences(changes) if changes else None,
        verdict=conclusion([*changes, *at_links], groups),
        published=published,
        fidelity=fidelity_table(published) if published else None,
        within=within_table(curves) if curves else None,
        tail=tail_table(curves) if curves else None,
        traced=trace_table(traced) if traced else None,
        scenarios=_scenarios(groups),
        sources=[_source(entry.label, run, folder) for entry in groups for run in entry.runs],
        notes=_notes(groups, curves, traced, changes),
    )


def _title_of(groups: Sequence[Group]) -> str:
    """The scenario's title for one configuration; else what is compared."""
    names = [entry.label for entry in groups]
    if len(names) == 1:
        return str(groups[0].first.scenario.get("title") or names[0])
    return f"{len(names)} configurations compared" if len(names) > 3 else listing(names, "and")


def _question_of(groups: Sequence[Group]) -> str:
    """What the runs can answer."""
    names = [entry.label for entry in groups]
    queues = listing(names, "or") if len(names) <= 4 else f"each of {len(names)} configurations"
    waiting = [look_up(entry.first.summary, ("responses",)) or {} for entry in groups]
    classes = [
        name for found in waiting for name, row in found.items() if name != ALL and row.get("count")
    ]
    if not classes:
        return f"What do traffic and queue get behind {queues}?"
    people = listing(list(dict.fromkeys(classes))[:3], "and")
    return f"How long do {people} wait behind {queues}?"


def _facts(groups: Sequence[Group], *, links: bool = True) -> list[tuple[str, str]]:
    """How much was measured, on what, by which version."""
    runs = [run for entry in groups for run in entry.runs]
    seeds = sorted({run.seed for run in runs})
    measured = {float(run.summary["measured_s"]) for run in runs}
    loaded = loaded_links(runs) if links else []
    loads = {float(run.metadata["load"]) for run in runs if run.metadata.get("load")}
    engines = {str(run.summary.get("version", "")) for run in runs} - {""}
    found = [
        ("runs", f"{len(runs):,}"),
        ("configurations", f"{len(groups):,}"),
        ("seeds", ranged(seeds, 6)),
        ("measured", f"{_spread(measured)} s each"),
        *_responses(groups),
    ]
    for at in loaded[:_MOST_LINKS]:
        stated = (link_at(run.scenario, at) for run in runs)
        if rates := {link["rate"] for link in stated if link is not None}:
            found.append((in_words(at, runs[0].scenario), _spread(rates)))
    if loads:
        found.append(("load", _spread({f"{100 * load:g} %" for load in loads})))
    return [*found, ("aqmlab", _spread(engines))] if engines else found


def _responses(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """How many responses there are: of all classes, or of each where they are of several kinds."""
    names = list(dict.fromkeys(name for entry in groups for name in entry.classes))
    found = []
    for name in [ALL] if ALL in names else names:
        rows = [look_up(run.summary, ("responses", name)) for one in groups for run in one.runs]
        if count := sum(row.get("count") or 0 for row in rows if row):
            found.append(("responses" if name == ALL else f"responses of {name}", f"{count:,}"))
    return found


def _spread(values: set[Any]) -> str:
    """One value unchanged; several as the first and the last."""
    texts = sorted((f"{v:g}" if isinstance(v, float) else str(v) for v in values), key=natural)
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"


def _why(entry: Group) -> list[str]:
    """What its slowest responses waited for, if its runs say so."""
    if not all(map(has_breakdown, entry.runs)):
        return []
    return [reason.text for reason in reasons([entry])[:1]]


def _in_words(entry: Group, changes: Sequence[Difference]) -> str:
    """What a configuration did to its users, in sentences."""
    parts = [
        f"Invalid, because this machine did not keep the bounds of the live bed: {reason}."
        for run in entry.runs
        for reason in run.invalid
    ]
    traffic = headline_class([entry])
    whose = "" if traffic == ALL else f" of {traffic}"
    response = [entry.estimate("responses", traffic, key) for key in ("p50_s", "p90_s", "le_1s")]
    if all(response):
        parts.append(
            f"Half of the responses{whose} ended within {_of(response[0], 3)} s, nine of ten "
            f"within {_of(response[1], 3)} s; {_of(response[2], 1, 100)} % took at most a second."
        )
    parts += [_transfer_in_words(entry, name) for name in transfer_classes([entry])]
    loaded = loaded_links(entry.runs)
    parts += [_queue_in_words(entry, at) for at in loaded[:_MOST_LINKS]]
    if len(loaded) > _MOST_LINKS:
        parts.append(f"{len(loaded) - _MOST_LINKS} more directions of links are loaded.")
    own = {
        change.metric: change
        for change in changes
        if (change.run, change.traffic) == (entry.label, traffic)
    }
    if "p50_s" in own and "le_1s" in own:
        parts.append(_against(own["p50_s"], own["le_1s"], whose))
    return " ".join(parts) or "Nothing was recorded about responses or queue."


def _queue_in_words(entry: Group, at: LinkDirection) -> str:
    """What the queue of one direction of a link did, in a sentence."""
    queue, loss, marks, wait = (
        entry.estimate(*at.path, key)
        for key in ("queue_mean_packets", "loss_rate", "mark_rate", "sojourn_mean_s")
    )
    marked = f" and marked {_of(marks, 2, 100)} %" if marks and marks.mean > 0 else ""
    delay = f" ({_of(wait, 1, 1000)} ms)" if wait else ""
    return (
        f"The queue {placed(at, entry.first.scenario)} held {_of(queue, 1)} packets on "
        f"average{delay} and dropped {_of(loss, 2, 100)} %{marked}."
    )


def _transfer_in_words(entry: Group, name: str) -> str:
    """What a class that gets no responses got: what its users notice, or its rate."""
    if (score := entry.estimate("quality", name, "mos_mean")) is not None:
        return f"Calls of {name} have a mean opinion score of {_of(score, 2)}."
    if (late := entry.estimate("quality", name, "frame_delay_p99_s")) is not None:
        return f"The 99 % frame delay of {name} is {_of(late, 0, 1e3)} ms."
    rate = f"Class {name} got {_of(entry.estimate('flows', name, 'goodput_bps'), 2, 1e-6)} Mbit/s"
    keys = ("datagram_loss_rate", "datagram_delay_p50_s", "datagram_delay_p95_s")
    loss, half, most = (entry.estimate("flows", name, key) for key in keys)
    if loss is None or half is None or most is None:
        return f"{rate}."
    return (
        f"{rate} and lost {_of(loss, 2, 100)} % of its datagrams; half of the others took at most "
        f"{_of(half, 1, 1e3)} ms, 95 % at most {_of(most, 1, 1e3)} ms."
    )


def _of(estimate: Estimate | None, decimals: int, scale: float = 1.0) -> str:
    """The mean of an estimate."""
    return "-" if estimate is None else f"{scale * estimate.mean:,.{decimals}f}"


def _against(median: Difference, second: Difference, whose: str) -> str:
    """The difference to the baseline, in words, as far as it is clear."""
    if median.interval is None:
        change = f"{median.difference:+.3f} s"
        return f"Against {median.baseline}, the median{whose} changes by {change}."
    if not median.clear and not second.clear:
        return f"Against {median.baseline}, neither clearly differs."
    word = "longer" if median.difference > 0 else "shorter"
    what = (
        f"the median{whose} is {abs(median.difference):.3f} s {word}"
        if median.clear
        else f"the median{whose} does not clearly differ"
    )
    points = abs(100 * second.difference)
    more = "more" if second.difference > 0 else "fewer"
    share = (
        f"{points:.1f} points {more} of the responses end within a second"
        if second.clear
        else "the share within a second does not clearly differ"
    )
    return f"Against {median.baseline}, {what}, and {share}."


def _scenarios(groups: Sequence[Group]) -> list[_Scenario]:
    """The effective scenarios, as far as there is room for them."""
    shown, room = [], _SCENARIOS_BYTES
    for entry in groups:
        text = (entry.first.path / "scenario.toml").read_text(encoding="utf-8", errors="replace")
        cut = len(text) > min(_SCENARIO_BYTES, room)
        text = text[: min(_SCENARIO_BYTES, room)]
        if text:
            shown.append(_Scenario(entry.label, text, cut, fragment(entry.first.scenario)))
        room -= len(text)
    return shown


def _source(label: str, run: Run, folder: Path) -> _Source:
    """Where a run is and what made it."""
    place = os.path.relpath(run.path.resolve(), folder)
    present = {file.name for file in run.path.iterdir()} if run.path.is_dir() else set()
    names = ("scenario.toml", "summary.json", "responses.parquet", "flows.parquet", "queue.parquet")
    files = {
        name: quote(f"{place}/{name}") for name in (*names, "metadata.json") if name in present
    }
    return _Source(
        label=label,
        seed=run.seed,
        folder=place,
        files=files,
        engine=str(look_up(run.metadata, ("versions", "engine")) or run.summary.get("version")),
        started=str(run.metadata.get("started", "")),
        cpu_s=float(run.metadata.get("cpu_s", 0.0)),
        key=str(run.metadata.get("key", ""))[:16],
    )


def _notes(
    groups: Sequence[Group],
    curves: Distributions | None,
    traced: Traces | None,
    changes: Sequence[Difference],
) -> list[str]:
    """How the numbers and curves come about."""
    found = [
        (
            "A response time runs from the client's first SYN to the end of the response at the "
            "client; responses that ended in the measured span are counted."
        )
    ]
    loaded = ", ".join(
        in_words(at, groups[0].first.scenario)
        for at in loaded_links([run for entry in groups for run in entry.runs])
    )
    found.append(
        f"Links are shown where they are loaded: busy for more than {100 * BUSY:.0f} % of the "
        f"measured time, or with a drop or a mark in one of the runs ({loaded}). All links are "
        "in the tables of all numbers."
    )
    if any(len(entry.runs) > 1 for entry in groups):
        found.append(
            "Numbers of configurations with several runs are means over the runs; ± is half of "
            "the 95 % interval over the seeds. Their curves take all runs together."
        )
    else:
        found.append(
            "Every configuration was run with one seed: how results vary from seed to seed cannot "
            "be seen here."
        )
    if curves:
        whose = "all responses, to a thousandth of each time" if curves.binned else "all responses"
        found.append(
            f"Every drawn point lies on the distribution of {whose}; at most {curves.points} "
            "points of each curve are kept. The runs' Parquet files have what was recorded."
        )
    if len(groups) > MOST_DRAWN:
        found.append(f"Charts show the first {MOST_DRAWN} configurations; tables show all.")
    if traced:
        found.append(
            f"Traces show the run of the smallest seed in at most {traced.bins} intervals: the "
            "line is the mean of an interval's samples, the band reaches from the smallest to "
            "the largest."
        )
    if any(change.interval for change in changes):
        found.append(
            "Runs with the same seed and traffic have the same users (common random numbers), so "
            "differences are taken pair by pair. With several pairs the 95 % interval is "
            "that over the pairs; with one pair it comes from a bootstrap over 30 blocks of "
            "time, and says nothing about other seeds."
        )
    return found
