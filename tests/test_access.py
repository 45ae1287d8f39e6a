"""``aqmlab init --kind isp``: plans, and the two files of LibreQoS."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aqmlab import Run, Scenario, run
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario.access import plans_of
from aqmlab.scenario.libreqos import read_access

LINK = (1e9, 1e9)
HEADER = (
    "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,"
    "Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment,sqm"
)


def node(down: float, up: float, **more: object) -> dict[str, Any]:
    """A node as network.json has it."""
    return {"downloadBandwidthMbps": down, "uploadBandwidthMbps": up, "type": "Site", **more}


NETWORK = {
    "Tower": node(
        500,
        250,
        children={
            "Village": node(450, 200, virtual=True, children={"AP 1": node(200.7, 80)}),
            "Relay": node(0, 0),
        },
    )
}


def row(circuit: str, parent: str, rates: str, sqm: str = "") -> str:
    """A line of a device."""
    return f'{circuit},"Street 1, Town",d,router,{parent},,"192.0.2.1, 192.0.2.2",,{rates},,{sqm}'


def files(folder: Path, rows: list[str], network: object = None) -> tuple[Path, Path]:
    """The two files."""
    tree, circuits = folder / "network.json", folder / "ShapedDevices.csv"
    tree.write_text(json.dumps(NETWORK if network is None else network))
    circuits.write_text("\n".join(["# synthetic", HEADER, *rows]) + "\n")
    return tree, circuits


def refusal(folder: Path, rows: list[str], network: object = None) -> str:
    """The message that refuses the files."""
    with pytest.raises(AqmlabError) as caught:
        read_access(*files(folder, rows, network), LINK)
    return str(caught.value)


def test_plans_are_dealt_by_their_shares() -> None:
    access = plans_of("100/20:0.6,500/50:0.3,25/5:0.1", 401, (1e9, 5e8))
    assert [(plan.name, plan.count) for plan in access.plans] == [
        ("plan-100-20", 241),
        ("plan-500-50", 120),
        ("plan-25-5", 40),
    ]
    assert access.hosts == 401
    assert 'ceil = "20 Mbit/s"' in access.text("reverse")
    assert 'ceil = "500 Mbit/s"' in access.text("reverse")  # the tower's


@pytest.mark.parametrize("wrong", ["100/20:none", "100/20:0", "x/20:1", "100/20:1,100/20:2"])
def test_wrong_plans_are_refused(wrong: str) -> None:
    with pytest.raises(AqmlabError, match="--plans"):
        plans_of(wrong, 10, LINK)


def test_nodes_and_circuits_become_a_tree(tmp_path: Path) -> None:
    rows = [
        row("c1", "AP 1", "1,1,100,20"),
        row("c2", "AP 1", "1,1,100,20", "cake / fq_codel"),
        row("c2", "AP 1", "1,1,50,20", "none"),
        row("c3", "Village", "25,5,25,5"),
        row("c4", "AP 1", "1,1,100,20"),
    ]
    access = read_access(*files(tmp_path, rows), LINK, names=True)
    nodes = [(it.name, it.parent, it.speeds[0].ceil / 1e6) for it in access.nodes]
    assert nodes == [("Tower", None, 500), ("AP-1", "Tower", 200), ("Relay", "Tower", 500)]
    assert [it.speeds[0].rate for it in access.nodes] == [499e6, 199e6, 499e6]
    plans = [(it.parent, it.count, it.hosts, it.speeds[1].leaf) for it in access.plans]
    assert plans == [
        ("AP-1", 2, 1, None),
        ("AP-1", 1, 2, '"fq-codel"'),
        ("Tower", 1, 1, None),
    ]
    # The minimum is the maximum: a Mbit/s less.
    assert access.plans[2].speeds[0].rate == 24e6
    assert any("the first device of c2 decides" in it for it in access.warnings)
    assert any(it.startswith("Tower is over-subscribed") for it in access.warnings)
    numbered = read_access(*files(tmp_path, rows), LINK, fit=True)
    assert [it.name for it in numbered.nodes] == ["node-1", "node-2", "node-3"]
    assert all(it.speeds[0].rate is None for it in numbered.nodes)
    assert all(it.speeds[0].rate is None for it in numbered.plans)


def test_a_flat_network_has_all_below_the_link(tmp_path: Path) -> None:
    access = read_access(*files(tmp_path, [row("c1", "AP 1", "1,1,2,4")], {}), LINK)
    assert (access.nodes, access.plans[0].parent) == ((), None)
    assert access.plans[0].speeds[0].leaf == '{ kind = "cake", rtt = "180 ms" }'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (row("c1", "AP 9", "1,1,100,20"), ":3: Parent Node: found AP 9"),
        (row("c1", "AP 1", "fast,1,100,20"), ":3: Download Min Mbps: found fast"),
        (row("", "AP 1", "1,1,100,20"), ":3: Circuit ID: found nothing"),
        (row("c1", "AP 1", "1,30,100,20"), ":3: Upload Min Mbps: found 30; expected at most"),
        (row("c1", "AP 1", "1,1,100,20", "red"), ":3: sqm: found red"),
        (row("c1", "AP 1", "1,1,100,20", "cake,cake"), ":3: found 15 fields; expected 14"),
    ],
)
def test_wrong_lines_are_refused_by_line_and_column(
    tmp_path: Path, line: str, message: str
) -> None:
    assert message in refusal(tmp_path, [line])


def test_all_wrong_lines_are_named(tmp_path: Path) -> None:
    rows = [row("c1", "AP 9", "1,1,9,9"), row("c2", "AP 1", "1,1,9,9"), row("", "AP 1", "1,1,9,9")]
    assert refusal(tmp_path, rows).endswith("; wrong, too: line 5")


def test_a_circuit_has_one_parent(tmp_path: Path) -> None:
    rows = [row("c1", "AP 1", "1,1,9,9"), row("c1", "Relay", "1,1,9,9")]
    assert ":4: Parent Node: found Relay, but circuit c1 is below AP 1" in refusal(tmp_path, rows)


def test_a_row_is_what_quotes_and_line_ends_say(tmp_path: Path) -> None:
    quoted = row("c2", "AP 1", "1,1,100,20").replace("Street 1, ", "Street 1,\u2028\n")
    apart = row("c3", "AP 1", "1,1,100,20").replace('"Street 1, Town",', ' "Street 1, Town" ,')
    tree, circuits = files(tmp_path, [row("c1", "AP 1", "1,1,100,20"), quoted, apart])
    for path in (tree, circuits):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert [plan.count for plan in read_access(tree, circuits, LINK).plans] == [3]
    open_quote = row("c1", "AP 1", "1,1,100,20").replace('Town"', "Town")
    assert ":3: found a quote that does not end" in refusal(tmp_path, [open_quote])
    huge = row("c1", "AP 1", "1,1,100,20").replace("Town", "x" * 200_000)
    assert "a field of more than 128 kB" in refusal(tmp_path, [huge])


def test_headers_are_refused_by_column(tmp_path: Path) -> None:
    tree, circuits = files(tmp_path, [row("c1", "AP 1", "1,1,100,20")])
    good = circuits.read_text()
    for written, message in (
        (good.replace("Upload Max Mbps,", ""), ":2: column Upload Max Mbps is missing"),
        (good.replace("MAC", "Parent Node"), ":2: column Parent Node: found twice"),
        (good.replace(",", ";"), ":2: found no comma"),
        ("", "found no circuit"),
    ):
        circuits.write_text(written)
        with pytest.raises(AqmlabError, match=message):
            read_access(tree, circuits, LINK)
    circuits.write_bytes(good.encode("utf-16"))
    with pytest.raises(AqmlabError, match="expected text in UTF-8"):
        read_access(tree, circuits, LINK)


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "1_0", "10 Mbps", "1e6", "\u0661", ""])
def test_rates_are_plain_numbers(tmp_path: Path, rate: str) -> None:
    said = refusal(tmp_path, [row("c1", "AP 1", f"1,1,{rate},20")])
    assert f":3: Download Max Mbps: found {rate or 'nothing'}; expected Mbit/s" in said


def test_addresses_are_looked_at(tmp_path: Path) -> None:
    rates = "1,1,100,20"
    other = row("c2", "AP 1", rates).replace("192.0.2.1, ", "300.0.2.1, ")
    access = read_access(
        *files(tmp_path, [row("c1", "AP 1", rates), row("c1", "AP 1", rates), other]), LINK
    )
    about = [it.partition(": ")[2] for it in access.warnings if "simulation uses none" in it]
    assert about == [
        "line 5: found an address that another circuit has; the simulation uses none",
        "line 5: found text that is no IP address; the simulation uses none",
    ]


def test_names_that_differ_in_signs_only_stay_apart(tmp_path: Path) -> None:
    network = {"Ä 1": node(9, 9), "Ö 1": node(9, 9)}
    access = read_access(*files(tmp_path, [row("c1", "Ö 1", "1,1,9,9")], network), LINK, names=True)
    assert ([it.name for it in access.nodes], access.plans[0].parent) == (["1", "1-2"], "1-2")


def test_no_circuit_has_more_than_the_link(tmp_path: Path) -> None:
    access = read_access(*files(tmp_path, [row("c1", "", "1,1,5000,20")]), LINK)
    assert access.plans[0].speeds[0].ceil == LINK[0]


def test_nodes_without_a_rate_have_their_parents(tmp_path: Path) -> None:
    network = {"A": node(9, 9, children={"B": {"type": "AP"}, "C": node(0.5, 5)})}
    access = read_access(*files(tmp_path, [row("c1", "B", "1,1,9,9")], network), LINK)
    assert [it.speeds[0].ceil for it in access.nodes] == [9e6, 9e6, 9e6]
    assert any(": B: state no rate; the parent's rate holds" in it for it in access.warnings)
    assert any(": C: state less than 1 Mbit/s" in it for it in access.warnings)


def test_wrong_networks_are_refused(tmp_path: Path) -> None:
    rows = [row("c1", "B", "1,1,9,9")]
    twice = {"A": node(9, 9, children={"B": node(9, 9)}), "B": node(9, 9)}
    assert "B: found twice" in refusal(tmp_path, rows, twice)
    assert "A.downloadBandwidthMbps" in refusal(tmp_path, rows, {"A": node(-1, 9)})
    for wrong, message in (
        ({"A": node(9, 9, virtual="no")}, 'A.virtual: found "no"; expected true or false'),
        ({"A": node(9, 9, children=None)}, "A.children: found null; expected nodes by name"),
        ({"A": node(float("inf"), 9)}, "A.downloadBandwidthMbps: found Infinity"),
        ({"A": [1]}, "A: found [1]; expected a table"),
        ({" ": node(9, 9)}, "found a node without a name"),
        ({"Bb": node(9, 9)}, "Parent Node: found B; expected a node of the network, such as Bb"),
    ):
        assert message in refusal(tmp_path, rows, wrong)
    tree, circuits = files(tmp_path, rows)
    tree.write_text("[" * 100_000)
    with pytest.raises(AqmlabError, match="too deep to read"):
        read_access(tree, circuits, LINK)
    deep: dict[str, Any] = {}
    for level in range(8, 0, -1):
        deep = {f"N{level}": node(9, 9, children=deep)}
    assert "N8: found at depth 8" in refusal(tmp_path, rows, deep)


def scenario(tree: str, clients: int = 4, more: str = "") -> Scenario:
    """Long transfers to hosts behind a tree, on a link of 100 Mbit/s."""
    return Scenario.from_toml(f"""
        measure = {{ warm_up = "1 s", duration = "4 s" }}
        [topology]
        kind = "dumbbell"
        hosts = {{ clients = {clients} }}
        [topology.bottleneck.reverse]
        rate = "100 Mbit/s"
        discipline = {{ kind = "droptail", limit = "1000 packets" }}
        [topology.bottleneck.forward]
        rate = "100 Mbit/s"
        {tree}
        [[traffic]]
        name = "bulk"
        kind = "bulk"
        flows = {clients}
        tcp = "linux"
        direction = "forward"
        rtt = {{ kind = "constant", rtt = "20 ms" }}
        {more}
    """)


def utilization(made: Run) -> float:
    """The share of the time in which the link is busy."""
    return float(made.summary["links"]["bottleneck"]["forward"]["utilization"])


def test_no_host_has_more_than_its_plan(tmp_path: Path) -> None:
    tree = plans_of("10/10", 4, (1e8, 1e8)).text("forward")
    # Four hosts with a ceiling of 10 Mbit/s each, of a link of 100.
    assert 0.36 < utilization(run(scenario(tree), out_dir=tmp_path / "run")) < 0.42


def test_rates_change_during_a_run(tmp_path: Path) -> None:
    tree = plans_of("10/10", 4, (1e8, 1e8)).text("forward")
    key = "bottleneck.forward.discipline.nodes.tower.ceil"
    change = f'[[changes]]\nat = "3 s"\nkey = "{key}"\nvalue = "20 Mbit/s"'
    changed = run(scenario(tree, more=change), out_dir=tmp_path / "run")
    # Of 4 measured seconds 2 have 40 Mbit/s and 2 have 20.
    assert 0.26 < utilization(changed) < 0.34


DEEP = ", ".join(f"n{n} = {{ parent = 'n{n - 1}', ceil = '1 Mbit/s' }}" for n in range(2, 9))
PLAN = "plans = { home = { count = 4, ceil = '10 Mbit/s' } }"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("nodes = { ap = { parent = 'x', ceil = '1 Mbit/s' } }", "nodes.ap.parent: found x; no"),
        (
            (
                "nodes = { a = { parent = 'b', ceil = '1 Mbit/s' }, "
                "b = { parent = 'a', ceil = '1 Mbit/s' } }"
            ),
            "nodes.a.parent: found b; it is below a itself",
        ),
        (
            "nodes = { ap = { count = 2, ceil = '1 Mbit/s' }, 'ap-1' = { ceil = '1 Mbit/s' } }",
            "two nodes of the name ap-1",
        ),
        (
            "nodes = { n1 = { ceil = '1 Mbit/s' }, " + DEEP + " }",
            "nodes.n8.parent: found a depth above 7",
        ),
        (
            "nodes = { a = { rate = '2 Mbit/s', ceil = '1 Mbit/s' } }",
            "nodes.a.ceil: found 1 Mbit/s",
        ),
        ("nodes = { a = { rate = 'x', ceil = '1 Mbit/s' } }", 'or "fit"'),
        ("unknown = 'gold'", "unknown: found gold; it must be"),
        ("leaf = { kind = 'cake', bandwidth = '1 Mbit/s' }", "leaf: found cake with a bandwidth"),
        ("leaf = 'gold'", "gold"),
        ("leaf = 'htb'", "leaf: found htb; a leaf has no shaper of its own"),
        ("leaf = 'shaper'", "leaf: found shaper; a leaf has no shaper of its own"),
        ("quantum = '0 bytes'", "quantum: found 0 bytes; it must be at least 1 byte"),
        (
            "nodes = { a = { count = 4000000000, ceil = '1 Mbit/s' } }",
            "nodes.a.count: found 4000000000; it must be at most 1000000",
        ),
    ],
)
def test_wrong_trees_are_refused(keys: str, message: str) -> None:
    leaf = "" if keys.startswith("leaf") else "leaf = 'fq-codel', "
    with pytest.raises(ScenarioError, match=re.escape(message)):
        scenario(f"discipline = {{ kind = 'htb', {leaf}{keys}, {PLAN} }}")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("count = 4000000000", "plans.home.count: found 4000000000; it must be at most 1000000"),
        ("count = 2000, hosts = 2000", "plans: found 4000000 hosts; the plans have at most"),
        ("count = 4, quantum = '0 bytes'", "plans.home.quantum: found 0 bytes"),
    ],
)
def test_wrong_plans_of_trees_are_refused(keys: str, message: str) -> None:
    plans = f"plans = {{ home = {{ {keys}, ceil = '10 Mbit/s' }} }}"
    with pytest.raises(ScenarioError, match=re.escape(message)):
        scenario(f"discipline = {{ kind = 'htb', leaf = 'fq-codel', {plans} }}")


def test_plans_have_the_hosts_of_the_topology() -> None:
    tree = f"discipline = {{ kind = 'htb', leaf = 'fq-codel', {PLAN} }}"
    with pytest.raises(ScenarioError, match="found 5; the plans of the tree have 4 hosts"):
        scenario(tree, clients=5)


def test_strict_refuses_what_is_over_subscribed() -> None:
    nodes = "nodes = { a = { rate = '2 Mbit/s', ceil = '3 Mbit/s' } }"
    plans = "plans = { home = { parent = 'a', count = 4, rate = '1 Mbit/s', ceil = '3 Mbit/s' } }"
    tree = f"discipline = {{ kind = 'htb', leaf = 'fq-codel', {nodes}, {plans}"
    scenario(f"{tree} }}")
    with pytest.raises(ScenarioError, match=r"over-subscribed 2\.00 times"):
        scenario(f"{tree}, strict = true }}")
