"""What this machine allows for programs behind a queue, and what to do about what it lacks."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from aqmlab._util.table import Cell, TableModel
from aqmlab.engine import privileges

__all__ = ["MachineFinding", "State", "findings", "table"]

_LATE_S = 0.001
"""A packet may leave so late; see docs/live.md."""
_WAKE_UPS = 300
_NAP_S = 0.002
_PROCESSORS = 2
"""The router has a thread each way."""
_QUIET = 0.5
"""Busy threads for each processor that other work may have."""
_PROFILE = (
    "abi <abi/4.0>,",
    "profile unshare {unshare} flags=(unconfined) {{",
    "  userns,",
    "}}",
)
"""An AppArmor profile that lets a command make user namespaces."""


class State(str, Enum):
    """How something is."""

    FINE = "fine"
    """As it should be."""
    POOR = "poor"
    """Programs run, but something does not work or results suffer."""
    MISSING = "missing"
    """No program can be run."""


@dataclass(frozen=True)
class MachineFinding:
    """How a part of the machine is."""

    name: str
    """The part."""
    state: State
    """How it is."""
    found: str
    """What was found."""
    cure: str = ""
    """What to do about it, if anything is to be done."""


def findings() -> Iterator[MachineFinding]:
    """Looks at the parts, one after the other; takes about two seconds."""
    if platform.system() != "Linux":
        yield MachineFinding(
            "system",
            State.MISSING,
            platform.system(),
            "use Linux, for example in a virtual machine",
        )
        return
    yield MachineFinding("system", State.FINE, f"Linux {platform.release()}")
    for command, package in (("ip", "iproute2"), ("unshare", "util-linux")):
        yield _command(command, package)
    yield _device()
    if privileges.has_live_bed():
        yield _namespaces()
    else:  # which makes them
        yield MachineFinding("aqmlab", State.MISSING, "no live bed", "make build in the checkout")
    yield _timers()
    yield _processors()
    yield _ping()
    yield _controls()


def table(found: Sequence[MachineFinding]) -> TableModel:
    """The parts of a machine, one a row."""
    title = "programs behind a queue on this machine"
    rows = TableModel(title, ["part", "state"], texts=["found"])
    for finding in found:
        tone = {State.FINE: "better", State.POOR: "clear", State.MISSING: "worse"}[finding.state]
        text = f"{finding.found}. Cure: {finding.cure}" if finding.cure else finding.found
        rows.add_row(finding.name, Cell(finding.state.value, tone), text)
    return rows


def _command(name: str, package: str) -> MachineFinding:
    """A command that is needed."""
    path = shutil.which(name)
    if path is None:
        cure = f"install the package {package}"
        return MachineFinding(f"command {name}", State.MISSING, "not in your PATH", cure)
    return MachineFinding(f"command {name}", State.FINE, path)


def _device() -> MachineFinding:
    """The device of which TUN devices are made."""
    device = Path("/dev/net/tun")
    try:
        os.close(os.open(device, os.O_RDWR))
    except FileNotFoundError:
        cure = "sudo modprobe tun; in a container: --device /dev/net/tun"
        return MachineFinding("TUN devices", State.MISSING, f"no {device}", cure)
    except PermissionError:
        return MachineFinding(
            "TUN devices", State.MISSING, f"{device} is not yours", f"sudo chmod 666 {device}"
        )
    except OSError as error:
        cure = "in a container: --device /dev/net/tun"
        return MachineFinding("TUN devices", State.MISSING, f"{device}: {error.strerror}", cure)
    return MachineFinding("TUN devices", State.FINE, str(device))


def _namespaces() -> MachineFinding:
    """Whether namespaces can be made, by making them."""
    lacking = privileges.lacking_for_program()
    if lacking is None:
        return MachineFinding("namespaces", State.FINE, "user, network, process and mount")
    cures = {
        "kernel.unprivileged_userns_clone": "sudo sysctl kernel.unprivileged_userns_clone=1",
        "user.max_user_namespaces": "sudo sysctl user.max_user_namespaces=15000",
        "kernel.apparmor_restrict_unprivileged_userns": _apparmor_cure(),
    }
    for refusal in privileges.refusals():
        return MachineFinding("namespaces", State.MISSING, refusal, cures[refusal.split()[0]])
    cure = "in a container: --security-opt seccomp=unconfined; elsewhere: run it with sudo"
    return MachineFinding("namespaces", State.MISSING, lacking, cure)


def _apparmor_cure() -> str:
    """How AppArmor allows user namespaces."""
    lines = " | ".join(_PROFILE).format(unshare=shutil.which("unshare") or "/usr/bin/unshare")
    return (
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0; or write these lines, "
        f"separated by |, to /etc/apparmor.d/unshare and load them with apparmor_parser: {lines}"
    )


def _timers() -> MachineFinding:
    """How late a thread wakes up that sleeps."""
    late = []
    for _ in range(_WAKE_UPS):
        began = time.monotonic()
        time.sleep(_NAP_S)
        late.append(time.monotonic() - began - _NAP_S)
    late.sort()
    median, p99 = late[len(late) // 2], late[len(late) * 99 // 100]
    found = f"{1e3 * median:.2f} ms late (median), {1e3 * p99:.2f} ms (p99)"
    if p99 < _LATE_S:
        return MachineFinding("timers", State.FINE, found)
    cure = "end what else takes the processors; in a virtual machine: give it cores of its own"
    return MachineFinding("timers", State.POOR, found, cure)


def _processors() -> MachineFinding:
    """How many there are, and whether others take them."""
    count = len(os.sched_getaffinity(0))
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    found = f"{count}, with {busy:.1f} busy threads each in the last minute"
    if count < _PROCESSORS:
        return MachineFinding(
            "processors", State.POOR, found, "a rate of more than 50 Mbit/s needs two"
        )
    if busy > _QUIET:
        return MachineFinding("processors", State.POOR, found, "end what else takes them")
    return MachineFinding("processors", State.FINE, found)


def _ping() -> MachineFinding:
    """Whether the gateway may ping for a program."""
    group = os.getegid()
    text = Path("/proc/sys/net/ipv4/ping_group_range").read_text(encoding="ascii")
    first, last = map(int, text.split())
    if first <= group <= last:
        return MachineFinding("ping", State.FINE, f"your group {group} may")
    cure = f'for --net all: sudo sysctl net.ipv4.ping_group_range="{group} {group}"'
    return MachineFinding("ping", State.POOR, f"your group {group} may not", cure)


def _controls() -> MachineFinding:
    """The congestion controls of this kernel."""
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    return MachineFinding("controls", State.FINE, path.read_text(encoding="ascii").strip())
