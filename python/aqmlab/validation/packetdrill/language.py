"""Reads packetdrill's language: a file becomes options, commands and events.

What cannot be read is a :class:`LanguageError`. What can be read and not be simulated is a
:class:`NotApplicableError`: both name the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from aqmlab.errors import AqmlabError
from aqmlab.validation.packetdrill.packets import Packet, parse_packet

__all__ = [
    "Call",
    "Command",
    "Event",
    "LanguageError",
    "NotApplicableError",
    "Source",
    "When",
    "parse",
]

NANOSECONDS = 10**9
LONGEST = 100_000
"""Seconds that a script lasts at most."""
LARGEST = 2_000_000
"""Characters of a script at most."""
LONGEST_STATEMENT = 20_000
"""Characters of an event at most, without its code."""
NUMBER = r"(?:\d{1,9}(?:\.\d{1,9}\d*)?|\.\d{1,9}\d*)"
TIME = re.compile(
    rf"(?P<any>\*)|(?P<plus>\+)?\s*(?P<start>{NUMBER})"
    rf"(?:\s*~\s*(?P<plus_end>\+)?\s*(?P<end>{NUMBER}))?"
)
BLOCKING = re.compile(rf"\s*\.\.\.\s*(?P<end>{NUMBER})")
CALL = re.compile(r"(?P<name>[a-z_]\w*)\s*\(")
RESULT = re.compile(
    r"=\s*(?P<value>-?\d{1,18}|0x[0-9a-fA-F]{1,16}|\.\.\.)\s*"
    r"(?:(?P<error>E[A-Z0-9]+)\s*(?:\([^()]*\))?|\([^()]*\))?"
)
OPTION = re.compile(r"--?(?P<name>[A-Za-z]\w*)(?:\s*=\s*(?P<value>\S+))?")
PLACEHOLDER = "\0"
"""Stands for a command in back-quotes, or for code."""
OTHER_PACKETS = re.compile(r"[<>]\s*(?:\[[^]]*\]\s*)?(?P<kind>icmp|udp|ipv4|ipv6|gre|mpls)\b")


class LanguageError(AqmlabError):
    """A line that cannot be read."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")


class NotApplicableError(AqmlabError):
    """A line that asks for what no end point here can show."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


class When(Enum):
    """What the time of an event counts from."""

    START = "start"
    LAST = "last"
    ANY = "any"


@dataclass(frozen=True)
class Command:
    """What a shell is to do."""

    line: int
    text: str


@dataclass(frozen=True)
class Call:
    """A system call and what it returns."""

    name: str
    arguments: tuple[str, ...]
    result: int | None
    """Nothing: any result."""
    error: str | None = None
    until: int | None = None
    """A call that blocks: nanoseconds from the same moment as its time."""


@dataclass(frozen=True)
class Event:
    """Something at a time: a packet, a call, a command, or code with its assertions."""

    line: int
    text: str
    when: When
    start: int
    """Nanoseconds."""
    end: int
    """The same, or later: a range."""
    what: Packet | Call | Command | str


@dataclass(frozen=True)
class Source:
    """A file that was read."""

    options: dict[str, str] = field(default_factory=dict)
    option_lines: dict[str, int] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()
    """Before the first event."""
    events: tuple[Event, ...] = ()


@dataclass
class Statement:
    """A statement, which may take several lines, and what its placeholders stand for."""

    line: int
    text: str
    blocks: list[tuple[str, str, int]]
    """Kind, a back-quote or a percent sign, content and line."""
    depth: int
    """Brackets that are open at its end."""


def nanoseconds(text: str) -> int:
    """A time of a script, exactly, up to the nanosecond."""
    whole, _, part = text.partition(".")
    return int(whole or "0") * NANOSECONDS + int((part + "0" * 9)[:9])


class Scanner:
    """Splits a text into statements: it knows comments, strings, commands and code."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.line = 1
        self.statements: list[Statement] = []
        self.parts: list[str] = []
        self.blocks: list[tuple[str, str, int]] = []
        self.begun = 1

    def until(self, close: str, name: str) -> str:
        """What stands up to a closing mark, which is passed."""
        end = self.text.find(close, self.place)
        if end < 0:
            raise LanguageError(self.line, f"found {name} without an end; expected {close}")
        content = self.text[self.place : end]
        self.place = end + len(close)
        self.line += content.count("\n")
        return content

    def finish(self) -> None:
        """A line ends: it is a statement, or belongs to the one before."""
        text = "".join(self.parts).strip()
        if text:
            last = self.statements[-1] if self.statements else None
            if last is not None and not self.begins(last, text):
                last.text += " " + text
                last.blocks += self.blocks
                last.depth += depth(text)
                if len(last.text) > LONGEST_STATEMENT:
                    message = f"found {len(last.text)} characters; expected a time before"
                    raise LanguageError(last.line, message)
            else:
                self.statements.append(Statement(self.begun, text, self.blocks, depth(text)))
        self.parts, self.blocks = [], []
        self.begun = self.line

    def begins(self, last: Statement, text: str) -> bool:
        """Whether a line begins a statement: it has a time, and no bracket is open."""
        if last.depth > 0:
            return False
        return bool(TIME.match(text)) or text.startswith(("--", PLACEHOLDER)) or text[:1] == "-"

    def scan(self) -> list[Statement]:
        """All statements."""
        while self.place < len(self.text):
            two = self.text[self.place : self.place + 2]
            one = two[0]
            if two == "//":
                end = self.text.find("\n", self.place)
                self.place = len(self.text) if end < 0 else end
            elif two == "/*":
                self.place += 2
                self.until("*/", "a comment")
            elif one == "`" or two == "%{":
                begun = self.line
                self.place += len(one if one == "`" else two)
                close, name = ("`", "a command") if one == "`" else ("}%", "code")
                self.blocks.append((one, self.until(close, name), begun))
                self.parts.append(PLACEHOLDER)
            elif one == '"':
                self.place += 1
                self.parts.append(f'"{self.until(chr(34), "a string")}"')
            elif one == "\n":
                self.place += 1
                self.line += 1
                self.finish()
            elif one < " " and one not in "\t\r\f":
                raise LanguageError(self.line, f"found the byte {ord(one)}; expected text")
            else:
                self.parts.append(one)
                self.place += 1
        self.finish()
        return self.statements


def depth(text: str) -> int:
    """How many brackets are open."""
    return sum((letter in "([{") - (letter in ")]}") for letter in text)


def pieces(text: str) -> Iterator[str]:
    """What stands between the commas that no bracket holds."""
    start = level = 0
    quoted = False
    for place, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        if quoted:
            continue
        level += (letter in "([{") - (letter in ")]}")
        if letter == "," and level == 0:
            yield text[start:place].strip()
            start = place + 1
    if text[start:].strip() or start:
        yield text[start:].strip()


def closing(text: str, start: int) -> int | None:
    """Where the bracket closes that opens at a place."""
    level = 0
    for place in range(start, len(text)):
        level += (text[place] == "(") - (text[place] == ")")
        if level == 0:
            return place
    return None


def parse_call(line: int, text: str, until: int | None) -> Call:
    """A system call: ``NAME(ARGUMENTS) = RESULT [ERROR (note)]``."""
    head = CALL.match(text)
    if head is None:
        raise LanguageError(line, f"found {text[:60]!r}; expected a packet or a system call")
    end = closing(text, head.end() - 1)
    if end is None:
        raise LanguageError(line, f"found {head['name']} without an end; expected )")
    result = RESULT.fullmatch(text[end + 1 :].strip())
    if result is None:
        found = text[end + 1 :].strip()[:40]
        raise LanguageError(line, f"{head['name']}: found {found!r}; expected = RESULT")
    value = None if result["value"] == "..." else int(result["value"], 0)
    arguments = tuple(pieces(text[head.end() : end]))
    return Call(head["name"], arguments, value, result["error"], until)


def parse_event(statement: Statement) -> Event:
    """An event: a time and what happens."""
    line, text = statement.line, statement.text
    time = TIME.match(text)
    if time is None:
        raise LanguageError(line, f"found {text[:60]!r}; expected a time")
    rest = text[time.end() :]
    when = When.ANY if time["any"] else When.LAST if time["plus"] else When.START
    start = end = 0
    if when is not When.ANY:
        start = nanoseconds(time["start"])
        end = nanoseconds(time["end"]) if time["end"] else start
        if time["end"] and bool(time["plus"]) != bool(time["plus_end"]):
            raise LanguageError(line, f"found {time[0]}; expected + at both ends of a range")
        if end < start:
            raise LanguageError(line, f"found {time[0]}; expected a range that ends later")
        if end > LONGEST * NANOSECONDS:
            raise LanguageError(line, f"found {time[0]}; expected up to {LONGEST} seconds")
    until = None
    if blocking := BLOCKING.match(rest):
        until = nanoseconds(blocking["end"])
        rest = rest[blocking.end() :]
    if rest[:1].strip():
        raise LanguageError(line, f"found {text[:60]!r}; expected a time and a space")
    rest = rest.strip()
    what = happening(statement, rest, until)
    is_sent = isinstance(what, Packet) and what.outbound
    if (when is When.ANY or end > start) and not is_sent:
        raise LanguageError(line, f"found {time[0]}; only packets that are sent have a range or *")
    if until is not None and not isinstance(what, Call):
        raise LanguageError(line, "found ...; only system calls block")
    shown = rest if PLACEHOLDER not in rest else statement.blocks[0][1].strip()
    return Event(line, " ".join(shown.split()), when, start, end, what)


def happening(statement: Statement, text: str, until: int | None) -> Packet | Call | Command | str:
    """What happens at the time of an event."""
    line = statement.line
    if PLACEHOLDER in text:
        if text != PLACEHOLDER:
            raise LanguageError(line, "found words beside a command or code; expected a new line")
        kind, content, begun = statement.blocks[0]
        return Command(begun, content) if kind == "`" else content
    if not text:
        raise LanguageError(line, "found a time alone; expected what happens")
    if other := OTHER_PACKETS.match(text):
        raise NotApplicableError(line, f"{other['kind']} is not modelled: only TCP is")
    if text[0] in "<>":
        try:
            return parse_packet(text)
        except NotImplementedError as error:
            raise NotApplicableError(line, str(error)) from None
        except ValueError as error:
            raise LanguageError(line, str(error)) from None
    return parse_call(line, text, until)


def check_times(events: Sequence[Event]) -> None:
    """Absolute times do not go back."""
    last: Event | None = None
    for event in events:
        if event.when is When.START:
            if last is not None and event.start < last.start:
                found = f"{event.start / NANOSECONDS:g} behind {last.start / NANOSECONDS:g}"
                raise LanguageError(event.line, f"found time {found}; expected a later one")
            last = event
        else:
            last = None


def parse(text: str) -> Source:
    """Reads a script.

    Raises:
        LanguageError: A line cannot be read.
        NotApplicableError: A line asks for what is not modelled.
    """
    if len(text) > LARGEST:
        raise LanguageError(1, f"found {len(text)} characters; expected up to {LARGEST}")
    options: dict[str, str] = {}
    option_lines: dict[str, int] = {}
    commands: list[Command] = []
    events: list[Event] = []
    lacking: NotApplicableError | None = None
    statements = Scanner(text).scan()
    for place, statement in enumerate(statements):
        if statement.text == PLACEHOLDER and statement.blocks[0][0] == "`":
            # Behind the last event a command cleans up.
            if not events:
                commands.append(Command(statement.blocks[0][2], statement.blocks[0][1]))
            elif place + 1 < len(statements):
                raise LanguageError(statement.line, "found a command without a time")
        elif statement.text.startswith("-") and not events:
            for option in OPTION.finditer(statement.text):
                options[option["name"]] = option["value"] or ""
                option_lines[option["name"]] = statement.line
            if OPTION.sub("", statement.text).strip():
                found = statement.text[:60]
                raise LanguageError(statement.line, f"found {found!r}; expected --NAME=VALUE")
        else:
            try:
                events.append(parse_event(statement))
            except NotApplicableError as error:
                # The rest is read all the same: a file that cannot be read is no script.
                lacking = lacking or error
    if lacking:
        raise lacking
    if not events:
        raise LanguageError(1, "found no event; expected a time and what happens")
    check_times(events)
    return Source(options, option_lines, tuple(commands), tuple(events))
