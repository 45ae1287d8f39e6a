"""The words of mahimahi's commands, as options of ``aqmlab shell``.

``mm-delay MS`` and ``mm-link [OPTION...] UPLINK DOWNLINK`` are read, alone or nested, up to the
program's name (mm-link(1), mm-delay(1) of mahimahi 0.98).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from aqmlab.errors import AqmlabError

__all__ = ["Mahimahi", "read"]

_ENDLESS = "1000000000 bytes"
"""What mahimahi's default, an infinite queue, becomes: it never fills."""
_QUEUES = {
    "infinite": ("droptail", ()),
    "droptail": ("droptail", ("packets", "bytes")),
    "codel": ("codel", ("packets", "target", "interval")),
    "pie": ("pie", ("packets", "qdelay_ref", "max_burst")),
}
"""Queues by mahimahi's names: the kind, and the parameters that mahimahi gives them."""


@dataclass
class Mahimahi:
    """What a line of mahimahi's commands says."""

    up: str = ""
    """The upload's trace."""
    down: str = ""
    """The download's."""
    rtt_s: float | None = None
    """Twice the delay in seconds, if there was one."""
    queue_up: str = "infinite"
    queue_down: str = "infinite"
    arguments: dict[str, str] = field(default_factory=dict)
    """The parameters of the queues, by direction."""
    program: list[str] = field(default_factory=list)
    """The program and its arguments."""

    def options(self) -> dict[str, str]:
        """The link as options of ``aqmlab shell``."""
        return {
            "down": self.down,
            "up": self.up,
            "queue_down": self._queue("downlink"),
            "queue_up": self._queue("uplink"),
        }

    def _queue(self, way: str) -> str:
        """A direction's queue as a TOML table."""
        name = self.queue_up if way == "uplink" else self.queue_down
        if name not in _QUEUES:
            names = ", ".join(_QUEUES)
            raise AqmlabError(f"--mm: found --{way}-queue={name[:40]}; expected {names}")
        kind, known = _QUEUES[name]
        fields = {"kind": f'"{kind}"'}
        if kind == "droptail":
            fields["limit"] = f'"{_ENDLESS}"'
        text = self.arguments.get(way, "")
        for word in filter(None, re.split(r"[,\s]+", text)):
            key, _, value = word.partition("=")
            if key not in known or not value.isdigit():
                raise AqmlabError(
                    f'--mm: found "{word[:40]}" for a queue {name}; expected '
                    f"{', '.join(f'{it}=N' for it in known) or 'nothing'}"
                )
            if key in ("packets", "bytes"):
                fields["limit"] = f'"{value} {key}"'
            else:
                fields[key] = f'"{value} ms"'
        return f"{{ {', '.join(f'{key} = {value}' for key, value in fields.items())} }}"


def read(words: Sequence[str]) -> Mahimahi:
    """Reads mahimahi's words; a program that is missing is a shell.

    Raises:
        AqmlabError: a word is none that aqmlab can do; it is named.
    """
    found = Mahimahi()
    left = list(words)
    while left:
        word = left[0]
        if word == "mm-delay":
            if len(left) < 2 or not re.fullmatch(r"\d+", left[1]):
                raise AqmlabError("--mm: mm-delay needs its milliseconds")
            found.rtt_s = (found.rtt_s or 0.0) + 2e-3 * int(left[1])
            left = left[2:]
        elif word.startswith("mm-") and word != "mm-link":
            raise AqmlabError(f"--mm: found {word[:40]}; expected mm-delay and mm-link")
        elif not found.down:
            left = _link(found, left[1:] if word == "mm-link" else left)
        else:
            break
    if not found.down:
        raise AqmlabError("--mm: found no traces; expected those of the uplink and the downlink")
    found.program = left[1:] if left[:1] == ["--"] else left
    return found


def _link(found: Mahimahi, words: Sequence[str]) -> list[str]:
    """Reads the words of mm-link; what follows them."""
    traces: list[str] = []
    left = list(words)
    while left and (len(traces) < 2 or left[0].startswith("--")) and left[0] != "--":
        word = left.pop(0)
        if not word.startswith("-"):
            traces.append(word)
            continue
        option = re.fullmatch(r"--(uplink|downlink)-queue(-args)?", word.partition("=")[0])
        if option is None:
            raise AqmlabError(
                f"--mm: found {word[:40]}; expected --uplink-queue, --uplink-queue-args, and those "
                "of the downlink; --view draws, and the run directory is the log"
            )
        way, is_arguments = option[1], option[2] is not None
        value = word.partition("=")[2] or (left.pop(0) if left else "")
        if is_arguments:
            found.arguments[way] = value.strip("\"'")
        elif way == "uplink":
            found.queue_up = value
        else:
            found.queue_down = value
    if len(traces) < 2:
        raise AqmlabError("--mm: found no traces; expected those of the uplink and the downlink")
    found.up, found.down = traces
    return left
