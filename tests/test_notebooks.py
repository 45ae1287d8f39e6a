"""The notebooks of docs/notebooks run from their first cell to their last, and say what they draw.

They are kept without outputs: the site runs them anew, so that what it shows is of this version,
and a change of a notebook reads as what was changed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import ROOT

nbformat = pytest.importorskip(
    "nbformat", reason="NO NOTEBOOK RAN: no nbformat (requirements-docs.txt)"
)
nbclient = pytest.importorskip(
    "nbclient", reason="NO NOTEBOOK RAN: no nbclient (requirements-docs.txt)"
)
pytestmark = pytest.mark.filterwarnings("default")  # of other people's packages

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", os.fspath(elsewhere / "ipython"))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": os.fspath(elsewhere)}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    pictures = [output["data"]["image/svg+xml"] for output in outputs if "svg" in str(output)]
    assert pictures
    assert all(picture.startswith("<svg") for picture in pictures)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    content = json.loads(path.read_text())
    assert set(content["metadata"]) == {"kernelspec", "language_info"}
    for cell in content["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
