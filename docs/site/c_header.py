"""The reference of the C interface, from the comments of its header."""

from __future__ import annotations

import re
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "python/aqmlab/plugins/aqmlab.h"
"""What C programs include."""

_ITEM = re.compile(
    r"/\*(?P<says>(?:(?!\*/).)*)\*/\s*"
    r"(?:#define (?P<constant>\w+) (?P<value>\d+)$"
    r"|typedef struct (?P<record>\w+) \{\n(?P<fields>.*?)^\} \w+;$"
    r"|(?P<macros>(?:#define \w+\([^\n]*\n(?:  [^\n]*\n)*)+)"
    r"|(?P<code>typedef [^;{]+;$|static inline [^{]+(?=\{)))",
    re.MULTILINE | re.DOTALL,
)
_FIELD = re.compile(r"/\*((?:(?!\*/).)*)\*/\s*([^;]+);", re.DOTALL)


def reference() -> str:
    """Constants, records and functions, as Markdown below a heading of the second level."""
    items = list(_ITEM.finditer(HEADER.read_text()))
    lines = ["## Constants", "", "| name | value | meaning |", "| --- | ---: | --- |"]
    lines += [
        f"| `{item['constant']}` | {item['value']} | {_sentence(item['says'])} |"
        for item in items
        if item["constant"]
    ]
    lines += ["", "## Records", ""]
    for item in items:
        if item["record"]:
            lines += [f"### {item['record']}", "", _sentence(item["says"]), ""]
            lines += ["| field | meaning |", "| --- | --- |"]
            lines += [
                f"| `{' '.join(code.split())}` | {_sentence(says)} |"
                for says, code in _FIELD.findall(item["fields"])
            ]
            lines.append("")
    lines += ["## Functions and macros", ""]
    for item in items:
        if code := item["code"] or item["macros"]:
            lines += [_sentence(item["says"]), "", "```c", code.strip(), "```", ""]
    return "\n".join(lines)


def _sentence(comment: str) -> str:
    """A comment in one line."""
    return " ".join(comment.split()).replace("|", r"\|")
