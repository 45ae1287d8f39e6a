"""`aqmlab init`: what it writes is right for every combination, and what it refuses."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from aqmlab.cli.commands import init
from aqmlab.scenario.scenario import Scenario
from aqmlab.scenario.starter import LINKS
from conftest import ROOT, Cli


def written(aqmlab: Cli, *arguments: object) -> Scenario:
    """What some options write."""
    answer = aqmlab("init", "mine.toml", "--force", *arguments)
    assert (answer.status, answer.err) == (0, "")
    return Scenario.load("mine.toml")


def classes(scenario: Scenario) -> dict[str, dict[str, Any]]:
    """The classes of traffic by name."""
    return {entry["name"]: entry for entry in scenario.data["traffic"]}


@pytest.mark.long_cases("isp", "fairness")
@pytest.mark.parametrize("kind", LINKS)
def test_every_combination_is_a_scenario(aqmlab: Cli, kind: str) -> None:
    rates = ("0.064", "1/0.1", "100/20", "20/100", "2.5 Gbit/s", "1000000")
    times = ("0.001", "30", "100 us", "0.6s", "10000")
    for rate, rtt, users in product(rates, times, (1, 25, 100_000)):
        both = ("--rate", rate, "--rtt", rtt, "--users", users)
        written(aqmlab, "--kind", kind, *both, "--call", "--upload")
    for call, upload in product(("--call", "--no-call"), ("--upload", "--no-upload")):
        names = set(classes(written(aqmlab, "--kind", kind, call, upload)))
        assert ("call-up" in names and "call-down" in names) == (call == "--call")
        assert ("upload" in names) == (upload == "--upload")


@pytest.mark.parametrize("kind", LINKS)
def test_every_kind_runs(aqmlab: Cli, kind: str) -> None:
    assert aqmlab("init", "--kind", kind).status == 0
    brief = ("measure.warm_up=1 s", "measure.duration=1 s")
    answer = aqmlab("run", f"{kind}.toml", *(word for text in brief for word in ("--set", text)))
    assert (answer.status, answer.err) == (0, "")
    assert LINKS[kind].what.format(users=LINKS[kind].users) in answer.out


def test_fairness_has_a_class_for_each_control(aqmlab: Cli) -> None:
    scenario = written(aqmlab, "--kind", "fairness", "--controls", "reno, prague", "--users", "3")
    found = classes(scenario)
    assert list(found) == ["reno", "prague"]
    assert {one["flows"] for one in found.values()} == {3}
    assert found["reno"]["rtt"] == found["prague"]["rtt"]
    assert found["prague"]["tcp"]["ecn_echo"] == "accurate"
    assert scenario.data["measure"]["flow_trace"]["flows"] == 3
    assert list(classes(written(aqmlab, "--kind", "fairness"))) == ["cubic", "bbr3"]
    twice = written(aqmlab, "--kind", "fairness", "--controls", "cubic,cubic")
    assert list(classes(twice)) == ["cubic-1", "cubic-2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plans", "100/20:1"), "--plans, --network, --circuits, --names, --fit: are for"),
        (("--kind", "isp", "--names"), "--names, --fit: are for --network and --circuits"),
        (("--kind", "isp", "--network", "n.json"), "--network, --circuits: give both"),
        (("--controls", "cubic,bbr3"), "--controls: is for --kind fairness; give both"),
        (("--kind", "fairness", "--controls", "cubic"), '--controls: found "cubic"; expected two'),
        (("--kind", "fairness", "--controls", "cubic,bbr9"), "--controls: traffic.bbr9.tcp."),
    ],
)
def test_wrong_controls_are_refused(aqmlab: Cli, arguments: tuple[str, ...], message: str) -> None:
    answer = aqmlab("init", "mine.toml", *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"aqmlab: {message}")
    assert answer.err.count("\n") == 1
    assert not Path("mine.toml").exists()


def test_down_is_forward_and_up_is_reverse(aqmlab: Cli) -> None:
    scenario = written(aqmlab, "--rate", "100/20", "--rtt", "30", "--users", "25")
    link = scenario.data["topology"]["bottleneck"]
    assert (link["forward"]["rate"], link["reverse"]["rate"]) == ("100 Mbit/s", "20 Mbit/s")
    found = {name: entry["direction"] for name, entry in classes(scenario).items()}
    assert found == {
        "pages": "forward",
        "video": "forward",
        "meetings": "both",
        "upload": "reverse",
        "call-down": "forward",
        "call-up": "reverse",
    }
    assert classes(scenario)["pages"]["rtt"] == {"kind": "uniform", "min": "15 ms", "max": "45 ms"}
    assert classes(scenario)["pages"]["users"] == 25
    # 100 ms at 100 Mbit/s in frames of 1538 bytes, both ways.
    for direction in ("forward", "reverse"):
        assert link[direction]["discipline"] == {"kind": "droptail", "limit": "813 packets"}
    assert "100 ms of the faster direction" in Path("mine.toml").read_text()


def test_units_and_single_rates(aqmlab: Cli) -> None:
    link = written(aqmlab, "--kind", "lab", "--rate", "1 Gbit/s", "--rtt", "10 ms").data
    link = link["topology"]["bottleneck"]
    assert link["forward"]["rate"] == link["reverse"]["rate"] == "1 Gbit/s"
    assert link["forward"]["discipline"]["limit"] == "813 packets"  # rate times round trip
    link = written(aqmlab, "--rate", "500 kbit/s/64 kbit/s").data["topology"]["bottleneck"]
    assert (link["forward"]["rate"], link["reverse"]["rate"]) == ("500 kbit/s", "64 kbit/s")


def test_every_line_is_explained(aqmlab: Cli) -> None:
    """Fields whose values one may change have a comment, beside them or above their table."""
    written(aqmlab, "--call", "--upload")
    text = Path("mine.toml").read_text()
    for field in ("seed", "warm_up", "duration", "record", "flow_trace", "framing", "tcp"):
        [line] = [line for line in text.splitlines() if line.startswith(f"{field} = ")][:1]
        assert "#" in line, line
    assert all(len(line) <= 100 for line in text.splitlines() if "--vary" not in line)


def test_the_next_commands_work(aqmlab: Cli, elsewhere: Path) -> None:
    answer = aqmlab("init", "our home.toml", "--kind", "home")
    shown = answer.out.partition("Next:\n")[2]
    assert max(map(len, shown.splitlines())) <= 80
    file = elsewhere / "our home.toml"
    assert all(f"# {line}" in file.read_text() for line in shown.splitlines())
    commands = [
        line for line in shown.replace("\\\n", "").splitlines() if line.startswith("  aqmlab ")
    ]
    assert len(commands) == 3
    short = file.read_text().replace("180 s", "5 s").replace("60 s", "2 s")
    file.write_text(short)
    for command in commands:
        done = aqmlab(*shlex.split(command)[1:])
        assert (done.status, done.err) == (0, ""), command
    assert Path("runs/compare.svg").exists()


def test_an_office_shows_what_people_know(aqmlab: Cli) -> None:
    """The upload's buffer delays a call and every page; FQ-CoDel cures both."""
    aqmlab("init", "--kind", "office")
    brief = ("--set", "measure.warm_up=10 s", "--set", "measure.duration=60 s", "--json")
    tail, fair = (
        json.loads(aqmlab("run", "office.toml", *brief, *more).out)
        for more in ((), ("--set", "topology.bottleneck.discipline=fq-codel"))
    )
    up = [run["links"]["bottleneck"]["reverse"]["sojourn_p95_s"] for run in (tail, fair)]
    assert up[0] > 0.2
    assert up[1] < 0.02
    tail, fair = tail["quality"], fair["quality"]
    assert fair["pages"]["page_load_p50_s"] < tail["pages"]["page_load_p50_s"] / 2
    assert fair["call-up"]["mos_mean"] > 4.3 > tail["call-up"]["mos_mean"]
    assert fair["meetings"]["late_frame_share"] < 0.01 < tail["meetings"]["late_frame_share"]


def test_users_are_those_of_today(aqmlab: Cli) -> None:
    """A class of each application, on the stack of a Linux kernel."""
    kinds = {
        kind: {entry["kind"] for entry in classes(written(aqmlab, "--kind", kind)).values()}
        for kind in ("office", "home")
    }
    people = {"http2-web", "abr-video", "video-conference", "voip", "bulk"}
    assert kinds == {"office": people, "home": people | {"game"}}
    datagrams = {"video-conference", "voip", "game"}
    for kind in LINKS:
        entries = classes(written(aqmlab, "--kind", kind)).values()
        talking = [entry for entry in entries if entry["kind"] not in datagrams]
        assert {entry["tcp"]["profile"] for entry in talking} == {"linux"}


@pytest.mark.parametrize(
    ("users", "viewers", "streams"),
    [(1, 1, 2), (25, 3, 4), (100, 12, 16), (100_000, 12_500, 16_666)],
)
def test_a_larger_office_has_more_of_everything(
    aqmlab: Cli, users: int, viewers: int, streams: int
) -> None:
    found = classes(written(aqmlab, "--users", users))
    assert found["pages"]["users"] == users
    assert (found["video"]["viewers"], found["meetings"]["streams"]) == (viewers, streams)


@pytest.mark.long_cases("home")
@pytest.mark.parametrize("kind", ["office", "home"])
def test_the_stated_load_is_met(aqmlab: Cli, kind: str) -> None:
    """On a line that is never the limit, in the mean of ten minutes."""
    written(aqmlab, "--kind", kind, "--rate", 1000, "--users", 30, "--no-upload", "--no-call")
    text = Path("mine.toml").read_text()
    stated = re.search(r"need some (\S+) Mbit/s down and (\S+) Mbit/s up", text)
    assert stated
    brief = ("--set", "measure.duration=600 s", "--set", "measure.record=[]", "--json")
    link = json.loads(aqmlab("run", "mine.toml", *brief).out)["links"]["bottleneck"]
    for direction, expected in zip(("forward", "reverse"), stated.groups(), strict=True):
        found = link[direction]["throughput_bps"] / 1e6
        assert found == pytest.approx(float(expected), rel=0.12), direction


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--rate", "fast"], '--rate: found "fast"; expected a rate such as 100/20'),
        (["--rate", "1/2/3"], "expected a rate such as 100/20"),
        (["--rate", "0"], "expected 1 kbit/s to 1000 Gbit/s"),
        (["--rate", "100/20 MB"], "expected a rate such as 100/20"),
        (["--rtt", "-3"], "expected a round-trip time such as 30 (ms)"),
        (["--rtt", "1 min"], "expected a round-trip time such as 30 (ms)"),
        (["--rtt", "11 s"], "expected 1 us to 10 s"),
        (["--users", "0"], "--users: found 0; expected 1 to 100,000"),
        (["--kind", "ship"], "Invalid value for '--kind'"),
    ],
)
def test_wrong_answers_write_nothing(
    aqmlab: Cli, elsewhere: Path, arguments: list[str], expected: str
) -> None:
    answer = aqmlab("init", *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert expected in answer.err
    assert not list(elsewhere.iterdir())


def test_nothing_is_overwritten_unless_forced(aqmlab: Cli) -> None:
    Path("office.toml").write_text("mine")
    answer = aqmlab("init")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        "aqmlab: office.toml: is there already; choose another name, or --force\n"
    )
    assert Path("office.toml").read_text() == "mine"
    assert aqmlab("init", "--force").status == 0
    Scenario.load("office.toml")


def test_a_folder_is_no_file(aqmlab: Cli, elsewhere: Path) -> None:
    Path("there").mkdir()
    answer = aqmlab("init", "there", "--force")
    assert answer.status == 2
    assert "there: cannot be written" in answer.err
    assert [entry.name for entry in elsewhere.iterdir()] == ["there"]


def talked(answers: str, *arguments: str, interrupted_at: str = "") -> tuple[int, str]:
    """Status and screen of `aqmlab init` on a terminal, where these answers are typed."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "aqmlab", "init", *arguments]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        screen = ""
        asked = False
        while True:
            # An interrupt between the question and the wait for its answer does not end the wait;
            # who sees nothing happen tries again.
            unanswered = asked and not select.select([ours], [], [], 2)[0]
            if unanswered or (not asked and interrupted_at and interrupted_at in screen):
                process.send_signal(signal.SIGINT)
                asked = True
                continue
            try:
                screen += os.read(ours, 4096).decode()
            except OSError:  # the other side has left
                break
    os.close(ours)
    return process.returncode, screen


def test_questions_on_a_terminal() -> None:
    status, screen = talked("ship\nhome\n80/8\n12\n3\nn\ny\n", "ours.toml")
    assert status == 0, screen
    assert "There are office, home, data-centre, lab, fairness, isp." in screen
    assert "How many people" in screen
    scenario = Scenario.load("ours.toml")
    assert scenario.title == "A home of 3 people, 80 Mbit/s down, 8 Mbit/s up"
    assert set(classes(scenario)) == {"pages", "video", "meetings", "game", "upload"}
    assert classes(scenario)["upload"]["rtt"] == {"kind": "constant", "rtt": "12 ms"}


def test_who_just_agrees_gets_the_office() -> None:
    assert talked("\n" * 6)[0] == 0
    assert Scenario.load("office.toml").title.startswith("An office of 25 people")


def test_options_ask_nothing() -> None:
    status, screen = talked("", "--kind", "lab")
    assert status == 0
    assert "?" not in screen


def test_who_leaves_in_the_middle_leaves_nothing(elsewhere: Path) -> None:
    status, screen = talked("home\n", "ours.toml", interrupted_at="Download")
    assert status == 130
    assert "Traceback" not in screen
    assert not list(elsewhere.iterdir())


def test_the_kinds_of_the_option_are_those_of_the_links() -> None:
    assert [kind.value for kind in init._StarterKind] == list(LINKS)


def test_the_shipped_office_is_what_init_writes(
    tmp_path: Path, aqmlab: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").mkdir()
    office = ["--kind=office", "--rate=50/10", "--rtt=30", "--users=12", "--call", "--upload"]
    assert aqmlab("init", "scenarios/office.toml", *office).status == 0
    written = (tmp_path / "scenarios/office.toml").read_text()
    assert (ROOT / "scenarios/office.toml").read_text() == written
