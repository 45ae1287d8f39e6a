"""What a publisher needs: workflow files of good form, versions that agree, a bill of materials."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import aqmlab
import pytest
import yaml
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, which looks at a copy of what states the version."""
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci/release.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    for name in ("Cargo.toml", "CITATION.cff", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    monkeypatch.setattr(found, "ROOT", tmp_path)
    return found


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_are_of_good_form(file: Path) -> None:
    workflow: dict[Any, Any] = yaml.safe_load(file.read_text())
    assert {"name", "jobs", "permissions", True} <= workflow.keys()  # YAML reads `on` as true
    jobs = workflow["jobs"]
    for name, job in jobs.items():
        assert {*([job["needs"]] if "needs" in job else [])} <= jobs.keys(), name
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
            continue
        assert "runs-on" in job
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]+", step.get("uses", "a/b@c"))
            for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
                assert target in TARGETS
            for script in re.findall(r"(?<!\S)(\.ci/[\w.]+)", step.get("run", "")):
                assert (ROOT / script).is_file()


@pytest.mark.parametrize("file", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")))
def test_issue_forms_are_of_good_form(file: Path) -> None:
    form = yaml.safe_load(file.read_text())
    if file.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    assert {"name", "description", "body"} <= form.keys()
    for entry in form["body"]:
        assert entry["type"] in {"textarea", "input"}
        assert entry["attributes"]["label"]


def test_the_steps_of_a_release_are_targets() -> None:
    page = (ROOT / "docs/releasing.md").read_text()
    named = {word for call in re.findall(r"`make ([a-z -]+)`", page) for word in call.split()}
    assert named <= TARGETS
    assert {"release-check", "sbom"} <= named


def test_a_checkout_has_another_version_than_the_last_release(release: ModuleType) -> None:
    """What has changed since that release has a name of its own, in Python as in Cargo."""
    changes = (ROOT / "CHANGELOG.md").read_text()
    unreleased, _, released = changes.partition("## [Unreleased]")[2].partition("\n## [")
    version = release.version()
    assert aqmlab.__version__ == str(Version(version))
    if unreleased.strip():
        last = Version(released.partition("]")[0])
        assert version.endswith("-dev")
        assert Version(version).release > last.release
        found = release.problems(f"v{version}")
        assert found[0].startswith(f"the tag is v{version}; expected v and three numbers")


@pytest.mark.parametrize("file", ["Cargo.lock", "fuzz/Cargo.lock"])
def test_lock_files_have_the_crates_and_their_version(release: ModuleType, file: str) -> None:
    """Cargo checks the first whenever it builds; nobody builds by the second every day."""
    found = tomllib.loads((ROOT / file).read_text())["package"]
    crates = {crate["name"]: crate for crate in found}
    waiting, seen = {"aqmlab-fuzz"}, set[str]()
    while waiting:
        name = waiting.pop()
        assert crates[name]["version"] == release.version(), name
        seen.add(name)
        folder = ROOT / "crates" / name.removeprefix("aqmlab-")
        folder = folder if folder.is_dir() else ROOT / "crates/declare/macros"
        needs = tomllib.loads((folder / "Cargo.toml").read_text())["dependencies"]
        own = {
            need
            for need, how in needs.items()
            if need.startswith("aqmlab-") and not (isinstance(how, dict) and how.get("optional"))
        }
        assert own <= set(crates[name]["dependencies"]), name
        waiting |= own - seen
    assert "aqmlab-sim" in seen


def test_versions_must_agree(release: ModuleType, tmp_path: Path) -> None:
    version = release.version().removesuffix("-dev")
    for name, line in (
        ("Cargo.toml", f'version = "{version}"'),
        ("CITATION.cff", f"version: {version}"),
    ):
        text = (tmp_path / name).read_text()
        pattern = rf"^{line.split()[0]}.*$"
        (tmp_path / name).write_text(re.sub(pattern, line, text, count=1, flags=re.MULTILINE))
    changes = (tmp_path / "CHANGELOG.md").read_text()
    _, _, rest = changes.partition("## [Unreleased]")
    others = rest[rest.find("\n## [") :]
    released = f"# Changelog\n\n## [Unreleased]\n\n## [{version}] - 2026-01-02\n\n- One.\n{others}"
    (tmp_path / "CHANGELOG.md").write_text(released)
    assert release.problems(f"v{version}") == []
    (tmp_path / "CHANGELOG.md").write_text(
        released.replace("[Unreleased]\n", "[Unreleased]\n- x\n")
    )
    assert release.problems(f"v{version}") == [
        "CHANGELOG.md: something is still under [Unreleased]"
    ]
    found = release.problems("v9.8.7")
    assert [line.partition(":")[0] for line in found] == [
        "Cargo.toml",
        "CITATION.cff",
        "CHANGELOG.md",
        "CHANGELOG.md",
    ]
    assert release.problems("next")[0].startswith("the tag is next; expected v and three numbers")


def test_the_bill_lists_what_is_linked_and_needed(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "ROOT", ROOT)
    bill = json.loads(json.dumps(release.bill()))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    names = {part["purl"].rpartition("@")[0] for part in bill["components"]}
    assert {"pkg:cargo/aqmlab-sim", "pkg:cargo/pyo3", "pkg:pypi/pyarrow"} <= names
    assert "pkg:cargo/proptest" not in names, "it tests, and is not linked"
    assert all(part["licenses"] for part in bill["components"] if "cargo" in part["purl"])


def test_the_paper_is_as_long_as_a_journal_asks() -> None:
    body = (ROOT / "paper/paper.md").read_text().split("---\n", 2)[2]
    assert 750 <= len(body.split()) <= 1750
    cited = set(re.findall(r"@(\w+)", body))
    listed = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper/paper.bib").read_text(), re.MULTILINE))
    assert cited == listed
    for picture in re.findall(r"\]\((\.\./\S+)\)", body):
        assert (ROOT / "paper" / picture).is_file()
