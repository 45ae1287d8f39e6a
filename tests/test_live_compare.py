"""The simulator against the kernel: what is run, what is kept, what is judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aqmlab import Run, Scenario
from aqmlab.engine.execute import World, execute
from aqmlab.errors import AqmlabError, RunError
from aqmlab.results.manifest import seal
from conftest import ROOT, SMALL

from lab.live import compare as live_compare
from lab.live.compare import CASES, Case, Score, judge, load, page, row, same, simulated_run


def case(**within: float) -> Case:
    scenario = Scenario.from_toml(SMALL).with_overrides({"measure.duration": "2 s"})
    return Case("small", "a small one", scenario, (1, 2), within)


def made(seed: int, loss: float, times: Any) -> Run:
    """A run with a loss rate and response times."""
    link = {
        "utilization": 0.9,
        "loss_rate": loss,
        "mark_rate": loss / 2,
        "queue_mean_packets": 10.0,
    }
    quantiles = {f"p{rank}_s": float(np.quantile(times, rank / 100)) for rank in (50, 90, 99)}
    summary = {"links": {"bottleneck": {"forward": link}}, "responses": {"all": quantiles}}
    table = pa.table({"response_s": np.asarray(times, dtype=float)})
    return Run.in_memory({"seed": seed}, summary, {"responses": table}, label="made")


def test_the_cases_load() -> None:
    cases = load(ROOT / CASES)
    assert {"bulk-droptail", "bulk-red", "web-80-red", "web-98-red"} <= set(cases)
    for entry in cases.values():
        assert len(entry.seeds) >= 3
        bottleneck = entry.scenario.data["topology"]["bottleneck"]
        assert bottleneck["forward"]["rate"] == "10 Mbit/s"
        signal = "marked" if "ecn" in entry.name else "loss"
        wanted = {"p50", "p90", "distance"} if "web" in entry.name else {signal, "queue"}
        assert wanted <= set(entry.within) <= set(live_compare.SHOWN)
        discipline = bottleneck["forward"]["discipline"]
        assert discipline.get("ecn", False) is ("marked" in entry.within)
        assert ("share" in entry.within) is (len(entry.scenario.data["traffic"]) > 1)


def test_means_over_the_seeds_are_judged() -> None:
    simulated = [made(1, 0.01, np.arange(1, 101)), made(2, 0.03, np.arange(1, 101))]
    live = [made(1, 0.02, np.arange(11, 111)), made(2, 0.024, np.arange(11, 111))]
    scores = {s.metric: s for s in judge(case(loss=0.15, p50=0.1, distance=0.2), simulated, live)}
    assert scores["loss"].deviation == pytest.approx(0.1)
    assert scores["loss"].holds is True
    assert scores["p50"].deviation == pytest.approx(10 / 50.5)
    assert scores["p50"].holds is False
    assert list(scores["distance"].live) == pytest.approx([0.1])
    assert scores["distance"].holds is True
    assert scores["queue"].holds is None
    assert row(scores["loss"]) == (
        "| loss % | 2.00 (1.00 to 3.00) | 2.20 (2.00 to 2.40) | +10.0 % | 15 % | yes |"
    )
    assert row(scores["distance"]) == "| Kolmogorov distance | | | 0.100 | 0.2 | yes |"
    assert "**no**" in row(scores["p50"])


def test_without_responses_only_the_link_is_compared() -> None:
    runs = [replace(made(1, 0.01, [1.0]), tables={})]
    metrics = [score.metric for score in judge(case(loss=0.1), runs, runs)]
    assert metrics == ["utilization", "loss", "queue"]


def test_nothing_lost_in_the_simulator_alone_is_no_agreement() -> None:
    assert Score("loss", (0.0,), (0.01,), 0.15).holds is False
    assert Score("loss", (0.0,), (0.0,), 0.15).holds is True


def test_marks_and_shares_are_judged_where_a_case_asks() -> None:
    def shared(seed: int, cubic: float, bbr: float) -> Run:
        run = replace(made(seed, 0.02, [1.0]), tables={})
        flows = {name: {"goodput_bps": bps} for name, bps in (("cubic", cubic), ("bbr", bbr))}
        flows["all"] = {"goodput_bps": cubic + bbr}
        return replace(run, summary={**run.summary, "flows": flows})

    scenario = Scenario.load(ROOT / CASES.parent / "cubic-and-bbr.toml")
    asked = replace(case(marked=0.1, share=0.15), scenario=scenario)
    simulated = [shared(1, 2e6, 6e6), shared(2, 3e6, 5e6)]
    live = [shared(1, 2.5e6, 5.5e6), shared(2, 3.5e6, 4.5e6)]
    scores = judge(asked, simulated, live)
    assert [(score.metric, score.of_class) for score in scores] == [
        ("utilization", ""),
        ("loss", ""),
        ("marked", ""),
        ("queue", ""),
        ("share", "cubic"),
        ("share", "bbr"),
    ]
    cubic, bbr = scores[-2:]
    assert cubic.deviation == pytest.approx(0.2)
    assert cubic.holds is False
    assert bbr.deviation == pytest.approx(-0.0909, abs=1e-4)
    assert bbr.holds is True
    assert row(cubic).startswith("| share of the goodput %, cubic | 31.2 (25.0 to 37.5) |")


def test_the_page_counts_what_holds() -> None:
    text = page(["| one | 1 of 2 | |"], [{"holds": True}, {"holds": False}], "6.1")
    assert "1 of 2 bounds are kept" in text
    assert "Linux 6.1" in text


def test_an_invalid_run_is_set_aside_and_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tries: list[list[str]] = [["too late"], ["too busy"], []]

    def play(scenario: Scenario, target: Path, *, world: World) -> Run:
        assert world is World.LIVE
        run = execute(scenario, target)
        summary = json.loads((target / "summary.json").read_text())
        reasons = tries.pop(0)
        summary["live"] = {"valid": not reasons, "reasons": reasons}
        (target / "summary.json").write_text(json.dumps(summary))
        seal(target, run.metadata["key"])
        return Run.open(run.path)

    monkeypatch.setattr(live_compare, "execute", play)
    run = live_compare.live_run(case(), 2, tmp_path)
    assert run.invalid == []
    names = sorted(path.name for path in tmp_path.iterdir())
    kept = ["small-s2-live", "small-s2-live-invalid-1", "small-s2-live-invalid-2"]
    assert names == kept
    # The valid one is there now, and counts again.
    assert live_compare.live_run(case(), 2, tmp_path).path == run.path
    tries += [["busy"]] * live_compare.TRIES
    with pytest.raises(RunError, match="did not keep the bounds"):
        live_compare.live_run(case(), 1, tmp_path)


def test_a_live_run_is_kept_whatever_the_model_of_tcp(tmp_path: Path) -> None:
    chosen = case().seeded(1)
    run = execute(chosen, tmp_path / "run")
    modelled = chosen.with_overrides({"traffic.fetches.tcp.nagle": False})
    assert same(run, modelled) is run
    other = chosen.with_overrides({"traffic.fetches.tcp.congestion_control": "cubic"})
    for changed in (other, case().seeded(2)):
        with pytest.raises(AqmlabError, match="another scenario"):
            same(run, changed)


def test_a_simulated_run_is_found_again(tmp_path: Path) -> None:
    first = simulated_run(case(), 1, tmp_path)
    assert simulated_run(case(), 1, tmp_path).path == first.path
    assert len(list(tmp_path.iterdir())) == 1


def test_an_unknown_case_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert live_compare.main(["web-120"]) == 2
    assert "has no case web-120; known: bulk-droptail" in capsys.readouterr().err


QUEUES = Path("lab/live/queues.toml")


def test_the_cases_behind_queues_of_today_load() -> None:
    cases = load(ROOT / QUEUES)
    for control in ("cubic", "bbr1"):
        for queue in ("fq-codel", "fq-pie", "cake", "pie", "dualpi2", "cobalt"):
            entry = cases[f"{control}-{queue}"]
            bottleneck = entry.scenario.data["topology"]["bottleneck"]
            assert bottleneck["forward"]["discipline"]["kind"] == queue
            [transfers] = entry.scenario.data["traffic"]
            assert transfers["tcp"]["congestion_control"]["kind"] == control
            assert entry.seeds == (1, 2, 3)
    for entry in cases.values():
        assert set(entry.within.values()) == {0.15}
        if entry.live:
            # The kernel's side is that of the other case.
            assert entry.scenario.data == cases[entry.live].scenario.data
            assert entry.scenario.with_overrides(entry.simulated).data != entry.scenario.data


def test_settings_of_the_simulation_alone_leave_live_runs_as_they_are(tmp_path: Path) -> None:
    one = replace(case(), simulated={"measure.duration": "1 s"}, live="other")
    assert simulated_run(one, 2, tmp_path).scenario["measure"]["duration"] == "1 s"
    execute(one.seeded(2), tmp_path / "other-s2-live")
    run = live_compare.live_run(one, 2, tmp_path)
    assert run.path.name == "other-s2-live"
    assert run.scenario["measure"]["duration"] == "2 s"


@pytest.mark.parametrize(
    ("simulated", "live", "holds"),
    [(0.001, 0.004, True), (0.001, 0.0061, False), (0.1, 0.11, True), (0.1, 0.12, False)],
)
def test_a_bound_may_be_of_the_difference_itself(
    simulated: float, live: float, holds: bool
) -> None:
    """Within 15 % or half a point."""
    score = Score("loss", (simulated,), (live,), 0.15, points=0.005)
    assert score.holds is holds
    assert "| 15 % or 0.5 points |" in row(score)
    cases = load(ROOT / "lab/live/control-cases.toml")
    assert {case.points["loss"] for case in cases.values()} == {0.005}
