"""What several files say of the project is the same in all of them."""

import importlib
import json
import re
import shlex
import sys
from functools import cache
from typing import Any

import click
import pytest
from aqmlab import _native
from aqmlab.cli.build import Either, Group
from aqmlab.cli.loading import load, names
from conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]


def released() -> str:
    """The version of the last release."""
    changes = (ROOT / "CHANGELOG.md").read_text()
    versions: list[str] = re.findall(r"^## \[(\d\S+)\]", changes, re.MULTILINE)
    return versions[0]


def test_the_citation_has_the_version_of_the_last_release() -> None:
    (version,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    (cited,) = re.findall(r"^  version = \{(\S+)\},$", (ROOT / "docs/faq.md").read_text(), re.M)
    assert version == cited == released()


def test_the_changelog_has_the_version_of_the_crates() -> None:
    """The development of a version has its changes under no name yet."""
    version = PACKAGE["version"]
    assert version.endswith("-dev") or version == released()


def test_the_changelog_is_by_kind() -> None:
    kinds = re.findall(r"^### (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "Makefile"])
def test_every_page_states_the_same_rust(name: str) -> None:
    stated = re.findall(r"Rust (1\.\d+)", (ROOT / name).read_text())
    assert stated
    assert set(stated) == {PACKAGE["rust-version"]}


def test_every_file_supports_what_the_page_says() -> None:
    """docs/versioning.md states the least and the newest versions; both ends are tested in CI."""
    page = (ROOT / "docs/versioning.md").read_text()
    (python,) = re.findall(r"^\| Python \| (3\.\d+) to (3\.\d+) \|$", page, re.MULTILINE)
    (rust,) = re.findall(r"^\| Rust, to build \| (1\.\d+) and newer \|$", page, re.MULTILINE)
    (wheels,) = re.findall(r"^\| Linux, wheels of a release \| glibc (\S+) .*\|$", page, re.M)
    least, newest = python
    assert rust == PACKAGE["rust-version"]
    read = {
        name: (ROOT / name).read_text()
        for name in (
            "pyproject.toml",
            "Cargo.toml",
            "Makefile",
            "README.md",
            "docs/install.md",
            "packaging/meta.yaml",
            ".github/workflows/ci.yml",
            ".github/workflows/wheels.yml",
        )
    }
    stated = {
        "pyproject.toml": (
            f'requires-python = ">={least}"',
            f'python_version = "{least}"',
            f'target-version = "py{least.replace(".", "")}"',
        ),
        "Cargo.toml": (f"abi3-py{least.replace('.', '')}",),
        "Makefile": (f"Python {least} to {newest}", f"python{newest} ", f"python{least};"),
        "README.md": (f"Python {least} to {newest}",),
        "docs/install.md": (f"| Python | {least} to {newest}", f"| Rust | {rust} or newer"),
        "packaging/meta.yaml": (f"python >={least}",),
        ".github/workflows/ci.yml": (f'python: ["{least}", "{newest}"]', f"install {rust}.0"),
        ".github/workflows/wheels.yml": (f"manylinux_{wheels.replace('.', '_')}",),
    }
    for name, texts in stated.items():
        for text in texts:
            assert text in read[name], f"{name}: {text}"


def test_the_build_installs_what_the_pages_show() -> None:
    """`make run` needs the figures; `make extras` brings what `tune` and numba need."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    files = {"figures": "", "frames": "-extras", "tune": "-extras", "numba": "-extras"}
    for extra, part in files.items():
        text = (ROOT / f"requirements{part}.txt").read_text()
        pinned = re.findall(r"^([\w-]+)==", text, re.MULTILINE)
        for needed in extras[extra]:
            assert re.split(r"[<>=]", needed)[0] in pinned, needed


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_named_targets_and_files_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"`make ([a-z0-9-]+)", text):
        assert target in targets, target
    for link in re.findall(r"\]\((?!https:)([^)#]+)", text):
        assert (ROOT / link).exists(), link
    for path in re.findall(r"`((?:crates|tests|docs|lab|fuzz|scenarios)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path


PAGES = [
    path
    for pattern in ("*.md", "docs/**/*.md", "papers/**/*.md", "scenarios/**/*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.name != "CHANGELOG.md"  # it names what is gone, too
]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@cache
def inline_code() -> list[tuple[str, str]]:
    """Pages, and what stands between backquotes in their sentences."""
    found = []
    for page in PAGES:
        text = FENCE.sub("", page.read_text())
        name = page.relative_to(ROOT).as_posix()
        found += [(name, " ".join(code.split())) for code in re.findall(r"`([^`]+)`", text)]
    return found


def test_commands_in_sentences_exist() -> None:
    wrong = []
    seen = 0
    for page, code in inline_code():
        if not re.match(r"(\.venv/bin/)?aqmlab [a-z]", code):
            continue
        seen += 1
        words = shlex.split(code.replace("'", ""))[1:]
        command: Any = load(words[0]) if words[0] in names() else None
        if isinstance(command, Either | Group) and len(words) > 1 and words[1].islower():
            inner = command.get_command(click.Context(command), words[1])
            command = inner or (command if isinstance(command, Either) else None)
        if command is None:
            wrong.append(f"{page}: {code}")
            continue
        known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
        known |= {"--help", "-h"}
        options = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
        if not isinstance(command, Group):
            wrong += [f"{page}: {code}: {option}" for option in options if option not in known]
    assert seen > 50
    assert wrong == []


def test_python_names_in_sentences_exist() -> None:
    wrong = []
    seen = 0
    for page, code in inline_code():
        for name in re.findall(r"^aqmlab(?:\.\w+)+(?<!\.h)\b", code):
            seen += 1
            if not _exists(name):
                wrong.append(f"{page}: {name}")
    assert seen > 10
    assert wrong == []


def _exists(name: str) -> bool:
    """Whether a dotted name can be reached by imports and attributes."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_security_lists_the_files_with_unsafe_code() -> None:
    code = re.compile(r"^[^/\n]*\bunsafe (\{|fn|impl|extern)", re.MULTILINE)
    found = {
        file.relative_to(ROOT).as_posix()
        for folder in ("crates", "fuzz")
        for file in (ROOT / folder).rglob("*.rs")
        if "target" not in file.parts and code.search(file.read_text())
    }
    table = (ROOT / "SECURITY.md").read_text().partition("`unsafe`")[2].partition("\n\nReaders")[0]
    assert set(re.findall(r"`(\S+\.rs)`", table)) == found


def test_security_lists_the_commands_that_read_or_write() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    for name in set(names()) - {"explain", "list", "schema"}:
        assert re.search(rf"`{name}\b", text), f"{name} is not in SECURITY.md"
    remote = re.findall(r"^- `--scheduler` of (.*) sends", text, re.MULTILINE)
    taking = {
        name
        for name in names()
        if any("--scheduler" in option.opts for option in load(name).params)
    }
    assert set(re.findall(r"`(\w+)`", remote[0])) == taking


def test_pages_state_how_many_there_are() -> None:
    scripts = sum(1 for file in (ROOT / "crates/tcp/tests/scripts").rglob("*.script"))
    (stated,) = re.findall(r"(\d+) packet scripts", (ROOT / "docs/transports.md").read_text())
    assert int(stated) == scripts


RECORDS = (
    ("records/live-comparison.md", r"(\d+) of (\d+) bounds are kept", "{} of {} bounds hold"),
    ("records/peers-fidelity.md", r"(\d+) of (\d+) cells are within", "{} of {}"),
    ("docs/validation.md", r"(\d+) of (\d+) checks hold", "{} of {} checks hold"),
    ("docs/tcp-conformance.md", r"Of (\d+) rules (\d+) are met", "{0} "),
    ("docs/tcp-conformance.md", r"Of (\d+) rules (\d+) are met", "{1} "),
    ("docs/tcp-conformance.md", r", (\d+) by profile, \d+ are not", "{} depend on the"),
    ("docs/tcp-conformance.md", r"by profile, (\d+) are not", "{} "),
    ("docs/fidelity.md", r"\*\*all\*\* \| \d+ of \d+ .*? \| .*? \| \d+ \((\d+) %\)", "{} %"),
    ("docs/fidelity.md", r"By value alone, within are \d+ of \d+ \((\d+) %\) cells", "{} %"),
    ("docs/fidelity.md", r"\*\*all\*\* \| (\d+) \| \d+ \((\d+) %\)", "{} "),
    ("docs/fidelity.md", r"\*\*all\*\* \| \d+ \| \d+ \((\d+) %\)", "{} %"),
    ("docs/fidelity.md", r"\*\*all\*\* \| \d+ \| \d+ .*? \| \d+ \((\d+) %\)", "{} %"),
)
"""Pages that commands write, a number in each, and how other pages state it."""


def test_trust_counts_what_does_not_hold() -> None:
    page = (ROOT / "docs/tcp-conformance.md").read_text()
    [(rules, unmet)] = re.findall(r"Of (\d+) rules [^.]* by profile, (\d+) are not", page)
    trust = (ROOT / "docs/trust.md").read_text()
    assert f"{unmet} of {rules} are not met" in trust
    page = (ROOT / "docs/validation.md").read_text()
    [(held, checks)] = re.findall(r"^(\d+) of (\d+) checks hold", page, re.MULTILINE)
    assert f"{int(checks) - int(held)} of {checks} do not hold" in trust


@pytest.mark.parametrize("page", ["README.md", "docs/trust.md", "paper/paper.md"])
def test_numbers_of_trust_are_those_of_record(page: str) -> None:
    text = (ROOT / page).read_text()
    for source, pattern, stated in RECORDS:
        found = re.search(pattern, (ROOT / source).read_text())
        assert found, f"{source} has no {pattern}"
        assert stated.format(*found.groups()) in text, f"{page} against {source}: {found[0]}"


@pytest.mark.parametrize("page", ["README.md", "paper/paper.md"])
def test_pages_count_what_there_is(page: str) -> None:
    text = " ".join((ROOT / page).read_text().split()).replace("Eighteen", "18")
    catalog = json.loads(_native.catalog())
    disciplines = set(catalog["disciplines"]) - {"plugin"}
    assert f"{len(disciplines)} queue disciplines" in text
    assert f"{len(catalog['traffic'])} traffic models" in text
    control = "congestion_control."
    controls = {name for name in catalog["transports"] if name.startswith(control)}
    controls -= {f"{control}plugin", f"{control}external"}
    assert f"{len(controls)} congestion controls" in text
    tools = (ROOT / "docs/other-tools.md").read_text()
    assert f"| {len(disciplines)}, with ECN and L4S |" in tools
    labs = (ROOT / "docs/labs/index.md").read_text()
    number = {4: "four", 5: "five", 6: "six"}[len(re.findall(r"^\| \[", labs, re.MULTILINE))]
    assert f"{number} laboratory classes" in text.lower()


def test_trust_counts_the_bounds_of_todays_queues() -> None:
    trust = (ROOT / "docs/trust.md").read_text()
    record = (ROOT / "records/live-queues.md").read_text()
    [(kept, of)] = re.findall(r"^(\d+) of (\d+) bounds are kept", record, re.MULTILINE)
    assert f"{kept} of {of} bounds hold" in trust
    assert f"{int(of) - int(kept)} of {of} bounds: " in trust
