"""Packetdrill's scripts against the simulator's TCP: what holds, what fails, what is no script."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from aqmlab.errors import AqmlabError
from aqmlab.validation.packetdrill import (
    FAIL,
    NOT_APPLICABLE,
    PASS,
    Verdict,
    as_script,
    check,
)
from aqmlab.validation.packetdrill.language import LanguageError, parse
from aqmlab.validation.packetdrill.packets import parse_packet, worded
from aqmlab.validation.packetdrill.settings import KEYS, LITTLE, ONLY, SWITCHES, TIMES
from conftest import ROOT, Cli

from lab.kernel import scripts as kernel
from lab.kernel.host import missing

FOLDER = ROOT / "tests" / "packetdrill"
ALL = sorted(FOLDER.glob("*.pkt"))
LACKING = missing()
HEAD = """\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 60000 <mss 1000,sackOK,nop,wscale 8>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 7>
+0.1 < . 1:1(0) ack 1 win 1000
+0 accept(3, ..., ...) = 4
"""
"""Seven lines up to an established connection."""
NOT_ON_THE_KERNEL = {
    "nagle": "the player sets TCP_NODELAY from the start",
    "accecn": "the player does not ask for accurate ECN",
    "close-passive": "the kernel delays the ACK of a FIN, profile linux does not",
}
"""Scripts that the kernel cannot be asked, and why."""


def verdict(folder: Path, text: str, name: str = "one.pkt") -> Verdict:
    """What becomes of a text."""
    file = folder / name
    file.write_text(text)
    return check(file)


def said(file: Path) -> str:
    """The verdict on a file, or the one line of an error that names the file."""
    try:
        found = check(file)
    except AqmlabError as error:
        message = str(error)
    else:
        return f"verdict {found.verdict}, line {found.line}"
    assert re.fullmatch(rf"{re.escape(str(file))}: .+", message), message
    return message


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_script_holds(path: Path) -> None:
    assert check(path) == Verdict(str(path), PASS)


def test_there_are_scripts() -> None:
    assert len(ALL) >= 25


WRONG = {
    "a length": ("+0 write(4, ..., 900) = 900\n+0 > P. 1:901(900) ack 2\n", 9, "1:901(900) ack 1"),
    "a flag": ("+0 write(4, ..., 900) = 900\n+0 > F. 1:901(900) ack 1\n", 9, "> . 1:901(900)"),
    "too late": ("+0 write(4, ..., 900) = 900\n+0.2 > P. 1:901(900) ack 1\n", 9, "at 0.1 s"),
    "nothing": ("+0 > . 1:1(0) ack 1\n", 8, "nothing is sent"),
    "a gap": (
        "+0 write(4, ..., 900) = 900\n+0 > P. 1:1901(1900) ack 1\n",
        9,
        "1:901(900) ack 1, then > . 1:901(900) ack 1 at",
    ),
    "an option": (
        "+0 < P. 1001:2001(1000) ack 1 win 1000\n+0 > . 1:1(0) ack 1 <sack 1001:2002>\n",
        9,
        "sack 1001:2001",
    ),
    "the ECN field": (
        "+0 write(4, ..., 9) = 9\n+0 > [ect0] P. 1:10(9) ack 1\n",
        9,
        "> . 1:10(9) ack 1",
    ),
    "an assertion": ("+0 %{\nassert tcpi_snd_cwnd == 11\n}%\n", 9, "tcpi_snd_cwnd = 10"),
    "a result": ("+0 read(4, ..., 100) = 100\n", 8, "read = EAGAIN"),
    "a call that never ends": ("+0...0.3 read(4, ..., 100) = 100\n", 8, "it still blocks"),
    "a call that ends early": (
        "+0...0.3 read(4, ..., 100) = 9\n+0.05 < P. 1:10(9) ack 1 win 1000\n",
        8,
        "it returns at 0.15 s",
    ),
    "a timer": (
        "+0 write(4, ..., 9) = 9\n+0 > P. 1:10(9) ack 1\n+0.05 > P. 1:10(9) ack 1\n",
        10,
        "at 0.",
    ),
    "a range": (
        "+0 write(4, ..., 9) = 9\n+0.1~+0.2 > P. 1:10(9) ack 1\n",
        9,
        "> . 1:10(9) ack 1 at 0.1 s",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_expectation_fails_with_its_line(name: str, tmp_path: Path) -> None:
    lines, line, found = WRONG[name]
    answer = verdict(tmp_path, HEAD + lines)
    assert (answer.verdict, answer.line) == (FAIL, line)
    assert answer.expected
    assert found in str(answer.found)


def test_every_expectation_of_every_script_counts(tmp_path: Path) -> None:
    """A packet with another sequence number, and an assertion turned round, fail in their line."""
    tried = 0
    for path in ALL:
        lines = path.read_text().splitlines()
        for place, text in enumerate(lines):
            code = text.strip()
            if " > " in f" {code}" and "< " not in code.split(">")[0]:
                head, _, rest = code.partition("> ")
                words = rest.split(" ")
                at = next(index for index, word in enumerate(words) if ":" in word)
                start, _, length = words[at].replace(")", "").replace("(", ":").split(":")
                words[at] = f"{int(start) + 7}:{int(start) + 7 + int(length)}({length})"
                changed = f"{head}> {' '.join(words)}"
            else:
                continue
            text_of = "\n".join([*lines[:place], changed, *lines[place + 1 :]])
            answer = verdict(tmp_path, text_of)
            assert (answer.verdict, answer.line) == (FAIL, place + 1), f"{path.stem}: {changed}"
            tried += 1
    assert tried >= 60


APPLIES = {
    "+0 < udp (100)\n": (8, "udp is not modelled"),
    "+0 < icmp unreachable port [1:1(0)]\n": (8, "icmp is not modelled"),
    "+0 < . 1:1(0) ack 1 win 1000 <FO abcd1234>\n": (8, "option FO"),
    "+0 epoll_create(1) = 5\n": (8, "epoll_create is not modelled"),
    "+0 write(4, ..., 5000) = 3000\n": (8, "a full send buffer"),
    "+0 setsockopt(4, IPPROTO_TCP, TCP_CORK, [1], 4) = 0\n": (8, "socket option TCP_CORK"),
    "+0 `ss -tin`\n": (8, "command 'ss -tin'"),
    "+0 %{ import os }%\n": (8, "more than assert"),
    "+0 %{ assert tcpi_reordering == 3 }%\n": (8, "tcpi_reordering is nothing"),
    "+0 %{ assert open('x') }%\n": (8, "open is nothing"),
    "+0 listen(3, 1) = 0\n": (8, "a second connection"),
    "+0 > [tos 0x10] . 1:1(0) ack 1\n": (8, "only the ECN field"),
    "+0 < . 1:1(0) ack 1 win 0\n+0 write(4, ..., 9) = 9\n": (9, "the peer's window is full"),
}


@pytest.mark.parametrize("lines", APPLIES, ids=lambda lines: lines.split("\n")[0])
def test_what_is_not_modelled_does_not_apply(lines: str, tmp_path: Path) -> None:
    line, why = APPLIES[lines]
    answer = verdict(tmp_path, HEAD + lines)
    assert (answer.verdict, answer.line) == (NOT_APPLICABLE, line), answer
    assert why in str(answer.why)


def test_sysctls_are_keys_or_do_not_apply(tmp_path: Path) -> None:
    answer = verdict(tmp_path, f"`sysctl -q net.ipv4.tcp_hoopla=1`\n{HEAD}")
    assert answer.verdict == NOT_APPLICABLE
    assert answer.why == "sysctl tcp_hoopla: the profile has no key for it"
    answer = verdict(tmp_path, f"`sysctl -q net.ipv4.tcp_recovery=0`\n{HEAD}")
    assert answer.why == "tcp_recovery = 0: only 1 is modelled"
    both = [*LITTLE, *KEYS, *ONLY, *SWITCHES, *TIMES]
    assert len(both) == len(set(both))


def test_a_shell_script_beside_the_file_is_read_and_not_run(tmp_path: Path) -> None:
    shell = tmp_path / "defaults.sh"
    ran = tmp_path / "ran"
    shell.write_text(
        "#!/bin/bash\n# comment\nip tcp_metrics flush all > /dev/null 2>&1\n"
        'sysctl -q net.ipv4.tcp_rmem="4096 540000 $((15*1024*1024))"\n'
        "sysctl -q net.ipv4.tcp_early_retrans=0 net.ipv4.tcp_sack=0\n"
        "tc qdisc add dev tun0 root pfifo\n"
    )
    # Without SACK the SYN-ACK does not offer it.
    answer = verdict(tmp_path, f"`./defaults.sh`\n{HEAD}")
    assert (answer.verdict, answer.line) == (FAIL, 6)
    shell.write_text(f"touch {ran}\n")
    answer = verdict(tmp_path, f"`./defaults.sh`\n{HEAD}")
    assert answer.verdict == NOT_APPLICABLE
    assert not ran.exists()


UNREADABLE = {
    "": "found no event",
    "// nothing\n": "found no event",
    "0 `sleep 1": "line 1: found a command without an end",
    "0 %{ assert 1 == 1": "line 1: found code without an end",
    "/* 0 close(3) = 0\n": "line 1: found a comment without an end",
    f"{HEAD}+0 %{{ assert == }}%\n": "line 8: found code that Python cannot read",
    f"{HEAD}+0 > . 1:1(0\n": "line 8: found",
    f"{HEAD}+0 > . 1:2(0) ack 1\n": "line 8: found 1:2(0); expected 1:1(0)",
    f"{HEAD}+0 > X. 1:1(0) ack 1\n": "line 8: found flag X",
    f"{HEAD}+0 > . 1:1(0) ack 1 <mss>\n": "line 8: found option 'mss'",
    f"{HEAD}+0 > . 1:1(0) ack 1 <sack 1:2\n": "line 8: found options without an end",
    f"{HEAD}+0 > . 1:1(0) ack 99999999999\n": "line 8: found ack 99999999999",
    f"{HEAD}+0 > [ect7] . 1:1(0) ack 1\n": "line 8: found [ect7]",
    f"{HEAD}+0 < . 1:1(0) ack 1 <...>\n": "line 8: found a packet that arrives with <...>",
    f"{HEAD}+0.2~+0.1 > . 1:1(0) ack 1\n": "line 8: found +0.2~+0.1",
    f"{HEAD}* close(4) = 0\n": "line 8: found *; only packets that are sent",
    f"{HEAD}+0 close(4\n": "line 8: found close without an end",
    f"{HEAD}+0 close(4)\n": "line 8: close: found ''; expected = RESULT",
    f"{HEAD}+0 close(x) = 0\n": "line 8: close: found 'x'; expected a number",
    f"{HEAD}+0 close(9) = 0\n": "line 8: close: found 9; expected a socket",
    f"{HEAD}+0\n": "line 8: found a time alone",
    f"{HEAD}999999 close(4) = 0\n": "line 8: found 999999; expected up to 100000 seconds",
    f"{HEAD}0.2 close(4) = 0\n0.1 close(3) = 0\n": "line 9: found time 0.1 behind 0.2",
    f"0.5 {HEAD[2:]}": "line 1: found a first event that is later; expected time 0",
    f"--tolerance_usecs=much\n{HEAD}": "line 1: --tolerance_usecs: found 'much'",
    f"{HEAD}+0 write(4, ..., 4000000000) = 4000000000\n": "line 8: found 4000000000 bytes",
    "hello world\n": "line 1: found 'hello world'; expected a time",
    f"{HEAD}+0 \x07\n": "line 8: found the byte 7; expected text",
}


@pytest.mark.parametrize("text", UNREADABLE, ids=lambda text: repr(text[-40:]))
def test_what_cannot_be_read_is_one_clear_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(AqmlabError) as caught:
        verdict(tmp_path, text)
    message = str(caught.value)
    assert "one.pkt: " in message
    assert UNREADABLE[text] in message
    assert "\n" not in message


def test_the_command_prints_a_table_and_a_status(aqmlab: Cli, tmp_path: Path) -> None:
    good, bad, other = tmp_path / "good.pkt", tmp_path / "bad.pkt", tmp_path / "other.pkt"
    good.write_text(HEAD)
    bad.write_text(HEAD + "+0 > . 1:1(0) ack 1\n")
    other.write_text(HEAD + "+0 < udp (100)\n")
    answer = aqmlab("check", good, other)
    assert answer.status == 0
    assert "PASS" in answer.out
    assert "not applicable" in answer.out
    answer = aqmlab("check", good, bad, "--json")
    assert answer.status == 1
    rows = json.loads(answer.out)
    assert [row["verdict"] for row in rows] == [PASS, FAIL]
    assert (rows[1]["line"], rows[1]["found"]) == (8, "nothing is sent")
    assert rows[1]["expected"] == "> . 1:1(0) ack 1 at 0.1 s"
    bad.write_text("0 nothing\n")
    answer = aqmlab("check", good, bad)
    assert answer.status == 2
    assert answer.err.startswith(f"aqmlab: {bad}: line 1: ")
    assert answer.err.count("\n") == 1
    for wrong in (
        ["none.pkt"],
        [good, "mine.py"],
        [good, "--rate", "1 Mbit/s"],
        [tmp_path / "x.py", "y.py"],
    ):
        answer = aqmlab("check", *wrong)
        assert (answer.status, answer.err.count("\n")) == (2, 1), wrong


def test_scripts_of_ours_are_played_too(tmp_path: Path) -> None:
    shipped = ROOT / kernel.FOLDER / "handshake-active.script"
    assert check(shipped).verdict == PASS
    text = "profile linux\nopen 0.1\n. cwnd 11\n"
    answer = verdict(tmp_path, text, "one.script")
    assert answer == Verdict(str(tmp_path / "one.script"), FAIL, 3, "cwnd 11", "cwnd 10")
    with pytest.raises(AqmlabError, match=r"one\.script: line 1: unknown word proof"):
        verdict(tmp_path, "proof linux\n", "one.script")


def test_a_segment_is_shown_in_the_words_of_packets() -> None:
    script = as_script(FOLDER / "receiver-sack.pkt")
    shown = [worded(step.segment) for step in script.steps if step.word == ">" and step.segment]
    assert shown[1] == "> . 1:1(0) ack 1 <sack 1001:2001>"
    for text in shown:
        packet = parse_packet(text)
        assert packet.outbound


@pytest.mark.long
def test_no_text_breaks_the_reader(tmp_path: Path) -> None:
    """Random bytes, lines that are cut, swapped or doubled: a verdict or one clear error."""
    draws = random.Random(5)
    texts = [path.read_text() for path in ALL]
    letters = "".join(texts)
    read = 0
    for _ in range(1500):
        text = draws.choice(texts)
        lines = text.splitlines(keepends=True)
        for _ in range(draws.randint(1, 3)):
            place = draws.randrange(len(lines))
            line = lines[place]
            match draws.randrange(6):
                case 0:
                    lines[place] = line[: draws.randint(0, len(line))]
                case 1:
                    lines[place] = draws.choice(lines)
                case 2:
                    lines.insert(place, line)
                case 3:
                    lines[place] = "".join(draws.choices(letters, k=len(line)))
                case 4:
                    at = draws.randrange(len(line) + 1)
                    lines[place] = line[:at] + chr(draws.randrange(256)) + line[at + 1 :]
                case 5:
                    digits = [at for at, letter in enumerate(line) if letter.isdigit()]
                    if digits:
                        at = draws.choice(digits)
                        lines[place] = line[:at] + str(draws.randrange(10**9)) + line[at + 1 :]
        file = tmp_path / "one.pkt"
        file.write_text("".join(lines))
        read += said(file).startswith("verdict")
    assert read >= 300


@pytest.mark.parametrize("name", ["one.pkt", "one.script"])
def test_no_bytes_break_the_reader(name: str, tmp_path: Path) -> None:
    draws = random.Random(6)
    file = tmp_path / name
    for size in range(1, 400):
        file.write_bytes(draws.randbytes(size))
        with pytest.raises(AqmlabError):
            check(file)
    for text in ("(" * 100_000, "0 " + "[" * 19_000, "0 x(" + "," * 19_000, "\n" * 100_000):
        file.write_text(text)
        with pytest.raises(AqmlabError):
            check(file)
    file.write_text("0 x" * 5_000_000)
    with pytest.raises(AqmlabError, match="expected a script"):
        check(file)
    if name == "one.pkt":
        deep = "-" * 50_000 + "1"
        for code in (f"assert {deep}", f"assert {'(' * 500}1{')' * 500}", "assert 9**9**9 > 1"):
            file.write_text(f"{HEAD}+0 %{{ {code} }}%\n")
            assert "line 8" in said(file)


def test_times_count_from_the_start_or_from_the_line_before(tmp_path: Path) -> None:
    """What follows a range counts from where the packet was found, as in packetdrill."""
    text = (
        f"{HEAD}+0 write(4, ..., 9) = 9\n+0 > P. 1:10(9) ack 1\n"
        "+0~+2 > P. 1:10(9) ack 1\n+0.01 < . 1:1(0) ack 10 win 1000\n"
    )
    found = verdict(tmp_path, text.replace("+0.01", "0.2"))
    assert (found.verdict, found.line) == (FAIL, 11)
    again = re.search(r"the line is reached at (0\.\d+) s", str(found.found))
    assert again
    later = float(again[1]) + 0.01
    after = "+0 %{ assert tcpi_unacked == 0 }%\n"
    assert verdict(tmp_path, f"{text}{later} close(4) = 0\n+0 > F. 10:10(0) ack 1\n{after}") == (
        Verdict(str(tmp_path / "one.pkt"), FAIL, 14, "assert tcpi_unacked == 0", "tcpi_unacked = 1")
    )
    with pytest.raises(LanguageError, match="expected \\+ at both ends"):
        parse(text.replace("+0~+2", "+0~2"))


@pytest.mark.skipif(LACKING is not None, reason=f"no kernel to play to: {LACKING}")
def test_the_kernel_sends_what_the_scripts_say() -> None:
    names = [path.stem for path in ALL if path.stem not in NOT_ON_THE_KERNEL]
    scripts = {name: as_script(FOLDER / f"{name}.pkt") for name in names}
    differ = [str(found) for found, _ in kernel.judge(scripts, 8) if found.word != "holds"]
    assert not differ, "\n".join(differ)
