"""The colour bars of fields and of confusion matrices."""

import numpy as np
import pytest

from densembed.figures.confusion import confusion_difference_figure, confusion_figure
from densembed.figures.densities import atlas_figure


def test_a_colour_bar_shows_that_its_scale_is_clipped():
    figure = atlas_figure([np.ones((4, 6))], ["a"], (6, 4), 0.5, "a name")
    assert figure.layout.coloraxis.colorbar.ticktext == ("0", "0.25", "≥ 0.5")


@pytest.mark.parametrize("most", [1, 2, 7, 250])
def test_a_confusion_matrix_counts_in_whole_numbers(most):
    count = np.array([[5, most], [0, 5]])
    for figure in (
        confusion_figure(count, ["a", "b"], most),
        confusion_difference_figure(-count, ["a", "b"], most),
    ):
        (trace,) = figure.data
        assert trace.colorbar.dtick == int(trace.colorbar.dtick) > 0
        assert trace.zmax / trace.colorbar.dtick <= 3
    assert trace.text[0][1] == f"−{most}"
