"""The notebooks run from top to bottom, draw what they announce, and are stored as source alone."""

import ast
import re

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.require import ROOT, SHARED

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIGURES = {"convert": 2, "prove": 3, "sequences": 1, "story": 1, "wrap": 4}  # at least
LIMIT = 900  # seconds per cell, on a machine that does many things at once
LASTFM = SHARED / "data" / "amazon_s3rec" / "LastFM.txt"
OURS = ("semisync", "graph_rewrite", "migrate", "parity")


def code_of(notebook):
    cells = nbformat.read(str(notebook), as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def documented():
    """The names with an entry in the API reference."""
    pages = (ROOT / "docs" / "api").glob("*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"^::: (\S+)$", text, re.MULTILINE)) | set(OURS)


def imported(code):
    """The names of ours that a program imports, dotted."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module + "." + alias.name for alias in node.names)


def test_there_is_one_for_each_door_one_for_the_story_and_one_for_sequences():
    assert {notebook.stem for notebook in NOTEBOOKS} == set(FIGURES)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_is_stored_without_outputs(notebook):
    for cell in nbformat.read(str(notebook), as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_uses_documented_names_alone(notebook):
    names = {name for name in imported(code_of(notebook)) if name.split(".")[0] in OURS}
    public = documented()
    assert {n for n in names if n not in public and n.rpartition(".")[0] not in public} == set()
    attributes = (n.attr for n in ast.walk(ast.parse(code_of(notebook))) if hasattr(n, "attr"))
    assert [name for name in attributes if name.startswith("_")] == []


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs_and_draws(notebook, tmp_path, monkeypatch):
    for name in ("TMPDIR", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("TF2_BEHAVIOR", raising=False)
    if notebook.stem == "sequences" and LASTFM.exists():
        monkeypatch.setenv("LASTFM", str(LASTFM))
    content = nbformat.read(str(notebook), as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(content, timeout=LIMIT, resources=resources).execute()
    shown = [output for cell in content.cells for output in cell.get("outputs", [])]
    figures = [output for output in shown if "image/png" in output.get("data", {})]
    assert len(figures) >= FIGURES[notebook.stem]
    if notebook.stem == "story":
        text = "".join(output.text for output in shown if output.output_type == "stream")
        assert re.findall(r"exit code (\d)", text) == ["0", "1"]
