"""Check the least Rust version that Cargo.toml states (`rust-version`), or `make msrv`.

1. No package of Cargo.lock that we build asks for a newer one.
2. Clippy's `incompatible_msrv` (in `make lint`) finds newer names of the standard library.
3. Where rustup has that version, everything is checked with it; where not, that is said.
   `rustup toolchain install 1.88.0 --profile minimal` installs it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def version(text: str) -> tuple[int, int, int]:
    """A version such as 1.88 or 1.88.0 as numbers."""
    major, minor, patch = (*text.split("."), "0")[:3]
    return int(major), int(minor), int(patch)


def main() -> int:
    """Say what asks for a newer Rust, and what was not checked."""
    everything: dict[str, Any] = json.loads(
        output("cargo", "metadata", "--locked", "--format-version", "1")
    )
    members = set(everything["workspace_members"])
    packages = everything["packages"]
    stated = {one["rust_version"] for one in packages if one["id"] in members}
    if len(stated) != 1 or None in stated:
        print(f"msrv: the crates state {sorted(map(str, stated))}; all must state one version")
        return 1
    (least,) = stated
    newer = [
        f"{one['name']} {one['version']} asks for Rust {one['rust_version']}"
        for one in packages
        if one["rust_version"] and version(one["rust_version"]) > version(least)
    ]
    for line in newer:
        print(f"msrv: {line}, more than {least}")
    if newer:
        return 1
    full = ".".join(map(str, version(least)))
    has = shutil.which("rustup") and output("rustup", "toolchain", "list")
    if not has or f"{full}-" not in has:
        print(
            f"msrv: no package asks for more than {least}; NOT BUILT with it: rustup lacks {full}"
        )
        return 0
    command = ["rustup", "run", full, "cargo", "check", "--workspace", "--locked"]
    target = ["--target-dir", str(ROOT / "target" / "msrv")]
    return subprocess.run([*command, *target], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
