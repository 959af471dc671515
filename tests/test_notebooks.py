"""The notebooks of the tutorials run from top to bottom, and are stored without output."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from test_docs import DOCS

NOTEBOOKS = sorted((DOCS / "tutorials/notebooks").glob("*.ipynb"))
FORMAT = 4


def execute(notebook: Any, folder: Path) -> None:
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()


def test_there_are_five_notebooks() -> None:
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_is_stored_without_output(path: Path) -> None:
    notebook = nbformat.read(path, FORMAT)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell for cell in code if cell.outputs or cell.execution_count] == []
    execute(notebook, path.parent)
    assert any(output.output_type == "execute_result" or "text" in output for cell in code for output in cell.outputs)


def test_a_notebook_that_fails_is_found(tmp_path: Path) -> None:
    wrong = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("from restive import nothing")])
    with pytest.raises(CellExecutionError, match="nothing"):
        execute(wrong, tmp_path)
