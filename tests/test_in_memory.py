"""Runs in memory: the summary of a run directory, and nothing on the disk."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aqmlab import Run, Scenario, run, simulate
from aqmlab.errors import RunError
from aqmlab.results.statistics import initialization_bias
from aqmlab.results.warm_up import COLUMNS, warm_up_columns
from conftest import ROOT, SMALL

RECORDED = {
    "measure.record": ["responses", "flows", "queue"],
    "measure.flow_trace": {"flows": 3},
}
SHORT = {"measure.warm_up": "1 s", "measure.duration": "2 s"}
SCENARIOS = {
    "small": Scenario.from_toml(SMALL),
    "traced": Scenario.from_toml(SMALL).with_overrides(RECORDED),
    "two ways": Scenario.load(ROOT / "scenarios/quickstart.toml").with_overrides(SHORT),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_its_summary_equals_that_of_a_run_on_disk(name: str, tmp_path: Path) -> None:
    on_disk = Run.open(run(SCENARIOS[name], out_dir=tmp_path / "run", progress=False).path)
    found = simulate(SCENARIOS[name])
    assert found.summary == on_disk.summary
    assert found.scenario == on_disk.scenario
    assert found.label == on_disk.label
    assert found.metadata.keys() == on_disk.metadata.keys()
    for key in ("key", "seed", "versions", "load"):
        assert found.metadata[key] == on_disk.metadata[key]


def test_it_writes_nothing_and_has_no_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.setenv(name, str(tmp_path))
    found = simulate(SCENARIOS["traced"], seed=3)
    assert found.seed == 3
    assert found.responses is None
    assert found.queue is None
    assert found.rows("flows") == 0
    assert not list(tmp_path.iterdir())


def test_what_a_process_made_equals_what_it_wrote(tmp_path: Path) -> None:
    """No file of a run is read for it."""
    made = run(SCENARIOS["small"], out_dir=tmp_path / "run", progress=False)
    opened = Run.open(made.path)
    assert made == opened
    assert made.manifest == opened.manifest
    assert made.queue == opened.queue
    assert pickle.loads(pickle.dumps(made)) == opened


@pytest.mark.parametrize("name", SCENARIOS)
def test_its_json_files_are_what_python_writes(name: str, tmp_path: Path) -> None:
    """The engine writes them; the bytes of earlier runs stay."""
    path = run(SCENARIOS[name], out_dir=tmp_path / "run", progress=False).path
    files = {file.name: file.read_bytes() for file in path.iterdir()}
    for file in ("summary.json", "metadata.json", "manifest.json"):
        content = json.loads(files[file])
        assert files[file].decode() == json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    others = sorted(files.keys() - {"manifest.json"})
    assert json.loads(files["manifest.json"]) == {
        "key": json.loads(files["metadata.json"])["key"],
        "files": {
            file: {"bytes": len(files[file]), "sha256": hashlib.sha256(files[file]).hexdigest()}
            for file in others
        },
    }
    assert [*json.loads(files["manifest.json"])["files"]] == others


def test_an_exception_of_its_progress_ends_it() -> None:
    calls: list[float] = []

    def progress(done: float) -> None:
        calls.append(done)
        raise RunError("enough")

    long = SCENARIOS["small"].with_overrides({"measure.duration": "1 h"})
    with pytest.raises(RunError, match="enough"):
        simulate(long, progress=progress)
    assert len(calls) == 1


def test_the_series_of_the_warm_up_are_the_recorded_rows(tmp_path: Path) -> None:
    made = run(SCENARIOS["small"], out_dir=tmp_path / "run", progress=False)
    assert made.queue is not None
    assert made.responses is not None
    packets = [
        float(row["packets"])
        for row in made.queue.to_pylist()
        if row["time_s"] >= 2 and (row["link"], row["direction"]) == ("bottleneck", "forward")
    ]
    assert len({row["direction"] for row in made.queue.to_pylist()}) == 2
    times = [row["response_s"] for row in sorted(made.responses.to_pylist(), key=_start)]
    wanted = [initialization_bias(packets), initialization_bias(np.log(np.maximum(times, 1e-6)))]
    assert None not in wanted
    assert warm_up_columns(made) == dict(zip(COLUMNS, wanted, strict=True))


def _start(row: dict[str, Any]) -> float:
    """When a response began."""
    return float(row["start_s"])
