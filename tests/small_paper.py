"""A small paper, and an engine that makes up its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aqmlab.errors import AqmlabError, RunError
from aqmlab.papers.reproduce import reproduce
from aqmlab.results.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from aqmlab.scenario.scenario import Scenario

Results = dict[str, Run | AqmlabError]

SMALL = """
paper = "A small paper"
scenario = "laboratory.toml"
seeds = [1, 2]
[common]
"measure.record" = "[]"
[quick]
"measure.duration" = "2 s"
[columns.median]
title = "median (s)"
tolerance = { relative = 0.1 }
terms = [{ key = "responses.all.p50_s" }]
[columns.users]
title = "users"
tolerance = { relative = 0.1 }
[[tables]]
id = "1"
title = "Table 1"
published = "table.csv"
row = "$users users"
compare = ["median"]
set = { "traffic.browsers.users" = { column = "users", factor = 2 } }
[[fits]]
id = "line"
title = "A line"
published = "line.csv"
row = "at $target"
over = "1"
column = "users"
x = { column = "users", factor = 2 }
target_column = "target"
terms = [{ key = "responses.all.count" }]
"""
LABORATORY = """
[measure]
warm_up = "5 s"
duration = "10 s"
[topology]
kind = "dumbbell"
bottleneck = { rate = "1 Mbit/s", discipline = { kind = "droptail", limit = "50 packets" } }
[[traffic]]
name = "browsers"
kind = "mah-web"
users = 10
start_within = "5 s"
rtt = { kind = "constant", rtt = "50 ms" }
"""
CLAIMS = """
quick = []
[rows]
few = ["1", "10 users"]
more = ["1", "20 users"]
[[claims]]
id = "S"
type = "ordering"
text = "more users wait longer"
own_tables = "agrees"
rule = "few.median < more.median - 0.05"
"""


def written(folder: Path) -> Path:
    """The paper, in a folder that is made for it."""
    folder.mkdir()
    (folder / "tables.toml").write_text(SMALL)
    (folder / "laboratory.toml").write_text(LABORATORY)
    (folder / "claims.toml").write_text(CLAIMS)
    (folder / "table.csv").write_text("users,median\n10,0.1\n20,0.3\n30,\n")
    (folder / "line.csv").write_text("target,users\n1000,31\n")
    return folder


def executor(median: Callable[[int, int], float | None]) -> Callable[..., Results]:
    """In place of the engine: runs whose median is a function of users and seed."""

    def execute_all(scenarios: Sequence[tuple[str, Scenario]], *_: object) -> Results:
        results: Results = {}
        for name, scenario in scenarios:
            users = scenario.data["traffic"][0]["users"]
            value = median(users, scenario.seed)
            summary = {"responses": {"all": {"p50_s": value, "count": 40 * users - 200}}}
            results[name] = (
                RunError("it broke")
                if value is None
                else Run.in_memory({}, summary, label=name, metadata={"cpu_s": 1.0})
            )
        return results

    return execute_all


def scoreboard(paper: Path, tables: Sequence[str] | None = None, **options: Any) -> dict[str, Any]:
    """What a reproduction of a paper says as JSON."""
    return reproduce(str(paper), tables, **options).to_json()
