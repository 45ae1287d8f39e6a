"""Check the structure of the Rust crates: circles of files, layers of crates, files of tests.

Run from anywhere: `.venv/bin/python .ci/structure.py`, or `make structure`. The exit status is 1
where a limit is broken.

1. **Circles.** In one crate, files may use one another in circles of two at most (a module and its
   only helper). A file uses another where its formatted code, outside `#[cfg(test)]`, has a path
   to it: through `crate::`, `super::`, or the name of a module below it. A name that a module
   re-exports leads on to the file that it comes from. Declaring a module is no use.
2. **Layers.** A crate depends on crates of lower layers only (`LAYERS`); crates of one layer do not
   depend on each other. Some crates must do without some libraries (`WITHOUT`). Development
   dependencies are free.
3. **Tests.** A crate with `tests/main.rs` has its integration tests in one binary, which takes in
   the files that it or a target of the manifest names. Each of the others would never run.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Name = tuple[str, ...]

ROOT = Path(__file__).resolve().parent.parent

# From the ground up. A crate that is missing is an error: it needs a layer.
LAYERS = (
    {"net"},
    {"declare-macros"},
    {"declare"},
    {"plugin"},
    {"aqm", "tcp", "traffic"},
    {"quic"},
    {"stacks"},
    {"scenario", "capture"},
    {"record"},
    {"link"},
    {"parquet"},
    {"sim", "live", "embed"},
    {"python", "wasm", "fuzz"},
    {"xtask", "benches"},
)
# A browser has neither files nor room for Arrow, so the simulator gets on without them.
WITHOUT = {"sim": {"parquet", "arrow", "aqmlab-parquet"}}
LARGEST_CIRCLE = 2
PREFIX = "aqmlab-"

# Comments, strings without paths, and what stands behind #[cfg(test)] in formatted code.
IGNORED = re.compile(
    r"""//[^\n]* | (?<!')"(?:[^"\\]|\\[\s\S])*" | ^(?P<indent>[ ]*)\#\[cfg\((?:all\()?test\b.*\n
        (?:(?P=indent)\#.*\n)* (?:(?P=indent).*[;,]\n | (?:.*\n)*?(?P=indent)\}\n)""",
    re.VERBOSE | re.MULTILINE,
)
IMPORT = re.compile(r"\buse ([^;<]+);")
PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")
ITEM = re.compile(r"\b(?:fn|struct|enum|trait|type|const|static|macro_rules!) (?!fn\b)(\w+)")


def branches(tree: str) -> Iterator[tuple[Name, str]]:
    """Every path of what follows `use`, with the name that it gets; `*` for all names."""
    head, brace, rest = tree.strip().partition("{")
    before = tuple(filter(None, head.split("::")))
    if not brace:
        path, _, alias = head.partition(" as ")
        names = tuple(name for name in path.split("::") if name)
        names = names[:-1] if len(names) > 1 and names[-1] == "self" else names
        yield names, alias.strip() or names[-1]
        return
    depth, start = 0, 0
    inner = rest.rstrip()[:-1] + ","
    for place, letter in enumerate(inner):
        depth += (letter in "{") - (letter in "}")
        if letter == "," and depth == 0:
            if inner[start:place].strip():
                yield from (
                    (
                        before + names if names != ("self",) else before,
                        name if name != "self" else before[-1],
                    )
                    for names, name in branches(inner[start:place])
                )
            start = place + 1


class Crate:
    """The files of a crate, and how they name one another."""

    def __init__(self, src: Path) -> None:
        files = {file.relative_to(src).with_suffix("").parts: file for file in src.rglob("*.rs")}
        files = {name[:-1] if name[-1] in {"mod", "lib"} else name: files[name] for name in files}
        files.setdefault((), src / "main.rs")
        texts: dict[Name, str] = {}
        self.known: dict[Name, dict[str, Name]] = {}
        self.globs: dict[Name, list[Name]] = {}
        self.paths: dict[Name, set[Name]] = {}
        for module in sorted(files, key=len):
            # What only tests declare is no part of the crate.
            if module and f"mod {module[-1]};" not in texts.get(module[:-1], ""):
                continue
            text = texts[module] = IGNORED.sub(self.kept, files[module].read_text() + "\n")
            imports = [branch for use in IMPORT.findall(text) for branch in branches(use)]
            self.known[module] = {name: path for path, name in imports if name != "*"}
            self.globs[module] = [path[:-1] for path, name in imports if name == "*"]
            found = PATH.findall(IMPORT.sub("", text))
            self.paths[module] = {path for path, _ in imports} | {
                tuple(p.split("::")) for p in found
            }
        self.items = {module: set(ITEM.findall(text)) for module, text in texts.items()}

    @staticmethod
    def kept(found: re.Match[str]) -> str:
        """A string that names a path, as attributes of serde do, is code."""
        return found[0][1:-1] if found[0].startswith('"crate::') else " "

    def follow(self, module: Name, path: Name, left: int = 8) -> Name | None:
        """The file of what a path names; none outside of the crate."""
        first, *rest = path
        if first == "crate":
            module = ()
        elif first == "super":
            above = rest if rest[0] == "super" else ("self", *rest)
            return self.follow(module[:-1], tuple(above), left)
        elif (*module, first) in self.items:
            module = (*module, first)
        elif first != "self":
            known = self.known[module].get(first)
            return self.follow(module, (*known, *rest), left - 1) if known and left else None
        while rest and (*module, rest[0]) in self.items:
            module = (*module, rest.pop(0))
        if not rest or rest[0] == "*" or rest[0] in self.items[module]:
            return module
        known = self.known[module].get(rest[0])
        ways = [known] if known else [(*glob, rest[0]) for glob in self.globs[module]]
        targets = [self.follow(module, way, left - 1) for way in ways if left]
        return next((target for target in targets if target is not None), None)

    def uses(self) -> dict[Name, dict[Name, set[str]]]:
        """For each file the files that it uses, with the paths by which it names them."""
        uses: dict[Name, dict[Name, set[str]]] = {module: {} for module in self.items}
        for module, paths in self.paths.items():
            for path in paths:
                target = self.follow(module, path)
                if target is not None and target != module:
                    uses[module].setdefault(target, set()).add("::".join(path))
        return uses


def circle_problems(crates: Path) -> Iterator[str]:
    """A text for each circle that is too large, with the uses that make it."""
    for src in sorted(crates.glob("*/src")):
        uses = Crate(src).uses()
        reached = {module: set(targets) for module, targets in uses.items()}
        for middle in uses:
            for targets in reached.values():
                if middle in targets:
                    targets.update(reached[middle])
        circles = {
            frozenset(b for b in reached[a] if a in reached[b]) for a in uses if a in reached[a]
        }
        for circle in sorted(map(sorted, circles)):
            if len(circle) > LARGEST_CIRCLE:
                yield f"{src.parent.name}: {len(circle)} files use one another in a circle:"
                for module in circle:
                    for target in circle:
                        names = ["::".join(it) or "lib" for it in (module, target)]
                        paths = ", ".join(sorted(uses[module].get(target, ())))
                        if paths:
                            yield "    {} -> {}: {}".format(*names, paths)


def layer_problems(root: Path) -> Iterator[str]:
    """A text for each dependency that points up or sideways, or that a crate must do without."""
    rank = {crate: place for place, layer in enumerate(LAYERS) for crate in layer}
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    for package in json.loads(answer)["packages"]:
        crate = package["name"].removeprefix(PREFIX)
        if crate not in rank:
            yield f"{crate}: its layer is not known; name it in LAYERS of .ci/structure.py"
            continue
        needs = {need["name"] for need in package["dependencies"] if need["kind"] != "dev"}
        for need in sorted(needs):
            if need in WITHOUT.get(crate, set()):
                yield f"{crate}: must not depend on {need}"
            other = need.removeprefix(PREFIX)
            if need.startswith(PREFIX) and other in rank and rank[other] >= rank[crate]:
                where = "in the same layer as" if rank[other] == rank[crate] else "above"
                yield f"{crate}: depends on {other}, which is {where} {crate}"


def test_problems(crates: Path) -> Iterator[str]:
    """A text for each file of integration tests that no target takes in."""
    for main in sorted(crates.glob("*/tests/main.rs")):
        folder = main.parent
        manifest = (folder.parent / "Cargo.toml").read_text()
        named = {
            *re.findall(r"^mod (\w+);", main.read_text(), re.MULTILINE),
            *re.findall(r'^\[\[test\]\]\nname = "(\w+)"', manifest, re.MULTILINE),
        }
        files = {file.stem for file in folder.glob("*.rs")} - {"main"}
        folders = {file.parent.name for file in folder.glob("*/mod.rs")}
        for name in sorted((files | folders) - named):
            yield f"{folder.parent.name}: its tests in {name} never run; name it in tests/main.rs"


def main() -> int:
    """Print what breaks a limit; the exit status says whether anything does."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout; default: this one")
    root = parser.parse_args().root
    crates = root / "crates"
    problems = [*circle_problems(crates), *layer_problems(root), *test_problems(crates)]
    for problem in problems:
        print(problem)
    print("structure: problems, see above" if problems else "structure: no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
