"""Phrases that are hard to read, in pages, docstrings, comments and messages: ``make prose``.

`.ci/prose.tsv` lists how often each file may still have each phrase. The list only shrinks: a file
with more is a failure, and so is a list that allows more than there is (``--write`` renews it).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = ROOT / ".ci/prose.tsv"
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
    r"^(CHANGELOG\.md|\.ci/prose|docs/fidelity|records/|papers/.*/claims|validation/|fuzz/|crates/traffic/data)"
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
    """Compares what is there with what may be; 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the list of what is allowed")
    parser.add_argument(
        "--show", metavar="FILE", nargs="*", help="print every place in these files"
    )
    wanted = parser.parse_args()
    if wanted.show is not None:
        for name in wanted.show or files():
            for line, phrase, text in found(name):
                print(f"{name}:{line}: {phrase} (better: {BETTER[phrase]}): {text[:100]}")
        return 0
    counts = {name: Counter(phrase for _, phrase, _ in found(name)) for name in files()}
    rows = {(name, phrase): n for name, each in counts.items() for phrase, n in each.items()}
    if wanted.write:
        lines = [f"{name}\t{phrase}\t{n}" for (name, phrase), n in sorted(rows.items())]
        ALLOWED.write_text("\n".join(["file\tphrase\tmost", *lines]) + "\n")
        return 0
    listed = [line.split("\t") for line in ALLOWED.read_text().splitlines()[1:]]
    allowed = {(name, phrase): int(n) for name, phrase, n in listed}
    status = 0
    for key, n in sorted(rows.items()):
        if n > allowed.get(key, 0):
            status = 1
            for line, phrase, text in found(key[0]):
                if phrase == key[1]:
                    print(f"{key[0]}:{line}: {phrase}; better: {BETTER[phrase]}: {text[:100]}")
    fewer = [key for key, most in allowed.items() if rows.get(key, 0) < most]
    if fewer:
        status = 1
        print(f"prose: {len(fewer)} rows of {ALLOWED.name} allow too much: make prose ARGS=--write")
    if not status:
        print(
            f"prose: no new phrases; {sum(rows.values())} old ones are left in {len(allowed)} rows"
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
