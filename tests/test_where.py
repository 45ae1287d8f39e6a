"""`--where` leaves out of labels what it fixed."""

from __future__ import annotations

from pathlib import Path

import pytest
from aqmlab.sweeps.campaign import sweep
from aqmlab.sweeps.file import Sweep
from conftest import SMALL, Cli

TWO_AXES = """
scenario = "small.toml"
seeds = [1, 2]
baseline = { queue = "fq-codel" }
[set]
"measure.warm_up" = "1 s"
"measure.duration" = "3 s"
[[axes]]
name = "queue"
variants.droptail = { "topology.bottleneck.forward.discipline" = "droptail-24" }
variants.fq-codel = { "topology.bottleneck.forward.discipline" = "fq-codel" }
[[axes]]
name = "rate_mbit"
values = [2, 4]
set = { "topology.bottleneck.forward.rate" = "$rate_mbit Mbit/s" }
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of two axes with a baseline of its own."""
    folder = tmp_path_factory.mktemp("where")
    (folder / "small.toml").write_text(SMALL)
    (folder / "axes.toml").write_text(TWO_AXES)
    sweep(Sweep.load(folder / "axes.toml"), out=folder / "out", store=folder / "store")
    return folder / "out"


def test_a_single_value_is_in_no_label(aqmlab: Cli, swept: Path) -> None:
    """In tables, and the sweep's baseline is still found by its shorter label."""
    answer = aqmlab("compare", swept, "--where", "rate_mbit=4", "--no-figure")
    assert answer.status == 0, answer.err
    assert "rate_mbit" not in answer.out
    assert "clearly differs from fq-codel" in answer.out
    assert "clearly differs from fq-codel" in answer.out
    one = aqmlab("show", swept, "--where", "rate_mbit=4,queue=droptail")
    assert "rate_mbit 4" in one.out  # a label that fixes everything still says what it is


def test_several_values_stay_in_labels(aqmlab: Cli, swept: Path) -> None:
    """They tell the rows apart."""
    both = ("--where", "rate_mbit=2", "--where", "rate_mbit=4")
    answer = aqmlab("compare", swept, *both, "--no-figure")
    assert answer.status == 0, answer.err
    assert "rate_mbit" in answer.out


def test_figures_leave_it_out_too(aqmlab: Cli, swept: Path) -> None:
    """Of their legends; the subtitle says it once."""
    for kind in ("cdf", "classes"):
        picture = Path(f"{kind}.svg")
        aqmlab("plot", kind, swept, "--where", "rate_mbit=4", "-o", picture)
        assert picture.read_text().count("rate_mbit 4") <= 2  # the subtitle, and its description
