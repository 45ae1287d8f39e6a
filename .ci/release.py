"""What a release needs: ``make release-check``, ``make sbom``.

``--tag v1.2.3`` checks that every file that states the version states that of the tag, that the
changelog has its section, and that the shipped baselines are of this engine. ``--sbom FILE`` writes
what the wheel is made of and what it needs, as CycloneDX 1.6: the linked crates, and the pinned
Python packages.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
_PIN = re.compile(r"^([\w.-]+)==([\w.+]+)", re.MULTILINE)
_EXTENSION = "aqmlab-python"
"""The crate that becomes the wheel's library."""


def version() -> str:
    """The version of the workspace."""
    return str(tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"])


def problems(tag: str) -> list[str]:
    """Why a tag may not be released, a line each."""
    wanted, found = tag.removeprefix("v"), []
    if not re.fullmatch(r"v\d+\.\d+\.\d+", tag):
        found.append(f"the tag is {tag}; expected v and three numbers, such as v1.2.3")
    if version() != wanted:
        found.append(f"Cargo.toml: version {version()}; the tag says {wanted}")
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    if cited is None or cited[1] != wanted:
        found.append(f"CITATION.cff: version {cited and cited[1]}; the tag says {wanted}")
    changes = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(rf"^## \[{re.escape(wanted)}\] - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        found.append(f"CHANGELOG.md: no section '## [{wanted}] - DATE'")
    unreleased = changes.partition("## [Unreleased]")[2].partition("\n## [")[0].strip()
    if unreleased:
        found.append("CHANGELOG.md: something is still under [Unreleased]")
    return found


def stale() -> list[str]:
    """Why a wheel would make its first card slowly, a line each."""
    package, engine = ROOT / "python/aqmlab/cards", ROOT / "crates/sim/src/engine.txt"
    content = (package / "suites/baselines.parquet").read_bytes()
    sources = [(package / name).read_bytes() for name in ("measures.py", "counts.py")]
    formulas = hashlib.sha256(b"".join(sources)).hexdigest()
    if all(text.encode() in content for text in (engine.read_text().strip(), formulas)):
        return []
    return ["baselines.parquet: of another engine or other formulas; make baselines renews it"]


def crates() -> list[dict[str, Any]]:
    """The crates that the wheel's library is linked from, ours and others'."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    known = json.loads(done.stdout)
    packages = {each["id"]: each for each in known["packages"]}
    needs = {
        node["id"]: [
            each["pkg"]
            for each in node["deps"]
            if any(kind["kind"] is None for kind in each["dep_kinds"])  # not to build or to test
        ]
        for node in known["resolve"]["nodes"]
    }
    waiting = [name for name, each in packages.items() if each["name"] == _EXTENSION]
    linked: set[str] = set()
    while waiting:
        if (name := waiting.pop()) not in linked:
            linked.add(name)
            waiting += needs[name]
    return sorted(
        (packages[name] for name in linked), key=lambda each: (each["name"], each["version"])
    )


def component(kind: str, name: str, number: str, licence: str | None) -> dict[str, Any]:
    """A part of the wheel, or something that it needs."""
    found: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": number,
        "purl": f"pkg:{kind}/{name}@{number}",
    }
    if licence:
        found["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    return found


def bill() -> dict[str, Any]:
    """What the wheel is made of and what it needs."""
    parts = [
        component("cargo", each["name"], each["version"], each["license"]) for each in crates()
    ]
    files = (ROOT / "requirements.txt", ROOT / "requirements-extras.txt")
    pins = [pin for file in files for pin in _PIN.findall(file.read_text())]
    # A package that has several pins has one for each Python version.
    needed = [component("pypi", name, number, None) for name, number in sorted(set(pins))]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "aqmlab",
                "version": version(),
                "licenses": [{"expression": "Apache-2.0 OR MIT"}],
            }
        },
        "components": [
            *parts,
            *needed,
        ],
    }


def main() -> int:
    """1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", help="check that this tag may be released")
    parser.add_argument("--sbom", type=Path, metavar="FILE", help="write the bill of materials")
    wanted = parser.parse_args()
    found = [*problems(wanted.tag), *stale()] if wanted.tag else []
    for line in found:
        print(f"release: {line}")
    if wanted.sbom:
        wanted.sbom.parent.mkdir(parents=True, exist_ok=True)
        wanted.sbom.write_text(json.dumps(bill(), indent=2) + "\n")
        print(f"release: {wanted.sbom}")
    if wanted.tag and not found:
        print(f"release: {wanted.tag} may be released")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
