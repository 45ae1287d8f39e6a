"""Validation of disciplines: quantities, checks, verdicts, the page and the figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from aqmlab.errors import AqmlabError
from conftest import ROOT
from made_runs import made_run

from lab.disciplines import validate
from lab.disciplines.checks import (
    Check,
    Measure,
    Results,
    Validation,
    expected,
    judge,
    share_between,
    values_of,
)

SPEC = """
title = "the queue follows the limit"
scenario = "../../small.toml"
set = { "topology.bottleneck.discipline.limit" = "$limit packets" }
each = { limit = [10, 20] }

[variants]
slow = { "topology.bottleneck.rate" = "1 Mbit/s" }
fast = {}

[quantities.longest]
title = "longest queue over the limit of 20"
terms = [{ key = "links.bottleneck.forward.queue_max_packets" }]
over = [{ constant = 20 }]

[quantities.late]
title = "queue after 10 s (packets)"
samples = { column = "packets", take = "max", window_s = [10, 22] }

[[checks]]
claim = "never beyond the limit"
quantity = "longest"
of = "slow"
at_least = 0.5
at_most = 1

[[checks]]
claim = "twice the limit, twice the queue"
quantity = "longest"
of = "slow"
across = "spread"
at_least = 2
at_most = 2

[[figures]]
kind = "lines"
quantity = "longest"
band = [0, 1]

[[figures]]
kind = "time"
column = "packets"
y = "queue (packets)"
at = [20]
rule = [10]

[[figures]]
kind = "bars"
quantities = ["longest", "late"]
y = "queue"

[[figures]]
kind = "cdf"
class = "fetches"
limit_s = 2
"""


@pytest.fixture
def small_validation(small: Path) -> Path:
    folder = small.parent / "lab" / "disciplines"
    folder.mkdir(parents=True)
    file = folder / "small.toml"
    file.write_text(SPEC)
    return file


def validation(path: Path) -> Validation:
    return Validation.load(path)


def test_the_command_writes_page_and_figure(
    small_validation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert validate.main([]) == 0
    page = Path("docs/validation.md").read_text()
    assert "2 of 2 checks hold" in page
    assert "What does not hold" not in page
    page = Path("records/validation.md").read_text()
    assert "| 0.5 to 1 | 0.5 to 1 | yes |" in page
    assert "| 2 | 2 to 2 | yes |" in page
    assert capsys.readouterr().out.strip() in page
    figure = Path("docs/images/disciplines/small.svg").read_text()
    assert "slow, 20 limit" in figure
    assert "share of responses (%)" in figure
    # The second time nothing runs and nothing changes.
    before = {path: path.stat().st_mtime for path in Path("out/validate/runs").iterdir()}
    assert len(before) == 4
    assert validate.main(["small"]) == 0
    assert before == {path: path.stat().st_mtime for path in Path("out/validate/runs").iterdir()}
    small_validation.write_text(SPEC.replace("at_most = 1\n", "at_most = 0.9\n"))
    assert validate.main(["small"]) == 1


@pytest.mark.usefixtures("small_validation")
def test_the_command_keeps_the_text_by_hand() -> None:
    page, by_hand = Path("docs/validation.md"), "<!-- generated until here -->\n\n## By hand\n"
    assert validate.main([]) == 0
    generated = page.read_text()
    page.write_text(f"an old page\n\n{by_hand}")
    assert validate.main([]) == 0
    assert page.read_text() == f"{generated}\n{by_hand}"


@pytest.mark.parametrize(
    ("found", "replacement", "message"),
    [
        ('quantity = "longest"\nof', 'quantity = "length"\nof', "names the quantity length"),
        ('of = "slow"\nacross', 'of = "slowest"\nacross', "names the variant slowest"),
        ("at_least = 2\nat_most = 2", "", "no at_least or at_most"),
        ("limit = [10, 20]", "limit = [10], flows = [1]", "each has 2 names"),
        ('of = "slow"\nacross', 'off = "slow"\nacross', "unexpected keyword argument 'off'"),
        ("variants", "variant", "variant"),
        (
            "[variants]",
            '[scenarios]\nslower = "small.toml"\n[variants]',
            "names the variant slower",
        ),
        ("at_least = 0.5", "windows_s = [[0, 1]]", "longest is not made of samples"),
    ],
)
def test_what_is_wrong_in_a_file(
    small_validation: Path, found: str, replacement: str, message: str
) -> None:
    small_validation.write_text(SPEC.replace(found, replacement))
    with pytest.raises(AqmlabError, match=message):
        validation(small_validation)


def test_a_name_without_a_file(small_validation: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert small_validation.exists()
    assert validate.main(["smell"]) == 2
    assert "there is no lab/disciplines/smell.toml; known: small" in capsys.readouterr().err


def test_samples_of_the_forward_queue(elsewhere: Path) -> None:
    run = made_run(elsewhere / "run", queue=np.arange(100.0))  # 60 s to 69.9 s

    def value(**spec: object) -> float:
        return Measure("", samples={"column": "packets", **spec}).value(run)

    assert value(take="mean") == 49.5
    assert value(take="max", window_s=[60, 64.95]) == 49
    assert value(take="quantile", quantile=0.5, window_s=[60, 60.2]) == 1
    assert value(take="time-above", above=30) == pytest.approx(3.1)
    assert value(take="time-above", above=1000) == float("inf")
    assert value(take="share-between", between=[0, 24]) == 0.25
    assert share_between(np.array([1.0, 2.0, 3.0, 4.0]), 2, 3) == 0.5
    with pytest.raises(AqmlabError, match="no column avg"):
        Measure("", samples={"column": "avg", "take": "mean"}).value(run)
    with pytest.raises(AqmlabError, match="no samples from 80 s"):
        value(take="mean", window_s=[80, 90])


def test_a_quotient_of_sums(elsewhere: Path) -> None:
    run = made_run(elsewhere / "run")
    side = "links.bottleneck.forward"
    quantity = Measure(
        "distance over loss",
        terms=({"key": f"{side}.queue_mean_packets"}, {"constant": -60}),
        over=({"key": f"{side}.loss_rate", "factor": 10},),
    )
    assert quantity.value(run) == pytest.approx(1.2 / 0.4)


def test_a_check_relative_to_another_variant(small_validation: Path, elsewhere: Path) -> None:
    runs: Results = {
        (variant, at): [made_run(elsewhere / f"{variant}{at:g}", times=np.full(3, time))]
        for variant, at, time in [("slow", 10, 3.0), ("slow", 20, 4.0), ("fast", 10, 1.0)]
    }
    loaded = validation(small_validation)
    loaded = replace(
        loaded,
        quantities={"mean": Measure("", terms=({"key": "responses.all.mean_s"},))},
    )
    check = Check("", "mean", "slow", at=(10,), relative_to="fast", at_most=2.9)
    values = values_of(loaded, check, runs)
    assert values == (3.0,)
    assert not judge(check, values).holds
    wider = Check("", "mean", "slow", at_least=3)
    both = judge(wider, values_of(loaded, wider, runs))
    assert both.holds
    assert both.measured == "3 to 4"


def test_a_check_over_windows(small_validation: Path, elsewhere: Path) -> None:
    run = made_run(elsewhere / "run", queue=np.r_[np.full(50, 10.0), np.full(50, 30.0)])
    runs: Results = {(variant, at): [run] for variant in ("slow", "fast") for at in (10, 20)}
    loaded = validation(small_validation)
    windows = ([60, 64.9], [65, 69.9])
    check = Check("", "late", "slow", at=(10,), windows_s=windows, at_most=25)
    assert values_of(loaded, check, runs) == (10.0, 30.0)
    assert not judge(check, (10.0, 30.0)).holds
    assert judge(check, values_of(loaded, replace(check, windows_s=windows[:1]), runs)).holds
    assert values_of(loaded, replace(check, across="spread"), runs) == (3.0,)
    assert values_of(loaded, replace(check, relative_to="fast"), runs) == (1.0, 1.0)
    assert validate.compared(check) == ", during 60 to 64.9, 65 to 69.9 s"


def test_a_variant_with_a_scenario_of_its_own(small: Path, small_validation: Path) -> None:
    (small.parent / "other.toml").write_text(small.read_text())
    own = '[scenarios]\nfast = "../../other.toml"\n[variants]'
    small_validation.write_text(SPEC.replace("[variants]", own))
    plan = validation(small_validation).plan()
    names = {variant: scenario.name for (variant, _), [scenario] in plan.items()}
    assert names == {"slow": "small", "fast": "other"}


def test_a_known_miss_is_expected_and_said() -> None:
    check = Check("", "queue", "slow", at_most=1, miss="too few flows")
    missed, held = judge(check, (2.0,)), judge(check, (1.0,))
    assert expected(missed)
    assert validate.answer(missed) == "no: too few flows"
    assert not expected(held)
    assert validate.answer(held) == "yes, against the known miss"
    assert not judge(replace(check, miss=None), (float("nan"),)).holds


def test_what_ships_is_whole() -> None:
    files = sorted((ROOT / "lab/disciplines").glob("*.toml"))
    assert files
    for file in files:
        shipped = validation(file)
        assert shipped.plan()
        page = (ROOT / "docs" / shipped.page_of).read_text()
        assert f"(../images/disciplines/{shipped.name}.svg)" in page
        assert (ROOT / f"docs/images/disciplines/{shipped.name}.svg").exists()
