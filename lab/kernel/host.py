"""A network namespace with a TUN device, and a socket in it that a script's settings configure."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import socket
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError
from aqmlab.validation.script import Script

__all__ = ["HOST", "PEER", "RefusedError", "Setup", "Tun", "missing", "setup_of"]

TUN = Path("/dev/net/tun")
DEVICE = "judge0"
HOST, PEER = "10.9.0.1", "10.9.0.2"
CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000
SO_MAX_PACING_RATE = 47
UNPACED = 10**11
"""A rate in bytes per second that limits nothing; a socket that is given one paces itself."""

SYSCTLS = {
    "tcp_no_metrics_save": "1",
    "tcp_no_ssthresh_metrics_save": "1",
    "tcp_autocorking": "0",
    "tcp_mtu_probing": "0",
    "tcp_syncookies": "0",
}
"""The same for every script: no memory of earlier connections, and each write leaves by itself."""
CONTROLS = {"reno": "reno", "cubic": "cubic", "bbr1": "bbr"}
"""What the kernel calls our congestion controls."""
WORDS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "ecn": {"true": {"tcp_ecn": "1"}, "false": {"tcp_ecn": "0"}},
    "recovery": {"rack-tlp": {}},
    "timestamps": {"true": {"tcp_timestamps": "1"}, "false": {"tcp_timestamps": "0"}},
    "dsack": {"true": {"tcp_dsack": "1"}, "false": {"tcp_dsack": "0"}},
    "frto": {"linux": {"tcp_frto": "2"}, "off": {"tcp_frto": "0"}},
    "restart_after_idle": {
        "true": {"tcp_slow_start_after_idle": "1"},
        "false": {"tcp_slow_start_after_idle": "0"},
    },
    "sack_compression": {"1 ms": {"tcp_comp_sack_delay_ns": "1000000", "tcp_comp_sack_nr": "44"}},
    # What a kernel does anyway.
    "window_counts": {"packets": {}},
    "rack_rules": {"linux": {}},
    "backoff_ends_with": {"sample": {}, "new-ack": {}},
    "pacing_burst": {"linux": {}},
    "pacing": {"linux": {}, "control": {}},
    "nagle": {"true": {}, "false": {}},
    "minshall": {"true": {}},
    "undo": {"true": {}},
    "rate_reduction": {"proportional": {}},
    "handshake": {"true": {}},
    "sack_blocks": {"3": {}, "4": {}},
}
"""Keys whose values are words: the kernel's settings for each value that a kernel can have."""
UNITS = {"bytes": 1, "byte": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class RefusedError(AqmlabError):
    """A script that a kernel cannot be asked; the message says why."""


@dataclass(frozen=True)
class Setup:
    """How a socket, its namespace and its peer are configured."""

    control: str = "cubic"
    mss: int = 1448
    stamps: bool = False
    """Whether the socket offers time stamps."""
    initial_window: int = 10
    nodelay: bool = False
    paced: bool = False
    send_buffer: int = 4 * 2**20
    receive_buffer: int = 6 * 2**20
    """Also what the peer offers."""
    rto_min: str | None = None
    sysctls: Mapping[str, str] = field(default_factory=dict)


def size(text: str) -> int:
    """Bytes of a quoted size."""
    found = re.fullmatch(r'"(\d+) (\w+)"', text)
    if not found or found[2] not in UNITS:
        raise RefusedError(f'{text} is no size like "1000 bytes"')
    return int(found[1]) * UNITS[found[2]]


def setup_of(script: Script) -> Setup:
    """What a script asks of the kernel.

    Raises:
        RefusedError: No kernel has such a setting.
    """
    if script.profile != "linux":
        raise RefusedError(f"profile {script.profile or 'none'} is no kernel's: only linux is")
    values: dict[str, Any] = {}
    sysctls = dict(SYSCTLS) | {"tcp_ecn": "0", "tcp_timestamps": "0", "tcp_comp_sack_nr": "0"}
    for key, raw in script.settings.items():
        word = raw.strip('"')
        if key in WORDS:
            if word not in WORDS[key]:
                raise RefusedError(f"{key} = {raw}: a kernel knows {' or '.join(WORDS[key])} only")
            sysctls.update(WORDS[key][word])
        if key in ("mss", "send_buffer", "receive_buffer"):
            values[key] = size(raw)
        elif key == "congestion_control":
            if word not in CONTROLS:
                raise RefusedError(f"congestion_control = {raw}: known are {', '.join(CONTROLS)}")
            values["control"] = CONTROLS[word]
        elif key == "initial_window":
            values[key] = int(raw)
        elif key == "rto_min":
            values[key] = word.replace(" ", "")
        elif key == "tail_loss_probe":
            probes = 'kind = "on"' in raw
            sysctls["tcp_early_retrans"] = "3" if probes else "0"
            # The most that a receiver delays an ACK is a constant of the kernel.
            if "max_ack_delay" in raw and '"200 ms"' not in raw:
                raise RefusedError(f"tail_loss_probe = {raw}: a kernel's max_ack_delay is 200 ms")
        elif key not in WORDS:
            raise RefusedError(f"{key} = {raw}: a kernel has no such setting")
    values["stamps"] = script.settings.get("timestamps") == "true"
    values["nodelay"] = script.settings.get("nagle") == "false"
    values["paced"] = script.settings.get("pacing") == '"linux"'
    return Setup(sysctls=sysctls, **values)


def missing() -> str | None:
    """Why no script can be played here; nothing if scripts can."""
    if os.name != "posix" or not Path("/proc/sys/net/ipv4").is_dir():
        return "this system is no Linux"
    if os.geteuid() != 0:
        return "only root may make a network namespace with a TUN device (sudo)"
    if not TUN.exists():
        return "/dev/net/tun is missing (modprobe tun)"
    if shutil.which("ip") is None:
        return "the command ip is missing (iproute2)"
    return None


class Tun:
    """The device that a socket's packets leave by, in a namespace of this process alone.

    The namespace ends with the process.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET) != 0:
            raise RefusedError(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        for name, value in setup.sysctls.items():
            # A sysctl that an older kernel lacks is a rule that it lacks.
            with contextlib.suppress(FileNotFoundError):
                Path("/proc/sys/net/ipv4", name).write_text(value)
        for name, start, most in (
            ("tcp_wmem", setup.send_buffer, setup.send_buffer),
            ("tcp_rmem", min(131_072, setup.receive_buffer), setup.receive_buffer),
        ):
            Path("/proc/sys/net/ipv4", name).write_text(f"4096 {start} {most}")
        self.fd = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
        flags = struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI)
        fcntl.ioctl(self.fd, TUNSETIFF, flags)
        floor = f" rto_min {setup.rto_min}" if setup.rto_min else ""
        # Segments leave one by one: offloading would hold some back to send them together.
        commands = (
            f"link set {DEVICE} mtu {max(1500, setup.mss + 52)} txqueuelen 5000 gso_max_segs 1 up\n"
            f"address add {HOST} peer {PEER} dev {DEVICE}\n"
            f"route replace {PEER} dev {DEVICE} src {HOST} initcwnd {setup.initial_window}{floor}\n"
        )
        told = subprocess.run(
            ["ip", "-batch", "-"], input=commands, capture_output=True, text=True, check=False
        )
        if told.returncode != 0:
            raise RefusedError(f"no device: {told.stderr.strip().splitlines()[0]}")

    def socket(self) -> socket.socket:
        """A TCP socket as the script wants it."""
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        control = self.setup.control
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        except OSError as error:
            raise RefusedError(f"this kernel has no congestion control {control}") from error
        if self.setup.nodelay:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.setup.paced:
            made.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("@Q", UNPACED))
        return made
