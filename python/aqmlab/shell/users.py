"""Simulated users beside a program: classes of traffic whose models run over real sockets."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aqmlab import _native
from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.scenario.quantities import time_text
from aqmlab.scenario.scenario import Scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["users_of"]

_COUNTS = ("flows", "users", "sessions", "viewers", "streams", "calls", "players")
"""What models call how many there are."""
_UPLOAD = "upload"
"""A transfer without end from the program's side."""
_TCP = "linux"
"""All users have this kernel's TCP."""


def users_of(texts: Sequence[str], rtt_s: float) -> list[dict[str, Any]]:
    """The classes of traffic of some options, with names of their own.

    Args:
        texts: a kind of traffic as ``KIND`` or ``KIND:NUMBER``, ``upload``, a TOML table, or the
            file of a scenario, which stands for all its classes.
        rtt_s: round trip on the empty link; users have it unless they state another.

    Raises:
        AqmlabError: there is no such kind, or its parameters are missing.
    """
    found = [one for text in texts for one in _classes(text.strip())]
    names: dict[str, int] = {}
    for one in found:
        one.setdefault("rtt", {"kind": "constant", "rtt": time_text(rtt_s)})
        tcp = one.get("tcp")
        if not (isinstance(tcp, dict) and tcp.get("profile") == _TCP):
            one["tcp"] = _TCP
        name = str(one.setdefault("name", one.get("kind", "")))
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            one["name"] = f"{name}-{names[name]}"
    return found


def _classes(text: str) -> list[dict[str, Any]]:
    """The classes of an option."""
    if text.startswith("{"):
        try:
            return [tomllib.loads(f"users = {text}")["users"]]
        except tomllib.TOMLDecodeError as error:
            raise AqmlabError(f"--beside: found {text[:60]}: {error}") from None
    if Path(text).is_file():
        return [dict(one) for one in Scenario.load(Path(text)).data["traffic"]]
    kind, _, number = (part.strip() for part in text.partition(":"))
    if number and not (number.isascii() and number.isdecimal() and int(number) > 0):
        raise AqmlabError(
            f'--beside: found "{number[:20]}" {kind}; expected a number such as 3; transfers from '
            f"the program's side are {_UPLOAD}:3"
        )
    count = int(number or 1)
    if kind == _UPLOAD:
        return [{"name": _UPLOAD, "kind": "bulk", "flows": count, "direction": "reverse"}]
    kinds = json.loads(_native.catalog())["traffic"]
    if kind not in kinds:
        hint = nearest(kind, [*kinds, _UPLOAD])
        hint = (
            hint
            or f"; `aqmlab list traffic` lists the kinds; {_UPLOAD} is a transfer from the program"
        )
        raise AqmlabError(f'--beside: found "{kind[:40]}", which is no kind of traffic{hint}')
    parameters = kinds[kind]["parameters"]
    [key, *_] = [it["name"] for it in parameters if it["name"] in _COUNTS] or [""]
    needed = [it["name"] for it in parameters if it["required"] and it["name"] != key]
    if needed or not key:
        raise AqmlabError(
            f"--beside: {kind} needs {' and '.join(needed) or 'its parameters'}; write a table "
            f'such as {{ kind = "{kind}", ... }}'
        )
    return [{"kind": kind, key: count}]
