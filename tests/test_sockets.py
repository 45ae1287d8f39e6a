"""Hosts that may have only so many sockets open, against sums by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aqmlab
import pytest
from aqmlab.errors import AqmlabError

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
[measure]
warm_up = "10 s"
duration = "60 s"
record = []
[topology]
kind = "dumbbell"
hosts = {{ {hosts} }}
[topology.bottleneck]
rate = "{rate}"
framing = "none"
discipline = {{ kind = "droptail", limit = "1000 packets" }}
[[traffic]]
name = "web"
kind = "web-sessions"
sessions = 10
think_min = "1 s"
think_max = "1 s"
transfer = {{ kind = "constant", size = "{size}" }}
rtt = {{ kind = "constant", rtt = "100 ms" }}
"""


def summary(folder: Path, hosts: str, rate: str, size: str) -> dict[str, Any]:
    """The summary of a run of ten sessions that think for 1 s."""
    file = folder / "one.toml"
    file.write_text(TEXT.format(hosts=hosts, rate=rate, size=size))
    number = len([*folder.iterdir()])
    run = aqmlab.run(aqmlab.Scenario.load(file), out_dir=folder / f"run-{number}")
    return dict(run.summary)


def test_clients_wait_for_a_socket_before_they_connect(tmp_path: Path) -> None:
    # A response takes two round trips, 0.2 s. Ten sessions want the only socket: it has five
    # responses a second, and a session comes round every 2 s, of which it thinks for 1 s.
    found = summary(tmp_path, "clients = 1, servers = 1, sockets = 1", "1 Gbit/s", "100 bytes")
    clients, servers = (found["sockets"][side] for side in ("clients", "servers"))
    assert clients["open_max"] == 1
    assert clients["full_share"] == pytest.approx(1.0, abs=0.01)
    assert clients["waits"] == pytest.approx(300, abs=3)
    assert clients["wait_mean_s"] == pytest.approx(0.8, abs=0.01)
    assert servers["waits"] == 0
    # Waiting is no part of a response time.
    assert found["responses"]["web"]["p50_s"] == pytest.approx(0.2, abs=0.01)


def test_servers_let_connections_wait_until_they_accept_them(tmp_path: Path) -> None:
    # 80 kB take 0.64 s at 1 Mbit/s, and the socket is open until the last byte is sent. Each client
    # has a machine, so none waits before it connects.
    hosts = "clients = 10, servers = 1"
    free = summary(tmp_path, hosts, "1 Mbit/s", "80 kB")
    assert "sockets" not in free
    found = summary(tmp_path, f"{hosts}, sockets = 1", "1 Mbit/s", "80 kB")
    clients, servers = (found["sockets"][side] for side in ("clients", "servers"))
    assert (clients["waits"], clients["open_max"]) == (0, 1)
    assert (servers["open_max"], servers["dropped_syns"]) == (1, 0)
    assert servers["waits"] > 50
    assert servers["full_share"] > 0.9
    assert found["flows"]["all"]["failed"] == 0

    few = summary(tmp_path, f"{hosts}, sockets = 1, backlog = 2", "1 Mbit/s", "80 kB")
    assert few["sockets"]["servers"]["dropped_syns"] > 20
    # The clients' timers send them again: none gives up.
    assert few["responses"]["web"]["count"] > 50
    assert few["flows"]["all"]["failed"] == 0


def test_sockets_for_all_change_nothing(tmp_path: Path) -> None:
    hosts = "clients = 2, servers = 2"
    free = summary(tmp_path, hosts, "1 Mbit/s", "20 kB")
    limited = summary(tmp_path, f"{hosts}, sockets = 100000", "1 Mbit/s", "20 kB")
    sockets = limited.pop("sockets")
    assert sockets["clients"]["open_mean"] > 1
    assert (sockets["clients"]["waits"], sockets["clients"]["full_share"]) == (0, 0)
    for part in ("responses", "flows", "links"):
        assert limited[part] == free[part]


@pytest.mark.parametrize(
    ("hosts", "traffic", "message"),
    [
        ("backlog = 5", "", r"topology\.hosts\.backlog: found 5, but no sockets"),
        ("sockets = 0", "", r"topology\.hosts\.sockets: found 0"),
        ("sockets = 9", 'transport = "quic"', "the transport of traffic.web is quic"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, hosts: str, traffic: str, message: str
) -> None:
    file = tmp_path / "one.toml"
    file.write_text(TEXT.format(hosts=hosts, rate="1 Mbit/s", size="20 kB") + traffic + "\n")
    with pytest.raises(AqmlabError, match=message):
        aqmlab.Scenario.load(file)


def test_response_scale_of_packmime_scales_sizes_alone(tmp_path: Path) -> None:
    file = tmp_path / "web.toml"
    text = TEXT.format(hosts="clients = 2", rate="1 Gbit/s", size="20 kB")
    head, _, _ = text.partition("[[traffic]]")
    web = '[[traffic]]\nkind = "packmime"\nrate = "50 /s"\n{}rtt = {{ kind = "packmime" }}\n'
    total: dict[str, int] = {}
    keys = set()
    for scale in ("", "response_scale = 1.0\n", "response_scale = 0.5\n"):
        file.write_text(head.replace("record = []", 'record = ["responses"]') + web.format(scale))
        scenario = aqmlab.Scenario.load(file)
        keys.add(scenario.key)
        run = aqmlab.run(scenario, out_dir=tmp_path / f"scaled-{len(total)}")
        assert run.responses is not None
        total[scale] = int(run.responses["response_bytes"].to_numpy().sum())
    # The factor one is the default and changes no key.
    assert len(keys) == 2
    whole, half = total[""], total["response_scale = 0.5\n"]
    assert half / whole == pytest.approx(0.5, abs=0.02)
