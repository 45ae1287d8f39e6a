"""Distributions that every run keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from aqmlab.engine.execute import execute
from aqmlab.errors import AqmlabError
from aqmlab.papers.measured import Asked, measure, quantities
from aqmlab.papers.paper import Paper, PaperColumn, PaperRow, Table
from aqmlab.papers.plan import Plan
from aqmlab.results import recorded
from aqmlab.results.distributions import Distribution
from aqmlab.results.terms import Term
from aqmlab.scenario.scenario import Scenario

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from aqmlab.results.distributions import Of

TWO_CLASSES = """
measure = { warm_up = "2 s", duration = "20 s" }

[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
discipline = { kind = "droptail", limit = "50 packets" }

[[traffic]]
name = "near"
kind = "poisson"
rate = "20 /s"
request = { kind = "constant", size = "400 bytes" }
response = { kind = "bounded-pareto", shape = 1.2, minimum = "2 kB", maximum = "1 MB" }
tcp = "rfc"
rtt = { kind = "constant", rtt = "20 ms" }

[[traffic]]
name = "far"
kind = "poisson"
rate = "10 /s"
request = { kind = "constant", size = "400 bytes" }
response = { kind = "bounded-pareto", shape = 1.2, minimum = "2 kB", maximum = "1 MB" }
tcp = "rfc"
rtt = { kind = "constant", rtt = "200 ms" }
"""


def test_the_distribution_agrees_with_the_rows(tmp_path: Path) -> None:
    run = execute(Scenario.from_toml(TWO_CLASSES), tmp_path / "run")
    cases: list[tuple[Of, pa.Table | None, str]] = [
        ("response", run.responses, "response_s"),
        ("flow", run.flows, "duration_s"),
    ]
    for what, table, column in cases:
        for name in ("near", "far", None):
            found = Distribution.of_run(run, what, name)
            assert table is not None
            of_class = np.array(table["class"].to_pylist()) == name
            times = table[column].to_numpy()[of_class if name else slice(None)]
            assert found.total == len(times) > 100
            for limit in np.quantile(times, [0.1, 0.5, 0.9]):
                exact = np.mean(times <= limit)
                wider = np.mean(times <= limit * 1.002 + 2e-6)
                assert exact <= found.share_within(limit) <= wider


def test_terms_reach_into_the_distribution(tmp_path: Path) -> None:
    run = execute(Scenario.from_toml(TWO_CLASSES, [("measure.record", "[]")]), tmp_path / "run")
    numbers = recorded.numbers(run)
    within = Term("recorded.far.le.500ms", 100.0).value(numbers)
    assert 0 < Term("recorded.far.le.420ms", 100.0).value(numbers) < within <= 100
    assert Term("recorded.near.flow.le.100s").value(numbers) == 1.0
    near = Term("recorded.near.le.500ms", 100.0).value(numbers)
    both = Term("recorded.*.le.500ms", 100.0).value(numbers)
    assert both == Term("recorded.all.le.500ms", 100.0).value(numbers)
    assert Term("recorded.n*r.le.500ms", 100.0).value(numbers) == near > both > within
    with pytest.raises(AqmlabError, match=r"no key recorded\.no_\*"):
        Term("recorded.no_*.le.1s").value(numbers)
    with pytest.raises(AqmlabError, match=r"no key recorded\.all\.le\.soon"):
        Term("recorded.all.le.soon").value(numbers)
    with pytest.raises(AqmlabError, match=r"no key recorded\.all\.mean_bytes"):
        Term("recorded.all.mean_bytes").value(numbers)


def test_nothing_has_no_share() -> None:
    nothing = Distribution(np.array([]), np.array([], dtype=np.int64))
    assert (nothing.total, nothing["1s"]) == (0, None)


def test_runs_keep_nothing_of_what_tables_read(tmp_path: Path) -> None:
    """Else memory would grow with the number of runs."""
    run = execute(Scenario.from_toml(TWO_CLASSES), tmp_path / "run")
    within = PaperColumn("le", "within 1 s", (Term("recorded.all.le.1s"),))
    size = PaperColumn("size", "mean size", (Term("recorded.all.mean_bytes"),))
    table = Table("1", "Table", (within, size), (PaperRow("row", {"size": "7"}),), tmp_path)
    plan = Plan(Paper.load("le2005"), [1], rows={("1", "row"): ["run"]})
    measured = measure({"run": run}, quantities(plan, [table]))["run"]
    assert not {"responses", "distribution"} & vars(run).keys()
    numbers = recorded.numbers(run)["recorded"]["all"]
    assert {"responses", "distribution"} <= vars(run).keys()
    assert measured[Asked.of(within, "")] == (numbers["le"]["1s"], None)
    assert measured[Asked.of(size, "7")] == (numbers["mean_bytes"], None)
    assert set(measured.numbers.values()) == {numbers["le"]["1s"], numbers["mean_bytes"]}
