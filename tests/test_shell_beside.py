"""Programs behind a queue by mahimahi's words, and beside others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from aqmlab import Run
from aqmlab.cli.shell_mahimahi import read
from aqmlab.errors import AqmlabError
from conftest import Cli
from test_live import live

SHELL = [sys.executable, "-m", "aqmlab", "shell"]
PATIENCE_S = 60.0


def shell(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs something behind a queue."""
    return subprocess.run(
        [*SHELL, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


# ---- mahimahi's words ----


def test_mahimahis_words_are_options() -> None:
    line = read(
        ["mm-delay", "20", "mm-link", "--uplink-queue=codel", "a", "b", "--", "ssh", "-v", "host"]
    )
    assert (line.up, line.down, line.program) == ("a", "b", ["ssh", "-v", "host"])
    assert line.rtt_s == pytest.approx(0.04)
    options = line.options()
    assert (options["--up"], options["--down"]) == ("a", "b")
    assert options["--queue-up"] == '{ kind = "codel" }'
    # What is not said is mahimahi's default: a queue that never fills.
    assert options["--queue-down"] == '{ kind = "droptail", limit = "1000000000 bytes" }'
    pie = ["--downlink-queue=pie", "--downlink-queue-args", "packets=9, qdelay_ref=20"]
    told = read(["up", "down", *pie, "curl", "--up"])
    assert told.program == ["curl", "--up"]
    expected = '{ kind = "pie", limit = "9 packets", qdelay_ref = "20 ms" }'
    assert told.options()["--queue-down"] == expected
    assert read(["a", "b"]).program == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "--mm: found no traces"),
        ("mm-link a", "--mm: found no traces"),
        ("mm-delay soon a b", "--mm: mm-delay needs its milliseconds"),
        ("mm-loss uplink 0.1 mm-link a b", "--mm: found mm-loss; expected mm-delay and mm-link"),
        ("a b --once", "--mm: found --once; expected --uplink-queue"),
        ("a b --uplink-queue=drophead", "--mm: found --uplink-queue=drophead; expected infinite"),
        ("a b --uplink-queue=codel --uplink-queue-args=x=1", '--mm: found "x=1" for a queue codel'),
    ],
)
def test_a_wrong_word_of_mahimahi_is_named(words: str, message: str) -> None:
    with pytest.raises(AqmlabError) as raised:
        read(words.split()).options()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mm", "--rate", "3", "a", "b"], "--rate: found one beside --mm"),
        (["--attach", "nowhere", "true"], "--attach: no program of nowhere runs"),
    ],
)
def test_wrong_input_is_named(aqmlab: Cli, elsewhere: Path, words: list[str], message: str) -> None:
    answer = aqmlab("shell", *words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
    assert not any(elsewhere.iterdir())


@live
def test_mahimahis_line_runs() -> None:
    # 12 Mbit/s up, 6 Mbit/s down.
    Path("up.trace").write_text("1\n")
    Path("down.trace").write_text("2\n")
    line = ["mm-delay", "15", "mm-link", "up.trace", "down.trace", "--downlink-queue=codel"]
    code = "import socket; socket.create_connection(('100.64.0.1', 7)).close()"
    answer = shell("--out", "run", "--mm", *line, "--", sys.executable, "-c", code)
    assert answer.returncode == 0, answer.stderr
    ways = Run.open("run").scenario["topology"]["bottleneck"]
    assert (ways["forward"]["rate"], ways["reverse"]["rate"]) == ("6 Mbit/s", "12 Mbit/s")
    assert ways["forward"]["delay"] == ways["reverse"]["delay"] == "15 ms"
    kinds = [ways[way]["discipline"]["kind"] for way in ("forward", "reverse")]
    assert kinds == ["codel", "droptail"]


# ---- beside another program ----

ATTACHED = """
import os, socket, sys, urllib.request
print(os.getcwd(), os.getuid())
status = open("/proc/self/status").read().split("\\n")
print([line.split()[1] for line in status if line.startswith(("CapEff", "CapBnd", "NoNewPrivs"))])
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(len(opener.open("http://host.aqmlab:8000/200kB").read()))
sys.exit(7)
"""


def attached(*aqmlab: str) -> None:
    """Runs a program beside a first one and looks at what the second finds."""
    first = subprocess.Popen(
        [*aqmlab, "--out", "run", "--", "sh", "-c", "echo ready; sleep 50"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "ready\n"
        command = [*aqmlab, "--attach", "run", "--", sys.executable, "-c", ATTACHED]
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert answer.returncode == 7, answer.stderr
        where, rights, size = answer.stdout.splitlines()
        assert where.split()[0] == str(Path.cwd())
        assert rights == str(["0" * 16, "0" * 16, "1"])  # capabilities; no_new_privs
        assert size == "200000"
        # The second program ends with the first.
        stays = ["sh", "-c", "echo ready; sleep 50"]
        other = subprocess.Popen(
            [*aqmlab, "--attach", "run", "--", *stays], stdout=subprocess.PIPE, text=True
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        first.terminate()
        first.communicate(timeout=PATIENCE_S)
        other.communicate(timeout=PATIENCE_S)
        assert other.returncode == 128 + 9
    finally:
        first.kill()
        first.communicate()
    down = Run.open("run").summary["links"]["bottleneck"]["forward"]
    assert down["departed_packets"] > 130


@live
def test_a_second_program_joins_the_first() -> None:
    attached(*SHELL)
