"""System calls of a script: what they do to the connection, and what they return."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from aqmlab.validation.packetdrill.language import (
    NANOSECONDS,
    Call,
    Event,
    LanguageError,
    NotApplicableError,
)
from aqmlab.validation.packetdrill.settings import System, set_control

__all__ = ["Calls", "Connection", "MismatchError", "Pending"]

INTEGER = re.compile(r"\[?\s*(-?\d{1,12})\s*\]?")
PIECE = re.compile(r"\{\s*\.\.\.\s*,\s*(\d{1,9})\s*\}")
LINGER = re.compile(r"\{\s*onoff\s*=\s*(\d+)\s*,\s*linger\s*=\s*(\d+)\s*\}")
CLOSED_ERRORS = ("EPIPE", "ECONNRESET", "ETIMEDOUT", "ECONNREFUSED", "ENOTCONN")
PLAIN_FLAGS = {"0", "MSG_DONTWAIT", "MSG_NOSIGNAL"}
LITTLE_OPTIONS = {
    "SO_REUSEADDR", "SO_REUSEPORT", "SO_SNDBUF", "SO_RCVBUF", "SO_SNDBUFFORCE", "SO_RCVBUFFORCE",
    "SO_PRIORITY", "SO_MARK", "SO_INCOMING_CPU", "TCP_NOTSENT_LOWAT", "TCP_SYNCNT",
    "SO_DONTROUTE", "IP_MTU_DISCOVER", "IP_RECVERR", "IP_TTL",
}  # fmt: skip
"""Socket options that change nothing which a script can see here."""
OFF_OPTIONS = {"SO_KEEPALIVE", "TCP_CORK", "SO_ZEROCOPY", "TCP_DEFER_ACCEPT", "TCP_USER_TIMEOUT"}
"""Socket options that change nothing while they are off."""


class MismatchError(Exception):
    """What happens is not what a script says."""

    def __init__(self, line: int, expected: str, found: str) -> None:
        super().__init__(f"line {line}: expected {expected}; found {found}")
        self.line = line
        self.expected = expected
        self.found = found


class Connection(Protocol):
    """The connection under test, as far as calls need it."""

    opened: bool

    def open(self, how: str) -> None:
        """The end point connects or listens."""

    def perform(self, word: str, length: int = 0) -> None:
        """The application does something."""

    def is_shown(self, word: str) -> bool:
        """Whether the end point shows this."""

    def set_nagle(self, on: bool) -> None:
        """Nagle's rule."""

    @property
    def received(self) -> int:
        """Bytes that have arrived in order."""

    @property
    def now(self) -> int:
        """Nanoseconds."""


@dataclass
class Pending:
    """A call that blocks."""

    event: Event
    call: Call
    ready: Callable[[], bool]
    finish: Callable[[], None]
    due: int
    """When it must return, in nanoseconds."""


@dataclass
class Calls:
    """The sockets of a script."""

    connection: Connection
    system: System
    sockets: set[int] = field(default_factory=set)
    listener: int | None = None
    socket: int | None = None
    nodelay: bool = False
    aborts: bool = False
    """It lingers for no time: closing aborts."""
    read: int = 0
    """Bytes that the application has read."""
    shut: bool = False
    closed: bool = False
    """Nobody reads any more."""
    gone: bool = False
    """The host has no connection any more."""
    last: bool = False
    """The peer closed first: nothing is left once the FIN of this end is acknowledged."""
    pending: list[Pending] = field(default_factory=list)

    # ---- what a call says ----

    def argument(self, event: Event, call: Call, place: int) -> str:
        """An argument."""
        if place >= len(call.arguments):
            found = len(call.arguments)
            message = f"{call.name}: found {found} arguments; expected {place + 1} at least"
            raise LanguageError(event.line, message)
        return call.arguments[place]

    def integer(self, event: Event, call: Call, place: int) -> int:
        """An argument that is a number, or a list of one."""
        text = self.argument(event, call, place)
        found = INTEGER.fullmatch(text)
        if found is None:
            raise LanguageError(event.line, f"{call.name}: found {text[:40]!r}; expected a number")
        return int(found[1])

    def returns(self, event: Event, call: Call, *results: int | str) -> None:
        """The call must return one of these: a number, or the name of an error."""
        said: int | str | None = call.error if call.result == -1 and call.error else call.result
        if said is not None and said not in results:
            raise MismatchError(event.line, event.text, f"{call.name} = {results[0]}")

    def known(self, event: Event, call: Call, place: int = 0) -> int:
        """A socket."""
        number = self.integer(event, call, place)
        if number not in self.sockets:
            raise LanguageError(event.line, f"{call.name}: found {number}; expected a socket")
        return number

    def connected(self, event: Event, call: Call) -> None:
        """The call is about the connection."""
        if self.known(event, call) != self.socket:
            raise NotApplicableError(event.line, f"{call.name} of a socket without a connection")

    # ---- making it ----

    def make(self, event: Event, call: Call, start: int, anchor: int) -> None:
        """Makes a call; one that blocks may go on."""
        handler = HANDLERS.get(call.name)
        if handler is None:
            known = ", ".join(sorted(HANDLERS))
            raise NotApplicableError(event.line, f"{call.name} is not modelled; calls are {known}")
        due = start if call.until is None else anchor + call.until
        if call.until is not None and due < start:
            raise LanguageError(event.line, "found a call that ends before it begins")
        handler(self, event, call, due)

    def wait(
        self,
        event: Event,
        call: Call,
        due: int,
        ready: Callable[[], bool],
        finish: Callable[[], None],
    ) -> None:
        """The call returns now, or blocks until it can."""
        if ready() or call.until is None:
            self.check_time(event, due)
            finish()
        else:
            self.pending.append(Pending(event, call, ready, finish, due))

    def look(self) -> None:
        """Calls that can return do."""
        for one in list(self.pending):
            if one.ready():
                self.pending.remove(one)
                self.check_time(one.event, one.due)
                one.finish()

    def check_time(self, event: Event, due: int) -> None:
        """A call that blocks returns when the script says."""
        late = abs(self.connection.now - due)
        gap = (due - event.start) * self.system.tolerance_percent / 100
        if late > max(self.system.tolerance * 1000, gap):
            expected = f"{event.text} at {due / NANOSECONDS:g} s"
            found = f"it returns at {self.connection.now / NANOSECONDS:g} s"
            raise MismatchError(event.line, expected, found)

    # ---- the calls ----

    def call_socket(self, event: Event, call: Call, _: int) -> None:
        """``socket``: the number that the script expects is its number."""
        kind, protocol = self.argument(event, call, 1), self.argument(event, call, 2)
        if "SOCK_STREAM" not in kind or protocol not in ("IPPROTO_TCP", "0"):
            raise NotApplicableError(event.line, f"a socket of {kind}, {protocol}: only TCP is")
        if call.result is None or call.result < 0:
            raise NotApplicableError(event.line, "a socket that cannot be made is not modelled")
        self.sockets.add(call.result)

    def call_nothing(self, event: Event, call: Call, _: int) -> None:
        """``bind``, ``fcntl``: nothing to do here."""
        self.known(event, call)
        if call.name == "bind":
            self.returns(event, call, 0)

    def open(self, event: Event, how: str) -> None:
        """The one connection opens."""
        if self.connection.opened:
            raise NotApplicableError(event.line, "a second connection is not modelled")
        self.connection.open(how)
        if self.nodelay:
            self.connection.set_nagle(False)

    def call_listen(self, event: Event, call: Call, _: int) -> None:
        """``listen``."""
        self.listener = self.known(event, call)
        self.returns(event, call, 0)
        self.open(event, "listen")

    def call_connect(self, event: Event, call: Call, due: int) -> None:
        """``connect``: at once, or until the connection is established."""
        number = self.known(event, call)
        if self.connection.opened and number == self.socket:
            established = self.connection.is_shown("established")
            results = (0, "EISCONN") if established else ("EALREADY",)
            self.returns(event, call, *results)
            return
        self.socket = number
        self.open(event, "connect")
        if call.until is None:
            if call.result == 0:
                raise NotApplicableError(event.line, "connect that blocks without saying how long")
            self.returns(event, call, "EINPROGRESS")
            return

        def done() -> bool:
            return self.connection.is_shown("established") or self.connection.is_shown("failed")

        def finish() -> None:
            failed = self.connection.is_shown("failed")
            self.returns(event, call, *(("ECONNREFUSED", "ETIMEDOUT") if failed else (0,)))

        self.wait(event, call, due, done, finish)

    def call_accept(self, event: Event, call: Call, due: int) -> None:
        """``accept``."""
        if self.known(event, call) != self.listener:
            raise LanguageError(event.line, f"{call.name}: expected the socket that listens")

        def ready() -> bool:
            return self.socket is None and self.connection.is_shown("established")

        def finish() -> None:
            if not ready():
                self.returns(event, call, "EAGAIN")
                return
            if call.result is None or call.result < 0:
                self.returns(event, call, "a socket")
                return
            self.socket = call.result
            self.sockets.add(call.result)

        self.wait(event, call, due, ready, finish)

    def call_read(self, event: Event, call: Call, due: int) -> None:
        """``read``, ``recv``."""
        self.connected(event, call)
        length = self.integer(event, call, 2)
        if call.name != "read" and self.argument(event, call, 3) not in PLAIN_FLAGS:
            flags = self.argument(event, call, 3)
            raise NotApplicableError(event.line, f"{call.name} with {flags} is not modelled")
        show = self.connection.is_shown

        def unread() -> int:
            return self.connection.received - self.read

        def finish() -> None:
            if taken := min(length, unread()):
                self.read += taken
                self.returns(event, call, taken)
            elif show("eof"):
                self.returns(event, call, 0)
            elif show("failed"):
                self.returns(event, call, *CLOSED_ERRORS[1:], 0)
            else:
                self.returns(event, call, "EAGAIN")

        self.wait(event, call, due, lambda: unread() > 0 or show("eof") or show("failed"), finish)

    def length(self, event: Event, call: Call) -> int:
        """How much is written, in one piece or in several."""
        if call.name not in ("sendmsg", "writev"):
            return self.integer(event, call, 2)
        parts = PIECE.findall(self.argument(event, call, 1))
        if not parts:
            raise LanguageError(event.line, f"{call.name}: found no pieces; expected {{..., N}}")
        return sum(map(int, parts))

    def call_write(self, event: Event, call: Call, _: int) -> None:
        """``write``, ``send`` and their kin: what is written fits."""
        self.connected(event, call)
        length = self.length(event, call)
        if not call.name.startswith("write"):
            place = 2 if call.name == "sendmsg" else 3
            flags = {flag.strip() for flag in self.argument(event, call, place).split("|")}
            if more := flags - PLAIN_FLAGS:
                raise NotApplicableError(event.line, f"{call.name} with {min(more)}")
        if self.shut or self.connection.is_shown("failed"):
            self.returns(event, call, *CLOSED_ERRORS)
        elif not self.connection.is_shown("established"):
            self.returns(event, call, "EAGAIN")
        elif call.result is not None and 0 <= call.result < length:
            raise NotApplicableError(event.line, "a full send buffer is not modelled")
        else:
            self.returns(event, call, length)
            self.connection.perform("write", length)

    def call_close(self, event: Event, call: Call, _: int) -> None:
        """``close``: what was not read, or no time to linger, aborts."""
        number = self.known(event, call)
        self.returns(event, call, 0)
        self.sockets.discard(number)
        if number != self.socket:
            return
        unread = self.connection.received > self.read
        aborts = self.aborts or unread
        self.gone = aborts or not self.connection.is_shown("established")
        if aborts:
            self.connection.perform("abort")
        elif not self.shut:
            self.connection.perform("close")
        self.last |= self.connection.is_shown("eof") and not self.shut
        self.closed = self.shut = True

    def call_shutdown(self, event: Event, call: Call, _: int) -> None:
        """``shutdown`` of the sending half."""
        self.connected(event, call)
        how = self.argument(event, call, 1)
        if how not in ("SHUT_WR", "SHUT_RDWR", "1", "2"):
            raise NotApplicableError(event.line, f"shutdown with {how} is not modelled")
        self.returns(event, call, 0)
        if not self.shut:
            self.last = self.connection.is_shown("eof")
            self.connection.perform("close")
        self.shut = True

    def call_setsockopt(self, event: Event, call: Call, _: int) -> None:
        """``setsockopt``."""
        number = self.known(event, call)
        name = self.argument(event, call, 2)
        value = self.argument(event, call, 3)
        if name in LITTLE_OPTIONS:
            return
        self.returns(event, call, 0)
        if name in OFF_OPTIONS and self.integer(event, call, 3) == 0:
            return
        if name == "TCP_NODELAY":
            self.nodelay = self.integer(event, call, 3) != 0
            if self.connection.opened:
                self.connection.set_nagle(not self.nodelay)
        elif name == "SO_LINGER" and (found := LINGER.fullmatch(value)):
            if found[1] != "0" and found[2] != "0":
                raise NotApplicableError(event.line, "a time to linger is not modelled")
            self.aborts = found[1] != "0"
        elif name == "TCP_MAXSEG" and not self.connection.opened:
            self.system.max_segment = self.integer(event, call, 3)
        elif name == "TCP_CONGESTION" and not self.connection.opened:
            set_control(self.system, event.line, value.strip('[]" '))
        else:
            when = "" if number != self.socket else " of an open connection"
            raise NotApplicableError(event.line, f"socket option {name}{when} is not modelled")

    def call_getsockopt(self, event: Event, call: Call, _: int) -> None:
        """``getsockopt`` of an error."""
        self.known(event, call)
        name = self.argument(event, call, 2)
        if name != "SO_ERROR":
            raise NotApplicableError(event.line, f"getsockopt of {name} is not modelled")
        self.returns(event, call, 0)
        failed = self.connection.opened and self.connection.is_shown("failed")
        if (self.integer(event, call, 3) != 0) != failed:
            raise MismatchError(event.line, event.text, "an error" if failed else "no error")


HANDLERS: Mapping[str, Callable[[Calls, Event, Call, int], None]] = {
    "socket": Calls.call_socket,
    "bind": Calls.call_nothing,
    "fcntl": Calls.call_nothing,
    "listen": Calls.call_listen,
    "connect": Calls.call_connect,
    "accept": Calls.call_accept,
    "read": Calls.call_read,
    "recv": Calls.call_read,
    "recvfrom": Calls.call_read,
    "write": Calls.call_write,
    "send": Calls.call_write,
    "sendto": Calls.call_write,
    "sendmsg": Calls.call_write,
    "writev": Calls.call_write,
    "close": Calls.call_close,
    "shutdown": Calls.call_shutdown,
    "setsockopt": Calls.call_setsockopt,
    "getsockopt": Calls.call_getsockopt,
}
"""What makes each call."""
