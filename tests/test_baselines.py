"""The numbers of the baselines that ship with the package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import aqmlab as package
import pyarrow.parquet as pq
import pytest
from aqmlab.cards import baselines, evaluation
from aqmlab.cards.campaign import jobs_of
from aqmlab.cards.candidates import named
from aqmlab.cards.evaluation import baseline_jobs
from aqmlab.cards.roles import tier_cells
from aqmlab.cards.suites import measures
from conftest import ROOT

CURRENT = pytest.mark.skipif(
    not baselines.is_current(),
    reason="THE SHIPPED BASELINES ARE OF ANOTHER ENGINE: make baselines renews them",
)
SHORT = ["a-udp-only", "a-outage", "a-flows-fair"]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> package.Card:
    """A card whose baselines were run: their numbers were hidden."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aqmlab.cards.evaluation.shipped", lambda _: {})
        store = tmp_path_factory.mktemp("fresh")
        return package.evaluate("codel", only=SHORT, seeds=[2], store=store, progress=False)


@CURRENT
def test_they_are_those_of_fresh_runs(fresh: package.Card, tmp_path: Path) -> None:
    card = package.evaluate("codel", only=SHORT, seeds=[2], store=tmp_path, progress=False)
    assert card.to_json() == fresh.to_json()
    assert len([*tmp_path.glob("??/*")]) == 4, "only the candidate was run"


@pytest.mark.long
@CURRENT
def test_they_are_those_of_fresh_runs_of_the_standard_tier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test and a seed that only this tier has."""
    found = []
    for name in ("kept", "fresh"):
        if name == "fresh":
            monkeypatch.setattr("aqmlab.cards.evaluation.shipped", lambda _: {})
        found.append(
            package.evaluate(
                control="reno",
                tier="standard",
                only=["c-media"],
                seeds=[8],
                store=tmp_path / name,
                progress=False,
            )
        )
    assert found[0].to_json() == found[1].to_json()
    runs = [len([*(tmp_path / name).glob("??/*")]) for name in ("kept", "fresh")]
    assert runs == [4, 12], "four settings of the candidate; those of CUBIC and BBRv3 too"


@pytest.mark.long
@CURRENT
def test_they_cover_the_standard_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first seed of each tier: planning all runs takes most of a minute."""
    first = {tier: [seeds[0]] for tier, seeds in evaluation.SEEDS.items()}
    monkeypatch.setattr(evaluation, "SEEDS", first)
    planned = baseline_jobs("standard")
    assert len(baselines.shipped(planned)) == len(planned) > 500
    assert len({*pq.read_table(baselines.FILE)["key"].to_pylist()}) > 5000
    assert baselines.FILE.stat().st_size < 1_000_000


def test_a_tier_has_the_runs_of_those_before_it() -> None:
    few = ("a-base", "a-web", "c-alone")
    quick, standard = (
        {job.scenario.key for job in baseline_jobs(tier, few)} for tier in ("quick", "standard")
    )
    assert len(quick) == 3 * (3 * 5 + 16 * 2), "a seed has 3 cells of queues, 16 of controls"
    assert quick < standard


def test_numbers_of_anything_else_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = jobs_of(
        tier_cells("quick", ["a-base"]), [named("pie"), named("red-12-36")], [1]
    )
    numbers = {"wait p95": 0.012, "gate:age": 0.1}
    written = tmp_path / "written.parquet"
    baselines.write([(first, numbers)], written)
    assert baselines.is_current(written)
    assert baselines.shipped([first, second], written) == {first.scenario.key: numbers}
    again = tmp_path / "again.parquet"
    baselines.write([(first, numbers)], again)
    assert again.read_bytes() == written.read_bytes()

    table = pq.read_table(written)
    for change in ("engine", "formulas"):
        other = tmp_path / f"{change}.parquet"
        metadata = {**table.schema.metadata, change.encode(): b"another"}
        pq.write_table(table.replace_schema_metadata(metadata), other)
        assert not baselines.is_current(other)
        assert baselines.shipped([first], other) == {}
    assert baselines.shipped([first], tmp_path / "missing.parquet") == {}

    changed = [one for one in measures() if one.measure != "goodput"]
    monkeypatch.setattr(baselines, "measures", lambda: changed)
    assert baselines.shipped([first], written) == {}, "the test measures something else now"


def test_a_release_needs_current_ones() -> None:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci/release.py")
    assert spec is not None
    assert spec.loader is not None
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)
    assert bool(release.stale()) != baselines.is_current()
