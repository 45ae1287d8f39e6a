"""The rules of claims against the numbers that the papers print.

What a paper's own tables bear out must be true of the published numbers by our rule, and what they
contradict must be false: a rule that reads its claim wrongly shows here, before any run of ours.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from aqmlab.papers import claims, noise
from aqmlab.papers.paper import Paper

PAPERS = Path(__file__).parents[1] / "papers"
KEYS = ("christiansen2000", "le2005", "synctcp2005")


@cache
def found(key: str) -> dict[str, tuple[str, str]]:
    """What a paper's tables say of a claim by its note, and by our rule: true, false or unknown.

    Cases of a rule that need a number which is not printed are left out.
    """
    paper = Paper.load(str(PAPERS / key))
    paper = replace(paper, tables=tuple(map(noise.as_printed, paper.tables)))
    values = {
        (table.id, row.label, column.name): [float(row.published[column.name])]
        for table in paper.tables
        for row in table.rows
        for column in table.columns
        if row.published[column.name]
    }
    result = {}
    for spec in paper.claims["claims"]:
        rules = claims.rules(spec) if "rule" in spec else []
        cases = [claims.case(rule, paper, values, 1) for rule in rules]
        answers = [case.true_of([0]) for case in cases if case is not None]
        word = "unknown" if not answers else "true" if all(answers) else "false"
        result[spec["id"]] = (spec["own_tables"], word)
    return result


@pytest.mark.parametrize("key", KEYS)
def test_rules_say_of_the_published_numbers_what_the_papers_say(key: str) -> None:
    expected = {"agrees": ("true", "unknown"), "not_tabulated": ("true", "unknown")}
    wrong = {
        name: (said, word)
        for name, (said, word) in found(key).items()
        if word not in expected.get(said, ("false",))
    }
    assert wrong == {}


def test_most_rules_are_checked_this_way() -> None:
    counted = {key: Counter(word for _, word in found(key).values()) for key in KEYS}
    assert counted["le2005"] == {"true": 248, "false": 28, "unknown": 12}
    assert counted["christiansen2000"]["true"] >= 34
    assert counted["synctcp2005"]["true"] >= 9


def test_every_claim_of_le_2005_is_there() -> None:
    chapters = Counter(name.partition("-")[0] for name in found("le2005"))
    assert chapters == {"L3": 3, "L4": 127, "L5": 39, "L6": 58, "L7": 50, "L8": 11}


def test_the_print_decides_less_than_half_of_the_claims_of_le_2005() -> None:
    """On copies of its tables in which each experiment was run once more; the draws are seeded."""
    paper = Paper.load(str(PAPERS / "le2005"))
    shares = noise.shares(paper)
    assert shares == noise.shares(paper)
    own = {spec["id"]: spec["own_tables"] for spec in paper.claims["claims"]}
    sound = [share for name, share in shares.items() if own[name] not in claims.CONTRADICTED]
    decided = sum(share >= claims.DECIDABLE for share in sound)
    assert (len(sound), decided) == (242, 97)
    # A wide difference survives, an equality to the last digit does not.
    assert shares["L4-03"] == 1.0
    assert noise.shares(Paper.load(str(PAPERS / "weigle2003"))) == {}


def test_noise_is_what_was_printed_twice() -> None:
    """The copies of Table 6.2 differ from it as Table 7.2 does, over the root of two."""
    paper = Paper.load(str(PAPERS / "le2005"))
    [spec] = [kind for kind in paper.claims["noise"]["of"] if kind["tables"] == ["6.1", "6.2"]]
    kind = noise._noise(paper, spec)
    residuals = np.abs(kind.residuals["p50_s"])
    assert len(residuals) == 70
    assert np.median(residuals) == pytest.approx(0.0034, abs=2e-4)
    assert np.max(residuals) == pytest.approx(0.164, abs=1e-3)
    factors = kind.factors(["p50_s", "p90_s"], 4000, np.random.default_rng(1))
    spread = np.std(factors["p50_s"] - 1)
    assert spread == pytest.approx(np.sqrt(np.mean(residuals**2) / 2), rel=0.1)
    # Whatever moved a row moved all of its percentiles.
    assert np.corrcoef(factors["p50_s"], factors["p90_s"])[0, 1] > 0.7
