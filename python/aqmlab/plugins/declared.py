"""Classes of plug-ins: what a user writes, and what it declares."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from aqmlab import _native
from aqmlab.errors import AqmlabError

__all__ = [
    "ADMIT",
    "DROP",
    "ECHO",
    "FORCE",
    "LOSS",
    "SIGNAL",
    "TIMEOUT",
    "Bytes",
    "Control",
    "Declared",
    "Discipline",
    "Packets",
    "Rate",
    "Time",
    "Variable",
    "declared",
]

ADMIT = 0
"""The packet is let in, or sent."""
SIGNAL = 1
"""Congestion is signalled: a mark where ECN is on and the packet capable, else a drop."""
DROP = 2
"""The packet is dropped, whatever ECN allows; counted as ``early``."""
FORCE = 3
"""The same, counted as ``forced``."""
LOSS = 0
"""Duplicate ACKs, or SACK."""
ECHO = 1
"""The receiver has echoed a mark."""
TIMEOUT = 2
"""The retransmission timer has expired."""

Time = Annotated[int, "time"]
"""A parameter in whole nanoseconds, in scenarios ``"5 ms"``."""
Bytes = Annotated[int, "bytes"]
"""A parameter in bytes, in scenarios ``"1500 bytes"``."""
Rate = Annotated[int, "rate"]
"""A parameter in bits per second, in scenarios ``"10 Mbit/s"``."""
Packets = Annotated[float, "packets"]
"""A parameter in packets, in scenarios ``"5 packets"``."""


_Kind = TypeVar("_Kind")

Variable = Annotated[_Kind, "variable"]
"""What a plug-in remembers: ``avg: Variable[float] = 0.0``. Records show it."""


class Discipline:
    """A queue discipline of your own: a subclass with callbacks.

    Annotated attributes are parameters (``float``, ``int``, ``bool``, :data:`Time`, :data:`Bytes`,
    :data:`Rate`, :data:`Packets`), or variables that records show (:class:`Variable`). Callbacks,
    each with the record of the event: ``start``, ``on_arrival``, ``on_overflow``,
    ``on_departure``, ``on_idle``, ``tick``, ``on_link``, ``on_change``; of a scheduler ``enqueue``,
    ``dequeue`` and ``on_head``. docs/extending.md says what each returns.
    """

    plugin_kind: ClassVar[str] = "discipline"
    plugin_name: ClassVar[str] = ""
    plugin_is_compiled: ClassVar[bool] = False


class Control:
    """A congestion control of your own, as :class:`Discipline`.

    Callbacks: ``start``, ``on_ack``, ``on_recovery_ack``, ``on_send``, ``on_loss``,
    ``on_timeout``, ``on_undo``.
    """

    plugin_kind: ClassVar[str] = "control"
    plugin_name: ClassVar[str] = ""
    plugin_is_compiled: ClassVar[bool] = False


_FORMS = {"number": 0, "integer": 1, "boolean": 2, "time": 3, "bytes": 4, "rate": 5, "packets": 6}
_PLAIN = {float: "number", int: "integer", bool: "boolean"}
_REQUIRED, _OPTIONAL, _VARIABLE = range(3)

Field = tuple[str, str, int, int, float]
"""Name, meaning, form, role and default, as the engine takes them."""


@dataclass(frozen=True)
class Declared:
    """What a class says of itself."""

    kind: str
    name: str
    purpose: str
    fields: list[Field]
    callbacks: list[str]

    @property
    def is_number(self) -> list[bool]:
        """Whether each field is a double; the others are whole numbers."""
        return [form in (0, 6) for _, _, form, _, _ in self.fields]


def declared(plugin: type[Discipline | Control]) -> Declared:
    """What a class says of itself; an error if that is not what a plug-in can say."""
    known = _native.plugin_records()[plugin.plugin_kind]
    name = plugin.plugin_name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", plugin.__name__).lower()
    text = inspect.getdoc(plugin) if plugin.__doc__ else ""
    return Declared(
        kind=plugin.plugin_kind,
        name=name,
        purpose=(text or "").partition("\n\n")[0].replace("\n", " "),
        fields=list(_fields(plugin)),
        callbacks=[callback for callback in known if callable(getattr(plugin, callback, None))],
    )


def _fields(plugin: type[Discipline | Control]) -> Iterator[Field]:
    """The annotated attributes, in their order."""
    meanings = _meanings(plugin)
    for name, hint in get_type_hints(plugin, include_extras=True).items():
        if get_origin(hint) is ClassVar or name in Discipline.__annotations__:
            continue
        kind, marks = (get_args(hint)[0], get_args(hint)[1:]) if get_args(hint) else (hint, ())
        words = [mark for mark in marks if mark in _FORMS]
        word = words[0] if words else _PLAIN.get(kind)
        if word is None:
            raise AqmlabError(
                f"{plugin.__name__}.{name}: found the type {hint}; expected float, int, bool, "
                "Time, Bytes, Rate, Packets or a Variable of one"
            )
        value = getattr(plugin, name, None)
        if value is not None and (not isinstance(value, int | float) or not math.isfinite(value)):
            raise AqmlabError(f"{plugin.__name__}.{name}: found {value!r}; expected a number")
        role = _VARIABLE if "variable" in marks else _REQUIRED if value is None else _OPTIONAL
        yield name, meanings.get(name, ""), _FORMS[word], role, float(value or 0)


def _meanings(plugin: type) -> dict[str, str]:
    """What the docstring says of parameters: lines ``name: meaning`` under ``Parameters:``."""
    text = inspect.getdoc(plugin) or ""
    return {
        match[1]: match[2].strip()
        for match in re.finditer(
            r"^\s*(\w+): (.+)$", text.partition("Parameters:")[2], re.MULTILINE
        )
    }
