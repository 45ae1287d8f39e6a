"""Lines of tc, SQM's configuration and dumps of sysctl, as disciplines and stacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aqmlab._util.lazy import tomllib
from aqmlab.errors import AqmlabError
from aqmlab.scenario.foreign import Foreign, foreign
from conftest import Cli

pytestmark = pytest.mark.usefixtures("elsewhere")

FQ_CODEL = (
    "qdisc fq_codel 8001: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms "
    "interval 100ms memory_limit 32Mb ecn drop_batch 64 "
)
CAKE = (
    "qdisc cake 8006: dev eth1 root refcnt 2 bandwidth 20Mbit diffserv4 triple-isolate nat nowash "
    "ack-filter split-gso rtt 100ms noatm overhead 38 mpu 84 "
)
STATISTICS = """ Sent 1234 bytes 12 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
  maxpacket 0 drop_overlimit 0 new_flow_count 0 ecn_mark 0
  new_flows_len 0 old_flows_len 0
"""
SQM = """
config queue 'eth1'
	option enabled '1'
	option interface 'eth1'
	option download '85000'
	option upload '10000'
	option qdisc 'cake'
	option script 'piece_of_cake.qos'
	option linklayer 'atm'
	option overhead '44'
	option eqdisc_opts 'nat dual-srchost'
"""


def read(text: str) -> Foreign:
    """What is read of it."""
    found = foreign(text)
    assert found is not None
    return found


def table(text: str, key: str = "discipline") -> dict[str, object]:
    """The only table that a text becomes."""
    found: dict[str, object] = tomllib.loads(read(text).toml)[key]
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            FQ_CODEL,
            {"kind": "fq-codel", "limit": "10240 packets", "flows": 1024, "quantum": "1514 bytes",
             "target": "5 ms", "interval": "100 ms", "memory": f"{32 << 20} bytes", "ecn": True,
             "batch": 64, "root": "linux"},
        ),
        (
            CAKE,
            {"kind": "cake", "bandwidth": "20000000 bit/s", "tins": "diffserv4",
             "isolation": "triple", "ack_filter": "on", "rtt": "100 ms", "cells": "none",
             "overhead": 38, "mpu": 84, "root": "linux"},
        ),
        (
            "qdisc pie 8002: root refcnt 2 limit 1000p target 15ms tupdate 16ms alpha 2 beta 20",
            {"kind": "pie", "limit": "1000 packets", "qdelay_ref": "15 ms", "t_update": "16 ms",
             "alpha": 0.125, "beta": 1.25, "rules": "linux"},
        ),
        ("tc qdisc add dev eth0 root pfifo limit 50", {"kind": "droptail", "limit": "50 packets"}),
        ("qdisc bfifo 8003: root limit 15000b", {"kind": "droptail", "limit": "15000 bytes"}),
        (
            "qdisc sfq 1: root limit 127p quantum 1514b depth 9 flows 9/8 perturb 10sec divisor 8",
            {"kind": "sfq", "limit": "127 packets", "quantum": "1514 bytes", "depth": 9,
             "buckets": 8, "perturb": "10 s"},
        ),
    ],
)  # fmt: skip
def test_a_line_of_tc_is_a_discipline(line: str, expected: dict[str, object]) -> None:
    assert table(f"tc: {line}") == expected


def test_what_has_no_counterpart_is_named() -> None:
    assert read(f"tc: {CAKE}").without == ("cake nat", "cake split-gso")
    assert read("tc: qdisc fq_codel 0: root limit 10p turbo").without == ("fq_codel turbo",)
    paced = read("tc: qdisc fq 8001: root refcnt 2 limit 10000p")
    assert not paced.toml
    assert "pacing" in paced.without[0]


def test_the_whole_output_of_tc_has_a_queue_for_each_device() -> None:
    Path("queues").write_text(f"{FQ_CODEL}\n{STATISTICS}{CAKE}\n{STATISTICS}", encoding="utf-8")
    found = read("queues")
    assert found.toml.count("discipline =") == 2
    assert "# eth0" in found.toml
    assert found.without == ("cake nat of eth1", "cake split-gso of eth1")


def test_a_shaper_has_a_rate() -> None:
    assert read("tc: qdisc tbf 1: root rate 10Mbit burst 5Kb lat 50ms").toml == (
        'rate = "10000000 bit/s"'
    )


@pytest.mark.parametrize("is_file", [False, True])
def test_sqm_is_a_bottleneck(*, is_file: bool) -> None:
    if is_file:
        Path("sqm").write_text(SQM, encoding="utf-8")
    found = read("sqm" if is_file else f"sqm: {SQM}")
    both = tomllib.loads(found.toml)["topology"]["bottleneck"]
    assert both["forward"]["rate"] == "85000 kbit/s"
    assert both["reverse"]["discipline"] == {
        "kind": "cake", "tins": "besteffort", "isolation": "dual-srchost", "overhead": 44,
        "cells": "atm", "root": "linux",
    }  # fmt: skip
    assert found.without == ("cake nat",)


def test_uci_show_is_the_same() -> None:
    text = "sqm.eth1=queue\nsqm.eth1.download='5000'\nsqm.eth1.upload='900'\n"
    both = tomllib.loads(read(f"sqm: {text}sqm.eth1.qdisc='fq_codel'").toml)["topology"]
    assert both["bottleneck"]["reverse"]["rate"] == "900 kbit/s"
    assert both["bottleneck"]["forward"]["discipline"]["kind"] == "fq-codel"


def test_a_dump_of_sysctl_is_a_stack() -> None:
    Path("dump").write_text(
        "net.core.default_qdisc = fq\nnet.ipv4.tcp_congestion_control = bbr\n"
        "net.ipv4.tcp_ecn = 1\nnet.ipv4.tcp_rmem = 4096\t131072\t33554432\n"
        "net.ipv4.tcp_slow_start_after_idle = 0\nnet.ipv4.tcp_tso_win_divisor = 3\n",
        encoding="utf-8",
    )
    assert table("dump", "tcp") == {
        "profile": "linux", "congestion_control": "bbr1", "ecn": True,
        "receive_buffer": "33554432 bytes", "restart_after_idle": False, "pacing": "linux",
    }  # fmt: skip
    assert read("dump").without == ("net.ipv4.tcp_tso_win_divisor = 3",)


def test_a_host_without_rack_is_the_older_one() -> None:
    found = table("sysctl: net.ipv4.tcp_sack = 0; net.ipv4.tcp_dsack = 1", "tcp")
    assert found == {"profile": "linux-classic", "recovery": "new-reno"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tc: qdisc magic 8001: root", 'tc: found "magic"; expected a queue'),
        ("tc: qdisc fq_codel 8001: root limit many", 'tc: limit: found "many"; expected'),
        ("tc: qdisc codel 1: root target 5parsecs", 'tc: target: found "5parsecs"; expected'),
        ("tc: qdisc red 1: root limit 300000b", "tc: topology.bottleneck"),
        ("sqm: nothing", "sqm: found no download"),
        ("sqm: option download fast\noption upload 1", "sqm: download: found 'fast'"),
        ("sysctl: net.ipv4.tcp_sack", 'sysctl: found "net.ipv4.tcp_sack"; expected NAME = VALUE'),
        ("sysctl: net.ipv4.tcp_ecn = maybe", 'found "maybe"; expected a whole number'),
        ("sysctl: net.ipv4.tcp_rmem = 1", 'found "1"; expected three numbers'),
    ],
)
def test_what_cannot_be_read_is_one_error(aqmlab: Cli, text: str, message: str) -> None:
    with pytest.raises(AqmlabError, match=r"expected|missing") as caught:
        foreign(text)
    assert message in str(caught.value)
    answer = aqmlab("explain", text)
    assert answer.status == 2
    assert message in answer.err


def test_explain_prints_it_and_names_the_rest(aqmlab: Cli) -> None:
    result = aqmlab("explain", f"tc: {CAKE}")
    assert result.out.startswith('discipline = { kind = "cake", bandwidth = "20000000 bit/s"')
    assert "no counterpart: cake nat" in result.err
    said = json.loads(aqmlab("explain", f"tc: {CAKE}", "--json").out)
    assert said["kind"] == "tc"
    assert said["without"] == ["cake nat", "cake split-gso"]
