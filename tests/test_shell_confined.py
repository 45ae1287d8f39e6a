"""What a program behind a queue cannot do: SECURITY.md says it, this tries it."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from test_live import as_nobody, live, own_folder

__all__ = ["own_folder"]

PROGRAM = """
import ctypes, errno, fcntl, os, socket, struct

libc = ctypes.CDLL(None, use_errno=True)

def system(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")

def attempt(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def join_device():
    with open("/dev/net/tun", "r+b", buffering=0) as device:
        fcntl.ioctl(device, 0x400454ca, struct.pack("16sH22x", b"aqmlab0", 0x1001))

def set_sysctl():
    with open("/proc/sys/net/ipv4/tcp_ecn", "w") as file:
        file.write("1")

files = [number for number in map(int, os.listdir("/proc/self/fd")) if number > 2]
CLONE_NEWNET, PTRACE_ATTACH = 0x40000000, 16
for name, found in {
    "files of others": sum(attempt(os.fstat, it) == "done" for it in files),
    "processes": sum(name.isdecimal() for name in os.listdir("/proc")),
    "signal": attempt(os.kill, OUTSIDE, 0),
    "trace": attempt(system, "ptrace", PTRACE_ATTACH, OUTSIDE, 0, 0),
    "raw socket": attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW),
    "device": attempt(join_device),
    "setting": attempt(set_sysctl),
    "namespace": attempt(system, "unshare", CLONE_NEWNET),
    "host": attempt(socket.create_connection, ("127.0.0.1", PORT)),
    "abstract socket": attempt(socket.socket(socket.AF_UNIX).connect, "\\0aqmlab-PORT"),
    "file's socket": attempt(socket.socket(socket.AF_UNIX).connect, "socket"),
}.items():
    print(f"{name}: {found}")
"""


@live
def test_a_program_reaches_nothing_of_the_router(own_folder: Path, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as host,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as of_file,
    ):
        port = str(host.getsockname()[1])
        abstract.bind(f"\0aqmlab-{port}")
        of_file.bind(str(own_folder / "socket"))
        (own_folder / "socket").chmod(0o777)
        for listener in (abstract, of_file):
            listener.listen()
        code = PROGRAM.replace("PORT", port).replace("OUTSIDE", str(os.getpid()))
        options = ("shell", "--out", "run", sys.executable, "-c", code)
        answer = as_nobody(own_folder, tmp_path / "held", "666", *options)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == [
        "files of others: 0",
        "processes: 2",  # the first of its namespace, and itself
        "signal: ESRCH",
        "trace: ESRCH",
        "raw socket: EPERM",
        "device: EBUSY",  # the router has it
        "setting: EACCES",
        "namespace: EPERM",
        "host: ECONNREFUSED",
        "abstract socket: ECONNREFUSED",
        "file's socket: done",  # as all files of the user
    ]
