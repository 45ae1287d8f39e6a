"""Subscribers of an access network: results by plan and node, hosts of plans, who held a packet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from aqmlab import Run, Scenario, run
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.results import subscribers
from conftest import Cli
from figure_runs import draw

FORWARD = ("links", "bottleneck", "forward")


def scenario(homes: int, measure: str = "") -> Scenario:
    """Homes with 4 Mbit/s each below two access points of 20 Mbit/s, and offices with 20."""
    return Scenario.from_toml(f"""
        [measure]
        warm_up = "1 s"
        duration = "4 s"
        {measure}
        [topology]
        kind = "dumbbell"
        hosts = {{ clients = {homes + 2} }}
        [topology.bottleneck]
        rate = "100 Mbit/s"
        discipline = {{ kind = "droptail", limit = "1000 packets" }}
        [topology.bottleneck.forward.discipline]
        kind = "htb"
        leaf = "fq-codel"
        nodes.tower = {{ ceil = "100 Mbit/s" }}
        nodes.ap = {{ parent = "tower", count = 2, ceil = "20 Mbit/s" }}
        plans.home = {{ parent = "ap", count = {homes}, ceil = "4 Mbit/s" }}
        plans.office = {{ parent = "tower", count = 2, ceil = "20 Mbit/s" }}
        [[traffic]]
        name = "bulk"
        kind = "bulk"
        plans = ["home"]
        flows = {homes}
        tcp = "linux"
        rtt = {{ kind = "constant", rtt = "20 ms" }}
        [[traffic]]
        name = "pages"
        kind = "poisson"
        plans = ["office"]
        rate = "20 /s"
        request = {{ kind = "constant", size = "400 bytes" }}
        response = {{ kind = "constant", size = "10 kB" }}
        rtt = {{ kind = "constant", rtt = "20 ms" }}
    """)


def parts(made: Run, by: str) -> Any:
    """What a run measured of the download by plan or node."""
    values: Any = made.summary
    for key in (*FORWARD, by):
        values = values[key]
    return values


def test_plans_and_nodes_have_results_of_their_own(tmp_path: Path, aqmlab: Cli) -> None:
    steady = {"measure.warm_up": "2 s"}  # slow start is over
    made = run(
        scenario(4, 'record = ["responses"]').with_overrides(steady), out_dir=tmp_path / "run"
    )
    plans, nodes = parts(made, "plans"), parts(made, "nodes")
    assert list(plans) == ["home", "office"]
    assert list(nodes) == ["ap-1", "ap-2", "tower"]
    home, office = plans["home"], plans["office"]
    # A packet is charged 14 bytes beside its IP bytes.
    assert 15e6 < home["throughput_bps"] < 16e6
    assert home["at_ceiling"] > 0.9
    assert office["at_ceiling"] < 0.2
    assert home["subscribers_jain"] > 0.99
    assert (home["subscribers"], nodes["ap-1"]["subscribers"]) == (4, 2)
    # 8 Mbit/s of 20: nobody waits for the access points.
    assert nodes["ap-1"]["at_ceiling"] < 0.05
    both = home["left_packets"] + office["left_packets"]
    assert nodes["tower"]["left_packets"] == both
    assert 0 < home["dropped_packets"] == nodes["tower"]["dropped_packets"]
    assert home["sojourn_p99_s"] > office["sojourn_p50_s"]
    for by, words in (
        ("plan", ["home", "office", "pages", "p95 s"]),
        ("node", ["ap-1", "at ceil"]),
    ):
        printed = aqmlab("show", made.path, "--by", by).out
        assert all(word in printed for word in words), printed


def test_full_access_points_hold_their_subscribers(tmp_path: Path) -> None:
    made = run(scenario(20), out_dir=tmp_path / "run")
    nodes = parts(made, "nodes")
    assert min(nodes[f"ap-{number}"]["at_ceiling"] for number in (1, 2)) > 0.9
    assert nodes["tower"]["at_ceiling"] < 0.05
    assert parts(made, "plans")["home"]["at_ceiling"] < 0.3


def test_records_grow_with_subscribers_only_if_they_are_asked_for(tmp_path: Path) -> None:
    few, many = (run(scenario(homes), out_dir=tmp_path / str(homes)) for homes in (2, 40))
    assert set(parts(few, "plans")) == set(parts(many, "plans"))
    assert not (many.path / "subscribers.parquet").exists()
    asked = run(scenario(4, 'record = ["subscribers"]'), out_dir=tmp_path / "asked")
    rows = pl.DataFrame(asked.subscribers).filter(pl.col("link") == "bottleneck")
    assert rows["plan"].to_list() == ["home"] * 4 + ["office"] * 2
    assert rows["node"].to_list() == ["ap-1", "ap-2"] * 2 + ["tower"] * 2
    assert rows["client"].to_list() == [0, 1, 2, 3, 4, 5]
    home = rows.filter(pl.col("plan") == "home")
    assert home["left_packets"].sum() == parts(asked, "plans")["home"]["left_packets"]
    assert min(home["at_ceiling_s"]) > 3


def test_a_class_is_at_the_hosts_of_its_plans(tmp_path: Path) -> None:
    made = run(scenario(3, 'record = ["responses", "flows"]'), out_dir=tmp_path / "run")
    pages = pl.DataFrame(made.responses).filter(pl.col("class") == "pages")
    assert set(pages["client"]) == {3, 4}
    assert set(subscribers.response_times(made)) == {("office", "pages")}
    assert subscribers.count(made.scenario) == 5
    with pytest.raises(ScenarioError, match=r"traffic\.pages\.plans: found gold; no tree of rates"):
        scenario(3).with_overrides({"traffic.pages.plans": '["gold"]'})


def test_why_names_the_node_that_held_a_packet(tmp_path: Path, aqmlab: Cli) -> None:
    busy = scenario(20, "breakdown = true").with_overrides({"traffic.pages.plans": '["home"]'})
    made = run(busy, out_dir=tmp_path / "run")
    told = aqmlab("why", made.path, "--slowest", "1").out
    assert "ms, ap-1 (ceil))" in told or "ms, ap-2 (ceil))" in told, told


FLAT = {
    "topology.bottleneck.forward.discipline": "droptail-240",
    "traffic.bulk.plans": "[]",
    "traffic.pages.plans": "[]",
}


def test_a_run_without_a_tree_has_no_plans(tmp_path: Path, aqmlab: Cli) -> None:
    made = run(scenario(2).with_overrides(FLAT), out_dir=tmp_path / "run")
    assert not {"plans", "nodes"} & set(made.summary["links"]["bottleneck"]["forward"])
    answer = aqmlab("show", made.path, "--by", "node")
    assert answer.status == 2
    assert "--by node:" in answer.err
    assert "has no tree of rates" in answer.err


def test_metrics_are_drawn_along_subscribers(tmp_path: Path) -> None:
    made = [run(scenario(homes), out_dir=tmp_path / str(homes)) for homes in (2, 6)]
    drawn = draw.parameter(made, metric="delay", x="subscribers")
    assert "subscribers" in str(drawn.to_dict())
    flat = run(scenario(2).with_overrides(FLAT), out_dir=tmp_path / "flat")
    with pytest.raises(AqmlabError, match="has no tree of rates"):
        draw.parameter([flat, made[0]], x="subscribers")
