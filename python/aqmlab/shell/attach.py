"""A second program beside one that runs behind a link: in the same network."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab.engine.workspace import is_locked, is_workspace_of
from aqmlab.errors import AqmlabError, ShellError

__all__ = ["run_beside"]

_MARK = "AQMLAB_RUN"


def run_beside(target: Path, program: Sequence[str]) -> int:
    """Runs a program in the network of one that is behind a link; its exit status.

    The kernel ends it together with the first program.

    Args:
        target: the run directory that the other program will have.
        program: the program, a file or a name, and its arguments.

    Raises:
        AqmlabError: no such program runs.
        ShellError: the machine lacks something.
    """
    running = sorted(_programs(target))
    if not running:
        raise AqmlabError(
            f"--attach: no program of {target} runs; expected the run directory of a running "
            "aqmlab shell"
        )
    environment = dict(_environment(running[0]))
    names = {"AQMLAB_BASE", _MARK, "no_proxy", "NO_PROXY"} & environment.keys()
    own = {**os.environ, **{name: environment[name] for name in names}}
    spaces = _Spaces.of(running[0])
    try:
        done = subprocess.run(program, env=own, check=False, preexec_fn=spaces.enter)
    except subprocess.SubprocessError:
        raise ShellError(
            f"--attach: may not enter the namespaces of process {running[0]}"
        ) from None
    except OSError as error:
        raise AqmlabError(f"{program[0]}: cannot be run: {error.strerror}") from None
    finally:
        spaces.close()
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_NEW_MOUNTS, _NEW_PROCESSES = 0x00020000, 0x20000000
_NO_NEW_PRIVILEGES, _DROP_BOUND, _AMBIENT, _CLEAR_ALL = 38, 24, 47, 4
_CAPABILITIES_3 = 0x20080522
_MOST_FILES = 4096
"""Numbers of Linux: ``linux/sched.h``, ``linux/prctl.h``, ``linux/capability.h``."""


@dataclass(frozen=True)
class _Spaces:
    """The namespaces of a process, by open files: no name is looked up once they are entered."""

    files: Sequence[tuple[int, int]]
    """Descriptors, and which kind each is; in the order in which they are entered."""
    folder: str
    libc: ctypes.CDLL

    @classmethod
    def of(cls, pid: int) -> _Spaces:
        """Those of a process."""
        kinds = [("net", _NEW_NETWORK), ("mnt", _NEW_MOUNTS), ("pid", _NEW_PROCESSES)]
        if not Path(f"/proc/{pid}/ns/user").samefile("/proc/self/ns/user"):
            kinds.insert(0, ("user", _NEW_USER))
        files = [
            (os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), kind)
            for name, kind in kinds
        ]
        return cls(files, str(Path.cwd()), ctypes.CDLL(None, use_errno=True))

    def enter(self) -> None:
        """Enters them, and gives up every right beyond the user's before a program runs there."""
        for descriptor, kind in self.files:
            self._call(self.libc.setns, descriptor, kind)
        os.chdir(self.folder)
        self._call(self.libc.prctl, _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        self._call(self.libc.prctl, _AMBIENT, _CLEAR_ALL, 0, 0, 0)
        for capability in range(64):
            self.libc.prctl(_DROP_BOUND, capability, 0, 0, 0)  # those that there are
        header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
        none = (ctypes.c_uint32 * 6)()
        self._call(self.libc.capset, header, none)
        # A process is in another space of processes only from its birth on.
        if child := os.fork():
            os.closerange(3, _MOST_FILES)  # else the process that starts this waits for the end
            _, ended = os.waitpid(child, 0)
            status = os.waitstatus_to_exitcode(ended)
            if status < 0:
                with suppress(OSError):  # that of SIGKILL cannot be set
                    signal.signal(-status, signal.SIG_DFL)
                os.kill(os.getpid(), -status)
            os._exit(status & 0xFF)

    @staticmethod
    def _call(function: Any, *arguments: object) -> None:  # noqa: ANN401 - of a C library
        if function(*arguments) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def close(self) -> None:
        """Closes the files."""
        for descriptor, _ in self.files:
            os.close(descriptor)


def _programs(target: Path) -> Iterator[int]:
    """The caller's processes behind a link whose run directory it is.

    They are in another network than this one, and descend from an aqmlab that is alive and holds
    the lock of the run. What a process says in its environment proves nothing.
    """
    mark = os.fspath(target.absolute())
    here = Path("/proc/self/ns/net").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        # It may end meanwhile, and belong to somebody else.
        with suppress(OSError):
            is_elsewhere = (folder / "ns/net").readlink() != here
            is_own = folder.stat().st_uid == os.geteuid()
            if not (is_elsewhere and is_own):
                continue
            named = dict(_environment(int(folder.name))).get(_MARK) == mark
            if named and any(_holds_run(pid, target) for pid in _ancestors(int(folder.name))):
                yield int(folder.name)


def _ancestors(pid: int) -> Iterator[int]:
    """The processes from which one descends, as far as they are this user's."""
    while pid > 1:
        # Behind the name, which may hold anything: the state, then the parent.
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if pid > 1 and Path(f"/proc/{pid}").stat().st_uid == os.geteuid():
            yield pid


def _holds_run(pid: int, target: Path) -> bool:
    """Whether a process holds the locked folder in which the run is being made."""
    parent = target.absolute().parent
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            folder = file.readlink()
            if folder.parent == parent and is_workspace_of(folder, target) and is_locked(folder):
                return True
    return False


def _environment(pid: int) -> Iterator[tuple[str, str]]:
    """The environment that a process was started with."""
    for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        name, equals, value = os.fsdecode(entry).partition("=")
        if equals:
            yield name, value
