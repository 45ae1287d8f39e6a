"""How the modules of the package depend on each other: no circles, few floors, stated exports.

The packages stand in layers. The table of them in docs/design.md is written by this test with
AQMLAB_REWRITE=1 in the environment.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
PACKAGE, LAB = ROOT / "python" / "aqmlab", ROOT / "lab"
DESIGN = ROOT / "docs" / "design.md"
LAYERS = (
    ("lab",),
    ("cli",),
    ("reports",),
    ("papers", "validation"),
    ("cards",),
    ("tuning", "traffic", "document"),
    ("figures", "sweeps", "gym", "shell"),
    ("engine",),
    ("scenario",),
    ("results",),
    ("plugins",),
    ("_util",),
)
"""Packages from the top. One imports others of lower layers only. A new one states where it is."""
TABLE_HEAD = "| layer | package | holds |"
MOST_FLOORS = 12
"""Modules in the longest chain of imports, those that functions import included. The lowest floor
imports nothing of the package."""


def module_name(file: Path) -> str:
    """The dotted name of a file; that of a package for its ``__init__``."""
    home = next(home for home in (PACKAGE, LAB) if file.is_relative_to(home))
    parts = file.relative_to(home.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# The engine is known by its stub.
MODULES: Mapping[str, Path] = {
    module_name(file): file
    for home in (PACKAGE, LAB)
    for file in sorted(home.rglob("*.py*"))
    if file.suffix in {".py", ".pyi"}
}


def is_type_checking(node: ast.AST) -> bool:
    """Whether it is ``if TYPE_CHECKING:``."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imports(node: ast.AST, *, lazy: bool, typing: bool) -> Iterator[str]:
    """The modules that a piece of code imports.

    ``lazy`` takes in those that functions import, ``typing`` those for annotations alone.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            # What is imported from a package may be a module of it.
            inner = {f"{child.module}.{alias.name}" for alias in child.names}
            yield from inner & MODULES.keys()
            if not inner <= MODULES.keys():
                yield str(child.module)
        elif is_type_checking(child) and not typing:
            assert isinstance(child, ast.If)
            for other in child.orelse:
                yield from imports(other, lazy=lazy, typing=typing)
        elif lazy or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imports(child, lazy=lazy, typing=typing)


@cache
def parsed(file: Path) -> ast.Module:
    """A file as its tree."""
    return ast.parse(file.read_text())


@cache
def graph(*, lazy: bool = False, typing: bool = False) -> dict[str, set[str]]:
    """What each module of the package imports of it."""
    return {
        name: (set(imports(parsed(file), lazy=lazy, typing=typing)) & MODULES.keys()) - {name}
        for name, file in MODULES.items()
    }


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, directly or not."""

    @cache
    def reached(name: str) -> frozenset[str]:
        found: set[str] = set()
        waiting = [name]
        while waiting:
            for other in edges[waiting.pop()] - found:
                found.add(other)
                waiting.append(other)
        return frozenset(found)

    groups = {
        tuple(sorted(other for other in reached(name) if name in reached(other)))
        for name in edges
        if name in reached(name)
    }
    return sorted(map(list, groups))


def longest_chain(edges: Mapping[str, set[str]]) -> list[str]:
    """The longest chain of modules that import one another, from the top; there are no circles."""

    @cache
    def chain(name: str) -> tuple[str, ...]:
        below: Sequence[tuple[str, ...]] = sorted(map(chain, sorted(edges[name])), key=len)
        return (name, *(below[-1] if below else ()))

    return list(sorted(map(chain, edges), key=len)[-1])


def test_no_circles() -> None:
    found = circles(graph(lazy=True, typing=True))
    assert not found, f"modules that import each other: {found}"


def package_of(module: str) -> str:
    """The package of a module; modules beside the packages, and the lab, stand for themselves."""
    first, second, *_ = f"{module}.".split(".")
    return first if first == LAB.name else second


def packages() -> dict[str, set[str]]:
    """What each package imports of the others; so for the modules beside the packages."""
    found: dict[str, set[str]] = {}
    for module, others in graph(lazy=True, typing=True).items():
        package = package_of(module)
        found.setdefault(package, set()).update(set(map(package_of, others)) - {package})
    return found


def test_no_circles_of_packages() -> None:
    found = circles(packages())
    assert not found, f"packages that import each other: {found}"


def test_packages_import_lower_layers_only() -> None:
    there = {LAB.name, *(file.parent.name for file in PACKAGE.glob("*/__init__.py"))}
    ranks = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
    assert there == ranks.keys(), "LAYERS names other packages than there are"
    wrong = [
        f"{name} imports {other}"
        for name, others in packages().items()
        for other in others
        if {name, other} <= there and ranks[other] <= ranks[name]
    ]
    assert not wrong, f"against the layers: {wrong}"


def table_of_packages() -> str:
    """The packages by layer, each with the first line of its docstring."""
    lines = [TABLE_HEAD, "| ---: | --- | --- |"]
    for rank, name in ((rank, name) for rank, layer in enumerate(LAYERS) for name in layer):
        home = LAB if name == LAB.name else PACKAGE / name
        tree = ast.parse((home / "__init__.py").read_text())
        words = (ast.get_docstring(tree) or "").partition("\n")[0]
        lines.append(
            f"| {len(LAYERS) - rank} | `{name}` | {words.replace('``', '`').rstrip('.')} |"
        )
    return "\n".join(lines)


def test_the_page_names_the_packages() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    [shown] = re.findall(rf"{re.escape(TABLE_HEAD)}\n(?:\|.*\n?)+", text)
    if os.environ.get("AQMLAB_REWRITE") == "1":
        DESIGN.write_text(text.replace(shown, table_of_packages() + "\n"), encoding="utf-8")
    else:
        assert shown.rstrip() == table_of_packages(), "AQMLAB_REWRITE=1 writes the table anew"


def test_few_floors() -> None:
    edges = {name: own for name, own in graph(lazy=True).items() if package_of(name) != LAB.name}
    found = longest_chain(edges)
    shown = f"{len(edges)} modules, {len(found)} floors: {' > '.join(found)}"
    print(shown)  # noqa: T201 - pytest -s shows how much room is left
    assert len(found) <= MOST_FLOORS, shown


def exports(tree: ast.Module) -> bool:
    """Whether a module says what others may use of it."""
    return any(
        isinstance(target, ast.Name) and target.id == "__all__"
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )


def defines(tree: ast.Module) -> bool:
    """Whether a module holds more than its docstring."""
    return any(not isinstance(node, ast.Expr) for node in tree.body)


def test_public_modules_state_their_exports() -> None:
    trees = {
        name: parsed(file)
        for name, file in MODULES.items()
        if package_of(name) != LAB.name
        and not any(part.startswith("_") for part in name.split("."))
    }
    missing = [name for name, tree in trees.items() if defines(tree) and not exports(tree)]
    assert not missing, f"modules without __all__: {missing}"


def test_private_names_stay_in_their_modules() -> None:
    found = [
        f"{name}: from {node.module} import {alias.name}"
        for name, file in MODULES.items()
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("aqmlab")
        for alias in node.names
        if alias.name.startswith("_") and alias.name != "_native"
    ]
    assert not found, f"private names of other modules: {found}"


def test_what_a_module_exports_is_there() -> None:
    for name in MODULES:
        if name not in {"aqmlab.__main__", "aqmlab._native"}:
            module = importlib.import_module(name)
            for export in getattr(module, "__all__", ()):
                assert hasattr(module, export), f"{name}.{export}"


REFERENCE = re.compile(r":(?:mod|func|class|data|meth|attr):`~?([\w.]+)`")
"""What a docstring refers to."""


def has_path(owner: object, parts: Sequence[str]) -> bool:
    """Whether an object has an attribute, or declares a field, that has one, and so on."""
    for part in parts:
        declared = getattr(owner, "__annotations__", {})
        if not hasattr(owner, part):
            return part in declared
        owner = getattr(owner, part)
    return True


def resolves(reference: str, module: ModuleType) -> bool:
    """Whether a docstring of a module refers to something that is there."""
    parts = reference.split(".")
    if parts[0] in {"aqmlab", LAB.name}:
        known = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
        found = next(name for name in known if name in MODULES)
        rest = parts[found.count(".") + 1 :]
        return has_path(importlib.import_module(found), rest)
    own = [value for value in vars(module).values() if isinstance(value, type)]
    return any(has_path(owner, parts) for owner in (module, *own))


def test_docstrings_refer_to_what_is_there() -> None:
    lost = [
        f"{name}: {reference}"
        for name, file in MODULES.items()
        if name not in {"aqmlab.__main__", "aqmlab._native"}
        for reference in REFERENCE.findall(file.read_text())
        if not resolves(reference, importlib.import_module(name))
    ]
    assert not lost, f"docstrings refer to nothing: {lost}"
