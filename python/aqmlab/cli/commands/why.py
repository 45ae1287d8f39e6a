"""``aqmlab why``: where the time of responses went."""

from __future__ import annotations

import shlex
import textwrap
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from aqmlab._util.console import out, print_json, print_tsv, say, show
from aqmlab._util.filekinds import file_kind
from aqmlab._util.markup import rendered
from aqmlab._util.table import TableModel
from aqmlab.cli.build import Opt
from aqmlab.cli.options import (
    Format,
    Json,
    Runs,
    Tsv,
    Where,
    check_format,
    named_as_options,
)
from aqmlab.cli.planning import baselines, kept
from aqmlab.engine.rerun import events_of
from aqmlab.errors import AqmlabError
from aqmlab.results import why
from aqmlab.results.breakdown import check_breakdown
from aqmlab.results.events import Events
from aqmlab.results.groups import Group, group
from aqmlab.results.run import Run
from aqmlab.results.sources import gather
from aqmlab.results.story import Story, story
from aqmlab.results.why import TimeChange
from aqmlab.traffic import tapped_words
from aqmlab.traffic.capture_files import is_capture, notes_in_words
from aqmlab.traffic.tapped import read_exchanges

__all__ = ["command"]


_Shown: TypeAlias = list[str | TableModel]
_WIDTH = 80
"""Columns of a paragraph."""
_COMPARED = ("all", "slowest_10")
"""Bands whose differences between queues are shown."""


def command(
    places: Runs,
    response: Annotated[
        int | None,
        Opt(
            "N",
            "Show each event of one response: row N of responses.parquet. The first row is 1.",
            least=1,
        ),
    ] = None,
    slowest: Annotated[
        int | None, Opt("K", "Show each event of the K-th slowest response.", least=1)
    ] = None,
    *,
    traffic: str | None = None,
    baseline: str | None = None,
    output: Path | None = None,
    theme: Literal["light", "dark"] = "light",
    where: Where = None,
    as_json: Json = False,
    as_tsv: Tsv = False,
    markup: Format = None,
) -> None:
    """Show where the time of responses went: why were they slow?

    The command divides each response time into parts: propagation, queues, timers, recovery. The
    runs need measure.breakdown = true. The command prints the parts for each class and queue, and
    the differences between queues.

    With a capture (pcap or pcapng), the parts are handshake, time-outs, recovery, server and
    transfer.

    Options:
        traffic (--class NAME): Class of traffic; default: every class.
        baseline (LABEL): Label of the runs to compare with, such as fq-codel; default: drop-tail.
        output (-o, --output FILE): With --response or --slowest: draw the response as a sequence
            diagram (.svg, .png, .pdf).
        theme: Background and colours of the sequence diagram.
    """
    check_format(as_json=as_json, as_tsv=as_tsv, markup=markup)
    if response is not None and slowest is not None:
        raise AqmlabError("--response and --slowest: found both; give one of them")
    if output is not None and response is None and slowest is None:
        raise AqmlabError(
            "--output: draws one response; name it by --response or --slowest, or use "
            "`aqmlab plot why` for a figure of all"
        )
    if any(_is_capture(place) for place in places):
        options = {
            "--response": response,
            "--slowest": slowest,
            "--class": traffic,
            "--baseline": baseline,
            "--output": output,
            "--where": where,
        }
        given = [name for name, value in options.items() if value]
        _of_capture(places, given, as_json=as_json, as_tsv=as_tsv, markup=markup)
        return
    for place in places:
        if place.is_file() and file_kind(place) == "scenario":
            command = f"aqmlab run {shlex.quote(str(place))} --set measure.breakdown=true"
            raise AqmlabError(f"{place}: is a scenario; run it with `{command}`, then name its run")
    found = kept(places, where) if where else gather(places, needs_tables=False)
    with named_as_options(["response", "slowest", "class"]):
        if response is not None or slowest is not None:
            tale = _story(found, response, slowest, traffic)
            events = events_of(tale)
            parts: _Shown = [
                *tale.head(),
                "",
                tale.events_table(events),
                "",
                tale.table(),
                "",
            ]
            parts += textwrap.wrap(" ".join(tale.losses()), _WIDTH)
            content = tale.to_json(events)
            rows = [{"response": tale.number, **one.to_json()} for one in events.moments()]
            if output is not None:
                parts += ["", _draw(tale, events, output, theme)]
        else:
            check_breakdown(found)
            groups = group(found)
            changes = why.changes(groups, baseline or baselines(places, where), traffic)
            parts = _parts(groups, changes, traffic)
            content = why.content(groups, changes, traffic)
            rows = why.rows(groups, traffic)
    if as_json:
        print_json(content)
    elif as_tsv:
        print_tsv(rows)
    elif markup is not None:
        out(rendered(markup, parts))
    else:
        show(*parts)


def _is_capture(place: Path) -> bool:
    """Whether a place is a capture, by its first bytes, or is meant as one."""
    return is_capture(place) or (place.suffix in (".pcap", ".pcapng") and not place.is_dir())


def _of_capture(
    places: list[Path], options: list[str], *, as_json: bool, as_tsv: bool, markup: Format
) -> None:
    """What a capture shows, from one place."""
    if len(places) > 1:
        raise AqmlabError(f"RUNS: found {len(places)} places; give one capture, or runs only")
    if options:
        raise AqmlabError(f"{options[0]}: is for runs; a capture has neither classes nor events")
    tapped = read_exchanges(places[0])
    for text in notes_in_words(tapped.notes):
        say(f"note: {text}")
    if as_json:
        print_json(tapped_words.content(tapped))
    elif as_tsv:
        print_tsv([one.to_json() for one in tapped.exchanges])
    else:
        parts: _Shown = [tapped_words.band_table(tapped), ""]
        first, *rest = tapped_words.paragraphs(tapped)
        parts += [*textwrap.wrap(first, _WIDTH), ""]
        for line in rest:
            parts += textwrap.wrap(line, _WIDTH, subsequent_indent="  ")
        if markup is not None:
            out(rendered(markup, parts))
        else:
            show(*parts)


def _story(
    found: list[Run], response: int | None, slowest: int | None, traffic: str | None
) -> Story:
    """The story of one response of the only run."""
    if len(found) > 1:
        given = "response" if response is not None else "slowest"
        raise AqmlabError(f"{given}: is of one run; found {len(found)} runs, name one of them")
    return story(found[0], response=response, slowest=slowest or 1, traffic=traffic)


def _draw(tale: Story, events: Events, output: Path, theme: Literal["light", "dark"]) -> str:
    """Writes the sequence diagram of a response; which file it is."""
    from aqmlab.figures.files import save
    from aqmlab.figures.sequence import sequence
    from aqmlab.figures.theme import Look

    return f"figure: {save(sequence(tale, events, Look(theme=theme)), output)}"


def _parts(groups: list[Group], changes: list[TimeChange], traffic: str | None) -> _Shown:
    """Of each class and queue a table and a paragraph, then the differences between queues."""
    by_label = {one.label: one for one in groups}
    parts: _Shown = []
    for reason in why.reasons(groups, traffic):
        parts += [*([""] if parts else []), why.band_table(by_label[reason.run], reason.traffic)]
        parts += ["", *textwrap.wrap(reason.text, _WIDTH)]
    for band in _COMPARED:
        for table in why.changes_tables(changes, band):
            parts += ["", table]
    for sentence in why.change_sentences(changes):
        parts += ["", *textwrap.wrap(sentence, _WIDTH)]
    return parts
