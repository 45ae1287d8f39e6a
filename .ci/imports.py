"""Check the imports of the Python package: no circle of modules, and few floors.

`make structure` runs it; `--list` prints the floor of every module. A module stands one floor above
the highest module that it imports; imports inside functions and for type checking count. A name
that a package's `__init__` re-exports is an import of the module that defines it. `__main__` only
starts the command and is no floor; modules of a circle share one.
"""

from __future__ import annotations

import argparse
import ast
import sys
from functools import cache
from pathlib import Path

from structure import ROOT, circles

MOST_FLOORS = 12
PACKAGE = "aqmlab"


class Modules:
    """The modules of the package in `folder`, by name."""

    def __init__(self, folder: Path) -> None:
        self.files = {
            ".".join(file.relative_to(folder.parent).with_suffix("").parts).removesuffix(
                ".__init__"
            ): file
            for file in sorted(folder.rglob("*.py"))
            if file.name != "__main__.py"
        }
        self.names = {file: name for name, file in self.files.items()}

    @cache  # noqa: B019 - one object for as long as the process lives
    def imported(self, name: str) -> list[tuple[str, str, str]]:
        """What a module imports: the module, the name in it, and what it is called here."""
        found = []
        for node in ast.walk(ast.parse(self.files[name].read_text())):
            if isinstance(node, ast.Import):
                found += [(one.name, "", one.asname or one.name) for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                if node.level:
                    is_package = self.files[name].name == "__init__.py"
                    above = name.split(".")[: len(name.split(".")) - node.level + is_package]
                    module = ".".join([*above, module] if module else above)
                found += [(module, one.name, one.asname or one.name) for one in node.names]
        return found

    def defining(self, module: str, name: str, seen: frozenset[str] = frozenset()) -> str | None:
        """The module of the package that defines a name; None where none does."""
        if f"{module}.{name}" in self.files:
            return f"{module}.{name}"
        if module not in self.files or module in seen:
            return None
        if self.files[module].name == "__init__.py":
            for source, original, here in self.imported(module):
                if here == name and source.startswith(PACKAGE):
                    return self.defining(source, original, seen | {module})
            if name == "_native":
                return None
        return module

    def uses(self) -> dict[Path, dict[Path, set[str]]]:
        """For each module those that it imports, with the names."""
        result: dict[Path, dict[Path, set[str]]] = {}
        for name, file in self.files.items():
            here = result.setdefault(file, {})
            for module, original, _ in self.imported(name):
                target = self.defining(module, original) if original else module
                if target in self.files and target != name:
                    here.setdefault(self.files[target], set()).add(original or module)
        return result


def floors(uses: dict[Path, dict[Path, set[str]]]) -> dict[Path, int]:
    """The floor of every module; those of a circle share theirs."""
    together = {file: circle for circle in map(tuple, circles(uses)) for file in circle}

    @cache
    def floor(group: tuple[Path, ...]) -> int:
        below = {target for file in group for target in uses[file]} - set(group)
        return 1 + max((floor(together.get(target, (target,))) for target in below), default=0)

    return {file: floor(together.get(file, (file,))) for file in uses}


def main() -> int:
    """Print what breaks a limit; the exit status says whether anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout; default: this one")
    parser.add_argument("--list", action="store_true", help="print the floor of every module")
    arguments = parser.parse_args()
    modules = Modules(arguments.root / "python" / PACKAGE)
    uses = modules.uses()
    heights = floors(uses)
    if arguments.list:
        for file, height in sorted(heights.items(), key=lambda item: (item[1], item[0])):
            print(f"{height:3} {modules.names[file]}")
    problems = []
    for circle in circles(uses):
        lines = [f"{PACKAGE}: {len(circle)} modules import one another in a circle:"]
        for file in circle:
            for target in circle:
                if target in uses[file]:
                    words = ", ".join(sorted(uses[file][target]))
                    lines.append(f"    {modules.names[file]} -> {modules.names[target]}: {words}")
        problems.append("\n".join(lines))
    if (highest := max(heights.values(), default=0)) > MOST_FLOORS:
        file = max(heights, key=lambda one: heights[one])
        chain = [file]
        while uses[chain[-1]]:
            lower = [one for one in uses[chain[-1]] if heights[one] < heights[chain[-1]]]
            if not lower:
                break
            chain.append(max(lower, key=lambda one: heights[one]))
        path = " -> ".join(modules.names[one].removeprefix(f"{PACKAGE}.") for one in chain)
        problems.append(f"{PACKAGE}: {highest} floors, more than {MOST_FLOORS}: {path}")
    for problem in problems:
        print(problem)
    print(f"imports: {len(problems)} problems" if problems else "imports: no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
