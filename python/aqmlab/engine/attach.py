"""A second program beside one that runs behind a link: in the same network."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

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
    pid = running[0]
    tools = {name: shutil.which(name) for name in ("nsenter", "setpriv")}
    for name, path in tools.items():
        if path is None:
            raise ShellError(f"--attach needs the command {name}, of the package util-linux")
    spaces = ["--net", "--mount", "--pid"]
    if not Path(f"/proc/{pid}/ns/user").samefile("/proc/self/ns/user"):
        spaces += ["--user", "--preserve-credentials"]
    environment = dict(_environment(pid))
    names = {"AQMLAB_BASE", _MARK, "no_proxy", "NO_PROXY"} & environment.keys()
    own = {**os.environ, **{name: environment[name] for name in names}}
    command = [
        *(str(tools["nsenter"]), f"--target={pid}", *spaces, "--"),
        # It has no more rights than its user.
        *(str(tools["setpriv"]), "--no-new-privs", "--inh-caps=-all", "--ambient-caps=-all"),
        *("--bounding-set=-all", "--"),
        *("env", f"--chdir={Path.cwd()}", "--"),
        *program,
    ]
    status = subprocess.run(command, env=own, check=False).returncode
    return status if status >= 0 else 128 - status


def _programs(target: Path) -> Iterator[int]:
    """The processes whose run directory it is, and that are in another network than this one."""
    mark = os.fspath(target.absolute())
    here = Path("/proc/self/ns/net").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        # It may end meanwhile, and belong to somebody else.
        with suppress(OSError):
            is_elsewhere = (folder / "ns/net").readlink() != here
            if is_elsewhere and dict(_environment(int(folder.name))).get(_MARK) == mark:
                yield int(folder.name)


def _environment(pid: int) -> Iterator[tuple[str, str]]:
    """The environment that a process was started with."""
    for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        name, equals, value = os.fsdecode(entry).partition("=")
        if equals:
            yield name, value
