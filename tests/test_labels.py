"""Labels say what differs between runs, and nothing that is not so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aqmlab import Run, Scenario
from aqmlab.results.families import families, family_titles
from aqmlab.results.labels import distinguish
from aqmlab.scenario.catalog import Catalog
from conftest import SMALL

QUEUE = "topology.bottleneck.discipline"
FORWARD = "topology.bottleneck.forward.discipline"
REVERSE = "topology.bottleneck.reverse.discipline"


def run(*overrides: tuple[str, str], busy: str = "forward", path: str = "a", **more: Any) -> Run:
    """A run of the small scenario in which some directions were busy."""
    scenario = Scenario.from_toml(SMALL, overrides)
    links = {
        direction: {"utilization": 0.9 if direction in busy else 0.1}
        for direction in ("forward", "reverse")
    }
    return Run.in_memory(scenario.data, {"links": {"bottleneck": links}}, path=path, **more)


def labels(*runs: Run) -> list[str]:
    """The labels that tell runs apart."""
    return [found.label for found in distinguish(runs)]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("droptail-240", "droptail-240"),
        ('{ kind = "droptail", limit = "240 packets" }', "droptail-240"),
        ('{ kind = "droptail", limit = "20 packets" }', "droptail 20"),
        ('{ kind = "droptail", limit = "64 KiB" }', "droptail 64 KiB"),
        ("dcn-24", "dcn-24"),
        ("ared-auto", "ared-auto"),
        ('{ preset = "ared-auto", ecn = true }', "ared-auto ECN"),
        ("ared-new-gentle-12-36", "ared-new-gentle-12-36"),
        ("fq-codel", "fq-codel"),
        ('{ preset = "fq-codel", limit = "99 packets" }', "fq-codel (limit 99)"),
        ('{ preset = "dcn-24", q_ref = "30 packets" }', "dcn (q_ref 30)"),
        (
            '{ kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "60 packets" }',
            "red (5,15)",
        ),
    ],
)
def test_a_discipline_has_the_name_of_its_preset(value: str, name: str) -> None:
    """Or of its kind, with what tells it from the presets."""
    assert run((QUEUE, value)).label == name


def test_every_preset_has_a_label_of_its_own() -> None:
    """No two of them have the same name."""
    for name in Catalog.load().summaries("presets"):
        assert run((QUEUE, name), ("topology.bottleneck.rate", "100 Mbit/s")).label == name


def test_a_label_is_about_the_loaded_direction() -> None:
    """An upload behind fq-codel is not called by the queue of its download."""
    office = ((FORWARD, "droptail-240"), (REVERSE, "fq-codel"))
    assert run(*office, busy="reverse").label == "fq-codel"
    assert run(*office, busy="forward").label == "droptail-240"
    both = run(*office, busy="forward reverse").label
    assert both == "download droptail-240, upload fq-codel"


def test_rows_are_called_by_what_differs() -> None:
    """The direction that is the same in all of them is left out, and which one differs is said."""
    rows = [
        run((FORWARD, name), (REVERSE, "pie"), busy="forward reverse", path=name)
        for name in ("droptail-240", "fq-codel")
    ]
    assert labels(*rows) == ["download droptail-240", "download fq-codel"]


def test_a_queue_that_nobody_loads_is_named_with_its_direction() -> None:
    """The loaded upload has the same queue in both rows: neither may be called fq-codel alone."""
    rows = [
        run((FORWARD, name), (REVERSE, "pie"), busy="reverse", path=name)
        for name in ("droptail-240", "fq-codel")
    ]
    assert labels(*rows) == [
        "pie, download droptail-240",
        "pie, download fq-codel",
    ]


def test_a_field_says_which_direction_and_class_it_is_of() -> None:
    """What holds for both directions is said once."""
    rate = "topology.bottleneck.{}rate"
    both = [run((rate.format(""), value), path=value) for value in ("1 Mbit/s", "2 Mbit/s")]
    assert labels(*both) == ["droptail 20, rate 1 Mbit/s", "droptail 20, rate 2 Mbit/s"]
    one = [run((rate.format("reverse."), value), path=value) for value in ("1 Mbit/s", "3 Mbit/s")]
    assert labels(*one)[0] == "droptail 20, upload rate 1 Mbit/s"
    users = [run(("traffic.fetches.rate", value), path=value) for value in ("5 /s", "6 /s")]
    assert labels(*users) == ["droptail 20, rate 5 /s", "droptail 20, rate 6 /s"]


def test_runs_of_unlike_loads_are_called_by_their_load() -> None:
    """Not by the users that the calibration found."""
    rows = [
        run(("traffic.fetches.rate", f"{rate} /s"), path=str(rate), metadata={"load": rate / 50})
        for rate in (20, 40)
    ]
    assert labels(*rows) == ["droptail 20, load 40 %", "droptail 20, load 80 %"]


def test_parameters_tell_apart_what_names_do_not() -> None:
    """Two queues of the same thresholds."""
    red = '{{ kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "{} packets" }}'
    rows = [run((QUEUE, red.format(limit)), path=str(limit)) for limit in (60, 90)]
    assert labels(*rows) == ["red (5,15), limit 60", "red (5,15), limit 90"]


def test_a_transport_stands_for_its_keys() -> None:
    """A table that a scenario leaves out has the defaults of its transport."""
    kind, datagram = "traffic.fetches.transport", "traffic.fetches.quic.datagram"
    tcp, short = run(path="tcp"), run((kind, "quic"), path="short")
    long = run((kind, "quic"), (datagram, "1452 bytes"), path="long")
    assert labels(tcp, short) == ["droptail 20, transport tcp", "droptail 20, transport quic"]
    assert labels(short, long) == [
        f"droptail 20, datagram {size} bytes" for size in ("1200", "1452")
    ]


def test_a_live_run_says_so_behind_its_queue() -> None:
    one = run((QUEUE, '{ kind = "droptail", limit = "50000 bytes" }'))
    for valid, end in ((True, ", live"), (False, ", live (invalid)")):
        found = replace(one, summary={**one.summary, "live": {"valid": valid}})
        assert found.queue_label == f"droptail 50000 bytes{end}"


def test_the_seed_comes_last() -> None:
    """Whatever else differs."""
    red = '{{ kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "{} packets" }}'
    rows = [
        run((QUEUE, red.format(limit)), ("seed", str(seed)), path=f"{limit}-{seed}")
        for limit in (60, 90)
        for seed in (1, 2)
    ]
    assert labels(*rows)[1:3] == ["red (5,15), limit 60, seed 2", "red (5,15), limit 90, seed 1"]


def test_labels_that_somebody_gave_stay() -> None:
    """A sweep knows what it varied."""
    assert labels(run(label="queue = a"), run(label="queue = b", path="b")) == [
        "queue = a",
        "queue = b",
    ]


def test_runs_of_one_scenario() -> None:
    """The same title or the same users, on the same network with the same classes."""
    first = run()
    kinds = [
        (run((QUEUE, "fq-codel"), path="b"), True),
        (run(("title", "Another"), path="b"), True),
        (run(("traffic.fetches.rate", "5 /s"), ("seed", "4"), path="b"), True),
        (run(("traffic.fetches.rate", "5 /s"), ("title", "Another"), path="b"), False),
        (run(("traffic.fetches.name", "pages"), path="b"), False),
    ]
    for other, same in kinds:
        assert len(families([first, other])) == (1 if same else 2), other.scenario


def test_a_run_may_link_two_that_look_unlike() -> None:
    """It has the title of the one and the users of the other."""
    other = ("title", "Another"), ("traffic.fetches.rate", "5 /s")
    strangers = [run(), run(*other)]
    assert families(strangers) == [[0], [1]]
    assert families([*strangers, run(other[1])]) == [[0, 1, 2]]


def test_scenarios_have_names_of_their_own() -> None:
    """Titles, and the first run where titles agree."""
    pages = run(("traffic.fetches.name", "pages"), path=str(Path("runs/pages")))
    title = "Small fetches over a slow link"
    assert family_titles([[run()], [pages]]) == [f"{title} (a)", f"{title} (pages)"]
    assert family_titles([[run(), run(("title", "Other"))]]) == [f"{title} / Other"]
