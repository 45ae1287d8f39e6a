"""Report cards of real runs: sanity bars, files, the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import aqmlab as package
import jsonschema
import pypdf
import pytest
from aqmlab._util.table import TableModel
from aqmlab.cards.criteria import criteria
from aqmlab.cards.page import page
from aqmlab.cards.scoring import size
from aqmlab.errors import AqmlabError
from conftest import ROOT, Cli

THRESHOLD = '''
from aqmlab.plugins import ADMIT, SIGNAL, Discipline, Packets, chance


class NAME(Discipline):
    """Signals with a probability that grows from a threshold on.

    Parameters:
        threshold: packets that wait without a signal
    """

    threshold: Packets = "20 packets"

    def on_arrival(self, event):
        return SIGNAL if chance(event, 0.005 * (event.packets - self.threshold)) else ADMIT
'''
GIVES_UP = '''
from aqmlab.plugins import ADMIT, DROP, Discipline, Variable


class GivesUp(Discipline):
    """Admits nothing more once nothing has left for a second while packets waited."""

    left: Variable[int] = 0
    dead: Variable[int] = 0

    def on_departure(self, event):
        self.left = event.now if event.packets else 0

    def on_arrival(self, event):
        if event.packets > 0 and self.left > 0 and event.now - self.left > 1_000_000_000:
            self.dead = 1
        return DROP if self.dead else ADMIT
'''
HOLDS = '''
from aqmlab.plugins import Discipline, Variable


class Holds(Discipline):
    """Keeps three packets until nothing else waits."""

    held: Variable[int] = 0
    waiting: Variable[int] = 0

    def enqueue(self, event):
        if self.held < 3 and event.packets > 40:
            self.held += 1
            return 1
        self.waiting += 1
        return 0

    def dequeue(self, event):
        if self.waiting > 0:
            self.waiting -= 1
            return 0
        return 1
'''
CLOSES = '''
from aqmlab.plugins import ADMIT, DROP, Discipline, Variable


class Closes(Discipline):
    """Drops everything for a second after the queue was full for four."""

    since: Variable[int] = 0
    until: Variable[int] = 0

    def on_arrival(self, event):
        if event.now < self.until:
            return DROP
        if event.packets < 60:
            self.since = event.now
        elif event.now - self.since > 4_000_000_000:
            self.until = event.now + 1_000_000_000
            return DROP
        return ADMIT
'''
STARVES = '''
from aqmlab.plugins import Discipline, Variable


class Starves(Discipline):
    """Serves the first flow before all others."""

    first: Variable[int] = 0
    waiting: Variable[int] = 0

    def enqueue(self, event):
        if self.first == 0:
            self.first = event.flow
        if event.flow != self.first:
            return 1
        self.waiting += 1
        return 0

    def dequeue(self, event):
        if self.waiting > 0:
            self.waiting -= 1
            return 0
        return 1
'''
RAISES = '''
from aqmlab.plugins import ADMIT, Discipline


class Raises(Discipline):
    """Raises an exception after 40 s."""

    def on_arrival(self, event):
        if event.now > 40_000_000_000:
            raise ValueError("no more")
        return ADMIT
'''


def card_of(queue: str, store: Path, *only: str, **options: object) -> package.Card:
    settings = {"seeds": "1..2", "store": store, "progress": False, **options}
    return package.evaluate(queue, only=only or ("a-base", "a-cubic"), **settings)  # type: ignore[arg-type]


def plugin(name: str, text: str) -> str:
    """The file of a plug-in."""
    file = Path(f"{name}.py")
    file.write_text(text)
    return str(file)


def test_droptail_scores_zero_everywhere(store: Path) -> None:
    only = ("a-base", "a-levels", "a-rtt-fair")
    card = card_of("droptail", store, *only, baselines=["fq-codel", "pie"])
    scores = [test.score for test in card.tests]
    assert set(scores) <= {0.0, None}
    assert 0.0 in scores
    assert {area.grade for area in card.areas} <= {"C", "?"}
    assert all(gate.passed is not False for gate in card.gates)


def test_deployed_queues_do_well_by_delay(store: Path) -> None:
    only = ("a-base", "a-cubic", "a-mild", "a-heavy")
    for queue in ("fq-codel", "cake"):
        card = card_of(queue, store, *only, seeds="1..3")
        assert set(card.grade("delay")) <= set("AB-"), queue


@pytest.mark.long
def test_over_wifi_a_queue_for_each_station_needs_a_short_one(store: Path) -> None:
    card = card_of("fq-codel", store, "w-home", "w-stations", baselines=["pie"])
    assert {test.id: test.area for test in card.tests} == {"w-home": "wi-fi", "w-stations": "wi-fi"}
    assert all(test.score is not None for test in card.tests)
    numbers = {(test.id, one.measure.measure): one for test in card.tests for one in test.measures}
    for test in ("w-home", "w-stations"):
        far, all_ = (numbers[test, name] for name in ("far wait p95", "wait p95"))
        assert far.droptail > 20 * far.candidate, "the far station's own 1.5 MB take seconds"
        assert all_.droptail < 0.1 * far.droptail, "others do not wait behind it"
    assert card.parameters["flows"] == 1024, "those of the queue under test"
    assert "without_place" not in card.to_json()


def test_a_queue_that_cannot_stand_in_the_access_point_is_said_so(store: Path) -> None:
    only = ("a-outage", "w-home")
    card = card_of("cake: bandwidth 9 Mbit/s", store, *only, baselines=["fq-codel"])
    assert set(card.columns["test"]) == {"a-outage"}
    why = dict(card.not_tested)["w-home"]
    assert why.startswith("cake (bandwidth 9 Mbit/s) cannot be the access point's queue: ")
    assert why.endswith("because the air sets the rate")
    assert all(gate.passed is not False for gate in card.gates)
    shown = " ".join("\n".join(str(part) for part in page(card)).split())
    assert f"Not run: w-home: {why}." in shown
    schema = json.loads((ROOT / "docs/card.schema.json").read_text())
    Path("card.json").write_text(json.dumps(card.to_json()))
    jsonschema.validate(card.to_json(), schema)
    assert package.Card.load("card.json").to_json() == card.to_json()


@pytest.mark.long
def test_names_alone_change_nothing(store: Path) -> None:
    files = [plugin(name.lower(), THRESHOLD.replace("NAME", name)) for name in ("One", "Two")]
    first, second = (json.dumps(card_of(file, store).to_json()) for file in files)
    cards = [json.loads(text) for text in (first, second)]
    assert [card.pop("name") for card in cards] == ["one", "two"]
    assert len({card.pop("sha256") for card in cards}) == 2
    assert json.dumps(cards[0]) == json.dumps(cards[1])


def test_the_order_of_baselines_does_not_matter(store: Path) -> None:
    names = ["pie", "codel", "fq-codel"]
    first, second = (
        card_of("cake", store, baselines=order).to_json() for order in (names, names[::-1])
    )
    for key in ("sentence", "areas", "tests", "gates"):
        assert first[key] == second[key]


@pytest.mark.long_cases(but="runs-text0")
@pytest.mark.parametrize(
    ("gate", "text"),
    [
        ("runs", RAISES),
        ("age", HOLDS),
        ("overload", CLOSES),
        ("starvation", STARVES),
        ("outage", GIVES_UP),
    ],
)
def test_a_broken_queue_fails_its_gate_alone(gate: str, text: str, store: Path) -> None:
    file = plugin("broken", text)
    only = ("a-udp-only", "a-outage", "a-flows-fair")
    card = card_of(file, store, *only, seeds="1..1", baselines=["fq-codel"])
    failed = [one.rule.name for one in card.gates if one.passed is False]
    assert failed == [gate]
    text_page = "\n".join(str(part) for part in page(card))
    assert f"gates FAIL: {gate}" in text_page
    assert "--write FOLDER" in " ".join(text_page.split())


WINDOW = """
from aqmlab.plugins import Control


class Window(Control):
    \"\"\"A window of BYTES, whatever happens.\"\"\"

    def start(self, event):
        event.cwnd = BYTES

    def on_ack(self, event):
        event.cwnd = BYTES

    def on_loss(self, event):
        event.ssthresh = BYTES
        event.cwnd = BYTES
"""


@pytest.fixture(scope="module")
def cubic(store: Path) -> package.Card:
    """A card of CUBIC, few tests."""
    only = ("c-collapse", "c-many", "c-start")
    return package.evaluate(control="cubic", only=only, seeds=[1, 2], store=store, progress=False)


def test_cubic_scores_one(cubic: package.Card) -> None:
    assert [test.score for test in cubic.tests] == [1.0]
    assert cubic.grade("speed") == "A"
    names = {gate.rule.name: gate.passed for gate in cubic.gates}
    assert names["backoff"] is names["collapse"] is names["runs"] is True
    assert names["harm"] is None
    text = "\n".join(str(part) for part in page(cubic))
    assert "Beside CUBIC, of 3 numbers" in text
    assert "Must explain, there is no test: 5.3.1" in " ".join(text.split())


def test_criteria_are_those_of_the_rfc(cubic: package.Card) -> None:
    found = {one.section: one for one in criteria(cubic)}
    assert found["5.1.1"].answer == "backoff pass, collapse pass"
    assert not found["5.2.1"].answer
    assert found["5.2.1"].later
    assert found["5.2.1"].why == "c-harm, quick tier"
    assert not found["5.3.1"].later


def test_the_sentence_names_the_worst(store: Path) -> None:
    card = card_of("bernoulli-1", store, "a-base", "a-cubic", "a-flows-fair", seeds="1..3")
    found = re.search(r"worse in \d+, above all (.+?) in (a-\w+) \((.+?); (.+?)\)", card.sentence)
    assert found, card.sentence
    number, test, scenario, _ = found.groups()
    number = {"Jain's index of equal flows": "Jain"}.get(number, number)
    assert scenario == {row.id: row.scenario for row in card.rows}[test]
    sizes = {
        one.measure.measure: (one.worse_than_all, size(one))
        for each in card.tests
        for one in each.measures
        if each.id == test and one.better is False
    }
    assert number == max(sizes, key=lambda name: sizes[name])


def test_what_a_baseline_does_as_badly_is_not_named_first(store: Path) -> None:
    card = card_of("bernoulli-1", store, "a-base", "a-cubic", "a-flows-fair", seeds="1..3")
    numbers = [one for test in card.tests for one in test.measures]
    alone = [one for one in numbers if one.worse_than_all]
    assert alone
    for one in alone:
        sign = 1 if one.measure.letter in "DTH" else -1
        assert all(sign * (one.candidate - other) > 0 for other in one.others.values())
        as_bad = {**one.others, "pie": one.candidate}
        assert not replace(one, others=as_bad).worse_than_all


def test_safety_tests_with_numbers_have_a_row(store: Path) -> None:
    card = card_of("droptail", store, "a-udp-only", seeds="1..2")
    rows = [row for part in page(card) if isinstance(part, TableModel) for row in part.rows]
    assert any("wait p99" in str(row) for row in rows)
    assert [name for name, _ in card.not_tested].count("a-udp-only") == 0
    assert len({name for name, _ in card.not_tested}) == len(card.not_tested)


def test_a_control_is_read_back(cubic: package.Card) -> None:
    Path("card.json").write_text(json.dumps(cubic.to_json()))
    again = package.Card.load("card.json")
    assert again.to_json() == cubic.to_json()
    assert {*again.compare(cubic).to_json()["changes"][0]} >= {"test", "verdict"}
    overall = again.overall({"speed": 2})
    assert overall.grade == "A"
    with pytest.raises(AqmlabError, match="which is no area"):
        again.overall({"ecn": 1})


LATE = """
from aqmlab.plugins import Control, Variable


class Late(Control):
    \"\"\"A window of BYTES; of flows that begin late, two segments.\"\"\"

    window: Variable[float] = 0.0

    def start(self, event):
        self.window = 2896.0 if event.now > 10_000_000_000 else BYTES
        event.cwnd = self.window

    def on_ack(self, event):
        event.cwnd = self.window

    def on_loss(self, event):
        event.ssthresh = self.window
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("gate", "text", "packets", "only"),
    [
        ("loss", WINDOW, 120, "c-loss"),
        ("harm", WINDOW, 120, "c-harm"),
        ("return", WINDOW, 2, "c-steps"),
        ("starvation", LATE, 172, "c-self"),
        ("ecn", WINDOW, 200, "c-aqm"),
    ],
)
def test_a_broken_control_fails_its_gate_alone(
    gate: str, text: str, packets: int, only: str, store: Path
) -> None:
    file = Path(f"{gate}.py")
    file.write_text(text.replace("BYTES", str(1448.0 * packets)))
    card = package.evaluate(
        control=str(file),
        only=[only],
        seeds=[1],
        store=store,
        progress=False,
        baselines=["cubic"],
        tier="quick" if gate != "ecn" else "standard",
        ecn="none" if gate != "ecn" else "classic",
    )
    assert [one.rule.name for one in card.gates if one.passed is False] == [gate]


def test_calls_are_rated_in_the_direction_of_the_control(store: Path) -> None:
    """The mean over both directions could not fail its gate: the other direction is idle."""
    file = Path("full.py")
    file.write_text(WINDOW.replace("BYTES", str(1448.0 * 400)))
    card = package.evaluate(
        control=str(file),
        only=["c-media"],
        seeds=[1],
        store=store,
        progress=False,
        baselines=["cubic"],
        tier="standard",
    )
    [calls] = [one for one in card.gates if one.rule.name == "calls"]
    assert calls.worst is not None
    assert calls.worst < 2.5, "a second of queueing delay, and 4.4 on the way back"


def test_the_card_is_read_back(store: Path) -> None:
    card = card_of("codel", store)
    Path("card.json").write_text(json.dumps(card.to_json()))
    again = package.Card.load("card.json")
    assert again.to_json() == card.to_json()
    assert again.frame().equals(card.frame())
    assert set(again.frame().columns) == {"test", "cell", "queue", "seed", "measure", "value"}
    with pytest.raises(AqmlabError, match="which is no area"):
        again.grade("speed")


@pytest.mark.long
def test_cards_follow_their_schema(store: Path) -> None:
    schema = json.loads((ROOT / "docs/card.schema.json").read_text())
    check = jsonschema.Draft202012Validator(schema)
    check.check_schema(schema)
    queue = card_of("fq-codel", store, "a-base", "a-udp-only")
    control = package.evaluate(control="reno", only=["c-self"], seeds="1..2", store=store)
    one_seed = card_of("droptail", store, "a-base", seeds="1")
    for card in (queue, control, one_seed):
        content = json.loads(json.dumps(card.to_json(), allow_nan=False))
        check.validate(content)
        for key in content.keys() - {"sealed"}:  # few tests have no sealed settings
            assert list(check.iter_errors({**content, key: None})), f"{key}: null is refused"
        del content["engine"]
        assert list(check.iter_errors(content)), "no key may be missing"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "is not a card"),
        ("nothing", "is not a card"),
        ('{"card": 99}', "is a card of version 99"),
        ('{"card": 2}', "is a card of version 2"),
        ('{"card": 3}', "is damaged"),
    ],
)
def test_other_files_are_no_cards(text: str, message: str) -> None:
    Path("card.json").write_text(text)
    with pytest.raises(AqmlabError, match=message):
        package.Card.load("card.json")


def test_the_command_writes_the_card(aqmlab: Cli, store: Path) -> None:
    arguments = ("codel", "--only", "a-base,a-cubic", "--seeds", "1..2", "--store", store)
    answer = aqmlab("evaluate", *arguments)
    assert answer.status == 0
    assert "codel: report card" in answer.out
    assert Path("runs/cards/codel/card.json").is_file()
    assert max(map(len, answer.out.rstrip().splitlines())) <= 80
    page_text = Path("runs/cards/codel/card.html").read_text()
    assert "one long flow" in page_text
    assert "prefers-color-scheme: dark" in page_text
    for drawn in re.findall(r"<svg.*?</svg>", page_text, re.DOTALL):
        assert "var(--text)" in drawn
        assert not re.search("#[0-9a-f]{6}", drawn), "a colour that does not follow the theme"
    assert not re.search(r"""(?:src|href)=["'](?!#)""", page_text)
    sheets = pypdf.PdfReader("runs/cards/codel/card.pdf").pages
    text = "\n".join(sheet.extract_text() for sheet in sheets)
    assert text.startswith("codel: report card")
    assert re.search(r"a-base\s+one long flow", text)
    last = "The same candidate and engine give the same card."
    assert last in " ".join(text.split()), "the PDF keeps its foot"
    assert {round(sheet.mediabox.width) for sheet in sheets} == {596}
    again = aqmlab("evaluate", *arguments, "--json")
    assert json.loads(again.out) == json.loads(Path("runs/cards/codel/card.json").read_text())
    assert "to make" not in again.err
