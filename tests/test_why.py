"""``aqmlab why``: the parts of response times in tables, sentences, stories and figures.

Numbers are checked on made-up breakdowns, whose parts are known.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from aqmlab.errors import AqmlabError
from aqmlab.results import why
from aqmlab.results.breakdown import (
    BANDS,
    CAUSES,
    Band,
    broken_down_classes,
    by_cause,
    check_breakdown,
    mean_times,
    part,
)
from aqmlab.results.groups import group
from aqmlab.results.run import Run
from aqmlab.results.statistics import paired_difference
from aqmlab.results.story import story
from broken_down import PARTS, broken_down, two_queues
from figure_runs import draw, figure_runs, rows, title

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab._util.table import TableModel
    from conftest import Cli


def _number(text: str) -> float:
    """The first number of a cell."""
    return float(text.partition(" ")[0].replace(",", ""))


def _column(table: TableModel, place: int) -> dict[str, str]:
    """A column of a table by its first cells."""
    return {row[0].text: row[place].text for row in table.rows}


def test_every_part_of_the_engine_has_a_name_and_a_cause() -> None:
    for key in PARTS:
        assert part(key).story, key
        assert part(key).cause in CAUSES, key
    assert part("wait_my_link_reverse").at == ("my_link", "reverse")
    assert part("ring_bottleneck_forward").cause.name == "queues"


def test_the_parts_of_a_band_add_up_to_its_response_time() -> None:
    for run in two_queues():
        for band in BANDS:
            found = Band.of(run.summary, "all", band)
            assert found is not None
            assert math.fsum(found.parts.values()) == pytest.approx(found.response_s, rel=1e-9)
            causes = by_cause(found.parts)
            assert math.fsum(causes.values()) == pytest.approx(found.response_s, rel=1e-9)


def test_rows_of_a_table_add_up_to_the_response_time() -> None:
    [first, _] = group(two_queues())
    table = why.band_table(first, "all")
    assert [column.head for column in table.columns] == ["part", *BANDS.values()]
    for place in range(1, 5):
        column = _column(table, place)
        whole = _number(column["response time"])
        parts = [_number(text) for text in list(column.values())[:-4]]
        assert sum(parts) == pytest.approx(whole, abs=0.5 * len(parts))
    assert "other parts" in _column(table, 1)
    assert "delayed ACK" not in _column(table, 1)
    assert _column(table, 1)["responses"] == "200"
    assert _column(table, 4)["responses"] == "2"


def test_a_part_that_has_no_name_is_shown_by_its_key() -> None:
    run = _with_part(broken_down("droptail 20", 100, 0.05), "head_of_line_s", 1.5)
    [one] = group([run])
    column = _column(why.band_table(one, "all"), 1)
    assert _number(column["head of line"]) == 1500


def _with_part(run: Run, key: str, value: float) -> Run:
    """A run whose responses took longer for another reason."""
    bands = {
        band: {**found, key: value, "response_s": found["response_s"] + value}
        for band, found in run.summary["breakdown"]["all"].items()
    }
    return replace(run, summary={**run.summary, "breakdown": {"all": bands, "fetches": bands}})


def test_a_paragraph_says_what_slow_responses_wait_for() -> None:
    groups = group(two_queues())
    texts = [one.text for one in why.reasons(groups)]
    red = mean_times(groups[1], "all", "slowest_10")
    timers = red["timeout"].mean + red["syn_timeout"].mean
    share = f"{100 * timers / red['response'].mean:.0f} % of their time"
    assert "The slowest 10 % of responses under red (5,15) take" in texts[1]
    assert f"The slowest spend {share} waiting for a timer before a lost packet" in texts[1]
    assert "(dropped by a queue before it was full)" in texts[1]
    assert "A sender that gets no answer waits for this timer" in texts[1]
    assert "in the queue of the download" in texts[0]


def test_differences_between_queues_are_taken_seed_by_seed() -> None:
    seeds = (1, 2, 3, 4)
    runs = two_queues(seeds)
    found = why.changes(group(runs))
    [one] = [c for c in found if (c.part, c.band) == ("timeout", "slowest_10")]
    assert (one.run, one.baseline) == ("red (5,15)", "droptail 20")
    assert one.basis == "4 pairs of runs"
    values: list[list[float]] = [[], []]
    for number, run in enumerate(runs):
        band = Band.of(run.summary, "all", "slowest_10")
        assert band is not None
        values[number // len(seeds)].append(band.parts["timeout"])
    expected = paired_difference(*values, bounds=(0.0, math.inf))  # type: ignore[arg-type,misc]
    assert one.estimate == expected
    changes = {c.part: c.estimate.mean for c in found if c.band == "all"}
    assert math.fsum(changes[key] for key in changes if key != "response") == pytest.approx(
        changes["response"], rel=1e-9
    )


def test_a_sentence_says_what_a_queue_changes() -> None:
    [text] = why.change_sentences(why.changes(group(two_queues())))
    assert text.startswith("Against droptail 20, the slowest 10 % of responses take 528 ms longer")
    assert "950 ms more waiting for a timer before a lost packet is sent again" in text
    assert "381 ms less in queues" in text


def test_a_run_without_a_breakdown_is_refused() -> None:
    run = broken_down("droptail 20", 100, 0.05)
    bare = replace(run, summary={k: v for k, v in run.summary.items() if k != "breakdown"})
    with pytest.raises(AqmlabError, match=r"--set measure\.breakdown=true"):
        check_breakdown([run, bare])
    with pytest.raises(AqmlabError, match=r"--set measure\.breakdown=true"):
        draw.why([bare])


def test_an_unknown_class_is_refused() -> None:
    groups = group(two_queues())
    assert broken_down_classes(groups) == ["all"]
    assert broken_down_classes(groups, "fetches") == ["fetches"]
    with pytest.raises(AqmlabError, match="class: found fetch; did you mean"):
        broken_down_classes(groups, "fetch")


def test_a_story_is_of_the_response_that_was_asked_for() -> None:
    run = broken_down("red (5,15)", 90, 0.15)
    table = run.read("breakdown")
    assert table is not None
    times = table["response_ns"].to_pylist()
    ranked = sorted(times, reverse=True)
    for rank in (1, 7, 200):
        found = story(run, slowest=rank)
        assert found.response_ns == ranked[rank - 1]
        assert found.rank == rank
        assert times[found.number - 1] == found.response_ns
        assert sum(found.parts.values()) == found.response_ns
        again = story(run, response=found.number)
        assert again.row == found.row
        assert again.rank == rank


def test_a_story_names_parts_counts_and_the_loss() -> None:
    found = story(broken_down("red (5,15)", 90, 0.15))
    table = found.table()
    counts = {row[0].text: row[3].text for row in table.rows}
    assert counts["time-out"] == "1 expiry"
    assert counts["propagation, slow start"] == "4 trips"
    assert counts["queue, download"] == "-"
    [loss] = found.losses()
    assert "a segment with data was dropped (reason: early) in the download queue" in loss
    assert "sent again 1,000.000 ms after its first transmission" in loss
    best = story(broken_down("red (5,15)", 90, 0.15), slowest=200)
    assert best.losses() == ["No packet that this response waited for was lost."]


def test_a_story_that_is_not_there_is_refused() -> None:
    run = broken_down("red (5,15)", 90, 0.15)
    with pytest.raises(
        AqmlabError, match="response: found 201; the run has the responses 1 to 200"
    ):
        story(run, response=201)
    with pytest.raises(AqmlabError, match="slowest: found 201; there are 200 responses"):
        story(run, slowest=201)
    with pytest.raises(AqmlabError, match="class: found pages"):
        story(run, traffic="pages")


def test_stacked_bars_are_as_high_as_response_times() -> None:
    runs = two_queues((1, 2))
    chart = draw.why(runs)
    pieces = rows(chart, "cause", "low", "high", "place")
    tops = _tops(pieces)
    for found in group(runs):
        for band in BANDS:
            expected = mean_times(found, "all", band)["response"].mean
            heights = [top for (place, _), top in tops.items() if place == found.label]
            assert any(
                top == pytest.approx(expected * scale, rel=1e-9)
                for top in heights
                for scale in (1, 1e3)
            )
    assert title(chart).startswith("Mean response time of the slowest 10 %")


def test_the_headline_of_stacked_bars_says_what_got_better_in_seconds() -> None:
    """The whole, then the cause with most of the change; over seeds only where it is clear."""
    runs = two_queues((1,))
    first, second = (
        {key: one.mean for key, one in mean_times(found, "all", "slowest_10").items()}
        for found in group(runs)
    )
    said = title(draw.why(runs))
    verb = "cuts" if second["response"] < first["response"] else "raises"
    ends = [float(f"{one['response']:.3g}") for one in (first, second)]
    assert f"{verb} the mean response time of the slowest 10 %" in said
    assert f"from {ends[0]:g} to {ends[1]:g} s (one seed); most of it: " in said
    assert said.endswith(" s")
    unclear = title(draw.why(two_queues((1, 2))))
    assert "does not clearly differ" in unclear
    assert "most of it" not in unclear


def test_plots_of_stacked_bars_share_one_axis() -> None:
    """The same ends and ticks; only the first of a row says what it is."""
    chart = draw.why(two_queues((1,))).to_dict()
    axes = [plot["encoding"]["y"] for plot in chart["concat"]]
    assert len(axes) == 4
    assert len({str(axis["scale"]["domain"]) for axis in axes}) == 1
    assert len({str(axis["axis"]["values"]) for axis in axes}) == 1
    assert [axis.get("title") is not None for axis in axes] == [True, False, False, False]


def _tops(pieces: list[dict[str, Any]]) -> dict[tuple[str, int], float]:
    """The height of each bar: pieces follow each other from zero up."""
    found: dict[tuple[str, int], float] = {}
    number = 0
    for piece in pieces:
        number += piece["low"] == 0
        found[piece["place"], number] = max(found.get((piece["place"], number), 0), piece["high"])
    return found


def test_bars_stand_along_a_parameter() -> None:
    scenarios = []
    for users, share in ((20, 0.02), (30, 0.1), (40, 0.3)):
        run = broken_down("droptail 20", 100, share)
        traffic: list[dict[str, Any]] = [dict(run.scenario["traffic"][0])]
        traffic[0]["rate"] = f"{users} /s"
        scenarios.append(replace(run, scenario={**run.scenario, "traffic": traffic}))
    chart = draw.why(scenarios, x="rate", band="all")
    places = list(dict.fromkeys(piece["place"] for piece in rows(chart, "cause", "place")))
    assert places == ["20 /s", "30 /s", "40 /s"]


# --- Real runs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return figure_runs(tmp_path_factory.mktemp("runs"), seeds=(1, 2))


def test_every_response_of_a_run_is_the_sum_of_its_parts(real: list[Run]) -> None:
    for run in real:
        table, responses = run.read("breakdown"), run.read("responses")
        assert table is not None
        assert responses is not None
        names = [name for name in table.column_names if name.endswith("_ns")]
        parts = [table[name].to_numpy() for name in names if name != "response_ns"]
        times = table["response_ns"].to_numpy()
        assert (sum(parts) == times).all()
        assert times / 1e9 == pytest.approx(responses["response_s"].to_numpy(), abs=1e-9)
        assert table["flow"].to_pylist() == responses["flow"].to_pylist()


def test_bands_of_the_summary_are_those_of_the_rows(real: list[Run]) -> None:
    for run in real:
        table = run.read("breakdown")
        assert table is not None
        band = Band.of(run.summary, "all", "all")
        assert band is not None
        assert band.count == table.num_rows
        for key, time in band.parts.items():
            if f"{key}_ns" in table.column_names:
                mean = table[f"{key}_ns"].to_numpy().mean() / 1e9
                assert time == pytest.approx(mean, rel=1e-9, abs=1e-15), key
            else:
                assert time == 0, key
        for name in BANDS:
            found = Band.of(run.summary, "all", name)
            assert found is not None
            assert math.fsum(found.parts.values()) == pytest.approx(found.response_s, rel=1e-9)


def test_every_part_of_a_run_has_a_name(real: list[Run]) -> None:
    table = real[0].read("breakdown")
    assert table is not None
    named = [n[:-3] for n in table.column_names if n.endswith("_ns") and n != "response_ns"]
    assert [key for key in named if not part(key).story] == []
    assert {key for key in named if part(key).at is None} >= set(PARTS)


def test_the_command_prints_tables_and_sentences(
    aqmlab: Cli, real: list[Run], tmp_path: Path
) -> None:
    places = [str(run.path) for run in real]
    found = aqmlab("why", *places, "--class", "pages")
    assert found.status == 0, found.err
    assert "The slowest 10 % of responses of pages under red (5,15) take" in found.out
    assert "slowest 10 % of pages against droptail 20: change in ms" in found.out
    assert "95 % intervals, 2 pairs of runs" in found.out
    content = json.loads(aqmlab("why", *places, "--json").out)
    assert {one["class"] for one in content["why"]} == {"all", "fetches", "pages"}
    lines = aqmlab("why", *places, "--tsv").out.splitlines()
    assert len(lines) == 1 + len(places) * 3 * len(BANDS)
    assert "timeout_s" in lines[0].split("\t")
    markdown = aqmlab("why", places[0], "--format", "markdown").out
    assert "| part | all | slowest 50 % |" in markdown
    picture = tmp_path / "why.svg"
    assert aqmlab("plot", "why", *places, "-o", str(picture)).status == 0
    assert "slowest 10 %" in picture.read_text()


def test_a_part_is_a_metric_like_others(real: list[Run]) -> None:
    name = "breakdown.pages.slowest_10.timeout_s"
    [first, _] = group(real)
    expected = [run.summary["breakdown"]["pages"]["slowest_10"]["timeout_s"] for run in first.runs]
    assert list(first.values(name).values()) == expected
    chart = draw.parameter(real, metric=name)
    assert {round(row["y"], 6) for row in rows(chart, "series", "y")}


def test_the_command_tells_the_story_of_a_response(aqmlab: Cli, real: list[Run]) -> None:
    place = str(real[0].path)
    slowest = aqmlab("why", place, "--slowest", "1", "--json")
    row = json.loads(slowest.out)
    table = real[0].read("breakdown")
    assert table is not None
    assert row["response_ns"] == max(table["response_ns"].to_pylist())
    said = aqmlab("why", place, "--response", str(row["response"])).out
    assert f"response {row['response']:,} of droptail 20, seed 1" in said
    assert "By time it is number 1 of" in said


def test_what_the_command_cannot_do_is_said(aqmlab: Cli, real: list[Run], small: Path) -> None:
    places = [str(run.path) for run in real]
    answer = aqmlab("why", *places, "--slowest", "1")
    assert answer.status == 2
    assert "--slowest: is of one run; found 4 runs" in answer.err
    answer = aqmlab("why", places[0], "--class", "page")
    assert answer.status == 2
    assert "--class: found page; did you mean" in answer.err
    answer = aqmlab("run", str(small), "--out", "runs/plain")
    answer = aqmlab("why", "runs/plain")
    assert answer.status == 2
    assert "--set measure.breakdown=true" in answer.err
