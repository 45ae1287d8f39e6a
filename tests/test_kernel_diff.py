"""Transfers of our end point beside a kernel: how plans are drawn, run and made smaller."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest
from aqmlab.errors import AqmlabError
from conftest import ROOT

from lab.kernel import diff, plans
from lab.kernel.compare import difference
from lab.kernel.host import CONTROLS, missing, setup_of
from lab.kernel.plans import PROGRAM, Plan, drawn, scripts_of, smaller
from lab.kernel.play import Played, play_all
from lab.kernel.scripts import Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LACKING = missing()
BUILT = pytest.mark.skipif(
    not (ROOT / PROGRAM).exists(),
    reason="NO TRANSFER WAS RUN: cargo build --profile quick -p aqmlab-tcp --example transfer",
)
WORDS = tuple(CONTROLS)


@pytest.fixture(autouse=True)
def _checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named from there."""
    monkeypatch.chdir(ROOT)


def weight(plan: Plan) -> float:
    """How much is in a plan."""
    events = len(plan.lost) + len(plan.late) + len(plan.marked) + len(plan.lost_acks)
    plain = Plan()
    keys = ("close", "stamps", "ecn", "spacing", "ack_every", "quick_acks", "sack")
    odd = sum(getattr(plan, key) != getattr(plain, key) for key in keys)
    bulk = sum(size for _, size in plan.writes) / 1e6
    return float(events + odd + len(plan.writes) + (plan.control != "reno") + bulk)


def test_a_seed_has_one_plan() -> None:
    assert drawn(5, WORDS) == drawn(5, WORDS)
    found = [drawn(seed, WORDS) for seed in range(300)]
    assert len(set(found)) == 300
    assert {plan.control for plan in found} == set(WORDS)
    for key in ("ecn", "stamps", "sack", "close"):
        assert {getattr(plan, key) for plan in found} == {True, False}, key
    assert all(2 <= sum(size for _, size in plan.writes) / 1000 + 1 <= 23 for plan in found)


def test_a_plan_is_written_for_the_program() -> None:
    plan = Plan(ecn=True, sack=False, lost=(2, 5), late=((3, 0.04),), writes=((0.0, 10),))
    written = tomllib.loads(plan.toml())
    assert written["lost"] == [2, 5]
    assert written["late"] == [[3, 0.04]]
    assert written["server"]["ecn"] is True
    assert written["client"]["recovery"] == "new-reno"
    assert str(plan) == (
        "ecn = true, sack = false, writes = [[0.0, 10]], lost = [2, 5], late = [[3, 0.04]]"
    )


def test_smaller_plans_have_less_in_them() -> None:
    for seed in range(60):
        plan = drawn(seed, WORDS)
        assert all(weight(other) < weight(plan) for other in smaller(plan)), plan


def test_a_difference_is_shrunk_to_what_causes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def differing(tried: Sequence[Plan], at_once: int) -> int | None:
        assert len(tried) <= at_once
        return next((at for at, plan in enumerate(tried) if 9 in plan.lost and plan.ecn), None)

    monkeypatch.setattr(diff, "differing", differing)
    plan = Plan(ecn=True, lost=(1, 4, 9, 12), late=((3, 0.1),), lost_acks=(1, 2), close=True)
    wanted = Plan(control="reno", ecn=True, lost=(9,), writes=((0.0, 1000),))
    assert diff.shrunk(plan) == wanted


@pytest.mark.parametrize("text", ["1..", "5..2", "x", ""])
def test_wrong_seeds_are_named(text: str) -> None:
    with pytest.raises(AqmlabError, match="--seeds: found"):
        diff.seeds_of(text)


def test_a_program_that_is_not_built_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "PROGRAM", ROOT / "target/none")
    with pytest.raises(
        AqmlabError, match="cargo build --profile quick -p aqmlab-tcp --example transfer"
    ):
        scripts_of([Plan()])


@BUILT
def test_every_plan_makes_a_script_that_a_kernel_can_be_asked() -> None:
    found = scripts_of([drawn(seed, WORDS) for seed in range(100)])
    for _, script in found:
        setup_of(script)
        assert script.steps[0].word == "listen"
    assert any(" sack " in text for text, _ in found)


@BUILT
def test_what_the_network_does_is_in_the_script() -> None:
    plan = Plan(writes=((0.0, 3000),), lost=(2,), ack_every=1)
    ((text, _),) = scripts_of([plan])
    assert "0.1 > A 2001+1000 ack 1" in text
    assert "< A 1 ack 1001 sack 2001-3001" in text
    assert text.count("> A 1001+1000 ack 1") == 2
    with pytest.raises(AqmlabError, match="congestion_control"):
        scripts_of([Plan(control="none")])


@BUILT
@pytest.mark.skipif(LACKING is not None, reason=f"NO TRANSFER WAS COMPARED: {LACKING}")
def test_a_transfer_without_events_is_equal_on_this_kernel() -> None:
    ((_, script),) = scripts_of([Plan(control="reno", writes=((0.0, 5000),))])
    # A stray pause of a busy machine is no difference.
    for _ in range(3):
        (played,) = play_all([script], 1)
        assert played.seen is not None, played.refusal
        found = difference(script, played.seen)
        if found is None:
            break
    assert found is None


def test_without_root_one_line_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(diff, "missing", lambda: "only root may do it")
    assert diff.main([]) == 2
    expected = "aqmlab: transfers are not compared: only root may do it\n"
    assert capsys.readouterr().err == expected


def test_the_summary_counts_what_is_equal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def judge(scripts: dict[str, object], at_once: int) -> list[tuple[Verdict, Played]]:
        assert at_once == 4
        words = {"2": "differs"}
        return [(Verdict(name, words.get(name, "holds"), "why"), Played()) for name in scripts]

    monkeypatch.setattr(diff, "missing", lambda: None)
    monkeypatch.setattr(diff, "AVAILABLE", ROOT / "LICENSE-MIT")
    monkeypatch.setattr(diff, "CONTROLS", {"reno": "The"})
    monkeypatch.setattr(diff, "scripts_of", lambda plans: [("0 listen\n", None)] * len(plans))
    monkeypatch.setattr(diff, "judge", judge)
    assert diff.main(["--seeds", "1..3", "--plain"]) == 1
    printed = capsys.readouterr().out
    assert "2: differs: why" in printed
    assert printed.endswith("2 of 3 equal\n")
    assert diff.main(["--seeds", "3..4", "--plain"]) == 0
