"""The scenarios of `scenarios/modern` do what the papers that they are taken from say.

Papers' figures are recalled, so orderings and wide bounds are held, not curves. Some runs are
shorter than the papers'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aqmlab
import numpy as np
import pyarrow.compute as pc
import pytest
from aqmlab import Run, Scenario
from conftest import ROOT

FOLDER = ROOT / "scenarios/modern"
QUEUE = "topology.bottleneck.discipline"
UP = "topology.bottleneck.reverse.discipline"
PIE = '{ kind = "pie", qdelay_ref = "20 ms", t_update = "32 ms", limit = "40000 packets" }'


def made(name: str, **overrides: str) -> Run:
    """A run of a scenario, with some keys replaced; a key's dots are written as `__`."""
    scenario = Scenario.load(FOLDER / f"{name}.toml")
    return aqmlab.run(
        scenario.with_overrides({key.replace("__", "."): it for key, it in overrides.items()})
    )


def queue(name: str, discipline: str | None, **overrides: str) -> Run:
    """A run with some discipline in both directions, or with the scenario's own."""
    if discipline is not None:
        overrides |= {QUEUE.replace(".", "__"): discipline, UP.replace(".", "__"): discipline}
    return made(name, **overrides)


def forward(run: Run, link: str = "bottleneck") -> Mapping[str, Any]:
    """What a run says of the way down."""
    found: Mapping[str, Any] = run.summary["links"][link]["forward"]
    return found


def delays(run: Run, begin: float, end: float) -> np.ndarray[Any, Any]:
    """Bits that wait on the way down, within a window; over the rate they are a delay."""
    table = run.queue
    assert table is not None
    rows = table.filter(
        (pc.field("link").cast("string") == "bottleneck")
        & (pc.field("direction").cast("string") == "forward")
        & (pc.field("time_s") >= begin)
        & (pc.field("time_s") < end)
    )
    waiting: np.ndarray[Any, Any] = rows.column("bytes").to_numpy()
    return waiting * 8.0


@pytest.mark.parametrize(
    ("flows", "least", "most"), [("pi2-5tcp", 0.010, 0.030), ("pi2-50tcp", 0.010, 0.030)]
)
def test_pi2_holds_the_delay_near_its_target(flows: str, least: float, most: float) -> None:
    """PI2 figure 11a and b: both controllers near 20 ms; the link stays busy."""
    for discipline in (None, PIE):
        run = (
            made(flows)
            if discipline is None
            else made(flows, **{QUEUE.replace(".", "__"): discipline})
        )
        settled = delays(run, 30, 100).mean() / 10e6
        assert least < settled < most, (discipline, settled)
        assert forward(run)["utilization"] > 0.9


def test_pi2_holds_it_against_datagrams_by_dropping_more() -> None:
    """PI2 figure 11c: 12 Mbit/s of datagrams over 10: at least a sixth is lost."""
    run = made("pi2-5tcp-2udp")
    assert 0.005 < delays(run, 50, 100).mean() / 10e6 < 0.060
    assert forward(run)["loss_rate"] > 0.167


def test_pi2_recovers_sooner_than_pie_when_the_rate_falls() -> None:
    """PI2 figure 13: the link falls from 100 to 20 Mbit/s.

    What is in flight makes the same peak of half a second behind both; PI2 has drained it sooner.
    """
    short = {"measure__duration": "100 s"}
    pi2 = made("pi2-capacity", **short)
    pie = made("pi2-capacity", **short, **{QUEUE.replace(".", "__"): PIE})
    means = [float(delays(run, 50, 52).mean()) / 20e6 for run in (pi2, pie)]
    assert means[0] < means[1] / 2, means
    peaks = [float(delays(run, 50, 60).max()) / 20e6 for run in (pi2, pie)]
    assert max(peaks) < 0.55, peaks
    assert 0.010 < delays(pi2, 60, 100).mean() / 20e6 < 0.030


def test_pi2_follows_the_load() -> None:
    """PI2 figure 14: near the target at 10, 30 and 50 flows."""
    run = made("pi2-intensity")
    for begin in (30, 80, 130, 180, 230):
        assert 0.008 < delays(run, begin, begin + 20).mean() / 10e6 < 0.040, begin


def ping(run: Run) -> float:
    """The median delay of the pings, down and up: where ACKs wait, downloads find no queue."""
    flows = run.summary["flows"]
    return sum(float(flows[name]["datagram_delay_p50_s"]) for name in ("ping-down", "ping-up"))


@pytest.mark.parametrize("rates", ["1-1", "10-1", "10-10", "100-100"])
def test_fair_queueing_takes_the_waiting_out_of_pings(rates: str) -> None:
    """Good, Bad, WiFi section 4: fq_codel below CoDel below pfifo_fast; goodput within 10 %."""
    short = {"measure__duration": "30 s"}
    name = f"gbw-rrul-{rates}"
    fifo = queue(name, '{ kind = "droptail", limit = "1000 packets" }', **short)
    codel = queue(name, '{ kind = "codel" }', **short)
    fair = queue(name, None, **short)
    pings = [ping(run) for run in (fair, codel, fifo)]
    assert pings[0] < min(pings[1:]), pings
    if rates != "100-100":  # there drop-tail's 1000 packets are 120 ms
        assert pings[1] < pings[2], pings
    goodput = [run.summary["flows"]["down"]["goodput_bps"] for run in (fair, codel)]
    assert goodput[0] > 0.85 * goodput[1], goodput


def test_cake_shares_among_hosts() -> None:
    """CAKE 2018: with triple isolation a host with four flows gets as much as one with one.

    The queue shares alike (`ck06` in crates/aqm holds 3 %); a single CUBIC flow does not quite fill
    its half behind a COBALT of 5 ms.
    """
    shares = {}
    for discipline in (
        '{ kind = "cake", bandwidth = "10 Mbit/s" }',
        '{ kind = "cake", bandwidth = "10 Mbit/s", isolation = "dual-dsthost" }',
        '{ kind = "cake", bandwidth = "10 Mbit/s", isolation = "flows" }',
    ):
        run = made("cake-hosts", topology__links__gateway__forward__discipline=discipline)
        flows = run.summary["flows"]
        single, busy = (flows[name]["goodput_bps"] for name in ("single", "busy"))
        shares[discipline] = single / (single + busy)
        # The shaper is the bottleneck: 10 Mbit/s of IP bytes on a link of 100.
        assert 0.096 < forward(run, "gateway")["utilization"] < 0.1005
    triple, dual, flat = shares.values()
    assert 0.4 < triple < 0.52, shares
    assert 0.4 < dual < 0.52, shares
    assert abs(flat - 0.2) < 0.03, shares


def test_the_ack_filter_helps_uploads() -> None:
    """CAKE 2018: the goodput of the thin way rises with the filter, the other keeps its own."""
    goodput = {}
    for level in ("off", "on", "aggressive"):
        discipline = f'{{ kind = "cake", bandwidth = "1 Mbit/s", ack_filter = "{level}" }}'
        run = made("cake-ackfilter", topology__bottleneck__reverse__discipline=discipline)
        flows = run.summary["flows"]
        goodput[level] = [flows[name]["goodput_bps"] for name in ("up", "down")]
        dropped = run.summary["links"]["bottleneck"]["reverse"]["drops"]["ack_filter"]
        assert (dropped > 0) == (level != "off")
    assert goodput["off"][0] < goodput["on"][0], goodput
    assert goodput["off"][0] < goodput["aggressive"][0], goodput
    assert goodput["on"][1] > 0.9 * goodput["off"][1], goodput


PRAGUE = (
    '{ profile = "linux", congestion_control = "prague", ecn = true, ect = "ect1", '
    'ect_on = "all-data", ecn_echo = "accurate" }'
)


def beside(rate: str, rtt: str, discipline: str, sender: str, **more: str) -> Run:
    """The scenario of docs/how-to/l4s.md: a sender beside a CUBIC flow."""
    page = (ROOT / "docs/how-to/l4s.md").read_text()
    text = page.split("```toml\n", 1)[1].split("```", 1)[0]
    constant = f'{{ kind = "constant", rtt = "{rtt}" }}'
    overrides = {
        "topology.bottleneck.rate": rate,
        QUEUE: discipline,
        "traffic.sender.tcp": sender,
        "traffic.sender.rtt": constant,
        "traffic.beside.rtt": constant,
    }
    overrides |= {key.replace("__", "."): it for key, it in more.items()}
    return aqmlab.run(Scenario.from_toml(text).with_overrides(overrides))


@pytest.mark.parametrize(
    ("rate", "rtt"),
    [
        pytest.param(
            40,
            20,
            marks=pytest.mark.xfail(
                raises=AssertionError,
                strict=True,
                reason="1.7: records/fidelity-modern.md, DualPI2: Prague beside CUBIC",
            ),
        ),
        (120, 5),
    ],
)
def test_dq20_prague_and_cubic_share_dualpi2(rate: int, rtt: int) -> None:
    """PI2 figures 15 to 19: about equal rates; at 40 Mbit/s and 20 ms within a factor of 1.5."""
    long = {"measure__warm_up": "40 s", "measure__duration": "60 s"}
    run = beside(f"{rate} Mbit/s", f"{rtt} ms", "dualpi2", PRAGUE, **long)
    flows = run.summary["flows"]
    ratio = flows["sender"]["goodput_bps"] / flows["beside"]["goodput_bps"]
    assert 1 / 1.5 < ratio < 1.5, ratio
    above = flows["sender"]["rtt_p50_s"] - rtt / 1000
    assert above < 0.002 < flows["beside"]["rtt_p50_s"] - rtt / 1000, above
    assert forward(run)["utilization"] > 0.95


def test_prague_starves_cubic_without_a_queue_of_its_own() -> None:
    """PI2 figures 15 to 19: with PIE a scalable control gets many times what CUBIC gets."""
    run = beside("40 Mbit/s", "20 ms", '{ kind = "pie", ecn = true }', PRAGUE)
    flows = run.summary["flows"]
    assert flows["sender"]["goodput_bps"] > 4 * flows["beside"]["goodput_bps"]


@pytest.mark.parametrize(
    ("depth", "modelled"),
    [
        (1, 0.97),
        pytest.param(
            2,
            0.78,
            marks=pytest.mark.xfail(
                raises=AssertionError,
                strict=True,
                reason="0.63 with each of three seeds: records/fidelity-modern.md, BBRv1",
            ),
        ),
        (10, 0.53),
    ],
)
def test_bbr_beside_cubic_gets_what_the_model_says(depth: int, modelled: float) -> None:
    """The model of Ware et al. 2019, within 0.15 of the line, one seed."""
    run = beside(
        "10 Mbit/s",
        "40 ms",
        f'{{ kind = "droptail", limit = "{round(33.3 * depth)} packets" }}',
        '{ profile = "linux", congestion_control = "bbr1" }',
        traffic__beside__tcp='"linux"',
        measure__warm_up="40 s",
        measure__duration="200 s",
    )
    flows = run.summary["flows"]
    rates = [flows[name]["goodput_bps"] for name in ("sender", "beside")]
    assert abs(rates[0] / sum(rates) - modelled) < 0.15, rates


L4S = {"measure__warm_up": "5 s", "measure__duration": "20 s"}


def both(run: Run, one: str, other: str) -> float:
    """The ratio of two classes' goodput."""
    flows = run.summary["flows"]
    return float(flows[one]["goodput_bps"] / flows[other]["goodput_bps"])


def l_delay(run: Run, name: str = "prague", rank: str = "p99") -> float:
    """A percentile of the delay that a class met on the way down."""
    return float(forward(run)["classes"][name][f"sojourn_{rank}_s"])


@pytest.mark.parametrize(
    ("rate", "rtt"),
    [
        ("12 Mbit/s", "20 ms"),
        ("40 Mbit/s", "50 ms"),
    ],
)
def test_prague_and_cubic_share_behind_dualpi2(rate: str, rtt: str) -> None:
    """arXiv 2209.01078: rates within a factor of two, the L4S queue's delay below 2 ms."""
    place = {f"traffic__{name}__rtt__rtt": rtt for name in ("prague", "cubic")}
    run = made("l4s-grid", **L4S, **place, topology__bottleneck__rate=rate)
    assert 0.5 < both(run, "prague", "cubic") < 2, run.summary["flows"]
    limit = 0.002 if rate == "40 Mbit/s" else 0.004  # a packet takes 1 ms at 12 Mbit/s
    assert l_delay(run) < limit
    assert forward(run)["utilization"] > 0.9


@pytest.mark.parametrize("prague", [2, 5, 8])
def test_unequal_numbers_share_per_flow(prague: int) -> None:
    """arXiv 2209.01078: the rate per flow within a factor of 2.5 in all mixes."""
    counts = {"traffic__prague__flows": str(prague), "traffic__cubic__flows": str(10 - prague)}
    run = made("l4s-counts", **L4S, **counts)
    per_flow = both(run, "prague", "cubic") * (10 - prague) / prague
    assert 0.4 < per_flow < 2.5, per_flow


def test_short_flows_leave_the_delay_of_l4s_low() -> None:
    """arXiv 2209.01078: median 0.1 to 0.3 ms and p99 below 2 ms under dynamic load."""
    run = made("l4s-dynamic", **L4S)
    assert l_delay(run, rank="p50") < 0.0005
    assert l_delay(run) < 0.002


def test_a_call_is_fine_behind_fair_queues_and_not_behind_drop_tail() -> None:
    """Good, Bad, WiFi: a score above 4.2 throughout with fq_codel."""
    short = {"measure__duration": "30 s"}
    fair = made("gbw-voip", **short).summary["quality"]
    assert min(fair[name]["mos_min"] for name in ("call-down", "call-up")) > 4.2, fair
    fifo = queue("gbw-voip", '{ kind = "droptail", limit = "1000 packets" }', **short)
    assert fifo.summary["quality"]["call-down"]["mos_mean"] < 3.6


def test_a_page_gets_its_share_behind_fair_queues() -> None:
    """Good, Bad, WiFi: pages under load; over one connection the share is a fifth of the link."""
    fair = made("gbw-web").summary["quality"]["pages"]["page_load_p50_s"]
    alone = made("gbw-web", traffic__down__flows="1", traffic__up__flows="1")
    assert fair < 1.5 * 3e6 * 8 / (10e6 / 5), fair
    assert alone.summary["quality"]["pages"]["page_load_p50_s"] < 0.6 * fair


def test_bbr_keeps_its_rate_under_random_loss() -> None:
    """BBR 2016 figure 8: at 1 % of loss BBR fills the link and CUBIC a few per cent of it."""
    short = {"measure__duration": "15 s"}
    bbr = made("bbr-loss", **short)
    cubic = made("bbr-loss", **short, traffic__flow__tcp__congestion_control='"cubic"')
    rates = [run.summary["flows"]["flow"]["goodput_bps"] / 100e6 for run in (bbr, cubic)]
    assert rates[0] > 0.85, rates
    assert rates[1] < 0.1, rates


def test_bbr_takes_its_share_in_deep_buffers() -> None:
    """Ware 2019: about 40 % for one flow whatever the number of CUBIC flows."""
    run = made("bbr-vs-cubic")
    flows = run.summary["flows"]
    bbr, cubic = (flows[name]["goodput_bps"] for name in ("bbr", "cubic"))
    share = bbr / (bbr + cubic)
    assert 0.25 < share < 0.55, share


def test_rack_takes_reordering_for_what_it_is() -> None:
    """RACK with D-SACK: most of the link with 1 % of packets 5 ms late, and few resends."""
    run = made("rack-reorder")
    flow = run.summary["flows"]["flow"]
    classic = made("rack-reorder", traffic__flow__tcp='"linux-classic"').summary["flows"]["flow"]
    assert flow["goodput_bps"] > 0.75 * 50e6, flow["goodput_bps"]
    assert flow["span_retransmitted_data"] <= classic["span_retransmitted_data"]
    assert flow["goodput_bps"] > classic["goodput_bps"]


def test_probes_repair_tails_before_the_timer_does() -> None:
    """RFC 8985, section 7: fewer than half of the time-outs, and the late answers come sooner."""
    stack = '{ profile = "linux", tail_loss_probe = "off" }'
    probing, waiting = made("rack-tail"), made("rack-tail", traffic__responses__tcp=stack)
    timeouts = [run.summary["flows"]["responses"]["span_timeouts"] for run in (probing, waiting)]
    assert timeouts[0] < timeouts[1] / 2, timeouts
    for rank in (0.98, 0.99):
        times = []
        for run in (probing, waiting):
            assert run.responses is not None
            times.append(float(np.quantile(run.responses["response_s"].to_numpy(), rank)))
        assert times[0] < times[1] - 0.05, (rank, times)


@pytest.mark.parametrize("servers", [10, 25, 35])
def test_dctcp_answers_at_once_without_a_time_out(servers: int) -> None:
    """DCTCP figure 18: none up to about 35 servers; with TCP of its day from 25 on always."""
    size = {"traffic__query__flows": str(servers), "traffic__query__size": f"{1000 // servers} kB"}
    reno = {
        "traffic__query__tcp": '{ profile = "linux-classic", congestion_control = "reno", '
        'rto_min = "10 ms", initial_window = 2 }',
        QUEUE.replace(".", "__"): '{ kind = "droptail", limit = "67 packets" }',
    }
    late = {"dctcp": 0, "reno": 0}
    for seed in range(1, 6):
        for control, keys in (("dctcp", {}), ("reno", reno)):
            run = made("dctcp-incast", seed=str(seed), **size, **keys)
            late[control] += run.summary["flows"]["query"]["span_timeouts"] > 0
    assert late["dctcp"] == 0
    assert late["reno"] == (5 if servers > 10 else 0)


def test_overload_costs_all_the_same_share_and_keeps_the_delays() -> None:
    """RFC 9332 section 4.2: both queues lose as one AQM would; 10 % stay for the classic one.

    CUBIC does not get those 10 %: it loses a third of its packets like all others, and a sender
    that answers losses sends next to nothing then. Datagrams do.
    """
    run = made("l4s-overload")
    flows = run.summary["flows"]
    lost = [flows[name]["datagram_loss_rate"] for name in ("flood", "classic")]
    assert abs(lost[0] - lost[1]) < 0.02, lost
    assert abs(lost[0] - (1 - 100 / 160)) < 0.02, lost
    assert flows["classic"]["goodput_bps"] > 10e6
    assert flows["cubic"]["goodput_bps"] < 2e6
    assert l_delay(run, "flood") < 0.015 < l_delay(run, "classic", "p50") < 0.020
    # Without drops the buffer of 250 ms is full, and the datagrams lock the others out.
    full = made("l4s-overload", **{f"{QUEUE.replace('.', '__')}__overload": '"overflow"'})
    assert forward(full)["drops"]["overflow"] > 0.9 * forward(full)["dropped_packets"]
    assert max(l_delay(full, name) for name in ("flood", "classic")) > 0.24


DCTCP_STEP = """
seed = 1
[measure]
warm_up = "1 s"
duration = "2 s"
queue_sample = "20 us"
record = ["queue"]
flow_trace = { flows = 2 }
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "1 Gbit/s"
framing = "none"
discipline = { kind = "step", threshold = "20 packets", limit = "1000 packets" }
[topology.bottleneck.reverse]
discipline = { kind = "droptail", limit = "10000 packets" }
[[traffic]]
name = "flows"
kind = "bulk"
flows = 1
start_within = "10 ms"
rtt = { kind = "constant", rtt = "200 us" }
[traffic.tcp]
profile = "linux"
congestion_control = "dctcp"
ecn = true
ecn_echo = "each-change"
ect_on = "all-packets"
"""


def stepped(rate: str, rtt: str, threshold: int, flows: int) -> tuple[Run, np.ndarray[Any, Any]]:
    """DCTCP flows over a step of marking: the run, and the queue's samples in packets."""
    overrides = {
        "topology.bottleneck.rate": rate,
        f"{QUEUE}.threshold": f"{threshold} packets",
        "traffic.flows.flows": str(flows),
        "traffic.flows.rtt.rtt": rtt,
    }
    run = aqmlab.run(Scenario.from_toml(DCTCP_STEP).with_overrides(overrides))
    table = run.queue
    assert table is not None
    rows = table.filter(
        (pc.field("link").cast("string") == "bottleneck")
        & (pc.field("direction").cast("string") == "forward")
    )
    return run, rows.column("packets").to_numpy()


@pytest.mark.parametrize("flows", [1, 2])
def test_dt07_a_step_at_a_seventh_of_the_path_keeps_the_link_busy(flows: int) -> None:
    """DCTCP section 3.3: K = 20 at 1 Gbit/s and 200 us, where C R / 7 is 2.4 packets."""
    run, queue = stepped("1 Gbit/s", "200 us", 20, flows)
    assert run.summary["flows"]["flows"]["goodput_bps"] > 0.94e9
    assert 0 < np.quantile(queue, 0.001) <= np.quantile(queue, 0.999) <= 25
    if flows > 1:
        assert run.summary["flows"]["flows"]["fairness_jain"] > 0.99


@pytest.mark.long_cases("10-100-65-2", "10-500-65-2")
@pytest.mark.parametrize(
    ("rate", "rtt", "threshold", "flows"),
    [
        (1, 200, 20, 1),
        (1, 1000, 20, 2),
        (1, 1000, 40, 4),
        (10, 100, 65, 2),
        (10, 500, 65, 2),
    ],
)
def test_the_queue_of_dctcp_swings_as_the_model_says(
    rate: int, rtt: int, threshold: int, flows: int
) -> None:
    """Section 3.3: up to K + N, and down by half of the root of 2 N (C R + K).

    Four packets were chosen with the runs in view: a guard against changes, not a score.
    """
    _, queue = stepped(f"{rate} Gbit/s", f"{rtt} us", threshold, flows)
    path = rate * 1e9 / 12_000 * rtt * 1e-6
    most = threshold + flows
    least = most - 0.5 * np.sqrt(2 * flows * (path + threshold))
    assert abs(np.quantile(queue, 0.999) - most) <= 4
    assert abs(np.quantile(queue, 0.001) - least) <= 4


@pytest.mark.parametrize("beside", [False, True])
def test_ledbat_plus_plus_takes_what_others_leave(beside: bool) -> None:
    """Alone it has nine tenths of 10 Mbit/s; beside CUBIC in a buffer of one BDP a tenth."""
    page = (ROOT / "docs/how-to/l4s.md").read_text()
    text = page.split("```toml\n", 1)[1].split("```", 1)[0]
    stack = '{ profile = "linux", congestion_control = "ledbat-plus-plus", initial_window = 2 }'
    constant = '{ kind = "constant", rtt = "100 ms" }'
    overrides = {
        "topology.bottleneck.rate": "10 Mbit/s",
        QUEUE: '{ kind = "droptail", limit = "84 packets" }',
        "traffic.sender.tcp": stack,
        "traffic.sender.rtt": constant,
        "measure.warm_up": "20 s",
        "measure.duration": "60 s",
    }
    if beside:
        overrides |= {"traffic.beside.tcp": '"linux"', "traffic.beside.rtt": constant}
    else:
        text = "[[traffic]]".join(text.split("[[traffic]]")[:2])
    run = aqmlab.run(Scenario.from_toml(text).with_overrides(overrides))
    share = run.summary["flows"]["sender"]["goodput_bps"] / (10e6 * 1448 / 1500)
    assert share < 0.1 if beside else share > 0.9, share


def test_every_file_has_a_test() -> None:
    """No scenario of the folder without an expectation."""
    text = (ROOT / "tests/test_modern.py").read_text()
    for file in FOLDER.glob("*.toml"):
        name = file.stem.replace("gbw-rrul-", "")
        assert f'"{name}"' in text, name
