"""Captures of our own making: what tcpdump and dumpcap write on a path whose truth is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import capture_field

REASON = capture_field.missing()


@pytest.mark.skipif(bool(REASON), reason=f"makes captures in namespaces: {REASON}")
@pytest.mark.parametrize("setting", ["nat-both", "pppoe"])
def test_captures_say_what_passed(setting: str, tmp_path: Path) -> None:
    """`make capture-field` tries all settings."""
    faults = {
        file.stem: wrong
        for file, truth in capture_field.captured(setting, tmp_path)
        if (wrong := capture_field.fault(file, truth))
    }
    assert not faults
