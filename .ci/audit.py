"""Ask the registries and the databases of known vulnerabilities about what we depend on.

`.venv/bin/python .ci/audit.py`, or `make deny`. Has a crate been yanked, has a crate or a package a
known vulnerability? (Of yanked packages pip warns when it installs them.) What cannot be asked is
said, with the day of the last answer that is noted in `.ci/audited.json`; `--note` notes today's.
The exit status is 1 where an answer is bad.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / ".ci" / "audited.json"
LOCK = ROOT / "Cargo.lock"
REQUIREMENTS = [
    ROOT / f"requirements{part}.txt" for part in ("", "-extras", "-dev", "-docs", "-wheels")
]
AUDITOR = ROOT / ".venv" / "audit"
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
LONGEST_S = 180


class NotAskedError(Exception):
    """Nobody could be asked; why."""


def run(*command: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs a command; an error if it is not there or hangs."""
    try:
        return subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
    except FileNotFoundError:
        raise NotAskedError(f"there is no {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise NotAskedError(f"{command[0]} hangs") from None


def yanked_crates() -> list[str]:
    """Locked crates that have been yanked: cargo takes none that is not locked already."""
    packages = tomllib.loads(LOCK.read_text())["package"]
    locked = [package for package in packages if package.get("source") == CRATES_IO]
    wanted = "".join(
        f'c{number} = {{ package = "{package["name"]}", version = "={package["version"]}", '
        "default-features = false }\n"
        for number, package in enumerate(locked)
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "src").mkdir()
        (folder / "src" / "lib.rs").touch()
        head = '[package]\nname = "all"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\n'
        (folder / "Cargo.toml").write_text(head + wanted)
        done = run("cargo", "generate-lockfile", cwd=folder)
    if done.returncode == 0:
        return []
    said = " ".join(done.stderr.split())
    if "yanked" in said:
        return [said]
    raise NotAskedError(said[-200:])


def vulnerable_crates() -> list[str]:
    """Locked crates with a known vulnerability."""
    if run("cargo", "deny", "--version").returncode != 0:
        raise NotAskedError("cargo-deny is not installed (cargo install cargo-deny --locked)")
    if run("cargo", "deny", "fetch", "db").returncode != 0:
        raise NotAskedError("the database of rustsec.org cannot be fetched")
    done = run("cargo", "deny", "--locked", "check", "--hide-inclusion-graph", "advisories")
    return [] if done.returncode == 0 else [done.stderr]


def vulnerable_packages() -> list[str]:
    """Pinned packages with a known vulnerability."""
    if not (AUDITOR / "bin" / "pip-audit").exists():
        run(sys.executable, "-m", "venv", AUDITOR)
        file = ROOT / "requirements-audit.txt"
        if run(AUDITOR / "bin" / "pip", "install", "--requirement", file).returncode != 0:
            raise NotAskedError("pip-audit cannot be installed")
    files = [part for file in REQUIREMENTS for part in ("--requirement", file)]
    done = run(AUDITOR / "bin" / "pip-audit", "--no-deps", "--disable-pip", "-f", "json", *files)
    try:
        answers = json.loads(done.stdout)["dependencies"]
    except ValueError:
        raise NotAskedError(" ".join(done.stderr.split())[-200:]) from None
    # A mirror without the database answers as if it did not know the package.
    if unknown := [answer["name"] for answer in answers if "skip_reason" in answer]:
        raise NotAskedError(f"the index knows nothing of {len(unknown)} packages")
    return [
        f"{answer['name']} {answer['version']}: {entry['id']}"
        for answer in answers
        for entry in answer["vulns"]
    ]


QUESTIONS: dict[str, tuple[Callable[[], list[str]], list[Path]]] = {
    "yanked crates": (yanked_crates, [LOCK]),
    "vulnerable crates": (vulnerable_crates, [LOCK]),
    "vulnerable packages": (vulnerable_packages, REQUIREMENTS),
}


def digest(files: list[Path]) -> str:
    """A name for what is asked about."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def main(*, note: bool) -> int:
    """Asks everything."""
    notes = json.loads(NOTES.read_text())
    bad = False
    for question, (ask, files) in QUESTIONS.items():
        try:
            found = ask()
        except NotAskedError as error:
            last = notes.get(question)
            when = "never" if last is None else last["day"]
            if last is not None and last["of"] != digest(files):
                when += ", of other versions"
            print(f"audit: NOT CHECKED: {question}: {error}; last checked: {when}", file=sys.stderr)
            continue
        bad = bad or bool(found)
        print(f"audit: {question}: {len(found)} found")
        print("".join(f"{line}\n" for line in found), end="")
        if not found:
            day = datetime.now(timezone.utc).date().isoformat()
            notes[question] = {"day": day, "of": digest(files)}
    if note:
        NOTES.write_text(json.dumps(notes, indent=2) + "\n")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(note=sys.argv[1:] == ["--note"]))
