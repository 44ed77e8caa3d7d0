"""The notebook for newcomers runs, and its stored outputs are those of a run."""

import nbformat
import pytest

from tests.tour import TOUR, executed

MOST_BYTES = 200_000


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_its_outputs_are_stored_and_small():
    notebook = nbformat.read(TOUR, as_version=4)
    nbformat.validate(notebook)
    assert TOUR.stat().st_size <= MOST_BYTES
    assert [cell.execution_count for cell in code_cells(notebook)] == list(
        range(1, 1 + len(code_cells(notebook)))
    )
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    kinds = {kind for output in outputs for kind in output.get("data", ())}
    assert {"image/png", "application/vnd.plotly.v1+json"} <= kinds


@pytest.mark.slow
def test_it_runs():
    notebook = executed()
    assert "<iframe" in str(notebook)
    stored = nbformat.read(TOUR, as_version=4)
    for new, old in zip(code_cells(notebook), code_cells(stored), strict=True):
        # A stream may come in several parts.
        assert {out.output_type for out in new.outputs} == {out.output_type for out in old.outputs}
        assert "Traceback" not in str(new.outputs)
        assert not [out for out in new.outputs if out.get("name") == "stderr"]
