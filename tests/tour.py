"""Run the notebook docs/tour.ipynb and keep its outputs: `python -m tests.tour`."""

import os
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
TOUR = ROOT / "docs/tour.ipynb"
LONGEST = 900
"""Seconds that a cell may take before it counts as one that hangs; not a measure of speed."""


def executed() -> nbformat.NotebookNode:
    """The notebook with the outputs of a new run. Raises CellExecutionError if a cell fails."""
    notebook = nbformat.read(TOUR, as_version=4)
    execute(notebook, TOUR.parent)
    return notebook


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run the cells in a folder, with the code of this repository."""
    # Streamlit sets this variable when it is imported, and figures would not be displayed.
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    client = NotebookClient(notebook, timeout=LONGEST, record_timing=False)
    client.execute(env={**environment, "PYTHONPATH": path}, cwd=str(folder))


def without_panel(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook as it is stored: the live panel, which is a whole page, is left out."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "<iframe" in output.get("data", {}).get("text/html", ""):
                del output["data"]["text/html"]
    return notebook


def main() -> None:
    begun = time.perf_counter()
    notebook = without_panel(executed())
    nbformat.write(notebook, TOUR)
    print(f"{TOUR.stat().st_size / 1000:.0f} kB in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
