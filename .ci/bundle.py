"""Everything that a release publishes, in dist: `make release`.

`make` adds to the wheels that are there a source distribution, the documentation site, the page of
the playground, the bill of materials and `SHA256SUMS`. `check` looks at each file apart from the
checkout: the wheel of this machine and the source distribution in empty environments, the site and
the page in folders of their own. `make test-wheels` looks at the wheels of other machines.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote
from urllib.request import urlopen

from release import bill, version
from wheel import PINNED, check_pinned, run

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SUMS = "SHA256SUMS"
SITE = ROOT / "out" / "site" / "html"
PAGE = ROOT / "site" / "playground"
_LOADED = re.compile(r"<(?:script|img|source|iframe|link)\b[^>]*?\s(?:src|href)=\"([^\"]*)\"")
"""What a browser fetches by itself; of `link`, only what `_FETCHES` matches."""
_FETCHES = re.compile(r"\brel=\"(?:stylesheet|icon|preload|modulepreload|manifest)\"")
_LINK = re.compile(r"<a\b[^>]*?\shref=\"([^\"]*)\"")
_OUTSIDE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//|[a-z][a-z0-9+.-]*:")


class BundleError(Exception):
    """Why a file may not be published."""


def pack(folder: Path, file: Path) -> None:
    """Writes a folder as an archive whose bytes depend on its files alone."""
    if not (folder / "index.html").is_file():
        raise BundleError(f"{folder}: no index.html; `make release` builds it")

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() else 0o644
        return entry

    top = file.name.removesuffix(".tar.gz")
    with (
        file.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for path in sorted(folder.rglob("*")):
            name = f"{top}/{path.relative_to(folder).as_posix()}"
            archive.add(path, name, recursive=False, filter=plain)


def unpack(file: Path, folder: Path) -> Path:
    """The one folder of an archive."""
    with tarfile.open(file) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:  # Python 3.10 and 3.11 before their last patches
            archive.extractall(folder)
    [top] = folder.iterdir()
    return top


def digest(file: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def make(dist: Path) -> None:
    """Adds to the wheels what else a release publishes."""
    name = f"aqmlab-{version()}"
    wheels = [file.name for file in dist.glob("aqmlab-*.whl")]
    if not wheels:
        raise BundleError(f"{dist}: no wheel; `make wheels` or `make wheel` makes one")
    python = f"aqmlab-{version().replace('-dev', '.dev0')}-"
    if others := [name for name in wheels if not name.startswith(python)]:
        raise BundleError(f"{others[0]}: of another version than {version()}; remove it")
    for old in (*dist.glob("aqmlab-*.tar.gz"), *dist.glob("*.cdx.json")):
        old.unlink()
    maturin = Path(sys.executable).parent / "maturin"
    run([maturin, "sdist", "--out", dist], ROOT, os.environ, "bundle")
    pack(SITE, dist / f"{name}-site.tar.gz")
    pack(PAGE, dist / f"{name}-playground.tar.gz")
    (dist / f"{name}.cdx.json").write_text(json.dumps(bill(), indent=2) + "\n")
    files = sorted(file for file in dist.iterdir() if file.name != SUMS)
    (dist / SUMS).write_text("".join(f"{digest(file)}  {file.name}\n" for file in files))
    for file in files:
        print(f"bundle: {file.stat().st_size / 1e6:6.1f} MB  {file.name}")


def check_sums(dist: Path) -> None:
    """Every file is listed, and is what the list says."""
    listed = dict(
        line.split("  ", 1)[::-1] for line in (dist / SUMS).read_text().splitlines() if line
    )
    there = {file.name for file in dist.iterdir()} - {SUMS}
    for name in sorted(there ^ set(listed)):
        raise BundleError(f"{name}: {'not in' if name in there else 'missing, but in'} {SUMS}")
    for name, wanted in listed.items():
        if digest(dist / name) != wanted:
            raise BundleError(f"{name}: not the bytes of {SUMS}; `make release` renews it")


def addresses(text: str) -> Iterator[tuple[str, bool]]:
    """The addresses of a page, and whether a browser fetches them by itself."""
    for match in _LOADED.finditer(text):
        if not match[0].startswith("<link") or _FETCHES.search(
            text, match.start(), match.end() + 99
        ):
            yield match[1], True
    for match in _LINK.finditer(text):
        yield match[1], False


def check_pages(folder: Path) -> int:
    """Nothing of the pages comes from the network, and no link leads nowhere; how many pages."""
    # The theme leaves a template in `_static`.
    pages = [page for page in sorted(folder.rglob("*.html")) if page.parent.name != "_static"]
    for page in pages:
        for address, fetched in addresses(page.read_text()):
            where = f"{page.relative_to(folder)}: {address}"
            if address.startswith("data:") or not address:
                continue
            if _OUTSIDE.match(address):
                if fetched:
                    raise BundleError(f"{where}: a page may load its own files only")
                continue
            path = unquote(re.split(r"[?#]", address, maxsplit=1)[0])
            target = (page.parent / path).resolve()
            if path and not target.is_relative_to(folder.resolve()):
                raise BundleError(f"{where}: leads out of the archive")
            if path and not target.exists():
                raise BundleError(f"{where}: there is no such file")
    if not pages:
        raise BundleError(f"{folder.name}: no page")
    return len(pages)


def check_site(file: Path, place: Path) -> str:
    """The site, unpacked."""
    folder = unpack(file, place)
    for name in ("index.html", "search.html", "searchindex.js"):
        if not (folder / name).is_file():
            raise BundleError(f"{file.name}: no {name}")
    return f"{check_pages(folder)} pages; links lead somewhere, nothing is loaded from elsewhere"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


def check_page(file: Path, place: Path) -> str:
    """The page of the playground, unpacked and served on the loopback."""
    folder = unpack(file, place)
    check_pages(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            with urlopen(f"http://127.0.0.1:{server.server_port}/index.html") as page:
                if b"<title>aqmlab playground" not in page.read():
                    raise BundleError(f"{file.name}: index.html is not the playground")
        finally:
            server.shutdown()
    return "served; its files are there"


def check_bill(file: Path, _place: Path) -> str:
    """The bill of materials."""
    found = json.loads(file.read_text())
    stated = found["metadata"]["component"]["version"]
    if stated != version():
        raise BundleError(f"{file.name}: version {stated}; Cargo.toml says {version()}")
    parts = found["components"]
    if lacking := [part["name"] for part in parts if not part.get("purl")]:
        raise BundleError(f"{file.name}: no purl for {', '.join(lacking)}")
    kinds = {
        kind: sum(f"pkg:{kind}/" in part["purl"] for part in parts) for kind in ("cargo", "pypi")
    }
    if not all(kinds.values()):
        raise BundleError(f"{file.name}: {kinds}; expected crates and Python packages")
    return f"{kinds['cargo']} crates, {kinds['pypi']} Python packages"


def builders(programs: Path, place: Path) -> dict[str, str]:
    """What pip builds the source distribution with: an environment, and this machine's cargo."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise BundleError("cargo: not on the PATH; pip needs it to build the source distribution")
    kept = {
        key: value
        for key, value in os.environ.items()
        if key.startswith(("PIP_", "CARGO_", "RUSTUP_")) or key.lower().endswith("_proxy")
    }
    return {
        **kept,
        "PATH": f"{programs}:{Path(cargo).parent}:{os.defpath}",
        "HOME": os.environ.get("HOME", str(place)),  # rustup and cargo keep their files there
        "LANG": "C.UTF-8",
    }


def check_source(file: Path, place: Path) -> str:
    """Builds the source distribution in an empty environment; a run has the pinned bytes."""
    folder = unpack(file, place / "source")
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BundleError(f"{file.name}: {done.stderr.strip().splitlines()[0]}")
    venv.create(place / "environment", with_pip=True)
    programs = place / "environment" / "bin"
    environment = builders(programs, place)
    pip = [str(programs / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    constraint = ["--constraint", str(ROOT / "requirements.txt")]
    run([*pip, "install", *constraint, file], place, environment, "bundle")
    scenario = str(PINNED / "scenario.toml")
    run([programs / "aqmlab", "run", scenario, "--out", "pinned"], place, environment, "bundle")
    check_pinned(place / "pinned", "bundle")
    return "builds; the pinned run has its bytes"


def check_wheel(file: Path, place: Path) -> str:
    """Runs the first steps of README.md with this machine's wheel."""
    run([sys.executable, ROOT / ".ci/wheel.py", file], place, os.environ, "bundle")
    return "the first steps work without the checkout"


def own_wheel(dist: Path) -> Path:
    """The newest wheel that this machine's Python takes."""
    answer = subprocess.check_output(
        [sys.executable, "-m", "pip", "debug", "--verbose"], stderr=subprocess.DEVNULL, text=True
    )
    tags = set(re.findall(r"^ *(\w+-\w+-(\w+))$", answer, re.MULTILINE))
    known = {platform for _, platform in tags}
    wheels = sorted(dist.glob("aqmlab-*.whl"), key=lambda file: file.stat().st_mtime)
    fitting = [file for file in wheels if known & set(file.stem.rsplit("-", 1)[1].split("."))]
    if not fitting:
        raise BundleError(f"{dist}: no wheel for this machine among {len(wheels)}")
    return fitting[-1]


def check(dist: Path) -> None:
    """Looks at each file; the long checks come last."""
    check_sums(dist)
    print(f"bundle: {SUMS}: every file has its sum")
    name = f"aqmlab-{version()}"
    [source] = [file for file in dist.glob("*.tar.gz") if not file.name.startswith(f"{name}-")]
    checks: list[tuple[Path, Callable[[Path, Path], str]]] = [
        (dist / f"{name}.cdx.json", check_bill),
        (dist / f"{name}-playground.tar.gz", check_page),
        (dist / f"{name}-site.tar.gz", check_site),
        (own_wheel(dist), check_wheel),
        (source, check_source),
    ]
    for file, look in checks:
        with tempfile.TemporaryDirectory(prefix="aqmlab-bundle-") as place:
            print(f"bundle: {file.name}: {look(file, Path(place))}", flush=True)


def main() -> int:
    """1 if a file may not be published."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("make", "check"))
    step = {"make": make, "check": check}[parser.parse_args().step]
    try:
        step(DIST)
    except BundleError as reason:
        print(f"bundle: {reason}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
