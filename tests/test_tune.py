"""Searches for parameters: what is proposed, chosen and confirmed; interruptions, refusals."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aqmlab as package
import pytest
from aqmlab.engine import schedulers
from aqmlab.engine.store import Store
from aqmlab.errors import AqmlabError, RunError
from aqmlab.scenario.scenario import Scenario
from aqmlab.tuning import goals, outcome, space
from aqmlab.tuning.plan import Plan
from aqmlab.tuning.study import MEASURED, Study, Trial
from conftest import SMALL, Cli

pytest.importorskip("optuna")
sqlalchemy = pytest.importorskip("sqlalchemy")

BULK = """
title = "Two transfers"
[measure]
warm_up = "1 s"
duration = "2 s"
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "4 Mbit/s"
discipline = { kind = "droptail", limit = "100 packets" }
[[traffic]]
name = "transfers"
kind = "bulk"
flows = 2
tcp = "linux"
rtt = { kind = "constant", rtt = "20 ms" }
"""
"""A longer queue delays more, a shorter one leaves the link idle."""
LIMIT = "discipline.limit=2..200 packets:log:whole"
BOTH = "minimize delay, maximize links.bottleneck.utilization"


@pytest.fixture
def bulk(tmp_path: Path) -> Path:
    file = tmp_path / "bulk.toml"
    file.write_text(BULK)
    return file


def plan(file: Path, **options: Any) -> Plan:
    given = {
        "vary": [LIMIT],
        "goal": ["minimize delay"],
        "constraints": [],
        "settings": [],
        "derive": {},
        "seeds": [1, 2],
        "trials": 12,
        "confirm": 2,
        "batch": 4,
    }
    return Plan.make([file], **{**given, **options})


# What is varied.


def test_ranges_have_the_words_of_sweeps() -> None:
    found = space.read_variables(
        ["discipline.target=1 ms..50 ms:log", "n=5..60:whole", "topology.x.y=0.1 .. 2e3", "k=a,b"],
        SMALL,
        [],
    )
    target, whole, plain, choice = found
    assert (target.name, target.path) == ("target", "topology.bottleneck.discipline.target")
    assert (target.low, target.high, target.unit, target.is_log) == (1, 50, "ms", True)
    assert target.text(target.value(3.14159265)) == '"3.14159 ms"'
    assert (whole.path, whole.is_whole, whole.text(whole.value(7.0))) == ("", True, "7")
    assert (plain.path, plain.low, plain.high, plain.is_log) == ("topology.x.y", 0.1, 2000, False)
    assert choice.choices == ("a", "b")
    assert str(target) == "topology.bottleneck.discipline.target=1 ms..50 ms:log"
    [load] = space.read_variables(["load=0.5..0.9"], SMALL, [])
    assert load.path == "load"


def test_a_short_field_may_be_a_variable_instead() -> None:
    [queue] = space.read_variables(["discipline=pie,fq-codel"], SMALL, [])
    assert queue.path == "topology.bottleneck.discipline"
    [rate] = space.read_variables(["rate=1..5"], SMALL, ["rate"])
    assert (rate.name, rate.path) == ("rate", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x=1 ms..50 us", 'found the units "ms" and "us"; expected the same unit at both ends'),
        ("x=50..1", "expected a range whose end is above its beginning"),
        ("x=0..1:log", "expected a number above 0 where a range with log begins"),
        ("x=1..5:lgo", 'found "lgo"; expected words of log, linear, whole; did you mean "log"?'),
        ("x=1.5..5:whole", "expected whole numbers for whole"),
        ("x=1..b", "expected a range such as"),
        ("x=1", "at least two values, each once"),
        ("x", "expected FIELD=VALUE"),
        ("a b=1..2", "expected a name of letters"),
        ("seed=1..2", "is a column that all results have"),
    ],
)
def test_ranges_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(AqmlabError) as error:
        space.read_variables([text], SMALL, [])
    assert message in str(error.value)
    assert str(error.value).startswith("--vary")


def test_fields_are_named_once() -> None:
    with pytest.raises(AqmlabError, match="has the name limit already"):
        space.read_variables([LIMIT, "topology.x.limit=1..2"], SMALL, [])


def test_bounds_have_the_unit_of_the_results_or_of_tables() -> None:
    found = goals.read_constraints(["delay.forward <= 20 ms", "utilization.forward>=0.9"])
    assert [(one.is_upper, one.bound) for one in found] == [(True, 0.02), (False, 0.9)]
    assert found[0].violation(0.03) == pytest.approx(0.01)
    assert found[1].violation(0.95) < 0


# The search.


def search(study: Study, value: Any, trials: int) -> list[Trial]:
    """Tells a study what a function says of its settings."""
    while batch := study.ask():
        for trial in batch:
            found = value(trial.values)
            study.tell(replace(trial, state=MEASURED, measured={"delay": [[found]]}), [found], ())
    assert len(study.trials) == trials
    return study.trials


def test_a_known_optimum_is_found(bulk: Path, tmp_path: Path) -> None:
    two = ["a=0..10", "b=0.01..100:log"]
    wanted = plan(
        bulk,
        vary=two,
        settings=[("title", "$a $b")],
        goal=["minimize delay"],
        trials=44,
    )
    with Study(tmp_path, wanted) as study:
        trials = search(study, lambda v: (v["a"] - 7) ** 2 + 0.1 * (v["b"] - 1) ** 2, 44)
        assert study.importance(0)
    best = min(trials, key=lambda trial: trial.measured["delay"][0][0])
    assert best.values["a"] == pytest.approx(7, abs=1.0)
    # Its second half looks where it is good.
    half = [abs(float(trial.values["a"]) - 7) for trial in trials]
    assert sum(half[22:]) < sum(half[:22])


class KilledError(BaseException):
    """A process that ends in the middle of its work."""


@pytest.mark.long
def test_a_search_that_is_killed_anywhere_proposes_the_same(
    bulk: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Killed at eight different writes."""
    wanted = plan(
        bulk,
        vary=["a=0..10", "k=x,y,z", "n=1..9:whole"],
        settings=[("title", "$a $k $n")],
        trials=18,
    )

    def value(values: Any) -> float:
        return abs(float(values["a"]) - 3) + "yxz".index(values["k"]) + 0.1 * float(values["n"])

    with Study(tmp_path / "whole", wanted) as study:
        whole = [(t.number, t.values, t.measured) for t in search(study, value, 18)]

    left = 0

    def commit(_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KilledError

    sqlalchemy.event.listen(sqlalchemy.engine.Engine, "commit", commit)
    request.addfinalizer(
        lambda: sqlalchemy.event.remove(sqlalchemy.engine.Engine, "commit", commit)
    )
    kills = 0
    for step in (2, 5, 7, 11, 13, 17, 19, 23):
        with Study(tmp_path / "killed", wanted) as study, suppress(KilledError):
            left = step
            kills += 1
            search(study, value, 18)
            kills -= 1
    left = 0
    with Study(tmp_path / "killed", wanted) as study:
        again = [(t.number, t.values, t.measured) for t in search(study, value, 18)]
    assert kills == 8
    assert again == whole


# What is chosen.


def test_the_front_and_its_balanced_point() -> None:
    vectors = [(1.0, 9.0), (2.0, 5.0), (3.0, 4.0), (4.0, 4.5), (9.0, 1.0), (2.0, 5.0)]
    assert outcome.front(vectors) == [0, 1, 2, 4]
    assert outcome.balanced(vectors) == 2
    assert outcome.balanced([(3.0,), (1.0,), (2.0,)]) == 1


def test_scenarios_are_weighed_by_what_they_give_untuned(bulk: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow.toml"
    slow.write_text(BULK)
    two = replace(plan(bulk), scenarios=(*plan(bulk).scenarios, *plan(slow).scenarios))
    scales = outcome.Scales.of(two, {"delay": [[1.0, 3.0], [10.0, 10.0]]})
    numbers = {"delay": [[1.0, 1.0], [5.0, 20.0]]}
    assert scales.mean(numbers) == pytest.approx(((0.5 + 0.5 + 0.5 + 2.0) / 4,))
    assert scales.worst(numbers) == pytest.approx((2.0,))
    with pytest.raises(AqmlabError, match="delay is 0 in slow without tuning"):
        outcome.Scales.of(two, {"delay": [[1.0], [0.0]]})
    # A bound must hold in each of them.
    bound = replace(two, constraints=tuple(goals.read_constraints(["delay <= 5"])))
    assert outcome.Scales.of(bound, numbers).violations(numbers) == pytest.approx((7.5,))


def test_a_gain_that_fresh_seeds_do_not_bear_out_is_called_luck(bulk: Path) -> None:
    wanted = plan(bulk, confirm=4)
    trial = Trial(3, {"limit": 5}, MEASURED, {"delay": [[1.0, 2.0]]})
    untuned = {"delay": [[5.0, 6.0, 5.5, 6.5]]}

    def checked(tuned: Sequence[float], before: float = 4.0) -> outcome.Check:
        given = {"delay": [[before, before]]}
        [check] = outcome.checks(wanted, trial, given, untuned, {"delay": [list(tuned)]}).checks
        return check

    real = checked([3.0, 4.1, 3.4, 4.5])
    assert (real.verdict, real.was_luck, real.promised) == ("better", False, -2.5)
    assert real.change.mean == pytest.approx(-2.0)
    chance = checked([6.0, 4.0, 7.0, 5.0])
    assert (chance.verdict, chance.was_luck) == ("unclear", True)
    assert checked([8.0, 9.0, 8.4, 9.5]).was_luck
    assert not checked([8.0, 9.0, 8.4, 9.5], before=1.0).was_luck  # nothing was promised
    assert outcome.Choice(trial, (chance, real)).gains
    assert not outcome.Choice(trial, (chance,)).gains


def test_two_goals_give_a_front_and_a_constraint_bounds_it(bulk: Path, aqmlab: Cli) -> None:
    arguments = (
        *("tune", bulk, "--vary", LIMIT, "--goal", BOTH, "--trials", 14, "--seeds", "1..2"),
        *("--constraint", "utilization >= 95 %", "--confirm", 3, "--out", "here"),
    )
    answer = aqmlab(*arguments)
    assert answer.status == 0, answer.err
    found = json.loads(Path("here/tune.json").read_text())
    trials = {row["trial"]: row for row in found["trials"]}
    assert len(trials) == 14
    on_front = [trials[number] for number in found["front"]]
    assert on_front
    assert all(row["state"] == "measured" for row in on_front)
    assert all(row["utilization >= 0.95"] >= 0.95 for row in on_front)
    assert any(row["state"] == "constrained" for row in trials.values())
    delays = [row["delay"] for row in on_front]
    busy = [row["links.bottleneck.utilization"] for row in on_front]
    assert delays == sorted(delays)
    assert busy == sorted(busy)
    for row in trials.values():
        if row["state"] == "measured":
            assert any(
                one["delay"] <= row["delay"]
                and one["links.bottleneck.utilization"] >= row["links.bottleneck.utilization"]
                for one in on_front
            )
    # The queue that was too long is cut, on seeds that the search has not seen.
    [delay, utilization] = found["best"]["fresh"]
    assert (delay["verdict"], delay["was_luck"], delay["pairs"]) == ("better", False, 3)
    assert utilization["metric"] == "links.bottleneck.utilization"
    assert found["plan"]["fresh_seeds"] == [3, 4, 5]
    assert "the gain of delay in bulk holds on fresh seeds" in answer.out
    assert found["defaults_as_good"] is False
    assert "defaults are as good" not in answer.out
    assert Path("here/search.svg").read_text().startswith("<svg")
    assert Path("here/search-dark.svg").read_text() != Path("here/search.svg").read_text()
    lines = Path("here/front.tsv").read_text().splitlines()
    assert lines[0].startswith("trial\tlimit\tstate\tdelay\tdelay.worst\t")
    assert len(lines) == 1 + len(on_front)
    # The tuned scenario is a scenario.
    assert (
        package.Scenario.load("here/best-bulk.toml").data["topology"]["bottleneck"]["forward"][
            "discipline"
        ]["limit"]
        == f"{found['best']['values']['limit']} packets"
    )
    # Once more: everything is there.
    before = {path: path.stat().st_mtime_ns for path in Path("runs/store").glob("??/*")}
    again = aqmlab(*arguments, "--tsv")
    assert again.status == 0
    assert again.out == Path("here/front.tsv").read_text()
    assert json.loads(Path("here/tune.json").read_text()) == found
    assert {path: path.stat().st_mtime_ns for path in Path("runs/store").glob("??/*")} == before


@pytest.mark.long
def test_settings_that_are_no_scenarios_are_left_out(bulk: Path) -> None:
    red = (
        '{ kind = "red", min_th = "$low packets", max_th = "$high packets", limit = "90 packets" }'
    )
    found = package.tune(
        bulk,
        vary=["low=2..40", "high=2..40"],
        settings={"topology.bottleneck.discipline": red},
        goal="minimize delay",
        trials=8,
        confirm=2,
        seeds=[1],
        jobs=1,
        progress=False,
    )
    refused = [trial for trial in found.trials if trial.state == "refused"]
    assert refused
    assert all(float(one.values["low"]) >= float(one.values["high"]) for one in refused)
    assert "max_th" in refused[0].error
    assert found.best is not None
    best = found.best.trial.values
    assert float(best["low"]) < float(best["high"])
    # Derived variables say what must be.
    derived = package.tune(
        bulk,
        vary=["low=2..40"],
        derive={"high": "low + 10"},
        settings={"topology.bottleneck.discipline": red},
        goal="minimize delay",
        trials=3,
        confirm=2,
        seeds=[1],
        out="derived",
        progress=False,
    )
    assert {trial.state for trial in derived.trials} == {"measured"}


@pytest.mark.long
def test_several_scenarios_are_tuned_together(bulk: Path, tmp_path: Path, aqmlab: Cli) -> None:
    fast = tmp_path / "fast.toml"
    fast.write_text(BULK.replace("4 Mbit/s", "12 Mbit/s"))
    arguments = (
        *("tune", bulk, fast, "--vary", LIMIT, "--goal", "minimize delay", "--trials", 6),
        *("--seeds", "1..2", "--confirm", 2, "--jobs", 1, "--out", "both"),
    )
    answer = aqmlab(*arguments)
    assert answer.status == 0
    assert "ratios to untuned, mean over scenarios" in answer.out
    found = json.loads(aqmlab(*arguments, "--json").out)
    assert found["plan"]["scenarios"].keys() == {"bulk", "fast"}
    [first, second] = found["untuned"]["delay"]
    assert len(first) == len(second) == 2
    best = found["trials"][found["best"]["trial"]]
    assert best["delay"] == min(row["delay"] for row in found["trials"])
    assert 0 < best["delay"] < best["delay.worst"] < 1
    assert [one["scenario"] for one in found["best"]["fresh"]] == ["bulk", "fast"]
    for name in ("best", "robust"):
        limits = {
            package.Scenario.load(f"both/{name}-{one}.toml").data["topology"]["bottleneck"][
                "forward"
            ]["discipline"]["limit"]
            for one in ("bulk", "fast")
        }
        assert limits == {f"{found[name]['values']['limit']} packets"}


def test_a_setting_whose_run_fails_is_named(
    bulk: Path, aqmlab: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = schedulers.scheduler

    class Failing:
        """Fails with one of the queues."""

        def __init__(self, pool: Any) -> None:
            self.pool, self.jobs = pool, 1

        def run(
            self, scenarios: Sequence[Scenario], store: Store, progress: Any, take: Any
        ) -> list[Any]:
            wrong = ['limit = "3 packets"' in one.effective for one in scenarios]
            right = [one for one, bad in zip(scenarios, wrong, strict=True) if not bad]
            runs = iter(self.pool.run(right, store, progress, take))
            return [RunError("no room") if bad else next(runs) for bad in wrong]

    @contextmanager
    def failing(*options: Any) -> Iterator[Failing]:
        with made(*options) as pool:
            yield Failing(pool)

    monkeypatch.setattr(schedulers, "scheduler", failing)
    answer = aqmlab(
        *("tune", bulk, "--vary", "discipline.limit=2 packets,3 packets"),
        *("--goal", "minimize delay", "--trials", 8, "--seeds", 1, "--confirm", 2, "--out", "here"),
    )
    assert answer.status == 1
    found = json.loads(Path("here/tune.json").read_text())
    states = {row["limit"]: row["state"] for row in found["trials"]}
    assert states == {"2 packets": "measured", "3 packets": "failed"}
    count = sum(row["state"] == "failed" for row in found["trials"])
    assert f"{count} of 8 settings failed; the first, limit = 3 packets: no room" in answer.err
    assert found["best"]["values"]["limit"] == "2 packets"


@pytest.mark.long
def test_a_killed_command_goes_on(bulk: Path) -> None:
    """With the processes that make its runs: the same settings, and no run twice."""
    code = "import sys; from aqmlab.cli import main; sys.exit(main(sys.argv[1:]))"

    def command(out: str, store: str) -> list[str]:
        options = ["--trials", "6", "--seeds", "1..2", "--confirm", "2", "--jobs", "1"]
        return [
            *(sys.executable, "-c", code, "tune", str(bulk), "--vary", LIMIT),
            *("--goal", "minimize delay", *options, "--out", out, "--store", store),
        ]

    begun = subprocess.Popen(
        command("killed", "one"), stderr=subprocess.PIPE, start_new_session=True
    )
    until = time.monotonic() + 60
    while len(list(Path("one").glob("??/*/manifest.json"))) < 5 and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(begun.pid, signal.SIGKILL)
    begun.communicate()
    assert not Path("killed/tune.json").exists()
    for out, store in (("killed", "one"), ("whole", "two")):
        subprocess.run(command(out, store), check=True, capture_output=True)
    first, second = (json.loads(Path(out, "tune.json").read_text()) for out in ("killed", "whole"))
    assert first == second
    keys = [sorted(path.name for path in Path(store).glob("??/*")) for store in ("one", "two")]
    assert keys[0] == keys[1]


# Refusals.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vary", LIMIT], "--goal: is missing"),
        (["--goal", "minimize delay"], "--vary: is missing"),
        (["--vary", LIMIT, "--goal", "minimise delay"], 'did you mean "minimize"?'),
        (["--vary", LIMIT, "--goal", "minimize delya"], 'did you mean "delay'),
        (
            ["--vary", LIMIT, "--goal", "minimize responses.al.p90_s"],
            'has no class of traffic al; did you mean "all"?',
        ),
        (
            ["--vary", LIMIT, "--goal", "minimize responses.all.p9_s"],
            'there is no p9_s; did you mean "p99_s"?',
        ),
        (
            ["--vary", LIMIT, "--goal", "minimize links.bottlenek.utilization"],
            'has no link bottlenek; did you mean "bottleneck"?',
        ),
        (["--vary", LIMIT, "--goal", "minimize delay, maximize delay"], "found delay twice"),
        (
            ["--vary", LIMIT, "--goal", "minimize delay", "--constraint", "loss.forward < 0.1"],
            "--constraint: found",
        ),
        (
            ["--vary", LIMIT, "--goal", "minimize delay", "--constraint", "delay <= 5 Mbit/s"],
            'found the unit "Mbit/s" of delay; expected ms',
        ),
        (
            ["--vary", "discipline.target=1 ms..5 ms", "--goal", "minimize delay"],
            "topology.bottleneck.discipline.target: unknown key",
        ),
        (["--vary", "limit=1..5", "--goal", "minimize delay"], "changes nothing"),
        (
            ["--vary", LIMIT, "--goal", "minimize delay", "--set", "measure.duration=$lmit s"],
            'uses $lmit, which is no variable; did you mean "limit"?',
        ),
        (
            ["--vary", LIMIT, "--goal", "minimize delay", "--derive", "limit=3"],
            "--vary has a variable of this name already",
        ),
        (
            ["--vary", LIMIT, "--goal", "minimize delay", "--derive", "x=limit +"],
            "--derive x:",
        ),
        (["--vary", LIMIT, "--goal", "minimize delay", "--confirm", "1"], "--confirm: found 1"),
        (["--vary", LIMIT, "--goal", "minimize delay", "--trials", "0"], "--trials: found 0"),
        (["--vary", LIMIT, "--goal", "minimize delay", "--seeds", "3..1"], "expected 1..3"),
        (["--vary", LIMIT, "--goal", "minimize delay", "--json", "--tsv"], "found both"),
        (["--vary", LIMIT, "--goal", "minimize delay", "--out", "."], "choose another --out"),
        (["--vary", LIMIT, "--goal", "minimize p90"], "p90: was not measured in bulk"),
    ],
)
def test_refusals(bulk: Path, aqmlab: Cli, options: list[str], message: str) -> None:
    answer = aqmlab("tune", bulk, *options, "--store", "../store")
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
    assert answer.err.count("\n") == 1
    assert list(Path().iterdir()) == [bulk.relative_to(Path.cwd())]


def test_a_scenario_is_named_once(bulk: Path, aqmlab: Cli) -> None:
    answer = aqmlab("tune", bulk, bulk, "--vary", LIMIT, "--goal", "minimize delay")
    assert answer.status == 2
    assert "two of the scenarios are called bulk" in answer.err


def test_a_folder_keeps_its_search(bulk: Path, aqmlab: Cli) -> None:
    begin = ("tune", bulk, "--vary", LIMIT, "--trials", 2, "--seeds", 1, "--confirm", 2)
    assert aqmlab(*begin, "--goal", "minimize delay", "--out", "here").status == 0
    held = sorted(path.name for path in Path("here").iterdir())
    answer = aqmlab(*begin, "--goal", "minimize loss.forward", "--out", "here")
    assert answer.status == 2
    assert (
        'here: holds a search with another goal (["minimize delay"] instead of '
        '["minimize loss.forward"]); choose another --out'
    ) in answer.err
    assert sorted(path.name for path in Path("here").iterdir()) == held
    # It can be made longer.
    more = ("tune", bulk, "--vary", LIMIT, "--trials", 5, "--seeds", 1, "--confirm", 2)
    assert aqmlab(*more, "--goal", "minimize delay", "--out", "here").status == 0
    assert len(json.loads(Path("here/tune.json").read_text())["trials"]) == 5
    # Two at a time would disturb each other.
    with Study(Path("here"), plan(bulk, seeds=[1])):
        answer = aqmlab(*more, "--goal", "minimize delay", "--out", "here")
    assert answer.status == 2
    assert "another aqmlab tune is at work there" in answer.err
    # What is no search is not touched.
    Path("other").mkdir()
    Path("other/study.db").write_text("no database")
    answer = aqmlab(*begin, "--goal", "minimize delay", "--out", "other")
    assert answer.status == 2
    assert "is no search of aqmlab tune" in answer.err
    assert [path.name for path in Path("other").iterdir()] == ["study.db"]


def test_without_optuna_it_says_what_to_install(
    bulk: Path, aqmlab: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    answer = aqmlab("tune", bulk, "--vary", LIMIT, "--goal", "minimize delay")
    assert answer.status == 2
    assert "pip install 'optuna>=5.0'" in answer.err


def test_importing_aqmlab_does_not_import_optuna() -> None:
    code = "import aqmlab, sys; aqmlab.tune; print('optuna' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


@pytest.mark.long
def test_what_the_machine_could_not_run_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is no property of a setting."""
    asked: dict[str, Any] = {
        "scenarios": Scenario.from_toml(SMALL),
        "vary": "discipline.limit=2..30 packets:whole",
        "goal": "minimize p95",
        "trials": 4,
        "confirm": 2,
        "seeds": (1, 2),
        "store": tmp_path / "store",
    }
    run = schedulers.LocalProcesses.run
    calls = []

    def full(self: Any, scenarios: Any, *more: Any) -> Any:
        calls.append(scenarios)
        if len(calls) == 1:  # the untuned scenario
            return run(self, scenarios, *more)
        return [RunError(f"x: cannot be written: {os.strerror(errno.ENOSPC)}")] * len(scenarios)

    monkeypatch.setattr(schedulers.LocalProcesses, "run", full)
    with pytest.raises(RunError, match=r"4 settings could not be run .*No space left.*tries them"):
        package.tune(**asked, out=tmp_path / "out")
    monkeypatch.setattr(schedulers.LocalProcesses, "run", run)
    again = package.tune(**asked, out=tmp_path / "out")
    fresh = package.tune(**asked, out=tmp_path / "fresh")
    assert [one.state for one in again.trials] == ["measured"] * 4
    assert [one.values for one in again.trials] == [one.values for one in fresh.trials]
