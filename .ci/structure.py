"""Check the structure of the Rust crates: circles of files, and the layers of crates.

Run from anywhere: `.venv/bin/python .ci/structure.py`, or `make structure`. `--list CRATE` prints
every use between the files of a crate. The exit status is 1 where a limit is broken.

1. **Circles.** In one crate, files may use one another in circles of two at most (a module and
   its only helper). A file uses another where its code, outside `#[cfg(test)]`, names something
   that is defined there. Names are followed through `use`, `pub use` and globs to the file that
   defines them, so a re-export is no use of the file that re-exports. Declaring a module
   (`mod x;`) is no use either. Methods are not seen: calling one on a value whose type nobody
   names leaves no trace in the text.
2. **Layers.** A crate depends on crates of lower layers only (`LAYERS`); crates of one layer do
   not depend on each other. Some crates must do without some libraries (`WITHOUT`). Development
   dependencies are free.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent

# From the ground up. A crate that is missing is an error: its author says where it belongs.
LAYERS = (
    {"net"},
    {"declare-macros"},
    {"declare"},
    {"plugin"},
    {"aqm", "tcp", "traffic"},
    {"scenario", "capture"},
    {"record"},
    {"link"},
    {"parquet"},
    {"sim", "live"},
    {"python", "wasm", "fuzz"},
    {"xtask"},
)
# A browser has neither files nor room for Arrow, so the simulator gets on without them.
WITHOUT = {"sim": {"parquet", "arrow", "aqmlab-parquet"}}
LARGEST_CIRCLE = 2

PREFIX = "aqmlab-"


# --- Rust source, as far as names need it ---------------------------------------------------------

_SKIPPED = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>b?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:[^"\\]|\\.)*")
  | (?P<char>b?'(?:[^'\\]|\\[^u]|\\x..|\\u\{[^}]*\})')
    """,
    re.VERBOSE | re.DOTALL,
)
_TOKEN = re.compile(r"::|=>|'?(?:r\#)?[A-Za-z_]\w*|\d[\w.]*|[^\s\w]")
_NAME = re.compile(r"(?:r#)?[A-Za-z_]\w*$")
_ITEMS = {"fn", "struct", "enum", "trait", "type", "const", "static", "union"}
_STARTS = {"crate", "self", "super"}
_OPEN, _CLOSE = set("([{"), set(")]}")


def tokens_of(text: str) -> list[str]:
    """The tokens of Rust source, without comments, and without strings that name no path."""

    def keep(found: re.Match[str]) -> str:
        string = found["string"] or ""
        return f" {string.strip('rb#')[1:-1]} " if "crate::" in string else " "

    return _TOKEN.findall(_SKIPPED.sub(keep, text))


@dataclass
class Module:
    """A module, in a file of its own or in the one of the module around it."""

    path: tuple[str, ...]
    file: Path
    parent: Module | None
    children: dict[str, Module] = field(default_factory=dict)
    imports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    globs: list[tuple[str, ...]] = field(default_factory=list)
    items: set[str] = field(default_factory=set)
    uses: set[tuple[str, ...]] = field(default_factory=set)

    def everything(self) -> Iterator[Module]:
        """This module and all below it."""
        yield self
        for child in self.children.values():
            yield from child.everything()


class Reader:
    """Reads the file of a module, and those of the modules that it declares."""

    def __init__(self, module: Module, tokens: list[str], root: Module) -> None:
        self.module, self.tokens, self.root, self.at = module, tokens, root, 0

    @classmethod
    def crate(cls, src: Path) -> Module:
        """The modules of the crate whose sources are in `src`."""
        start = src / "lib.rs" if (src / "lib.rs").exists() else src / "main.rs"
        root = Module((), start, None)
        cls(root, tokens_of(start.read_text()), root).read()
        return root

    def peek(self, ahead: int = 0) -> str:
        """The token at hand, or one further on; empty at the end."""
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def read(self) -> None:
        """All items of the file, or of the inline module up to its closing brace."""
        depth = 0
        while self.at < len(self.tokens):
            token = self.peek()
            if token == "#" and self.peek(1) == "[":
                self.attribute()
            elif token == "use" and self.peek(1) != "<":
                self.at += 1
                self.use_tree(())
            elif token == "mod" and self.peek(2) in {";", "{"}:
                self.declared()
            elif token == "macro_rules" and self.peek(1) == "!":
                # Exported macros stand at the root of the crate.
                self.module.items.add(self.peek(2))
                self.root.imports.setdefault(
                    self.peek(2), ("crate", *self.module.path, self.peek(2))
                )
                self.at += 3
            elif token in _ITEMS and depth == 0 and _NAME.match(self.peek(1)):
                self.module.items.add(self.peek(1))
                self.at += 1
            elif token in _OPEN or token in _CLOSE:
                depth += 1 if token in _OPEN else -1
                if depth < 0:
                    return
                self.at += 1
            elif _NAME.match(token):
                self.named_path()
            else:
                self.at += 1

    def attribute(self) -> None:
        """An attribute; with `cfg(test)`, what it stands on is skipped."""
        end = self.closing(self.at + 1)
        inside = self.tokens[self.at + 2 : end]
        if inside[:3] in (["cfg", "(", "test"], ["cfg", "(", "all"]) and "test" in inside:
            self.at = end + 1
            self.skip_item()
        else:
            self.at += 1  # paths in attributes are uses

    def closing(self, start: int) -> int:
        """Where the bracket at `start` closes."""
        depth = 0
        for place in range(start, len(self.tokens)):
            depth += (self.tokens[place] in _OPEN) - (self.tokens[place] in _CLOSE)
            if depth == 0:
                return place
        return len(self.tokens)

    def skip_item(self) -> None:
        """One item, field, arm or statement, with the rest of its attributes."""
        while self.peek() == "#":
            self.at = self.closing(self.at + 1) + 1
        if self.peek() == "pub":
            self.at = self.closing(self.at + 1) + 1 if self.peek(1) == "(" else self.at + 1
        first = self.peek()
        to_semicolon = first in {"use", "static", "type", "let", "extern"} or (
            first == "const" and self.peek(1) not in {"fn", "unsafe"}
        )
        is_item = first in _ITEMS | {"mod", "impl", "unsafe", "async", "macro_rules"}
        while self.at < len(self.tokens):
            token = self.peek()
            if token in _CLOSE:
                return
            if token in _OPEN:
                self.at = self.closing(self.at) + 1
                if token == "{" and not to_semicolon:
                    return
                continue
            self.at += 1
            if token == ";" or (token == "," and not is_item):
                return

    def declared(self) -> None:
        """`mod name;` or `mod name { ... }`."""
        name, opens = self.peek(1), self.peek(2) == "{"
        path = (*self.module.path, name)
        self.at += 3
        if opens:
            child = Module(path, self.module.file, self.module)
            end = self.closing(self.at - 1)
            Reader(child, self.tokens[self.at : end], self.root).read()
            self.at = end + 1
        else:
            src = self.root.file.parent
            file = src.joinpath(*path).with_suffix(".rs")
            file = file if file.exists() else src.joinpath(*path, "mod.rs")
            child = Module(path, file, self.module)
            # One with a path of its own belongs to another crate's tests: it names nothing here.
            if file.exists():
                Reader(child, tokens_of(file.read_text()), self.root).read()
        self.module.children[name] = child

    def use_tree(self, prefix: tuple[str, ...]) -> None:
        """What follows `use`, up to its semicolon, or to the comma or brace that ends a branch."""
        path = prefix
        while self.at < len(self.tokens):
            token = self.peek()
            self.at += 1
            if token == "{":
                while self.peek() not in {"}", ""}:
                    self.use_tree(path)
                    if self.peek() == ",":
                        self.at += 1
                self.at += 1
                return
            if token == "*":
                self.module.globs.append(path)
                return
            if _NAME.match(token):
                if token != "self" or not path:
                    path = (*path, token)
                if self.peek() == "as":
                    self.imported(self.peek(1), path)
                    self.at += 2
                    return
                if self.peek() != "::":
                    self.imported(path[-1], path)
                    return
            elif token == ";":
                return

    def imported(self, name: str, path: tuple[str, ...]) -> None:
        """Notes that the module knows `path` as `name`."""
        self.module.imports[name] = path
        self.module.uses.add(path)

    def named_path(self) -> None:
        """A path in code, such as `crate::limits::MOST` or `limits::MOST`."""
        path = [self.peek()]
        self.at += 1
        while self.peek() == "::" and _NAME.match(self.peek(1)):
            path.append(self.peek(1))
            self.at += 2
        if len(path) > 1 and path[0] != "Self":
            self.module.uses.add(tuple(path))


class Names:
    """Follows paths to the files that define what they name."""

    def __init__(self, root: Module) -> None:
        self.root = root

    def follow(
        self, module: Module, path: tuple[str, ...], seen: frozenset[object] = frozenset()
    ) -> Module | Path | None:
        """The module that a path names, or the file of an item; None where it leaves the crate."""
        if (id(module), path) in seen:
            return None
        seen |= {(id(module), path)}
        here: Module | Path | None = module
        for place, name in enumerate(path):
            if not isinstance(here, Module):
                break  # a variant, an associated function
            if name == "crate":
                here = self.root
            elif name == "super":
                here = here.parent
            elif name != "self":
                here = self.look_up(here, name, seen)
            if here is None and place == 0:
                return None
        return here

    def look_up(self, module: Module, name: str, seen: frozenset[object]) -> Module | Path | None:
        """What a name means in a module, as `follow` says."""
        if name in module.children:
            return module.children[name]
        if name in module.items:
            return module.file
        if name in module.imports:
            path = module.imports[name]
            # `use time::Time` may mean a module here or a crate; a name does not import itself.
            return None if path == (name,) else self.follow(module, path, seen)
        for path in module.globs:
            target = self.follow(module, path, seen)
            if isinstance(target, Module) and (id(target), name) not in seen:
                found = self.look_up(target, name, seen | {(id(target), name)})
                if found is not None:
                    return found
        return None


def uses_of(src: Path) -> dict[Path, dict[Path, set[str]]]:
    """For each file of a crate the files that it uses, with the paths by which it names them."""
    root = Reader.crate(src)
    names = Names(root)
    uses: dict[Path, dict[Path, set[str]]] = {}
    for module in root.everything():
        here = uses.setdefault(module.file, defaultdict(set))
        for path in module.uses:
            target = names.follow(module, path)
            if isinstance(target, Path) and target != module.file:
                here[target].add("::".join(path))
        for path in module.globs:
            target = names.follow(module, path)
            if isinstance(target, Module) and target.file != module.file:
                here[target.file].add("::".join((*path, "*")))
    return uses


# --- Circles --------------------------------------------------------------------------------------


def circles(uses: dict[Path, dict[Path, set[str]]]) -> list[list[Path]]:
    """The strongly connected components of more than one file, largest first (Tarjan 1972)."""
    index: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    found: list[list[Path]] = []

    def visit(node: Path) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in uses.get(node, ()):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = []
            while True:
                component.append(stack.pop())
                if component[-1] == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(uses):
        if node not in index:
            visit(node)
    return sorted(found, key=lambda component: (-len(component), component))


def circle_problems(crates: Path) -> Iterator[str]:
    """A text for each circle that is too large, with the uses that make it."""
    for manifest in sorted(crates.glob("*/Cargo.toml")):
        src = manifest.parent / "src"
        uses = uses_of(src)
        for circle in circles(uses):
            if len(circle) <= LARGEST_CIRCLE:
                continue
            lines = [f"{manifest.parent.name}: {len(circle)} files use one another in a circle:"]
            for file in circle:
                for target in circle:
                    if target in uses[file]:
                        paths = ", ".join(sorted(uses[file][target]))
                        names = (str(one.relative_to(src)) for one in (file, target))
                        lines.append("    {} -> {}: {}".format(*names, paths))
            yield "\n".join(lines)


# --- Layers ---------------------------------------------------------------------------------------


def layer_problems(crates: Path) -> Iterator[str]:
    """A text for each dependency that points up or sideways, or that a crate must do without."""
    rank = {crate: place for place, layer in enumerate(LAYERS) for crate in layer}
    found = sorted([*crates.glob("*/Cargo.toml"), *crates.glob("*/macros/Cargo.toml")])
    manifests = {"-".join(path.parent.relative_to(crates).parts): path for path in found}
    for crate, manifest in manifests.items():
        if crate not in rank:
            yield f"{crate}: its layer is not known; name it in LAYERS of .ci/structure.py"
            continue
        tables = tomllib.loads(manifest.read_text())
        needs = set(tables.get("dependencies", {})) | set(tables.get("build-dependencies", {}))
        for need in sorted(needs):
            if need in WITHOUT.get(crate, set()):
                yield f"{crate}: must not depend on {need}"
            other = need.removeprefix(PREFIX)
            if need.startswith(PREFIX) and other in rank and rank[other] >= rank[crate]:
                where = "in the same layer as" if rank[other] == rank[crate] else "above"
                yield f"{crate}: depends on {other}, which is {where} {crate}"


# --- The command ----------------------------------------------------------------------------------


def main() -> int:
    """Print what breaks a limit; the exit status says whether anything does."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout; default: this one")
    parser.add_argument("--list", metavar="CRATE", nargs="+", help="print every use between files")
    arguments = parser.parse_args()
    crates = arguments.root / "crates"
    for crate in arguments.list or ():
        src = crates / crate / "src"
        for file, targets in sorted(uses_of(src).items()):
            for target, paths in sorted(targets.items()):
                names = (str(one.relative_to(src)) for one in (file, target))
                print("{}/{} -> {}: {}".format(crate, *names, ", ".join(sorted(paths))))
    problems = [*circle_problems(crates), *layer_problems(crates)]
    for problem in problems:
        print(problem)
    print(f"structure: {len(problems)} problems" if problems else "structure: no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
