"""What can go wrong, in one sentence each."""

from __future__ import annotations

import errno
import os
from typing import ClassVar

__all__ = [
    "AqmlabError",
    "DamagedRunError",
    "DamagedRunWarning",
    "LaterRunError",
    "NoWorkerWarning",
    "PluginError",
    "RunError",
    "ScenarioError",
    "ShellError",
    "UnprivilegedError",
    "UnprivilegedShellError",
    "is_of_the_machine",
]


class AqmlabError(Exception):
    """Anything that aqmlab reports to its user; the message is one sentence.

    AqmlabError itself means that the input is wrong. Subclasses name other causes.
    """

    exit_status: ClassVar[int] = 2
    """Exit status of the command line."""


class ScenarioError(AqmlabError, ValueError):
    """A scenario is wrong. The message begins with the path of the field."""


class RunError(AqmlabError, RuntimeError):
    """A scenario is right, but its run failed."""

    exit_status: ClassVar[int] = 1


_OF_THE_MACHINE = tuple(
    os.strerror(number)
    for number in (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
    )
)


def is_of_the_machine(error: AqmlabError) -> bool:
    """Whether the machine made a run fail, not what was run: a full disk, memory, a killed process.

    The same run may succeed another time.
    """
    text = str(error)
    return "was ended by SIGKILL" in text or any(words in text for words in _OF_THE_MACHINE)


class PluginError(AqmlabError):
    """A plug-in raised an exception or returned what means nothing; no run goes on with it."""


class DamagedRunError(AqmlabError):
    """A run directory is not as it was written."""


class LaterRunError(AqmlabError):
    """A run directory was written by a later version, whose results this one cannot read."""


class UnprivilegedError(AqmlabError):
    """A process may not make the network namespaces of a live run."""


class ShellError(AqmlabError):
    """A program could not be run behind a queue; its own exit status says nothing of that."""

    exit_status: ClassVar[int] = 125


class UnprivilegedShellError(ShellError, UnprivilegedError):
    """A process may not make the network namespaces of a program."""


class DamagedRunWarning(UserWarning):
    """A damaged run of a store was set aside; it is made again where it is needed."""


class NoWorkerWarning(UserWarning):
    """A cluster has no worker."""
