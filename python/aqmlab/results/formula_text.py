"""The text of a metric of one's own as a tree: ``quantile(packets.wait_s, 0.999) in ms``.

The language looks like Python's expressions and has only what computes. Nothing here knows which
tables, columns and functions there are: :mod:`aqmlab.results.formula` looks them up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from aqmlab.errors import AqmlabError

__all__ = [
    "LONGEST",
    "SECTIONS",
    "Both",
    "CallNode",
    "Compare",
    "Name",
    "Negative",
    "Node",
    "Not",
    "NumberNode",
    "Operation",
    "TextNode",
    "Texts",
    "Truth",
    "parse",
    "written",
]


SECTIONS = ("links", "responses", "flows", "quality", "breakdown")
"""What keys of ``summary.json`` begin with."""
LONGEST = 500
"""Characters of a text, at most."""
_MAX_SHOWN = 80
"""Most characters of a part that a message quotes."""
_DEEPEST = 40
"""Parts inside parts, at most."""
_KEY_PARTS = 3
"""A name of at least so many parts that begins with a section is a key."""
_UNIT = re.compile(r"(?P<text>.*\S)\s+in\s+(?P<unit>[A-Za-zµ%][\w/%]*|%)\s*", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<text>"[^"\n]*"|'[^'\n]*')
    | (?P<name>[^\W\d]\w*(?:\.[\w-]+)*)
    | (?P<sign><=|>=|==|!=|\*\*|//|[-+*/<>(),\[\]=])
    | (?P<end>$)
    )""",
    re.VERBOSE,
)
_WORDS = ("and", "or", "not", "in")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class NumberNode:
    """A number."""

    value: float


@dataclass(frozen=True)
class TextNode:
    """A text in quotes."""

    value: str


@dataclass(frozen=True)
class Truth:
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True)
class Name:
    """A name: of a column, or of a number of the summary."""

    text: str


@dataclass(frozen=True)
class Texts:
    """A list behind ``in``."""

    values: tuple[NumberNode | TextNode | Truth, ...]


@dataclass(frozen=True)
class CallNode:
    """A function and what it is given."""

    name: str
    given: tuple[Node, ...]
    named: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Operation:
    """``+``, ``-``, ``*`` or ``/`` between two numbers or columns."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Negative:
    """The opposite of a number or of a column."""

    of: Node


@dataclass(frozen=True)
class Compare:
    """``<``, ``<=``, ``>``, ``>=``, ``==``, ``!=``, or ``in`` and ``not in`` with a list."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Both:
    """``and``, or ``or``, of two tests."""

    word: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Not:
    """What a test refuses."""

    of: Node


Node: TypeAlias = (
    NumberNode
    | TextNode
    | Truth
    | Name
    | Texts
    | CallNode
    | Operation
    | Negative
    | Compare
    | Both
    | Not
)


def parse(text: str) -> tuple[Node, str]:
    """The tree of a text, and the unit behind its ``in``; empty: it names none."""
    if len(text) > LONGEST:
        raise AqmlabError(f"is longer than {LONGEST} characters")
    if not text.strip():
        raise AqmlabError("is empty; expected a metric such as quantile(packets.wait_s, 0.99)")
    unit = ""
    if (match := _UNIT.fullmatch(text)) is not None and not match["text"].endswith((",", "(")):
        text, unit = match["text"], match["unit"]
    return _Parser(_tokens(text)).whole(), unit


def written(node: Node) -> str:
    """A part as a message quotes it."""
    text = _written(node)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _written(node: Node) -> str:
    """A part as text."""
    found = "(...)"
    match node:
        case NumberNode(value):
            found = f"{value:.12g}"
        case TextNode(text):
            found = f'"{text}"'
        case Truth(truth):
            found = str(truth).lower()
        case Name(text):
            found = text
        case Texts(values):
            found = f"({', '.join(map(_written, values))})"
        case CallNode(name):
            found = f"{name}(...)"
        case Negative(of):
            found = f"-{_written(of)}"
        case Not(of):
            found = f"not {_written(of)}"
        case Operation(sign, left, right) | Compare(sign, left, right) | Both(sign, left, right):
            found = f"{_written(left)} {sign} {_written(right)}"
    return found


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


_END = _Token("end", "")


def _tokens(text: str) -> list[_Token]:
    """The words and signs of a text."""
    found: list[_Token] = []
    place = 0
    while True:
        match = _TOKEN.match(text, place)
        if match is None:
            rest = text[place:].strip()[:20]
            raise AqmlabError(f'found "{rest}"; expected numbers, names, texts in quotes, + - * /')
        kind, place = str(match.lastgroup), match.end()
        token = match[kind]
        if kind == "end":
            return [*found, _END]
        if kind == "name":
            token, place = _name(token, place)
        found.append(_Token("sign" if token in _WORDS else kind, token))


def _name(token: str, end: int) -> tuple[str, int]:
    """A name without what a minus sign takes from it: only keys of summaries have hyphens."""
    first, _, rest = token.partition(".")
    if "-" not in rest or (first in SECTIONS and token.count(".") + 1 >= _KEY_PARTS):
        return token, end
    cut = token.index("-")
    return token[:cut], end - (len(token) - cut)


class _Parser:
    """Reads words and signs from the left."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    def whole(self) -> Node:
        """Everything as one part."""
        found = self._either()
        if (token := self._next) is not _END:
            self._unexpected(token)
        return found

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    def _is(self, *signs: str) -> bool:
        """Whether one of some signs comes next."""
        return self._next.kind == "sign" and self._next.text in signs

    def _take(self) -> _Token:
        """The next word or sign, which is behind it then."""
        token = self._next
        self._place += token is not _END
        return token

    def _unexpected(self, token: _Token) -> None:
        """Raises an error about a word or sign that cannot stand there."""
        if token is _END:
            raise AqmlabError("ends too early; is a bracket open?")
        if token.text in ("**", "//"):
            raise AqmlabError(f'found "{token.text}"; possible are + - * /')
        if token.text == "=":
            raise AqmlabError('found "="; a test of equality is ==')
        if token.text == "[":
            raise AqmlabError('found "["; a list stands behind in only')
        raise AqmlabError(f'found "{token.text[:_MAX_SHOWN]}" where something else belongs')

    def _expect(self, sign: str) -> None:
        """Takes a sign that has to come."""
        if not self._is(sign):
            token = self._next
            if token is _END or token.text in ("**", "//", "="):
                self._unexpected(token)
            raise AqmlabError(f'found "{token.text[:_MAX_SHOWN]}"; expected "{sign}"')
        self._take()

    def _either(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise AqmlabError("is nested too deeply")
        found = self._all()
        while self._is("or"):
            self._take()
            found = Both("or", found, self._all())
        self._depth -= 1
        return found

    def _all(self) -> Node:
        found = self._opposite()
        while self._is("and"):
            self._take()
            found = Both("and", found, self._opposite())
        return found

    def _opposite(self) -> Node:
        count = 0
        while self._is("not"):
            self._take()
            count += 1
        found = self._compared()
        for _ in range(count % 2 or (2 if count else 0)):
            found = Not(found)
        return found

    def _compared(self) -> Node:
        left = self._sum()
        found: Node | None = None
        while self._is(*_COMPARISONS, "in", "not"):
            sign = self._take().text
            if sign == "not":
                self._expect("in")
                sign = "not in"
            right: Node = self._list() if sign.endswith("in") else self._sum()
            one = Compare(sign, left, right)
            found = one if found is None else Both("and", found, one)
            left = right
        return left if found is None else found

    def _list(self) -> Texts:
        """What stands behind ``in``: one value in quotes, or several in brackets."""
        if not self._is("(", "["):
            return Texts((self._constant(),))
        close = {"(": ")", "[": "]"}[self._take().text]
        values = [self._constant()]
        while self._is(","):
            self._take()
            if self._is(close):
                break
            values.append(self._constant())
        self._expect(close)
        return Texts(tuple(values))

    def _constant(self) -> NumberNode | TextNode | Truth:
        """A value of a list."""
        sign = -1.0 if self._is("-") else 1.0
        if sign < 0:
            self._take()
        found = self._atom()
        if isinstance(found, NumberNode):
            return NumberNode(sign * found.value)
        if sign < 0 or not isinstance(found, TextNode | Truth):
            raise AqmlabError(
                f'found {written(found)} in a list; expected values such as ("early", "overflow")'
            )
        return found

    def _sum(self) -> Node:
        found = self._product()
        while self._is("+", "-"):
            sign = self._take().text
            found = Operation(sign, found, self._product())
        return found

    def _product(self) -> Node:
        found = self._signed()
        while self._is("*", "/"):
            sign = self._take().text
            found = Operation(sign, found, self._signed())
        return found

    def _signed(self) -> Node:
        negative = False
        while self._is("-", "+"):
            negative ^= self._take().text == "-"
        found = self._atom()
        if not negative:
            return found
        return NumberNode(-found.value) if isinstance(found, NumberNode) else Negative(found)

    def _atom(self) -> Node:
        token = self._take()
        if token.kind == "number":
            value = float(token.text)
            if not math.isfinite(value):
                raise AqmlabError(f"found {token.text[:_MAX_SHOWN]}, which is not finite")
            return NumberNode(value)
        if token.kind == "text":
            return TextNode(token.text[1:-1])
        if token.kind == "name":
            if self._is("("):
                return self._call(token.text)
            if token.text in ("true", "false", "True", "False"):
                return Truth(token.text.lower() == "true")
            return Name(token.text)
        if token.text == "(":
            found = self._either()
            self._expect(")")
            return found
        self._unexpected(token)
        raise AssertionError("an error was raised")

    def _call(self, name: str) -> CallNode:
        """What a function is given."""
        self._take()
        given: list[Node] = []
        named: list[tuple[str, Node]] = []
        while not self._is(")"):
            behind = self._tokens[min(self._place + 1, len(self._tokens) - 1)]
            if self._next.kind == "name" and behind.text == "=" and behind.kind == "sign":
                word = self._take().text
                self._take()
                named.append((word, self._either()))
            elif named:
                raise AqmlabError(f"{name}: found a value behind {named[-1][0]}=; it comes last")
            else:
                given.append(self._either())
            if not self._is(","):
                break
            self._take()
        self._expect(")")
        return CallNode(name, tuple(given), tuple(named))
