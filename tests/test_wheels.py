"""What `make test-wheels` refuses: a wheel whose library asks for more than its tag says."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT

if shutil.which("cc") is None or shutil.which("readelf") is None:
    pytest.skip("NO WHEEL WAS CHECKED: there is no cc or readelf", allow_module_level=True)
if platform.machine() != "x86_64":
    pytest.skip("NO WHEEL WAS CHECKED: the library is of x86-64", allow_module_level=True)

LIBRARY = "aqmlab/_native.abi3.so"
COPY = """
__asm__(".symver copy, memcpy@GLIBC_2.14");
void *copy(void *, const void *, unsigned long);
void *both(void *a, void *b) { return copy(a, b, 8); }
"""
"""A library that needs glibc 2.14, whatever glibc it is built with."""


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    """`.ci/wheels.py`."""
    sys.path.insert(0, str(ROOT / ".ci"))
    spec = importlib.util.spec_from_file_location("wheels", ROOT / ".ci" / "wheels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(ROOT / ".ci"))
    return module


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "copy.c").write_text(COPY)
    place = tmp_path / "copy.so"
    command = ["cc", "-shared", "-fPIC", "-fno-builtin", "-nostartfiles", "-o", str(place)]
    subprocess.run([*command, str(tmp_path / "copy.c")], check=True)
    return place


def packed(library: Path, tag: str, own: str = "", *more: str) -> Path:
    """A wheel with a tag in its name and one in its description."""
    wheel = library.with_name(f"aqmlab-1-cp310-abi3-{tag}.whl")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("aqmlab-1.dist-info/WHEEL", f"Tag: cp310-abi3-{own or tag}\n")
        for name in (LIBRARY, *more):
            archive.write(library, name)
    return wheel


def test_a_library_within_its_tag_passes(wheels: ModuleType, library: Path) -> None:
    for tag in ("manylinux_2_14_x86_64", "manylinux_2_28_x86_64"):
        text = wheels.form(packed(library, tag), tag)
        assert text.endswith("needs libc.so.6, glibc 2.14")


@pytest.mark.parametrize(
    ("tag", "own", "more", "message"),
    [
        ("manylinux_2_12_x86_64", "", (), "needs glibc 2.14"),
        ("manylinux_2_28_x86_64", "linux_x86_64", (), "its tags are cp310-abi3-linux_x86_64"),
        ("manylinux_2_28_aarch64", "", (), "its library is of another processor"),
        ("musllinux_1_2_x86_64", "", (), "needs libc.so.6"),
        ("manylinux_2_28_x86_64", "", ("aqmlab.libs/libz.so.1",), "holds the libraries"),
    ],
)
def test_more_than_the_tag_says_is_refused(
    wheels: ModuleType, library: Path, tag: str, own: str, more: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SystemExit, match=message):
        wheels.form(packed(library, tag, own, *more), tag)


def test_symbols_that_musl_lacks_are_named(
    wheels: ModuleType, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library in the place of musl gives nothing that it asks for itself."""
    monkeypatch.setattr(wheels, "libc", lambda _: library)
    assert wheels.foreign_symbols(str(library), "musllinux_1_2_x86_64") == ["memcpy"]
    monkeypatch.setattr(wheels, "libc", lambda _: library.with_name("absent"))
    assert wheels.foreign_symbols(str(library), "musllinux_1_2_x86_64") == []
