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
"""A parameter in whole nanoseconds; its default and its value in scenarios may be ``"5 ms"``."""
Bytes = Annotated[int, "bytes"]
"""A parameter in bytes; its default and its value in scenarios may be ``"1500 bytes"``."""
Rate = Annotated[int, "rate"]
"""A parameter in bits per second; its default may be ``"10 Mbit/s"``, as in scenarios."""
Packets = Annotated[float, "packets"]
"""A parameter in packets; its default and its value in scenarios may be ``"5 packets"``."""


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
_QUANTITIES = {
    "time": 'nanoseconds or text such as "50 ms"',
    "bytes": 'bytes or text such as "1500 bytes"',
    "rate": 'bits per second or text such as "10 Mbit/s"',
    "packets": 'packets or text such as "5 packets"',
}
_EXPECTED = {
    "integer": "a whole number",
    "boolean": "True or False",
    **{
        form: words if form == "packets" else f"whole {words}"
        for form, words in _QUANTITIES.items()
    },
}
_REAL = ("number", "packets")
"""Forms whose values need not be whole."""
_LONGEST_VALUE = 60
"""Letters of a value that a message repeats."""
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
        return [form in map(_FORMS.get, _REAL) for _, _, form, _, _ in self.fields]


def declared(plugin: type[Discipline | Control]) -> Declared:
    """What a class says of itself; an error if that is not what a plug-in can say."""
    known = _native.plugin_records()[plugin.plugin_kind]
    name = (
        str(plugin.plugin_name) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", plugin.__name__).lower()
    )
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
        value = _default(plugin, name, word)
        role = _VARIABLE if "variable" in marks else _REQUIRED if value is None else _OPTIONAL
        if role != _VARIABLE and word in _QUANTITIES and value is not None and value < 0:
            raise AqmlabError(f"{plugin.__name__}.{name}: found {value}; expected no less than 0")
        yield name, meanings.get(name, ""), _FORMS[word], role, float(value or 0)


def _default(plugin: type[Discipline | Control], name: str, form: str) -> float | None:
    """The default of a field as a number, which the class has from now on; None: it has none."""
    value = getattr(plugin, name, None)
    if isinstance(value, str) and form in _QUANTITIES:
        try:
            number = _native.plugin_value(_FORMS[form], value)
        except AqmlabError as error:
            raise AqmlabError(f"{plugin.__name__}.{name}: {error}") from None
        value = number if form == "packets" else int(number)
        setattr(plugin, name, value)
    if isinstance(value, float) and value.is_integer() and form not in _REAL:
        value = int(value)
        setattr(plugin, name, value)
    if form in _REAL:
        is_right = isinstance(value, int | float) and math.isfinite(value)
    else:
        is_right = isinstance(value, int) and -(2**63) <= value < 2**63
    if value is not None and not is_right:
        what = _EXPECTED.get(form, "a number")
        raise AqmlabError(f"{plugin.__name__}.{name}: found {shortened(value)}; expected {what}")
    return value


def shortened(value: object) -> str:
    """A value as a message has it."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _meanings(plugin: type) -> dict[str, str]:
    """What the docstring says of parameters: lines ``name: meaning`` under ``Parameters:``."""
    text = inspect.getdoc(plugin) or ""
    return {
        match[1]: match[2].strip()
        for match in re.finditer(
            r"^\s*(\w+): (.+)$", text.partition("Parameters:")[2], re.MULTILINE
        )
    }
