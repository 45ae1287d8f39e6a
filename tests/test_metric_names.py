"""Names of metrics say of which link and direction, or of which class they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aqmlab import AqmlabError, Run
from aqmlab.results.links import LinkDirection
from aqmlab.results.metric_groups import grouped
from aqmlab.results.metrics import (
    GROUPED,
    SHORT_NAMES,
    flattened,
    number,
)
from aqmlab.results.quantity import Quantity
from conftest import SMALL, Cli

UPLOADS = SMALL.replace("[[traffic]]", '[[traffic]]\ndirection = "reverse"')
BULK = SMALL.partition("[[traffic]]")[0] + (
    '[[traffic]]\nname = "files"\nkind = "bulk"\nflows = 2\n'
    'rtt = { kind = "constant", rtt = "50 ms" }\n'
)
LIMITS = (
    '[[axes]]\nfield = "topology.bottleneck.discipline.limit"\n'
    'values = ["9 packets", "40 packets"]\n'
)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("queue.reverse", "links.bottleneck.reverse.queue_mean_packets"),
        ("loss.core-1.forward", "links.core-1.forward.loss_rate"),
        ("p50", "responses.all.p50_s"),
        ("p50.web", "responses.web.p50_s"),
        ("responses", "responses.all.count"),
        ("responses.web", "responses.web.count"),
        ("responses.web.p50_s", "responses.web.p50_s"),
        ("goodput.files", "flows.files.goodput_bps"),
        ("links.a.forward.utilization", "links.a.forward.utilization"),
    ],
)
def test_a_name_is_one_number(name: str, key: str) -> None:
    """Of summary.json."""
    assert Quantity.read(name).key == key
    assert Quantity.read(name).about == Quantity.read(key).about


def test_a_link_has_to_be_named() -> None:
    """Where one number is wanted; else a name stands for every loaded direction."""
    with pytest.raises(AqmlabError, match=r"queue\.forward and queue\.reverse are of the bottle"):
        _ = Quantity.read("queue").key
    with pytest.raises(AqmlabError, match="does not say of which link and direction"):
        Quantity.read("queue.upwards")
    loaded = [LinkDirection("bottleneck", "reverse"), LinkDirection("core-1", "forward")]
    assert {one.name: one.key for one in Quantity.read("queue").among(loaded)} == {
        "queue.reverse": "links.bottleneck.reverse.queue_mean_packets",
        "queue.core-1.forward": "links.core-1.forward.queue_mean_packets",
    }
    [alone] = Quantity.read("p50").among(loaded)
    assert (alone.name, alone.key) == ("p50", "responses.all.p50_s")


@pytest.mark.parametrize("name", ["queue.", "mos", "mos.", "p", "links.bottleneck", "queue.a.b"])
def test_what_names_no_number_has_no_key(name: str) -> None:
    with pytest.raises(AqmlabError):
        _ = Quantity.read(name).key


def test_a_number_of_a_link_is_of_its_busiest_direction() -> None:
    """What is known of it comes from the engine."""
    links = {
        "a": {"forward": {"utilization": 0.2}, "reverse": {"utilization": 0.9, "loss_rate": 0.5}},
        "b": {"forward": {"utilization": 0.95, "loss_rate": 0.25}, "reverse": {}},
    }
    run = Run.in_memory({}, {"links": links}, label="run")
    for name, key, value in (
        ("loss", "links.b.forward.loss_rate", 0.25),
        ("links.a.loss_rate", "links.a.reverse.loss_rate", 0.5),
        ("loss.a.forward", "links.a.forward.loss_rate", None),
    ):
        found = Quantity.read(name).busiest([run])
        assert (found.key, found.of(run)) == (key, value)
        assert (found.label, found.unit, found.scale, found.bounds) == ("loss", "%", 100, (0, 1))
    with pytest.raises(AqmlabError, match="the results have no link c"):
        Quantity.read("links.c.loss_rate").busiest([run])


def test_a_sweep_shows_the_loaded_link(aqmlab: Cli) -> None:
    """An upload that is full; its precision is that of the upload's queue."""
    Path("office.toml").write_text(UPLOADS)
    Path("up.toml").write_text(
        'scenario = "office.toml"\nseeds = "1..2"\nprecision = "1% of queue"\nmax_seeds = 4\n'
        + LIMITS
    )
    answer = aqmlab("sweep", "up.toml", "--json")
    assert answer.status == 0
    for point in json.loads(answer.out)["points"]:
        assert list(point["estimates"]) == [
            "loss.reverse", "utilization.reverse", "queue.reverse", "p50", "p90", "p99",
        ]  # fmt: skip
        assert point["estimates"]["queue.reverse"]["mean"] > 0.5
        assert point["runs"] == 4
    assert "queue.reverse" in aqmlab("sweep", "up.toml").out


def test_a_sweep_of_bulk_transfers_shows_their_goodput(aqmlab: Cli) -> None:
    """And no response times, which they do not have."""
    Path("bulk.toml").write_text(BULK)
    Path("limits.toml").write_text('scenario = "bulk.toml"\n' + LIMITS)
    answer = aqmlab("sweep", "limits.toml", "--json")
    assert answer.status == 0
    for point in json.loads(answer.out)["points"]:
        names = list(point["estimates"])
        assert names[-2:] == ["goodput.files", "fairness.files"]
        assert not any(name.startswith("p") for name in names)
        assert point["estimates"]["goodput.files"]["mean"] > 1e6


def test_short_names_are_explained(aqmlab: Cli) -> None:
    """What stands at the head of a column can be asked for, with or without its place."""
    for name, key in (
        ("p50", "responses.<class>.p50_s"),
        ("jitter.call-up", "flows.<class>.datagram_jitter_s"),
        ("queue.reverse", "links.<link>.<direction>.queue_mean_packets"),
    ):
        assert aqmlab("explain", name).out.startswith(key)
    assert "did you mean p50_s or p50" in aqmlab("explain", "p50s").err
    assert len(aqmlab("explain", "xyzzy").err) < 200


def test_one_number_is_what_all_numbers_have() -> None:
    """Names of classes and links may have dots, and some keys hold no number."""
    summary = {
        "seed": 3,
        "simulated_s": 2.5,
        "valid": True,
        "responses": {"a": {"p50_s": 1.0, "x": 9.0}, "a.b": {"p50_s": 2.0}, "c": {"p50_s": None}},
        "links": {"core.1": {"forward": {"loss_rate": 0.25}}},
    }  # fmt: skip
    every = flattened(summary)
    wanted = [
        *every,
        "seed",
        "valid",
        "responses",
        "responses.a",
        "responses.d.p50_s",
        "links.core",
    ]
    assert {key: number(summary, key) for key in wanted} == {key: every.get(key) for key in wanted}


def test_names_are_listed_by_what_they_measure(aqmlab: Cli, small: Path) -> None:
    """Each once, none beside the groups; in the help of a search, and in its error."""
    every = [name for names in GROUPED.values() for name in names]
    assert sorted(every) == sorted(SHORT_NAMES)
    assert list(GROUPED)[:3] == ["links", "pages", "responses"]
    assert {"calls", "video", "fairness", "datagrams"} < set(GROUPED)
    assert "others" not in GROUPED
    assert grouped({"new": "elsewhere.all.new"}) == {"others": ["new"]}
    vary = ("--vary", "discipline.limit=9..40:whole")
    refused = aqmlab("tune", small, *vary, "--goal", "minimize nothing").err
    shown = " ".join(aqmlab("tune", "--help").out.split())
    for text in (refused, shown):
        assert "links: loss, marked, " in text
        assert "; calls: mos, mos_min; video: stall_ratio, " in text
        assert "; fairness: fairness; " in text
    assert len(refused.strip().splitlines()) == 1
