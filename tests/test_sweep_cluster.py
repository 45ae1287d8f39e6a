"""A sweep on a Dask cluster of several processes: the same bytes as in processes of our own."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aqmlab as package
import pytest
from aqmlab import _native, plugins
from aqmlab.engine import schedulers
from aqmlab.engine.commit import RunCommit
from aqmlab.engine.store import Store
from aqmlab.errors import AqmlabError, NoWorkerWarning
from aqmlab.scenario.scenario import Scenario
from conftest import SMALL, Cli
from test_sweep import SWEEP, Listener, digest, stored

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore:Port 8787 is already in use"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a cluster of two processes."""
    folder = tmp_path_factory.mktemp("cluster")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=str(folder),
    ) as made:
        yield made.scheduler_address


def test_a_cluster_gives_the_same_results(small: Path, cluster: str, aqmlab: Cli) -> None:
    file = small.with_name("limits.toml")
    file.write_text(SWEEP)
    listener = Listener()
    package.sweep(file, scheduler=cluster, out="dask", store="dask-store", progress=listener)
    assert listener.made == [8]
    assert max(listener.shares) == 1.0
    package.sweep(file, jobs=2, out="local", store="local-store")
    assert digest("dask") == digest("local")
    assert stored("dask-store").keys() == stored("local-store").keys()
    for path in Path("local-store").glob("*/*/*"):
        other = Path("dask-store", *path.parts[1:])
        if path.name not in {"manifest.json", "metadata.json"}:  # they hold times
            assert other.read_bytes() == path.read_bytes(), path
    # What one of them made, the other finds.
    longer = ["--seeds", "1..3", "--store", "local-store", "--out", "local"]
    answer = aqmlab("sweep", file, *longer, "--scheduler", cluster)
    assert answer.status == 0
    assert "4 runs to make" in answer.err
    assert "with 2 at a time; 8 in the store" in answer.err


PLUGIN = """
from aqmlab.plugins import ADMIT, SIGNAL, Discipline, Packets, chance

class Above(Discipline):
    above: Packets = 20
    p: float = 0.1

    def on_arrival(self, event):
        return SIGNAL if event.packets > self.above and chance(event, self.p) else ADMIT
"""
PLUGIN_SWEEP = """
scenario = "small.toml"
seeds = "1..2"

[[axes]]
name = "p"
values = [0.05, 0.5]
set = { "topology.bottleneck.discipline" = { kind = "plugin", name = "above", p = "$p" } }
"""


@pytest.mark.long
def test_workers_of_sweeps_and_clusters_get_the_plug_in(
    small: Path, cluster: str, tmp_path: Path
) -> None:
    source = tmp_path / "above.py"
    source.write_text(PLUGIN)
    plugins.load(source)
    source.unlink()  # a worker elsewhere has no such file
    file = small.with_name("plugin.toml")
    file.write_text(PLUGIN_SWEEP)
    for name, how in (("dask", {"scheduler": cluster}), ("local", {"jobs": 2})):
        package.sweep(file, out=name, store=f"{name}-store", **how)
        kept = list(Path(f"{name}-store").glob("*/*/plugin-above.py"))
        assert len(kept) == 4
        assert all(each.read_text() == PLUGIN for each in kept)
    assert digest("dask") == digest("local")
    sha256 = hashlib.sha256(PLUGIN.encode()).hexdigest()
    scenarios = list(Path("dask-store").glob("*/*/scenario.toml"))
    assert all(sha256 in scenario.read_text() for scenario in scenarios)
    # Another source is another run.
    source.write_text(PLUGIN.replace("above: Packets = 20", "above: Packets = 3"))
    plugins.load(source)
    listener = Listener()
    package.sweep(file, scheduler=cluster, out="other", store="dask-store", progress=listener)
    assert listener.made == [4]
    assert digest("other") != digest("dask")


def test_a_worker_of_another_version_is_refused() -> None:
    answer = schedulers.carried(Scenario.from_toml(SMALL), "0")
    assert isinstance(answer, AqmlabError)
    assert "not 0; install the same aqmlab there" in str(answer)
    files = schedulers.carried(Scenario.from_toml(SMALL), _native.engine())
    assert not isinstance(files, AqmlabError)
    assert {"summary.json", "metadata.json", "scenario.toml"} < set(files)


def test_failures_come_back_as_errors(
    small: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "engine", lambda: "0")  # here, not on the cluster
    with schedulers.DaskCluster(cluster) as pool:
        [outcome] = pool.run(
            [Scenario.load(small)], Store(Path("store")), lambda *_: None, lambda run: run
        )
    assert isinstance(outcome, AqmlabError)
    assert "install the same aqmlab there" in str(outcome)


@pytest.mark.long
def test_a_cluster_without_workers_is_reported_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedulers, "_LOOK_S", 0.1)
    monkeypatch.setattr(schedulers, "_SAY_AGAIN_S", 0.5)
    with distributed.LocalCluster(
        n_workers=0,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=str(tmp_path),
    ) as made:
        joining = threading.Timer(2.0, made.scale, [1])
        joining.start()
        store = Store(tmp_path / "store")
        with (
            schedulers.DaskCluster(made.scheduler_address) as pool,
            pytest.warns(NoWorkerWarning, match="has had no worker for") as warned,
        ):
            [outcome] = pool.run(
                [Scenario.from_toml(SMALL)], store, lambda *_: None, lambda run: run
            )
        joining.join()
    assert not isinstance(outcome, AqmlabError)
    assert outcome.seed == 1
    assert len(warned) > 1


class Lost:
    """A future whose workers have died once too often."""

    def result(self) -> None:
        raise RuntimeError("all those workers\ndied")


@pytest.mark.long
def test_a_run_that_the_cluster_loses_is_a_failure(tmp_path: Path) -> None:
    with RunCommit(Store(tmp_path), lambda run: run) as group:
        outcome = schedulers.collected(Lost(), "key", group)
    assert isinstance(outcome, AqmlabError)
    assert str(outcome) == "the cluster lost it: all those workers died"
    assert outcome.exit_status == 1


@pytest.mark.long
def test_a_search_is_the_same_on_a_cluster(small: Path, cluster: str) -> None:
    pytest.importorskip("optuna")

    def search(out: str, **where: Any) -> bytes:
        package.tune(
            small,
            vary="discipline.limit=5..50 packets:log:whole",
            goal="minimize p90",
            trials=4,
            seeds=[1, 2],
            confirm=2,
            out=out,
            store=f"{out}-store",
            progress=False,
            **where,
        )
        return Path(out, "tune.json").read_bytes()

    assert search("dask", scheduler=cluster) == search("local", jobs=2)
