"""Warnings about what a scenario may say and hardly anybody wants."""

from pathlib import Path

import pytest
from aqmlab import Scenario
from conftest import ROOT, Cli

TEXT = """
title = "Two transfers"
measure = { warm_up = "1 s", duration = "2 s" }
[topology]
kind = "dumbbell"
bottleneck = { rate = "10 Mbit/s", discipline = { kind = "droptail", limit = "100 packets" } }
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 2
tcp = "linux"
rtt = { kind = "constant", rtt = "40 ms" }
"""
RATE, QUEUE = "topology.bottleneck.rate", "topology.bottleneck.discipline"
TCP = "traffic.bulk.tcp"
ECN = '{ profile = "linux", ecn = true }'
DCTCP = '{ profile = "linux", ecn = true, congestion_control = "dctcp" }'
PRAGUE = '{ profile = "linux", ecn = true, congestion_control = "prague", ecn_echo = "until-cwr" }'
CLASSIC = '{ profile = "linux", ecn = true, congestion_control = "dctcp", ecn_echo = "until-cwr" }'
MARKS = '{ kind = "codel", ecn = true }'


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({QUEUE: MARKS}, f"{QUEUE}.ecn: no traffic is ECN-capable, so codel drops"),
        ({TCP: DCTCP}, f"{TCP}.ecn: no queue of the network marks, so dctcp is Reno"),
        ({TCP: CLASSIC, QUEUE: MARKS}, f'{TCP}.ecn_echo: found "until-cwr", which repeats a mark'),
        ({TCP: PRAGUE, QUEUE: MARKS}, f'{TCP}.ecn_echo: found "until-cwr", which repeats a mark'),
        (
            {TCP: '{ profile = "linux", ecn = true, ect = "ect1" }', QUEUE: "dualpi2"},
            f'{TCP}.ect: found "ect1", which asks for the L4S service, with cubic',
        ),
        (
            {TCP: '{ profile = "linux", congestion_control = "vegas" }'},
            f"{TCP}.congestion_control: vegas takes the wait for a delayed ACK for a queue",
        ),
        ({"traffic.bulk.stop": "1 s"}, "traffic.bulk.stop: 1 s is not after measure.warm_up, 1 s"),
        ({RATE: "1 kbit/s"}, f"{RATE}: a packet of 1500 bytes takes 12 s at 1 kbit/s"),
        (
            {QUEUE: '{ kind = "droptail", limit = "1499 bytes" }'},
            f"{QUEUE}.limit: 1499 bytes hold no segment of 1500 bytes",
        ),
        (
            {
                QUEUE: '{ kind = "red", min_th = "30 packets", max_th = "90 packets", '
                'limit = "60 packets" }'
            },
            f"{QUEUE}.max_th: 90 packets exceed limit, 60 packets",
        ),
        (
            {QUEUE: "sfq", RATE: "1 Mbit/s"},
            f"{QUEUE}.limit: 127 packets, the default of sfq, take 1.52e+03 ms at 1 Mbit/s",
        ),
        (
            {QUEUE: '{ kind = "pi", limit = "9000 packets" }', RATE: "1 Gbit/s"},
            f"{QUEUE}.q_ref: 50 packets, the default of pi, take 0.6 ms at 1 Gbit/s",
        ),
        (
            {"traffic.bulk.limit": "12 Mbit/s"},
            "traffic.bulk.limit: 12 Mbit/s is above the rate of every link, 10 Mbit/s: ",
        ),
    ],
)
def test_what_hardly_anybody_wants_is_one_line(overrides: dict[str, str], line: str) -> None:
    [note] = Scenario.from_toml(TEXT).with_overrides(overrides).notes
    assert note.startswith(line)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {TCP: ECN},
        {TCP: ECN, QUEUE: MARKS},
        {QUEUE: "fq-codel"},
        {QUEUE: "sfq"},
        {"traffic.bulk.limit": "10 Mbit/s"},
        {
            "traffic.bulk.limit": "12 Mbit/s",
            "topology.bottleneck.rate_changes": '[{ at = "2 s", rate = "20 Mbit/s" }]',
        },
        {TCP: DCTCP, QUEUE: MARKS},
        {TCP: '{ profile = "linux", congestion_control = "vegas", ack_every = 1 }'},
    ],
)
def test_what_is_usual_is_not_warned_of(overrides: dict[str, str]) -> None:
    assert Scenario.from_toml(TEXT).with_overrides(overrides).notes == []


WARNED = {
    "scenarios/worst/prague.toml": "no queue of the network marks, so prague is Reno",
    "scenarios/worst/vegas.toml": "vegas takes the wait for a delayed ACK for a queue",
}
"""What is bad about the worst scenarios of some controls."""


@pytest.mark.parametrize(
    ("tree", "line"),
    [
        (
            "quantum = '300 bytes', plans = { home = { count = 4, ceil = '5 Mbit/s' } }",
            (
                f"{QUEUE}.quantum: found 300 bytes, and a packet is charged up to 1514 bytes: "
                "plans take turns in packets, not in bytes"
            ),
        ),
        (
            (
                "plans = { home = { count = 3, ceil = '5 Mbit/s' }, "
                "slow = { quantum = 'linux', rate = '100 kbit/s', ceil = '5 Mbit/s' } }"
            ),
            (
                f"{QUEUE}.plans.slow.quantum: found linux, 1250 bytes, and a packet is charged up "
                "to 1514 bytes: plans take turns in packets, not in bytes"
            ),
        ),
        (
            (
                "nodes = { a = { ceil = '5 Mbit/s' }, spare = { count = 3, ceil = '5 Mbit/s' } }, "
                "plans = { home = { parent = 'a', count = 3, ceil = '5 Mbit/s' }, "
                "one = { parent = 'spare-2', ceil = '5 Mbit/s' } }"
            ),
            (
                f"{QUEUE}.nodes.spare: found no subscriber below spare-1: name it as the parent of "
                "a plan, or leave it out (and 1 more)"
            ),
        ),
        (
            (
                "nodes = { site = { rate = '5 Mbit/s', ceil = '8 Mbit/s' }, "
                "ap = { parent = 'site', count = 2, rate = '4 Mbit/s', ceil = '8 Mbit/s' } }, "
                "plans = { home = { parent = 'ap', count = 4, ceil = '8 Mbit/s' } }"
            ),
            (
                f"{QUEUE}.nodes.site.rate: over-subscribed 1.60 times: the ceiling of site will "
                "not hold"
            ),
        ),
        (
            (
                "nodes = { ap = { count = 2, ceil = '8 Mbit/s' } }, plans = { home = "
                "{ parent = 'ap', count = 4, rate = '4 Mbit/s', ceil = '8 Mbit/s' } }"
            ),
            (
                f"{QUEUE}.nodes.ap.rate: over-subscribed 1.60 times: the ceiling of ap-1 will "
                "not hold (and 1 more)"
            ),
        ),
    ],
)
def test_what_hardly_anybody_wants_of_a_tree_is_one_line(tree: str, line: str) -> None:
    hosts = 'kind = "dumbbell"\nhosts = { clients = 4, servers = 1 }'
    scenario = Scenario.from_toml(TEXT.replace('kind = "dumbbell"', hosts))
    overrides = {QUEUE: f"{{ kind = 'htb', leaf = 'fq-codel', {tree} }}"}
    assert scenario.with_overrides(overrides).notes == [line]


def test_no_other_scenario_that_ships_is_warned_of() -> None:
    folders = [ROOT / "scenarios", ROOT / "papers"]
    files = [file for folder in folders for file in folder.rglob("*.toml")]
    files = [file for file in files if "[topology" in file.read_text()]
    assert len(files) > 30
    for file in files:
        notes = Scenario.load(file).notes
        wanted = WARNED.get(file.relative_to(ROOT).as_posix())
        if wanted is None:
            assert notes == [], file
        else:
            [note] = notes
            assert wanted in note


def test_run_and_compare_warn_once(aqmlab: Cli) -> None:
    Path("dctcp.toml").write_text(TEXT.replace('tcp = "linux"', f"tcp = {DCTCP}"))
    warning = f"warning: {TCP}.ecn: no queue of the network marks, so dctcp is Reno\n"
    answer = aqmlab("run", "dctcp.toml")
    assert (answer.status, answer.err.count(warning)) == (0, 1)
    queues = ", ".join(f'{{kind="droptail",limit="{n} packets"}}' for n in (9, 50))
    answer = aqmlab("compare", "dctcp.toml", "--vary", f"{QUEUE}={queues}")
    assert (answer.status, answer.err.count(warning)) == (0, 1)


def test_a_sweep_says_each_note_once(aqmlab: Cli, tmp_path: Path) -> None:
    """However many of its points it is about."""
    (tmp_path / "two.toml").write_text(TEXT)
    file = tmp_path / "sweep.toml"
    file.write_text(
        'scenario = "two.toml"\nseeds = [1, 2]\n'
        f'[set]\n"{QUEUE}" = {MARKS}\n'
        '[[axes]]\nfield = "traffic.bulk.flows"\nvalues = [1, 2]\n'
    )
    answer = aqmlab("sweep", file)
    assert answer.status == 0
    assert answer.err.count(f"warning: {QUEUE}.ecn: no traffic is ECN-capable") == 1
