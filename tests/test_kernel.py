"""Packet scripts and this machine's kernel: reading, packets, comparison, and one script played."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aqmlab.validation.script import Script, ScriptError, Segment, parse
from conftest import ROOT

from lab.kernel import play, scripts
from lab.kernel.compare import Seen, coarseness, difference, differences
from lab.kernel.host import RefusedError, missing, setup_of
from lab.kernel.packets import Packet, build, checksum, read
from lab.kernel.play import Player, play_all

LACKING = missing()
ALL = sorted((ROOT / scripts.FOLDER).glob("*.script"))
SHORT = """\
profile linux
set mss = "1000 bytes"
peer sackok
accept 0.02
0.02 write 3000
. > A 1+1000 ack 1 x3
0.04 < A 1 ack 1 sack 2001-3001
0.041 < A 1 ack 3001
. cwnd 10
"""
LATE = """\
profile linux
set mss = "1000 bytes"
set congestion_control = "reno"
peer sackok
accept 0.1
0.1 write 4000
. > A 1+1000 ack 1 x4
0.202 < A 1 ack 1 sack 1001-2001
0.2022 < A 1 ack 1 sack 1001-3001
0.229 > A 1+1000 ack 1
0.331 < A 1 ack 3001
. > A 3001+1000 ack 1
"""
"""A kernel's timer is late here. An answer a round trip after the time of the script would be too
early: the kernel takes it for that of the first copy, and does not send the last line."""
STAMPED = """\
profile linux
set mss = "1000 bytes"
set timestamps = true
set congestion_control = "reno"
set initial_window = 4
0 listen
. < S 0 sackok ts 0/0
. > SA 0 ack 1 sackok ts 0/0
0.1 < A 1 ack 1 ts 100/0
. write 7000
. > A 1+1000 ack 1 ts 100/100 x4
0.202 < A 1 ack 1 sack 1001-2001 ts 202/0
. > A 4001+1000 ack 1 ts 202/202
. < A 1 ack 1 sack 1001-3001 ts 202/0
. > A 5001+1000 ack 1 ts 202/202
. < A 1 ack 1 sack 1001-4001 ts 202/0
. > A 1+1000 ack 1 ts 202/202
. ssthresh 2
0.259 < A 1 ack 4001 ts 259/100
. > A 6001+1000 ack 1 ts 259/259
"""
"""The echo says that the first copy has arrived, and the kernel takes its reduction back."""


@pytest.fixture(autouse=True)
def _checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named from there."""
    monkeypatch.chdir(ROOT)


def ideal(script: Script, late: float = 0.0) -> Seen:
    """What a kernel would show that does what the script says."""
    sent, times, shown = [], {}, {}
    for place, step in enumerate(script.steps):
        if step.word in (">", "any"):
            sent.append((step.time + late, step.segment or Segment("A", 0)))
        else:
            times[place] = step.time
        if step.word in ("cwnd", "timeouts"):
            shown[place] = step.value
    return Seen(tuple(sent), times, shown)


# ---- reading ----


def test_every_script_of_the_repository_is_read() -> None:
    assert len(ALL) > 200
    for path in ALL:
        script = parse(path.read_text(), path.name)
        assert script.profile, path
        assert script.steps, path


def test_a_line_becomes_what_it_says() -> None:
    script = parse(
        "profile linux\npeer EW sackok ts 5/0\nopen 0.1\n0.2 < AE 1+10 ack 5 sack 7-8,9-11"
        " accecn1 1/2 ect1 x2 # why\n. > FA 5 ack 21 ce\n. cwnd 2\n0.3 write-last 30\n"
    )
    connect, syn, answer, ack, first, second, sent, shown, write = script.steps
    assert (connect.word, syn.word, ack.word) == ("connect", "any", "any")
    assert answer.segment == Segment("SAEW", 0, ack=1, sack_permitted=True, stamps=(5, 0), length=0)
    assert first.segment == Segment(
        "AE", 1, 10, 5, ((7, 8), (9, 11)), accecn=(1, 2), ect1_first=True, ecn=1
    )
    assert second.segment == replace(first.segment, seq=11)
    assert sent.segment == Segment("FA", 5, ack=21, ecn=3)
    assert (shown.time, shown.value, write.value) == (0.2, 2, 30)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0.1 jump", "unknown word 'jump'"),
        ("soon write 5", "unknown word soon, or no time"),
        ("0.05 write 5", "time goes back"),
        ("0.1 write five", "'five' is no number"),
        ("0.1 > AQ 1", "unknown flag Q"),
        ("0.1 > A 1 ack", "ack lacks its value"),
        ("0.1 > A 1 urgent", "unknown word urgent"),
        ("0.1 < A 1 ack 1 accecn 1/2/3/4", "4 counters"),
        ("set mss", "KEY = VALUE"),
    ],
)
def test_a_wrong_line_is_named(line: str, message: str) -> None:
    with pytest.raises(ScriptError, match=r"^own: line 3 ") as error:
        parse(f"profile linux\nopen 0.1\n{line}\n", "own")
    assert message in str(error.value)


# ---- what a kernel is asked ----


def test_settings_become_those_of_a_kernel() -> None:
    setup = setup_of(
        parse(
            'profile linux\nset ecn = true\nset mss = "900 bytes"\nset initial_window = 4\n'
            'set congestion_control = "bbr1"\nset timestamps = true\nset nagle = false\n'
        )
    )
    assert (setup.mss, setup.initial_window, setup.control) == (900, 4, "bbr")
    assert (setup.stamps, setup.nodelay, setup.paced) == (True, True, False)
    assert (setup.sysctls["tcp_ecn"], setup.sysctls["tcp_timestamps"]) == ("1", "1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profile rfc", "only linux is"),
        ('profile linux\nset window_counts = "bytes"', "packets only"),
        ('profile linux\nset newreno_variant = "impatient"', "no such setting"),
        ('profile linux\nset congestion_control = "vegas"', "known are reno"),
        ("profile linux\nset mss = 5", "no size"),
    ],
)
def test_what_no_kernel_has_is_refused(text: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        setup_of(parse(text))


# ---- packets ----


def test_a_packet_is_read_as_it_was_built() -> None:
    segment = Segment(
        "SAEN",
        2**32 - 5,
        7,
        12,
        ((20, 30), (2**32 - 2, 3)),
        sack_permitted=True,
        stamps=(9, 8),
        accecn=(1, 2**24 - 1),
        ecn=2,
    )
    packet = Packet(segment, b"\x0a\x01\x02\x03", b"\x0a\x09\x08\x07", 80, 999, 1234, None, None)
    data = build(packet)
    assert read(data) == packet
    assert checksum(data[:20]) == 0
    pseudo = data[12:20] + struct.pack("!BBH", 0, 6, len(data) - 20)
    assert checksum(pseudo + data[20:]) == 0
    syn = replace(packet, segment=Segment("S", 1), mss=1000, scale=7)
    assert read(build(syn)) == syn


def test_the_checksum_is_that_of_the_rfc() -> None:
    # The example of RFC 1071, section 3; its sum is ddf2.
    assert checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2
    assert checksum(b"\x01") == 0xFFFF - 0x0100


def test_what_is_no_segment_is_passed_over() -> None:
    data = build(Packet(Segment("A", 1, 10), bytes(4), bytes(4), 1, 2))
    assert read(data) is not None
    for other in (data[:-1], data[:30], b"\x60" + data[1:], data[:9] + b"\x11" + data[10:]):
        assert read(other) is None


# ---- comparison ----


def test_what_the_script_says_is_no_difference() -> None:
    script = parse(SHORT)
    assert difference(script, ideal(script)) is None
    assert difference(script, ideal(script, late=0.008)) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1+1000 ack 1 x3", "1+1000 ack 1 x2", "at the end: A 2001+1000 ack 1"),
        ("1+1000 ack 1 x3", "1+1000 ack 1 x4", "line 6: 0.020 A 3001+1000 ack 1 is not sent"),
        ("1+1000", "1+999", "line 6: A 1+1000 ack 1 at 0.020, not A 1+999 ack 1"),
        ("1+1000", "2+1000", "not A 2+1000"),
        ("ack 1 x3", "ack 1 ect x3", "not A 1+1000 ack 1 ect"),
        ("> A ", "> AE ", "not AE 1+1000"),
        ("1000 ack 1 x3", "1000 ack 1 sack 5-6 x3", "sack 5-6"),
        ("cwnd 10", "cwnd 9", "line 9: cwnd is 10, not 9"),
    ],
)
def test_a_planted_difference_is_found(old: str, new: str, message: str) -> None:
    planted = parse(SHORT.replace(old, new))
    found = difference(planted, ideal(parse(SHORT)))
    assert found is not None
    assert message in found


def test_a_segment_at_another_time_is_found() -> None:
    script = parse(SHORT)
    assert "at 0.030, not at 0.020" in str(difference(script, ideal(script, late=0.01)))


def test_a_timer_may_be_as_late_as_its_slot_in_the_wheel() -> None:
    assert [coarseness(seconds) for seconds in (0.2, 0.248, 0.249, 1.9, 2.0, 15.0)] == [
        pytest.approx(slot) for slot in (0.004, 0.004, 0.032, 0.032, 0.256, 0.256)
    ]
    script = parse("profile linux\n0 connect\n. > S 0\n1 > S 0\n3 > S 0\n")

    def seen(*times: float) -> Seen:
        return Seen(tuple((time, Segment("S", 0)) for time in times), {0: 0.0}, {})

    assert difference(script, seen(0, 1.055, 3.355)) is None
    assert "at 1.060, not at 1.000" in str(difference(script, seen(0, 1.06, 3)))
    # The second one counts from the first.
    assert "at 3.360, not at 3.050" in str(difference(script, seen(0, 1.05, 3.36)))


def test_what_comes_late_puts_off_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    script = parse("profile linux\n0 connect\n. > S 0\n1 > S 0\n1.04 < SA 0 ack 1\n")
    clock = 0.0
    sent = [0.01, 1.06]

    def select(*arguments: Any) -> tuple[list[int], list[int], list[int]]:
        nonlocal clock
        end = clock + arguments[3]
        clock = min([end, *sent])
        return ([0] if sent and clock == sent[0] else []), [], []

    def receive(*_: int) -> bytes:
        if not sent or clock < sent[0]:
            raise BlockingIOError
        sent.pop(0)
        return build(Packet(Segment("S", 0), bytes(4), bytes(4), 1, 2))

    monkeypatch.setattr(play, "Tun", lambda _: SimpleNamespace(fd=0))
    monkeypatch.setattr(play, "time", SimpleNamespace(monotonic=lambda: clock))
    monkeypatch.setattr(play, "select", SimpleNamespace(select=select))
    monkeypatch.setattr(play, "os", SimpleNamespace(read=receive))
    monkeypatch.setattr(Player, "step", lambda *_: None)
    seen = Player(script.steps, setup_of(script)).run()
    # The second SYN is 50 ms late, which is known only when the answer's own time has passed.
    assert seen.times[3] == pytest.approx(1.09)
    assert difference(script, seen) is None


def test_differences_that_a_socket_shows_do_not_hide_the_first_segment() -> None:
    script = parse(SHORT.replace("cwnd 10", "cwnd 7\n0.06 write 9\n. > A 3001+9 ack 1"))
    seen = ideal(parse(SHORT))
    (first, second) = differences(script, seen)
    assert first.startswith("line 9: cwnd is 10")
    assert second.startswith("line 11: 0.060 A 3001+9 ack 1 is not sent")


# ---- the table ----


def test_the_page_has_every_script_and_its_reason() -> None:
    verdicts = [
        scripts.Verdict("one", "holds"),
        scripts.Verdict("two", "differs", "line 3: A | B"),
        scripts.Verdict("three", "not played", "no such setting"),
    ]
    page = scripts.page(verdicts, {"two": "because"})
    assert "1 of 3 hold." in page
    assert "| two | differs | line 3: A \\| B | because |" in page
    assert scripts.faults(verdicts, {"two": "because", "one": "old", "four": "gone"}) == [
        "three: not played without a reason in lab/kernel/reasons.toml: no such setting",
        "lab/kernel/reasons.toml: one: the script holds; expected no reason",
        "lab/kernel/reasons.toml: four: the script does not exist; expected no reason",
    ]


def test_the_record_has_every_script_of_profile_linux() -> None:
    page = scripts.PAGE.read_text()
    rows = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines()]
    assert [row for row in rows if row in {path.stem for path in ALL}] == [*scripts.shipped()]


# ---- the kernel ----


@pytest.mark.skipif(LACKING is not None, reason=f"NO SCRIPT WAS PLAYED TO A KERNEL: {LACKING}")
@pytest.mark.parametrize("text", [SHORT, LATE, STAMPED])
def test_a_script_is_played_to_this_kernel(text: str) -> None:
    script = parse(text)
    # A stray pause of a busy machine is no difference.
    for _ in range(3):
        (played,) = play_all([script], 1)
        assert played.seen is not None, played.refusal
        found = difference(script, played.seen)
        if found is None:
            break
    assert found is None
    assert played.seen is not None
    planted = parse(text.replace("> A 1+1000 ack 1", "> A 1+900 ack 1", 1))
    assert "not A 1+900" in str(difference(planted, played.seen))


def test_without_root_one_line_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scripts, "missing", lambda: "only root may do it")
    assert scripts.main([]) == 2
    assert capsys.readouterr().err == "aqmlab: kernel scripts are skipped: only root may do it\n"


def test_a_script_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scripts, "missing", lambda: None)
    path = tmp_path / "own.script"
    path.write_text("profile linux\n0 jump\n")
    assert scripts.main([str(path)]) == 2
    assert f"{path}: line 2 (0 jump): unknown word" in capsys.readouterr().err
