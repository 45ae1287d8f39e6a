"""What a publisher needs: workflow files of good form, versions that agree, a bill of materials."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
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


@pytest.fixture
def bundle(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that makes and checks what a release publishes."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    return importlib.import_module("bundle")


def pages(folder: Path, body: str) -> Path:
    """A site of two pages."""
    (folder / "sub").mkdir(parents=True)
    (folder / "index.html").write_text(f"<title>aqmlab playground</title>{body}")
    (folder / "sub/a b.html").write_text('<a href="../index.html#top">up</a>')
    return folder


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (
            '<a href="sub/a%20b.html">a</a> <a href="https://example.org">b</a> <a href="#c">c</a>',
            None,
        ),
        ('<link rel="canonical" href="https://example.org/">', None),
        ('<script src="data:text/javascript,1"></script>', None),
        ('<a href="gone.html">a</a>', "index.html: gone.html: there is no such file"),
        ('<img alt="" src="gone.svg">', "index.html: gone.svg: there is no such file"),
        ('<a href="../../x.html">a</a>', "index.html: ../../x.html: leads out of the archive"),
        ('<script src="https://example.org/a.js"></script>', "may load its own files only"),
        ('<link href="//example.org/a.css" rel="stylesheet">', "may load its own files only"),
    ],
)
def test_pages_of_a_release_stand_alone(
    bundle: ModuleType, tmp_path: Path, body: str, wrong: str | None
) -> None:
    folder = pages(tmp_path / "site", body)
    if wrong is None:
        assert bundle.check_pages(folder) == 2
        return
    with pytest.raises(bundle.BundleError, match=re.escape(wrong)):
        bundle.check_pages(folder)


def test_an_archive_of_a_release_has_the_same_bytes_again(
    bundle: ModuleType, tmp_path: Path
) -> None:
    folder = pages(tmp_path / "page", "")
    file = tmp_path / "aqmlab-1.0.0-playground.tar.gz"
    bundle.pack(folder, file)
    first = file.read_bytes()
    (folder / "index.html").touch()
    bundle.pack(folder, file)
    assert file.read_bytes() == first
    assert "served" in bundle.check_page(file, tmp_path / "unpacked")
    (folder / "index.html").write_text("another page")
    bundle.pack(folder, file)
    with pytest.raises(bundle.BundleError, match="is not the playground"):
        bundle.check_page(file, tmp_path / "again")
    with pytest.raises(bundle.BundleError, match=r"no index\.html"):
        bundle.pack(tmp_path / "nothing", file)


def test_sums_of_a_release_list_every_file(bundle: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "a.whl"
    file.write_bytes(b"a")
    (tmp_path / "SHA256SUMS").write_text(f"{bundle.digest(file)}  a.whl\n")
    bundle.check_sums(tmp_path)
    (tmp_path / "b.whl").write_bytes(b"b")
    with pytest.raises(bundle.BundleError, match=r"b\.whl: not in"):
        bundle.check_sums(tmp_path)
    (tmp_path / "b.whl").unlink()
    file.write_bytes(b"c")
    with pytest.raises(bundle.BundleError, match=r"a\.whl: not the bytes"):
        bundle.check_sums(tmp_path)
    file.unlink()
    with pytest.raises(bundle.BundleError, match=r"a\.whl: missing"):
        bundle.check_sums(tmp_path)


def test_wheels_of_another_version_are_not_published(bundle: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(bundle.BundleError, match="no wheel"):
        bundle.make(tmp_path)
    (tmp_path / "aqmlab-0.0.1-cp310-abi3-linux_x86_64.whl").write_bytes(b"")
    with pytest.raises(bundle.BundleError, match="of another version"):
        bundle.make(tmp_path)


def test_a_bill_of_another_version_is_not_published(bundle: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "a.cdx.json"
    found = bundle.bill()
    file.write_text(json.dumps(found))
    assert "crates" in bundle.check_bill(file, tmp_path)
    found["metadata"]["component"]["version"] = "0.0.1"
    file.write_text(json.dumps(found))
    with pytest.raises(bundle.BundleError, match=r"version 0\.0\.1"):
        bundle.check_bill(file, tmp_path)


def test_the_source_distribution_is_built_by_the_cargo_of_the_path(
    bundle: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools").mkdir()
    cargo = tmp_path / "tools/cargo"
    cargo.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    found = bundle.builders(tmp_path / "bin", tmp_path)
    assert found["PATH"].split(":")[:2] == [str(tmp_path / "bin"), str(tmp_path / "tools")]
    assert found["HTTPS_PROXY"] == "http://proxy.example:3128"
    cargo.unlink()
    with pytest.raises(bundle.BundleError, match="cargo: not on the PATH"):
        bundle.builders(tmp_path / "bin", tmp_path)


def test_the_source_distribution_has_every_crate_of_the_lock_file() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]
    named = {
        each["path"].split("/")[1] for each in settings["include"] if "crates/" in each["path"]
    }
    meta = json.loads(
        subprocess.check_output(
            ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"],
            cwd=ROOT,
        )
    )
    packages = {each["name"]: each for each in meta["packages"]}
    linked, waiting = set(), ["aqmlab-python"]
    while waiting:
        if (name := waiting.pop()) not in linked:
            linked.add(name)
            needs = packages[name]["dependencies"]
            waiting += [each["name"] for each in needs if each.get("path")]
    folder = {name: Path(each["manifest_path"]).parent.name for name, each in packages.items()}
    assert {folder[name] for name in set(packages) - linked} == named
