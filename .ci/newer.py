"""Renew the pinned versions in requirements*.txt: `.venv/bin/python .ci/newer.py`.

pip resolves the direct dependencies of records/dependencies.md anew for this Python. A pin for
other versions of Python does not change. A pin that needs a decision (a package that comes or
goes) stays too, and the script names it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile

from dependencies import REQUIREMENTS, ROOT, declared, plain, stated

_PIN = re.compile(r"^([\w.-]+)==([\w.+]+)(.*)$")


def resolved() -> dict[str, str]:
    """The newest versions that go together, of everything that is needed."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as report:
        options = ("--dry-run", "--ignore-installed", "--quiet", "--report", report.name)
        names = sorted({*map(plain, stated("Python")), *declared()})
        command = [sys.executable, "-m", "pip", "install", *options, *names]
        subprocess.run(command, check=True)
        packages = json.load(report)["install"]
    return {plain(entry["metadata"]["name"]): entry["metadata"]["version"] for entry in packages}


def main() -> None:
    """Writes the files anew."""
    newest = resolved()
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    known = set()
    for name in REQUIREMENTS:
        file = ROOT / name
        lines = []
        for line in file.read_text().splitlines():
            pin = _PIN.match(line)
            if pin is not None and _is_for(pin[3], here):
                known.add(plain(pin[1]))
                lines.append(f"{pin[1]}=={newest.get(plain(pin[1]), pin[2])}{pin[3]}")
            else:
                lines.append(line)
        file.write_text("\n".join(lines) + "\n")
    for name in sorted(set(newest) - known):
        print(f"newer: {name}=={newest[name]} is needed, and pinned nowhere", file=sys.stderr)


def _is_for(marker: str, version: str) -> bool:
    """Whether a pin's marker lets this version of Python have it."""
    from packaging.markers import Marker

    text = marker.strip().removeprefix(";").strip()
    return not text or Marker(text).evaluate({"python_version": version})


if __name__ == "__main__":
    main()
