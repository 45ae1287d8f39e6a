"""Sweep files: what they can say, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aqmlab.errors import AqmlabError
from aqmlab.sweeps.file import Precision, Sweep
from conftest import ROOT, SMALL
from hypothesis import given
from hypothesis import strategies as st

HEAD = 'scenario = "small.toml"\n'
LOADS = '[[axes]]\nname = "rate"\nfield = "traffic.fetches.rate"\n'
RED = (
    '{ kind = "red", min_th = "$min_th packets", max_th = "$max_th packets", limit = "60 packets" }'
)
SIDE_BY_SIDE = f"""
[[axes]]
zip = {{ min_th = [5, 10], max_th = [15, 30] }}
set = {{ "topology.bottleneck.discipline" = {RED} }}
"""


def sweep(text: str) -> Sweep:
    """The sweep of a file beside the small scenario."""
    Path("sweep.toml").write_text(HEAD + text)
    return Sweep.load("sweep.toml")


def columns(found: Sweep) -> list[dict[str, Any]]:
    """The variables of every point."""
    return [dict(point.variables) for point in found.points]


@pytest.mark.usefixtures("small")
def test_a_sweep_without_axes_is_the_scenario() -> None:
    found = sweep("")
    assert (found.name, found.title, found.seeds, columns(found)) == ("sweep", "sweep", None, [{}])
    scenario = found.scenario_of(found.points[0])
    assert scenario.seed == 1
    assert found.scenario_of(found.points[0], 7).seed == 7


@pytest.mark.usefixtures("small")
def test_the_last_axis_varies_fastest() -> None:
    found = sweep(SIDE_BY_SIDE + LOADS + 'values = ["20 /s", "30 /s"]')
    assert columns(found) == [
        {"min_th": 5, "max_th": 15, "rate": "20 /s"},
        {"min_th": 5, "max_th": 15, "rate": "30 /s"},
        {"min_th": 10, "max_th": 30, "rate": "20 /s"},
        {"min_th": 10, "max_th": 30, "rate": "30 /s"},
    ]
    scenario = found.scenario_of(found.points[3], 2).data
    assert scenario["traffic"][0]["rate"] == "30 /s"
    discipline = scenario["topology"]["bottleneck"]["forward"]["discipline"]
    assert (discipline["min_th"], discipline["max_th"]) == ("10 packets", "30 packets")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ from = 0.5, to = 1.1, step = 0.1 }", [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1]),
        ("{ from = 10, to = 35, step = 10 }", [10, 20, 30]),
        ("{ from = 0, to = 1, count = 4 }", [0, 0.333333, 0.666667, 1]),
        (
            '{ from = 15, to = 480, count = 6, spacing = "log", whole = true }',
            [15, 30, 60, 120, 240, 480],
        ),
        ('{ from = 0.001, to = 1, count = 4, spacing = "log" }', [0.001, 0.01, 0.1, 1]),
    ],
)
@pytest.mark.usefixtures("small")
def test_ranges(text: str, expected: list[float]) -> None:
    found = sweep(f'[[axes]]\nname = "x"\nfield = "title"\nrange = {text}')
    assert [point.variables["x"] for point in found.points] == expected


@given(st.integers(-999, 999), st.integers(1, 999), st.integers(0, 50), st.integers(0, 4))
def test_steps_are_the_decimal_numbers_that_people_mean(
    first: int, width: int, count: int, places: int
) -> None:
    from aqmlab._util.fields import Field
    from aqmlab.sweeps.axes import ranged

    def decimal(number: int) -> float:
        return float(f"{number}e-{places}")

    spec = {"from": decimal(first), "to": decimal(first + count * width), "step": decimal(width)}
    assert ranged(Field("x", spec)) == [decimal(first + k * width) for k in range(count + 1)]


@pytest.mark.usefixtures("small")
def test_variants_set_what_they_like() -> None:
    found = sweep(
        """
        [[axes]]
        name = "queue"
        [axes.variants.base]
        [axes.variants."ECN, RED"]
        "topology.bottleneck.discipline" = "red-12-36"
        "topology.bottleneck.discipline.ecn" = true
        """
    )
    assert columns(found) == [{"queue": "base"}, {"queue": "ECN, RED"}]
    kinds = [
        found.scenario_of(point).data["topology"]["bottleneck"]["forward"]["discipline"]
        for point in found.points
    ]
    assert [kind["kind"] for kind in kinds] == ["droptail", "red"]
    assert kinds[1]["ecn"] is True


@pytest.mark.usefixtures("small")
def test_tables_give_their_distinct_rows() -> None:
    Path("rows.csv").write_text("table,load,queue\nA,80,30\nA,80,30\nA,90,x\nB,98,60\n")
    axis = '[[axes]]\nset = {{ title = "$load" }}\ntable = {{ file = "rows.csv", columns = {} }}'
    assert columns(sweep(axis.format('["load"]'))) == [{"load": 80}, {"load": 90}, {"load": 98}]
    both = axis.format('["load", "queue"], where = { table = "A" }')
    assert columns(sweep(both)) == [{"load": 80, "queue": "30"}, {"load": 90, "queue": "x"}]
    one = axis.format('["queue"], where = { load = 98 }').replace("$load", "$queue")
    assert columns(sweep(one)) == [{"queue": 60}]


@pytest.mark.usefixtures("small")
def test_derived_variables_and_filters() -> None:
    found = sweep(
        "derive = { users = \"34 * pct\", kind = \"'low' if pct < 90 else 'high'\" }\n"
        'keep = ["pct != 90", "not (kind == \'high\' and deep)"]\n'
        'set = { title = "$users users, ${kind}, $$1" }\n'
        '[[axes]]\nname = "pct"\nvalues = [80, 90, 98]\n'
        '[[axes]]\nname = "deep"\nfield = "measure.duration"\nvalues = [true, false]\nset = {'
        ' "measure.duration" = "10 s" }'
    )
    assert columns(found) == [
        {"pct": 80, "deep": True, "users": 2720, "kind": "low"},
        {"pct": 80, "deep": False, "users": 2720, "kind": "low"},
        {"pct": 98, "deep": False, "users": 3332, "kind": "high"},
    ]
    assert found.scenario_of(found.points[0]).title == "2720 users, low, $1"


@pytest.mark.usefixtures("small")
def test_values_keep_their_kind() -> None:
    """A text that is one variable is its value; inside other text it is written out."""
    found = sweep(
        f'set = {{ "topology.bottleneck.discipline" = {RED[:-2]}, max_p = "$max_p", gentle = '
        '"$gentle" } }\n'
        "[[axes]]\nzip = { min_th = [5.0], max_th = [15], max_p = [0.25], gentle = [true] }"
    )
    data = found.scenario_of(found.points[0]).data
    discipline = data["topology"]["bottleneck"]["forward"]["discipline"]
    wanted = {"min_th": "5 packets", "max_th": "15 packets", "max_p": 0.25, "gentle": True}
    assert {key: discipline[key] for key in wanted} == wanted


@pytest.mark.usefixtures("small")
def test_seeds_precision_baseline_and_overrides() -> None:
    found = sweep(
        'seeds = "1..3,7"\nprecision = ["5% of p50", "0.01 of responses.fetches.le_1s"]\n'
        'max_seeds = 9\nbaseline = { min_th = 5 }\nshow = ["p50", "loss"]\n'
        + SIDE_BY_SIDE
        + LOADS
        + 'values = ["20 /s", "30 /s"]'
    )
    assert found.seeds == (1, 2, 3, 7)
    assert found.max_seeds == 9
    assert found.precision == (
        Precision("responses.all.p50_s", 0.05, relative=True),
        Precision("responses.fetches.le_1s", 0.01, relative=False),
    )
    assert [found.baseline_of(point) for point in found.points] == [None, None, (0, 0), (0, 1)]
    assert sweep("seeds = [4, 2]").seeds == (4, 2)
    other = found.with_seeds([5]).with_overrides([("measure.duration", "7 s")])
    assert other.seeds == (5,)
    assert other.scenario_of(other.points[0]).data["measure"]["duration"] == "7 s"


ONE = '[[axes]]\nname = "x"\nfield = "title"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sede = [1]", 'sede: unknown key; did you mean "seeds"? (allowed: title, scenario,'),
        ("x = [", "is not TOML"),
        ("seeds = 5", 'seeds: found 5; expected seeds such as "1..5" or [1, 2, 3]'),
        ('seeds = "1..10000000"', 'seeds: found "1..10000000"; at most 10,000 at a time'),
        ('seeds = "5..1"', 'seeds: found "5..1", whose first seed is larger'),
        ("seeds = [1, -2]", "seeds.1: found -2; expected a whole number from 0"),
        ("seeds = [1, 1]", "seeds: holds a seed twice"),
        ("axes = []", "axes: found []; expected a list of axes"),
        ("axes = 3", "axes: found 3; expected a list of axes"),
        ("axes = [3]", "axes.0: found 3; expected a table"),
        ("[[axes]]", "axes.0: found none of them; an axis has exactly one of values, range,"),
        (ONE + "values = [1]\nrange = {}", "axes.x: found values and range; an axis has"),
        (ONE + "value = [1]", 'axes.x.value: unknown key; did you mean "values"?'),
        (ONE + "values = []", "axes.x.values: found []; expected a list of values"),
        (ONE + "values = [1, [2]]", "axes.x.values.1: found [2]; expected a text, a number"),
        (ONE + "values = [1, nan]", "axes.x.values.1: found NaN; expected a number"),
        (ONE + 'values = [1, "a"]', "axes.x.values: holds values of several kinds"),
        (ONE + "values = [1, 1.0]", "axes.x.values: x = 1 stands there twice"),
        ("[[axes]]\nvalues = [1]", "axes.0: has no name, and no field"),
        ('[[axes]]\nname = "a b"\nvalues = [1]', 'axes.a b.name: found "a b"; expected a name of'),
        ('[[axes]]\nname = "seed"\nvalues = [1]', 'axes.seed.name: "seed" is a column that all'),
        ('[[axes]]\nname = "x"\nvalues = [1]', "axes.x: changes nothing; give it a field, or use"),
        (ONE + "range = { from = 1, to = 2 }", "axes.x.range: a range has either step or count"),
        (ONE + "range = { from = 1, step = 2 }", "axes.x.range: has no to"),
        (ONE + "range = { from = 3, to = 2, step = 1 }", "axes.x.range.to: found 2; expected a nu"),
        (ONE + "range = { from = 1, to = 2, step = 0 }", "axes.x.range.step: found 0; expected a"),
        (ONE + "range = { from = 0, to = 1, step = 1e-9 }", "gives 1,000,000,001 values; at most"),
        (ONE + "range = { from = 1, to = 2, count = 1 }", "axes.x.range.count: found 1; expected"),
        (
            ONE + 'range = { from = 0, to = 2, count = 3, spacing = "log" }',
            "axes.x.range.from: found 0; expected a number above 0",
        ),
        (
            ONE + 'range = { from = 0, to = 2, step = 1, spacing = "log" }',
            "axes.x.range.spacing: is for a range with count",
        ),
        ("[[axes]]\nzip = { a = [1, 2], b = [1] }\nset = {}", "lengths (a 2, b 1)"),
        (
            '[[axes]]\nzip = { a = [1] }\nfield = "title"',
            "axes.0.field: is not possible with zip",
        ),
        ('[[axes]]\nname = "q"\nvariants = { a = 1 }', "axes.q.variants.a: found 1; expected a"),
        ('[[axes]]\nname = "q"\nvariants = {}', "axes.q.variants: is empty"),
        (ONE + "variants = { a = {} }", "axes.x.field: is not possible with variants"),
        ('[[axes]]\ntable = { file = "none.csv", columns = ["a"] }', "there is no such table file"),
        ('[[axes]]\ntable = { file = "t.csv" }', "axes.0.table: has no columns"),
        (
            '[[axes]]\ntable = { file = "t.csv", columns = ["lod"] }',
            'axes.0.table.columns.0: t.csv has no column lod; did you mean "load"?',
        ),
        (
            '[[axes]]\ntable = { file = "t.csv", columns = ["load"], where = { kind = 1 } }',
            "axes.0.table.where.kind: t.csv has no column kind",
        ),
        (
            '[[axes]]\ntable = { file = "t.csv", columns = ["load"], where = { load = 1 } }',
            "axes.0.table: no row of t.csv is as where says",
        ),
        (ONE + "values = [1]\n" + ONE + "values = [2]", "axes.x: axes.x has a variable x already"),
        ('set = { title = "$lod" }', "set: title uses $lod, which is no variable of this sweep"),
        ('derive = { a = "1 +" }', 'derive.a: "1 +" is no expression'),
        ('derive = { a = "open(1)" }', 'derive.a: "open(1)" holds Call; possible are'),
        ('derive = { a = "b + 1" }', 'derive.a: "b + 1" uses b, which is no variable'),
        ('derive = { a = "1 / 0" }', 'derive.a: "1 / 0" cannot be computed: division by zero'),
        ("derive = { a = \"'a' * 99\" }", "cannot be computed: a text is no number"),
        ("derive = { a = \"'a\\u0007'\" }", "holds a text with characters that cannot be printed"),
        (
            'derive = { a = "99999999999999999999" }',
            'a: "99999999999999999999" holds a whole number',
        ),
        (
            'derive = { a = "9223372036854775807 + 1" }',
            "cannot be computed: a whole number beyond 9223372036854775807",
        ),
        ('derive = { a = "1e308 * 10" }', "cannot be computed: a number that is not finite"),
        ('keep = "[1] * 1000000000 == 1"', "cannot be computed: a list is no number"),
        (ONE + "values = [99999999999999999999]", "axes.x.values.0: found 99999999999999999999"),
        ('derive = { a = "[1]" }', 'derive.a: "[1]" is no text, number, true or false'),
        ('derive = { x = "1" }\n' + ONE + "values = [1]", "derive.x: an axis has a variable"),
        ('keep = "1 > 2"', "keep: leaves no point"),
        ("keep = 3", "keep: found 3; expected a text, or a list of texts"),
        ('precision = "5 percent"', 'precision: found "5 percent"; expected a precision such as'),
        ('precision = "0% of p50"', 'precision: found "0% of p50"; expected a precision such as'),
        ('precision = "5% of p51"', 'precision: there is no metric "p51"; did you mean'),
        ("max_seeds = 5", "max_seeds: is for sweeps with a precision"),
        ('precision = "5% of p50"\nmax_seeds = 1', "max_seeds: found 1; expected a whole number"),
        ('show = ["p50", 3]', "show.1: found 3; expected a metric"),
        ("baseline = { y = 1 }\n" + ONE + "values = [1]", "baseline: no axis has a variable y"),
        ("baseline = { x = 2 }\n" + ONE + "values = [1]", "baseline: fits no steps of its axis"),
        ("scenario = 3", "scenario"),
    ],
)
@pytest.mark.usefixtures("small")
def test_wrong_files_get_one_sentence(text: str, expected: str) -> None:
    Path("t.csv").write_text("load\n80\n")
    head = "" if text.startswith("scenario") else HEAD
    Path("sweep.toml").write_text(head + text)
    with pytest.raises(AqmlabError) as caught:
        _ = Sweep.load("sweep.toml").points
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


def test_a_sweep_needs_a_scenario() -> None:
    Path("sweep.toml").write_text("seeds = [1]")
    with pytest.raises(AqmlabError, match=r"^scenario: is missing"):
        Sweep.load("sweep.toml")


@pytest.mark.usefixtures("small")
def test_a_wrong_scenario_names_the_point() -> None:
    found = sweep(ONE.replace("title", "measure.duration") + 'values = ["5 s", "5 x"]')
    found.scenario_of(found.points[0])
    with pytest.raises(AqmlabError, match=r"^measure.duration: found \"5 x\".*\(at x = 5 x\)$"):
        found.scenario_of(found.points[1])


@pytest.mark.parametrize(
    "file", sorted((ROOT / "scenarios" / "sweeps").glob("*.toml")), ids=lambda file: file.stem
)
def test_shipped_sweeps_are_right(file: Path) -> None:
    found = Sweep.load(file)
    assert len(found.points) > 1
    for point in found.points:
        found.scenario_of(point, 1)


def test_the_scenario_of_a_sweep_may_be_a_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the file first, then in the working folder, then among the shipped ones."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "sweeps"
    folder.mkdir()
    text = 'title = "s"\nscenario = "scenarios/quickstart.toml"\nseeds = "1"\n'
    (folder / "sweep.toml").write_text(text)
    assert Sweep.load(folder / "sweep.toml").scenario.is_file()
    for place in (tmp_path, folder):
        (place / "scenarios").mkdir()
        own = place / "scenarios" / "quickstart.toml"
        own.write_text(SMALL)
        assert Sweep.load(folder / "sweep.toml").scenario.samefile(own)
