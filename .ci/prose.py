"""Phrases that are hard to read, in pages, docstrings, comments and messages: ``make prose``.

A file that has one is a failure.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PHRASES = {
    "but for": (r"\bbut for\b", "except"),
    "told": (r"\b(?:is|are|was|were|be|been|being) told\b(?! apart)", "reports, prints, warns"),
    "tells": (r"\btells? (?:of|that|whether|nothing|how|what)\b", "says, reports, shows"),
    "as it is": (r"\bas (?:it is|they are)\b(?=[,.;:)]|$)", "unchanged, by itself"),
    "ones": (r"\b(?:other|another|same) ones?\b", "name the thing again"),
    "whoever": (r"\bwhoever\b", "every sender, a packet that, the user"),
    "fronted of": (
        r"(?:^|[.!?|] |- )Of (?:the|a|an|its|these|those|all|what|our|[A-Z]\w+)\b",
        "subject first",
    ),
    "so it does": (
        r"\bso (?:it|they) (?:does|do|is|are|may|has|have)\b(?=[,.;:]|$)",
        "repeat the verb",
    ),
    "history": (
        r"\b(?:before this|the version before|until now|by now|as before)\b",
        "the present state",
    ),
    "missed": (r"\bis missed\b", "fails"),
    "the print": (r"\bthe print\b", "the paper"),
}
"""Names, patterns and better words."""
BEHIND = (
    r"\bbehind (?:(?:the|a|an|its|their|every|each) )?(?:handshake|SYN|hello|ADU|pause|first|last|"
    r"arrival|answer|cut|time-out|dot|loss|mark|packet)\b|\bbehind (?:it|them)\b"
)
TAKES_FOR = (
    r"\btak(?:e|es|en|ing) (?:the|a|an|it|its|them|this|that) [\w ]{0,30}?\bfor (?:a|an|the) "
    r"(?:loss|queue|policer|mark|drop|fault)\b|\btak(?:e|es|en) (?:a |the )?"
    r"(?:loss|losses|mark|marks|delay) for\b"
)
READ = {
    "that of": (r"\b(?:is|are|was|has|have|than|with|to|from|in|by) that of\b", "the noun again"),
    "theirs": (r"\b(?:of|is|are|has|have) theirs\b", "the noun again"),
    "behind, of time": (BEHIND, "after"),
    "whose": (r"(?<!people )\bwhose\b", "two sentences, `with a`"),
    "goes with": (
        r"\bgo(?:es)? with (?:it|them|a row|one over)\b",
        "is proportional to, belongs to",
    ),
    "takes for": (TAKES_FOR, "mistakes for, treats as"),
    "decision falls": (r"\bdecisions? falls?\b", "is made"),
    "leaves alone": (
        r"\blea(?:ves?|ving) [\w` ]{1,25} alone\b|\b(?:is|are) left alone\b",
        "does not change",
    ),
    "what has": (
        r"(?-i:(?:^|[.:;] )What) (?:[\w`]+ ){1,6}(?:has|have|is|are)\b(?![^.|\n]*\?)",
        "a noun",
    ),
    "of late": (r"\bof late\b", "recent"),
    "names": (
        r"\b(?:message|line|page|error|sentence|report|table|answer|row|it|which|that) names\b",
        "lists, states, reports",
    ),
}
"""The same for what users read: pages, and what `list`, `explain` and `--help` print.

Declarations in Rust and the help of commands are in the generated parts of the pages.
"""
BETTER = {"the same": "what it does, in its own words"} | {
    phrase: better for phrase, (_, better) in (PHRASES | READ).items()
}
SUFFIXES = (".md", ".py", ".rs", ".ts", ".toml")
LEFT_OUT = re.compile(
    r"^(CHANGELOG\.md|\.ci/prose|docs/fidelity|records/|papers/.*/claims|lab/.*\.toml|fuzz/|crates/traffic/data)"
)
SAME = re.compile(r'"""The same(?: [^"\n]{0,60})?\.?"""')
PAGES = re.compile(r"^(docs/.*|crates/xtask/.*|[^/]*)\.md$")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def files() -> list[str]:
    """What git knows of, as far as people read it."""
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [name for name in names if name.endswith(SUFFIXES) and not LEFT_OUT.match(name)]


def found(name: str) -> list[tuple[int, str, str]]:
    """Line, phrase and text of each place in a file."""
    text = (ROOT / name).read_text()
    if name.endswith(".md"):
        text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    places = []
    phrases = PHRASES | READ if PAGES.match(name) else PHRASES
    for phrase, (pattern, _) in phrases.items():
        flags = re.MULTILINE if phrase == "fronted of" else re.MULTILINE | re.IGNORECASE
        for match in re.finditer(pattern, text, flags):
            line = text.count("\n", 0, match.start()) + 1
            places.append((line, phrase, text.splitlines()[line - 1].strip()))
    for match in SAME.finditer(text) if name.startswith("python/") else ():
        line = text.count("\n", 0, match.start()) + 1
        places.append((line, "the same", match[0]))
    return sorted(places)


def main() -> int:
    """Prints every place; 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="files to read; default: all that git knows")
    places = [
        (name, *place) for name in parser.parse_args().files or files() for place in found(name)
    ]
    for name, line, phrase, text in places:
        print(f"{name}:{line}: {phrase}; better: {BETTER[phrase]}: {text[:100]}")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
