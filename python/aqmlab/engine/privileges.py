"""Live runs without root: the command starts itself again in a user namespace of its own.

There it may make network namespaces and devices, which nobody outside of it sees. Everything else
is as it was: the user's files, rights and limits.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from aqmlab import _native
from aqmlab.errors import AqmlabError, ShellError, UnprivilegedError, UnprivilegedShellError

__all__ = [
    "has_live_bed",
    "lacking_for_program",
    "refusals",
    "require",
    "require_for_program",
    "start_again",
]

_UNSHARE = ("--user", "--map-root-user", "--")
_UNSHARE_KEEPING_USER = ("--user", "--map-current-user", "--keep-caps", "--")
_NO_UNSHARE = "needs the command unshare, of the package util-linux"
_LOOK = "import sys; from aqmlab import _native; sys.exit(_native.live_missing())"
"""Says on standard error what a process lacks for a live run."""
_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ("user/max_user_namespaces", "0"),
)
"""Settings below /proc/sys with which a kernel refuses user namespaces."""


def has_live_bed() -> bool:
    """Whether this build has a live bed: that of ``make run`` alone has none."""
    return hasattr(_native, "run_live")


def require() -> None:
    """Raises an error if there can be no live run.

    Raises:
        UnprivilegedError: this process may not make one; in a user namespace it may.
        AqmlabError: the machine lacks something.
    """
    if (lacking := _native.live_missing()) is not None:
        raise (AqmlabError if _native.live_privileged() else UnprivilegedError)(lacking)


def require_for_program() -> None:
    """Raises an error if no program can be run behind a queue.

    Raises:
        UnprivilegedShellError: this process may not do it; in a user namespace it may.
        ShellError: the machine lacks something.
    """
    if (lacking := _native.live_missing()) is not None:
        raise (ShellError if _native.live_privileged() else UnprivilegedShellError)(lacking)


def lacking_for_program() -> str | None:
    """What stands in the way of a program behind a queue, here or in a user namespace."""
    lacking: str | None = _native.live_missing()
    if lacking is None or _native.live_privileged():
        return lacking
    unshare = shutil.which("unshare")
    if unshare is None:
        return _NO_UNSHARE
    return _lacking_in_namespace([unshare, *_UNSHARE_KEEPING_USER, sys.executable])


def start_again(*, keeping_user: bool = False) -> str:
    """Replaces this process by the same command in a user namespace; returns why if it cannot.

    Args:
        keeping_user: whether the user keeps the own number there and is not called root.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        return f"in a user namespace: {_NO_UNSHARE}"
    how = _UNSHARE_KEEPING_USER if keeping_user else _UNSHARE
    command = [unshare, *how, sys.executable]
    if (lacking := _lacking_in_namespace(command)) is not None:
        found = ", ".join(refusals())
        return f"in a user namespace: {lacking}{f' ({found})' if found else ''}"
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(unshare, [*command, *sys.orig_argv[1:]])
    except OSError as error:
        return f"in a user namespace: {unshare}: {error.strerror}"


def _lacking_in_namespace(command: list[str]) -> str | None:
    """What a process lacks that a command puts into a user namespace."""
    look = subprocess.run([*command, "-c", _LOOK], capture_output=True, text=True, check=False)
    return None if look.returncode == 0 else _last_line(look.stderr)


def _last_line(text: str) -> str:
    """The last line of what a command said."""
    return (text.strip().splitlines() or ["it ended without a word"])[-1]


def refusals() -> list[str]:
    """The settings of this kernel that refuse user namespaces, as ``NAME is VALUE``."""
    found = []
    for name, refusing in _SWITCHES:
        path = Path("/proc/sys", name)
        if path.is_file() and path.read_text().strip() == refusing:
            found.append(f"{name.replace('/', '.')} is {refusing}")
    return found
