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

__all__ = ["require", "require_for_program", "start_again"]


_UNSHARE = ("--user", "--map-root-user", "--")
_UNSHARE_KEEPING_USER = ("--user", "--map-current-user", "--keep-caps", "--")
_LOOK = "import sys; from aqmlab import _native; sys.exit(_native.live_missing())"
"""Says on standard error what a process lacks for a live run."""
_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ("user/max_user_namespaces", "0"),
)
"""Settings below /proc/sys with which a kernel refuses user namespaces."""


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


def start_again(*, keeping_user: bool = False) -> str:
    """Replaces this process by the same command in a user namespace; returns why if it cannot.

    Args:
        keeping_user: whether the user keeps the own number there and is not called root.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        return "in a user namespace: needs the command unshare, of the package util-linux"
    how = _UNSHARE_KEEPING_USER if keeping_user else _UNSHARE
    command = [unshare, *how, sys.executable]
    look = subprocess.run([*command, "-c", _LOOK], capture_output=True, text=True, check=False)
    if look.returncode != 0:
        return f"in a user namespace: {_last_line(look.stderr)}{_refusals()}"
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(unshare, [*command, *sys.orig_argv[1:]])
    except OSError as error:
        return f"in a user namespace: {unshare}: {error.strerror}"


def _last_line(text: str) -> str:
    """The last line of what a command said."""
    return (text.strip().splitlines() or ["it ended without a word"])[-1]


def _refusals() -> str:
    """The settings of this kernel that refuse user namespaces, in parentheses."""
    found = []
    for name, refusing in _SWITCHES:
        path = Path("/proc/sys", name)
        if path.is_file() and path.read_text().strip() == refusing:
            found.append(f"{name.replace('/', '.')} is {refusing}")
    return f" ({', '.join(found)})" if found else ""
