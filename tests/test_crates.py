"""The checks of the structure see what they are there for, in sources made for the purpose."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).parent.parent / ".ci"

# a uses b, b uses c and c uses a: by a path in code, by a re-export, and by a group.
CIRCLE = {
    "src/lib.rs": "mod a;\nmod b;\nmod c;\npub use c::C;\n",
    "src/a.rs": "pub struct A;\nfn f() { crate::b::g(); }\n",
    "src/b.rs": "use crate::C;\npub fn g() -> Option<C> { None }\n",
    "src/c.rs": "use super::{a::{self as first}};\npub struct C(Option<first::A>);\n",
}


def write(root: Path, crate: str, files: dict[str, str], needs: str = "") -> None:
    folder = root / "crates" / crate
    folder.mkdir(parents=True)
    (root / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/*"]\nresolver = "3"\n')
    manifest = f'[package]\nname = "aqmlab-{crate}"\nedition = "2024"\n[dependencies]\n{needs}\n'
    for name, text in {"Cargo.toml": manifest, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def check(root: Path) -> tuple[int, str]:
    command = [sys.executable, str(CHECKS / "structure.py"), "--root", str(root)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not result.stderr
    return result.returncode, result.stdout


def test_circle_of_three_files_is_listed_with_its_uses(tmp_path: Path) -> None:
    write(tmp_path, "net", CIRCLE)
    status, text = check(tmp_path)
    assert status == 1
    assert "net: 3 files use one another in a circle:" in text
    assert "a -> b: crate::b::g" in text
    assert "b -> c: crate::C" in text
    assert "c -> a: first::A, super::a" in text
    assert "lib" not in text


@pytest.mark.parametrize(
    "b",
    [
        pytest.param("pub fn g() {}\n// use crate::C;\n", id="comment"),
        pytest.param(
            "pub fn g() {}\n#[cfg(test)]\nmod tests {\n    use crate::C;\n}\n", id="test module"
        ),
        pytest.param("pub fn g() {}\n#[cfg(test)]\nuse crate::{C};\n", id="test import"),
        pytest.param(
            "pub struct B {\n    #[cfg(test)]\n    seen: crate::C,\n}\npub fn g() {}\n",
            id="test field",
        ),
        pytest.param('pub fn g() -> &\'static str { "use a; C" }\n', id="string"),
        pytest.param("use other::C;\npub fn g() -> C { C }\n", id="another crate's name"),
    ],
)
def test_tests_comments_and_strings_are_no_uses(tmp_path: Path, b: str) -> None:
    write(tmp_path, "net", {**CIRCLE, "src/b.rs": b})
    assert check(tmp_path) == (0, "structure: no problems\n")


@pytest.mark.parametrize(
    "b",
    [
        pytest.param('#[serde(with = "crate::c::C")]\npub struct B;\npub fn g() {}\n', id="serde"),
        pytest.param("use crate::*;\npub fn g() -> C { C }\nuse crate::c::*;\n", id="glob"),
        pytest.param("#[derive(Debug)]\npub struct B(crate::c::C);\npub fn g() {}\n", id="field"),
        pytest.param("pub fn g() { mod inner { use super::super::c::C; } }\n", id="inline module"),
    ],
)
def test_every_kind_of_use_counts(tmp_path: Path, b: str) -> None:
    write(tmp_path, "net", {**CIRCLE, "src/b.rs": b})
    status, text = check(tmp_path)
    assert status == 1
    assert "b -> c" in text


def test_two_files_may_use_one_another(tmp_path: Path) -> None:
    pair = {
        "src/lib.rs": "mod a;\nmod b;\n",
        "src/a.rs": "use crate::b::B;\npub struct A(B);\n",
        "src/b.rs": "use crate::a::A;\npub struct B(Option<Box<A>>);\n",
    }
    write(tmp_path, "net", pair)
    assert check(tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("crate", "need", "problem"),
    [
        ("tcp", 'aqmlab-net = "0.2"', None),
        ("net", 'aqmlab-tcp = "0.2"', "net: depends on tcp, which is above net"),
        (
            "live",
            'aqmlab-sim = "0.2"',
            "live: depends on sim, which is in the same layer as live",
        ),
        ("sim", 'arrow = "60"', "sim: must not depend on arrow"),
        ("ufo", "", "ufo: its layer is not known; name it in LAYERS of .ci/structure.py"),
    ],
)
def test_crates_depend_downwards(
    tmp_path: Path, crate: str, need: str, problem: str | None
) -> None:
    write(tmp_path, crate, {"src/lib.rs": ""}, need)
    status, text = check(tmp_path)
    assert status == (problem is not None)
    assert (problem or "structure: no problems") in text.splitlines()


def test_a_file_of_tests_that_never_runs_is_named(tmp_path: Path) -> None:
    files = {
        "src/lib.rs": "",
        "tests/main.rs": "mod one;\nmod two;\n",
        "tests/one.rs": "",
        "tests/two/mod.rs": "",
        "tests/own.rs": "",
    }
    write(tmp_path, "net", files)
    with (tmp_path / "crates/net/Cargo.toml").open("a") as manifest:
        manifest.write('[[test]]\nname = "own"\n')
    assert check(tmp_path) == (0, "structure: no problems\n")
    for name in ("three.rs", "four/mod.rs"):
        file = tmp_path / "crates/net/tests" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    status, text = check(tmp_path)
    assert status == 1
    assert text.splitlines()[:2] == [
        f"net: its tests in {name} never run; name it in tests/main.rs"
        for name in ("four", "three")
    ]


def write_python(root: Path, files: dict[str, str]) -> None:
    for name, text in {"__init__.py": "", **files}.items():
        file = root / "python" / "aqmlab" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_every_direct_dependency_is_on_its_page() -> None:
    """records/dependencies.md says what Cargo.toml, pyproject.toml and the requirements do."""
    command = [sys.executable, str(CHECKS / "dependencies.py")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, "")
