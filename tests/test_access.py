"""``aqmlab init --kind isp``: plans, and the two files of LibreQoS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aqmlab import Scenario, run
from aqmlab.errors import AqmlabError
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
    assert all(it.speeds[0].rate is None for it in (*numbered.nodes, *numbered.plans))


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


def test_wrong_networks_are_refused(tmp_path: Path) -> None:
    rows = [row("c1", "B", "1,1,9,9")]
    twice = {"A": node(9, 9, children={"B": node(9, 9)}), "B": node(9, 9)}
    assert "B: found twice" in refusal(tmp_path, rows, twice)
    assert "A.downloadBandwidthMbps" in refusal(tmp_path, rows, {"A": node(-1, 9)})
    deep: dict[str, Any] = {}
    for level in range(8, 0, -1):
        deep = {f"N{level}": node(9, 9, children=deep)}
    assert "N8: found at depth 8" in refusal(tmp_path, rows, deep)


def test_the_tree_is_a_scenario_that_runs(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(f"""
        measure = {{ warm_up = "1 s", duration = "4 s" }}
        [topology]
        kind = "dumbbell"
        hosts = {{ clients = 4 }}
        [topology.bottleneck.reverse]
        rate = "100 Mbit/s"
        discipline = {{ kind = "droptail", limit = "1000 packets" }}
        [topology.bottleneck.forward]
        rate = "100 Mbit/s"
        {plans_of("10/10", 4, (1e8, 1e8)).text("forward")}
        [[traffic]]
        name = "bulk"
        kind = "bulk"
        flows = 4
        tcp = "linux"
        direction = "forward"
        rtt = {{ kind = "constant", rtt = "20 ms" }}
    """)
    made = run(scenario, out_dir=tmp_path / "run")
    # Four hosts with a ceiling of 10 Mbit/s each, of a link of 100.
    forward = made.summary["links"]["bottleneck"]["forward"]
    assert 0.36 < forward["utilization"] < 0.42
