"""What several files say of the project is the same in all of them."""

import re
import sys

import pytest
from conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]


def test_the_citation_has_the_version_of_the_crates() -> None:
    (version,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert version == PACKAGE["version"]


def test_the_changelog_has_the_version_of_the_crates() -> None:
    versions = re.findall(r"^## \[(\S+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert PACKAGE["version"] in versions


def test_the_changelog_is_by_kind() -> None:
    kinds = re.findall(r"^### (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "Makefile"])
def test_every_page_states_the_same_rust(name: str) -> None:
    stated = re.findall(r"Rust (1\.\d+)", (ROOT / name).read_text())
    assert stated
    assert set(stated) == {PACKAGE["rust-version"]}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_named_targets_and_files_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"`make ([a-z-]+)", text):
        assert target in targets, target
    for link in re.findall(r"\]\((?!https:)([^)#]+)", text):
        assert (ROOT / link).exists(), link
    for path in re.findall(r"`((?:crates|tests|docs|benches|fuzz|scenarios)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path
