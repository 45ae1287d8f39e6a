"""The direct dependencies of the project, and the tables of them in records/dependencies.md.

`.venv/bin/python .ci/dependencies.py` checks the tables, `--write` renews versions and licences in
them (the reasons are written by hand).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "records" / "dependencies.md"
REQUIREMENTS = [f"requirements{part}.txt" for part in ("", "-extras", "-dev", "-docs", "-wheels")]
MISSING = "**say why**"
_UNSTATED = "not stated"

_ROW = re.compile(r"^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*) \|$")
_PIN = re.compile(r"^([\w.-]+)==([\w.+]+)")

Rows = Mapping[str, tuple[str, str, str]]
"""By name: version, licence, why."""


def plain(name: str) -> str:
    """A package's name as it is compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def stated(heading: str) -> Rows:
    """The table under a heading of the page."""
    part = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = (_ROW.match(line) for line in part.splitlines())
    return {row[1]: (row[2], row[3], row[4]) for row in rows if row}


def _series(version: str) -> str:
    """What compatible versions have in common."""
    major, minor, *_ = f"{version}.0".split(".")
    return major if major != "0" else f"0.{minor}"


def crates() -> dict[str, str]:
    """Version of each crate that Cargo.toml names."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    found = {}
    for name, entry in manifest["workspace"]["dependencies"].items():
        if isinstance(entry, dict) and "path" in entry:
            continue
        wanted = (entry if isinstance(entry, str) else entry["version"]).lstrip("=")
        versions = [package["version"] for package in locked if package["name"] == name]
        fitting = [version for version in versions if _series(version) == _series(wanted)]
        found[name] = fitting[0].partition("+")[0]
    return found


def licences_of_crates() -> dict[str, str]:
    """The licence of every locked crate."""
    command = ["cargo", "metadata", "--locked", "--offline", "--all-features"]
    done = subprocess.run(
        [*command, "--format-version", "1"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    packages = json.loads(done.stdout)["packages"]
    return {each["name"]: (each["license"] or _UNSTATED).replace("/", " OR ") for each in packages}


def pins() -> dict[str, list[str]]:
    """Every version of each package that the requirements pin."""
    found: dict[str, list[str]] = {}
    for file in REQUIREMENTS:
        for line in (ROOT / file).read_text().splitlines():
            if (pin := _PIN.match(line)) is not None:
                found.setdefault(plain(pin[1]), []).append(pin[2])
    return found


def declared() -> set[str]:
    """The packages that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"].values()
    texts = [*project["dependencies"], *(text for texts in optional for text in texts)]
    return {plain(re.split(r"[^\w.-]", text)[0]) for text in texts}


def licence(package: str) -> str | None:
    """The licence of an installed package, as it says; None if it is not installed."""
    try:
        about = metadata(package)
    except PackageNotFoundError:
        return None
    if "License-Expression" in about:
        return str(about["License-Expression"])
    classes = about.get_all("Classifier") or []
    named = [entry.split(" :: ")[-1] for entry in classes if entry.startswith("License ::")]
    if not named and "License" in about:
        named = str(about["License"]).splitlines()[:1]
    return ", ".join(named) or _UNSTATED


def reached(packages: Iterable[str]) -> set[str]:
    """Packages and all that they require, as far as they are installed."""
    found: set[str] = set()
    open_ones = [plain(package) for package in packages]
    while open_ones:
        package = open_ones.pop()
        if package in found:
            continue
        found.add(package)
        try:
            texts = requires(package) or []
        except PackageNotFoundError:
            continue
        open_ones += [plain(re.split(r"[^\w.-]", text)[0]) for text in texts]
    return found


def installed(package: str) -> bool:
    """Whether there is such a package here."""
    return licence(package) is not None


def problems() -> list[str]:
    """What the page has wrong."""
    found = []
    rust, python = stated("Rust"), stated("Python")
    linked = crates()
    for name, version in linked.items():
        if name not in rust:
            found.append(f"crate {name} {version} is not on the page")
        elif rust[name][0] != version:
            found.append(f"crate {name} is {version}; the page says {rust[name][0]}")
    found += [f"crate {name} is not in Cargo.toml" for name in rust if name not in linked]
    pinned = pins()
    for name in sorted(declared() - set(map(plain, python))):
        found.append(f"package {name} is not on the page")
    for name, (version, licences, _) in python.items():
        versions = ", ".join(dict.fromkeys(pinned.get(plain(name), [])))
        if version != versions:
            found.append(f"package {name} is {versions or 'not pinned'}; the page says {version}")
        if (known := licence(name)) not in (None, _UNSTATED, licences):
            found.append(f"package {name} has the licence {known}; the page says {licences}")
    needed = reached(python)
    for name in pinned:
        if installed(name) and name not in needed:
            found.append(f"package {name} is pinned, and nothing on the page needs it")
    for name, (_, _, why) in {**rust, **python}.items():
        if why == MISSING:
            found.append(f"{name}: the page does not say why")
    return found


def _known_licence(package: str, python: Rows) -> str:
    """What a package says, or where it says nothing the page does."""
    said = licence(package)
    return said if said not in (None, _UNSTATED) else python.get(package, ("", _UNSTATED, ""))[1]


def write() -> None:
    """Renews versions and licences on the page; new rows come without a reason."""
    pinned = pins()
    python = stated("Python")
    names = [*python, *sorted(declared() - set(map(plain, python)))]
    packages = {
        name: (", ".join(dict.fromkeys(pinned[plain(name)])), _known_licence(name, python))
        for name in names
        if plain(name) in pinned
    }
    text = PAGE.read_text()
    licences = licences_of_crates()
    linked = {name: (version, licences[name]) for name, version in crates().items()}
    for heading, found in (("Rust", linked), ("Python", packages)):
        before, part = text.split(f"\n## {heading}\n")
        part, *rest = part.split("\n\n## ", 1)
        reasons = stated(heading)
        rows = [
            f"| `{name}` | {version} | {licences} | {reasons.get(name, ('', '', MISSING))[2]} |"
            for name, (version, licences) in sorted(found.items(), key=lambda row: plain(row[0]))
        ]
        lines = [line for line in part.splitlines() if not _ROW.match(line)]
        head = next(at for at, line in enumerate(lines) if line.startswith("| --- ")) + 1
        part = "\n".join([*lines[:head], *rows, *lines[head:]]) + "\n"
        text = f"{before}\n## {heading}\n" + "\n## ".join([part, *rest])
    PAGE.write_text(text.rstrip() + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    for problem in problems():
        print(f"records/dependencies.md: {problem}", file=sys.stderr)
    sys.exit(1 if problems() else 0)
